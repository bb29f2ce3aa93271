//! A server as the control API shows it.

use serde::{Deserialize, Serialize};

use super::api::{ServerSpec, Stats};

/// A server as it runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "ServerAnswer")]
pub struct ServerView {
    /// As it was asked for.
    #[serde(flatten)]
    pub spec: ServerSpec,
    /// The weight that the scheduler goes by: 0 when the server must get no new connections. Without
    /// health it is `weight`.
    pub effective_weight: i32,
    /// Whether the address is the director's own: its own stack serves it then, whatever the
    /// forwarding method says.
    pub local: bool,
    /// Connections in an active state.
    pub active: u32,
    /// Other connections.
    pub inactive: u32,
    /// Persistence templates.
    pub persistent: u32,
    /// How often since start the scheduler has chosen it; `stats.connections` also counts those that a
    /// template brought here.
    pub picks: u64,
    /// Counters.
    pub stats: Stats,
}

/// The same as it is read: a director that knows no health does not say what is in effect.
#[derive(Deserialize)]
struct ServerAnswer {
    #[serde(flatten)]
    spec: ServerSpec,
    effective_weight: Option<i32>,
    #[serde(default)]
    local: bool,
    active: u32,
    inactive: u32,
    persistent: u32,
    #[serde(default)]
    picks: u64,
    stats: Stats,
}

impl From<ServerAnswer> for ServerView {
    fn from(answer: ServerAnswer) -> ServerView {
        let ServerAnswer {
            spec,
            effective_weight,
            local,
            active,
            inactive,
            persistent,
            picks,
            stats,
        } = answer;
        ServerView {
            effective_weight: effective_weight.unwrap_or(spec.weight),
            spec,
            local,
            active,
            inactive,
            persistent,
            picks,
            stats,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_nothing_is_said_of_health_the_configured_weight_is_in_effect() {
        let answer = |more: &str| {
            let text = format!(
                r#"{{"address":"10.0.0.1:80","forwarding":"nat","weight":7,"active":1,"inactive":2,
                "persistent":0,"stats":{}{more}}}"#,
                serde_json::to_string(&Stats::default()).unwrap(),
            );
            serde_json::from_str::<ServerView>(&text).unwrap()
        };
        assert_eq!(answer("").effective_weight, 7);
        let failed = answer(r#","effective_weight":0,"local":true"#);
        assert_eq!((failed.effective_weight, failed.spec.weight, failed.local), (0, 7, true));
        let again = serde_json::to_string(&failed).unwrap();
        assert_eq!(serde_json::from_str::<ServerView>(&again).unwrap(), failed);
    }
}
