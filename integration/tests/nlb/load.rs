//! Clients: short requests, one after the other, that show who takes new flows and whether anybody
//! does; and long downloads, that show whether what is established lives on.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use integration::cluster::{CLIENTS, client_addresses};
use integration::lab::Host;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;

use crate::bed::{DOWNLOAD, FAMILIES, HTTP};

/// How long a request may take: less than a second, after which a lost SYN is sent again.
pub(crate) const PATIENCE: Duration = Duration::from_millis(800);

/// A request that has been made.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) at: Instant,
    pub(crate) client: IpAddr,
    /// The server's name, or what went wrong.
    pub(crate) outcome: Result<String, String>,
}

/// Requests on the way.
pub(crate) struct Requests {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<Vec<Request>>>,
}

impl Requests {
    /// Sends a request every `interval`, from one client address after the other, to the VIPs of
    /// these families in turn, until it is told to stop.
    pub(crate) fn start(client: &Host, families: &'static [usize], interval: Duration) -> Requests {
        let stop = Arc::new(AtomicBool::new(false));
        let (client, stopped) = (client.clone(), stop.clone());
        let thread = std::thread::spawn(move || {
            in_client(&client, async || {
                let mut ticks = tokio::time::interval(interval);
                let mut running = JoinSet::new();
                let mut number = 0;
                while !stopped.load(Ordering::Relaxed) {
                    ticks.tick().await;
                    running.spawn(request(families[number % families.len()], number));
                    number += 1;
                }
                running.join_all().await
            })
        });
        Requests { stop, thread }
    }

    /// All that were made.
    pub(crate) fn finish(self) -> Result<Vec<Request>> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| anyhow!("a client panicked"))?
    }
}

/// Makes `count` requests, 32 at a time, from all client addresses in turn.
pub(crate) fn requests(client: &Host, family: usize, count: usize) -> Result<Vec<Request>> {
    in_client(client, async || {
        let mut running = JoinSet::new();
        let mut done = Vec::new();
        for number in 0..count {
            running.spawn(request(family, number));
            if running.len() >= 32
                && let Some(Ok(one)) = running.join_next().await
            {
                done.push(one);
            }
        }
        done.extend(running.join_all().await);
        done
    })
}

/// Who answered how many.
pub(crate) fn tally(requests: &[Request]) -> BTreeMap<String, usize> {
    let mut tally = BTreeMap::new();
    for request in requests {
        let name = match &request.outcome {
            Ok(name) => name.clone(),
            Err(error) => format!("FAILED: {error}"),
        };
        *tally.entry(name).or_default() += 1;
    }
    tally
}

/// The requests that failed.
pub(crate) fn failed(requests: &[Request]) -> Vec<&Request> {
    requests.iter().filter(|request| request.outcome.is_err()).collect()
}

async fn request(family: usize, number: usize) -> Request {
    let client = client_addresses((number % usize::from(CLIENTS)) as u8 + 1)[family];
    let at = Instant::now();
    let outcome = match tokio::time::timeout(PATIENCE, page(family, client)).await {
        Ok(Ok(name)) => Ok(name),
        Ok(Err(error)) => Err(error.root_cause().to_string()),
        Err(_) => Err("no answer in time".to_owned()),
    };
    Request { at, client, outcome }
}

async fn page(family: usize, client: IpAddr) -> Result<String> {
    let mut stream = ask(family, client, "/page").await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let name = server(&answer)?;
    ensure!(answer.ends_with(&format!("\r\n\r\n{name}\n")), "a page of another server");
    Ok(name)
}

async fn ask(family: usize, client: IpAddr, path: &str) -> Result<TcpStream> {
    let socket = if client.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    socket.bind(SocketAddr::new(client, 0))?;
    let mut stream = socket.connect(SocketAddr::new(FAMILIES[family].1, HTTP)).await?;
    stream.write_all(format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes()).await?;
    Ok(stream)
}

fn server(head: &str) -> Result<String> {
    ensure!(head.starts_with("HTTP/1.1 200"), "not 200: {:?}", head.lines().next());
    let name = head.lines().find_map(|line| line.strip_prefix("X-Server: "));
    Ok(name.context("no X-Server in the answer")?.trim().to_owned())
}

/// A download that has come to an end.
#[derive(Clone, Debug)]
pub(crate) struct Download {
    pub(crate) server: String,
    pub(crate) ended: Instant,
    /// What broke it; `None`: every byte has come.
    pub(crate) broken: Option<String>,
}

/// Downloads on the way.
pub(crate) struct Downloads {
    begun: Arc<AtomicUsize>,
    count: usize,
    thread: JoinHandle<Result<Vec<Download>>>,
}

impl Downloads {
    /// Begins `count` downloads, from all client addresses in turn, and waits until each has found
    /// its server.
    pub(crate) fn start(
        client: &Host,
        families: &'static [usize],
        count: usize,
    ) -> Result<Downloads> {
        let begun = Arc::new(AtomicUsize::new(0));
        let (client, counter) = (client.clone(), begun.clone());
        let thread = std::thread::spawn(move || {
            in_client(&client, async || {
                let mut running = JoinSet::new();
                for number in 0..count {
                    let family = families[number % families.len()];
                    let client =
                        client_addresses((number % usize::from(CLIENTS)) as u8 + 1)[family];
                    running.spawn(download(family, client, counter.clone()));
                }
                running.join_all().await
            })
        });
        let downloads = Downloads { begun, count, thread };
        let deadline = Instant::now() + Duration::from_secs(5);
        while downloads.begun.load(Ordering::Relaxed) < count {
            if Instant::now() > deadline {
                bail!("only {:?} of {count} downloads began", downloads.begun);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(downloads)
    }

    /// Waits for the end of all.
    pub(crate) fn finish(self) -> Result<Vec<Download>> {
        let downloads = self.thread.join().map_err(|_| anyhow!("a client panicked"))??;
        ensure!(downloads.len() == self.count, "{} downloads ended", downloads.len());
        Ok(downloads)
    }
}

async fn download(family: usize, client: IpAddr, begun: Arc<AtomicUsize>) -> Download {
    let mut name = String::new();
    let broken = fetch(family, client, &begun, &mut name).await.err();
    let broken = broken.map(|error| error.root_cause().to_string());
    Download { server: name, ended: Instant::now(), broken }
}

async fn fetch(
    family: usize,
    client: IpAddr,
    begun: &AtomicUsize,
    name: &mut String,
) -> Result<()> {
    let mut stream = ask(family, client, "/download").await?;
    let mut answer = Vec::new();
    let mut head = None;
    loop {
        let read = stream.read_buf(&mut answer);
        // A server that is gone without a word: the client finds out by itself.
        let count = tokio::time::timeout(Duration::from_secs(15), read).await??;
        if head.is_none()
            && let Some(end) = answer.windows(4).position(|four| four == b"\r\n\r\n")
        {
            *name = server(&String::from_utf8_lossy(&answer[..end]))?;
            head = Some(end + 4);
            begun.fetch_add(1, Ordering::Relaxed);
        }
        if count == 0 {
            let bytes = answer.len() - head.unwrap_or(answer.len());
            ensure!(bytes == DOWNLOAD, "{bytes} bytes of {DOWNLOAD}");
            return Ok(());
        }
    }
}

fn in_client<T: Send>(client: &Host, work: impl AsyncFnOnce() -> T + Send) -> Result<T> {
    client.run(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(runtime.block_on(work()))
    })?
}
