//! The blocks of a pcapng file, as a capture needs them.
//!
//! Little-endian, times in nanoseconds. Writing into memory cannot fail.

use std::borrow::Cow;
use std::time::Duration;

use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::blocks::interface_statistics::{
    InterfaceStatisticsBlock, InterfaceStatisticsOption,
};
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::pcapng::{PcapNgBlock, PcapNgWriter};
use pcap_file::{DataLink, Endianness};

use crate::control::api::PortView;
use crate::worker::tap::Record;

/// 10^-9 seconds.
const NANOSECONDS: u8 = 9;

/// A packet that came, and one that leaves: the lowest bits of `epb_flags`.
const INBOUND: u32 = 1;
const OUTBOUND: u32 = 2;

/// See the module. A writer keeps what it has been told of interfaces, so there is one for all of a file.
#[derive(Default)]
pub(super) struct Blocks {
    writer: Option<PcapNgWriter<Vec<u8>>>,
}

impl Blocks {
    /// A section and its interfaces.
    pub(super) fn head(&mut self, ports: &[PortView], snaplen: usize, text: &mut Vec<u8>) {
        let program = concat!("switchyard director ", env!("CARGO_PKG_VERSION"));
        let section = SectionHeaderBlock {
            endianness: Endianness::Little,
            options: vec![SectionHeaderOption::UserApplication(Cow::Borrowed(program))],
            ..SectionHeaderBlock::default()
        };
        let Ok(mut writer) = PcapNgWriter::with_section_header(Vec::new(), section) else { return };
        for port in ports {
            let what = format!("queue {}, worker {}, {}", port.queue, port.worker, port.io);
            let block = InterfaceDescriptionBlock {
                linktype: DataLink::ETHERNET,
                snaplen: snaplen as u32,
                options: vec![
                    InterfaceDescriptionOption::IfName(Cow::Owned(port.interface.clone())),
                    InterfaceDescriptionOption::IfDescription(Cow::Owned(what)),
                    InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
                ],
            };
            let _ = writer.write_block(&block.into_block());
        }
        text.append(writer.get_mut());
        self.writer = Some(writer);
    }

    /// A packet of port number `port`.
    pub(super) fn packet(
        &mut self,
        port: u32,
        record: &Record<'_>,
        leaves: bool,
        comment: &str,
        text: &mut Vec<u8>,
    ) {
        let Some(writer) = &mut self.writer else { return };
        let block = EnhancedPacketBlock {
            interface_id: port,
            timestamp: Duration::from_nanos(record.time),
            original_len: record.length,
            data: Cow::Borrowed(record.bytes),
            options: vec![
                EnhancedPacketOption::Comment(Cow::Borrowed(comment)),
                EnhancedPacketOption::Flags(if leaves { OUTBOUND } else { INBOUND }),
            ],
        };
        let _ = writer.write_block(&block.into_block());
        text.append(writer.get_mut());
    }

    /// How many packets there were by now, of all interfaces, and how many were lost.
    pub(super) fn statistics(
        &mut self,
        now: Duration,
        packets: u64,
        lost: u64,
        text: &mut Vec<u8>,
    ) {
        let Some(writer) = &mut self.writer else { return };
        let block = InterfaceStatisticsBlock {
            interface_id: 0,
            // The upper half comes first, whatever the byte order.
            timestamp: (now.as_nanos() as u64).rotate_left(32),
            options: vec![
                InterfaceStatisticsOption::Comment(Cow::Borrowed("of all interfaces")),
                InterfaceStatisticsOption::IsbIfDrop(lost),
                InterfaceStatisticsOption::IsbUsrDeliv(packets),
            ],
        };
        let _ = writer.write_block(&block.into_block());
        text.append(writer.get_mut());
    }
}
