//! A newcomer beside 20 loaded servers, in virtual time, with the real schedulers.
//!
//! Every server has two cores, which the logons in progress share; a logon takes four seconds of one
//! core and cannot use more than one. When it is done the session stays. Logons come at random, two
//! a second on average.

use schedulers::{Bias, Change, Key, Options, Scheduler, Server, ServerId, create};
use std::sync::Arc;
use std::time::Duration;

/// Servers that have sessions already.
const LOADED: usize = 20;
/// Sessions on each of those.
const SESSIONS: usize = 80;
const LOGONS_A_SECOND: f64 = 2.0;
const CORES: f64 = 2.0;
/// Seconds of one core that a logon takes.
const WORK: f64 = 4.0;
/// How long logons come, in seconds.
const RUN: f64 = 300.0;

/// What is seen of one run.
pub(crate) struct Outcome {
    /// The most logons in progress on the newcomer at once.
    pub(crate) peak: usize,
    /// How long each logon took, in seconds, shortest first.
    pub(crate) all: Vec<f64>,
    /// How long those of the newcomer took.
    pub(crate) newcomers: Vec<f64>,
}

impl Outcome {
    /// The mean of some times, in seconds.
    pub(crate) fn mean(times: &[f64]) -> f64 {
        times.iter().sum::<f64>() / times.len() as f64
    }

    /// The time that so many hundredths of `times`, sorted, do not exceed.
    pub(crate) fn percentile(times: &[f64], hundredths: usize) -> f64 {
        times[(times.len() * hundredths / 100).min(times.len() - 1)]
    }
}

/// Who is told of the logons in progress.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Told {
    /// The scheduler is: a session is not established before its logon has ended.
    Handshakes,
    /// Nobody is: a logon is in progress as long as it is young.
    Window(Duration),
    /// Nobody is, but servers report their load so often.
    Reports(Duration),
}

struct Logon {
    server: usize,
    start: f64,
    left: f64,
}

/// Runs the scheduler `name` once. The seed decides when logons come.
pub(crate) fn run(name: &str, bias: Bias, told: Told, seed: u64) -> Outcome {
    let bias_window = if let Told::Window(window) = told { window } else { Duration::ZERO };
    let mut scheduler =
        create(name, &Options { bias, bias_window, seed, ..Options::default() }).unwrap();
    let mut list: Vec<Arc<Server>> = (1..=LOADED).map(server).collect();
    scheduler.changed(&list, Change::Bound).unwrap();
    for server in &list {
        (0..SESSIONS).for_each(|_| open(server));
        server.report(Some(SESSIONS as u16 * 80));
    }
    // What was opened just now has been there for long.
    scheduler.choose(&list, &key(), Duration::ZERO);
    let start = 3600.0;
    scheduler.choose(&list, &key(), time(start));
    list.insert(0, server(0));
    list[0].report(Some(0));
    scheduler.changed(&list, Change::Added).unwrap();
    let mut run = Run { list, scheduler, told, now: start, logons: Vec::new(), times: Vec::new() };
    let mut random = Random(seed);
    let mut peak = 0;
    let mut report = start;
    let mut next = start + random.exponential(LOGONS_A_SECOND);
    while next < start + RUN {
        if let Told::Reports(every) = told
            && report <= next
        {
            run.proceed(report);
            run.report();
            report += every.as_secs_f64();
            continue;
        }
        run.proceed(next);
        run.begin();
        peak = peak.max(run.on(0));
        next += random.exponential(LOGONS_A_SECOND);
    }
    run.proceed(f64::INFINITY);
    let sorted = |mut times: Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times
    };
    let newcomers = run.times.iter().filter(|(server, _)| *server == 0).map(|(_, time)| *time);
    Outcome {
        peak,
        newcomers: sorted(newcomers.collect()),
        all: sorted(run.times.iter().map(|(_, time)| *time).collect()),
    }
}

struct Run {
    list: Vec<Arc<Server>>,
    scheduler: Box<dyn Scheduler>,
    told: Told,
    now: f64,
    logons: Vec<Logon>,
    /// Server and duration of each logon that has ended.
    times: Vec<(usize, f64)>,
}

impl Run {
    /// Logons in progress on a server.
    fn on(&self, server: usize) -> usize {
        self.logons.iter().filter(|logon| logon.server == server).count()
    }

    /// A logon begins.
    fn begin(&mut self) {
        let server = self.scheduler.choose(&self.list, &key(), time(self.now)).unwrap();
        open(&self.list[server]);
        if self.told == Told::Handshakes {
            self.list[server].handshake_begun();
        }
        self.logons.push(Logon { server, start: self.now, left: WORK });
    }

    /// Lets the cores work until then.
    fn proceed(&mut self, until: f64) {
        while self.now < until {
            let mut on = vec![0.0; self.list.len()];
            self.logons.iter().for_each(|logon| on[logon.server] += 1.0);
            let speed = |server: usize| (CORES / on[server]).min(1.0);
            let ends = self.logons.iter().map(|logon| self.now + logon.left / speed(logon.server));
            let then = ends.fold(until, f64::min);
            if then == f64::INFINITY {
                return;
            }
            for logon in &mut self.logons {
                logon.left -= (then - self.now) * speed(logon.server);
            }
            self.now = then;
            self.end();
        }
    }

    /// Ends the logons that have nothing left to do. Their sessions stay.
    fn end(&mut self) {
        let Run { list, told, times, now, .. } = self;
        self.logons.retain(|logon| {
            let goes_on = logon.left > 1e-6;
            if !goes_on {
                times.push((logon.server, *now - logon.start));
                if *told == Told::Handshakes {
                    list[logon.server].handshake_ended();
                }
            }
            goes_on
        });
    }

    /// Servers report which part of 125 sessions they have, or how busy their cores are if that is
    /// more; and never that they are full.
    fn report(&self) {
        for (index, server) in self.list.iter().enumerate() {
            let logons = self.on(index);
            let sessions = server.active() as usize - logons;
            let load = (sessions as f64 / 125.0).max(logons as f64 / CORES).min(0.99);
            server.report(Some((load * 1e4) as u16));
        }
    }
}

fn server(number: usize) -> Arc<Server> {
    let id = ServerId(number as u64);
    Arc::new(Server::new(id, [10, 0, 0, number as u8].into(), 1494, 1))
}

fn open(server: &Server) {
    server.connection_opened();
    server.connection_moved(true);
}

fn time(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

fn key() -> Key {
    Key {
        protocol: 6,
        source: [198, 51, 100, 7].into(),
        source_port: 40_000,
        destination: [192, 0, 2, 10].into(),
        destination_port: 1494,
        name: None,
    }
}

/// Numbers that look drawn (the finaliser of splitmix64).
struct Random(u64);

impl Random {
    /// A time until the next of so many events a second.
    fn exponential(&mut self, rate: f64) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut number = self.0;
        number = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        number = (number ^ (number >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        number ^= number >> 31;
        let part = ((number >> 11) + 1) as f64 / (1_u64 << 53) as f64;
        -part.ln() / rate
    }
}
