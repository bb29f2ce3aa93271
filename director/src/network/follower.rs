//! Following the kernel: subscribe, read everything, then apply what is told, and publish.
//!
//! ```text
//!   multicast --> apply to the working copy --+-- 10 ms after the first change --> publish
//!                 (doubtful, or overrun) -----+-- read everything anew ----------> publish
//! ```
//!
//! The subscription comes before the first reading, so nothing falls between the two; what is told
//! twice changes nothing. Two sockets: answers must not wait behind a flood of notifications.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use futures_util::stream::BoxStream;
use futures_util::{FutureExt, StreamExt};
use netlink_packet_core::{NetlinkMessage, NetlinkPayload};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_sys::AsyncSocket;
use rtnetlink::{Handle, MulticastGroup};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, sleep_until};

use super::change::{Effect, Freshness};
use super::resolver::{Requests, Resolver};
use super::{Network, NetworkError, dump, messages};

const GROUPS: &[MulticastGroup] = &[
    MulticastGroup::Link,
    MulticastGroup::Neigh,
    MulticastGroup::Ipv4Ifaddr,
    MulticastGroup::Ipv4Route,
    MulticastGroup::Ipv6Ifaddr,
    MulticastGroup::Ipv6Route,
];

/// How long the first change of a burst waits for the others.
const DEBOUNCE: Duration = Duration::from_millis(10);

/// The least time between two readings of everything: a routing daemon that shuffles multipath
/// routes must not keep us reading.
const BETWEEN_DUMPS: Duration = Duration::from_millis(200);

/// How often neighbours that are to be kept known are looked at.
const KEEP: Duration = Duration::from_secs(2);

/// Room for notifications that have not been read yet, bytes. The kernel takes the lesser of this
/// and `net.core.rmem_max`; an overrun costs a reading of everything.
const RECEIVE_BUFFER: u32 = 4 << 20;

/// Keeps a [`Network`] up to date as long as it lives.
#[derive(Debug)]
pub struct Follower {
    resolver: Resolver,
    published: watch::Receiver<u64>,
    task: JoinHandle<()>,
}

impl Follower {
    /// Starts to follow the namespace of the calling thread, and returns when the network has been
    /// read once. Needs a tokio runtime with I/O and time whose threads are in that namespace; the
    /// director's has one thread.
    ///
    /// # Errors
    /// When the kernel cannot be spoken to over netlink.
    pub async fn start() -> Result<(Follower, Arc<ArcSwap<Network>>), NetworkError> {
        let sockets = Sockets::open()?;
        let network = dump::network(&sockets.handle).await.map_err(NetworkError::Read)?;
        tracing::info!("following the kernel's network: {}", network.size());
        if let Ok(foreign @ 1..) = dump::foreign_rules(&sockets.handle).await {
            tracing::warn!(
                "{foreign} policy routing rules (ip rule) are not followed: packets to servers go by \
                 the tables local, main and default only"
            );
        }
        let current = Arc::new(ArcSwap::from_pointee(network.clone()));
        let (resolver, requests) = Resolver::new();
        let (version, published) = watch::channel(0);
        let following = Following {
            sockets,
            network,
            current: Arc::clone(&current),
            version,
            requests,
            due: None,
            doubtful: false,
            read: Instant::now(),
        };
        let task = tokio::spawn(following.run());
        let follower = Follower { resolver, published, task };
        Ok((follower, current))
    }

    /// A handle to ask for neighbours with.
    pub fn resolver(&self) -> Resolver {
        self.resolver.clone()
    }

    /// Counts publications: a receiver wakes when there is a newer [`Network`].
    pub fn publications(&self) -> watch::Receiver<u64> {
        self.published.clone()
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The two sockets, and the tasks that serve them.
struct Sockets {
    handle: Handle,
    told: BoxStream<'static, NetlinkMessage<RouteNetlinkMessage>>,
    tasks: [JoinHandle<()>; 2],
}

impl Sockets {
    fn open() -> Result<Sockets, NetworkError> {
        let (mut connection, _, told) =
            rtnetlink::new_multicast_connection(GROUPS).map_err(NetworkError::Open)?;
        let socket = connection.socket_mut().socket_mut();
        if let Err(error) = socket.set_rx_buf_sz(RECEIVE_BUFFER) {
            tracing::debug!(%error, "the netlink receive buffer keeps its size");
        }
        let listening = tokio::spawn(connection);
        let (connection, handle, _) = rtnetlink::new_connection().map_err(NetworkError::Open)?;
        Ok(Sockets {
            handle,
            told: told.map(|(message, _)| message).boxed(),
            tasks: [listening, tokio::spawn(connection)],
        })
    }
}

impl Drop for Sockets {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

/// The follower's task.
struct Following {
    sockets: Sockets,
    /// The working copy; shares with the published one what has not changed.
    network: Network,
    current: Arc<ArcSwap<Network>>,
    version: watch::Sender<u64>,
    requests: Requests,
    /// When the next publication or reading is due.
    due: Option<Instant>,
    /// Whether everything must be read anew.
    doubtful: bool,
    /// When everything was last read.
    read: Instant,
}

impl Following {
    async fn run(mut self) {
        let mut keep = interval(KEEP);
        keep.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                told = self.sockets.told.next() => match told {
                    Some(message) => self.hear(&message),
                    None => self.reopen().await,
                },
                Some(neighbour) = self.requests.queue.recv() => {
                    self.requests.ask(&self.sockets.handle, neighbour).await;
                }
                () = until(self.due) => self.publish_or_read().await,
                _ = keep.tick() => self.keep_resolved().await,
            }
        }
    }

    fn hear(&mut self, message: &NetlinkMessage<RouteNetlinkMessage>) {
        let effect = match &message.payload {
            NetlinkPayload::InnerMessage(inner) => messages::change(inner, message.header.flags)
                .map_or(Effect::Invisible, |change| self.network.apply(change)),
            // The kernel had more to tell than the socket could hold.
            NetlinkPayload::Overrun(_) => Effect::Doubtful,
            _ => Effect::Invisible,
        };
        self.doubtful |= effect == Effect::Doubtful;
        if effect != Effect::Invisible {
            self.due.get_or_insert_with(|| Instant::now() + DEBOUNCE);
        }
    }

    async fn publish_or_read(&mut self) {
        self.due = None;
        if self.doubtful {
            let allowed = self.read + BETWEEN_DUMPS;
            if Instant::now() < allowed {
                self.due = Some(allowed);
            } else {
                self.read_all().await;
            }
        }
        self.publish();
    }

    fn publish(&self) {
        self.current.store(Arc::new(self.network.clone()));
        self.version.send_modify(|version| *version += 1);
    }

    async fn read_all(&mut self) {
        // What has been told up to here is in the tables that are about to be read.
        while let Some(Some(_)) = self.sockets.told.next().now_or_never() {}
        self.read = Instant::now();
        match dump::network(&self.sockets.handle).await {
            Ok(network) => {
                self.network = network;
                self.doubtful = false;
            }
            Err(error) => {
                tracing::warn!(%error, "cannot read the kernel's network tables; trying again");
                self.due = Some(self.read + BETWEEN_DUMPS);
            }
        }
    }

    /// The kernel closes no netlink socket of its own accord; should it happen, start over.
    async fn reopen(&mut self) {
        tracing::warn!("the netlink socket is closed; opening another one");
        loop {
            match Sockets::open() {
                Ok(sockets) => {
                    self.sockets = sockets;
                    self.doubtful = true;
                    self.due = Some(Instant::now());
                    return;
                }
                Err(error) => tracing::error!(%error, "the network is not followed"),
            }
            sleep(Duration::from_secs(1)).await;
        }
    }

    async fn keep_resolved(&mut self) {
        for neighbour in self.requests.kept().iter() {
            let (interface, address) = *neighbour;
            if self.network.freshness(interface, address) != Freshness::Fresh {
                self.requests.ask(&self.sockets.handle, *neighbour).await;
            }
        }
    }
}

/// Waits until `due`, or for ever.
async fn until(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => std::future::pending().await,
    }
}
