//! Clients that others have to put up with.

use std::future::pending;
use std::io;
use std::time::Duration;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use strandline_bus::client::Connect as _;
use tokio::io::AsyncWriteExt as _;
use tokio::time::sleep;

use super::link::{Connection, Connections, ToServer};
use super::story::FollowerPlan;

/// Connects, asks for events, and never reads any.
pub(super) async fn stall(connections: Connections) -> turmoil::Result {
    let stream = ask(&ToServer { connections }, "last_sequence=0").await;
    pending::<()>().await;
    drop(stream);
    Ok(())
}

/// Takes a subscription over now and then, reads nothing of it, and leaves.
pub(super) async fn usurp(plan: FollowerPlan, connections: Connections) -> turmoil::Result {
    let mut choice = ChaCha8Rng::seed_from_u64(plan.seed);
    let server = ToServer { connections };
    let name = plan.subscription.unwrap_or_default();
    let source = plan.source.map(|source| format!("&source={source}")).unwrap_or_default();
    loop {
        sleep(Duration::from_millis(choice.random_range(1_000..20_000))).await;
        // Once everybody is to come to an end, it stays away.
        if super::shell::now_ms() > plan.until_ms {
            return Ok(());
        }
        let stream = ask(&server, &format!("subscription={name}{source}")).await;
        sleep(Duration::from_millis(choice.random_range(0..3_000))).await;
        drop(stream);
    }
}

async fn ask(server: &ToServer, query: &str) -> io::Result<Connection> {
    let mut stream = server.connect().await?;
    let request = format!("GET /v1/events?{query} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    Ok(stream)
}
