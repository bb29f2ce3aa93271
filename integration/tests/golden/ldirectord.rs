//! ldirectord, unmodified, with our `ipvsadm` where it looks for the real one: it makes the services,
//! quiets or removes a server whose nginx has ended, takes it back, and says so in its status.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use integration::lab::{Host, Process};
use integration::programs;
use integration::running::Director;
use integration::topology::{Kind, Options, Topology, VIP_V4, server_addresses};
use nix::sys::signal::Signal;

use crate::possible;

const LDIRECTORD: &str = "/usr/sbin/ldirectord";
const NGINX: &str = "/usr/sbin/nginx";

/// A failed server is quieted on the first service and removed from the second.
const CONFIGURATION: &str = "
checktimeout = 3
checkinterval = 1
autoreload = no
logfile = \"FOLDER/ldirectord.log\"

virtual = VIP:80
    real = 10.77.0.11:80 masq 3
    real = 10.77.0.12:80 masq 2
    service = http
    scheduler = wrr
    protocol = tcp
    checktype = negotiate
    request = \"page\"
    receive = \"served\"
    quiescent = yes

virtual = VIP:8080
    real = 10.77.0.11:80 masq
    real = 10.77.0.12:80 masq
    service = http
    scheduler = rr
    protocol = tcp
    checktype = connect
    quiescent = no
";

const NGINX_CONFIGURATION: &str = "
daemon off;
master_process off;
pid FOLDER/pid;
error_log stderr warn;
events { worker_connections 64; }
http {
    access_log off;
    client_body_temp_path FOLDER/body;
    proxy_temp_path FOLDER/proxy;
    fastcgi_temp_path FOLDER/fastcgi;
    uwsgi_temp_path FOLDER/uwsgi;
    scgi_temp_path FOLDER/scgi;
    server { listen 80; root FOLDER; default_type text/plain; }
}
";

/// What is waited for takes a few checks of a second each; a busy machine takes longer.
const PATIENCE: Duration = Duration::from_secs(60);

fn nginx(topology: &Topology, server: &Host) -> Result<Process> {
    let folder = topology.lab.logs().join(format!("nginx-{}", server.name()));
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join("page"), format!("served by {}\n", server.name()))?;
    let configuration = folder.join("nginx.conf");
    let text = NGINX_CONFIGURATION.replace("FOLDER", &folder.to_string_lossy());
    std::fs::write(&configuration, text)?;
    server
        .command(NGINX)
        .args(["-e", "stderr", "-p"])
        .arg(&folder)
        .arg("-c")
        .arg(&configuration)
        .spawn()
}

/// ldirectord, a daemon of its own once it is started, and the file that tells it from all others on
/// the machine. Dropping this stops it.
struct Ldirectord<'a> {
    director: &'a Director,
    host: &'a Host,
    configuration: PathBuf,
    log: PathBuf,
}

impl Ldirectord<'_> {
    /// Exit code and output of a call, in a place where `/usr/sbin/ipvsadm` is ours.
    fn call(&self, command: &str) -> Result<(i32, String)> {
        let ours = "mount --bind \"$0\" /usr/sbin/ipvsadm && exec \"$@\"";
        let output = self
            .host
            .command("unshare")
            .args(["--mount", "sh", "-c", ours])
            .arg(programs::path("ipvsadm")?)
            .arg(LDIRECTORD)
            .arg(&self.configuration)
            .arg(command)
            .env("SWITCHYARD_SOCKET", self.director.socket())
            .output(PATIENCE)?;
        let said = [output.stdout, output.stderr].concat();
        Ok((output.status.code().unwrap_or(-1), String::from_utf8_lossy(&said).into_owned()))
    }

    fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Its process, which it writes to this file and removes when it ends in order.
    fn pid_file(&self) -> PathBuf {
        let name = self.configuration.file_stem().unwrap_or_default().to_string_lossy();
        PathBuf::from(format!("/var/run/ldirectord.{name}.pid"))
    }

    /// Waits until `-Sn` is `expected`.
    fn wait_for(&self, what: &str, expected: &[&str]) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let rules = self.director.ipvsadm(&["-Sn"])?;
            let found: Vec<&str> = rules.lines().collect();
            if found == expected {
                return Ok(());
            }
            if Instant::now() > deadline {
                bail!("{what}: the table is\n{rules}\nldirectord says:\n{}", self.log());
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for Ldirectord<'_> {
    fn drop(&mut self) {
        if self.pid_file().exists() {
            // Nothing but an unfinished test comes here; its own failure is the one to read.
            let _ = self.call("stop");
        }
    }
}

/// Which servers answer four requests of the client.
fn answers(client: &Host, port: u16) -> Result<Vec<String>> {
    use std::io::{Read, Write};
    let vip = SocketAddr::new(VIP_V4, port);
    let mut found = client.run(|| -> Result<Vec<String>> {
        let fetch = || -> Result<String> {
            let mut stream = std::net::TcpStream::connect_timeout(&vip, PATIENCE)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.write_all(b"GET /page HTTP/1.0\r\n\r\n")?;
            let mut text = String::new();
            stream.read_to_string(&mut text)?;
            let (_, server) = text.rsplit_once("served by ").context("an odd answer")?;
            Ok(server.trim().to_owned())
        };
        (0..4).map(|_| fetch()).collect()
    })??;
    found.sort();
    found.dedup();
    Ok(found)
}

/// What the client has left in the table can be asked for by its ends.
fn connections_are_filtered(director: &Director) -> Result<()> {
    let count = |conditions: &[&str]| -> Result<usize> {
        let listing = director.ipvsadm(&[&["-Lnc"], conditions].concat())?;
        Ok(listing.lines().count() - 2)
    };
    let all = count(&[])?;
    ensure!(all >= 8, "only {all} connections");
    ensure!(count(&["--client", "192.0.2.0/24"])? == all, "all are the client's");
    ensure!(count(&["--client", "10.0.0.0/8"])? == 0, "none is a server's");
    let ports = count(&["--service", "192.0.2.10:80/tcp"])?;
    ensure!(ports >= 4 && ports < all, "{ports} of {all} to port 80");
    let servers = [count(&["--server", "10.77.0.11"])?, count(&["--server", "10.77.0.12:80"])?];
    ensure!(servers[0] > 0 && servers[0] + servers[1] == all, "{servers:?} of {all}");
    let json = director.ipvsadm(&["-Lc", "--json", "--server", "10.77.0.11"])?;
    let json: Vec<serde_json::Value> = serde_json::from_str(&json)?;
    ensure!(json.len() == servers[0] && json[0]["server"] == "10.77.0.11:80", "{json:?}");
    Ok(())
}

fn scenario(topology: &Topology, ldirectord: &Ldirectord<'_>) -> Result<()> {
    let mut servers = Vec::new();
    for server in &topology.servers {
        servers.push(nginx(topology, server)?);
    }
    let (code, said) = ldirectord.call("status")?;
    ensure!(code != 0, "status before it runs: {code} {said}");

    let (code, said) = ldirectord.call("start")?;
    ensure!(code == 0, "start: {code} {said}");
    let whole = [
        "-A -t 192.0.2.10:80 -s wrr",
        "-a -t 192.0.2.10:80 -r 10.77.0.11:80 -m -w 3",
        "-a -t 192.0.2.10:80 -r 10.77.0.12:80 -m -w 2",
        "-A -t 192.0.2.10:8080 -s rr",
        "-a -t 192.0.2.10:8080 -r 10.77.0.11:80 -m -w 1",
        "-a -t 192.0.2.10:8080 -r 10.77.0.12:80 -m -w 1",
    ];
    ldirectord.wait_for("services appear", &whole)?;
    for port in [80, 8080] {
        ensure!(answers(&topology.client, port)? == ["server1", "server2"], "both serve {port}");
    }
    connections_are_filtered(ldirectord.director)?;
    let (code, said) = ldirectord.call("status")?;
    ensure!(code == 0 && said.contains("is running"), "status: {code} {said}");

    servers.remove(0).signal(Signal::SIGTERM)?;
    let degraded = [
        "-A -t 192.0.2.10:80 -s wrr",
        "-a -t 192.0.2.10:80 -r 10.77.0.11:80 -m -w 0",
        "-a -t 192.0.2.10:80 -r 10.77.0.12:80 -m -w 2",
        "-A -t 192.0.2.10:8080 -s rr",
        "-a -t 192.0.2.10:8080 -r 10.77.0.12:80 -m -w 1",
    ];
    ldirectord.wait_for("a server has ended", &degraded)?;
    for port in [80, 8080] {
        ensure!(answers(&topology.client, port)? == ["server2"], "one serves {port}");
    }

    let _again = nginx(topology, &topology.servers[0])?;
    ldirectord.wait_for("it is back", &whole)?;
    for port in [80, 8080] {
        ensure!(answers(&topology.client, port)? == ["server1", "server2"], "both again {port}");
    }

    // It takes away what it has made, and then says that it is gone.
    let (code, said) = ldirectord.call("stop")?;
    ensure!(code == 0, "stop: {code} {said}");
    ldirectord.wait_for("it has been stopped", &[])?;
    let deadline = Instant::now() + PATIENCE;
    while ldirectord.pid_file().exists() {
        ensure!(Instant::now() < deadline, "it does not end:\n{}", ldirectord.log());
        std::thread::sleep(Duration::from_millis(50));
    }
    let (code, said) = ldirectord.call("status")?;
    ensure!(code != 0 && said.contains("is stopped"), "status: {code} {said}");
    Ok(())
}

#[test]
fn ldirectord_checks_and_changes_servers_through_our_command() {
    for program in [LDIRECTORD, NGINX] {
        if !Path::new(program).exists() {
            eprintln!("skipped: there is no {program} (cargo xtask test golden installs it)");
            return;
        }
    }
    if !possible() {
        return;
    }
    let options = Options { servers: 2, ..Options::default() };
    let topology = Topology::build(Kind::Nat, &options).unwrap();
    let config = "mode = \"dispatcher\"\ninterfaces = [\"eth0\"]\n";
    let director = Director::start(&topology.lab, &topology.director, config).unwrap();
    let folder = topology.lab.logs();
    let configuration = folder.join(format!("switchyard-{}.cf", topology.lab.tag()));
    let text = CONFIGURATION
        .replace("FOLDER", &folder.to_string_lossy())
        .replace("VIP", &VIP_V4.to_string());
    std::fs::write(&configuration, text).unwrap();
    assert_eq!(server_addresses(1)[0].to_string(), "10.77.0.11");

    let log = folder.join("ldirectord.log");
    let ldirectord =
        Ldirectord { director: &director, host: &topology.director, configuration, log };
    scenario(&topology, &ldirectord).unwrap_or_else(|error| panic!("{error:#}"));
    drop(ldirectord);
    director.stop().unwrap();
}
