//! A node: a listener and the connections that came in through it.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::{JoinHandle, JoinSet};

use crate::connection;
use crate::state::Shared;

/// The address that all nodes listen on and that Metadata gives out.
pub(crate) const HOST: &str = "127.0.0.1";
/// Connections that a node serves at the same time; more wait in the listener's backlog.
pub(crate) const CONNECTIONS_MAX: usize = 1024;
/// Pause after a failed accept (out of file descriptors, mostly).
const ACCEPT_RETRY: Duration = Duration::from_millis(50);

/// Binds a port on loopback; 0 lets the system choose.
pub(crate) async fn bind(port: u16) -> anyhow::Result<TcpListener> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port))
        .await
        .with_context(|| format!("could not listen on {HOST}:{port}; is another process using the port?"))
}

/// A running node. Dropping it ends its task, and with that its connections, some time soon.
#[derive(Debug)]
pub(crate) struct NodeTask {
    task: JoinHandle<()>,
    stop: Arc<Notify>,
}

impl NodeTask {
    pub(crate) fn start(shared: Arc<Shared>, id: i32, listener: TcpListener) -> NodeTask {
        let stop = Arc::new(Notify::new());
        NodeTask { task: tokio::spawn(run(shared, id, listener, Arc::clone(&stop))), stop }
    }

    /// Closes the listener and cuts every connection; returns when that is done.
    pub(crate) async fn stop(mut self) {
        self.stop.notify_one();
        let _ended = (&mut self.task).await;
    }
}

impl Drop for NodeTask {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn run(shared: Arc<Shared>, id: i32, listener: TcpListener, stop: Arc<Notify>) {
    let mut connections = JoinSet::new();
    tokio::select! {
        () = accept(&shared, id, &listener, &mut connections) => {}
        () = stop.notified() => {}
    }
    drop(listener);
    connections.shutdown().await;
}

async fn accept(shared: &Arc<Shared>, id: i32, listener: &TcpListener, connections: &mut JoinSet<()>) {
    loop {
        while connections.try_join_next().is_some() {}
        if connections.len() >= CONNECTIONS_MAX {
            connections.join_next().await;
            continue;
        }
        match listener.accept().await {
            Ok((stream, peer)) => {
                connections.spawn(connection::run(Arc::clone(shared), id, stream, peer));
            }
            Err(error) => {
                tracing::warn!(node = id, %error, "could not accept a connection");
                tokio::time::sleep(ACCEPT_RETRY).await;
            }
        }
    }
}

/// The address of a bound listener.
pub(crate) fn port_of(listener: &TcpListener) -> anyhow::Result<u16> {
    let address: SocketAddr = listener.local_addr().context("could not read the listener's address")?;
    Ok(address.port())
}
