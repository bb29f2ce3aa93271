//! Steering: which packets the director takes from an interface, and which it leaves alone.
//!
//! A small XDP program ([`steering`]) runs on each interface. It asks one question: *is this a
//! packet of a virtual service, a reply of a NAT server, or an ICMP error about either?* Services
//! named by a firewall mark have no address to look up; the rules that set marks are part of the
//! program, which is exchanged when they change. If so,
//! the packet goes to the AF_XDP socket of its receive queue; everything else (ssh, ARP, neighbour
//! discovery, BGP, a ping of the virtual address) reaches the kernel untouched, as if there were
//! no director. The program knows no connections and changes no byte. It hangs on a BPF link: when
//! the process ends, however it ends, the kernel has all its traffic back at once.
//!
//! ```text
//! services, servers --> Wanted --Steering::follow--> map of keys <--look-up-- steering (XDP)
//!                         |                               ^                    hit: to the socket
//!                         v                               +------look-up----- guard (tcx)
//!                       KeySet: wants(frame), the twin                         hit: drop
//! ```
//!
//! Where there is no AF_XDP, the director reads copies of packets over AF_PACKET; the [`guard`]
//! then keeps the kernel from answering the same packets itself. [`KeySet::wants`] is the same
//! decision in plain Rust.
//!
//! A frame that steering took and that is the kernel's after all goes back by
//! [`netio::bpf::Injector`]; [`Mark`] keeps it from coming round again.
//!
//! Start reading at the chart in `program.rs`. Knows addresses, ports and protocols; must not know
//! schedulers, connections or how servers are reached.

mod decision;
mod keys;
mod mark;
mod marked;
mod marked_program;
mod program;
mod protocol;
mod wanted;
mod wants;

#[cfg(test)]
mod tests;

use netio::bpf::{LoadError, Map, MapError, MapKind, Program, ProgramType, xdp};

pub use keys::{KEY_SIZE, Key, KeySet, Kind};
pub use mark::Mark;
pub use marked::MarkedSet;
pub use program::{guard, steering};
pub use wanted::Wanted;

/// Entries that the kernel's map holds unless told otherwise: about 250000 services and NAT
/// servers. It takes 8 MB of memory, and some 100 bytes for each entry that there is.
pub const DEFAULT_CAPACITY: u32 = 524_288;

/// Why the kernel's map could not be made equal to the configuration.
#[derive(Debug, thiserror::Error)]
pub enum SteerError {
    /// More keys than the map can hold. Nothing was changed.
    #[error(
        "services and servers need {needed} steering entries, but the table holds {capacity}: \
         raise its capacity, or merge services of one address into one with port 0"
    )]
    Full {
        /// Entries that the configuration needs.
        needed: usize,
        /// Entries that there are.
        capacity: u32,
    },
    /// The kernel refused. What was changed until then is known, the next sync goes on from there.
    #[error(transparent)]
    Map(#[from] MapError),
}

/// The map of keys that the programs of all interfaces look at.
#[derive(Debug)]
pub struct Steering {
    map: Map,
    /// What is in the map.
    present: KeySet,
}

impl Steering {
    /// An empty map, so that every packet is the kernel's. `capacity` counts entries as
    /// [`KeySet::len`] does; see [`DEFAULT_CAPACITY`].
    ///
    /// # Errors
    /// When it is not permitted, or there is no memory.
    pub fn new(capacity: u32) -> Result<Steering, MapError> {
        let (key, value) = (KEY_SIZE as u32, VALUE.len() as u32);
        let map = Map::create(MapKind::GrowingHash, "steer_keys", key, value, capacity)?;
        let present = KeySet::new();
        Ok(Steering { map, present })
    }

    /// Makes the map equal to `wanted`, but for its rules of firewall marks, which are part of the
    /// programs: see [`set_marked`](Steering::set_marked). Keys in both are not touched. New keys come before old
    /// ones go, so that a service that changes its address is never without; only when the map
    /// has not room for both, old keys go first.
    ///
    /// # Errors
    /// When `wanted` does not fit (nothing is changed then), or the kernel refuses.
    pub fn sync(&mut self, wanted: &KeySet) -> Result<(), SteerError> {
        let difference = |from: &KeySet, what: &KeySet| -> Vec<Key> {
            let keys = from.iter().filter(|key| !what.contains(key));
            keys.copied().collect()
        };
        let additions = difference(wanted, &self.present);
        let removals = difference(&self.present, wanted);
        self.exchange(wanted.len(), additions, &removals)
    }

    /// As [`sync`](Steering::sync), for one who knows what has changed since the last time: only
    /// that is looked at. What could not be done is done with the next call.
    ///
    /// # Errors
    /// As [`sync`](Steering::sync).
    pub fn follow(&mut self, wanted: &mut Wanted) -> Result<(), SteerError> {
        let open = wanted.open().filter(|key| wanted.contains(key) != self.present.contains(key));
        let (additions, removals): (Vec<_>, Vec<_>) = open.partition(|key| wanted.contains(key));
        self.exchange(wanted.len(), additions, &removals)?;
        wanted.close();
        Ok(())
    }

    /// Puts keys in and takes keys out, so that there are `wanted` afterwards.
    fn exchange(
        &mut self,
        wanted: usize,
        additions: Vec<Key>,
        removals: &[Key],
    ) -> Result<(), SteerError> {
        let capacity = self.map.capacity();
        if wanted > capacity as usize {
            return Err(SteerError::Full { needed: wanted, capacity });
        }
        let room = capacity as usize - self.present.len();
        let (before, after) = removals.split_at(additions.len().saturating_sub(room));
        self.remove(before)?;
        for key in additions {
            self.map.update(&key.to_bytes(), &VALUE)?;
            self.present.insert_key(key);
        }
        self.remove(after)
    }

    /// Programs that are loaded from now on have these rules of firewall marks. Returns those before.
    pub fn set_marked(&mut self, marked: MarkedSet) -> MarkedSet {
        self.present.set_marked(marked)
    }

    /// What is in the map and the programs: what the last [`sync`](Steering::sync) wanted, unless it failed.
    pub fn present(&self) -> &KeySet {
        &self.present
    }

    /// The map, for [`steering`] and [`guard`].
    pub fn map(&self) -> &Map {
        &self.map
    }

    /// Loads the XDP program for one interface, with the map of its sockets by receive queue.
    /// `kind` is [`XdpFragments`](ProgramType::XdpFragments) if the sockets take frames in several
    /// pieces (MTU above 3506), else [`Xdp`](ProgramType::Xdp). `mark` is needed where the program
    /// may see frames that we have injected: in generic mode.
    ///
    /// # Errors
    /// As [`Program::load`].
    pub fn load(
        &self,
        kind: ProgramType,
        sockets: &Map,
        mark: Option<Mark>,
    ) -> Result<Program, LoadError> {
        let insns = steering(&self.map, self.present.marked(), sockets, mark, xdp::PASS);
        Program::load(kind, "steering", &insns)
    }

    /// Loads the guard for AF_PACKET mode.
    ///
    /// # Errors
    /// As [`Program::load`].
    pub fn load_guard(&self, mark: Option<Mark>) -> Result<Program, LoadError> {
        Program::load(
            ProgramType::SchedCls,
            "guard",
            &guard(&self.map, self.present.marked(), mark),
        )
    }

    fn remove(&mut self, keys: &[Key]) -> Result<(), SteerError> {
        for key in keys {
            self.map.delete(&key.to_bytes())?;
            self.present.remove_key(key);
        }
        Ok(())
    }
}

/// Only whether a key is there matters.
const VALUE: [u8; 1] = [1];
