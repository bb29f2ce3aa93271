//! Two network namespaces with a veth pair between them, and the follower in the near one.

use std::fs::File;
use std::future::Future;
use std::net::IpAddr;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use director::network::{Follower, Network};
use futures_util::TryStreamExt;
use netlink_packet_route::address::AddressHeaderFlags;
use nix::sched::{CloneFlags, setns, unshare};
use rtnetlink::{Handle, LinkUnspec, LinkVeth};

pub(crate) fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

/// Runs `body` in a new network namespace, or says why not.
pub(crate) fn in_namespace<F: Future<Output = ()>>(
    name: &str,
    body: impl FnOnce() -> F + Send + 'static,
) {
    if !nix::unistd::geteuid().is_root() {
        println!("skipped: {name} needs root to make a network namespace");
        return;
    }
    let test = move || {
        unshare(CloneFlags::CLONE_NEWNET).expect("a network namespace");
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime")
            .block_on(body());
    };
    std::thread::spawn(test).join().expect("the test's thread");
}

/// A veth pair with one end here (`near`, 10.0.0.1/24, fd00::1/64) and the other (`far`,
/// 10.0.0.2/24, fd00::2/64) in a second namespace, which lives as long as the socket in it.
pub(crate) struct Lab {
    pub(crate) near: Handle,
    pub(crate) index: u32,
    pub(crate) far: Handle,
    pub(crate) far_index: u32,
}

pub(crate) fn handle() -> Handle {
    let (connection, handle, _) = rtnetlink::new_connection().expect("a netlink socket");
    tokio::spawn(connection);
    handle
}

async fn index_of(handle: &Handle, name: &str) -> u32 {
    let links = handle.link().get().match_name(name.to_owned()).execute();
    let link = std::pin::pin!(links).try_next().await;
    link.expect("an answer").expect("a link").header.index
}

pub(crate) async fn up(handle: &Handle, index: u32) {
    let message = LinkUnspec::new_with_index(index).up().build();
    handle.link().set(message).execute().await.expect("up");
}

pub(crate) async fn down(handle: &Handle, index: u32) {
    let message = LinkUnspec::new_with_index(index).down().build();
    handle.link().set(message).execute().await.expect("down");
}

pub(crate) async fn add_address(handle: &Handle, index: u32, address: &str, length: u8) {
    let mut request = handle.address().add(index, ip(address), length);
    // Duplicate address detection would take a second.
    request.message_mut().header.flags |= AddressHeaderFlags::Nodad;
    request.execute().await.expect("an address");
}

impl Lab {
    pub(crate) async fn new() -> Lab {
        let near = handle();
        let here = File::open("/proc/thread-self/ns/net").expect("this namespace");
        unshare(CloneFlags::CLONE_NEWNET).expect("a network namespace");
        let there = File::open("/proc/thread-self/ns/net").expect("that namespace");
        let far = handle();
        setns(&here, CloneFlags::CLONE_NEWNET).expect("back");

        let veth = LinkVeth::new("near", "far").build();
        near.link().add(veth).execute().await.expect("a veth pair");
        let index = index_of(&near, "near").await;
        let moved = LinkUnspec::new_with_index(index_of(&near, "far").await)
            .setns_by_fd(there.as_raw_fd())
            .build();
        near.link().set(moved).execute().await.expect("moved");
        let far_index = index_of(&far, "far").await;
        up(&near, index_of(&near, "lo").await).await;
        for (handle, index, host) in [(&near, index, 1), (&far, far_index, 2)] {
            up(handle, index).await;
            add_address(handle, index, &format!("10.0.0.{host}"), 24).await;
            add_address(handle, index, &format!("fd00::{host}"), 64).await;
        }
        Lab { near, index, far, far_index }
    }
}

/// Waits until the published network is as `wanted`.
pub(crate) async fn eventually(
    network: &ArcSwap<Network>,
    what: &str,
    wanted: impl Fn(&Network) -> bool,
) {
    for _ in 0..500 {
        if wanted(&network.load()) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("not published within five seconds: {what}");
}

pub(crate) async fn follow() -> (Follower, Arc<ArcSwap<Network>>) {
    Follower::start().await.expect("a follower")
}
