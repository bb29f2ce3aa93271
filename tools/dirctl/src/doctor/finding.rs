//! What an examination finds: how grave it is, what was looked at, what was found there, and the
//! commands that remedy it.
//!
//! Why a thing matters stands beside its name, once, in [`Check`]; `docs/doctor.md` has the same
//! table, and a test holds the two together.

use std::path::Path;

use serde::{Serialize, Serializer};

/// How grave it is, from bad to good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Clients notice it.
    Fault,
    /// Some clients notice it, or all will in time.
    Warning,
    /// Worth knowing: slower than need be, or not to be seen from here.
    Note,
    /// As it should be.
    Ok,
}

impl Severity {
    /// All of them.
    pub const ALL: [Severity; 4] =
        [Severity::Fault, Severity::Warning, Severity::Note, Severity::Ok];

    /// Its name, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Fault => "fault",
            Severity::Warning => "warning",
            Severity::Note => "note",
            Severity::Ok => "ok",
        }
    }
}

/// Names and reasons of all checks: one table.
macro_rules! checks {
    ($($variant:ident = $name:literal, $why:literal;)*) => {
        /// What is looked at.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Check {
            $(#[doc = $why] $variant,)*
        }

        impl Check {
            /// All of them, in the order in which they are made.
            pub const ALL: &'static [Check] = &[$(Check::$variant),*];

            /// Its name, in reports and in JSON.
            pub fn name(self) -> &'static str {
                match self { $(Check::$variant => $name),* }
            }

            /// Why it matters.
            pub fn why(self) -> &'static str {
                match self { $(Check::$variant => $why),* }
            }
        }
    };
}

checks! {
    Director = "director", "Without a running director nobody forwards anything.";
    Kernel = "kernel", "AF_XDP and the programs that steer packets need Linux 6.6.";
    Capabilities = "capabilities", "What the process may not do it cannot do for you: neighbours stay unknown, checks unmade.";
    Clock = "clock", "Events and certificates of several machines can be compared only when their clocks agree.";
    File = "file", "The next start goes by the file, whatever runs now.";
    ControlSocket = "control-socket", "Whoever can write to the control socket can send the traffic anywhere.";
    DirectorWarning = "director-warning", "The director itself says that something is not as it was asked for.";
    Link = "link", "An interface without a link carries nothing.";
    PacketIo = "packet-io", "Each way of taking packets costs more than the one above it.";
    Queues = "queues", "Packets on a queue that no worker serves pass the director by.";
    Offloads = "offloads", "What the card joins or strips, the director cannot send on as it came.";
    Forwarding = "forwarding", "Servers behind NAT reach the rest of the world through the director's kernel.";
    Redirects = "redirects", "A server that is told of a shorter way to clients answers them past the director.";
    ReversePath = "reverse-path", "The kernel drops packets that come in by another interface than answers would leave by.";
    PolicyRules = "policy-rules", "The director goes by the tables local, main and default only.";
    Vip = "vip", "Clients and routers ask the segment for the VIP, and somebody must answer.";
    VipTwice = "vip-twice", "With a VIP on two interfaces it is chance which one answers for it.";
    VipElsewhere = "vip-elsewhere", "Who else answers for the VIP takes the clients from the director.";
    Route = "route", "Without a way to the server its packets are dropped (no_route, no_port).";
    Neighbour = "neighbour", "Nobody answers for the next hop, so its packets are dropped (no_neighbour).";
    Mtu = "mtu", "What does not fit the way to the server depends on ICMP that many networks drop: large transfers hang.";
    ServerDown = "server-down", "It gets no connections, and the others carry its share.";
    AgentKey = "agent-key", "Answers of an agent with another key do not count, so nobody knows how the server is.";
    ReturnPath = "return-path", "With NAT the server's answers must come back through the director, or the client does not know them.";
    Unanswered = "unanswered", "The server gets packets, and no client has ever got an answer.";
    Astray = "astray", "Answers of direct and tunnel servers that come to the director end there: its kernel does not forward, or takes their source, its own VIP, for forged.";
    Table = "table", "When the connection table is full, new clients are refused, or old ones lose theirs.";
    Drops = "drops", "Every dropped packet is one that somebody waits for.";
    Rings = "rings", "What finds no place in a ring is lost before the director sees it.";
    ServerVip = "server-vip", "A server takes only packets for addresses that it has, and answers for those of its card.";
    ServerArp = "server-arp", "A server that answers ARP for the VIP takes the clients from the director.";
    ServerReversePath = "server-reverse-path", "The server's kernel drops packets that come in by another way than answers leave by.";
    ServerTunnel = "server-tunnel", "A packet that nobody unpacks is thrown away.";
    ServerAgent = "server-agent", "With agent = true a server is down whose agent is not heard; and it is the agent that keeps VIPs and settings as they must be.";
    ServerKey = "server-key", "Director and agent must have the same secret, and nobody else.";
    ServerListener = "server-listener", "Where nobody listens clients are refused.";
    ServerRoute = "server-route", "NAT answers must leave by the director; those of direct routing and tunnels must not.";
    ServerMtu = "server-mtu", "A server takes no packet larger than its card's MTU, the outer header included.";
    ServerRedirects = "server-redirects", "A server that believes in a shorter way to clients answers them past the director.";
}

impl Serialize for Check {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How grave it is.
    pub severity: Severity,
    /// What was looked at.
    pub check: Check,
    /// What was found, with the names of everything concerned.
    pub found: String,
    /// Why it matters.
    pub why: &'static str,
    /// Where the commands are to be run: an address, when it is not here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on: Option<String>,
    /// Commands, in their order.
    pub remedy: Vec<String>,
}

impl Finding {
    /// Of any severity, without remedy.
    pub fn new(severity: Severity, check: Check, found: impl Into<String>) -> Finding {
        let (found, why) = (found.into(), check.why());
        Finding { severity, check, found, why, on: None, remedy: Vec::new() }
    }

    /// As it should be.
    pub fn ok(check: Check, found: impl Into<String>) -> Finding {
        Finding::new(Severity::Ok, check, found)
    }

    /// Worth knowing.
    pub fn note(check: Check, found: impl Into<String>) -> Finding {
        Finding::new(Severity::Note, check, found)
    }

    /// See [`Severity::Warning`].
    pub fn warning(check: Check, found: impl Into<String>) -> Finding {
        Finding::new(Severity::Warning, check, found)
    }

    /// See [`Severity::Fault`].
    pub fn fault(check: Check, found: impl Into<String>) -> Finding {
        Finding::new(Severity::Fault, check, found)
    }

    /// With a command that remedies it, after those that it has.
    pub fn remedy(mut self, command: impl Into<String>) -> Finding {
        self.remedy.push(command.into());
        self
    }

    /// To be remedied on another machine.
    pub fn on(mut self, host: impl ToString) -> Finding {
        self.on = Some(host.to_string());
        self
    }
}

/// A path as a shell takes it for one word.
pub fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |letter: char| letter.is_alphanumeric() || "/._-+:@,=".contains(letter);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text;
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// `a`, `a and b`, `a, b and 3 more`: lists stay on their line.
pub fn names<T: ToString>(items: &[T]) -> String {
    const MOST: usize = 4;
    let texts: Vec<String> = items.iter().take(MOST).map(ToString::to_string).collect();
    match (texts.as_slice(), items.len().saturating_sub(MOST)) {
        (texts, more @ 1..) => format!("{} and {more} more", texts.join(", ")),
        ([], _) => String::new(),
        ([one], _) => one.clone(),
        ([first @ .., last], _) => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_are_counted() {
        assert_eq!(names::<u8>(&[]), "");
        assert_eq!(names(&[1]), "1");
        assert_eq!(names(&[1, 2, 3]), "1, 2 and 3");
        assert_eq!(names(&[1, 2, 3, 4, 5, 6]), "1, 2, 3, 4 and 2 more");
    }

    #[test]
    fn a_path_is_one_word_of_a_shell_whatever_is_in_it() {
        let word = |path: &str| quoted(Path::new(path));
        assert_eq!(word("/etc/switchyard/a-b_c.toml"), "/etc/switchyard/a-b_c.toml");
        assert_eq!(word("/my files/x"), "'/my files/x'");
        assert_eq!(word("/a'$(reboot)"), r"'/a'\''$(reboot)'");
    }

    #[test]
    fn the_document_has_every_check_and_why_it_matters() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/doctor.md");
        let text = std::fs::read_to_string(path).unwrap();
        for check in Check::ALL {
            let begin = format!("| `{}` |", check.name());
            let row = text.lines().find(|line| line.starts_with(&begin));
            let row =
                row.unwrap_or_else(|| panic!("{} has no row in docs/doctor.md", check.name()));
            assert!(row.contains(check.why()), "{row}\n{}", check.why());
        }
    }
}
