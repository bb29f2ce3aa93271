//! What has been said so far: the heap that flags put their values on, in the order of the command
//! line. Order matters in places (`-M` means another thing after an IPv6 address), and that is
//! kept; what a finished draft asks for is in `order`.

use std::net::{IpAddr, Ipv4Addr};

use director::control::api::{Extras, Forwarding, Protocol, Timeouts, TunnelChecksum};
use director::control::filter::ConnectionFilter;

use crate::address::HostPort;
use crate::failure::Failure;
use crate::layout::Format;
use crate::legality::{Action, Given, Opt, TunnelType};
use crate::names::Names;

/// Longest name of a scheduler or persistence engine; the rest is cut off in silence.
const NAME_LENGTH: usize = 15;

/// The values of a command line, with ipvsadm's defaults for those that were not given.
#[derive(Clone, Debug)]
pub struct Draft {
    /// The command.
    pub action: Action,
    /// Which options were given.
    pub given: Given,
    /// Service names for ports.
    pub names: Names,
    /// How to list.
    pub format: Format,

    /// Protocol of the service.
    pub protocol: Protocol,
    /// VIP.
    pub address: IpAddr,
    /// Port of the service.
    pub port: u16,
    /// Firewall mark; 0 = none.
    pub fwmark: u32,
    /// Whether the service is IPv6.
    pub ipv6: bool,
    /// Scheduler; empty = the default one.
    pub scheduler: String,
    /// Scheduler flags, as they were given: which there are depends on the scheduler, which may
    /// come later.
    pub flags: String,
    /// The same, when everything has been read.
    pub flag_bits: u32,
    /// Seconds of persistence.
    pub persistence: Option<u32>,
    /// Bits of an IPv6 client's address that name a client.
    pub prefix: u8,
    /// The same for IPv4, as a mask: whether it is one with holes only matters in the end.
    pub mask: Ipv4Addr,
    /// Persistence engine.
    pub engine: Option<String>,
    /// One-packet scheduling.
    pub one_packet: bool,

    /// Real server.
    pub server: Option<HostPort>,
    /// Forwarding method.
    pub forwarding: Forwarding,
    /// Weight.
    pub weight: i32,
    /// Upper threshold.
    pub upper_threshold: u32,
    /// Lower threshold.
    pub lower_threshold: u32,
    /// Tunnel type.
    pub tunnel: TunnelType,
    /// UDP port of a GUE tunnel.
    pub tunnel_port: u16,
    /// Checksum of a tunnel.
    pub tunnel_checksum: TunnelChecksum,

    /// What the kernel's IPVS does not do.
    pub extras: Option<Extras>,
    /// Which connections to list.
    pub filter: ConnectionFilter,
    /// Whether a restore is all or nothing.
    pub atomic: bool,
    /// Whether everything is saved.
    pub full: bool,

    /// What `--set` sets.
    pub timeouts: Timeouts,
    /// Whether sync is to run, or stop, as a backup rather than as a master.
    pub sync_backup: bool,
}

impl Draft {
    /// Nothing said but the command.
    pub fn new(action: Action, names: Names) -> Draft {
        Draft {
            action,
            given: Given::default(),
            names,
            format: Format::default(),
            protocol: Protocol::Tcp,
            address: Ipv4Addr::UNSPECIFIED.into(),
            port: 0,
            fwmark: 0,
            ipv6: false,
            scheduler: String::new(),
            flags: String::new(),
            flag_bits: 0,
            persistence: None,
            prefix: 128,
            mask: Ipv4Addr::BROADCAST,
            engine: None,
            one_packet: false,
            server: None,
            forwarding: Forwarding::Direct,
            weight: 1,
            upper_threshold: 0,
            lower_threshold: 0,
            tunnel: TunnelType::Ipip,
            tunnel_port: 0,
            tunnel_checksum: TunnelChecksum::Nocsum,
            extras: None,
            filter: ConnectionFilter::default(),
            atomic: false,
            full: false,
            timeouts: Timeouts { tcp: 0, tcp_fin: 0, udp: 0 },
            sync_backup: false,
        }
    }

    /// Notes an option.
    ///
    /// # Errors
    /// When it was given before.
    pub fn note(&mut self, option: Opt) -> Result<(), Failure> {
        self.given.note(option)
    }
}

/// Cuts a name to the length that the kernel keeps.
pub fn short_name(name: &str) -> String {
    name.chars().take(NAME_LENGTH).collect()
}
