//! The bus's routes in an axum server of one's own, which publishes too.
//!
//! ```sh
//! cargo run --release -p strandline-bus --example mounted -- ./bus
//! curl -N localhost:3000/bus/v1/events
//! curl -X POST localhost:3000/orders/7
//! ```

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::post;
use strandline::bus::{BusSettings, EventBus};
use strandline::{Directory, EventDraft};
use strandline_bus::{ConnectionLimits, Server, ServerSettings};
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args_os().nth(1).ok_or("give the directory of the bus")?;
    let (bus, _) = EventBus::open(&Directory::open(path)?, BusSettings::default())?;
    let server = Server::new(bus.clone(), ServerSettings::default()).await?;
    let shop = Router::new().route("/orders/{id}", post(order)).with_state(bus.clone());
    let router = shop.nest("/bus", server.router());

    let listener = TcpListener::bind("127.0.0.1:3000").await?;
    println!("listening on http://{}", listener.local_addr()?);
    let end = async { _ = tokio::signal::ctrl_c().await };
    server.serve_router(router, listener, ConnectionLimits::default(), end).await;
    bus.close()?;
    Ok(())
}

/// Takes an order: answered when its event is durable.
async fn order(State(bus): State<EventBus>, Path(id): Path<u64>) -> Result<String, (StatusCode, String)> {
    let payload = format!("{{\"order\":{id}}}");
    let draft =
        EventDraft { domain: 1, event_type: "order.placed", source: "/shop", payload: payload.as_bytes() };
    let refused = |error: strandline::AppendError| (StatusCode::SERVICE_UNAVAILABLE, error.to_string());
    let sequence = bus.publish_nowait(draft).map_err(refused)?.await.map_err(refused)?;
    Ok(format!("event {sequence}\n"))
}
