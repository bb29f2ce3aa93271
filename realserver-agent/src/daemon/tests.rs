//! The life of an agent in this process, without changing the host: it has no VIPs here.

use std::net::{TcpListener, TcpStream};

use nix::sys::signal::raise;
use tokio::net::UdpSocket;
use tokio::time::{sleep, timeout};

use super::*;
use crate::answer::Policy;
use crate::control::{Request, ask};
use crate::protocol::{Answer, Key, LEN, Probe, State};
use crate::role::{Role, Served};
use crate::settings::{Agent, Protocol};

const LONG: Duration = Duration::from_secs(20);

fn plan(name: &str, served: Vec<Served>) -> Plan {
    let control = std::env::temp_dir().join(format!("agent-{}-{name}.sock", std::process::id()));
    let listen = vec![([127, 0, 0, 1], 0).into()];
    Plan {
        role: Role { served, ..Role::default() },
        agent: Agent { listen, drain_deadline: LONG, ..Agent::default() },
        policy: Policy::default(),
        answers: true,
        listen_is_said: true,
        control: (control, true),
        config: None,
        endpoints: Vec::new(),
    }
}

/// What the agent at this address says of its state; `None` when it says nothing.
async fn state(at: SocketAddr, key: Option<&Key>) -> Option<State> {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket.connect(at).await.unwrap();
    socket.send(&Probe { challenge: 5 }.encode(key)).await.unwrap();
    let mut bytes = [0; LEN];
    let heard = timeout(LONG / 40, socket.recv(&mut bytes)).await.ok()?;
    heard.ok()?;
    Some(Answer::decode(&bytes, key).unwrap().state)
}

#[tokio::test]
async fn an_agent_is_drained_by_its_operator_and_by_sigterm_and_ends_when_nobody_is_served() {
    let service = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = service.local_addr().unwrap();
    let client = TcpStream::connect(to).unwrap();
    let accepted = service.accept().unwrap();
    let (address, port) = (to.ip(), Some(to.port()));
    let plan = plan("life", vec![Served { address, port, protocol: Some(Protocol::Tcp) }]);
    let control = plan.control.0.clone();
    let (options, mut signals) = (Options::default(), Signals::new().unwrap());
    let mut preparation = Preparation::new().unwrap();
    let mut daemon = Daemon::start(plan, &options, &mut preparation).await.unwrap();
    let at = daemon.sockets.addresses()[0];

    let path = control.clone();
    let tell = async move |request| {
        let path = path.clone();
        tokio::task::spawn_blocking(move || ask(&path, request).unwrap()).await.unwrap()
    };
    let operator = async {
        assert_eq!(state(at, None).await, Some(State::Up));
        assert_eq!(tell(Request::Drain).await.state, "draining");
        assert_eq!(state(at, None).await, Some(State::Draining));
        assert_eq!(tell(Request::Undrain).await.state, "up");
        let mut status = tell(Request::Status).await.status.unwrap();
        assert_eq!(status.answers.listen, [at]);
        while status.connections != 1 {
            sleep(Duration::from_millis(20)).await;
            status = tell(Request::Status).await.status.unwrap();
        }
        raise(nix::sys::signal::SIGTERM).unwrap();
        // It goes on serving, and says that it will not for long.
        sleep(Duration::from_millis(1500)).await;
        assert_eq!(state(at, None).await, Some(State::Draining));
        let reply = tell(Request::Undrain).await;
        assert_eq!(
            (reply.state.as_str(), reply.reason.as_str()),
            ("draining", "the agent is stopping")
        );
        drop((client, accepted));
        std::future::pending::<()>().await;
    };
    tokio::select! {
        ended = timeout(LONG, daemon.go_on(&options, &mut preparation, &mut signals)) => {
            ended.expect("it does not end").unwrap();
        }
        () = operator => {}
    }
    daemon.close(&preparation).await;
    assert!(!control.exists(), "the socket is left behind");
}

#[tokio::test]
async fn another_file_changes_who_is_answered_and_where_and_a_port_that_is_taken_changes_nothing() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let first = plan("reload", Vec::new());
    let options = Options::default();
    let mut preparation = Preparation::new().unwrap();
    let mut daemon = Daemon::start(first.clone(), &options, &mut preparation).await.unwrap();
    let key = Key::new(b"new");
    let mut second = first.clone();
    second.policy.key.clone_from(&key);
    daemon.change(second.clone(), &options, &mut preparation).await.unwrap();
    let at = daemon.sockets.addresses()[0];
    let served = async |daemon: &mut Daemon, key: Option<&Key>, at| {
        tokio::select! {
            _ = &mut daemon.answers => panic!("it ended"),
            state = state(at, key) => state,
        }
    };
    assert_eq!(served(&mut daemon, None, at).await, None, "unsigned");
    assert_eq!(served(&mut daemon, key.as_ref(), at).await, Some(State::Up));

    let mut wrong = second.clone();
    wrong.agent.listen = vec![taken.local_addr().unwrap()];
    wrong.policy.key = None;
    daemon.change(wrong, &options, &mut preparation).await.unwrap();
    let at = daemon.sockets.addresses()[0];
    assert_ne!(at, taken.local_addr().unwrap());
    assert_eq!(served(&mut daemon, key.as_ref(), at).await, Some(State::Up), "as before");
    daemon.close(&preparation).await;
}
