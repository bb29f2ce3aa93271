//! Reading a heartbeat: the seal first, then every field against its range.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use super::reader::Reader;
use super::{
    Detail, Extent, FIXED, Heard, Heartbeat, MAGIC, MAX_ADDRESSES, MAX_MARKS, MAX_NAME,
    MAX_PAYLOAD, Operator, Phase, Refusal, SEAL, SlotReport, SlotTerms, Subject, VERSION, View,
    buckets,
};
use crate::host::{HostId, HostSet, Nonce};
use crate::key::SealKey;
use crate::slot::{SLOTS, Slot};

/// Most details: claim and pins of every slot.
const MAX_DETAILS: usize = 2 * SLOTS;

/// The heartbeat in a payload, when it is one of this cluster and its seal is right.
///
/// # Errors
///
/// The first reason to refuse it. Nothing of a refused heartbeat may be believed.
pub fn decode(payload: &[u8], cluster: IpAddr, key: &SealKey) -> Result<Heartbeat, Refusal> {
    let (head, _) = payload.split_at_checked(24).ok_or(Refusal::Truncated)?;
    if head[..4] != MAGIC {
        return Err(Refusal::Foreign);
    }
    if head[4] != VERSION {
        return Err(Refusal::Version);
    }
    if usize::from(u16::from_be_bytes([head[6], head[7]])) != payload.len()
        || !(FIXED + SEAL..=MAX_PAYLOAD).contains(&payload.len())
    {
        return Err(Refusal::Truncated);
    }
    if cluster_of(head) != Some(cluster) {
        return Err(Refusal::OtherCluster);
    }
    let (sealed, seal) = payload.split_at(payload.len() - SEAL);
    if !key.verify(&[sealed], seal) {
        return Err(Refusal::Seal);
    }
    let mut rest = Reader(&sealed[24..]);
    body(&mut rest, cluster).filter(|_| rest.0.is_empty()).ok_or(Refusal::Malformed)
}

fn cluster_of(head: &[u8]) -> Option<IpAddr> {
    let octets: [u8; 16] = head.get(8..24)?.try_into().ok()?;
    match (head[5], octets) {
        (4, [a, b, c, d, rest @ ..]) if rest == [0; 12] => Some(Ipv4Addr::new(a, b, c, d).into()),
        (6, octets) => Some(Ipv6Addr::from(octets).into()),
        _ => None,
    }
}

fn body(from: &mut Reader<'_>, cluster: IpAddr) -> Option<Heartbeat> {
    let host = HostId::new(from.u8()?).ok()?;
    let phase = phase(from.u8()?)?;
    let flags = from.u8().filter(|&flags| flags < 4)?;
    from.u8().filter(|&reserved| reserved == 0)?;
    let nonce = from.u64().filter(|&nonce| nonce != 0).map(Nonce)?;
    let sequence = from.u64()?;
    let epoch = from.u64()?;
    let view = View { hosts: HostSet::from_bits(from.u32()?), roll: from.u64()? };
    let hears = HostSet::from_bits(from.u32()?);
    let lost = HostSet::from_bits(from.u32()?);
    let (digest, next) = (from.array()?, from.array()?);
    let generation = from.u64()?;
    let interval = from.u16().filter(|&interval| interval > 0)?;
    let revision = from.u32()?;
    let mut heard = Heard::NOBODY;
    for host in hears.iter() {
        heard.insert_tag(host, from.u32()?);
    }
    let addresses = many(from, MAX_ADDRESSES, Reader::address)?;
    let length = from.count(MAX_NAME)?;
    let name = std::str::from_utf8(from.bytes(length)?).ok()?;
    let name = Some(name).filter(|name| !name.contains(char::is_control))?.to_owned();
    let marks_total = from.u8()?;
    let marks = many(from, MAX_MARKS, Reader::u32)?;
    if marks.len() > marks_total.into() {
        return None;
    }
    let slots = many(from, SLOTS, slot)?;
    let details = many(from, MAX_DETAILS, |from| detail(from, slots.len()))?;
    Some(Heartbeat {
        cluster,
        host,
        nonce,
        sequence,
        phase,
        agreed: flags & 1 != 0,
        draining: flags & 2 != 0,
        epoch,
        view,
        heard,
        lost,
        digest,
        next,
        generation,
        interval: Duration::from_millis(interval.into()),
        revision,
        addresses,
        name,
        marks_total,
        marks,
        slots,
        details,
    })
}

/// A count of at most `most`, and so many of what `one` reads.
fn many<'a, T>(
    from: &mut Reader<'a>,
    most: usize,
    mut one: impl FnMut(&mut Reader<'a>) -> Option<T>,
) -> Option<Vec<T>> {
    let count = from.count(most)?;
    (0..count).map(|_| one(from)).collect()
}

fn phase(byte: u8) -> Option<Phase> {
    Some(match byte {
        1 => Phase::Converging,
        2 => Phase::Converged,
        3 => Phase::Quarantined,
        4 => Phase::Goodbye,
        _ => return None,
    })
}

fn slot(from: &mut Reader<'_>) -> Option<(SlotTerms, SlotReport)> {
    let weight = from.u8().filter(|&weight| weight <= 100)?;
    let state = from.u8()?;
    let priority = Some(state >> 2).filter(|&priority| priority <= 32)?;
    let operator = match state & 3 {
        0 => Operator::Enabled,
        1 => Operator::Disabled,
        2 => Operator::Draining,
        _ => return None,
    };
    let (opened, flows) = (from.u32()?, from.u32()?);
    let extents = from.u8().filter(|&extents| extents < 16)?;
    let (claim, pins) = (extent(extents & 3)?, extent(extents >> 2)?);
    let terms = SlotTerms { weight, priority, operator };
    Some((terms, SlotReport { opened, flows, claim, pins }))
}

fn extent(bits: u8) -> Option<Extent> {
    [Extent::None, Extent::All, Extent::Some].get(usize::from(bits)).copied()
}

fn detail(from: &mut Reader<'_>, slots: usize) -> Option<Detail> {
    let slot = Slot::new(from.u8()?).filter(|slot| slot.index() < slots)?;
    let subject = match from.u8()? {
        0 => Subject::Claim,
        1 => Subject::Pins,
        _ => return None,
    };
    Some(Detail { slot, subject, buckets: buckets::read(from)? })
}
