//! The command under its old names, `nlb` and `wlbs`, with the old words: for fingers and scripts that
//! know them. What it does is what `dirctl nlb` does; what it says is in our own words.
//!
//! | written | meant |
//! |---|---|
//! | `nlb stop` | this host |
//! | `nlb stop 192.0.2.10` | all hosts of the cluster |
//! | `nlb stop 192.0.2.10:2`, `:web2`, `:192.0.2.12` | one host by id, name or address |
//! | `nlb stop all`, `all local`; `all global` | every cluster here, of which there is one: this host; all hosts |
//! | `nlb drain 192.0.2.10:80 ...` | rules: `vip`, `vip:port`, `all:port`, `all`, before the hosts |

use std::net::IpAddr;
use std::path::PathBuf;

use director::control::nlb::{NlbCommand, NlbReply, NlbRequest, NlbResult, NlbView, PortTarget};

use super::{rules, text as views};
use crate::clean::{clean, count, duration};
use crate::paint::Paint;

/// What was said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Said {
    /// What to tell the user of words that mean nothing here.
    pub notes: Vec<String>,
    /// What is asked.
    pub request: NlbRequest,
    /// Rules to show, of all that the answer holds (`queryport`).
    pub shown: Option<PortTarget>,
    /// The cluster that was named.
    pub cluster: Option<IpAddr>,
    /// The key to ask over the network with (`/KEYFILE`); without it the node that runs here asks.
    pub key_file: Option<PathBuf>,
}

const COMMANDS: &str = "help, start, stop, drainstop, suspend, resume, reload, enable, disable, \
                        drain, query, queryport, params, display, ip2mac";

/// Reads the words; `None` is a wish for help.
///
/// # Errors
/// The word that is wrong, and what to write.
pub fn parse(words: &[String]) -> Result<Option<Said>, String> {
    let mut said = Said::default();
    let mut plain = Vec::new();
    let mut local = false;
    let mut words = words.iter().map(String::as_str).peekable();
    while let Some(word) = words.next() {
        let Some(option) = word.strip_prefix('/') else {
            plain.push(word);
            continue;
        };
        let mut value = || words.next_if(|next| !next.starts_with('/'));
        match option.to_ascii_uppercase().as_str() {
            "LOCAL" => local = true,
            "KEYFILE" => {
                let file = value().ok_or("/KEYFILE: name the file with the cluster's key")?;
                said.key_file = Some(PathBuf::from(file));
            }
            "PASSW" => {
                let _ = value();
                said.notes.push(
                    "/PASSW is not looked at: commands are sealed with the cluster's key".into(),
                );
            }
            name @ ("PORT" | "DEST" | "TIMEOUT") => {
                let _ = value();
                said.notes.push(format!("/{name} is not looked at: it has no use here"));
            }
            "?" | "HELP" => return Ok(None),
            _ => {
                return Err(format!(
                    "{word} is no option: there are /LOCAL, /KEYFILE FILE and, without effect, \
                     /PASSW /PORT /DEST /TIMEOUT"
                ));
            }
        }
    }
    let mut plain = plain.into_iter();
    let command = match plain.next() {
        None => return Ok(None),
        Some(word) => word.to_ascii_lowercase(),
    };
    let mut target = || -> Result<PortTarget, String> {
        let word = plain.next().ok_or_else(|| format!("{command}: name the rules, as VIP:PORT"))?;
        word.parse().map_err(|error| format!("{command}: {error}"))
    };
    said.request.command = match command.as_str() {
        "help" | "?" => return Ok(None),
        "start" => NlbCommand::Start,
        "stop" => NlbCommand::Stop,
        "drainstop" => NlbCommand::Drainstop { deadline: None },
        "suspend" => NlbCommand::Suspend,
        "resume" => NlbCommand::Resume,
        "reload" => NlbCommand::Reload,
        "enable" => NlbCommand::Enable { target: target()? },
        "disable" => NlbCommand::Disable { target: target()? },
        "drain" => NlbCommand::Drain { target: target()? },
        "query" => NlbCommand::Query,
        "queryport" => {
            said.shown = Some(target()?);
            NlbCommand::Params
        }
        "params" => NlbCommand::Params,
        "display" => NlbCommand::Display,
        "ip2mac" => {
            let word = plain.next().ok_or("ip2mac: name an address, as in ip2mac 192.0.2.10")?;
            let address = word.parse().map_err(|_| format!("ip2mac: {word} is no address"))?;
            NlbCommand::Ip2mac { address: Some(address) }
        }
        _ => return Err(format!("{command} is no command: one of {COMMANDS}")),
    };
    hosts(&mut said, &mut plain)?;
    if let Some(word) = plain.next() {
        return Err(format!("{command}: {word} is one word too many"));
    }
    if local {
        said.request.hosts = None;
    }
    if said.key_file.is_some() && said.cluster.is_none() {
        return Err("/KEYFILE needs the cluster's address, as in query 192.0.2.10".to_owned());
    }
    Ok(Some(said))
}

/// `cluster`, `cluster:host`, `all`, `all local`, `all global`.
fn hosts<'a>(said: &mut Said, words: &mut impl Iterator<Item = &'a str>) -> Result<(), String> {
    let Some(word) = words.next() else { return Ok(()) };
    if word.eq_ignore_ascii_case("all") {
        said.request.hosts = match words.next().map(str::to_ascii_lowercase).as_deref() {
            None | Some("local") => None,
            Some("global") => Some("all".to_owned()),
            Some(other) => return Err(format!("all {other}: write all local or all global")),
        };
        return Ok(());
    }
    let wrong = || format!("{word}: write the cluster's primary address, ADDRESS or ADDRESS:HOST");
    let (cluster, host) = match word.parse::<IpAddr>() {
        Ok(cluster) => (cluster, "all"),
        Err(_) => {
            let (cluster, host) = match word.strip_prefix('[') {
                Some(rest) => rest.split_once("]:").ok_or_else(wrong)?,
                None => word.split_once(':').ok_or_else(wrong)?,
            };
            (cluster.parse().map_err(|_| wrong())?, host)
        }
    };
    if host.is_empty() {
        return Err(wrong());
    }
    said.cluster = Some(cluster);
    said.request.hosts = Some(host.to_owned());
    Ok(())
}

/// The help.
pub fn help(own: &str) -> String {
    format!(
        "\
{own}: the nodes of a cluster in mode nlb, in the old words. `dirctl nlb` does more.

  {own} COMMAND [HOSTS]                     start stop drainstop suspend resume reload
                                           query params display
  {own} enable|disable|drain RULES [HOSTS]  serve rules, serve them no more, take no new clients
  {own} queryport RULES [HOSTS]             how rules stand
  {own} ip2mac ADDRESS                      the Ethernet addresses that follow from an address

HOSTS   nothing: this host; CLUSTER: all hosts of it, by its primary address; CLUSTER:HOST: one, by
        id, name or address; all [local|global]: this host or all
RULES   VIP, VIP:PORT, all:PORT, all
/LOCAL  this host only
/KEYFILE FILE  ask over the network, with the cluster's key, rather than through the node here

Example: {own} drainstop 192.0.2.10:2
"
    )
}

/// What is printed of an answer.
pub fn text(said: &Said, reply: &NlbReply) -> String {
    let mut text = String::new();
    for answer in &reply.answers {
        let host = format!("Host {} ({})", answer.host, clean(&answer.name));
        match answer.view.as_deref() {
            Some(NlbView::Query(view)) => {
                let members = match view.members.is_empty() {
                    true => "with no members".to_owned(),
                    false => format!("with hosts {} as members", views::list(&view.members)),
                };
                let last = view.last_ended.map_or_else(
                    || "none has ended".to_owned(),
                    |ago| format!("the last ended {} ago", duration(ago)),
                );
                text.push_str(&format!(
                    "Cluster {}\n{host} has begun to converge {}, {last}.\n{host} is {} {members}.\n",
                    clean(&view.cluster),
                    count(view.convergences, "time"),
                    clean(&answer.state),
                ));
                for warning in &view.warnings {
                    text.push_str(&format!("  ! {}\n", clean(warning)));
                }
            }
            Some(NlbView::Macs(view)) => text.push_str(&format!(
                "Cluster:         {}\nUnicast:         {}\nMulticast:       {}\nIGMP multicast:  {}\n",
                view.address,
                clean(&view.unicast),
                clean(&view.multicast),
                clean(&view.igmp)
            )),
            Some(NlbView::Params(view)) if let Some(target) = said.shown => {
                let meant = |rule: &&director::control::nlb::views::RuleView| {
                    target.vip.is_none_or(|vip| rule.vip == Some(vip))
                        && target
                            .port
                            .is_none_or(|port| (rule.first_port..=rule.last_port).contains(&port))
                };
                let found: Vec<_> = view.rules.iter().filter(meant).cloned().collect();
                match found.is_empty() {
                    true => text.push_str(&format!("{host}: no rule for {target}.\n")),
                    false => {
                        text.push_str(&format!("{host}:\n"));
                        text.push_str(&rules::table(&found, Paint::default()));
                    }
                }
            }
            Some(NlbView::Params(_) | NlbView::Display(_)) => {
                let one = NlbReply { answers: vec![answer.clone()], silent: vec![] };
                text.push_str(&views::text(&one, None, Paint::default()));
            }
            _ => {
                let line = line(&said.request.command, answer.result, answer.message.as_deref());
                text.push_str(&format!("{host}: {line}\n"));
            }
        }
    }
    if !reply.silent.is_empty() {
        text.push_str(&format!("No answer from host {}.\n", views::list(&reply.silent)));
    }
    text
}

/// What has come of a command, as a sentence.
fn line(command: &NlbCommand, result: NlbResult, message: Option<&str>) -> String {
    use NlbResult as R;
    let (done, already) = match command {
        NlbCommand::Start => ("it joins the cluster", "it is in the cluster already"),
        NlbCommand::Stop => ("it has left the cluster", "it is not in the cluster"),
        NlbCommand::Drainstop { .. } => (
            "it takes no new connections and leaves after the last",
            "it drains or is stopped already",
        ),
        NlbCommand::Suspend => ("control is suspended", "control is suspended already"),
        NlbCommand::Resume => ("control is resumed; start it next", "control was not suspended"),
        NlbCommand::Reload => ("the configuration has been read", "the configuration is the same"),
        NlbCommand::Enable { .. } => ("the rules are enabled", "the rules are enabled already"),
        NlbCommand::Disable { .. } => ("the rules are disabled", "the rules are disabled already"),
        NlbCommand::Drain { .. } => ("the rules are draining", "the rules are draining already"),
        _ => ("done", "nothing to do"),
    };
    match (result, message) {
        (R::DrainInterrupted, _) => format!("{done}; a drain was cut short."),
        (R::Done, Some(message)) => format!("{done}: {}.", clean(message)),
        (R::Done, None) => format!("{done}."),
        (R::Already, _) => format!("{already}."),
        (refused, Some(message)) => format!("refused ({}): {}.", refused.label(), clean(message)),
        (refused, None) => format!("refused ({}).", refused.label()),
    }
}

#[cfg(test)]
mod tests;
