//! The flags that say which kind of tunnel leads to a server.

use director::control::api::TunnelChecksum;

use super::{Argument, Flag, Kind};
use crate::address::number;
use crate::failure::Failure;
use crate::legality::{Opt, TunnelType};

/// In the order of the manual page.
pub const ALL: &[&Flag] = &[&TYPE, &PORT, &NOCSUM, &CSUM, &REMCSUM];

/// `--tun-type`
pub const TYPE: Flag = Flag {
    short: &[],
    long: "tun-type",
    argument: Argument::Required("type"),
    kind: Kind::Option(Some(Opt::TunType)),
    help: &["one of ipip|gue|gre,", "the default tunnel type is ipip."],
    about: "What the tunnel is made of: ipip, gue or gre; ipip without this option.",
    take: |draft, value| {
        draft.tunnel = match value.unwrap_or_default() {
            "ipip" => TunnelType::Ipip,
            "gue" => TunnelType::Gue,
            "gre" => TunnelType::Gre,
            _ => return Err(Failure::usage("illegal tunnel type specified")),
        };
        Ok(())
    },
};

/// `--tun-port`
pub const PORT: Flag = Flag {
    short: &[],
    long: "tun-port",
    argument: Argument::Required("port"),
    kind: Kind::Option(Some(Opt::TunPort)),
    help: &["tunnel destination port"],
    about: "The UDP port on which the server takes GUE.",
    take: |draft, value| {
        let port = number(value.unwrap_or_default(), 1, 65535);
        let port = port.and_then(|port| u16::try_from(port).ok());
        draft.tunnel_port = port.ok_or_else(|| Failure::usage("illegal tunnel port specified"))?;
        Ok(())
    },
};

/// `--tun-nocsum`
pub const NOCSUM: Flag = Flag {
    short: &[],
    long: "tun-nocsum",
    argument: Argument::None,
    kind: Kind::Option(Some(Opt::TunNocsum)),
    help: &["tunnel encapsulation without checksum"],
    about: "No checksum in the outer header (gue, gre). So it is without any of the three.",
    take: |draft, _| {
        draft.tunnel_checksum = TunnelChecksum::Nocsum;
        Ok(())
    },
};

/// `--tun-csum`
pub const CSUM: Flag = Flag {
    short: &[],
    long: "tun-csum",
    argument: Argument::None,
    kind: Kind::Option(Some(Opt::TunCsum)),
    help: &["tunnel encapsulation with checksum"],
    about: "A checksum in the outer header (gue, gre).",
    take: |draft, _| {
        draft.tunnel_checksum = TunnelChecksum::Csum;
        Ok(())
    },
};

/// `--tun-remcsum`
pub const REMCSUM: Flag = Flag {
    short: &[],
    long: "tun-remcsum",
    argument: Argument::None,
    kind: Kind::Option(Some(Opt::TunRemcsum)),
    help: &["tunnel encapsulation with remote checksum"],
    about: "Remote checksum offload (gue).",
    take: |draft, _| {
        draft.tunnel_checksum = TunnelChecksum::Remcsum;
        Ok(())
    },
};

#[cfg(test)]
mod tests {
    use director::control::api::{Tunnel, TunnelChecksum};

    use crate::order::testing::{complaint, server};

    const BASE: &str = "-a -t 10.0.0.1:80 -r 10.0.0.2 -i";

    #[test]
    fn tunnel_types_reach_the_server() {
        for (options, tunnel) in [
            ("", Tunnel::Ipip),
            ("--tun-type ipip", Tunnel::Ipip),
            (
                "--tun-type gue --tun-port 6080",
                Tunnel::Gue { port: 6080, checksum: TunnelChecksum::Nocsum },
            ),
            (
                "--tun-type=gue --tun-port=6080 --tun-remcsum",
                Tunnel::Gue { port: 6080, checksum: TunnelChecksum::Remcsum },
            ),
            ("--tun-type gre --tun-csum", Tunnel::Gre { checksum: TunnelChecksum::Csum }),
        ] {
            assert_eq!(server(&format!("{BASE} {options}")).tunnel, tunnel, "{options}");
        }
    }

    #[test]
    fn bad_types_ports_and_mixtures_are_refused() {
        for (options, message) in [
            ("--tun-type vxlan", "illegal tunnel type specified"),
            ("--tun-type gue --tun-port 0", "illegal tunnel port specified"),
            ("--tun-csum", "Illegal 'tun-csum' option with the 'ipip' tunnel type"),
            (
                "--tun-type gue",
                "You need to supply the 'tun-port' option for the 'gue' tunnel type",
            ),
        ] {
            let expected = (message.to_owned(), 2);
            assert_eq!(complaint(&format!("{BASE} {options}")), expected, "{options}");
        }
        for method in ["", "-g", "-m"] {
            let line = format!("-a -t 10.0.0.1:80 -r 10.0.0.2 {method} --tun-type gre");
            let message = "Tunnel options conflict with forward method".to_owned();
            assert_eq!(complaint(&line), (message, 2), "{line}");
        }
    }
}
