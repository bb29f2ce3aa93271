//! The agent as it runs: what is opened in which order, what happens on which signal.
//!
//! ```text
//!    plan (command line + file) -> host: VIPs, settings -> unpacking -> answers, checks, load, control
//!         ^                          ^
//!         '-- SIGHUP                 '-- every 2 s: kept so
//!    SIGTERM: drain, wait, undo everything; a second one: undo everything now
//! ```
//!
//! Everything runs on one thread; what belongs to it is shared with `Rc`.

mod answers;
mod plan;
mod stopping;
#[cfg(test)]
mod tests;
mod unpacking;
mod view;

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, Result};
use ipnet::IpNet;
use netio::ServiceManager;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::answer::Answering;
use crate::boot;
use crate::checks::Checks;
use crate::control::Control;
use crate::host::Preparation;
use crate::kernel_tunnel::By;
use crate::kind::Kind;
use crate::standing::Standing;
use answers::Sockets;
use plan::Plan;
use stopping::{Done, Stopping};
use unpacking::Unpacking;
use view::Shown;

/// How often what was made is looked at.
const KEEP: Duration = Duration::from_secs(2);
/// How often a drain is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// Something that goes on until it breaks.
type Task = Pin<Box<dyn Future<Output = Result<()>>>>;

/// What the command line says.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The configuration file.
    pub config: Option<PathBuf>,
    /// VIPs in addition to those of the file.
    pub vip: Vec<IpAddr>,
    /// Tunnels in addition to those of the file.
    pub tunnel: Vec<Kind>,
    /// Networks of directors in addition to those of the file.
    pub from: Vec<IpNet>,
    /// The name of the TUN device.
    pub device: String,
    /// Who unpacks.
    pub tunnel_by: By,
    /// Where probes are answered, instead of where the file says.
    pub listen: Vec<SocketAddr>,
    /// Whether no probes are answered.
    pub no_answer: bool,
    /// Seconds that SIGTERM waits, instead of what the file says.
    pub drain_deadline: Option<u64>,
    /// The control socket, instead of what the file says.
    pub control: Option<PathBuf>,
    /// The boot nonce, for tests.
    pub boot_nonce: Option<u64>,
}

/// The signals that are followed.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
    /// Who is told what becomes of the agent.
    manager: ServiceManager,
}

/// What a signal wants.
enum Wish {
    End,
    Reread,
}

impl Signals {
    fn new() -> Result<Signals> {
        Ok(Signals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
            manager: ServiceManager::from_environment(),
        })
    }

    async fn next(&mut self) -> Wish {
        tokio::select! {
            _ = self.interrupt.recv() => Wish::End,
            _ = self.terminate.recv() => Wish::End,
            _ = self.hangup.recv() => Wish::Reread,
        }
    }
}

/// Why the agent does not simply go on.
enum Event {
    Stop,
    Reload(Box<Plan>),
}

/// Runs the agent until a signal ends it. What it has changed is undone by then, also after an error.
///
/// # Errors
/// When the file is wrong, the host cannot be prepared, a socket cannot be opened or breaks.
pub async fn run(options: Options) -> Result<()> {
    // Before anything is changed: a signal from now on finds somebody who undoes it. While the
    // host is being prepared it has to wait, so that no change is half made.
    let mut signals = Signals::new()?;
    let plan = Plan::make(&options)?;
    let mut preparation = Preparation::new()?;
    let result = match Daemon::start(plan, &options, &mut preparation).await {
        Ok(mut daemon) => {
            signals.manager.ready(&daemon.plan.role.to_string());
            let result = daemon.go_on(&options, &mut preparation, &mut signals).await;
            daemon.close(&preparation).await;
            result
        }
        Err(error) => Err(error),
    };
    signals.manager.stopping();
    tracing::info!("stopping: everything is put back as it was");
    preparation.undo().await;
    result
}

/// All that runs.
struct Daemon {
    standing: Rc<Standing>,
    answering: Rc<Answering>,
    plan: Plan,
    sockets: Rc<Sockets>,
    unpacking: Rc<Unpacking>,
    checks: Rc<Checks>,
    shown: Rc<Shown>,
    answers: Task,
    tunnel: Task,
    watch: Task,
    control: Task,
}

impl Daemon {
    async fn start(plan: Plan, options: &Options, preparation: &mut Preparation) -> Result<Daemon> {
        let boot = match options.boot_nonce {
            Some(boot) => boot,
            None => boot::nonce().context("read the kernel's boot id")?,
        };
        let before = if plan.config.is_some() { "this host is " } else { "" };
        tracing::info!("{before}{}", plan.role);
        // First what can fail without having changed anything.
        let sockets = Rc::new(Sockets::open(&plan)?);
        let control = open_control(&plan)?;
        preparation.add_vips(&plan.role.vips).await?;
        let unpacking = Unpacking::open(&plan, options, preparation).await?;
        let standing = Rc::new(Standing::default());
        let answering = Rc::new(Answering::new(boot, standing.clone(), plan.policy.clone()));
        let checks = Rc::new(Checks::new(&plan.agent.checks, &plan.role.served));
        let shown = Rc::new(Shown::new(standing.clone(), answering.clone()));
        let daemon = Daemon {
            answers: sockets.clone().task(answering.clone()),
            tunnel: unpacking.clone().task(),
            watch: watch(&plan, &checks, &standing),
            control: serve_control(control, shown.clone()),
            standing,
            answering,
            plan,
            sockets,
            unpacking,
            checks,
            shown,
        };
        daemon.show(preparation);
        let vips = &daemon.plan.role.vips;
        let answers = daemon.sockets.addresses();
        let tunnel = daemon.unpacking.view();
        tracing::info!(?vips, ?answers, tunnel = ?tunnel.kinds, "ready");
        Ok(daemon)
    }

    /// Until a signal ends it or something breaks.
    async fn go_on(
        &mut self,
        options: &Options,
        preparation: &mut Preparation,
        signals: &mut Signals,
    ) -> Result<()> {
        let mut stopping = None;
        loop {
            let (plan, shown) = (&self.plan, &self.shown);
            let attend = attend(plan, shown, options, preparation, signals, &mut stopping);
            let event = tokio::select! {
                result = &mut self.answers => return result,
                result = &mut self.tunnel => return result,
                result = &mut self.watch => return result,
                result = &mut self.control => return result,
                event = attend => event,
            };
            match event {
                Event::Stop => return Ok(()),
                Event::Reload(plan) => {
                    self.change(*plan, options, preparation).await?;
                    signals.manager.ready(&self.plan.role.to_string());
                }
            }
            self.show(preparation);
        }
    }

    /// Becomes what another plan asks for; what does not differ goes on undisturbed.
    async fn change(
        &mut self,
        plan: Plan,
        options: &Options,
        preparation: &mut Preparation,
    ) -> Result<()> {
        if self.sockets.differ(&plan) {
            // The old ones may be in the way of the new ones: one address, or all, on the same port.
            self.answers = Box::pin(std::future::pending());
            self.sockets = Rc::default();
            let opened = Sockets::open(&plan);
            let refused = opened.as_ref().err().map(|error| format!("{error:#}"));
            self.sockets = Rc::new(opened.or_else(|_| Sockets::open(&self.plan))?);
            self.answers = self.sockets.clone().task(self.answering.clone());
            if let Some(error) = refused {
                tracing::warn!("everything stays as it is: {error}");
                return Ok(());
            }
        }
        let (old, new) = (&self.plan.role.vips, &plan.role.vips);
        let gone: Vec<_> = old.iter().filter(|vip| !new.contains(vip)).copied().collect();
        let come: Vec<_> = new.iter().filter(|vip| !old.contains(vip)).copied().collect();
        preparation.remove_vips(&gone).await;
        preparation.add_vips(&come).await?;
        if self.unpacking.differs(&plan) {
            // The devices have the same names: the old ones must be gone.
            self.tunnel = Box::pin(std::future::pending());
            self.close_tunnel(preparation).await;
            self.unpacking = match Unpacking::open(&plan, options, preparation).await {
                Ok(unpacking) => unpacking,
                Err(error) => {
                    tracing::warn!("the tunnels stay as they were: {error:#}");
                    Unpacking::open(&self.plan, options, preparation).await?
                }
            };
            self.tunnel = self.unpacking.clone().task();
        }
        self.answering.set_policy(plan.policy.clone());
        let checks = Rc::new(Checks::new(&plan.agent.checks, &plan.role.served));
        checks.inherit(&self.checks);
        self.checks = checks;
        self.watch = watch(&plan, &self.checks, &self.standing);
        if plan.control.0 != self.plan.control.0 {
            tracing::warn!("the control socket stays where it is until the agent starts again");
        }
        self.plan = plan;
        tracing::info!("the file has been read again: this host is {}", self.plan.role);
        Ok(())
    }

    /// Puts what `status` shows where it finds it.
    fn show(&self, preparation: &Preparation) {
        let (checks, unpacking) = (self.checks.clone(), self.unpacking.clone());
        self.shown.set(&self.plan, self.sockets.addresses(), checks, unpacking);
        self.shown.set_prepared(preparation);
    }

    async fn close_tunnel(&mut self, preparation: &Preparation) {
        self.shown.forget_tunnel();
        let nothing = Rc::new(Unpacking::nothing());
        std::mem::replace(&mut self.unpacking, nothing).close(preparation).await;
    }

    /// Ends all tasks, and closes what they had open.
    async fn close(mut self, preparation: &Preparation) {
        self.tunnel = Box::pin(std::future::pending());
        self.close_tunnel(preparation).await;
    }
}

/// Follows signals and keeps the host as it is, until something is to be done with the daemon.
async fn attend(
    plan: &Plan,
    shown: &Shown,
    options: &Options,
    preparation: &mut Preparation,
    signals: &mut Signals,
    stopping: &mut Option<Stopping>,
) -> Event {
    let mut keep = interval(KEEP);
    keep.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut look = interval(LOOK);
    let (standing, answering) = shown.of();
    let limit = plan.agent.drain_deadline;
    loop {
        tokio::select! {
            _ = keep.tick() => {
                preparation.keep().await;
                shown.set_prepared(preparation);
            }
            _ = look.tick(), if stopping.is_some() => {
                let check = |it: &mut Stopping| it.check(Instant::now(), answering, standing);
                match stopping.as_mut().and_then(check) {
                    Some(Done::Empty) => tracing::info!("drained: nobody is served any more"),
                    Some(Done::Deadline(left)) => {
                        tracing::warn!("the deadline has come, with {left} connections left");
                    }
                    None => continue,
                }
                return Event::Stop;
            }
            wish = signals.next() => match wish {
                Wish::Reread => {
                    signals.manager.reloading();
                    match reread(options) {
                        Some(plan) => return Event::Reload(Box::new(plan)),
                        None => signals.manager.ready(&plan.role.to_string()),
                    }
                }
                Wish::End if stopping.is_some() || limit.is_zero() => return Event::Stop,
                Wish::End => {
                    signals.manager.stopping();
                    tracing::info!("draining, for at most {limit:?}; a second signal ends it now");
                    standing.stopping.set(true);
                    *stopping = Some(Stopping::new(Instant::now(), limit));
                }
            },
        }
    }
}

/// The plan of the file as it is now; nothing when that is wrong, or there is none.
fn reread(options: &Options) -> Option<Plan> {
    if options.config.is_none() {
        tracing::info!("there is no file to read again (--config)");
        return None;
    }
    match Plan::make(options) {
        Ok(plan) => Some(plan),
        Err(error) => {
            tracing::warn!("the file is wrong, and everything stays as it is: {error:#}");
            None
        }
    }
}

/// The control socket. Nobody need have one who has not named it: several agents without a file can
/// be on one machine, in its network namespaces.
fn open_control(plan: &Plan) -> Result<Option<Control>> {
    let (path, is_said) = &plan.control;
    match Control::open(path) {
        Ok(control) => Ok(Some(control)),
        Err(error) if *is_said => Err(error),
        Err(error) => {
            tracing::warn!("going on without drain, undrain and status: {error:#}");
            Ok(None)
        }
    }
}

fn serve_control(control: Option<Control>, shown: Rc<Shown>) -> Task {
    Box::pin(async move {
        match control {
            Some(control) => control.serve(|request| shown.answer(request)).await,
            None => std::future::pending().await,
        }
        Ok(())
    })
}

/// Checks and measures.
fn watch(plan: &Plan, checks: &Rc<Checks>, standing: &Rc<Standing>) -> Task {
    let (meter, checks, standing) = (plan.meter(), checks.clone(), standing.clone());
    Box::pin(async move {
        tokio::join!(checks.run(&standing), meter.run(&standing));
        Ok(())
    })
}
