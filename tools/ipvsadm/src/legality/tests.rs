//! Every cell of both tables, against a second writing of them.

use super::*;
use crate::failure::Failure;

fn given(options: &[Opt]) -> Given {
    let mut given = Given::default();
    for &option in options {
        given.note(option).unwrap();
    }
    given
}

const SERVICE: &str = "scheduler persistent netmask ops pe sched-flags \
    service-timeouts gone-server no-destination leave-quiesced mss-clamp \
    bias bias-window teardown hash-key sticky variants";

/// The reference's table, and ours in what ipvsadm does not have: `+` required, then optional, then `|` exclusive.
const TABLE: &[(Action, &str, &str, &str)] = &[
    (Action::AddService, "service-address", SERVICE, ""),
    (Action::EditService, "service-address", SERVICE, ""),
    (Action::DeleteService, "service-address", "", ""),
    (Action::Flush, "", "", ""),
    (
        Action::List,
        "",
        "numeric stats rate thresholds persistent-conn nosort syncid exact tun-info \
         json client service server state",
        "connection service-address timeout daemon",
    ),
    (
        Action::AddServer,
        "service-address real-server",
        "forwarding-method weight u-threshold l-threshold tun-type tun-port tun-nocsum \
         tun-csum tun-remcsum",
        "",
    ),
    (
        Action::EditServer,
        "service-address real-server",
        "forwarding-method weight u-threshold l-threshold tun-type tun-port tun-nocsum \
         tun-csum tun-remcsum",
        "",
    ),
    (Action::DeleteServer, "service-address real-server", "", ""),
    (Action::Set, "", "", ""),
    (
        Action::StartDaemon,
        "",
        "mcast-interface syncid mcast-group mcast-port mcast-ttl sync-maxlen",
        "",
    ),
    (Action::StopDaemon, "", "syncid", ""),
    (Action::Restore, "", "atomic", ""),
    (Action::Save, "", "numeric full", ""),
    (Action::Zero, "", "service-address", ""),
];

fn options(names: &str) -> Vec<Opt> {
    let find = |name| *Opt::ALL.iter().find(|option| option.name() == name).unwrap();
    names.split_whitespace().map(find).collect()
}

#[test]
fn every_cell_of_the_command_table_is_as_in_the_reference() {
    assert_eq!(TABLE.len(), Action::ALL.len());
    for &(action, required, optional, exclusive) in TABLE {
        let required = options(required);
        let legal = [options(optional), options(exclusive)].concat();
        for &option in Opt::ALL {
            let mut with = required.clone();
            with.retain(|&other| other != option);
            let name = option.name();
            let place = action.name();
            let without = check(action, given(&with));
            if required.contains(&option) {
                let expected =
                    format!("You need to supply the '{name}' option for the '{place}' command");
                assert_eq!(without.unwrap_err().message, expected);
                continue;
            }
            assert_eq!(without, Ok(()), "{place} without {name}");
            with.push(option);
            let with = check(action, given(&with));
            if legal.contains(&option) {
                assert_eq!(with, Ok(()), "{place} with {name}");
            } else {
                let expected = format!("Illegal '{name}' option with the '{place}' command");
                assert_eq!(with.unwrap_err(), Failure::usage(expected));
            }
        }
    }
}

#[test]
fn exclusive_options_name_the_later_first_and_the_earlier_second() {
    let options = given(&[Opt::Service, Opt::Connection]);
    assert_eq!(
        check(Action::List, options).unwrap_err().message,
        "The option 'service-address' conflicts with the 'connection' option in the 'list' \
         command"
    );
}

#[test]
fn tunnel_types_take_their_own_options_only() {
    let message = |tunnel, options: &[Opt]| {
        check_tunnel(tunnel, given(options)).map_err(|failure| failure.message)
    };
    for option in &TUNNEL_OPTIONS[1..] {
        let expected = format!("Illegal '{}' option with the 'ipip' tunnel type", option.name());
        assert_eq!(message(TunnelType::Ipip, &[*option]), Err(expected));
    }
    let missing = "You need to supply the 'tun-port' option for the 'gue' tunnel type";
    assert_eq!(message(TunnelType::Gue, &[]), Err(missing.to_owned()));
    assert_eq!(message(TunnelType::Gue, &[Opt::TunPort, Opt::TunRemcsum]), Ok(()));
    let both = [Opt::TunPort, Opt::TunNocsum, Opt::TunCsum];
    let conflict = "The option 'tun-csum' conflicts with the 'tun-nocsum' option in the 'gue' \
                    tunnel type";
    assert_eq!(message(TunnelType::Gue, &both), Err(conflict.to_owned()));
    assert_eq!(message(TunnelType::Gre, &[Opt::TunCsum]), Ok(()));
    let illegal = "Illegal 'tun-remcsum' option with the 'gre' tunnel type";
    assert_eq!(message(TunnelType::Gre, &[Opt::TunRemcsum]), Err(illegal.to_owned()));
}

#[test]
fn option_given_twice_is_named() {
    let mut options = given(&[Opt::Forwarding]);
    let failure = options.note(Opt::Forwarding).unwrap_err();
    assert_eq!(failure.message, "multiple 'forwarding-method' options specified");
}
