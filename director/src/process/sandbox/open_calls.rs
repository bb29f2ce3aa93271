//! System calls that stay open: those that a director, its runtime and the C library make, by what they
//! are for.

use nix::libc::*;

type Calls = &'static [c_long];

const MEMORY: Calls = &[
    SYS_brk,
    SYS_mmap,
    SYS_munmap,
    SYS_mprotect,
    SYS_mremap,
    SYS_madvise,
    SYS_msync,
    SYS_mincore,
    SYS_mlock,
    SYS_mlock2,
    SYS_munlock,
    SYS_membarrier,
];

const FILES: Calls = &[
    SYS_read,
    SYS_write,
    SYS_readv,
    SYS_writev,
    SYS_pread64,
    SYS_pwrite64,
    SYS_preadv,
    SYS_pwritev,
    SYS_openat,
    SYS_close,
    SYS_close_range,
    SYS_fstat,
    SYS_newfstatat,
    SYS_statx,
    SYS_lseek,
    SYS_faccessat,
    SYS_faccessat2,
    SYS_readlinkat,
    SYS_getdents64,
    SYS_getcwd,
    SYS_renameat,
    SYS_renameat2,
    SYS_unlinkat,
    SYS_mkdirat,
    SYS_fchmod,
    SYS_fchmodat,
    SYS_fchown,
    SYS_fchownat,
    SYS_umask,
    SYS_ftruncate,
    SYS_fsync,
    SYS_fdatasync,
    SYS_fallocate,
    SYS_flock,
    SYS_fcntl,
    SYS_dup,
    SYS_dup3,
    SYS_pipe2,
    SYS_copy_file_range,
    SYS_sendfile,
    SYS_splice,
    SYS_ioctl,
    SYS_ppoll,
    SYS_pselect6,
    SYS_epoll_create1,
    SYS_epoll_ctl,
    SYS_epoll_pwait,
    SYS_epoll_pwait2,
    SYS_eventfd2,
    SYS_timerfd_create,
    SYS_timerfd_settime,
    SYS_timerfd_gettime,
    SYS_utimensat,
    SYS_statfs,
    SYS_fstatfs,
    SYS_fadvise64,
    SYS_linkat,
];

const NETWORK: Calls = &[
    SYS_socket,
    SYS_socketpair,
    SYS_bind,
    SYS_connect,
    SYS_listen,
    SYS_accept,
    SYS_accept4,
    SYS_getsockname,
    SYS_getpeername,
    SYS_setsockopt,
    SYS_getsockopt,
    SYS_sendto,
    SYS_recvfrom,
    SYS_sendmsg,
    SYS_recvmsg,
    SYS_sendmmsg,
    SYS_recvmmsg,
    SYS_shutdown,
    SYS_bpf,
];

const TIME: Calls = &[
    SYS_clock_gettime,
    SYS_clock_getres,
    SYS_clock_nanosleep,
    SYS_nanosleep,
    SYS_gettimeofday,
    SYS_times,
    SYS_getitimer,
    SYS_setitimer,
];

const THREADS: Calls = &[
    SYS_clone3,
    SYS_futex,
    SYS_set_robust_list,
    SYS_get_robust_list,
    SYS_rseq,
    SYS_sched_yield,
    SYS_sched_getaffinity,
    SYS_sched_setaffinity,
    SYS_sched_getparam,
    SYS_sched_getscheduler,
    SYS_exit,
    SYS_exit_group,
    SYS_set_tid_address,
    SYS_prctl,
    SYS_getcpu,
    SYS_rt_sigaction,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_rt_sigtimedwait,
    SYS_rt_sigpending,
    SYS_rt_sigsuspend,
    SYS_sigaltstack,
    SYS_signalfd4,
    SYS_kill,
    SYS_tgkill,
    SYS_restart_syscall,
];

const ABOUT_ITSELF: Calls = &[
    SYS_getpid,
    SYS_gettid,
    SYS_getppid,
    SYS_getuid,
    SYS_geteuid,
    SYS_getgid,
    SYS_getegid,
    SYS_getresuid,
    SYS_getresgid,
    SYS_getgroups,
    SYS_getpgid,
    SYS_getsid,
    SYS_uname,
    SYS_sysinfo,
    SYS_getrusage,
    SYS_prlimit64,
    SYS_getpriority,
    SYS_setpriority,
    SYS_getrandom,
    SYS_capget,
    SYS_capset,
];

/// What commands of checks take, and what programs in general do that are run so.
const COMMANDS: Calls = &[
    SYS_execve,
    SYS_execveat,
    SYS_wait4,
    SYS_waitid,
    SYS_setpgid,
    SYS_setsid,
    SYS_pidfd_open,
    SYS_pidfd_send_signal,
    SYS_chdir,
    SYS_fchdir,
    SYS_getxattr,
    SYS_lgetxattr,
    SYS_fgetxattr,
    SYS_listxattr,
    SYS_symlinkat,
    SYS_truncate,
    SYS_memfd_create,
    SYS_inotify_init1,
    SYS_inotify_add_watch,
    SYS_inotify_rm_watch,
    SYS_setrlimit,
    SYS_getrlimit,
    SYS_seccomp,
    SYS_setuid,
    SYS_setgid,
    SYS_setresuid,
    SYS_setresgid,
    SYS_setgroups,
    SYS_personality,
    SYS_tee,
];

/// The older names of some, which newer processors do not have.
#[cfg(target_arch = "x86_64")]
const OLDER: Calls = &[
    SYS_open,
    SYS_stat,
    SYS_lstat,
    SYS_access,
    SYS_readlink,
    SYS_rename,
    SYS_unlink,
    SYS_mkdir,
    SYS_rmdir,
    SYS_chmod,
    SYS_chown,
    SYS_dup2,
    SYS_pipe,
    SYS_poll,
    SYS_select,
    SYS_epoll_create,
    SYS_epoll_wait,
    SYS_eventfd,
    SYS_time,
    SYS_arch_prctl,
    SYS_getpgrp,
    SYS_getdents,
    SYS_pause,
    SYS_alarm,
    SYS_link,
];
#[cfg(not(target_arch = "x86_64"))]
const OLDER: Calls = &[];

#[cfg(target_arch = "x86_64")]
const OLDER_COMMANDS: Calls = &[SYS_fork, SYS_vfork, SYS_symlink];
#[cfg(not(target_arch = "x86_64"))]
const OLDER_COMMANDS: Calls = &[];

/// All of them but `clone`, whose flags matter.
pub(super) fn open_calls(commands: bool) -> impl Iterator<Item = c_long> {
    let always = [MEMORY, FILES, NETWORK, TIME, THREADS, ABOUT_ITSELF, OLDER];
    let more = commands.then_some([COMMANDS, OLDER_COMMANDS]).into_iter().flatten();
    always.into_iter().chain(more).flatten().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_a_machine_over_is_not_among_the_open_calls() {
        let forbidden = [
            SYS_ptrace,
            SYS_mount,
            SYS_umount2,
            SYS_init_module,
            SYS_finit_module,
            SYS_kexec_load,
            SYS_unshare,
            SYS_setns,
            SYS_pivot_root,
            SYS_chroot,
            SYS_reboot,
            SYS_process_vm_writev,
            SYS_perf_event_open,
            SYS_keyctl,
            SYS_add_key,
            SYS_clock_settime,
            SYS_mknodat,
            SYS_swapon,
            SYS_userfaultfd,
            SYS_io_uring_setup,
            SYS_open_by_handle_at,
        ];
        for commands in [false, true] {
            assert!(open_calls(commands).all(|call| !forbidden.contains(&call)));
        }
        assert!(!open_calls(false).any(|call| call == SYS_execve || call == SYS_execveat));
        assert!(open_calls(true).any(|call| call == SYS_execve));
    }
}
