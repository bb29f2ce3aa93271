//! Whose fault an error is, and what it is called.

use std::io;

use nix::errno::Errno;

use crate::health::outcome::Outcome;

/// What comes of a check that met `error` at this step: what is missing here is not the server's
/// fault.
pub(in crate::health) fn outcome(step: &str, error: &io::Error) -> Outcome {
    let words = format!("{step}: {}", words(error));
    if is_ours(error) { Outcome::Unable(words) } else { Outcome::Failed(words) }
}

/// Whether the error is about this machine: no descriptors, memory or ports left, an address that it
/// does not have, or a firewall or missing capability here.
pub(in crate::health) fn is_ours(error: &io::Error) -> bool {
    let Some(number) = error.raw_os_error() else { return false };
    [
        Errno::EMFILE,
        Errno::ENFILE,
        Errno::ENOBUFS,
        Errno::ENOMEM,
        Errno::EAGAIN,
        Errno::EACCES,
        Errno::EPERM,
        Errno::EADDRNOTAVAIL,
        Errno::EADDRINUSE,
        Errno::EAFNOSUPPORT,
        Errno::EPROTONOSUPPORT,
    ]
    .contains(&Errno::from_raw(number))
}

/// The error in words, without its number.
pub(in crate::health) fn words(error: &io::Error) -> String {
    let text = error.to_string();
    let text = match text.rfind(" (os error ") {
        Some(end) => &text[..end],
        None => &text,
    };
    // The system's begin with a capital letter, and these stand within a sentence.
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_here_is_not_the_servers_fault() {
        let met = |errno: Errno| outcome("connect", &io::Error::from(errno));
        for errno in
            [Errno::EMFILE, Errno::ENFILE, Errno::EACCES, Errno::EPERM, Errno::EADDRNOTAVAIL]
        {
            assert!(matches!(met(errno), Outcome::Unable(_)), "{errno}");
        }
        for errno in
            [Errno::ECONNREFUSED, Errno::EHOSTUNREACH, Errno::ENETUNREACH, Errno::ECONNRESET]
        {
            assert!(matches!(met(errno), Outcome::Failed(_)), "{errno}");
        }
        let refused = Outcome::Failed("connect: connection refused".to_owned());
        assert_eq!(met(Errno::ECONNREFUSED), refused);
    }

    #[test]
    fn without_file_descriptors_no_server_fails() {
        use super::super::tests::{block_on, check, target};
        use crate::health::plan::CheckKind;
        use nix::sys::resource::{Resource, getrlimit, setrlimit};

        // In a process of its own: others of this one need theirs.
        if std::env::var_os("WITHOUT_DESCRIPTORS").is_none() {
            let name = "without_file_descriptors_no_server_fails";
            let test = std::process::Command::new(std::env::current_exe().unwrap())
                .args([name, "--nocapture", "--test-threads=1"])
                .env("WITHOUT_DESCRIPTORS", "1")
                .status()
                .unwrap();
            assert!(test.success());
            return;
        }
        block_on(async {
            let (_, most) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
            setrlimit(Resource::RLIMIT_NOFILE, 64, most).unwrap();
            let open = || std::fs::File::open("/dev/null").ok();
            let _hoard: Vec<std::fs::File> = std::iter::from_fn(open).collect();
            let command = CheckKind::Exec(vec!["/bin/true".to_owned()]);
            let (udp, agent) = (Default::default(), crate::health::plan::AgentCheck { send: None });
            for kind in [
                CheckKind::Tcp,
                CheckKind::Http(Default::default()),
                CheckKind::Dns(Default::default()),
                CheckKind::Udp(udp),
                CheckKind::Icmp,
                CheckKind::AgentCheck(agent),
                command,
            ] {
                let check = check(kind);
                let outcome = super::super::run(&check, &target(([127, 0, 0, 1], 9).into())).await;
                assert!(matches!(outcome, Outcome::Unable(_)), "{:?}: {outcome:?}", check.kind);
            }
        });
    }
}
