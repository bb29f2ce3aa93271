//! Writing a heartbeat.

use std::net::IpAddr;

use super::{
    Detail, FIXED, Heartbeat, MAGIC, MAX_ADDRESSES, MAX_MARKS, MAX_NAME, MAX_PAYLOAD, SEAL,
    SlotReport, SlotTerms, VERSION, buckets,
};
use crate::key::SealKey;
use crate::slot::SLOTS;

impl Heartbeat {
    /// The payload, sealed. What exceeds a limit of the format is left out at its end; details that
    /// do not fit [`MAX_PAYLOAD`] are left out as wholes (ask [`Room`] beforehand).
    pub fn encode(&self, key: &SealKey) -> Vec<u8> {
        let mut out = Vec::with_capacity(MAX_PAYLOAD);
        self.fixed(&mut out);
        self.lists(&mut out);
        self.details(&mut out);
        let length = (out.len() + SEAL) as u16;
        out[6..8].copy_from_slice(&length.to_be_bytes());
        let seal = key.sign(&[&out]);
        out.extend(&seal[..SEAL]);
        out
    }

    fn fixed(&self, out: &mut Vec<u8>) {
        out.extend(MAGIC);
        out.extend([VERSION, family(self.cluster), 0, 0]);
        let mut cluster = [0; 16];
        match self.cluster {
            IpAddr::V4(address) => cluster[..4].copy_from_slice(&address.octets()),
            IpAddr::V6(address) => cluster = address.octets(),
        }
        out.extend(cluster);
        let flags = u8::from(self.agreed) | u8::from(self.draining) << 1;
        out.extend([self.host.get(), self.phase as u8, flags, 0]);
        out.extend(self.nonce.0.to_be_bytes());
        out.extend(self.sequence.to_be_bytes());
        out.extend(self.epoch.to_be_bytes());
        out.extend(self.view.hosts.bits().to_be_bytes());
        out.extend(self.view.roll.to_be_bytes());
        out.extend(self.heard.hosts.bits().to_be_bytes());
        out.extend(self.lost.bits().to_be_bytes());
        out.extend(self.digest);
        out.extend(self.next);
        out.extend(self.generation.to_be_bytes());
        let interval = self.interval.as_millis().min(u16::MAX.into()) as u16;
        out.extend(interval.to_be_bytes());
        out.extend(self.revision.to_be_bytes());
    }

    fn lists(&self, out: &mut Vec<u8>) {
        for host in self.heard.hosts.iter() {
            out.extend(self.heard.tags[host.index()].to_be_bytes());
        }
        let addresses = &self.addresses[..self.addresses.len().min(MAX_ADDRESSES)];
        out.push(addresses.len() as u8);
        for &address in addresses {
            out.push(family(address));
            match address {
                IpAddr::V4(address) => out.extend(address.octets()),
                IpAddr::V6(address) => out.extend(address.octets()),
            }
        }
        let name = &self.name[..self.name.floor_char_boundary(MAX_NAME)];
        out.push(name.len() as u8);
        out.extend(name.bytes());
        let marks = &self.marks[..self.marks.len().min(MAX_MARKS)];
        out.extend([self.marks_total, marks.len() as u8]);
        out.extend(marks.iter().flat_map(|mark| mark.to_be_bytes()));
        let slots = &self.slots[..self.slots.len().min(SLOTS)];
        out.push(slots.len() as u8);
        for (terms, report) in slots {
            write_slot(out, terms, report);
        }
    }

    fn details(&self, out: &mut Vec<u8>) {
        let count_at = out.len();
        out.push(0);
        for detail in &self.details {
            if out.len() + detail.size() + SEAL <= MAX_PAYLOAD {
                out.extend([detail.slot.get(), detail.subject as u8]);
                buckets::write(out, &detail.buckets);
                out[count_at] += 1;
            }
        }
    }

    /// Bytes without details.
    fn bare(&self) -> usize {
        let address = |address: &IpAddr| if address.is_ipv4() { 5 } else { 17 };
        FIXED
            + 4 * self.heard.hosts.len()
            + 1
            + self.addresses.iter().take(MAX_ADDRESSES).map(address).sum::<usize>()
            + 1
            + self.name.floor_char_boundary(MAX_NAME)
            + 2
            + 4 * self.marks.len().min(MAX_MARKS)
            + 1
            + 11 * self.slots.len().min(SLOTS)
            + 1
            + SEAL
    }
}

impl Detail {
    fn size(&self) -> usize {
        2 + buckets::size(&self.buckets)
    }
}

/// Room for details in a heartbeat.
pub struct Room(usize);

impl Room {
    /// What a heartbeat that has no details yet leaves.
    pub fn of(heartbeat: &Heartbeat) -> Room {
        Room(MAX_PAYLOAD.saturating_sub(heartbeat.bare()))
    }

    /// Whether one more detail fits; then its room is taken.
    pub fn take(&mut self, detail: &Detail) -> bool {
        match self.0.checked_sub(detail.size()) {
            Some(left) => {
                self.0 = left;
                true
            }
            None => false,
        }
    }
}

fn family(address: IpAddr) -> u8 {
    if address.is_ipv4() { 4 } else { 6 }
}

fn write_slot(out: &mut Vec<u8>, terms: &SlotTerms, report: &SlotReport) {
    out.extend([terms.weight, terms.operator as u8 | terms.priority << 2]);
    out.extend(report.opened.to_be_bytes());
    out.extend(report.flows.to_be_bytes());
    out.push(report.claim as u8 | (report.pins as u8) << 2);
}
