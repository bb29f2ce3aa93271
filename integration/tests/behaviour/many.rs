//! Ten thousand services of ten servers each: put into a running director as a restore does, listed,
//! edited and taken away, while other services carry traffic.

use std::net::{Ipv4Addr, SocketAddr};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use director::control::api::{
    Forwarding, OnRefusal, Protocol, ServerSpec, ServiceKey, ServiceSpec, Tunnel,
};
use director::control::operations::Command;
use integration::topology::{Kind, VIP_V4, server_addresses};

use super::bed::{Bed, SECOND, can_run, of};

const SERVICES: u32 = 10_000;
const SERVERS: u32 = 10;

/// Commands in a request, as a tool would send them.
const CHUNK: usize = 4096;

/// Far more than it takes: the machine may be busy, and this no release build.
const LIMIT: Duration = Duration::from_secs(30);

fn key(number: u32) -> ServiceKey {
    let vip = Ipv4Addr::from_bits(0xc612_0000 + number);
    ServiceKey::Address { protocol: Protocol::Tcp, address: SocketAddr::new(vip.into(), 80) }
}

fn add_service(key: ServiceKey) -> Command {
    let scheduler = "wlc".to_owned();
    let service = ServiceSpec {
        key,
        scheduler,
        flags: 0,
        persistence: None,
        one_packet: false,
        extras: None,
    };
    Command::AddService { service }
}

fn add_server(key: ServiceKey, address: SocketAddr) -> Command {
    let server = ServerSpec {
        address,
        forwarding: Forwarding::Nat,
        tunnel: Tunnel::Ipip,
        weight: 1,
        upper_threshold: 0,
        lower_threshold: 0,
    };
    Command::AddServer { service: key, server }
}

/// All services, and a thousand hosts that are the servers of them, each on many ports.
fn restore() -> Vec<Command> {
    let mut commands = Vec::new();
    for number in 0..SERVICES {
        commands.push(add_service(key(number)));
        for server in 0..SERVERS {
            let place = number * SERVERS + server;
            let ip = Ipv4Addr::from_bits(0x0ac8_0001 + place % 1000);
            let address = SocketAddr::new(ip.into(), (1000 + place / 1000) as u16);
            commands.push(add_server(key(number), address));
        }
    }
    commands
}

#[test]
fn ten_thousand_services_are_restored_while_others_carry_traffic() {
    if !can_run() {
        return;
    }
    let bed = Bed::new(Kind::Nat, "copy");
    bed.serve(8080);
    let last =
        ServiceKey::Address { protocol: Protocol::Tcp, address: SocketAddr::new(VIP_V4, 8080) };
    let mut client = bed.director.client().unwrap();
    let commands = restore();
    let mut took = Vec::new();
    let mut timed = |what: &'static str, since: Instant| took.push((what, since.elapsed()));
    std::thread::scope(|scope| {
        let traffic = scope.spawn(|| bed.carries(4000));
        let start = Instant::now();
        for chunk in commands.chunks(CHUNK) {
            let outcome = client.batch(chunk, OnRefusal::Continue).unwrap();
            assert_eq!((outcome.applied, outcome.refused.len()), (chunk.len(), 0));
        }
        timed("restored", start);
        // What comes last is served at once, steering included.
        let server = SocketAddr::new(server_addresses(1)[0], 8080);
        client.apply(&[add_service(last), add_server(last, server)]).unwrap();
        let served = Instant::now() + SECOND * 5;
        while of(&bed.fetch(VIP_V4, 8080, 1), 1) == 0 {
            assert!(Instant::now() < served, "{:?}", bed.director.status());
        }
        timed("and served", start);

        let start = Instant::now();
        let (mut services, mut servers) = (0, 0);
        let listed = client.each_service(|service| {
            services += 1;
            servers += service.servers.len() as u32;
            ControlFlow::Continue(())
        });
        listed.unwrap();
        // Beside those of the file, two with three servers, and the one above.
        assert_eq!((services, servers), (SERVICES + 3, SERVICES * SERVERS + 7));
        timed("listed", start);

        let start = Instant::now();
        for number in 0..100 {
            let edit = Command::DeleteService { service: key(number) };
            client.apply(&[edit, add_service(key(number))]).unwrap();
        }
        timed("a hundred replaced one by one", start);

        // All or nothing: one that cannot be leaves all the others as they are.
        let start = Instant::now();
        let mut again = vec![Command::Flush];
        again.extend_from_slice(&commands);
        again.push(add_service(key(0)));
        let outcome = client.batch(&again, OnRefusal::Undo).unwrap();
        assert_eq!((outcome.applied, outcome.refused[0].index), (0, again.len() - 1));
        timed("refused as a whole", start);

        let start = Instant::now();
        let gone = (100..SERVICES).map(|number| Command::DeleteService { service: key(number) });
        let gone: Vec<_> = gone.collect();
        assert_eq!(client.batch(&gone, OnRefusal::Continue).unwrap().refused, []);
        timed("taken away", start);
        traffic.join().unwrap();
    });
    println!("{SERVICES} services of {SERVERS} servers: {took:?}");
    assert!(took.iter().all(|(_, took)| *took < LIMIT), "{took:?}");
    let status = bed.director.status().unwrap();
    assert_eq!((status.services, status.warnings), (100 + 3, vec![]));
    bed.director.stop().unwrap();
}
