use super::*;

fn addresses<const N: usize>(texts: [&str; N]) -> [IpAddr; N] {
    texts.map(|text| text.parse().unwrap())
}

#[test]
fn every_tunnel_has_its_devices_by_the_families_of_the_servers_address_and_of_the_vips() {
    let [v4, v6] = addresses(["10.0.0.11", "2001:db8::11"]);
    let [vip4, vip6] = addresses(["192.0.2.10", "2001:db8:1::10"]);
    let both = [vip4, vip6];
    let of = |kinds: &[Kind], own: &[IpAddr], vips: &[IpAddr]| types(Wanted { kinds, own, vips });
    assert_eq!(of(&[Kind::Ipip], &[v4], &both), [(Type::Ipip, v4), (Type::Sit, v4)]);
    assert_eq!(of(&[Kind::Ipip], &[v4], &[vip4]), [(Type::Ipip, v4)]);
    assert_eq!(of(&[Kind::Ipip], &[v4], &[vip6]), [(Type::Sit, v4)]);
    let gue = Kind::Gue { port: 6080 };
    assert_eq!(of(&[Kind::Ipip, gue], &[v6], &both), [(Type::Ip6tnl, v6)], "they share it");
    let gre = Kind::Gre { checksum: Some(true) };
    let [first, second] = [Type::Gre { checksum: true }, Type::Ip6gre { checksum: true }];
    assert_eq!(of(&[gre], &[v4, v6], &both), [(first, v4), (second, v6)]);
}

#[test]
fn a_port_is_opened_once_for_each_family_that_the_server_is_reached_by() {
    let own = addresses(["10.0.0.11", "10.0.0.12", "2001:db8::11"]);
    let kinds = [Kind::Gue { port: 6080 }, Kind::Ipip, Kind::Gue { port: 5555 }];
    let ports = ports(Wanted { kinds: &kinds, own: &own, vips: &[] });
    let written: Vec<_> = ports.iter().map(Port::to_string).collect();
    assert_eq!(written, ["6080/v4", "6080/v6", "5555/v4", "5555/v6"]);
}

#[test]
fn gre_with_and_without_checksums_is_too_much_for_a_device_and_so_is_not_to_know() {
    let own = addresses(["10.0.0.11"]);
    let why = |kinds: &[Kind]| impossible(Wanted { kinds, own: &own, vips: &own });
    let gre = |checksum| Kind::Gre { checksum };
    assert_eq!(why(&[gre(Some(true)), Kind::Ipip]), None);
    assert!(why(&[gre(Some(true)), gre(Some(false))]).unwrap().contains("both"));
    assert!(why(&[gre(None)]).unwrap().contains("gre:nocsum"));
    assert!(impossible(Wanted { kinds: &[Kind::Ipip], own: &[], vips: &own }).is_some());
}
