//! The event bus over HTTP: serving it, and talking to a server.

pub(crate) mod follow;
pub(crate) mod publish;
mod reader_watch;
pub(crate) mod serve;

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::Args;
use strandline_bus::client::{Client, ClientError};
use tokio::runtime::Runtime;

use crate::outcome::Failure;

/// Which server is talked to.
#[derive(Args)]
#[group(skip)]
pub(crate) struct ServerFlags {
    /// The server: http://HOST:PORT, or unix:PATH
    #[arg(value_name = "URL")]
    url: String,
    /// A file with the token that the server asks for
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

impl ServerFlags {
    fn client(&self) -> Result<Client, Failure> {
        let client = match self.url.strip_prefix("unix:") {
            Some("") => {
                return Err(Failure::cannot_run(anyhow::anyhow!(
                    "`unix:` is no address of a bus: use unix:PATH"
                )));
            }
            Some(path) => Client::unix(path),
            None => Client::new(&self.url).map_err(Failure::cannot_run)?,
        };
        Ok(match &self.token_file {
            Some(path) => client.with_token(&token(path)?),
            None => client,
        })
    }

    /// What went wrong, and with whom.
    fn failure(&self, error: ClientError) -> Failure {
        let failure = match error {
            ClientError::Ended => Failure::problem(error),
            _ => Failure::cannot_run(error),
        };
        failure.context(self.url.clone())
    }
}

/// The shortest token that is taken, in bytes.
const TOKEN_BYTES_MIN: usize = 16;

/// No more of the file is read.
const TOKEN_FILE_BYTES_MAX: u64 = 1 << 20;

/// The token of a file: its first line.
fn token(path: &Path) -> Result<Box<str>, Failure> {
    let mut text = String::new();
    let read =
        fs::File::open(path).and_then(|file| file.take(TOKEN_FILE_BYTES_MAX).read_to_string(&mut text));
    read.map_err(|error| {
        Failure::cannot_run(anyhow::Error::new(error).context(format!("the token file {}", path.display())))
    })?;
    let token = text.lines().next().unwrap_or_default().trim();
    let is_good = token.len() >= TOKEN_BYTES_MIN && token.bytes().all(|byte| byte.is_ascii_graphic());
    if is_good {
        return Ok(token.into());
    }
    Err(Failure::cannot_run(anyhow::anyhow!(
        "the first line of {} is no token: use at least {TOKEN_BYTES_MIN} visible ASCII characters",
        path.display()
    )))
}

/// One thread is enough for one connection.
fn runtime() -> Result<Runtime, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| Failure::cannot_run(anyhow::Error::new(error).context("no runtime")))
}
