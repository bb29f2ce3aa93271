//! What a process that was killed has left on `lo`, told from what is the operator's own.
//!
//! A VIP that we put there bears a mark (`ip address` shows `proto 0x54`), and an IPv4 one a label,
//! `lo:was-0-0`, with what the settings that were changed had been: `arp_ignore`, `arp_announce` and
//! what else there was, in this order. So the kernel remembers for us, as long as the address is
//! there and no longer. IPv6 addresses have no labels: with those alone settings stay as they are.
//! Kernels before 5.18 drop the mark: there a VIP that was left behind is taken for the operator's.

use std::net::IpAddr;

use anyhow::{Context, Result};
use futures_util::TryStreamExt;
use netlink_packet_route::address::{AddressAttribute, AddressMessage, AddressProtocol};
use rtnetlink::Handle;

/// Marks addresses on `lo`. Not the mark of a director's own addresses, which are not quiet.
const MARK: u8 = 0x54;
const LABEL: &str = "lo:was-";
/// `IFNAMSIZ` without the final zero.
const LONGEST_LABEL: usize = 15;

/// A VIP that was left behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Leftover {
    pub(crate) vip: IpAddr,
    /// The settings before it came; `None` of an IPv6 one.
    pub(crate) before: Option<Vec<String>>,
}

/// The label for settings that were `before`; `None` when it would be too long.
pub(crate) fn label(before: &[&str]) -> Option<String> {
    let label = format!("{LABEL}{}", before.join("-"));
    (!before.is_empty() && label.len() <= LONGEST_LABEL).then_some(label)
}

/// Marks the address of a request as ours.
pub(crate) fn mark(message: &mut AddressMessage, label: Option<&String>) {
    message.attributes.push(AddressAttribute::Protocol(AddressProtocol::from(MARK)));
    message.attributes.extend(label.cloned().map(AddressAttribute::Label));
}

/// The marked addresses of the interface `lo`.
///
/// # Errors
/// When the kernel does not list them.
pub(crate) async fn find(netlink: &Handle, lo: u32) -> Result<Vec<Leftover>> {
    let addresses = netlink.address().get().set_link_index_filter(lo).execute();
    let messages: Vec<AddressMessage> =
        addresses.try_collect().await.context("list the addresses of lo")?;
    Ok(messages.iter().filter_map(read).collect())
}

/// The address that a message is about.
pub(crate) fn address(message: &AddressMessage) -> Option<IpAddr> {
    message.attributes.iter().find_map(|attribute| match attribute {
        AddressAttribute::Address(address) => Some(*address),
        _ => None,
    })
}

fn read(message: &AddressMessage) -> Option<Leftover> {
    let (mut before, mut marked) = (None, false);
    for attribute in &message.attributes {
        match attribute {
            AddressAttribute::Label(label) => {
                let values = label.strip_prefix(LABEL);
                before = values.map(|values| values.split('-').map(str::to_owned).collect());
            }
            AddressAttribute::Protocol(by) => marked = u8::from(*by) == MARK,
            _ => {}
        }
    }
    address(message).filter(|_| marked).map(|vip| Leftover { vip, before })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_marked_is_known_again_and_the_operators_own_is_not() {
        for (text, values) in [("192.0.2.10", &["0", "2", "0", "0"][..]), ("2001:db8::10", &[])] {
            let vip: IpAddr = text.parse().unwrap();
            let mut message = AddressMessage::default();
            message.attributes.push(AddressAttribute::Address(vip));
            assert_eq!(read(&message), None, "{text} is not marked yet");
            mark(&mut message, label(values).as_ref());
            let before =
                (!values.is_empty()).then(|| values.iter().map(|it| (*it).into()).collect());
            assert_eq!(read(&message), Some(Leftover { vip, before }));
        }
        assert_eq!(label(&["1000000", "0"]), None, "the kernel would refuse it");
    }
}
