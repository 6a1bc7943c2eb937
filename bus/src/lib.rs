//! The event bus over HTTP: [CloudEvents](https://cloudevents.io) 1.0 in, each published once; server-sent events out, and nothing
//! missed unknowingly. `strandline serve` is this crate and a few flags; `bus/README.md` has the routes.
//!
//! ```
//! use strandline::Directory;
//! use strandline::bus::{BusSettings, EventBus};
//! use strandline_bus::client::{Client, Delivered, Follow};
//! use strandline_bus::{ConnectionLimits, Server, ServerSettings};
//! use tokio::net::TcpListener;
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let root = tempfile::tempdir()?;
//! let (bus, _) = EventBus::open(&Directory::open(root.path())?, BusSettings::default())?;
//! let server = Server::new(bus.clone(), ServerSettings::default()).await?;
//! let listener = TcpListener::bind("127.0.0.1:0").await?;
//! let client = Client::new(&format!("http://{}", listener.local_addr()?))?;
//!
//! let uses_it = async {
//!     let event = r#"{"specversion":"1.0","id":"1","source":"/shop","type":"order.placed"}"#;
//!     assert_eq!(client.publish(event).await?, 1);
//!     assert_eq!(client.publish(event).await?, 1, "it is there already");
//!     let mut events = client.follow(Follow::live().after(0));
//!     let Delivered::Event { sequence, data, .. } = events.next().await? else { panic!("an event was published") };
//!     assert_eq!((sequence, &*data), (1, event));
//!     Ok::<_, strandline_bus::client::ClientError>(())
//! };
//! // Serves until `uses_it` is over, then tells all streams.
//! let (tell, told) = tokio::sync::oneshot::channel();
//! let serves = server.serve(listener, ConnectionLimits::default(), async { _ = told.await });
//! let ((), used) = tokio::join!(serves, async {
//!     let used = uses_it.await;
//!     _ = tell.send(());
//!     used
//! });
//! used?;
//! bus.close()?;
//! # Ok(())
//! # }
//! ```
//!
//! The server decides nothing about subscriptions: it asks a [`Shell`] around the bus's state machine, which is driven by threads
//! over a real disk here.

#![forbid(unsafe_code)]

mod body;
pub mod client;
pub mod cloud_event;
mod commit_metrics;
mod connection_io;
mod connections;
mod ending;
mod envelope;
mod frame;
mod gap;
mod guard;
mod headers;
mod intake;
mod listen;
mod measured;
mod metrics;
mod outage;
mod page;
mod parameters;
mod problem;
mod publish;
mod server;
mod shell;
mod shortage;
mod status;
mod stream;

pub use envelope::Envelope;
pub use gap::Gap;
pub use guard::Guard;
pub use listen::{ConnectionLimits, Listener, OwnSocket};
pub use measured::{DiskMeasures, MeasuredDisk};
pub use problem::Problem;
pub use server::{Server, ServerSettings};
pub use shell::{Accepted, JournalStatus, SegmentStatus, Shell, Subscriber, ThreadedSubscriber};
pub use status::{FilterDescription, SubscriptionDescription, SubscriptionDocument};
