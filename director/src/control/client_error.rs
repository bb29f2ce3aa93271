//! What can go wrong between a tool and the director, told apart by what its user has to do.

use std::path::PathBuf;

use super::api::Refusal;

/// Why a request to the director has no answer, or not the wanted one.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// There is no socket, or nobody listens on it.
    #[error("the director is not running (no answer on {})", .path.display())]
    NotRunning {
        /// Where the director was expected.
        path: PathBuf,
    },
    /// The socket is there, but not for this user.
    #[error("no permission to use the control socket {}", .path.display())]
    PermissionDenied {
        /// The socket.
        path: PathBuf,
    },
    /// The director understood and said no.
    #[error("{}", .refusal.message)]
    Refused {
        /// What it said.
        refusal: Refusal,
        /// Which of several commands it refused, counted from 0; those before it are done.
        index: Option<usize>,
    },
    /// What answers is not a director, or one of another version.
    #[error("{} does not speak this tool's protocol: {detail}", .path.display())]
    Protocol {
        /// The socket.
        path: PathBuf,
        /// The version it claims, if any.
        director: Option<String>,
        /// What was odd about the answer.
        detail: String,
    },
    /// Connected, and then no answer.
    #[error("the director on {} does not answer within {seconds} s", .path.display())]
    NoAnswer {
        /// The socket.
        path: PathBuf,
        /// How long was waited.
        seconds: u64,
    },
    /// Anything else the system says.
    #[error("cannot talk to the director on {}: {error}", .path.display())]
    System {
        /// The socket.
        path: PathBuf,
        /// What it says.
        error: std::io::Error,
    },
}

impl ClientError {
    /// One line of what the user can do about it; `None` when the message says it all.
    pub fn remedy(&self) -> Option<String> {
        match self {
            ClientError::NotRunning { path } => Some(format!(
                "The control socket was expected at {}. Start the director (`systemctl start \
                 switchyard-director`, or `director` by hand), or set SWITCHYARD_SOCKET to the socket of the \
                 one that runs.",
                path.display()
            )),
            ClientError::PermissionDenied { path } => Some(format!(
                "Run this as root or as a member of the group that owns {}.",
                path.display()
            )),
            ClientError::Protocol { director, .. } => Some(match director {
                Some(version) => format!(
                    "The director is version {version}, this tool is {}: install both from one \
                     release and restart the director.",
                    super::VERSION
                ),
                None => "Something other than a director listens there.".to_owned(),
            }),
            ClientError::NoAnswer { .. } => {
                Some("It is stuck or overloaded; its log may say why.".to_owned())
            }
            ClientError::Refused { .. } | ClientError::System { .. } => None,
        }
    }
}
