//! Why the filter could not be made, attached or changed.

use netio::bpf::{AttachError, LoadError, MapError};

/// Why the filter could not be made, attached or changed. Each says what to do.
#[derive(Debug, thiserror::Error)]
pub enum FilterError {
    /// More addresses than there is room for. Nothing was changed.
    #[error(
        "the hosts have {given} addresses of their own, but the filter has room for {most}: let \
         them tell each other fewer"
    )]
    TooManyAddresses {
        /// Addresses of this host and its peers.
        given: usize,
        /// How many there may be.
        most: usize,
    },
    /// A map could not be made or written.
    #[error(transparent)]
    Map(#[from] MapError),
    /// A program could not be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A program could not be put on the interface.
    #[error(transparent)]
    Attach(#[from] AttachError),
}
