//! What is on the host already, and what is left there: other people's devices, an agent that was
//! killed, another file, restricted senders.

use integration::topology::{VIP_V4, VIP_V6};

use super::bed::{Bed, config, server};
use crate::possible;

const IPIP: &str = "\"ipip\"";
const GUE: &str = "{ type = \"gue\", port = 5555 }";

#[test]
fn a_device_of_somebody_elses_is_used_and_stays_as_it_is() {
    if !possible() {
        return;
    }
    let mut bed = Bed::build().unwrap();
    let [v4, _] = server();
    bed.configure(&config(v4, IPIP)).unwrap();
    // One takes what the agent would take, the others what it does not care for.
    for (command, up) in [
        (format!("add theirs type ipip local {v4} remote any"), "theirs"),
        ("add swtun0 type gre local 10.77.0.11 remote 10.77.0.99".to_owned(), "swtun0"),
        ("add swtun1 type dummy".to_owned(), "swtun1"),
    ] {
        bed.guest.must(&format!("ip link {command} && ip link set {up} up")).unwrap();
    }
    let before = bed.state().unwrap();
    bed.start_agent("--tunnel-by kernel").unwrap();
    bed.ask(3).unwrap();
    let received = bed.received("").unwrap();
    let through = |name: &str| received.iter().find(|it| it.0 == name).map_or(0, |it| it.1);
    assert!(through("theirs") >= 3 && through("swtun2") >= 3, "{received:?}");
    assert_eq!(bed.end_agent("TERM").unwrap(), 0, "{}", bed.agent_log().unwrap());
    assert_eq!(bed.state().unwrap(), before);

    bed.start_agent("--tunnel-by own").unwrap();
    bed.ask(3).unwrap();
    let log = bed.agent_log().unwrap();
    assert!(log.contains("each arrives twice (ip link del theirs)"), "{log}");
    assert_eq!(bed.end_agent("TERM").unwrap(), 0, "{log}");
    assert_eq!(bed.state().unwrap(), before);

    // Down, it would be of no use, and nobody but its owner knows why it is so.
    bed.guest.must("ip link set theirs down").unwrap();
    let before = bed.state().unwrap();
    bed.launch_agent("--tunnel-by kernel").unwrap();
    assert_eq!(bed.ended_agent().unwrap(), 1);
    let log = bed.agent_log().unwrap();
    assert!(log.contains("the device theirs, not ours"), "{log}");
    assert!(log.contains("ip link set theirs up"), "{log}");
    assert_eq!(bed.state().unwrap(), before);
    bed.start_agent("").unwrap();
    let log = bed.agent_log().unwrap();
    assert!(log.contains("the kernel refuses each, although the agent takes it"), "{log}");
    assert_eq!(bed.end_agent("TERM").unwrap(), 0);
    assert_eq!(bed.state().unwrap(), before);
}

#[test]
fn what_a_killed_agent_left_is_taken_away_by_the_next_one_whoever_unpacks_then() {
    if !possible() {
        return;
    }
    let mut bed = Bed::build().unwrap();
    let [v4, _] = server();
    bed.configure(&config(v4, GUE)).unwrap();
    let before = bed.state().unwrap();
    for next in ["--tunnel-by kernel", "--tunnel-by own"] {
        bed.start_agent("--tunnel-by kernel").unwrap();
        bed.end_agent("KILL").unwrap();
        let left = bed.state().unwrap();
        assert!(left.contains("swtun1") && left.contains(":15B3"), "{left}");
        bed.start_agent(next).unwrap();
        bed.ask(3).unwrap();
        let log = bed.agent_log().unwrap();
        assert!(log.contains("swtun1 was left by a process that was killed"), "{log}");
        assert_eq!(bed.end_agent("TERM").unwrap(), 0, "{log}");
        assert_eq!(bed.state().unwrap(), before, "{next}");
    }
}

#[test]
fn another_file_changes_the_devices_and_restricted_senders_have_none() {
    if !possible() {
        return;
    }
    let mut bed = Bed::build().unwrap();
    let [v4, v6] = server();
    let before = bed.state().unwrap();
    bed.configure(&config(v4, IPIP)).unwrap();
    bed.start_agent("").unwrap();
    bed.ask(3).unwrap();
    for (times, (server, tunnel, devices)) in
        [(v4, GUE, 2), (v6, "{ type = \"gre\", checksum = \"csum\" }", 1)].into_iter().enumerate()
    {
        bed.configure(&config(server, tunnel)).unwrap();
        bed.signal("HUP").unwrap();
        bed.wait_for_agent("the file has been read again", times + 1).unwrap();
        bed.ask(3).unwrap();
        assert_eq!(bed.received("swtun").unwrap().len(), devices, "{tunnel}");
    }
    let restricted = config(v4, IPIP) + "from = [\"10.77.0.0/24\", \"fd77::/64\"]\n";
    bed.configure(&restricted).unwrap();
    bed.signal("HUP").unwrap();
    bed.wait_for_agent("the file has been read again", 3).unwrap();
    bed.ask(3).unwrap();
    let status = bed.status().unwrap();
    assert!(status.contains("ipip by the agent (switchyard0): delivered "), "{status}");
    let log = bed.agent_log().unwrap();
    assert!(log.contains("its devices take what comes from anybody (from)"), "{log}");
    assert!(!log.contains("arrives twice"), "{log}");
    assert_eq!(bed.end_agent("TERM").unwrap(), 0);
    assert_eq!(bed.state().unwrap(), before);
    // The module has brought `tunl0` along. Up, it would unpack the same packets.
    bed.guest.must("ip link set tunl0 up").unwrap();
    bed.start_agent("").unwrap();
    bed.ask(3).unwrap();
    assert_eq!(bed.received("tunl0").unwrap(), [("tunl0".to_owned(), 0)]);
    assert_eq!(bed.end_agent("TERM").unwrap(), 0);
}

/// Once a module is loaded the kernel refuses what no device of its own takes, although the agent
/// has it: clients would be told so.
#[test]
fn what_the_agent_unpacks_is_not_refused_by_modules_that_are_loaded() {
    if !possible() {
        return;
    }
    let mut bed = Bed::build().unwrap();
    let before = bed.state().unwrap();
    let modules = "ipip sit ip6_tunnel ip_gre ip6_gre";
    bed.guest.must(&format!("modprobe -d /run/root -a {modules}")).unwrap();
    for family in server() {
        for tunnel in [IPIP, "\"gre\"", "{ type = \"gre\", checksum = \"csum\" }", GUE] {
            bed.configure(&config(family, tunnel)).unwrap();
            bed.start_agent("--tunnel-by own").unwrap();
            bed.ask(3).unwrap_or_else(|error| panic!("{tunnel} to {family}: {error:#}"));
            let director = bed.director.as_ref().unwrap();
            assert_eq!(director.verdicts("tunnel_error").unwrap(), 0, "{tunnel} to {family}");
            assert_eq!(bed.end_agent("TERM").unwrap(), 0);
            assert_eq!(bed.state().unwrap(), before, "{tunnel} to {family}");
        }
    }
}

#[test]
fn a_port_for_gue_that_is_taken_is_told_and_stays_with_who_has_it() {
    if !possible() {
        return;
    }
    let mut bed = Bed::build().unwrap();
    let [v4, _] = server();
    bed.configure(&config(v4, GUE)).unwrap();
    bed.guest.must("modprobe -d /run/root fou && ip fou add port 5555 gue").unwrap();
    let before = bed.state().unwrap();
    for arguments in ["--tunnel-by kernel", ""] {
        bed.launch_agent(arguments).unwrap();
        assert_eq!(bed.ended_agent().unwrap(), 1);
        let log = bed.agent_log().unwrap();
        assert!(log.contains("ip fou show"), "{log}");
        assert_eq!(bed.state().unwrap(), before);
    }
    // A file that is read again does not end an agent that runs, nor what it unpacks.
    bed.configure(&config(v4, IPIP)).unwrap();
    bed.start_agent("").unwrap();
    bed.configure(&config(v4, GUE)).unwrap();
    bed.signal("HUP").unwrap();
    bed.wait_for_agent("the file has been read again", 1).unwrap();
    let log = bed.agent_log().unwrap();
    assert!(log.contains("the tunnels stay as they were") && log.contains("ip fou show"), "{log}");
    bed.configure(&config(v4, IPIP)).unwrap();
    bed.ask(3).unwrap();
    assert_eq!(bed.end_agent("TERM").unwrap(), 0);
    assert_eq!(bed.state().unwrap(), before);
}

#[test]
fn without_a_file_every_address_of_the_host_is_an_end_of_the_tunnels() {
    if !possible() {
        return;
    }
    let mut bed = Bed::build().unwrap();
    let before = bed.state().unwrap();
    let vips = format!("--tunnel-by kernel --vip {VIP_V4} --vip {VIP_V6}");
    let csum = "{ type = \"gre\", checksum = \"csum\" }";
    for (tunnel, said, devices) in [(IPIP, "ipip", 3), (csum, "gre:csum", 2), (GUE, "gue:5555", 3)]
    {
        bed.run_agent(&format!("{vips} --tunnel {said}")).unwrap();
        bed.wait_until_ready().unwrap();
        for family in server() {
            bed.configure(&config(family, tunnel)).unwrap();
            bed.ask(3).unwrap_or_else(|error| panic!("{said} to {family}: {error:#}"));
        }
        assert_eq!(bed.received("swtun").unwrap().len(), devices, "{said}");
        assert_eq!(bed.end_agent("TERM").unwrap(), 0);
        assert_eq!(bed.state().unwrap(), before, "{said}");
    }
    bed.run_agent(&format!("{vips} --tunnel gre")).unwrap();
    assert_eq!(bed.ended_agent().unwrap(), 1);
    let log = bed.agent_log().unwrap();
    assert!(log.contains("which comes is not said (gre:csum, gre:nocsum)"), "{log}");
    assert_eq!(bed.state().unwrap(), before);
}
