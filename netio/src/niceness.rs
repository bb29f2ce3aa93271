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
    fn a_thread_steps_back_and_the_others_of_its_process_do_not() {
        let before = niceness();
        let there = std::thread::spawn(move || {
            set_niceness(before + 3).unwrap();
            niceness()
        });
        assert_eq!((there.join().unwrap(), niceness()), (before + 3, before));
    }
}
