//! Faults on the way to a server and back.

use integration::running::Director;
use integration::topology::{Kind, Topology, VIP_V4};
use integration::written::{service, top};

use super::*;
use crate::bed::{Bed, can_run, lay};

#[test]
fn a_nat_server_without_a_way_back_is_named_and_answers_after_the_remedy() {
    if !can_run() {
        return;
    }
    let config = "mode = \"dispatcher\"\ninterfaces = [\"eth0\", \"eth1\"]\nio = \"copy\"\n"
        .to_owned()
        + &service(Kind::NatTwoArmed, VIP_V4, 80, "rr", "", &[1]);
    let topology = lay(Kind::NatTwoArmed, &one_server());
    let server = &topology.servers[0];
    let gone = server.command("ip").args(["route", "del", "default"]).output(SOON).unwrap();
    assert!(gone.status.success());
    let bed = Bed::of(topology, &config);
    let server = &bed.topology.servers[0];
    knock(&bed.topology.client, VIP_V4, 2);

    let file = servers_file(&bed.topology, 1, &config, "");
    let there = ["no default route for IPv4"];
    let _ = wait_for("server-route", &there, on_server(server, &file));
    let look = || examine(&bed.topology.director, bed.director.socket(), &[]);
    let finding = wait_for("return-path", &["NAT server 10.77.0.11:80"], look);
    assert_eq!(finding["on"], "10.77.0.11", "{finding:#}");
    assert_eq!(finding["remedy"][0], "ip route replace default via 10.77.0.1");
    paste(server, &finding);
    assert_eq!(bed.fetch(VIP_V4, 80, 5).failed(), 0);
    wait_until_gone("return-path", look);
    wait_until_gone("server-route", on_server(server, &file));
    bed.director.stop().unwrap();
}

#[test]
fn a_way_without_room_for_the_tunnel_is_named_and_has_it_after_the_remedy() {
    if !can_run() {
        return;
    }
    let config = top("copy") + &service(Kind::Tunnel, VIP_V4, 80, "rr", "", &[1]);
    let topology = Topology::build(Kind::Tunnel, &one_server()).unwrap();
    let director = Director::start(&topology.lab, &topology.director, &config).unwrap();
    let look = || examine(&topology.director, director.socket(), &[]);
    let finding = wait_for("mtu", &["10.77.0.11", "MTU 1500 - 20 for the tunnel"], look);
    assert_eq!(finding["remedy"][0], "ip link set dev eth0 mtu 1520", "{finding:#}");
    paste(&topology.director, &finding);
    wait_until_gone("mtu", look);

    let server = &topology.servers[0];
    let file = servers_file(&topology, 1, &config, "");
    let finding = wait_for("server-mtu", &["eth0 (MTU 1500)"], on_server(server, &file));
    paste(server, &finding);
    wait_until_gone("server-mtu", on_server(server, &file));
    director.stop().unwrap();
}

#[test]
fn a_strict_filter_on_the_tunnels_device_is_named_and_off_after_the_remedy() {
    if !can_run() {
        return;
    }
    let config = top("copy") + &service(Kind::Tunnel, VIP_V4, 80, "rr", "mss_clamp = true", &[1]);
    let topology = Topology::build(Kind::Tunnel, &one_server()).unwrap();
    let server = &topology.servers[0];
    let file = servers_file(&topology, 1, &config, "");
    let nobody = wait_for("server-tunnel", &["nothing unpacks ipip"], on_server(server, &file));
    assert!(nobody["remedy"][0].as_str().unwrap().starts_with("realserver-agent run --config"));
    let agent = start_agent(server, &file);
    wait_until_gone("server-tunnel", on_server(server, &file));

    server.sysctl("net.ipv4.conf.all.rp_filter", "1").unwrap();
    let words = ["rp_filter is strict on switchyard0"];
    let finding = wait_for("server-reverse-path", &words, on_server(server, &file));
    paste(server, &finding);
    wait_until_gone("server-reverse-path", on_server(server, &file));
    agent.stop().unwrap();
}

#[test]
fn a_direct_server_that_answers_by_way_of_the_director_is_named() {
    if !can_run() {
        return;
    }
    let config = top("copy") + &service(Kind::Direct, VIP_V4, 80, "rr", "", &[1]);
    let topology = lay(Kind::Direct, &one_server());
    let astray = ["route", "replace", "192.0.2.0/24", "via", "10.77.0.1"];
    let set = topology.servers[0].command("ip").args(astray).output(SOON).unwrap();
    assert!(set.status.success());
    let bed = Bed::of(topology, &config);
    let look = || examine(&bed.topology.director, bed.director.socket(), &[]);
    std::thread::scope(|scope| {
        // Somebody must ask while the doctor looks.
        let (over, is_over) = std::sync::mpsc::channel::<()>();
        let client = &bed.topology.client;
        scope.spawn(move || {
            while is_over.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {
                knock(client, VIP_V4, 1);
            }
        });
        let words = ["do 10.77.0.11 send their answers here"];
        let finding = wait_for("astray", &words, look);
        drop(over);
        assert_eq!(finding["on"], "10.77.0.11", "{finding:#}");
    });
    bed.director.stop().unwrap();
}
