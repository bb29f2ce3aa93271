//! Who the hosts are: `nlb.hosts`, or the servers of the services in the order of the file.
//!
//! A host's place is its id. A host may have addresses of both families; without `hosts` a service
//! all of whose servers are new gives those of the other family to the hosts by their place.

use std::collections::HashMap;
use std::net::IpAddr;

use super::super::fields::{Field, Fields};
use super::super::problem::Report;
use super::super::{DeclaredService, Mode};
use super::address;
use ::nlb::host::MAX_HOSTS;

const EXAMPLE: &str = "hosts = [\"10.0.0.11\", [\"10.0.0.12\", \"2001:db8::12\"]]";

/// Addresses of each host; too many hosts are a problem only in mode nlb.
pub(super) fn read(
    table: Option<&Fields<'_>>,
    services: &[DeclaredService],
    mode: Mode,
    report: &mut Report<'_>,
) -> Vec<Vec<IpAddr>> {
    if let Some(field) = table.and_then(|table| table.get("hosts")) {
        return declared(&field, report);
    }
    let hosts = of_services(services);
    if mode == Mode::Nlb && hosts.len() > MAX_HOSTS {
        let (what, remedy) = too_many(hosts.len());
        match table {
            Some(table) => table.wrong(what, remedy, report),
            None => report.add(&(0..0), "nlb.hosts", what, remedy),
        }
    }
    hosts
}

fn too_many(hosts: usize) -> (String, String) {
    let what = format!("{hosts} hosts are more than a cluster has ids for");
    (what, format!("name at most {MAX_HOSTS}; make two clusters of them"))
}

/// `hosts = [...]`.
fn declared(field: &Field<'_>, report: &mut Report<'_>) -> Vec<Vec<IpAddr>> {
    let mut seen: HashMap<IpAddr, usize> = HashMap::new();
    let mut hosts = Vec::new();
    let items = field.items(EXAMPLE, report).unwrap_or_default();
    if items.len() > MAX_HOSTS {
        let (what, remedy) = too_many(items.len());
        field.wrong(what, remedy, report);
    }
    if items.is_empty() {
        field.wrong("names no host", format!("write {EXAMPLE}, or leave hosts out"), report);
    }
    for (place, item) in items.iter().enumerate() {
        let names = if item.is_text() {
            vec![item.clone()]
        } else {
            item.items(EXAMPLE, report).unwrap_or_default()
        };
        let mut addresses = Vec::new();
        for name in names {
            let Some(address) = address(&name, report) else { continue };
            if let Some(first) = seen.insert(address, place) {
                let what = format!("{address} is host {} already", first + 1);
                name.wrong(what, "give every host an address of its own", report);
            }
            addresses.push(address);
        }
        hosts.push(addresses);
    }
    hosts
}

/// Hosts from the servers of `services`.
fn of_services(services: &[DeclaredService]) -> Vec<Vec<IpAddr>> {
    let mut hosts: Vec<Vec<IpAddr>> = Vec::new();
    let mut ids: HashMap<IpAddr, usize> = HashMap::new();
    for declared in services {
        let addresses: Vec<IpAddr> = declared.servers.iter().map(|it| it.address.ip()).collect();
        let all_new = addresses.iter().all(|address| !ids.contains_key(address));
        for (place, address) in addresses.into_iter().enumerate() {
            if ids.contains_key(&address) {
                continue;
            }
            let other_family = hosts.get(place).filter(|host| {
                all_new && host.iter().all(|known| known.is_ipv4() != address.is_ipv4())
            });
            let id = if other_family.is_some() { place } else { hosts.len() };
            if id == hosts.len() {
                hosts.push(Vec::new());
            }
            hosts[id].push(address);
            ids.insert(address, id);
        }
    }
    hosts
}

#[cfg(test)]
mod tests {
    use super::super::super::{KERNEL_SCHEDULERS, parse_with};
    use std::net::IpAddr;

    fn hosts(services: &[(&str, &[&str])]) -> Vec<Vec<IpAddr>> {
        let mut text = String::from("interfaces = [\"eth0\"]\n");
        for (listen, servers) in services {
            text += &format!("[[service]]\nlisten = {listen:?}\nforwarding = \"direct\"\n");
            for server in *servers {
                text += &format!("[[service.server]]\naddress = {server:?}\n");
            }
        }
        parse_with(&text, "test.toml", KERNEL_SCHEDULERS).expect("right").nlb.hosts
    }

    fn ips(texts: &[&str]) -> Vec<IpAddr> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn a_host_keeps_the_place_at_which_the_file_first_names_it() {
        let hosts = hosts(&[
            ("192.0.2.10:80/tcp", &["10.0.0.11", "10.0.0.12", "10.0.0.13"]),
            ("192.0.2.10:443/tcp", &["10.0.0.13", "10.0.0.11"]),
            ("192.0.2.10:53/udp", &["10.0.0.12", "10.0.0.14"]),
        ]);
        let expected = ["10.0.0.11", "10.0.0.12", "10.0.0.13", "10.0.0.14"].map(|it| ips(&[it]));
        assert_eq!(hosts, expected);
    }

    #[test]
    fn an_empty_place_keeps_the_ids_behind_it() {
        let text = "interfaces = [\"eth0\"]\n[nlb]\nhosts = [\"10.0.0.11\", [], \"10.0.0.13\"]\n";
        let hosts = parse_with(text, "test.toml", KERNEL_SCHEDULERS).expect("right").nlb.hosts;
        assert_eq!(hosts, [ips(&["10.0.0.11"]), ips(&[]), ips(&["10.0.0.13"])]);
    }

    #[test]
    fn the_servers_of_a_service_of_the_other_family_are_the_same_hosts_by_place() {
        let hosts = hosts(&[
            ("192.0.2.10:80/tcp", &["10.0.0.11", "10.0.0.12"]),
            ("[2001:db8::10]:80/tcp", &["2001:db8::11", "2001:db8::12", "2001:db8::13"]),
            ("[2001:db8::10]:443/tcp", &["2001:db8::13"]),
        ]);
        assert_eq!(
            hosts,
            [
                ips(&["10.0.0.11", "2001:db8::11"]),
                ips(&["10.0.0.12", "2001:db8::12"]),
                ips(&["2001:db8::13"]),
            ]
        );
    }
}
