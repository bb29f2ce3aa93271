//! How much a thread leaves to others: the scheduler's nice value.

use std::io;

/// Gives the calling thread, and no other of its process, this nice value: from -20, before all
/// others, to 19. Source: setpriority(2), whose "process" is a thread on Linux.
///
/// # Errors
/// `EACCES` for a value below what it has, without CAP_SYS_NICE or a limit that allows it.
///
/// ```
/// # std::thread::spawn(|| {
/// netio::set_niceness(5)?;
/// # std::io::Result::Ok(()) }).join().unwrap()?;
/// # std::io::Result::Ok(())
/// ```
pub fn set_niceness(nice: i32) -> io::Result<()> {
    // SAFETY: the call takes three numbers and touches no memory of ours.
    let answer = unsafe { libc::setpriority(libc::PRIO_PROCESS as _, 0, nice) };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Gives all processes of a process group this nice value.
///
/// # Errors
/// As [`set_niceness`]; `ESRCH` when there is no such group, and `EINVAL` for 0, which would be the
/// caller's own.
pub fn set_group_niceness(group: u32, nice: i32) -> io::Result<()> {
    if group == 0 {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    // SAFETY: the call takes three numbers and touches no memory of ours.
    let answer = unsafe { libc::setpriority(libc::PRIO_PGRP as _, group, nice) };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The 19th field of the calling thread's `stat`.
    fn niceness() -> i32 {
        let text = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
        let (_, behind_the_name) = text.rsplit_once(") ").unwrap();
        behind_the_name.split(' ').nth(16).unwrap().parse().unwrap()
    }

    #[test]
    fn a_group_of_processes_steps_back_and_nobody_else() {
        use std::os::unix::process::CommandExt;
        let before = niceness();
        let mut child =
            std::process::Command::new("sleep").arg("60").process_group(0).spawn().unwrap();
        set_group_niceness(child.id(), before + 4).unwrap();
        let text = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        let (_, behind_the_name) = text.rsplit_once(") ").unwrap();
        assert_eq!(behind_the_name.split(' ').nth(16), Some(&*(before + 4).to_string()));
        assert_eq!(niceness(), before);
        assert!(set_group_niceness(0, 0).is_err());
    }

    #[test]
    fn a_thread_steps_back_and_the_others_of_its_process_do_not() {
        let before = niceness();
        let there = std::thread::spawn(move || {
            set_niceness(before + 3).unwrap();
            niceness()
        });
        assert_eq!((there.join().unwrap(), niceness()), (before + 3, before));
    }
}
