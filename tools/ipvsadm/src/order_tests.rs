//! The rules that no single flag owns.

use super::testing::{command, complaint, order};
use super::*;

#[test]
fn no_words_list_the_table_with_names() {
    let table = Order::List { what: What::Table, format: Format::default() };
    assert_eq!(order(""), table);
    assert_eq!(order("-L"), table);
}

#[test]
fn command_must_come_first_and_be_the_only_one() {
    let try_help = "Try `ipvsadm -h' or 'ipvsadm --help' for more information.".to_owned();
    for line in ["-t 10.0.0.1:80 -A", "-n -L", "--foo", "-z", "word", "--start-daemon", "--"] {
        assert_eq!(complaint(line), (try_help.clone(), 255), "{line}");
    }
    for (line, word) in [
        ("-Z -L", "-L"),
        ("-ZL", "-ZL"),
        ("-L --help", "--help"),
        ("-L -v", "-v"),
        ("-C --start-daemon master", "master"),
    ] {
        assert_eq!(complaint(line), (format!("invalid option `{word}'"), 2), "{line}");
    }
}

#[test]
fn unknown_options_and_missing_values_end_with_255() {
    for (line, message) in [
        ("-L --foo", "--foo: unknown option"),
        ("-A -t 10.0.0.1:80 -s", "-s: missing argument"),
        ("-C -z", "-z: unknown option"),
    ] {
        assert_eq!(complaint(line), (message.to_owned(), 255), "{line}");
    }
}

#[test]
fn words_that_belong_nowhere_are_named() {
    assert_eq!(complaint("-L junk").0, "unexpected argument junk");
    assert_eq!(complaint("junk -L"), ("unexpected argument junk".to_owned(), 2));
    assert_eq!(complaint("--set 1 2 3 4").0, "unexpected argument 4");
    assert_eq!(complaint("-A -t 10.0.0.1:80 -p 300 400").0, "unexpected argument 400");
}

#[test]
fn values_are_judged_before_legality_and_legality_before_what_makes_sense() {
    assert_eq!(complaint("-D -t 10.0.0.1 -w x").0, "illegal weight specified");
    assert_eq!(
        complaint("-A -t 10.0.0.1 -w 1").0,
        "Illegal 'weight' option with the 'add-service' command"
    );
    assert_eq!(
        complaint("-A -s rr").0,
        "You need to supply the 'service-address' option for the 'add-service' command"
    );
    assert_eq!(complaint("-A -t 10.0.0.1").0, "Zero port specified for non-persistent service");
    assert_eq!(complaint("-C -n").0, "Illegal 'numeric' option with the 'flush' command");
}

#[test]
fn set_needs_three_timeouts() {
    let timeouts = Timeouts { tcp: 900, tcp_fin: 0, udp: 2_678_400 };
    assert_eq!(command("--set 900 0 2678400"), Command::SetTimeouts { timeouts });
    assert_eq!(complaint("--set 1 2"), ("--set option requires 3 timeout values".to_owned(), 2));
    assert_eq!(complaint("--set 1 2 x").0, "invalid timeout value `x' specified");
    assert_eq!(complaint("--set 1 2 2678401").0, "invalid timeout value `2678401' specified");
}

#[test]
fn families_may_differ_for_tunnels_only() {
    let message = "Different address family is allowed only for tunneling servers".to_owned();
    assert_eq!(complaint("-a -t 10.0.0.1:80 -r [2001:db8::1]:80"), (message.clone(), 2));
    assert_eq!(complaint("-a -t [2001:db8::1]:80 -r 10.0.0.1:80 -m").0, message);
    assert_eq!(complaint("-a -f 8 -6 -r 10.0.0.1:80 -g").0, message);
    let line = "-a -t [2001:db8::1]:80 -r 10.0.0.1 -i";
    let Command::AddServer { server, .. } = command(line) else { panic!("{line}") };
    assert_eq!(server.address.to_string(), "10.0.0.1:80");
}

#[test]
fn zero_and_delete_server_name_what_they_mean() {
    assert_eq!(command("-Z"), Command::Zero { service: None });
    let service = ServiceKey::Fwmark { fwmark: 7, ipv6: false };
    assert_eq!(command("-Z -f 7"), Command::Zero { service: Some(service) });
    let server = "10.0.0.2:81".parse().unwrap();
    assert_eq!(command("-d -f 7 -r 10.0.0.2:81"), Command::DeleteServer { service, server });
    let Command::DeleteServer { server, .. } = command("-d -t 10.0.0.1:http -r 10.0.0.2") else {
        panic!("not a deletion");
    };
    assert_eq!(server.to_string(), "10.0.0.2:80");
}
