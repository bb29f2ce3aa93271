//! One director per interface: a name in the abstract socket namespace, which belongs to the
//! network namespace and is gone with the process, however it ends.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use anyhow::{Result, bail};

/// Takes the lock of each interface; they are held as long as the value lives.
pub(crate) fn interfaces(names: &[String]) -> Result<Vec<UnixListener>> {
    names.iter().map(|name| interface(name)).collect()
}

fn interface(name: &str) -> Result<UnixListener> {
    let address = SocketAddr::from_abstract_name(format!("switchyard/{name}"))?;
    match UnixListener::bind_addr(&address) {
        Ok(lock) => Ok(lock),
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => bail!(
            "another director already holds interface {name}: stop it first, or give this one \
             other `interfaces`"
        ),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_director_on_the_same_interface_is_told_so() {
        let name = format!("test{}", std::process::id());
        let held = interface(&name).unwrap();
        let refused = interface(&name).unwrap_err().to_string();
        assert!(refused.contains(&name) && refused.contains("another director"), "{refused}");
        drop(held);
        interface(&name).unwrap();
    }
}
