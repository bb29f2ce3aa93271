//! What the control server asks of the director. The director's table implements it; tests of the
//! server and of the tools use one of their own.

use super::api::{
    BatchOutcome, CommandRefusal, ConnectionView, OnRefusal, Refusal, RefusalKind, ServerSpec,
    ServiceKey, ServiceSpec, ServiceView, Status, Timeouts, VerdictCount,
};
use super::explain::{Explanation, Question};
use super::health::ServerHealth;
use super::nlb::{NlbReply, NlbRequest};
use super::plan::{ApplyRequest, FileApplied, Plan, PlanRequest, Settled, Verdict};
use super::workers::StateCount;
use crate::capture::Feed;
use crate::fwmark::Rule;
use crate::health::journal::Journal;
use crate::worker::tap::Wanted;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

/// One change. In JSON an object with `op` and the fields of the variant.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum Command {
    /// `ipvsadm -A`
    AddService {
        /// What to add.
        service: ServiceSpec,
    },
    /// `ipvsadm -E`
    EditService {
        /// What it shall be; `key` names it.
        service: ServiceSpec,
    },
    /// `ipvsadm -D`
    DeleteService {
        /// Which.
        service: ServiceKey,
    },
    /// `ipvsadm -C`
    Flush,
    /// `ipvsadm -a`
    AddServer {
        /// To which service.
        service: ServiceKey,
        /// What to add.
        server: ServerSpec,
    },
    /// `ipvsadm -e`
    EditServer {
        /// Of which service.
        service: ServiceKey,
        /// What it shall be; `address` names it.
        server: ServerSpec,
    },
    /// `ipvsadm -d`
    DeleteServer {
        /// Of which service.
        service: ServiceKey,
        /// Which.
        server: SocketAddr,
    },
    /// `ipvsadm -Z`
    Zero {
        /// One service with its servers, or all.
        #[serde(default)]
        service: Option<ServiceKey>,
    },
    /// Puts other rules in place of those that set firewall marks.
    SetMarks {
        /// All of them, in order.
        marks: Vec<Rule>,
    },
    /// `ipvsadm --set`
    SetTimeouts {
        /// 0 leaves a value as it is.
        timeouts: Timeouts,
    },
    /// `sysctl -w net.ipv4.vs.NAME=VALUE`
    SetSettings {
        /// Values by name; what is not named stays as it is.
        settings: BTreeMap<String, u32>,
    },
}

/// The director, seen from the control API. Calls are quick and may be made on the runtime's thread.
pub trait Operations: Send + Sync {
    /// Makes one change.
    ///
    /// # Errors
    /// A refusal changes nothing.
    fn apply(&self, command: Command) -> Result<(), Refusal>;

    /// Makes several changes in order. A director makes them as one: nobody sees a part of them.
    ///
    /// By default one by one, and never those that are to be undone.
    fn batch(&self, commands: Vec<Command>, on_refusal: OnRefusal) -> BatchOutcome {
        let mut outcome = BatchOutcome::default();
        for (index, command) in commands.into_iter().enumerate() {
            let applied = match on_refusal {
                OnRefusal::Undo => Err(Refusal {
                    error: RefusalKind::Unsupported,
                    message: "all or nothing is not to be had here".to_owned(),
                }),
                OnRefusal::Stop | OnRefusal::Continue => self.apply(command),
            };
            match applied {
                Ok(()) => outcome.applied += 1,
                Err(refusal) => outcome.refused.push(CommandRefusal { refusal, index }),
            }
            if !outcome.refused.is_empty() && on_refusal != OnRefusal::Continue {
                break;
            }
        }
        outcome
    }

    /// All services in kernel order.
    fn services(&self) -> Vec<ServiceView>;

    /// The same, made while they are read: which services there are is settled with the call, what
    /// they look like when their turn comes. By default all are made at once.
    fn each_service(&self) -> Box<dyn Iterator<Item = ServiceView> + Send> {
        Box::new(self.services().into_iter())
    }

    /// The timeouts.
    fn timeouts(&self) -> Timeouts;

    /// The settings, by name.
    fn settings(&self) -> BTreeMap<String, u32>;

    /// The rules that set firewall marks, in order.
    fn marks(&self) -> Vec<Rule>;

    /// How the servers of all services are, those that nobody watches too. By default of none.
    fn servers(&self) -> Vec<ServerHealth> {
        Vec::new()
    }

    /// What has happened to them. By default nobody keeps that.
    fn journal(&self) -> Option<Arc<Journal>> {
        None
    }

    /// The connections of part `part` of the table, from 0 on; `None` past the last part. A part is
    /// small, and may be empty. Packets that open connections may have to wait while it is copied,
    /// and not between two of them.
    fn connections(&self, part: usize) -> Option<Vec<ConnectionView>>;

    /// Begins a capture of packets.
    ///
    /// # Errors
    /// When there are too many; by default always.
    fn capture(&self, wanted: &Wanted) -> Result<Feed, Refusal> {
        let _ = wanted;
        Err(Refusal {
            error: RefusalKind::Unsupported,
            message: "no packets pass through here: only a dispatcher's can be captured".to_owned(),
        })
    }

    /// Every fate of a packet with its count since start, also those that have met none. By default
    /// those of the status.
    fn verdicts(&self) -> Vec<VerdictCount> {
        self.status().verdicts
    }

    /// Connections by protocol and state, without stopping anything. By default nobody has any.
    fn connection_states(&self) -> Vec<StateCount> {
        Vec::new()
    }

    /// What would become of a packet, and why. Changes nothing.
    ///
    /// # Errors
    /// A packet that cannot be read. By default nobody can say.
    fn explain(&self, question: Question) -> Result<Explanation, Refusal> {
        drop(question);
        let message = "packets cannot be explained here".to_owned();
        Err(Refusal { error: RefusalKind::Unsupported, message })
    }

    /// What is asked of a node of mode nlb. May take some seconds: other hosts may have to be asked.
    ///
    /// # Errors
    /// By default, of who is no such node.
    fn nlb(&self, request: NlbRequest) -> Result<NlbReply, Refusal> {
        drop(request);
        Err(Refusal {
            error: RefusalKind::Unsupported,
            message:
                "this director is a dispatcher: only a node of mode \"nlb\" takes this command"
                    .to_owned(),
        })
    }

    /// What would change if another file was followed.
    ///
    /// # Errors
    /// When the file is wrong; by default always.
    fn plan(&self, request: PlanRequest) -> Result<Plan, Refusal> {
        drop(request);
        Err(no_files())
    }

    /// Follows another file, all of it or none.
    ///
    /// # Errors
    /// A refusal changes nothing. By default always.
    fn follow(&self, request: ApplyRequest) -> Result<FileApplied, Refusal> {
        drop(request);
        Err(no_files())
    }

    /// Confirms an applied file that waits for it, or goes back to what was before.
    ///
    /// # Errors
    /// When none waits.
    fn settle(&self, verdict: Verdict) -> Result<Settled, Refusal> {
        let _ = verdict;
        Err(no_files())
    }

    /// What the director is and does.
    fn status(&self) -> Status;
}

fn no_files() -> Refusal {
    let message = "files cannot be planned or applied here".to_owned();
    Refusal { error: RefusalKind::Unsupported, message }
}
