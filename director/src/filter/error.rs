//! Why the filter could not be made, attached or changed.

use netio::bpf::{AttachError, LoadError, MapError};

/// Why the filter could not be made, attached or changed. Each says what to do.
#[derive(Debug, thiserror::Error)]
pub enum FilterError {
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
