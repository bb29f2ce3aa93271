//! A pcapng file as it comes in: whole blocks of it, and how many packets they hold.
//!
//! The director writes little-endian. What it sends is checked no further than that: it is the reader's
//! file.

/// A packet, and what has been counted.
const PACKET: u32 = 6;
const STATISTICS: u32 = 5;

/// The longest block that can be: a packet of 64 KiB with its comment.
const LONGEST: usize = 1 << 20;

/// `isb_ifdrop`
const LOST: u16 = 5;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    pending: Vec<u8>,
    /// Bytes of `pending` that have been taken.
    taken: usize,
    packets: u64,
    lost: u64,
}

impl Blocks {
    /// What is whole of all that has come, and was not taken before.
    ///
    /// # Errors
    /// When that cannot be pcapng.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Result<&[u8], String> {
        self.pending.drain(..self.taken);
        self.taken = 0;
        self.pending.extend_from_slice(bytes);
        while let Some(head) = self.pending.get(self.taken..self.taken + 8) {
            let (kind, length) = (word(head, 0), word(head, 4) as usize);
            if !(12..=LONGEST).contains(&length) || !length.is_multiple_of(4) {
                return Err("the director does not send pcapng".to_owned());
            }
            let Some(block) = self.pending.get(self.taken..self.taken + length) else { break };
            match kind {
                PACKET => self.packets += u64::from(!leaves(block)),
                STATISTICS => self.lost = option(block, 20, LOST).unwrap_or(self.lost),
                _ => {}
            }
            self.taken += length;
        }
        Ok(&self.pending[..self.taken])
    }

    /// Packets as they arrived.
    pub(super) fn packets(&self) -> u64 {
        self.packets
    }

    /// Packets that the capture lost, as far as the director has told.
    pub(super) fn lost(&self) -> u64 {
        self.lost
    }
}

/// Whether a packet's flags say that it leaves.
fn leaves(block: &[u8]) -> bool {
    let captured = word(block, 20) as usize;
    option(block, 28 + captured.next_multiple_of(4), 2).is_some_and(|flags| flags & 3 == 2)
}

/// The value of an option, of those from `at` on.
fn option(block: &[u8], at: usize, wanted: u16) -> Option<u64> {
    let mut rest = block.get(at..block.len().checked_sub(4)?)?;
    while let Some((head, tail)) = rest.split_first_chunk::<4>() {
        let code = u16::from_le_bytes([head[0], head[1]]);
        let length = usize::from(u16::from_le_bytes([head[2], head[3]]));
        let value = tail.get(..length)?;
        if code == wanted {
            return Some(value.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte)));
        }
        rest = tail.get(length.next_multiple_of(4)..)?;
    }
    None
}

fn word(bytes: &[u8], at: usize) -> u32 {
    let word = bytes.get(at..).and_then(<[u8]>::first_chunk::<4>);
    u32::from_le_bytes(word.copied().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
    use pcap_file::pcapng::blocks::interface_description::InterfaceDescriptionBlock;
    use pcap_file::pcapng::blocks::interface_statistics::{
        InterfaceStatisticsBlock, InterfaceStatisticsOption,
    };
    use pcap_file::pcapng::{PcapNgBlock, PcapNgWriter};
    use pcap_file::{DataLink, Endianness};

    use super::*;

    fn file() -> Vec<u8> {
        let mut writer = PcapNgWriter::with_endianness(Vec::new(), Endianness::Little).unwrap();
        let interface = InterfaceDescriptionBlock::new(DataLink::ETHERNET, 0);
        writer.write_block(&interface.into_block()).unwrap();
        for flags in [1, 2, 1] {
            let packet = EnhancedPacketBlock {
                interface_id: 0,
                timestamp: Duration::from_secs(1),
                original_len: 61,
                data: vec![7; 61].into(),
                options: vec![
                    EnhancedPacketOption::Comment("dropped".into()),
                    EnhancedPacketOption::Flags(flags),
                ],
            };
            writer.write_block(&packet.into_block()).unwrap();
        }
        let statistics = InterfaceStatisticsBlock {
            interface_id: 0,
            timestamp: 0,
            options: vec![
                InterfaceStatisticsOption::Comment("of all".into()),
                InterfaceStatisticsOption::IsbIfDrop(70_000),
            ],
        };
        writer.write_block(&statistics.into_block()).unwrap();
        writer.into_inner()
    }

    #[test]
    fn however_it_is_cut_only_whole_blocks_are_taken_and_all_of_them_in_the_end() {
        let file = file();
        for size in [1, 7, 64, file.len()] {
            let (mut blocks, mut taken) = (Blocks::default(), Vec::new());
            for piece in file.chunks(size) {
                taken.extend_from_slice(blocks.take(piece).unwrap());
            }
            assert_eq!(taken, file, "{size}");
            assert_eq!((blocks.packets(), blocks.lost()), (2, 70_000));
        }
        let mut blocks = Blocks::default();
        let whole = blocks.take(&file[..file.len() - 1]).unwrap().len();
        assert!(whole < file.len() - 12 && blocks.lost() == 0);
    }

    #[test]
    fn what_is_no_pcapng_is_an_error() {
        assert!(Blocks::default().take(&[0xff; 64]).is_err());
        assert!(Blocks::default().take(&[0; 64]).is_err());
    }
}
