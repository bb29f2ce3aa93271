//! nginx on a host of the lab: one process in the foreground, all its files in one folder.

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::lab::{Host, Lab, Process};

/// What is the same wherever it runs.
const CONFIG: &str = "
daemon off;
master_process off;
pid FOLDER/pid;
error_log stderr warn;
events { worker_connections 2048; }
http {
    access_log off;
    client_body_temp_path FOLDER/body;
    proxy_temp_path FOLDER/proxy;
    fastcgi_temp_path FOLDER/fastcgi;
    uwsgi_temp_path FOLDER/uwsgi;
    scgi_temp_path FOLDER/scgi;
    server {
        listen 0.0.0.0:PORT backlog=2048;
        listen [::]:PORT ipv6only=on backlog=2048;
        root FOLDER;
        default_type text/plain;
        add_header X-Server NAME always;
        LINES
    }
}
";

/// What one site is.
#[derive(Clone, Debug)]
pub struct Site {
    /// Where it listens, on all addresses.
    pub port: u16,
    /// Further lines of the `server` block.
    pub lines: String,
    /// Its files: name and content.
    pub files: Vec<(&'static str, String)>,
}

/// The folder of the nginx on `host`, whose files are served: a test may change them.
pub fn folder(lab: &Lab, host: &Host) -> PathBuf {
    lab.logs().join(format!("nginx-{}", host.name()))
}

/// Starts nginx on `host` and waits until it accepts connections. Every answer names the host in
/// `X-Server`. It may be started again after it has ended.
///
/// # Errors
/// When it does not start; the error shows its log.
pub fn start(lab: &Lab, host: &Host, site: &Site) -> Result<Process> {
    let folder = folder(lab, host);
    std::fs::create_dir_all(&folder)?;
    for (name, content) in &site.files {
        std::fs::write(folder.join(name), content)?;
    }
    let config = folder.join("nginx.conf");
    let text = CONFIG
        .replace("LINES", &site.lines)
        .replace("FOLDER", &folder.to_string_lossy())
        .replace("PORT", &site.port.to_string())
        .replace("NAME", host.name());
    std::fs::write(&config, text)?;
    // Debian's nginx looks for its log before it reads the configuration: -e says where.
    let process = host
        .command("/usr/sbin/nginx")
        .args(["-e", "stderr", "-p"])
        .arg(&folder)
        .arg("-c")
        .arg(&config)
        .spawn()?;
    wait_for_tcp(host, site.port, &process)?;
    Ok(process)
}

/// Waits until something accepts TCP connections on a port of `host`.
///
/// # Errors
/// When nothing does within ten seconds, or `process` has ended; the error shows its log.
pub fn wait_for_tcp(host: &Host, port: u16, process: &Process) -> Result<()> {
    wait_for(host, SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port), process)
}

/// Waits until something accepts TCP connections at `target` inside `host`.
///
/// # Errors
/// As [`wait_for_tcp`].
pub fn wait_for(host: &Host, target: SocketAddr, process: &Process) -> Result<()> {
    let deadline = Instant::now() + Duration::from_secs(10);
    while host.run(|| TcpStream::connect(target))?.is_err() {
        if !process.is_running()? || Instant::now() > deadline {
            bail!("{} does not serve {target}:\n{}", process.title(), process.log());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}
