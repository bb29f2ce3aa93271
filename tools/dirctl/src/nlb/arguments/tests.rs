//! What is written, and what it comes to.

use clap::Parser;

use super::*;

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    nlb: Nlb,
}

fn words(line: &str) -> Result<NlbCommand, String> {
    let line = Line::try_parse_from(format!("nlb {line}").split(' '));
    line.map_err(|error| error.to_string())?.nlb.command.command()
}

#[test]
fn words_come_to_the_commands_of_the_api() {
    let target = "192.0.2.10:80".parse().unwrap();
    for (line, json) in [
        ("query --host all", r#"{"op":"query"}"#),
        ("drainstop --deadline 10m", r#"{"op":"drainstop","deadline":600}"#),
        ("drainstop --no-wait", r#"{"op":"drainstop"}"#),
        ("drain 192.0.2.10:80", r#"{"op":"drain","target":"192.0.2.10:80"}"#),
        ("ip2mac 192.0.2.10", r#"{"op":"ip2mac","address":"192.0.2.10"}"#),
        (
            "filter tcp [2001:db8::7]:40000 [2001:db8::10]:80 syn ack",
            r#"{"op":"filter","protocol":"tcp","client":"2001:db8::7","client_port":40000,"vip":"2001:db8::10","port":80,"flags":["syn","ack"]}"#,
        ),
        (
            "filter icmp 203.0.113.7 192.0.2.10",
            r#"{"op":"filter","protocol":"icmp","client":"203.0.113.7","client_port":0,"vip":"192.0.2.10","port":0}"#,
        ),
        (
            "map --dry-run --without 3 --without 4 --with 5 --weight 2=20",
            r#"{"op":"map","with":[5],"without":[3,4],"weights":{"2":20}}"#,
        ),
    ] {
        assert_eq!(serde_json::to_string(&words(line).unwrap()).unwrap(), json, "{line}");
    }
    let weight = words("weight 192.0.2.10:80 20").unwrap();
    assert_eq!(weight, NlbCommand::Weight { target, weight: 20 });
}

#[test]
fn wrong_words_say_what_to_write() {
    for (line, says) in [
        ("drain 80", "VIP:PORT"),
        ("weight all 101", "101"),
        ("drainstop --deadline soon", "write 90s, 10m or 1h"),
        ("drainstop --deadline 2d", "write 90s, 10m or 1h"),
        ("filter tcp 203.0.113.7 192.0.2.10:80", "needs a port"),
        ("filter gre 203.0.113.7 192.0.2.10:80", "have no ports"),
        ("filter udp 203.0.113.7:1 192.0.2.10:80 syn", "only tcp has flags"),
        ("filter tcp 203.0.113.7:1 [2001:db8::1]:80", "different families"),
        ("map --without 33", "a host id is 1 to 32"),
        ("map --weight 3", "write ID=WEIGHT"),
        ("query --cluster 192.0.2.10", "--key-file"),
    ] {
        let refused = words(line).unwrap_err();
        assert!(refused.contains(says), "{line}: {refused}");
    }
}
