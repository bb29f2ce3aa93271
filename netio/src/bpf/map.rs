//! Maps: what programs and we both read and write.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use super::error::MapError;
use super::syscall::{self, Command, bpf, bpf_create};

/// What kind of map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapKind {
    /// Any key, any value; all memory is taken when it is made.
    Hash,
    /// As `Hash`, but memory is taken entry by entry, beyond 16 bytes for each there may be.
    GrowingHash,
    /// Key `u32` (native order) below the capacity; starts as zeroes, entries cannot be deleted.
    Array,
    /// As `Array`, one value per possible CPU. A lookup gives all of them, one after the other,
    /// each padded to a multiple of 8 bytes.
    PerCpuArray,
    /// As `Hash`; when it is full, the entry not used for longest makes room.
    LruHash,
    /// Key `u32` receive queue, value `u32` file descriptor of an AF_XDP socket.
    XskMap,
}

/// The kernel's flag for maps that take memory entry by entry.
const BPF_F_NO_PREALLOC: u32 = 1;

impl MapKind {
    /// The kernel's number in `enum bpf_map_type`, and flags.
    fn number(self) -> (u32, u32) {
        match self {
            MapKind::Hash => (1, 0),
            MapKind::GrowingHash => (1, BPF_F_NO_PREALLOC),
            MapKind::Array => (2, 0),
            MapKind::PerCpuArray => (6, 0),
            MapKind::LruHash => (9, 0),
            MapKind::XskMap => (17, 0),
        }
    }
}

/// A map, open until dropped (programs that use it keep it alive).
#[derive(Debug)]
pub struct Map {
    fd: OwnedFd,
    name: String,
    key_size: usize,
    /// As seen from here: of a per-CPU map, all CPUs' values together.
    value_size: usize,
    capacity: u32,
}

impl AsFd for Map {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Map {
    /// A new, empty map for `capacity` entries with keys and values of the given sizes in bytes.
    /// `name` is what `bpftool map` shows (15 characters).
    ///
    /// # Errors
    /// When it is not permitted, or the sizes do not suit the kind, or there is no memory.
    pub fn create(
        kind: MapKind,
        name: &str,
        key_size: u32,
        value_size: u32,
        capacity: u32,
    ) -> Result<Map, MapError> {
        let (map_type, map_flags) = kind.number();
        let mut attributes = syscall::MapCreate {
            map_type,
            map_flags,
            key_size,
            value_size,
            max_entries: capacity,
            map_name: syscall::name(name),
            ..Default::default()
        };
        // SAFETY: the block holds no addresses.
        let fd = unsafe { bpf_create(Command::MapCreate, &mut attributes) }
            .map_err(|source| failure(name, capacity, "be created", source))?;
        let value_size = match kind {
            MapKind::PerCpuArray => {
                let cpus = possible_cpus()
                    .map_err(|source| failure(name, capacity, "learn the CPUs", source))?;
                value_size.next_multiple_of(8) as usize * cpus
            }
            _ => value_size as usize,
        };
        Ok(Map { fd, name: name.to_owned(), key_size: key_size as usize, value_size, capacity })
    }

    /// A map of AF_XDP sockets, one for each of `queues` receive queues.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn of_sockets(name: &str, queues: u32) -> Result<Map, MapError> {
        Map::create(MapKind::XskMap, name, 4, 4, queues)
    }

    /// Entries that it holds at most.
    pub fn capacity(&self) -> u32 {
        self.capacity
    }

    /// The value, or `None` when there is no such key.
    ///
    /// # Errors
    /// When the key's size is wrong, or the kernel refuses (an `XskMap` cannot be read).
    pub fn lookup(&self, key: &[u8]) -> Result<Option<Vec<u8>>, MapError> {
        self.check("key", self.key_size, key)?;
        let mut value = vec![0; self.value_size];
        let mut attributes = self.element(key, value.as_mut_ptr() as u64, 0);
        // SAFETY: key and value are as long as the map's, checked and allocated above.
        match unsafe { bpf(Command::MapLookupElem, &mut attributes) } {
            Ok(_) => Ok(Some(value)),
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(None),
            Err(error) => Err(self.failure("be read", error)),
        }
    }

    /// Sets the value of a key, which need not exist.
    ///
    /// # Errors
    /// When a size is wrong, or the map is full.
    pub fn update(&self, key: &[u8], value: &[u8]) -> Result<(), MapError> {
        self.check("key", self.key_size, key)?;
        self.check("value", self.value_size, value)?;
        let mut attributes = self.element(key, value.as_ptr() as u64, 0);
        // SAFETY: key and value are as long as the map's, checked above; both are only read.
        unsafe { bpf(Command::MapUpdateElem, &mut attributes) }
            .map(drop)
            .map_err(|error| self.failure("be written", error))
    }

    /// Removes a key and says whether it was there.
    ///
    /// # Errors
    /// When the key's size is wrong, or the kernel refuses (arrays keep all their entries).
    pub fn delete(&self, key: &[u8]) -> Result<bool, MapError> {
        self.check("key", self.key_size, key)?;
        let mut attributes = self.element(key, 0, 0);
        // SAFETY: the key is as long as the map's, checked above; there is no value.
        match unsafe { bpf(Command::MapDeleteElem, &mut attributes) } {
            Ok(_) => Ok(true),
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(false),
            Err(error) => Err(self.failure("be deleted from", error)),
        }
    }

    /// All keys, in no order. Keys that come or go meanwhile may be missed.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn keys(&self) -> Result<Vec<Vec<u8>>, MapError> {
        let mut keys: Vec<Vec<u8>> = Vec::new();
        loop {
            let mut next = vec![0; self.key_size];
            let previous = keys.last().map_or(&[][..], |key| key);
            let mut attributes = self.element(previous, next.as_mut_ptr() as u64, 0);
            if previous.is_empty() {
                // The first key is the one after no key at all.
                attributes.key = 0;
            }
            // SAFETY: the previous key is one of this map's, or absent; `next` is as long.
            match unsafe { bpf(Command::MapGetNextKey, &mut attributes) } {
                // A key that was deleted behind our back makes the kernel start anew.
                Ok(_) if keys.len() > self.capacity as usize => return Ok(keys),
                Ok(_) => keys.push(next),
                Err(error) if error.raw_os_error() == Some(libc::ENOENT) => return Ok(keys),
                Err(error) => return Err(self.failure("be listed", error)),
            }
        }
    }

    /// Lets a program redirect packets of a receive queue to an AF_XDP socket (`XskMap` only).
    ///
    /// # Errors
    /// When the socket is not bound, or the queue is past the capacity.
    pub fn set_socket(&self, queue: u32, socket: BorrowedFd<'_>) -> Result<(), MapError> {
        self.update(&queue.to_ne_bytes(), &socket.as_raw_fd().to_ne_bytes())
    }

    /// The sum over all CPUs of the `u64` counter at `index` (`PerCpuArray` with 8-byte values).
    ///
    /// # Errors
    /// As [`lookup`](Self::lookup).
    pub fn sum(&self, index: u32) -> Result<u64, MapError> {
        let values = self.lookup(&index.to_ne_bytes())?.unwrap_or_default();
        let (counters, _) = values.as_chunks::<8>();
        Ok(counters.iter().map(|counter| u64::from_ne_bytes(*counter)).fold(0, u64::wrapping_add))
    }

    fn element(&self, key: &[u8], value: u64, flags: u64) -> syscall::MapElem {
        syscall::MapElem {
            map_fd: self.fd.as_raw_fd() as u32,
            key: key.as_ptr() as u64,
            value,
            flags,
            ..Default::default()
        }
    }

    fn check(&self, what: &'static str, expected: usize, bytes: &[u8]) -> Result<(), MapError> {
        if bytes.len() == expected {
            return Ok(());
        }
        Err(MapError::WrongSize { name: self.name.clone(), what, expected, got: bytes.len() })
    }

    fn failure(&self, action: &'static str, source: io::Error) -> MapError {
        failure(&self.name, self.capacity, action, source)
    }
}

fn failure(name: &str, capacity: u32, action: &'static str, source: io::Error) -> MapError {
    let name = name.to_owned();
    match source.raw_os_error() {
        Some(libc::EPERM) => MapError::NotPermitted { name },
        // What the kernel says of a hash map without room, and of an index past an array's end.
        Some(libc::E2BIG) => MapError::Full { name, capacity },
        _ => MapError::Kernel { name, action, source },
    }
}

/// How many CPUs this machine could have; per-CPU maps hold a value for each, present or not.
fn possible_cpus() -> io::Result<usize> {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/possible")?;
    parse_cpu_list(text.trim())
        .ok_or_else(|| io::Error::other(format!("cannot understand the list of CPUs {text:?}")))
}

/// Counts a list such as `0-3,8`.
fn parse_cpu_list(text: &str) -> Option<usize> {
    text.split(',')
        .map(|range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
            (last + 1).checked_sub(first)
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::parse_cpu_list;

    #[test]
    fn cpu_lists_with_gaps_are_counted_and_not_spanned() {
        assert_eq!(parse_cpu_list("0"), Some(1));
        assert_eq!(parse_cpu_list("0-127"), Some(128));
        assert_eq!(parse_cpu_list("0-3,8,10-11"), Some(7));
        assert_eq!(parse_cpu_list("none"), None);
    }
}
