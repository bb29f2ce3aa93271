//! Every command with every option, and every option twice: which goes with which, and what is said
//! when it does not. The lists are written here once more, not taken from the program under test.

use super::Section;
use super::case::Case;

/// A command with what it cannot be without.
const COMMANDS: &[(&str, &str)] = &[
    ("-A", "-t 10.0.1.1:80"),
    ("-E", "-t 10.0.0.1:80"),
    ("-D", "-t 10.0.1.1:80"),
    ("-C", ""),
    ("-R", ""),
    ("-S", ""),
    ("-a", "-t 10.0.0.1:80 -r 10.0.1.11"),
    ("-e", "-t 10.0.0.1:80 -r 10.0.0.11"),
    ("-d", "-t 10.0.0.1:80 -r 10.0.1.11"),
    ("-L", ""),
    ("-Z", ""),
    ("--set", "900 120 300"),
    // A daemon that starts is no part of this: ours has none.
    ("--start-daemon", "master --mcast-interface"),
    ("--stop-daemon", "master"),
];

/// Options with good values.
const OPTIONS: &[&str] = &[
    "-n",
    "-c",
    "-t 10.0.0.1:80",
    "-u 10.0.0.1:80",
    "--sctp-service 10.0.0.1:80",
    "-f 7",
    "-s rr",
    "-p 300",
    "-M 255.255.255.0",
    "-r 10.0.0.11",
    "-g",
    "-i",
    "-m",
    "-w 3",
    "-x 100",
    "-y 50",
    "--mcast-interface lo",
    "--timeout",
    "--daemon",
    "--stats",
    "--rate",
    "--thresholds",
    "--persistent-conn",
    "--nosort",
    "--sort",
    "--syncid 3",
    "-X",
    "-o",
    "--pe sip",
    "-b flag-1",
    "--mcast-group 224.0.0.82",
    "--mcast-port 8849",
    "--mcast-ttl 2",
    "--sync-maxlen 1400",
    "--tun-info",
    "--tun-type gue",
    "--tun-port 6080",
    "--tun-nocsum",
    "--tun-csum",
    "--tun-remcsum",
    "-6",
];

const TABLE: &[&str] = &[
    "ipvsadm -C",
    "ipvsadm -A -t 10.0.0.1:80",
    "ipvsadm -a -t 10.0.0.1:80 -r 10.0.0.11 -m",
    "ipvsadm -A -u 10.0.0.1:80",
    "ipvsadm -A -f 7",
];

pub(super) fn sections() -> Vec<Section> {
    vec![
        Section { name: "every command with every option", quick: false, cases: with_options() },
        Section { name: "every command without what it needs", quick: false, cases: without() },
        Section { name: "every option twice", quick: false, cases: twice() },
        Section { name: "every command with every other", quick: false, cases: with_commands() },
        Section { name: "every listing with every other", quick: false, cases: listings() },
    ]
}

fn table() -> impl Iterator<Item = Case> {
    TABLE.iter().copied().map(Case::new)
}

fn with_options() -> Vec<Case> {
    let mut cases = Vec::new();
    for (command, needs) in COMMANDS {
        cases.extend(table());
        for option in OPTIONS {
            // What may start a daemon is asked for on no interface at all.
            // The order of services is the kernel's, and differs from start to start.
            if *command == "-L" && *option == "--nosort" {
                continue;
            }
            let legal_for_a_daemon = ["--mcast", "--sync", "--sort", "-6"];
            if *command == "--start-daemon"
                && legal_for_a_daemon.iter().any(|start| option.starts_with(start))
            {
                continue;
            }
            let needs = needs.trim_end_matches(" --mcast-interface");
            cases.push(Case::new(format!("ipvsadm {command} {needs} {option}")));
        }
        cases.push(Case::new("ipvsadm -Sn"));
    }
    cases
}

fn without() -> Vec<Case> {
    let needed = ["", "-t 10.0.0.1:80", "-r 10.0.0.11", "-f 7", "-p", "-w 1", "--tun-type gre"];
    let alone = COMMANDS.iter().flat_map(|(command, _)| {
        let command = command.to_owned();
        needed.iter().map(move |option| Case::new(format!("ipvsadm {command} {option}")))
    });
    // Alone, these two would start a daemon or stop one.
    let alone = alone.filter(|case| !case.line.contains("daemon"));
    table().chain(alone).collect()
}

fn twice() -> Vec<Case> {
    let mut cases: Vec<Case> = table().collect();
    for option in OPTIONS {
        let command = match option.split(' ').next().unwrap_or_default() {
            "-s" | "-p" | "-M" | "-o" | "--pe" | "-b" => "-A -u 10.0.2.1:80",
            "-g" | "-i" | "-m" | "-w" | "-x" | "-y" | "-r" | "--tun-type" | "--tun-port"
            | "--tun-nocsum" | "--tun-csum" | "--tun-remcsum" => "-a -t 10.0.0.1:80",
            "--mcast-interface" | "--mcast-group" | "--mcast-port" | "--mcast-ttl"
            | "--sync-maxlen" => "--start-daemon master",
            "-6" => "-L -f 7",
            _ => "-L",
        };
        cases.push(Case::new(format!("ipvsadm {command} {option} {option}")));
    }
    for pair in ["-g -i", "-i -m", "-m -g", "-t 10.0.0.1:80 -u 10.0.0.1:80", "-f 7 -t 10.0.0.1:80"]
    {
        cases.push(Case::new(format!("ipvsadm -a {pair}")));
    }
    cases.push(Case::new("ipvsadm -Sn"));
    cases
}

fn with_commands() -> Vec<Case> {
    let mut cases: Vec<Case> = table().collect();
    for (first, needs) in COMMANDS.iter().filter(|(first, _)| !first.contains("daemon")) {
        for (second, _) in COMMANDS {
            let value = if second.contains("daemon") { " backup" } else { "" };
            cases.push(Case::new(format!("ipvsadm {first} {needs} {second}{value}")));
        }
    }
    for second in ["-h", "--help", "-v", "--version", "-l"] {
        cases.push(Case::new(format!("ipvsadm -L {second}")));
    }
    cases
}

fn listings() -> Vec<Case> {
    let options = [
        "-c",
        "--timeout",
        "--daemon",
        "--stats",
        "--rate",
        "--thresholds",
        "--persistent-conn",
        "--tun-info",
        "-t 10.0.0.1:80",
        "-X",
        "--nosort",
    ];
    // Without sorting a kernel's order of several services differs from start to start.
    let mut cases: Vec<Case> = table().filter(|case| !case.line.contains("-u ")).collect();
    for (place, first) in options.iter().enumerate() {
        for second in &options[place + 1..] {
            cases.push(Case::new(format!("ipvsadm -L -n {first} {second}")));
        }
    }
    cases
}
