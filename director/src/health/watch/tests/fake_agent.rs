//! An agent: real sockets, and whatever it is told to answer.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use realserver_agent::protocol::{Answer, Key, LEN, Message, Probe, State};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::task::JoinSet;

use super::fake::server;

#[derive(Clone, Debug)]
pub(super) struct Manner {
    pub(super) boot: u64,
    pub(super) state: State,
    pub(super) load: Option<u16>,
    /// Whether datagrams are answered.
    pub(super) hears_udp: bool,
    /// What it writes as version, if it is not the right one.
    pub(super) version: Option<u8>,
    pub(super) key: Option<Key>,
    /// Questions that came, by UDP and TCP.
    pub(super) asked: [u64; 2],
}

pub(super) struct FakeAgent {
    pub(super) address: SocketAddr,
    pub(super) manner: Arc<Mutex<Manner>>,
    tasks: Option<JoinSet<()>>,
}

impl Manner {
    fn answer(&mut self, way: usize, bytes: &[u8]) -> Option<Message> {
        self.asked[way] += 1;
        let challenge = Probe::decode(bytes, self.key.as_ref()).ok()?.challenge;
        let (boot, state, load) = (self.boot, self.state, self.load);
        let answer = Answer { challenge, boot, state, load, connections: 3, queue: 0 };
        let mut message = answer.encode(self.key.as_ref());
        if let Some(version) = self.version {
            message[4] = version;
        }
        Some(message)
    }
}

impl FakeAgent {
    /// On the address of `server(number)`, at a free port.
    pub(super) async fn start(number: u8) -> FakeAgent {
        let manner = Manner {
            boot: 1,
            state: State::Up,
            load: None,
            hears_udp: true,
            version: None,
            key: None,
            asked: [0; 2],
        };
        let manner = Arc::new(Mutex::new(manner));
        // The port must be free for both; the first that is offered nearly always is.
        for _ in 0..20 {
            let udp = UdpSocket::bind((server(number).ip(), 0)).await.unwrap();
            let address = udp.local_addr().unwrap();
            if let Ok(tcp) = TcpListener::bind(address).await {
                let mut agent = FakeAgent { address, manner, tasks: None };
                agent.run(udp, tcp);
                return agent;
            }
        }
        panic!("no port is free");
    }

    fn run(&mut self, udp: UdpSocket, tcp: TcpListener) {
        let mut tasks = JoinSet::new();
        let manner = self.manner.clone();
        tasks.spawn(async move {
            let mut buffer = [0; 100];
            loop {
                let (length, from) = udp.recv_from(&mut buffer).await.unwrap();
                let answer = {
                    let mut manner = manner.lock().unwrap();
                    let answer = manner.answer(0, &buffer[..length]);
                    answer.filter(|_| manner.hears_udp)
                };
                if let Some(answer) = answer {
                    udp.send_to(&answer, from).await.unwrap();
                }
            }
        });
        let manner = self.manner.clone();
        tasks.spawn(async move {
            let mut streams = JoinSet::new();
            loop {
                let (stream, _) = tcp.accept().await.unwrap();
                streams.spawn(talk(stream, manner.clone()));
            }
        });
        self.tasks = Some(tasks);
    }

    /// The process is gone, and with it its sockets.
    pub(super) async fn kill(&mut self) {
        if let Some(mut tasks) = self.tasks.take() {
            tasks.shutdown().await;
        }
    }

    /// It is there again, at the same port.
    pub(super) async fn restart(&mut self) {
        let udp = UdpSocket::bind(self.address).await.unwrap();
        let tcp = TcpListener::bind(self.address).await.unwrap();
        self.run(udp, tcp);
    }

    pub(super) fn set(&self, change: impl FnOnce(&mut Manner)) {
        change(&mut self.manner.lock().unwrap());
    }

    pub(super) fn asked(&self) -> [u64; 2] {
        self.manner.lock().unwrap().asked
    }
}

async fn talk(mut stream: TcpStream, manner: Arc<Mutex<Manner>>) {
    let mut buffer = [0; LEN];
    while stream.read_exact(&mut buffer).await.is_ok() {
        let answer = manner.lock().unwrap().answer(1, &buffer);
        if let Some(answer) = answer
            && stream.write_all(&answer).await.is_err()
        {
            return;
        }
    }
}
