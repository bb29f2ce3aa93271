//! Commands from afar: UDP port 2504 of the primary address, which every host of the cluster
//! receives, and of this host's own addresses. Answers go out from the host's own address.
//!
//! Knows datagrams and who may be obeyed ([`nlb::control`]); what a command does is for
//! `operations`. A stranger cannot have a command carried out, hold memory, or keep the node's loop
//! waiting: datagrams are looked at up to a number a second, and commands run beside the loop, a few
//! at a time.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ::nlb::control::{Challenges, Code, Message, PORT, Refused, Request, split};
use ::nlb::host::HostId;
use ::nlb::key::SealKey;
use anyhow::{Context, Result};
use tokio::net::UdpSocket;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tracing::{debug, warn};

use super::clock;
use crate::control::nlb::{NlbAnswer, NlbCommand};
use crate::control::remote::random;

/// Datagrams looked at in a second: each costs some microseconds.
const RATE: u32 = 5000;
/// Commands carried out at a time.
const AT_A_TIME: usize = 4;
/// Larger than any message.
const BUFFER: usize = 2048;

/// Who carries commands out.
pub(super) trait Obey: Send + Sync + 'static {
    /// Carries one out. May block for some ten milliseconds.
    fn obey(&self, command: &NlbCommand, from: SocketAddr) -> NlbAnswer;
    /// Counts a datagram that was not obeyed.
    fn refuse(&self, reason: &'static str, meaning: &'static str);
}

/// The sockets, and what their datagrams are judged by.
pub(super) struct Remote {
    sockets: Vec<Arc<UdpSocket>>,
    /// Answers go out from here, by family.
    own: Vec<(IpAddr, Arc<UdpSocket>)>,
    judge: Arc<Judge>,
}

struct Judge {
    challenges: Mutex<Challenges>,
    rate: Mutex<Rate>,
    places: Arc<Semaphore>,
}

/// How many datagrams have come in this second.
struct Rate {
    since: Instant,
    count: u32,
}

impl Remote {
    /// Binds the sockets on `port`, 2504 outside of tests.
    ///
    /// # Errors
    /// When another process has the port, or an address is not there.
    pub(super) async fn bind(
        host: HostId,
        key: SealKey,
        primary: IpAddr,
        own: &[IpAddr],
        port: u16,
    ) -> Result<Remote> {
        let mut sockets = Vec::new();
        let mut from = Vec::new();
        for &address in own.iter().chain(own.iter().all(|it| *it != primary).then_some(&primary)) {
            let socket = UdpSocket::bind((address, port)).await;
            let socket = Arc::new(socket.with_context(|| {
                format!("remote control on UDP {}", SocketAddr::new(address, port))
            })?);
            if own.contains(&address) {
                from.push((address, socket.clone()));
            }
            sockets.push(socket);
        }
        let judge = Judge {
            challenges: Mutex::new(Challenges::new(host, key)),
            rate: Mutex::new(Rate { since: Instant::now(), count: 0 }),
            places: Arc::new(Semaphore::new(AT_A_TIME)),
        };
        Ok(Remote { sockets, own: from, judge: Arc::new(judge) })
    }

    /// The usual port.
    pub(super) const PORT: u16 = PORT;

    /// Serves until the future is dropped. Never returns by itself.
    pub(super) async fn serve(self, obey: Arc<dyn Obey>) {
        let mut readers = JoinSet::new();
        let own = Arc::new(self.own);
        for socket in self.sockets {
            let (own, judge, obey) = (own.clone(), self.judge.clone(), obey.clone());
            readers.spawn(async move { read(&socket, &own, &judge, &obey).await });
        }
        while readers.join_next().await.is_some() {}
        std::future::pending::<()>().await;
    }
}

async fn read(
    socket: &UdpSocket,
    own: &[(IpAddr, Arc<UdpSocket>)],
    judge: &Arc<Judge>,
    obey: &Arc<dyn Obey>,
) {
    let mut buffer = vec![0; BUFFER];
    loop {
        let (length, from) = match socket.recv_from(&mut buffer).await {
            Ok(received) => received,
            Err(error) => {
                // An ICMP error about an answer, or the interface is gone: both pass.
                debug!("remote control: {error}");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let Some(answers_from) = own.iter().find(|(it, _)| it.is_ipv4() == from.is_ipv4()) else {
            obey.refuse(
                "no-address",
                "a remote command of a family of which this host has no address",
            );
            continue;
        };
        let out = answers_from.1.clone();
        match judge.judge(&buffer[..length]) {
            Ok(Request::Reply(reply)) => drop(out.send_to(&reply, from).await),
            Ok(Request::Obey(command)) => {
                let Ok(place) = judge.places.clone().try_acquire_owned() else {
                    obey.refuse("busy", "a remote command while four others were carried out");
                    continue;
                };
                let (judge, obey) = (judge.clone(), obey.clone());
                tokio::spawn(async move {
                    let carried_out = tokio::task::spawn_blocking(move || {
                        let answer = carry_out(&command, from, &*obey);
                        judge.answers(&command, answer)
                    });
                    for part in carried_out.await.unwrap_or_default() {
                        let _ = out.send_to(&part, from).await;
                    }
                    drop(place);
                });
            }
            Err(Some(reason)) => obey.refuse(reason.label(), reason.explanation()),
            Err(None) => obey.refuse("rate", "datagrams for remote control beyond 5000 a second"),
        }
    }
}

/// What a command that may be obeyed comes to; `None` when it is none.
fn carry_out(command: &Message, from: SocketAddr, obey: &dyn Obey) -> Option<NlbAnswer> {
    match serde_json::from_slice::<NlbCommand>(&command.text) {
        Ok(words) => Some(obey.obey(&words, from)),
        Err(error) => {
            warn!("a remote command of {from} is not understood: {error}");
            None
        }
    }
}

impl Judge {
    /// # Errors
    /// Why nothing is done; `None`: too many.
    fn judge(&self, datagram: &[u8]) -> Result<Request, Option<Refused>> {
        {
            let mut rate = self.rate.lock().unwrap_or_else(PoisonError::into_inner);
            if rate.since.elapsed() >= Duration::from_secs(1) {
                *rate = Rate { since: Instant::now(), count: 0 };
            }
            rate.count += 1;
            if rate.count > RATE {
                return Err(None);
            }
        }
        let fresh = random().map_err(|_| Refused::NoChallenge)?;
        self.challenges().receive(datagram, fresh, clock()).map_err(Some)
    }

    /// The datagrams of an answer.
    fn answers(&self, command: &Message, answer: Option<NlbAnswer>) -> Vec<Vec<u8>> {
        let challenges = self.challenges();
        let Some(mut answer) = answer else {
            return vec![challenges.answer(command, Code::NotUnderstood, Vec::new())];
        };
        let texts = loop {
            let whole = serde_json::to_vec(&answer).unwrap_or_default();
            match split(&whole) {
                Some(texts) => break texts,
                None => {
                    answer.view = None;
                    let message = "the answer is too long for the network: ask on the host itself";
                    answer.message = Some(message.to_owned());
                }
            }
        };
        let done = Code::Answer(::nlb::membership::Answer::Done);
        texts.into_iter().map(|text| challenges.answer(command, done, text)).collect()
    }

    fn challenges(&self) -> std::sync::MutexGuard<'_, Challenges> {
        self.challenges.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
