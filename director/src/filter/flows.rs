//! What the filter remembers of flows, as it is listed and forgotten from outside.
//!
//! Time is that of `CLOCK_MONOTONIC`, which the program stamps its notes with.

use std::time::Duration;

use netio::bpf::{Map, MapError};
use nlb::tuple::Tuple;

use super::Filter;
use super::layout::{FLOW_KEY, flow_key, tuple};

/// A flow that is pinned to this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pin {
    /// The flow; a tunnel of PPTP has protocol 47 and no ports.
    pub tuple: Tuple,
    /// Time since its last packet.
    pub idle: Duration,
    /// Whether the client has sent FIN or RST.
    pub closing: bool,
}

/// After how long without a packet something is forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Idle {
    /// Pins of TCP flows.
    pub tcp: Duration,
    /// Pins of TCP flows whose client has sent FIN or RST.
    pub closing: Duration,
    /// Pins of UDP flows.
    pub udp: Duration,
    /// Pins of PPTP's tunnels.
    pub tunnel: Duration,
    /// That a flow was given up. Its socket must be gone by then.
    pub retired: Duration,
    /// What became of a first fragment.
    pub fragment: Duration,
}

impl Default for Idle {
    /// 24 hours, 60 seconds, 60 seconds, 10 minutes, 24 hours, 30 seconds: IP gives no packet more
    /// time to come together than the last.
    fn default() -> Idle {
        let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
        Idle {
            tcp: minutes(24 * 60),
            closing: minutes(1),
            udp: minutes(1),
            tunnel: minutes(10),
            retired: minutes(24 * 60),
            fragment: Duration::from_secs(30),
        }
    }
}

impl Filter {
    /// The pinned flows, in no order. `now` is the time of `CLOCK_MONOTONIC`.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn pins(&self, now: Duration) -> Result<Vec<Pin>, MapError> {
        let mut pins = Vec::new();
        each(&self.memory.pins, |key, seen, word| {
            if let Some(tuple) = key.first_chunk::<FLOW_KEY>().map(tuple) {
                pins.push(Pin { tuple, idle: now.saturating_sub(seen), closing: word != 0 });
            }
            Ok(())
        })?;
        Ok(pins)
    }

    /// The flows that this host has given up, in no order.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn retired(&self) -> Result<Vec<Tuple>, MapError> {
        let mut retired = Vec::new();
        each(&self.memory.retired, |key, _, _| {
            retired.extend(key.first_chunk::<FLOW_KEY>().map(tuple));
            Ok(())
        })?;
        Ok(retired)
    }

    /// Forgets what has been idle for too long, and says how many pins were among it. `now` is the
    /// time of `CLOCK_MONOTONIC`.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn expire(&self, now: Duration, idle: &Idle) -> Result<usize, MapError> {
        let mut expired = 0;
        for pin in self.pins(now)? {
            let limit = match (pin.tuple.protocol, pin.closing) {
                (TCP, true) => idle.closing,
                (TCP, false) => idle.tcp,
                (GRE, _) => idle.tunnel,
                _ => idle.udp,
            };
            if pin.idle >= limit {
                expired += usize::from(self.unpin(&pin.tuple)?);
            }
        }
        for (map, limit) in
            [(&self.memory.retired, idle.retired), (&self.memory.fragments, idle.fragment)]
        {
            each(map, |key, seen, _| match now.saturating_sub(seen) >= limit {
                true => map.delete(key).map(drop),
                false => Ok(()),
            })?;
        }
        Ok(expired)
    }

    /// Pins a flow: one that this host is known to hold, after a restart.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn pin(&self, tuple: &Tuple, now: Duration) -> Result<(), MapError> {
        let seen = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        let value = [seen.to_ne_bytes(), [0; 8]].concat();
        self.memory.pins.update(&flow_key(tuple), &value)
    }

    /// Gives a flow up, as a SYN of it elsewhere does: its pin is forgotten, and a socket of it in the
    /// kernel's table counts no more.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn retire(&self, tuple: &Tuple, now: Duration) -> Result<(), MapError> {
        let seen = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        let value = [seen.to_ne_bytes(), [0; 8]].concat();
        self.memory.retired.update(&flow_key(tuple), &value)?;
        self.unpin(tuple).map(drop)
    }

    /// Forgets a pin and says whether there was one.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn unpin(&self, tuple: &Tuple) -> Result<bool, MapError> {
        self.memory.pins.delete(&flow_key(tuple))
    }
}

const TCP: u8 = forwarding::wire::protocol::TCP;
const GRE: u8 = forwarding::wire::protocol::GRE;

/// Visits all entries: the key, when it was last seen, the word behind that.
fn each(
    map: &Map,
    mut visit: impl FnMut(&[u8], Duration, u64) -> Result<(), MapError>,
) -> Result<(), MapError> {
    for key in map.keys()? {
        // What has just been forgotten to make room is not there any more.
        let Some(value) = map.lookup(&key)? else { continue };
        if let [seen, word] = value.as_chunks::<8>().0 {
            let seen = Duration::from_nanos(u64::from_ne_bytes(*seen));
            visit(&key, seen, u64::from_ne_bytes(*word))?;
        }
    }
    Ok(())
}
