//! The files of `examples/`, as they stand but for addresses: each carries what it is an example of.

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use integration::cluster::{self, Cluster};
use integration::dns::ask_all;
use integration::http::{Plan, Tally};
use integration::lab::Process;
use integration::running::Director;
use integration::topology::{Kind, Options, Topology, VIP_V4, VIP_V6, server_addresses};
use integration::{nginx, programs, vsftpd};

use crate::bed::{can_run, dirctl};

const SOON: Duration = Duration::from_secs(30);

/// The text of an example, with these addresses in place of its own.
fn example(name: &str, addresses: &[(&str, &str)]) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples").join(name);
    let text = std::fs::read_to_string(&file).unwrap();
    addresses.iter().fold(text, |text, (here, there)| {
        assert!(text.contains(here), "{name} has lost {here}");
        text.replace(here, there)
    })
}

/// A topology with servers as an operator finds them: nothing is prepared that the agent sees to.
fn unprepared(kind: Kind, servers: usize) -> Topology {
    let topology = Topology::build(kind, &Options { servers, ..Options::default() }).unwrap();
    for server in &topology.servers {
        for vip in [VIP_V4, VIP_V6] {
            server.remove_address("lo", &vip.to_string()).unwrap();
        }
        for setting in ["all.arp_ignore", "all.arp_announce"] {
            server.sysctl(&format!("net.ipv4.conf.{setting}"), "0").unwrap();
        }
    }
    topology
}

/// The agents of all servers, with the director's own file.
fn start_agents(topology: &Topology, config: &str) -> Vec<Process> {
    let file = topology.lab.logs().join("agents.toml");
    std::fs::write(&file, config).unwrap();
    let start = |server: &integration::lab::Host| {
        let socket = topology.lab.logs().join(format!("{}-agent.sock", server.name()));
        let agent = server
            .command(programs::path("realserver-agent").unwrap())
            .args(["run", "--config"])
            .arg(&file)
            .arg("--control")
            .arg(socket)
            .spawn()
            .unwrap();
        agent.wait_for_log("ready", SOON).unwrap();
        agent
    };
    topology.servers.iter().map(start).collect()
}

fn start_web(topology: &Topology) -> Vec<Process> {
    topology.start_web(&programs::path("switchyard-lab").unwrap(), 80, 200).unwrap()
}

/// A director with this file, when it has found all servers up.
fn start(topology: &Topology, config: &str) -> Director {
    let director = Director::start(&topology.lab, &topology.director, config).unwrap();
    let deadline = Instant::now() + SOON;
    loop {
        let said = dirctl(&topology.director, director.socket(), &["servers"]);
        if said.code == Some(0) {
            return director;
        }
        assert!(Instant::now() < deadline, "{}\n{}", said.out, director.process().log());
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Every request is answered, and each server has its part.
#[track_caller]
fn is_served(tally: &Tally, servers: usize) {
    assert_eq!((tally.failed(), tally.by_server.len()), (0, servers), "{tally:?}");
}

fn fetch(topology: &Topology, vip: std::net::IpAddr) -> Tally {
    topology.fetch(&Plan::new(SocketAddr::new(vip, 80), 60), |_| {}).unwrap()
}

#[test]
fn one_arm_nat_carries_http() {
    if !can_run() {
        return;
    }
    let config = example("one-arm-nat.toml", &[("10.0.0.", "10.77.0.")]);
    let topology =
        Topology::build(Kind::Nat, &Options { servers: 2, ..Options::default() }).unwrap();
    let _web = start_web(&topology);
    let director = start(&topology, &config);
    is_served(&fetch(&topology, VIP_V4), 2);
    director.stop().unwrap();
}

#[test]
fn two_arm_nat_carries_http_over_both_families() {
    if !can_run() {
        return;
    }
    let config = example("two-arm-nat.toml", &[("10.0.0.", "10.77.0."), ("fd00::", "fd77::")]);
    let options = Options { servers: 2, ..Options::default() };
    let topology = Topology::build(Kind::NatTwoArmed, &options).unwrap();
    let _web = start_web(&topology);
    let director = start(&topology, &config);
    for vip in [VIP_V4, VIP_V6] {
        is_served(&fetch(&topology, vip), 2);
    }
    director.stop().unwrap();
}

#[test]
fn direct_routing_carries_http_to_servers_that_only_the_agent_has_prepared() {
    if !can_run() {
        return;
    }
    let config = example("direct.toml", &[("10.0.0.", "10.77.0.")]);
    let topology = unprepared(Kind::Direct, 2);
    let _web = start_web(&topology);
    let _agents = start_agents(&topology, &config);
    let director = start(&topology, &config);
    is_served(&fetch(&topology, VIP_V4), 2);
    director.stop().unwrap();
}

#[test]
fn tunnels_carry_http_to_servers_that_only_the_agent_has_prepared() {
    if !can_run() {
        return;
    }
    let config = example("tunnel.toml", &[("10.0.0.", "10.77.0.")]);
    let topology = unprepared(Kind::Tunnel, 2);
    let _web = start_web(&topology);
    let _agents = start_agents(&topology, &config);
    let director = start(&topology, &config);
    is_served(&fetch(&topology, VIP_V4), 2);
    director.stop().unwrap();
}

#[test]
fn a_cluster_without_a_director_carries_http() {
    if !can_run() {
        return;
    }
    let cluster = Cluster::build("example", 3).unwrap();
    let key = cluster.lab.logs().join("cluster.key");
    std::fs::write(&key, "0123456789abcdef0123456789abcdef\n").unwrap();
    std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let addresses =
        [("192.0.2.", "10.78.0."), ("/etc/switchyard/cluster.key", key.to_str().unwrap())];
    let config = example("nlb.toml", &addresses);
    let _web = cluster.start_web(&programs::path("switchyard-lab").unwrap(), 200).unwrap();
    let nodes = cluster.start_nodes(&config).unwrap();
    // Clients stay with their host, so all of them are one's.
    let tally = cluster.fetch(&Plan::new(SocketAddr::new(cluster::VIP_V4, 80), 60), |_| {});
    is_served(&tally.unwrap(), 1);
    for node in nodes {
        assert!(node.process().stop().unwrap().success(), "{}", node.process().log());
    }
}

#[test]
fn dns_is_answered_by_the_caches() {
    if !can_run() {
        return;
    }
    let config = example("dns.toml", &[("10.0.0.", "10.77.0.")]);
    let topology = unprepared(Kind::Direct, 3);
    let _agents = start_agents(&topology, &config);
    let vip = SocketAddr::new(VIP_V4, 53);
    let start_cache = |server: &integration::lab::Host| {
        let cache = server
            .command("/usr/sbin/dnsmasq")
            .args(["--no-daemon", "--conf-file=/dev/null", "--no-resolv", "--no-hosts"])
            .args(["--user=root", "--pid-file", "--bind-interfaces"])
            .arg(format!("--listen-address={VIP_V4}"))
            .args(["--address=/example.test/198.18.0.1", "--address=/localhost/127.0.0.1"])
            .spawn()
            .unwrap();
        nginx::wait_for(server, vip, &cache).unwrap();
        cache
    };
    let _caches: Vec<Process> = topology.servers.iter().map(start_cache).collect();
    let director = start(&topology, &config);
    let names: Vec<String> = (0..100).map(|number| format!("name{number}.example.test")).collect();
    let asked = topology.client.run(|| ask_all(vip, names.iter().map(String::as_str))).unwrap();
    assert_eq!(asked.unwrap(), 100, "{}", director.process().log());
    let services = director.services().unwrap();
    let served = |server: &&director::control::api::ServerView| server.stats.connections > 0;
    assert_eq!(services[0].servers.iter().filter(served).count(), 3, "{services:?}");
    let tcp = topology.client.run(|| std::net::TcpStream::connect_timeout(&vip, SOON)).unwrap();
    assert!(tcp.is_ok(), "{tcp:?}");
    director.stop().unwrap();
}

#[test]
fn ftp_fetches_a_file_in_both_modes() {
    if !can_run() {
        return;
    }
    let config = example("ftp.toml", &[("10.0.0.", "10.77.0.")]);
    let topology =
        Topology::build(Kind::Nat, &Options { servers: 2, ..Options::default() }).unwrap();
    let contents = vec![b'x'; 300_000];
    let _servers: Vec<Process> = topology
        .servers
        .iter()
        .zip(1..)
        .map(|(server, number)| {
            let folder = vsftpd::prepare(&topology.lab, server, &contents).unwrap();
            vsftpd::start(server, &folder, server_addresses(number)[0]).unwrap()
        })
        .collect();
    let director = start(&topology, &config);
    for mode in [&["--disable-epsv", "--no-ftp-skip-pasv-ip"][..], &["--ftp-port", "-"]] {
        let output = topology
            .client
            .command("curl")
            .args(["--silent", "--show-error", "--max-time", "60"])
            .args(mode)
            .arg(format!("ftp://{VIP_V4}/file"))
            .output(SOON * 3)
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && output.stdout == contents, "{mode:?}: {said}");
    }
    director.stop().unwrap();
}
