//! The server: every request gets the same answer, the server's name.

use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener};

use anyhow::{Context, Result};
use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;

use super::SERVER_HEADER;

/// What a server answers to every request.
#[derive(Clone, Debug)]
pub struct Answer {
    name: HeaderValue,
    body: Bytes,
}

impl Answer {
    /// The header `X-Server: <name>`, and the name as a line of text, followed by dots up to
    /// `size` bytes of body.
    ///
    /// # Errors
    /// When the name cannot be an HTTP header.
    pub fn new(name: &str, size: usize) -> Result<Answer> {
        let mut body = format!("{name}\n").into_bytes();
        if body.len() < size {
            body.resize(size, b'.');
        }
        Ok(Answer {
            name: HeaderValue::from_str(name)
                .with_context(|| format!("{name:?} cannot be an HTTP header"))?,
            body: body.into(),
        })
    }

    fn response(&self) -> Response<Full<Bytes>> {
        let mut response = Response::new(Full::new(self.body.clone()));
        let headers = response.headers_mut();
        headers.insert(SERVER_HEADER, self.name.clone());
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
        response
    }
}

/// Opens the listening sockets; a wildcard IPv6 one takes only IPv6, so that `0.0.0.0:80` and
/// `[::]:80` can be given together.
fn listen(address: SocketAddr) -> Result<tokio::net::TcpListener> {
    let socket = nix::sys::socket::socket(
        if address.is_ipv4() {
            nix::sys::socket::AddressFamily::Inet
        } else {
            nix::sys::socket::AddressFamily::Inet6
        },
        nix::sys::socket::SockType::Stream,
        nix::sys::socket::SockFlag::SOCK_CLOEXEC | nix::sys::socket::SockFlag::SOCK_NONBLOCK,
        None,
    )?;
    use nix::sys::socket::{Backlog, SockaddrStorage, bind, listen, setsockopt, sockopt};
    use std::os::fd::AsRawFd;
    setsockopt(&socket, sockopt::ReuseAddr, &true)?;
    if address.is_ipv6() {
        setsockopt(&socket, sockopt::Ipv6V6Only, &true)?;
    }
    bind(socket.as_raw_fd(), &SockaddrStorage::from(address))
        .with_context(|| format!("listen on {address}/tcp"))?;
    listen(&socket, Backlog::MAXCONN)?;
    Ok(tokio::net::TcpListener::from_std(TcpListener::from(socket))?)
}

/// Serves on all these addresses, with keep-alive, until the future is dropped. `ready` is called
/// when connections are accepted.
///
/// # Errors
/// When an address cannot be bound.
pub async fn serve(answer: Answer, addresses: &[SocketAddr], ready: impl FnOnce()) -> Result<()> {
    let mut accepting = tokio::task::JoinSet::new();
    for address in addresses {
        accepting.spawn(accept(listen(*address)?, answer.clone()));
    }
    ready();
    while accepting.join_next().await.is_some() {}
    Ok(())
}

async fn accept(listener: tokio::net::TcpListener, answer: Answer) {
    // Owned by this task, so that dropping the server ends its connections too.
    let mut connections = tokio::task::JoinSet::new();
    loop {
        let (stream, _) = match listener.accept().await {
            Ok(accepted) => accepted,
            // Out of file descriptors, or a client that was gone already: try again.
            Err(_) => {
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
                continue;
            }
        };
        while connections.try_join_next().is_some() {}
        let answer = answer.clone();
        connections.spawn(async move {
            let service = service_fn(|_: Request<hyper::body::Incoming>| {
                let response = answer.response();
                async move { Ok::<_, Infallible>(response) }
            });
            // A client that breaks off is part of the tests.
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}
