//! The boot nonce: which life of this host it is.

use sha2::{Digest, Sha256};

/// The kernel's own name for this life of the host, at random.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// The nonce: the same as long as the host runs, however often the agent starts, and another one
/// after a reboot. It tells nothing of the host's boot id, which programs may use as a secret.
/// Network namespaces of one machine have the same.
///
/// # Errors
/// When the kernel does not tell its boot id.
pub fn nonce() -> std::io::Result<u64> {
    std::fs::read_to_string(BOOT_ID).map(|id| derive(id.trim()))
}

fn derive(id: &str) -> u64 {
    let digest = Sha256::new().chain_update(b"switchyard boot nonce ").chain_update(id).finalize();
    let mut first = [0; 8];
    first.copy_from_slice(&digest[..8]);
    u64::from_be_bytes(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nonce_outlives_the_agent_and_not_the_host() {
        assert_eq!(nonce().unwrap(), nonce().unwrap());
        assert_ne!(derive("0e3a1f0a-1"), derive("0e3a1f0a-2"));
    }
}
