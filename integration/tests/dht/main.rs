//! A farm of DNS caches behind one VIP: with the scheduler `dht` each name is always asked at one
//! cache, which then knows it.
//!
//! Three dnsmasq are the caches, a server that counts is upstream of them, and a client asks 2,000
//! names ten times each. Needs root; says so and passes otherwise. `cargo xtask test dht` installs the
//! programs. With `SWITCHYARD_DHT_SVG=FILE` the picture of docs/dht.md is drawn.

mod picture;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use integration::dns::{Asked, Upstream, ask_all};
use integration::lab::Process;
use integration::nginx::wait_for;
use integration::running::Director;
use integration::topology::{CLIENT, Kind, Options, Topology, VIP_V4, server_addresses};
use nix::sys::signal::Signal;

const DNS: u16 = 53;
const CACHES: usize = 3;
const NAMES: usize = 2000;
const TIMES: usize = 10;
/// Where caches ask: upstream is on the client's host.
const UPSTREAM: u16 = 5353;

/// Caches, upstream and a director with the scheduler that is given as the file writes it.
struct Farm {
    topology: Topology,
    director: Director,
    upstream: Upstream,
    caches: Vec<Process>,
    names: Vec<String>,
}

fn can_run() -> bool {
    match integration::lab::supported() {
        Ok(()) => true,
        Err(reason) => {
            println!("skipped: {reason:#}");
            false
        }
    }
}

fn vip() -> SocketAddr {
    SocketAddr::new(VIP_V4, DNS)
}

impl Farm {
    fn build(scheduler: &str) -> Farm {
        let topology = Topology::build(Kind::Direct, &Options::default()).unwrap();
        // Caches ask from their own network.
        topology.client.route_on_link("10.77.0.0/24", "eth0").unwrap();
        let at = SocketAddr::new(CLIENT[0], UPSTREAM);
        let socket = topology.client.run(|| UdpSocket::bind(at)).unwrap().unwrap();
        let upstream = Upstream::serve(socket).unwrap();
        let caches = (0..CACHES).map(|index| start_cache(&topology, index)).collect();
        let mut config = format!(
            "interfaces = [\"eth0\"]\nio = \"copy\"\n[[service]]\nlisten = \"{}/udp\"\n\
             scheduler = {scheduler}\none_packet = true\nforwarding = \"direct\"\n",
            vip()
        );
        for number in 1..=CACHES {
            let address = server_addresses(number)[0];
            config += &format!("  [[service.server]]\n  address = \"{address}\"\n");
        }
        let director = Director::start(&topology.lab, &topology.director, &config).unwrap();
        let names = (0..NAMES).map(|number| format!("name{number}.example.test")).collect();
        Farm { topology, director, upstream, caches, names }
    }

    /// All names, `times` times, each time in another order; what reached upstream.
    fn ask(&self, times: usize) -> Vec<Asked> {
        for round in 0..times {
            // Coprime with the number of names: all of them, spread.
            let step = [1009, 773, 1511, 487, 1999, 331, 1213, 691, 149, 1733][round % 10];
            let names = (0..NAMES).map(|number| self.names[number * step % NAMES].as_str());
            let asked = self.topology.client.run(|| ask_all(vip(), names)).unwrap();
            assert_eq!(asked.unwrap(), NAMES, "{}", self.director.process().log());
        }
        self.upstream.take()
    }
}

/// The cache on server `index`: it keeps all names for long, and asks one server.
fn start_cache(topology: &Topology, index: usize) -> Process {
    let server = &topology.servers[index];
    let process = server
        .command("/usr/sbin/dnsmasq")
        .args(["--no-daemon", "--conf-file=/dev/null", "--no-resolv", "--no-hosts"])
        .args(["--user=root", "--pid-file", &format!("--port={DNS}"), "--cache-size=10000"])
        .args(["--bind-interfaces", &format!("--listen-address={VIP_V4}")])
        .arg(format!("--server={}#{UPSTREAM}", CLIENT[0]))
        .spawn()
        .unwrap();
    wait_for(server, vip(), &process).unwrap();
    process
}

/// Which cache asked for each name.
fn owners(asked: &[Asked]) -> BTreeMap<&str, BTreeSet<IpAddr>> {
    let mut owners: BTreeMap<&str, BTreeSet<IpAddr>> = BTreeMap::new();
    for question in asked {
        owners.entry(&question.name).or_default().insert(question.by);
    }
    owners
}

#[test]
fn every_name_is_fetched_once_where_round_robin_fetches_it_as_often_as_there_are_caches() {
    if !can_run() {
        return;
    }
    let run = |scheduler: &str| {
        let farm = Farm::build(scheduler);
        let start = Instant::now();
        let asked = farm.ask(TIMES);
        farm.director.stop().unwrap();
        (start, asked)
    };
    let (rr_start, rr) = run("\"rr\"");
    let (dht_start, dht) = run("{ name = \"dht\", key = \"dns-name\" }");
    println!(
        "\nfigure: {} questions: upstream saw {} with rr, {} with dht",
        NAMES * TIMES,
        rr.len(),
        dht.len()
    );
    // Ten questions for a name go to three caches: hardly a name misses one.
    assert!(rr.len() > 5 * NAMES / 2, "{} with rr", rr.len());
    assert_eq!(dht.len(), NAMES, "a name was fetched twice");
    let shares = owners(&dht).values().fold(BTreeMap::new(), |mut shares, by| {
        *shares.entry(by.iter().next().copied()).or_insert(0) += 1;
        shares
    });
    assert_eq!(shares.len(), CACHES);
    for share in shares.values() {
        assert!((500..850).contains(share), "{shares:?}");
    }
    if let Some(file) = std::env::var_os("SWITCHYARD_DHT_SVG") {
        let svg = picture::draw(&[("rr", rr_start, &rr), ("dht", dht_start, &dht)]);
        std::fs::write(file, svg).unwrap();
    }
}

fn a_cache_comes_back(scheduler: &str, least: usize, most: usize) {
    let mut farm = Farm::build(scheduler);
    let first = farm.ask(1);
    let before = owners(&first);
    let leaver = server_addresses(2)[0];
    let lost: BTreeSet<&str> =
        before.iter().filter(|(_, by)| by.contains(&leaver)).map(|(name, _)| *name).collect();

    farm.caches[1].signal(Signal::SIGTERM).unwrap();
    farm.caches[1].wait(Duration::from_secs(5)).unwrap();
    let (service, server) = (vip().to_string(), SocketAddr::new(leaver, DNS).to_string());
    let weigh = |weight: &str| {
        let words = ["-e", "-u", &service, "-r", &server, "-g", "-w", weight];
        farm.director.ipvsadm(&words).unwrap();
    };
    weigh("0");
    // Only those that have moved are fetched, and nobody asks the one that is gone.
    let moved = farm.ask(1);
    println!(
        "\nfigure: a cache has left, {scheduler}: {} of {NAMES} names fetched anew, {} were its own",
        moved.len(),
        lost.len()
    );
    assert!((least..=most).contains(&moved.len()), "{} of {NAMES} moved", moved.len());
    assert!(!moved.iter().any(|question| question.by == leaver));
    let names: BTreeSet<&str> = moved.iter().map(|question| question.name.as_str()).collect();
    assert!(lost.iter().all(|name| names.contains(name)), "a name of the lost cache has no other");

    weigh("1");
    farm.caches[1] = start_cache(&farm.topology, 1);
    // Its memory is empty: it fetches what is its own, and that is what was.
    let back = farm.ask(1);
    let own: BTreeSet<&str> = back
        .iter()
        .filter(|question| question.by == leaver)
        .map(|question| question.name.as_str())
        .collect();
    assert_eq!(own, lost, "it did not get exactly its old names back");
    println!("\nfigure: it is back: {} fetched anew, {} by itself", back.len(), own.len());
    // The others still know what they had.
    assert_eq!(back.len(), lost.len(), "somebody else had to fetch a name again");
    farm.director.stop().unwrap();
}

#[test]
fn quick_a_cache_that_comes_back_gets_exactly_its_old_names() {
    if can_run() {
        // (N + 1) / 3N of the names, four ninths.
        a_cache_comes_back("{ name = \"dht\", key = \"dns-name\" }", 800, 980);
    }
}

#[test]
fn with_sticky_rows_only_the_names_of_the_lost_cache_move() {
    if can_run() {
        let sticky = "{ name = \"dht\", key = \"dns-name\", sticky = true }";
        a_cache_comes_back(sticky, 500, 850);
    }
}
