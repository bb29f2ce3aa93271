//! vsftpd on a host of the lab: one process in the foreground for each address, all its files in one
//! folder.

use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::lab::{Host, Lab, Process};
use crate::nginx;

/// The port of control connections.
const FTP: u16 = 21;

/// What is the same wherever it runs.
const VSFTPD: &str = "
background=NO
listen=IPV4
listen_ipv6=IPV6
listen_address=ADDRESS
listen_address6=ADDRESS
anonymous_enable=YES
anon_root=FOLDER/files
anon_upload_enable=YES
anon_umask=022
no_anon_password=YES
write_enable=YES
connect_from_port_20=YES
seccomp_sandbox=NO
isolate_network=NO
secure_chroot_dir=FOLDER/empty
vsftpd_log_file=FOLDER/log
";

/// Makes the folder of the vsftpd on `host`: `files/file` to fetch, with these contents, and
/// `files/incoming` to store in.
///
/// # Errors
/// When it cannot be made, or is there already.
pub fn prepare(lab: &Lab, host: &Host, contents: &[u8]) -> Result<PathBuf> {
    let folder = lab.logs().join(format!("vsftpd-{}", host.name()));
    let incoming = folder.join("files/incoming");
    std::fs::create_dir_all(&incoming)?;
    std::fs::create_dir(folder.join("empty"))?;
    std::fs::set_permissions(&incoming, PermissionsExt::from_mode(0o777))?;
    std::fs::write(folder.join("files/file"), contents)?;
    Ok(folder)
}

/// Starts vsftpd on `host` for one of its addresses, and waits until it accepts connections.
///
/// # Errors
/// When it does not start; the error shows its log.
pub fn start(server: &Host, folder: &Path, address: IpAddr) -> Result<Process> {
    let family = if address.is_ipv4() { "4" } else { "6" };
    let config = folder.join(format!("vsftpd{family}.conf"));
    let yes_or_no = |yes| if yes { "YES" } else { "NO" };
    let other = if address.is_ipv4() { "listen_address6" } else { "listen_address" };
    let text = VSFTPD
        .replace("FOLDER", &folder.to_string_lossy())
        .replace("ADDRESS", &address.to_string())
        .replace("IPV4", yes_or_no(address.is_ipv4()))
        .replace("IPV6", yes_or_no(address.is_ipv6()));
    let lines = text.lines().filter(|line| !line.starts_with(&format!("{other}=")));
    std::fs::write(&config, lines.collect::<Vec<_>>().join("\n"))?;
    let process = server.command("/usr/sbin/vsftpd").arg(&config).spawn()?;
    nginx::wait_for(server, SocketAddr::new(address, FTP), &process)?;
    Ok(process)
}
