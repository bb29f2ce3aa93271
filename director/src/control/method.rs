//! Forwarding methods, as they are asked for and as they turn out.

use serde::{Deserialize, Serialize};

/// How packets reach a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Forwarding {
    /// Network address translation (masquerading).
    Nat,
    /// Tunnel; see [`tunnel`](super::api::ServerSpec::tunnel).
    Tunnel,
    /// Direct routing.
    Direct,
    /// The director's own stack: what becomes of a method when the address is the director's. It is
    /// neither asked for nor shown: a server is shown with what was asked for, and as `local`.
    #[serde(skip)]
    Local(Asked),
}

/// The method that was asked for where the director's own stack serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Asked {
    /// Network address translation.
    Nat,
    /// Tunnel.
    Tunnel,
    /// Direct routing.
    Direct,
}

impl Forwarding {
    /// The same where the address is the director's own.
    pub fn at_home(self) -> Forwarding {
        Forwarding::Local(match self {
            Forwarding::Nat => Asked::Nat,
            Forwarding::Tunnel => Asked::Tunnel,
            Forwarding::Direct => Asked::Direct,
            Forwarding::Local(asked) => asked,
        })
    }

    /// What was asked for.
    pub fn asked(self) -> Forwarding {
        match self {
            Forwarding::Local(Asked::Nat) => Forwarding::Nat,
            Forwarding::Local(Asked::Tunnel) => Forwarding::Tunnel,
            Forwarding::Local(Asked::Direct) => Forwarding::Direct,
            other => other,
        }
    }

    /// Its name in files and words.
    pub fn name(self) -> &'static str {
        match self {
            Forwarding::Nat => "nat",
            Forwarding::Tunnel => "tunnel",
            Forwarding::Direct => "direct",
            Forwarding::Local(_) => "local",
        }
    }

    /// Whether the director's own stack serves.
    pub fn is_local(self) -> bool {
        matches!(self, Forwarding::Local(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_serves_at_home_is_still_shown_with_what_was_asked_for() {
        for method in [Forwarding::Nat, Forwarding::Tunnel, Forwarding::Direct] {
            assert!(method.at_home().is_local() && !method.is_local());
            assert_eq!(method.at_home().at_home().asked(), method);
        }
        assert!(serde_json::from_str::<Forwarding>("\"local\"").is_err());
    }
}
