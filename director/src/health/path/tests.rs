//! Checks to a VIP through every kind of passage, with a server in memory at the other end: a stack
//! like ours, behind what the agent on a real server unpacks tunnels with.

use std::net::IpAddr;
use std::time::Duration;

use forwarding::checksum::Sum;
use forwarding::tunnel::{Encapsulation, GueChecksum, SourcePorts};
use forwarding::wire::ethernet;
use netio::raw::RawFamily;
use realserver_agent::decapsulation::{Buffer, Carrier, GRE, IPIP, IPV6, Policy};
use smoltcp::socket::{AnySocket, tcp, udp};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio::task::JoinHandle;

use super::exit::Wrapping;
use super::reservation::Waiting;
use super::stack::Stack;
use super::*;

const V4: &str = "192.0.2.10:80";
const V6: &str = "[2001:db8::10]:80";
const SERVER_V4: &str = "10.0.0.11";
const SERVER_V6: &str = "2001:db8:1::11";

/// A way to a VIP, and how a server takes it off again.
#[derive(Clone, Copy, Debug)]
struct Course {
    vip: SocketAddr,
    wrapping: Wrapping,
    carrier: Option<Carrier>,
}

fn course(vip: &str, server: &str, tunnel: Option<(Encapsulation, u8)>) -> Course {
    let server: IpAddr = server.parse().unwrap();
    let (wrapping, carrier) = match tunnel {
        None => (Wrapping::Ethernet { interface: 1, to: [2, 0, 0, 0, 0, 11] }, None),
        Some((encapsulation, protocol)) => {
            let (source, family): (IpAddr, _) = match server {
                IpAddr::V4(_) => ([10, 0, 0, 1].into(), RawFamily::V4),
                IpAddr::V6(_) => ("2001:db8:1::1".parse().unwrap(), RawFamily::V6),
            };
            let carrier = match encapsulation {
                Encapsulation::Gue { .. } => Carrier::Gue,
                _ => Carrier::Raw { family, protocol },
            };
            (Wrapping::Tunnel { encapsulation, source, server }, Some(carrier))
        }
    };
    Course { vip: vip.parse().unwrap(), wrapping, carrier }
}

fn courses() -> Vec<Course> {
    let gue = |checksum| {
        (Encapsulation::Gue { port: 6080, source_ports: SourcePorts::default(), checksum }, 17)
    };
    let gre = |checksum| (Encapsulation::Gre { checksum }, GRE);
    let ipip = Encapsulation::Ipip;
    vec![
        course(V4, SERVER_V4, None),
        course(V6, SERVER_V6, None),
        course(V4, SERVER_V4, Some((ipip, IPIP))),
        course(V6, SERVER_V4, Some((ipip, IPV6))),
        course(V4, SERVER_V6, Some((ipip, IPIP))),
        course(V6, SERVER_V6, Some((ipip, IPV6))),
        course(V4, SERVER_V4, Some(gue(GueChecksum::Nocsum))),
        course(V6, SERVER_V4, Some(gue(GueChecksum::Csum))),
        course(V4, SERVER_V6, Some(gue(GueChecksum::Remcsum))),
        course(V4, SERVER_V4, Some(gre(false))),
        course(V6, SERVER_V6, Some(gre(true))),
    ]
}

impl Course {
    /// What the server's own stack gets of a packet that was sent to it.
    fn unwrap(&self, buffer: &mut Buffer, packet: &[u8]) -> Vec<u8> {
        let Some(carrier) = self.carrier else { return packet.to_vec() };
        let is_v4 = packet[0] >> 4 == 4;
        let behind = match carrier {
            Carrier::Raw { family: RawFamily::V4, .. } => 0,
            Carrier::Raw { family: RawFamily::V6, .. } => 40,
            Carrier::Gue => 8 + if is_v4 { 20 } else { 40 },
        };
        let given = &packet[behind..];
        buffer.space(carrier)[..given.len()].copy_from_slice(given);
        let Wrapping::Tunnel { source, .. } = self.wrapping else { unreachable!() };
        let policy = Policy { vips: vec![self.vip.ip()], from: vec![source.into()] };
        buffer.unpack(carrier, given.len(), source, &policy).unwrap().to_vec()
    }

    /// What a check has of it, and what it sends.
    fn lease(
        &self,
        waiting: &Waiting,
        transport: Transport,
    ) -> (Lease, UnboundedReceiver<Vec<u8>>) {
        let own: IpAddr = match self.vip {
            SocketAddr::V4(_) => [127, 0, 0, 1].into(),
            SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
        };
        let reservation = waiting.reserve(own, self.vip, transport).unwrap();
        let (sender, sent) = mpsc::unbounded_channel();
        let exit = Exit::into_memory(self.wrapping, sender);
        let ends = Ends { local: reservation.address(), vip: self.vip, mtu: 1400 };
        (Lease { ends, exit, reservation }, sent)
    }

    /// A server with this socket, which does `serve` with it again and again until that says stop.
    fn serve<T: AnySocket<'static> + Send>(
        self,
        waiting: Waiting,
        mut sent: UnboundedReceiver<Vec<u8>>,
        socket: T,
        mut serve: impl FnMut(&mut T) -> bool + Send + 'static,
    ) -> JoinHandle<()> {
        let ends = Ends { local: self.vip, vip: self.vip, mtu: 1500 };
        let mut stack = Stack::new(&ends, socket);
        let (sender, mut answers) = mpsc::unbounded_channel();
        let plain = Wrapping::Ethernet { interface: 1, to: [0; 6] };
        let mut exit = Exit::into_memory(plain, sender);
        tokio::spawn(async move {
            let mut buffer = Buffer::new();
            loop {
                stack.turn(&mut exit).unwrap();
                let goes_on = serve(stack.socket::<T>().0);
                stack.turn(&mut exit).unwrap();
                while let Ok(answer) = answers.try_recv() {
                    let mut frame = [&[0; ethernet::LEN], answer.as_slice()].concat();
                    arrivals::sort(&mut frame, &waiting);
                }
                if !goes_on {
                    return;
                }
                tokio::select! {
                    packet = sent.recv() => match packet {
                        Some(packet) => stack.arrive(self.unwrap(&mut buffer, &packet)),
                        // Nothing comes any more: what was not said by then is not made up.
                        None => std::future::pending().await,
                    },
                    () = stack.due() => {}
                }
            }
        })
    }
}

fn listening(port: u16) -> tcp::Socket<'static> {
    let buffer = || tcp::SocketBuffer::new(vec![0; 60_000]);
    let mut socket = tcp::Socket::new(buffer(), buffer());
    socket.listen(port).unwrap();
    socket
}

fn receiving(port: u16) -> udp::Socket<'static> {
    let buffer = || udp::PacketBuffer::new(vec![udp::PacketMetadata::EMPTY; 4], vec![0; 4096]);
    let mut socket = udp::Socket::new(buffer(), buffer());
    socket.bind(port).unwrap();
    socket
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

fn soon() -> Deadline {
    Deadline::after(Duration::from_millis(100))
}

fn late() -> Deadline {
    Deadline::after(Duration::from_secs(20))
}

const LENGTH: usize = 300_000;

#[test]
fn a_stream_goes_every_way_and_comes_back_whole_and_ends_with_the_servers_end() {
    for course in courses() {
        block_on(async {
            let waiting = Waiting::default();
            let (lease, sent) = course.lease(&waiting, Transport::Tcp);
            let mut echoed = 0;
            course.serve(waiting, sent, listening(80), move |socket: &mut tcp::Socket<'_>| {
                if socket.can_recv() && socket.can_send() {
                    let room = socket.send_capacity() - socket.send_queue();
                    let taken = socket.recv(|bytes| {
                        let count = bytes.len().min(room);
                        (count, bytes[..count].to_vec())
                    });
                    echoed += socket.send_slice(&taken.unwrap()).unwrap();
                }
                if echoed == LENGTH {
                    socket.close();
                }
                true
            });
            let begun = std::time::Instant::now();
            let stream = stream::connect(lease, late()).await.unwrap();
            let (mut read, mut write) = tokio::io::split(stream);
            let bytes: Vec<u8> = (0..LENGTH).map(|n| (n * 7 / 3) as u8).collect();
            let mut back = Vec::new();
            let (written, whole) =
                tokio::join!(write.write_all(&bytes), read.read_to_end(&mut back));
            written.unwrap();
            whole.unwrap();
            assert!(begun.elapsed() < Duration::from_secs(15), "its end is not seen: {course:?}");
            assert!(back == bytes, "{} of {LENGTH} bytes came back: {course:?}", back.len());
        });
    }
}

#[test]
fn a_datagram_goes_every_way_and_is_answered() {
    for course in courses() {
        block_on(async {
            let waiting = Waiting::default();
            let (lease, sent) = course.lease(&waiting, Transport::Udp);
            course.serve(waiting, sent, receiving(80), |socket: &mut udp::Socket<'_>| {
                if let Ok((asked, about)) = socket.recv() {
                    let answer = [b"re: ", asked].concat();
                    socket.send_slice(b"something else", about).unwrap();
                    socket.send_slice(&answer, about).unwrap();
                }
                true
            });
            let accept = |answer: &[u8]| answer.starts_with(b"re: ").then(|| answer.to_vec());
            let answer = datagram::exchange(lease, b"hello", late(), accept).await;
            assert_eq!(answer, Ok(Some(b"re: hello".to_vec())), "{course:?}");
        });
    }
}

#[test]
fn who_refuses_or_is_silent_fails_and_the_port_is_free_again() {
    for course in [course(V4, SERVER_V4, None), course(V6, SERVER_V6, None)] {
        block_on(async {
            let waiting = Waiting::default();
            let (lease, sent) = course.lease(&waiting, Transport::Tcp);
            // Nobody listens at 80.
            course.serve(waiting, sent, listening(81), |_: &mut tcp::Socket<'_>| true);
            let refused = stream::connect(lease, late()).await.unwrap_err();
            assert_eq!(refused, Outcome::Failed("connect: connection refused".to_owned()));

            let waiting = Waiting::default();
            let (lease, mut sent) = course.lease(&waiting, Transport::Tcp);
            let port = lease.ends.local;
            let silent = stream::connect(lease, soon()).await.unwrap_err();
            assert_eq!(silent, Outcome::Failed("connect: timed out".to_owned()));
            // The task ends as well, and with it the channel.
            while sent.recv().await.is_some() {}
            std::net::TcpListener::bind(port).unwrap();

            let (lease, _sent) = course.lease(&waiting, Transport::Udp);
            let silent = datagram::exchange(lease, b"hello", soon(), |_| Some(())).await;
            assert_eq!(silent, Ok(None));
        });
    }
}

#[test]
fn a_stream_that_is_dropped_is_reset_at_the_server() {
    let course = course(V4, SERVER_V4, Some((Encapsulation::Ipip, IPIP)));
    block_on(async {
        let waiting = Waiting::default();
        let (lease, sent) = course.lease(&waiting, Transport::Tcp);
        let mut was_open = false;
        let serve = move |socket: &mut tcp::Socket<'_>| {
            was_open |= socket.state() == tcp::State::Established;
            // What was opened, and has been closed without a FIN.
            !(was_open && matches!(socket.state(), tcp::State::Closed | tcp::State::Listen))
        };
        let server = course.serve(waiting, sent, listening(80), serve);
        let stream = stream::connect(lease, late()).await.unwrap();
        tokio::task::yield_now().await;
        drop(stream);
        late().limit("RST", server).await.unwrap().unwrap();
    });
}

/// The answer of a host without such a port to a packet, behind room for an Ethernet header.
fn port_unreachable(packet: &[u8]) -> Vec<u8> {
    let is_v4 = packet[0] >> 4 == 4;
    let quote = &packet[..packet.len().min(64)];
    let (kind, code) = if is_v4 { (3, 3) } else { (1, 4) };
    let mut message = [&[kind, code, 0, 0, 0, 0, 0, 0], quote].concat();
    let length = message.len() as u16;
    let mut header = if is_v4 {
        let total = (20 + length).to_be_bytes();
        let begin = [0x45, 0, total[0], total[1], 0, 1, 0, 0, 64, 1, 0, 0];
        [&begin, &packet[16..20], &packet[12..16]].concat()
    } else {
        let [high, low] = length.to_be_bytes();
        [&[0x60, 0, 0, 0, high, low, 58, 64], &packet[24..40], &packet[8..24]].concat()
    };
    let sum = if is_v4 {
        let sum = Sum::default().bytes(&header).checksum().to_be_bytes();
        header[10..12].copy_from_slice(&sum);
        Sum::default()
    } else {
        Sum::default().bytes(&header[8..40]).bytes(&[0, 58]).bytes(&length.to_be_bytes())
    };
    let sum = sum.bytes(&message).checksum().to_be_bytes();
    message[2..4].copy_from_slice(&sum);
    [&[0; ethernet::LEN], header.as_slice(), &message].concat()
}

#[test]
fn an_icmp_error_about_its_packet_ends_a_check_at_once() {
    for course in [course(V4, SERVER_V4, None), course(V6, SERVER_V6, None)] {
        block_on(async {
            let waiting = Waiting::default();
            let (lease, mut sent) = course.lease(&waiting, Transport::Udp);
            let refuse = async |waiting: &Waiting, sent: &mut UnboundedReceiver<Vec<u8>>| {
                arrivals::sort(&mut port_unreachable(&sent.recv().await.unwrap()), waiting);
            };
            let (answer, ()) = tokio::join!(
                datagram::exchange(lease, b"hello", late(), |_| Some(())),
                refuse(&waiting, &mut sent)
            );
            assert_eq!(answer, Err(Outcome::Failed("answer: port unreachable".to_owned())));
            let (lease, mut sent) = course.lease(&waiting, Transport::Tcp);
            let (opened, ()) =
                tokio::join!(stream::connect(lease, late()), refuse(&waiting, &mut sent));
            let why = Outcome::Failed("connect: port unreachable".to_owned());
            assert_eq!(opened.unwrap_err(), why);
        });
    }
}

#[test]
fn what_does_not_fit_into_a_packet_is_the_plans_fault() {
    let course = course(V6, SERVER_V6, None);
    block_on(async {
        let waiting = Waiting::default();
        for (length, fits) in [(1400 - 48, true), (1400 - 47, false)] {
            let (lease, _sent) = course.lease(&waiting, Transport::Udp);
            let done = datagram::exchange(lease, &vec![0; length], soon(), |_| Some(())).await;
            assert_eq!(done.is_ok(), fits);
            assert!(fits || matches!(done, Err(Outcome::Unable(_))));
        }
    });
}
