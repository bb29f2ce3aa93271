//! The kernel's settings that matter here, by their path under `/proc/sys`.

use std::collections::BTreeMap;

/// Of each interface, `all` included.
const OF_INTERFACES: [(&str, &str); 6] = [
    ("ipv4", "arp_ignore"),
    ("ipv4", "arp_announce"),
    ("ipv4", "rp_filter"),
    ("ipv4", "send_redirects"),
    ("ipv4", "accept_redirects"),
    ("ipv6", "accept_redirects"),
];

/// Of the whole machine.
const OF_ALL: [&str; 2] = ["net/ipv4/ip_forward", "net/ipv6/conf/all/forwarding"];

/// See the module. What a kernel does not have is not there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings(pub BTreeMap<String, i64>);

impl Settings {
    /// Reads those of the machine, of `all` and of these interfaces.
    pub fn read<'a>(interfaces: impl IntoIterator<Item = &'a str>) -> Settings {
        let mut found = BTreeMap::new();
        let mut read = |key: String| {
            let text = std::fs::read_to_string(format!("/proc/sys/{key}"));
            if let Some(value) = text.ok().and_then(|text| text.trim().parse().ok()) {
                found.insert(key, value);
            }
        };
        OF_ALL.iter().for_each(|key| read((*key).to_owned()));
        for interface in std::iter::once("all").chain(interfaces) {
            for (family, name) in OF_INTERFACES {
                read(key(family, interface, name));
            }
        }
        Settings(found)
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<i64> {
        self.0.get(key).copied()
    }

    /// The value of an interface.
    pub fn of(&self, family: &str, interface: &str, name: &str) -> Option<i64> {
        self.get(&key(family, interface, name))
    }

    /// What is in effect on an interface where the kernel takes the larger of its own and that of `all`:
    /// `arp_ignore`, `arp_announce`, `rp_filter`, and those that are switched on by either.
    pub fn larger(&self, family: &str, interface: &str, name: &str) -> Option<i64> {
        self.of(family, interface, name).max(self.of(family, "all", name))
    }
}

/// `net/ipv4/conf/eth0/rp_filter`
pub fn key(family: &str, interface: &str, name: &str) -> String {
    format!("net/{family}/conf/{interface}/{name}")
}

/// One command that sets all of these, with dots where no name has one.
pub fn command<'a>(settings: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let mut command = "sysctl -w".to_owned();
    for (key, value) in settings {
        let key = if key.contains('.') { key.to_owned() } else { key.replace('/', ".") };
        command.push_str(&format!(" {key}={value}"));
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_larger_of_all_and_the_interface_is_in_effect() {
        let set = |all, own| {
            let keys = [("all", all), ("eth0", own)];
            Settings(keys.map(|(on, value)| (key("ipv4", on, "rp_filter"), value)).into())
        };
        assert_eq!(set(0, 1).larger("ipv4", "eth0", "rp_filter"), Some(1));
        assert_eq!(set(2, 1).larger("ipv4", "eth0", "rp_filter"), Some(2));
        assert_eq!(Settings::default().larger("ipv4", "eth0", "rp_filter"), None);
    }

    #[test]
    fn a_command_names_interfaces_with_dots_as_sysctl_wants_them() {
        let settings = [("net/ipv4/ip_forward", "1"), ("net/ipv4/conf/eth0.17/rp_filter", "0")];
        assert_eq!(
            command(settings),
            "sysctl -w net.ipv4.ip_forward=1 net/ipv4/conf/eth0.17/rp_filter=0"
        );
    }
}
