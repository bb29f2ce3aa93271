//! A node's remote control over loopback, with a controller and with a stranger.

use std::net::UdpSocket;
use std::sync::mpsc;

use ::nlb::control::{Kind, decode};
use ::nlb::key::ClusterKey;
use ::nlb::membership::Answer;

use super::*;
use crate::control::nlb::views::{ConnectionsView, FlowView, NlbView};
use crate::control::nlb::{NlbReply, NlbResult};
use crate::control::remote::Controller;

fn key() -> SealKey {
    ClusterKey::new(b"a key of a cluster").unwrap().control().clone()
}

/// Counts, and answers a question for connections at length.
#[derive(Default)]
struct Fake {
    commands: Mutex<Vec<NlbCommand>>,
    refused: Mutex<Vec<&'static str>>,
}

impl Obey for Fake {
    fn obey(&self, command: &NlbCommand, _: SocketAddr) -> NlbAnswer {
        self.commands.lock().unwrap().push(command.clone());
        let flow = |port| FlowView {
            protocol: "tcp".to_owned(),
            client: [203, 0, 113, 7].into(),
            client_port: port,
            vip: [192, 0, 2, 10].into(),
            port: 80,
            held: "socket".to_owned(),
            owner: Some(1),
        };
        let view = match command {
            NlbCommand::Connections { limit } => {
                let flows: Vec<FlowView> = (0..*limit as u16).map(flow).collect();
                Some(Box::new(NlbView::Connections(ConnectionsView { total: *limit, flows })))
            }
            _ => None,
        };
        NlbAnswer {
            host: 3,
            name: "web3".to_owned(),
            state: "converged".to_owned(),
            result: NlbResult::Done,
            message: None,
            view,
        }
    }

    fn refuse(&self, reason: &'static str, _: &'static str) {
        self.refused.lock().unwrap().push(reason);
    }
}

/// A served node, on a port of loopback.
struct Served {
    at: SocketAddr,
    fake: Arc<Fake>,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Served {
    fn new() -> Served {
        let loopback = IpAddr::from([127, 0, 0, 1]);
        let fake = Arc::new(Fake::default());
        let obey: Arc<dyn Obey> = fake.clone();
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let (ready, is_ready) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let mut runtime = tokio::runtime::Builder::new_current_thread();
            runtime.enable_all().build().unwrap().block_on(async {
                let host = HostId::new(3).unwrap();
                let remote = Remote::bind(host, key(), loopback, &[loopback], 0).await.unwrap();
                ready.send(remote.sockets[0].local_addr().unwrap()).unwrap();
                tokio::select! {
                    () = remote.serve(obey) => {}
                    _ = stopped => {}
                }
            });
        });
        let at = is_ready.recv().unwrap();
        Served { at, fake, stop: Some(stop), thread: Some(thread) }
    }

    fn ask(&self, hosts: &[u8], command: &NlbCommand) -> NlbReply {
        let hosts: Vec<HostId> = hosts.iter().map(|id| HostId::new(*id).unwrap()).collect();
        let controller = Controller::new(key(), self.at.ip()).unwrap();
        controller.ask(&[self.at], &hosts, command).unwrap()
    }

    /// Sends as it is and returns the answer, if one comes before that to a hello sent afterwards.
    fn raw(&self, socket: &UdpSocket, datagram: &[u8]) -> Option<Message> {
        let last = Message {
            kind: Kind::Hello,
            host: None,
            code: Code::Answer(Answer::Done),
            nonce: [0xee; 16],
            sequence: 0,
            text: vec![],
        };
        socket.send_to(datagram, self.at).unwrap();
        socket.send_to(&last.encode(&key()), self.at).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut buffer = [0; BUFFER];
        let mut found = None;
        loop {
            let length = socket.recv(&mut buffer).unwrap();
            let message = decode(&buffer[..length], &key()).unwrap();
            if message.text == [0xee; 16] {
                return found;
            }
            found = Some(message);
        }
    }

    fn commands(&self) -> usize {
        self.fake.commands.lock().unwrap().len()
    }

    fn refused(&self, reason: &str) -> usize {
        let refused = self.fake.refused.lock().unwrap();
        refused.iter().filter(|it| **it == reason).count()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[test]
fn a_controller_with_the_key_is_answered_and_names_who_is_silent() {
    let served = Served::new();
    let reply = served.ask(&[], &NlbCommand::Start);
    assert_eq!((reply.answers.len(), &reply.silent[..]), (1, &[][..]));
    assert_eq!((reply.answers[0].host, reply.answers[0].result), (3, NlbResult::Done));
    assert!((1..=3).contains(&served.commands()), "at most once for each try");
    let reply = served.ask(&[3, 4], &NlbCommand::Query);
    assert_eq!((reply.answers.len(), &reply.silent[..]), (1, &[4][..]));
    let controller = Controller::new(key(), served.at.ip()).unwrap();
    for word in ["3", "web3", "127.0.0.1"] {
        let found = controller.find(&[served.at], word).unwrap();
        assert_eq!(found, [HostId::new(3).unwrap()], "{word}");
    }
    let nobody = controller.find(&[served.at], "web4").unwrap_err().to_string();
    assert!(nobody.contains("3 web3"), "{nobody}");
}

#[test]
fn a_long_answer_comes_in_parts_and_one_that_is_too_long_says_so() {
    let served = Served::new();
    let reply = served.ask(&[3], &NlbCommand::Connections { limit: 300 });
    let Some(NlbView::Connections(view)) = reply.answers[0].view.as_deref() else { panic!() };
    assert_eq!(view.flows.len(), 300);
    let reply = served.ask(&[3], &NlbCommand::Connections { limit: 5000 });
    assert_eq!(reply.answers[0].view, None);
    assert!(reply.answers[0].message.as_ref().unwrap().contains("too long"));
}

#[test]
fn forged_replayed_cut_and_unchallenged_commands_are_counted_and_not_obeyed() {
    let served = Served::new();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let message = |kind, nonce, sequence, text: &str| Message {
        kind,
        host: None,
        code: Code::Answer(Answer::Done),
        nonce,
        sequence,
        text: text.as_bytes().to_vec(),
    };
    let hello = message(Kind::Hello, [9; 16], 0, "");
    let challenge = served.raw(&socket, &hello.encode(&key())).unwrap();
    assert_eq!((challenge.kind, &challenge.text[..]), (Kind::Challenge, &[9; 16][..]));
    let stop = message(Kind::Command, challenge.nonce, 1, r#"{"op":"stop"}"#);

    let other = ClusterKey::new(b"a key of somebody").unwrap().control().clone();
    let mut forged = stop.encode(&key());
    forged[31] ^= 1;
    let cut = stop.encode(&key());
    let strange = message(Kind::Command, [7; 16], 1, r#"{"op":"stop"}"#);
    for (datagram, reason) in [
        (stop.encode(&other), "seal"),
        (forged, "seal"),
        (cut[..cut.len() - 1].to_vec(), "seal"),
        (vec![], "seal"),
        (vec![0; BUFFER], "seal"),
        (strange.encode(&key()), "no-challenge"),
    ] {
        let before = served.refused(reason);
        assert_eq!(served.raw(&socket, &datagram), None, "{reason}");
        assert_eq!(served.refused(reason), before + 1, "{reason}");
    }
    assert_eq!(served.commands(), 0);

    // What nobody understands is answered, for it is of somebody with the key.
    let words = message(Kind::Command, challenge.nonce, 1, "explode").encode(&key());
    socket.send_to(&words, served.at).unwrap();
    let mut buffer = [0; BUFFER];
    let length = socket.recv(&mut buffer).unwrap();
    assert_eq!(decode(&buffer[..length], &key()).unwrap().code, Code::NotUnderstood);

    let stop = message(Kind::Command, challenge.nonce, 2, r#"{"op":"stop"}"#).encode(&key());
    socket.send_to(&stop, served.at).unwrap();
    let length = socket.recv(&mut buffer).unwrap();
    assert_eq!(decode(&buffer[..length], &key()).unwrap().kind, Kind::Answer);
    assert_eq!(served.raw(&socket, &stop), None);
    assert_eq!((served.commands(), served.refused("replay")), (1, 1));
}

#[test]
fn a_flood_is_cut_off_and_the_node_goes_on() {
    let served = Served::new();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let begun = Instant::now();
    for _ in 0..4 * RATE {
        let _ = socket.send_to(b"flood", served.at);
    }
    // The kernel drops what the node does not fetch in time, so how many it sees is not certain.
    let reply = served.ask(&[3], &NlbCommand::Query);
    let (seals, late) = (served.refused("seal"), served.refused("rate"));
    let allowed = RATE as usize * (begun.elapsed().as_secs() as usize + 2);
    assert!(seals <= allowed, "{seals} looked at, {allowed} would be right");
    assert!(seals + late > 0);
    assert!(served.commands() + reply.silent.len() > 0, "asked or known to be silent");
}
