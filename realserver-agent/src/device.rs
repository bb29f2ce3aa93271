//! The TUN device through which unpacked packets enter the host's IP stack.

use std::io;

use anyhow::{Context, Result};
use netio::tun::{Layer, Tun};

use crate::tunnel::Sink;

/// A TUN device, as long as this value lives.
#[derive(Debug)]
pub struct Device {
    tun: Tun,
}

impl Sink for Device {
    fn write(&self, packet: &[u8]) -> io::Result<()> {
        self.tun.send(packet)
    }
}

/// Opens the device `name`, still down.
///
/// # Errors
/// When the kernel has no TUN, `CAP_NET_ADMIN` is missing, or the name is taken.
pub fn open(name: &str) -> Result<Device> {
    let tun = Tun::open(name, Layer::Ip, false).with_context(|| {
        format!(
            "open the TUN device {name}: /dev/net/tun (modprobe tun) and CAP_NET_ADMIN are \
             needed, and no other program may hold a device of this name (--device)"
        )
    })?;
    Ok(Device { tun })
}
