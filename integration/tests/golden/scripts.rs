//! The two scripts of the package `ipvsadm`, unchanged, over our command.
//!
//! They set a search path of their own, so that being first in the caller's is not enough: ours has to
//! stand where the real one does, as `docs/ipvsadm.md` says.

use std::io::Write;
use std::time::Duration;

use anyhow::{Result, ensure};
use integration::lab::{Host, Lab};
use integration::programs;
use integration::running::Director;

use crate::possible;

const RULES: &str = "\
-A -t 192.0.2.10:80 -s wrr -p 300 -M 255.255.255.0
-a -t 192.0.2.10:80 -r 10.77.0.11:80 -g -w 3
-a -t 192.0.2.10:80 -r 10.77.0.12:80 -i -w 1 --tun-type gue --tun-port 6080 --tun-csum
-A -u [2001:db8:1::10]:53 -s rr -o
-a -u [2001:db8:1::10]:53 -r [fd77::11]:5353 -m -w 1
-A -f 7 -s mh -b mh-fallback,mh-port
-a -f 7 -r 10.77.0.11:0 -g -w 1
";

/// Runs a line of shell where our command has taken the real one's place.
fn shell(host: &Host, director: &Director, line: &str) -> Result<String> {
    let ours = "mount --bind \"$0\" /usr/sbin/ipvsadm && exec bash -c \"$1\"";
    let output = host
        .command("unshare")
        .args(["--mount", "sh", "-c", ours])
        .arg(programs::path("ipvsadm")?)
        .arg(line)
        .env("SWITCHYARD_SOCKET", director.socket())
        .output(Duration::from_secs(20))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success() && said.is_empty(), "{line}: {} {said}", output.status);
    Ok(String::from_utf8(output.stdout)?)
}

/// Everything that a service may have, in the order in which it is to be added.
const FULL: &str = "\
--set 1000 100 200
-A -f 9 -s sh -b flag-1,flag-3
-A -t 192.0.2.10:80 -s rr -p 300 --service-timeouts 7200,0,0 --gone-server reschedule --no-destination rst --leave-quiesced --mss-clamp 1400
-a -t 192.0.2.10:80 -r 10.77.0.12:80 -g -w 3 -x 100 -y 50
-a -t 192.0.2.10:80 -r 10.77.0.11:80 -g -w 3
-A -t 192.0.2.9:80 -s wlc --mss-clamp route --bias ilb:2 --bias-window 500 --teardown eager
-A -t 192.0.2.8:80 -s mh -b flag-2 --hash-key tuple
-A -u 192.0.2.8:53 -s dht -o --hash-key dns-name --sticky --variants 64
-A -t 192.0.2.7:80 -s dht -b flag-1,flag-2 --hash-key destination
";

#[test]
fn all_that_a_service_has_is_saved_and_rebuilt_quick() {
    if !possible() {
        return;
    }
    let lab = Lab::new("full").unwrap();
    let (host, wire) = (lab.host("director").unwrap(), lab.segment("wire").unwrap());
    lab.connect(&host, &wire, "eth0", &["192.0.2.1/24"]).unwrap();
    let config = "mode = \"dispatcher\"\ninterfaces = [\"eth0\"]\n";
    let director = Director::start(&lab, &host, config).unwrap();
    let file = lab.logs().join("rules");
    std::fs::write(&file, FULL).unwrap();
    let restore = format!("ipvsadm -R < {}", file.display());
    assert_eq!(shell(&host, &director, &restore).unwrap(), "");
    assert_eq!(director.ipvsadm(&["-S", "--full"]).unwrap(), FULL);
    let before = director.services().unwrap();
    let again = format!(
        "ipvsadm -S --full > {0} && ipvsadm -C && ipvsadm -R < {0}",
        file.with_extension("again").display()
    );
    assert_eq!(shell(&host, &director, &again).unwrap(), "");
    assert_eq!(director.services().unwrap(), before);
    director.stop().unwrap();
}

#[test]
fn save_and_restore_scripts_work_unchanged_quick() {
    if !possible() {
        return;
    }
    let lab = Lab::new("scripts").unwrap();
    let (host, wire) = (lab.host("director").unwrap(), lab.segment("wire").unwrap());
    lab.connect(&host, &wire, "eth0", &["192.0.2.1/24"]).unwrap();
    let config = "mode = \"dispatcher\"\ninterfaces = [\"eth0\"]\n";
    let director = Director::start(&lab, &host, config).unwrap();
    let file = lab.logs().join("rules");

    // What is there is cleared first, comments are for people.
    std::fs::write(&file, format!("# saved\n{RULES}# end\n")).unwrap();
    director.ipvsadm(&["-A", "-t", "192.0.2.99:80"]).unwrap();
    let line = format!("ipvsadm-restore < {}", file.display());
    assert_eq!(shell(&host, &director, &line).unwrap(), "");
    assert_eq!(director.ipvsadm(&["-Sn"]).unwrap(), RULES);
    assert_eq!(shell(&host, &director, "ipvsadm-save -n").unwrap(), RULES);
    let named = shell(&host, &director, "ipvsadm-save").unwrap();
    assert!(named.starts_with("-A -t 192.0.2.10:http -s wrr -p 300 -M 255.255.255.0\n"), "{named}");
    let again = "ipvsadm-save -n | ipvsadm-restore && ipvsadm-save -n";
    assert_eq!(shell(&host, &director, again).unwrap(), RULES);
    director.stop().unwrap();
}

#[test]
fn ten_thousand_services_are_replaced_as_a_whole_or_not_at_all() {
    if !possible() {
        return;
    }
    let lab = Lab::new("atomic").unwrap();
    let (host, wire) = (lab.host("director").unwrap(), lab.segment("wire").unwrap());
    lab.connect(&host, &wire, "eth0", &["192.0.2.1/24"]).unwrap();
    let config = "mode = \"dispatcher\"\ninterfaces = [\"eth0\"]\n";
    let director = Director::start(&lab, &host, config).unwrap();
    director.ipvsadm(&["-A", "-t", "192.0.2.10:80"]).unwrap();
    let mut rules = String::from("-C\n");
    for service in 0..10_000 {
        let key = format!("-t 198.18.{}.{}:80", service / 200, service % 200 + 1);
        rules.push_str(&format!("-A {key} -s wlc\n"));
        for server in 1..=10 {
            rules.push_str(&format!("-a {key} -r 10.77.{}.{server}:80 -m -w 1\n", service % 250));
        }
    }
    let (whole, broken) = (lab.logs().join("whole"), lab.logs().join("broken"));
    std::fs::write(&whole, &rules).unwrap();
    std::fs::write(&broken, rules + "-A -f 1\n-A -f 1\n").unwrap();

    let before = director.services().unwrap();
    let refused = shell(&host, &director, &format!("ipvsadm -R --atomic < {}", broken.display()));
    let complaint = refused.unwrap_err().to_string();
    assert!(complaint.contains("line 110003: Service already exists"), "{complaint}");
    assert_eq!(director.services().unwrap(), before);

    let timed = |line: &str| {
        let start = std::time::Instant::now();
        let output = shell(&host, &director, line).unwrap();
        let _ = writeln!(std::io::stderr(), "{:.2} s: {line}", start.elapsed().as_secs_f64());
        output
    };
    timed(&format!("ipvsadm -R --atomic < {}", whole.display()));
    assert_eq!(timed("ipvsadm -Ln | wc -l").trim(), (3 + 110_000).to_string());
    assert_eq!(timed("ipvsadm -Ln --nosort --stats | wc -l").trim(), (3 + 110_000).to_string());
    let saved = timed("ipvsadm -Sn");
    let mut lines: Vec<&str> = saved.lines().collect();
    lines.sort_unstable();
    let mut expected: Vec<String> =
        std::fs::read_to_string(&whole).unwrap().lines().skip(1).map(str::to_owned).collect();
    expected.sort_unstable();
    assert!(lines == expected, "{} and {} lines", lines.len(), expected.len());
    timed("ipvsadm -C");
    timed(&format!("ipvsadm -R < {}", whole.display()));
    assert_eq!(timed("ipvsadm -Sn | wc -l").trim(), "110000");
    director.stop().unwrap();
}
