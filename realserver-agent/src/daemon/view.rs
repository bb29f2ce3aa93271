//! What operators see and say: `status`, `drain`, `undrain`.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;

use tokio::time::Instant;

use super::plan::Plan;
use super::unpacking::Unpacking;
use crate::answer::{Answering, Asker, Over};
use crate::checks::Checks;
use crate::control::{Reply, Request};
use crate::host::Preparation;
use crate::standing::Standing;
use crate::status::{AnswersView, AskerView, Prepared, Status, word};

/// What can be shown. The daemon puts in what changes with the file and on the host.
pub(super) struct Shown {
    standing: Rc<Standing>,
    answering: Rc<Answering>,
    started: Instant,
    inner: RefCell<Inner>,
}

#[derive(Default)]
struct Inner {
    role: String,
    config: Option<String>,
    listen: Vec<SocketAddr>,
    signed: bool,
    checks: Rc<Checks>,
    unpacking: Option<Rc<Unpacking>>,
    prepared: Prepared,
}

impl Shown {
    pub(super) fn new(standing: Rc<Standing>, answering: Rc<Answering>) -> Shown {
        Shown { standing, answering, started: Instant::now(), inner: RefCell::default() }
    }

    /// Who answers, and what.
    pub(super) fn of(&self) -> (&Standing, &Answering) {
        (&self.standing, &self.answering)
    }

    /// What the daemon is now.
    pub(super) fn set(
        &self,
        plan: &Plan,
        listen: Vec<SocketAddr>,
        checks: Rc<Checks>,
        unpacking: Rc<Unpacking>,
    ) {
        let mut inner = self.inner.borrow_mut();
        inner.role = plan.role.to_string();
        inner.config = plan.config.as_ref().map(|path| path.display().to_string());
        inner.signed = plan.policy.key.is_some();
        (inner.listen, inner.checks, inner.unpacking) = (listen, checks, Some(unpacking));
    }

    /// What has been done to the host by now.
    pub(super) fn set_prepared(&self, preparation: &Preparation) {
        self.inner.borrow_mut().prepared = Prepared {
            vips: preparation.vips(),
            settings: preparation.settings(),
            restored: preparation.restored(),
        };
    }

    /// Lets go of what unpacks: it is about to be closed.
    pub(super) fn forget_tunnel(&self) {
        self.inner.borrow_mut().unpacking = None;
    }

    /// Does what an operator asks for.
    pub(super) fn answer(&self, request: Request) -> Reply {
        let drain = match request {
            Request::Drain => Some(true),
            Request::Undrain => Some(false),
            Request::Status => None,
        };
        if let Some(drain) = drain
            && self.standing.drained.replace(drain) != drain
        {
            tracing::info!("an operator says: {}", if drain { "drain" } else { "undrain" });
        }
        let (state, reason) = self.standing.state();
        let status = matches!(request, Request::Status).then(|| self.status());
        Reply { ok: true, state: word(state).to_owned(), reason, status, ..Reply::default() }
    }

    fn status(&self) -> Status {
        let (state, reason) = self.standing.state();
        let report = self.standing.report();
        let inner = self.inner.borrow();
        let refused = self.answering.refused();
        Status {
            state: word(state).to_owned(),
            reason,
            role: inner.role.clone(),
            config: inner.config.clone(),
            uptime: self.started.elapsed().as_secs(),
            boot: format!("{:016x}", self.answering.boot()),
            load: report.load,
            parts: report.parts,
            command: report.command,
            connections: report.connections,
            queue: report.queue,
            checks: inner.checks.views(),
            prepared: inner.prepared.clone(),
            tunnel: inner.unpacking.as_ref().map(|it| it.view()).unwrap_or_default(),
            answers: AnswersView {
                listen: inner.listen.clone(),
                signed: inner.signed,
                answered: self.answering.answered(),
                refused: refused.into_iter().map(|(why, it)| (why.to_owned(), it)).collect(),
                askers: self.answering.askers().iter().map(asker).collect(),
            },
        }
    }
}

fn asker(asker: &Asker) -> AskerView {
    AskerView {
        address: asker.address,
        over: match asker.over {
            Over::Udp => "udp",
            Over::Tcp => "tcp",
            Over::Text => "text",
        }
        .to_owned(),
        ago: asker.heard.elapsed().as_secs_f64(),
        answers: asker.answers,
    }
}
