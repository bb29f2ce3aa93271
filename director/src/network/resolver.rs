//! Asking the kernel to find out, or to confirm, a neighbour's Ethernet address.
//!
//! The kernel is asked as `ip neighbour ... use` asks it: RTM_NEWNEIGH with NTF_USE makes an entry when
//! there is none and starts ARP or ND as if a packet of its own were waiting; a STALE entry goes
//! to DELAY and is probed after five seconds. The answer comes by multicast like every other change.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use hashbrown::HashMap;
use netlink_packet_route::neighbour::{NeighbourFlags, NeighbourState};
use rtnetlink::Handle;
use tokio::sync::mpsc;

/// A neighbour is asked for at most once in this time.
const PATIENCE: Duration = Duration::from_millis(200);

/// Requests that may wait for the follower's attention.
const QUEUE: usize = 1024;

/// Neighbours that may be asked for within one [`PATIENCE`]: more would overflow the kernel's own
/// table (`gc_thresh3` is 1024 by default).
const MOST_ASKED: usize = 1024;

/// A neighbour: index of its interface, and its address.
pub(super) type Neighbour = (u32, IpAddr);

/// A handle to ask for neighbours with. Cheap to clone; never blocks, so workers may hold one.
#[derive(Clone, Debug)]
pub struct Resolver {
    requests: mpsc::Sender<Neighbour>,
    kept: Arc<ArcSwap<Vec<Neighbour>>>,
}

/// The follower's end of all [`Resolver`]s.
pub(super) struct Requests {
    pub(super) queue: mpsc::Receiver<Neighbour>,
    kept: Arc<ArcSwap<Vec<Neighbour>>>,
    asked: Asked,
    /// Whether the operator has been told that asking is forbidden.
    forbidden: bool,
}

impl Resolver {
    /// Asks for the Ethernet address of `address` on the segment of `interface`. `false` when too
    /// many requests are waiting; ask again with the next packet.
    pub fn request(&self, interface: u32, address: IpAddr) -> bool {
        self.requests.try_send((interface, address)).is_ok()
    }

    /// From now on, keeps these neighbours (interface, address) known: those that are not known or
    /// not confirmed lately are asked for every two seconds. Replaces what was kept before.
    pub fn keep_resolved(&self, neighbours: impl IntoIterator<Item = (u32, IpAddr)>) {
        self.kept.store(Arc::new(neighbours.into_iter().collect()));
    }

    /// Whether this neighbour is one that is kept known, and so has been asked for.
    pub fn keeps(&self, interface: u32, address: IpAddr) -> bool {
        self.kept.load().contains(&(interface, address))
    }

    /// A resolver without a kernel behind it: requests are refused, and the packet that wanted one
    /// waits until somebody puts the neighbour into the [`Network`](super::Network). For workers
    /// on memory ports: tests, benches, `replay`.
    pub fn disconnected() -> Resolver {
        Resolver { requests: mpsc::channel(1).0, kept: Arc::default() }
    }

    /// Both ends.
    pub(super) fn new() -> (Resolver, Requests) {
        let (requests, queue) = mpsc::channel(QUEUE);
        let kept = Arc::new(ArcSwap::default());
        let resolver = Resolver { requests, kept: Arc::clone(&kept) };
        let requests = Requests { queue, kept, asked: Asked::default(), forbidden: false };
        (resolver, requests)
    }
}

impl Requests {
    /// The neighbours that are to be kept known.
    pub(super) fn kept(&self) -> Arc<Vec<Neighbour>> {
        self.kept.load_full()
    }

    /// Asks the kernel, unless it has been asked for this neighbour just now.
    pub(super) async fn ask(&mut self, handle: &Handle, neighbour: Neighbour) {
        if !self.asked.admits(neighbour, Instant::now()) {
            return;
        }
        let (interface, address) = neighbour;
        let asked = handle
            .neighbours()
            .add(interface, address)
            .state(NeighbourState::None)
            .flags(NeighbourFlags::Use)
            .replace()
            .execute()
            .await;
        match asked {
            Ok(()) => {}
            Err(error) if is_forbidden(&error) && !self.forbidden => {
                self.forbidden = true;
                tracing::warn!(
                    "not allowed to ask the kernel for neighbours: run the director with CAP_NET_ADMIN, or \
                     servers are reached only when the kernel happens to know their Ethernet address"
                );
            }
            // An interface that has just gone, or a full table: the next packet asks again.
            Err(error) => {
                tracing::debug!(interface, %address, %error, "the kernel refuses to resolve a neighbour");
            }
        }
    }
}

fn is_forbidden(error: &rtnetlink::Error) -> bool {
    const EPERM: i32 = 1;
    matches!(error, rtnetlink::Error::NetlinkError(error) if error.raw_code() == -EPERM)
}

/// When each neighbour was last asked for.
#[derive(Debug, Default)]
struct Asked {
    at: HashMap<Neighbour, Instant, foldhash::quality::RandomState>,
}

impl Asked {
    /// Whether `neighbour` may be asked for at `now`; if so, that it is.
    fn admits(&mut self, neighbour: Neighbour, now: Instant) -> bool {
        let recent = |at: &Instant| now.saturating_duration_since(*at) < PATIENCE;
        if self.at.get(&neighbour).is_some_and(recent) {
            return false;
        }
        if self.at.len() >= MOST_ASKED {
            self.at.retain(|_, at| recent(at));
        }
        if self.at.len() >= MOST_ASKED {
            return false;
        }
        self.at.insert(neighbour, now);
        true
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{Asked, MOST_ASKED, PATIENCE, QUEUE, Resolver};

    #[test]
    fn a_flood_of_packets_to_one_neighbour_asks_once_in_a_while() {
        let mut asked = Asked::default();
        let (start, one) = (Instant::now(), (2, [10, 0, 0, 1].into()));
        assert!(asked.admits(one, start));
        assert!(!asked.admits(one, start + PATIENCE - Duration::from_millis(1)));
        assert!(asked.admits((3, one.1), start));
        assert!(asked.admits(one, start + PATIENCE));
    }

    #[test]
    fn a_scan_of_a_subnet_does_not_grow_without_bound_and_recovers() {
        let mut asked = Asked::default();
        let start = Instant::now();
        let neighbour = |n: u32| (2, std::net::Ipv4Addr::from_bits(n).into());
        let admitted = (0..5000).filter(|n| asked.admits(neighbour(*n), start)).count();
        assert_eq!(admitted, MOST_ASKED);
        assert!(asked.admits(neighbour(6000), start + PATIENCE));
        assert_eq!(asked.at.len(), 1);
    }

    #[test]
    fn a_full_queue_is_refused_and_never_blocks_a_worker() {
        let (resolver, _requests) = Resolver::new();
        let accepted = (0..2 * QUEUE).filter(|_| resolver.request(2, [10, 0, 0, 1].into())).count();
        assert_eq!(accepted, QUEUE);
    }
}
