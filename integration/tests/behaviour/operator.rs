//! What an operator does with ipvsadm to the running director, and what the traffic makes of it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use integration::programs;
use integration::topology::Kind;

use super::bed::{Bed, SECOND, VIPS, can_run, connect, kernel_web, of, top, web};

const VIP: &str = "192.0.2.10:80";

/// The numbers of the line of `-L` that shows `name`.
#[track_caller]
fn numbers(listing: &str, name: &str) -> Vec<u64> {
    let line = listing.lines().find(|line| line.contains(name));
    let line = line.unwrap_or_else(|| panic!("no {name} in:\n{listing}"));
    line.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

/// `ipvsadm -R` with these rules.
fn restore(bed: &Bed, rules: &str) {
    let mut process = bed
        .topology
        .director
        .command(programs::path("ipvsadm").unwrap())
        .arg("-R")
        .env("SWITCHYARD_SOCKET", bed.director.socket())
        .piped()
        .spawn()
        .unwrap();
    let (mut input, _output) = process.take_pipes().unwrap();
    input.write_all(rules.as_bytes()).unwrap();
    drop(input);
    let status = process.wait(SECOND * 5).unwrap().expect("ipvsadm -R does not end");
    assert!(status.success(), "ipvsadm -R: {}", process.log());
}

#[test]
fn quick_services_of_ipvsadm_carry_at_once_and_stop_at_once() {
    if !can_run() {
        return;
    }
    // Nothing in the file: everything comes from the operator.
    let bed = Bed::with(Kind::Nat, &top("copy"));
    let _kernel = kernel_web(&bed.topology, 80);
    let ipvsadm = |line: &str| {
        let words: Vec<_> = line.split_whitespace().collect();
        bed.director.ipvsadm(&words).unwrap_or_else(|error| panic!("{line}: {error:#}"))
    };
    let answers = |count| bed.fetch(VIPS[0], 80, count);
    assert_eq!(answers(3).by_server.get("kernel"), Some(&3));

    ipvsadm("-A -t 192.0.2.10:80 -s rr");
    for server in ["10.77.0.11", "10.77.0.12"] {
        ipvsadm(&format!("-a -t {VIP} -r {server}:80 -m"));
    }
    let tally = answers(10);
    assert_eq!([1, 2, 3].map(|number| of(&tally, number)), [5, 5, 0], "{tally:?}");

    // Counters: connections, packets and bytes of both directions; then zero.
    let listing = ipvsadm("-L -n --stats");
    let all = numbers(&listing, VIP);
    assert_eq!(all.len(), 5, "{listing}");
    assert!(all[0] == 10 && all[1..].iter().all(|count| *count >= 30), "{listing}");
    let one = numbers(&listing, "10.77.0.11:80");
    let other = numbers(&listing, "10.77.0.12:80");
    let sum: Vec<u64> = one.iter().zip(&other).map(|(one, other)| one + other).collect();
    assert_eq!(sum, all, "{listing}");
    assert_eq!(numbers(&ipvsadm("-L -n"), "10.77.0.11:80")[1], 0, "active connections");
    ipvsadm("-Z -t 192.0.2.10:80");
    assert_eq!(numbers(&ipvsadm("-L -n --stats"), VIP), [0; 5]);
    ipvsadm("-L -n --rate");

    ipvsadm("-E -t 192.0.2.10:80 -s wrr");
    ipvsadm("-e -t 192.0.2.10:80 -r 10.77.0.12:80 -m -w 3");
    let tally = answers(12);
    assert_eq!([1, 2].map(|number| of(&tally, number)), [3, 9], "{tally:?}");
    ipvsadm("-d -t 192.0.2.10:80 -r 10.77.0.12:80");
    let tally = answers(5);
    assert_eq!(of(&tally, 1), 5, "{tally:?}");

    // Saved, cleared, restored: the same. Meanwhile the kernel has the port.
    ipvsadm("-A -u 192.0.2.10:53 -s wlc -p 300 -M 255.255.255.0");
    ipvsadm("-a -u 192.0.2.10:53 -r 10.77.0.13:53 -i -w 7 -x 100 -y 50");
    ipvsadm("-A -t [2001:db8:1::10]:80 -s sh");
    ipvsadm("-a -t [2001:db8:1::10]:80 -r [fd77::13]:80 -m");
    let saved = ipvsadm("-S -n");
    ipvsadm("-C");
    assert_eq!(ipvsadm("-S -n"), "");
    assert_eq!(answers(3).by_server.get("kernel"), Some(&3));
    restore(&bed, &saved);
    assert_eq!(ipvsadm("-S -n"), saved);
    assert_eq!(of(&answers(3), 1), 3);
    assert_eq!(of(&bed.fetch(VIPS[1], 80, 3), 3), 3);

    ipvsadm("-D -t 192.0.2.10:80");
    assert_eq!(answers(3).by_server.get("kernel"), Some(&3));
    assert!(bed.director.ipvsadm(&["-D", "-t", VIP]).is_err(), "deleted twice");
}

#[test]
fn timeouts_set_at_run_time_hold_for_new_connections() {
    if !can_run() {
        return;
    }
    let bed = Bed::new(Kind::Nat, "copy");
    bed.director.ipvsadm(&["--set", "120", "60", "30"]).unwrap();
    let listing = bed.director.ipvsadm(&["-L", "--timeout"]).unwrap();
    assert!(listing.contains("120 60 30"), "{listing}");
    // 0 leaves a value as it is.
    bed.director.ipvsadm(&["--set", "0", "0", "45"]).unwrap();
    let listing = bed.director.ipvsadm(&["-L", "--timeout"]).unwrap();
    assert!(listing.contains("120 60 45"), "{listing}");
    let _held = connect(&bed.topology, SocketAddr::new(VIPS[0], 80)).unwrap();
    let listing = connections(&bed, "ESTABLISHED");
    assert!(listing.contains("01:5") || listing.contains("02:00"), "expires: {listing}");
}

/// The first listing of connections that shows `state`, or the last one of a second.
fn connections(bed: &Bed, state: &str) -> String {
    let mut listing = String::new();
    for _ in 0..50 {
        listing = bed.director.ipvsadm(&["-L", "-n", "-c"]).unwrap();
        if listing.contains(state) {
            break;
        }
        std::thread::sleep(SECOND / 50);
    }
    listing
}

/// One request on an open connection, which the server then keeps.
fn ask(stream: &mut TcpStream) {
    stream.set_read_timeout(Some(SECOND)).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: vip\r\n\r\n").unwrap();
    let mut answer = [0; 1024];
    assert!(stream.read(&mut answer).unwrap() > 0);
}

#[test]
fn quick_connections_are_listed_in_the_states_that_the_method_can_see() {
    if !can_run() {
        return;
    }
    // With NAT both directions come by. Else the client's FIN is all there is to see.
    let methods =
        [(Kind::Nat, "TIME_WAIT"), (Kind::Direct, "FIN_WAIT"), (Kind::Tunnel, "FIN_WAIT")];
    for (kind, closed) in methods {
        let bed = Bed::with(kind, &(top("copy") + &web(kind, "rr", &[1])));
        for (vip, server) in VIPS.into_iter().zip(["10.77.0.11:80", "[fd77::11]:80"]) {
            let mut stream = connect(&bed.topology, SocketAddr::new(vip, 80)).unwrap();
            ask(&mut stream);
            let client = stream.local_addr().unwrap().to_string();
            let line = |listing: &str| {
                let line = listing.lines().find(|line| line.contains(&client)).map(str::to_owned);
                line.unwrap_or_else(|| panic!("{kind:?}: no {client} in:\n{listing}"))
            };
            let open = line(&connections(&bed, "ESTABLISHED"));
            for word in ["TCP", "ESTABLISHED", &SocketAddr::new(vip, 80).to_string(), server] {
                assert!(open.contains(word), "{kind:?}: no {word} in {open}");
            }
            let listing = bed.director.ipvsadm(&["-L", "-n"]).unwrap();
            assert_eq!(numbers(&listing, server), [1, 1, 0], "{kind:?}: {listing}");
            drop(stream);
            let after = line(&connections(&bed, closed));
            assert!(after.contains(closed), "{kind:?}: {after}");
            let listing = bed.director.ipvsadm(&["-L", "-n"]).unwrap();
            assert_eq!(numbers(&listing, server), [1, 0, 1], "{kind:?}: {listing}");
        }
    }
}
