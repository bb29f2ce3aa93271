//! Named network namespaces, as `ip netns` knows them: a file in `/run/netns` onto which the
//! namespace is bind-mounted.
//!
//! Knows setns, unshare and mount. Must not know links or addresses.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use nix::errno::Errno;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, setns, unshare};

/// Where `ip netns` looks.
const FOLDER: &str = "/run/netns";

/// A namespace by its name. Creating the value creates the namespace; dropping it does nothing,
/// see [`remove`].
#[derive(Clone, Debug)]
pub(super) struct Namespace {
    name: String,
}

impl Namespace {
    /// Creates the namespace with its name.
    pub(super) fn create(name: &str) -> Result<Namespace> {
        prepare_folder()?;
        let path = path(name);
        File::create_new(&path).with_context(|| format!("create {}", path.display()))?;
        // A thread of its own enters the new namespace; this one stays where it is.
        let made = std::thread::scope(|scope| {
            scope
                .spawn(|| -> nix::Result<()> {
                    unshare(CloneFlags::CLONE_NEWNET)?;
                    mount(
                        Some("/proc/thread-self/ns/net"),
                        &path,
                        None::<&str>,
                        MsFlags::MS_BIND,
                        None::<&str>,
                    )
                })
                .join()
                .unwrap_or(Err(Errno::EIO))
        });
        if let Err(error) = made {
            let _ = std::fs::remove_file(&path);
            return Err(error).with_context(|| {
                format!("create network namespace {name}: CAP_SYS_ADMIN and CONFIG_NET_NS needed")
            });
        }
        Ok(Namespace { name: name.to_owned() })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Runs `work` on a thread inside the namespace and waits for it. A panic in `work` continues
    /// in the caller.
    pub(super) fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T> {
        let path = path(&self.name);
        let file = File::open(&path)
            .with_context(|| format!("open {}: has its lab been dropped?", path.display()))?;
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new()
                .name(self.name.clone())
                .spawn_scoped(scope, || {
                    setns(&file, CloneFlags::CLONE_NEWNET)
                        .with_context(|| format!("enter network namespace {}", self.name))?;
                    // Or a long-running `work` would keep the namespace alive after its removal.
                    drop(file);
                    show_own_sysfs();
                    Ok(work())
                })
                .context("start a thread")?;
            match thread.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }
}

/// Whether the kernel lets us have a network namespace at all.
pub(super) fn probe() -> Result<()> {
    std::thread::spawn(|| unshare(CloneFlags::CLONE_NEWNET))
        .join()
        .unwrap_or(Err(Errno::EIO))
        .context("the kernel refuses a network namespace (CAP_SYS_ADMIN, CONFIG_NET_NS)")
}

/// Takes the name away. The namespace itself ends with the last thread or process in it.
pub(super) fn remove(name: &str) {
    let path = path(name);
    // Both fail when another sweep was faster, which is as good.
    let _ = umount2(&path, MntFlags::MNT_DETACH);
    let _ = std::fs::remove_file(&path);
}

/// The names in `/run/netns` that begin with `prefix`.
pub(super) fn names(prefix: &str) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(FOLDER) else {
        return Vec::new();
    };
    entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.starts_with(prefix))
        .collect()
}

fn path(name: &str) -> PathBuf {
    Path::new(FOLDER).join(name)
}

/// Makes `/run/netns` a shared mount point, as `ip netns add` does, so that removing a name here
/// also removes it in the mount namespaces of shells that `ip netns exec` opened.
fn prepare_folder() -> Result<()> {
    std::fs::create_dir_all(FOLDER).context("create /run/netns")?;
    let share = || {
        mount(
            None::<&str>,
            FOLDER,
            None::<&str>,
            MsFlags::MS_SHARED | MsFlags::MS_REC,
            None::<&str>,
        )
    };
    match share() {
        // Not a mount point yet: make it one.
        Err(Errno::EINVAL) => {
            mount(
                Some(FOLDER),
                FOLDER,
                None::<&str>,
                MsFlags::MS_BIND | MsFlags::MS_REC,
                None::<&str>,
            )
            .context("make /run/netns a mount point")?;
            share().context("share /run/netns")
        }
        other => other.context("share /run/netns"),
    }
}

/// Gives this thread (and the processes it starts) a `/sys` that shows the interfaces of the
/// namespace it has entered. Where mounting is refused the machine's own stays: only programs
/// that read `/sys/class/net` notice.
fn show_own_sysfs() {
    let _ = unshare(CloneFlags::CLONE_NEWNS)
        .and_then(|()| {
            mount(
                None::<&str>,
                "/",
                None::<&str>,
                MsFlags::MS_SLAVE | MsFlags::MS_REC,
                None::<&str>,
            )
        })
        .and_then(|()| mount(Some("sysfs"), "/sys", Some("sysfs"), MsFlags::empty(), None::<&str>));
}
