//! Which core a network card interrupts for each of its queues: the one that has the queue's packets
//! in its cache.
//!
//! Knows `/proc/interrupts` and how drivers name their vectors there: by the interface
//! (`eth0-TxRx-3`, `i40e-eth0-TxRx-3`) or by where the card sits (`virtio2-input.0`, with the
//! address of the device among the names of the chip; `mlx5_comp3@pci:0000:03:00.0`), and in both cases
//! with the queue's number at the end of a word. Must not change anything: where interrupts go is
//! the business of irqbalance and of the operator.

use std::collections::BTreeMap;
use std::fs;

use crate::interface;

/// The core that serves the receive queue's interrupt. `None` when the interface has none (veth),
/// its driver names them otherwise, or the interrupt may go to any of several cores.
pub fn core_of(interface: &str, queue: u32) -> Option<usize> {
    let bus = interface::bus(interface).ok().flatten();
    let table = fs::read_to_string("/proc/interrupts").ok()?;
    let number = *of_queues(&table, interface, bus.as_deref()).get(&queue)?;
    let read = |file: &str| fs::read_to_string(format!("/proc/irq/{number}/{file}")).ok();
    let cores = read("effective_affinity_list").or_else(|| read("smp_affinity_list"))?;
    // One number: a list or a range of cores says nothing.
    cores.trim().parse().ok()
}

/// Numbers of interrupts by receive queue.
fn of_queues(table: &str, interface: &str, bus: Option<&str>) -> BTreeMap<u32, u32> {
    let mut queues = BTreeMap::new();
    for line in table.lines() {
        let Some((number, rest)) = line.split_once(':') else { continue };
        let Ok(number) = number.trim().parse::<u32>() else { continue };
        let Some(name) = rest.split_whitespace().next_back() else { continue };
        let is_ours = names(name, interface) || bus.is_some_and(|bus| rest.contains(bus));
        // The interface's name alone is for whatever is not of a queue; it may end with a number too.
        if !is_ours || !receives(name) || name.ends_with(interface) {
            continue;
        }
        if let Some(queue) = queue_of(name) {
            queues.entry(queue).or_insert(number);
        }
    }
    queues
}

/// Whether the interface's name is a word of the vector's: eth1 is not in eth10-rx-0.
fn names(vector: &str, interface: &str) -> bool {
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    vector.match_indices(interface).any(|(at, _)| {
        let before = vector[..at].chars().next_back();
        let behind = vector[at + interface.len()..].chars().next();
        !before.is_some_and(is_word) && !behind.is_some_and(is_word)
    })
}

/// Whether the vector is one of a queue that receives, rather than sends only or does neither.
fn receives(vector: &str) -> bool {
    let name = vector.to_ascii_lowercase();
    let sends_only = name.contains("output") || (name.contains("tx") && !name.contains("rx"));
    !sends_only
        && !["config", "async", "ctrl", "misc", "fdir", "lsc"].iter().any(|w| name.contains(w))
}

/// The number at the end of the vector's name, which may be followed by where the card sits.
fn queue_of(vector: &str) -> Option<u32> {
    let name = vector.split('@').next()?;
    let digits = name.len() - name.trim_end_matches(|letter: char| letter.is_ascii_digit()).len();
    name[name.len() - digits..].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "
           CPU0       CPU1
 24:          1          0  IO-APIC   5-edge      ACPI:Ged
 37:          0          0 PCI-MSIX-0000:00:03.0   0-edge      virtio2-config
 38:          0       2053 PCI-MSIX-0000:00:03.0   1-edge      virtio2-input.0
 39:       1220          0 PCI-MSIX-0000:00:03.0   2-edge      virtio2-output.0
 40:          0         53 PCI-MSIX-0000:00:03.0   3-edge      virtio2-input.1
 50:          0          0 PCI-MSIX-0000:03:00.0   0-edge      mlx5_async0@pci:0000:03:00.0
 51:          9          0 PCI-MSIX-0000:03:00.0   1-edge      mlx5_comp0@pci:0000:03:00.0
 52:          0          9 PCI-MSIX-0000:03:00.0   2-edge      mlx5_comp1@pci:0000:03:00.0
 60:          9          0  PCI-MSI 524288-edge      eth1
 61:          9          0  PCI-MSI 524289-edge      eth1-TxRx-0
 62:          9          0  PCI-MSI 524290-edge      eth1-TxRx-1
 63:          9          0  PCI-MSI 524291-edge      eth10-TxRx-0
 64:          9          0  PCI-MSI 524292-edge      i40e-eth2-TxRx-0
 65:          9          0  PCI-MSI 524293-edge      eth3-rx-0
 66:          9          0  PCI-MSI 524294-edge      eth3-tx-0
NMI:          0          0   Non-maskable interrupts
";

    fn queues(interface: &str, bus: Option<&str>) -> Vec<(u32, u32)> {
        of_queues(TABLE, interface, bus).into_iter().collect()
    }

    #[test]
    fn vectors_are_found_as_drivers_name_them() {
        assert_eq!(queues("eth0", Some("0000:00:03.0")), [(0, 38), (1, 40)]);
        assert_eq!(queues("enp3s0", Some("0000:03:00.0")), [(0, 51), (1, 52)]);
        assert_eq!(queues("eth1", None), [(0, 61), (1, 62)]);
        assert_eq!(queues("eth10", None), [(0, 63)]);
        assert_eq!(queues("eth2", None), [(0, 64)]);
        assert_eq!(queues("eth3", None), [(0, 65)]);
    }

    #[test]
    fn an_interface_without_interrupts_has_no_core() {
        assert_eq!(queues("veth0", None), []);
        assert_eq!(core_of("lo", 0), None);
    }
}
