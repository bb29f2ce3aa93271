//! The network once, for tools that look and go: no follower, no runtime of the caller's.

use super::{Network, NetworkError, dump};

/// The kernel's tables as they were a moment ago.
#[derive(Debug)]
pub struct Snapshot {
    /// Interfaces, addresses, routes and neighbours.
    pub network: Network,
    /// Policy routing rules beyond the kernel's own three, which nobody here follows.
    pub foreign_rules: usize,
}

impl Snapshot {
    /// Reads the tables of the calling thread's namespace. Blocks; not to be called from within a
    /// tokio runtime.
    ///
    /// # Errors
    /// When the kernel cannot be spoken to over netlink.
    pub fn take() -> Result<Snapshot, NetworkError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(NetworkError::Open)?;
        runtime.block_on(async {
            let (connection, handle, _) =
                rtnetlink::new_connection().map_err(NetworkError::Open)?;
            let connection = tokio::spawn(connection);
            let network = dump::network(&handle).await.map_err(NetworkError::Read)?;
            let foreign_rules = dump::foreign_rules(&handle).await.unwrap_or(0);
            connection.abort();
            Ok(Snapshot { network, foreign_rules })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Snapshot;

    #[test]
    fn every_namespace_has_a_loopback() {
        let snapshot = Snapshot::take().unwrap();
        assert_eq!(snapshot.network.interface_by_name("lo").map(|lo| lo.index), Some(1));
    }
}
