//! Rules that set firewall marks, for both sides: ours takes them as they are, the kernel has
//! iptables set the marks.

use director::control::api::Protocol;
use director::fwmark::Rule;

/// The programs, by family.
const IPTABLES: [&str; 2] = ["iptables-legacy", "ip6tables-legacy"];

/// Commands that put `rules` in place of those there were, for the kernel's shell.
pub(super) fn iptables(rules: &[Rule]) -> Vec<String> {
    let mut commands: Vec<String> =
        IPTABLES.iter().map(|program| format!("{program} -t mangle -F PREROUTING")).collect();
    for rule in rules {
        for (program, ipv6) in IPTABLES.into_iter().zip([false, true]) {
            if rule.concerns(ipv6) {
                let protocols = Protocol::ALL.into_iter();
                let wanted = protocols.filter(|one| rule.protocol.is_none_or(|own| own == *one));
                commands.extend(wanted.map(|protocol| {
                    format!("{program} -t mangle -A PREROUTING {}", written(rule, protocol))
                }));
            }
        }
    }
    commands
}

/// A rule in the words of iptables.
fn written(rule: &Rule, protocol: Protocol) -> String {
    let mut text = format!("-p {protocol}");
    for (option, network) in [("-s", rule.source), ("-d", rule.destination)] {
        if let Some(network) = network {
            text.push_str(&format!(" {option} {network}"));
        }
    }
    for (option, ranges) in [("--sports", &rule.source_ports), ("--dports", &rule.ports)] {
        if !ranges.is_empty() {
            let ranges: Vec<String> =
                ranges.iter().map(|range| range.to_string().replace('-', ":")).collect();
            text.push_str(&format!(" -m multiport {option} {}", ranges.join(",")));
        }
    }
    text + &format!(" -j MARK --set-mark {}", rule.mark)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands(json: &str) -> Vec<String> {
        iptables(&[serde_json::from_str(json).unwrap()]).split_off(IPTABLES.len())
    }

    #[test]
    fn a_rule_reads_in_iptables_as_it_does_in_the_configuration() {
        let rule = r#"{"mark":7,"protocol":"tcp","source":"198.18.0.0/15","ports":["80","90-99"]}"#;
        assert_eq!(
            commands(rule),
            ["iptables-legacy -t mangle -A PREROUTING -p tcp -s 198.18.0.0/15 \
                 -m multiport --dports 80,90:99 -j MARK --set-mark 7"]
        );
    }

    #[test]
    fn what_a_rule_does_not_say_is_any_family_and_protocol() {
        assert_eq!(commands(r#"{"mark":7,"ports":["80"]}"#).len(), 2 * Protocol::ALL.len());
    }
}
