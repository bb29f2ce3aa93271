//! The built command against a control server with a table in memory: what a shell script sees.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::table::Served;

fn ipvsadm(socket: &Path, line: &str, input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_ipvsadm"))
        .args(line.split_whitespace())
        .env("SWITCHYARD_SOCKET", socket)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The command may end before it has read everything.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

/// Standard output of a run that must succeed in silence.
#[track_caller]
fn said(served: &Served, line: &str) -> String {
    let output = ipvsadm(&served.path, line, "");
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), complaint.as_str()), (Some(0), ""), "{line}");
    String::from_utf8(output.stdout).unwrap()
}

/// Exit code and standard error of a run that must print nothing.
#[track_caller]
fn failed(socket: &Path, line: &str, input: &str) -> (i32, String) {
    let output = ipvsadm(socket, line, input);
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "", "{line}");
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn table_built_by_commands_is_listed_and_saved_and_restored() {
    let served = Served::new();
    for line in [
        "-A -t 10.0.0.1:80",
        "-a -t 10.0.0.1:80 -r 10.0.0.12 -w 3",
        "-at 10.0.0.1:80 -r 10.0.0.11:8080 -m",
        "-A -f 7 -s sh -p300 -b sh-port",
        "-E -t 10.0.0.1:80 -s rr",
        "-e -t 10.0.0.1:80 -r 10.0.0.12 -w 0",
    ] {
        assert_eq!(said(&served, line), "", "{line}");
    }
    let expected = "IP Virtual Server version 1.2.1 (size=8192)\n\
        Prot LocalAddress:Port Scheduler Flags\n  \
          -> RemoteAddress:Port           Forward Weight ActiveConn InActConn\n\
        TCP  10.0.0.1:80 rr\n  \
          -> 10.0.0.11:8080               Masq    1      0          0         \n  \
          -> 10.0.0.12:80                 Route   0      0          0         \n\
        FWM  7 sh (sh-port) persistent 300\n";
    assert_eq!(said(&served, "-Ln"), expected);
    let one = expected.lines().skip(1).take(5).map(|line| format!("{line}\n")).collect::<String>();
    assert_eq!(said(&served, "-Ln -t 10.0.0.1:80"), one);

    let saved = said(&served, "-Sn");
    assert_eq!(said(&served, "-C"), "");
    assert_eq!(said(&served, "-Sn"), "");
    let output = ipvsadm(&served.path, "-R", &saved);
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), b"".as_slice()));
    assert_eq!(said(&served, "-Sn"), saved);
    assert_eq!(said(&served, "-Ln"), expected);
}

#[test]
fn connections_timeouts_and_daemons_are_listed() {
    let served = Served::new();
    let connections = said(&served, "-Lnc");
    let mut lines = connections.lines();
    assert_eq!(lines.next(), Some("IPVS connection entries"));
    assert_eq!(lines.clone().count(), 1 + 2000);
    assert_eq!(
        lines.nth(1),
        Some("TCP 14:59  ESTABLISHED 10.0.0.0:0         10.0.0.1:80        10.0.0.11:80")
    );
    assert_eq!(said(&served, "-L --timeout"), "Timeout (tcp tcpfin udp): 900 120 300\n");
    assert_eq!(said(&served, "--set 0 60 0"), "");
    assert_eq!(said(&served, "-L --timeout"), "Timeout (tcp tcpfin udp): 900 60 300\n");
    assert_eq!(said(&served, "-L --daemon"), "");
    assert_eq!(said(&served, "-Z"), "");
}

#[test]
fn refusals_have_the_kernels_words_and_exit_codes() {
    let served = Served::new();
    said(&served, "-A -t 10.0.0.1:80");
    for (line, code, message) in [
        ("-A -t 10.0.0.1:80", 255, "Service already exists"),
        ("-A -t 10.0.0.1:81 -s fifo", 255, "Scheduler or persistence engine not found"),
        ("-E -t 10.0.0.1:81", 255, "No such service"),
        ("-D -u 10.0.0.1:80", 255, "No such service"),
        ("-Z -t 10.0.0.1:81", 255, "No such service"),
        ("-a -t 10.0.0.1:81 -r 10.0.0.2", 255, "Service not defined"),
        ("-e -t 10.0.0.1:80 -r 10.0.0.2", 255, "No such destination"),
        ("-d -t 10.0.0.1:80 -r 10.0.0.2", 255, "No such destination"),
        ("-L -t 10.0.0.1:81", 1, "No such service"),
        ("--start-daemon master", 255, "Protocol not available"),
        ("--stop-daemon master", 255, "No daemon is running"),
        ("-A -t 10.0.0.1", 2, "Zero port specified for non-persistent service"),
        ("-L --foo", 255, "--foo: unknown option"),
    ] {
        assert_eq!(failed(&served.path, line, ""), (code, format!("{message}\n")), "{line}");
    }
    said(&served, "-a -t 10.0.0.1:80 -r 10.0.0.2");
    let again = failed(&served.path, "-a -t 10.0.0.1:80 -r 10.0.0.2", "");
    assert_eq!(again, (255, "Destination already exists\n".to_owned()));
}

#[test]
fn restore_goes_on_after_refusals_and_stops_at_usage_errors() {
    let served = Served::new();
    let refused = "ipvsadm -A -f 1\r\n\n-A -f 1\n# comment\n-A -f 2\n";
    let (code, complaint) = failed(&served.path, "-R", refused);
    // Blank lines and carriage returns are nothing; a comment is no command and ends the run.
    let complaints = format!("Service already exists\n{TRY_HELP}");
    assert_eq!((code, complaint), (255, complaints));

    said(&served, "-C");
    let lines = "-A -f 1\n-A -f 1\n-A --foo\n-A -f 2";
    let (code, complaint) = failed(&served.path, "-R", lines);
    // The last line went well, and so the exit code is 0.
    let complaints = "Service already exists\n--foo: unknown option\n";
    assert_eq!((code, complaint.as_str()), (0, complaints));
    assert_eq!(said(&served, "-Sn"), "-A -f 1 -s wlc\n-A -f 2 -s wlc\n");

    let (code, complaint) = failed(&served.path, "-R", "-A -f 3 -w 1\n-A -f 4\n");
    let illegal = "Illegal 'weight' option with the 'add-service' command\n";
    assert_eq!((code, complaint.as_str()), (2, illegal));
    let (code, complaint) = failed(&served.path, "-R", "# comment\n-A -f 4\n");
    assert_eq!((code, complaint.as_str()), (255, TRY_HELP));
    let (code, complaint) = failed(&served.path, "-R", "-R\n-A -f 4\n");
    assert_eq!((code, complaint.as_str()), (255, TRY_HELP));
    assert_eq!(said(&served, "-Sn"), "-A -f 1 -s wlc\n-A -f 2 -s wlc\n");
}

const TRY_HELP: &str = "Try `ipvsadm -h' or 'ipvsadm --help' for more information.\n";

#[test]
fn without_a_director_help_works_and_all_else_says_where_it_was_expected() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("nobody.sock");
    for line in ["-h", "-v"] {
        let output = ipvsadm(&socket, line, "");
        assert_eq!(output.status.code(), Some(0), "{line}");
        assert!(output.stdout.starts_with(b"ipvsadm v1.31 2019/12/24 (compiled with popt and "));
    }
    for line in ["", "-L", "-C", "-Ln -c", "-S", "-Z", "-R", "-R --atomic", "--start-daemon master"]
    {
        let (code, complaint) = failed(&socket, line, "");
        assert_eq!(code, 2, "{line}");
        assert!(complaint.starts_with("Can't initialize ipvs: the director is not running"));
        let remedy = complaint.lines().nth(1).unwrap();
        assert!(remedy.contains(socket.to_str().unwrap()), "{remedy}");
        assert!(remedy.contains("systemctl start switchyard-director"), "{remedy}");
    }
    assert_eq!(failed(&socket, "-z", ""), (255, TRY_HELP.to_owned()));
}

#[test]
fn reader_that_leaves_early_is_no_failure() {
    let served = Served::new();
    let mut child = Command::new(env!("CARGO_BIN_EXE_ipvsadm"))
        .args(["-Lnc"])
        .env("SWITCHYARD_SOCKET", &served.path)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), b"".as_slice()));
}

/// Answers one request after the other with `answer`, as whoever listens on a socket might.
fn somebody(path: &Path, answer: &'static str) {
    use std::io::Read;
    let listener = std::os::unix::net::UnixListener::bind(path).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            // A client that looks whether somebody is there sends nothing.
            if stream.read(&mut [0; 4096]).is_ok_and(|read| read > 0) {
                let _ = stream.write_all(answer.as_bytes());
            }
        }
    });
}

#[test]
fn director_of_another_version_is_named_and_somebody_else_is_not_taken_for_one() {
    let directory = tempfile::tempdir().unwrap();
    let older = directory.path().join("older.sock");
    somebody(
        &older,
        "HTTP/1.1 404 Not Found\r\nswitchyard-version: 0.0.9\r\ncontent-length: 43\r\n\r\n\
         {\"error\":\"bad_request\",\"message\":\"no path\"}",
    );
    // It would take any request, and half of what a newer one asks.
    let newer = directory.path().join("newer.sock");
    somebody(
        &newer,
        "HTTP/1.1 200 OK\r\nswitchyard-version: 9.1.0\r\ncontent-length: 32\r\n\r\n\
         {\"tcp\":9,\"tcp_fin\":9,\"udp\":9   }",
    );
    for line in ["-A -f 1", "-R", "-R --atomic", "-C", "-Ln"] {
        let (code, complaint) = failed(&newer, line, "-A -f 1\n");
        assert_eq!(code, 2, "{line}: {complaint}");
        assert!(
            complaint.contains("The director is version 9.1.0, this tool is 0.1.0"),
            "{line}: {complaint}"
        );
        assert_eq!(complaint.contains("nothing has been changed"), line != "-Ln", "{complaint}");
    }
    let stranger = directory.path().join("stranger.sock");
    somebody(&stranger, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n[]");
    for line in ["-Ln", "-A -f 1", "-R", "-Lc", "-S"] {
        let (code, complaint) = failed(&older, line, "-A -f 1\n");
        assert_eq!(code, 2, "{line}: {complaint}");
        assert!(complaint.starts_with("Can't initialize ipvs: "), "{line}: {complaint}");
        assert!(
            complaint.contains("The director is version 0.0.9, this tool is 0.1.0"),
            "{complaint}"
        );
    }
    let (code, complaint) = failed(&stranger, "-Ln", "");
    assert_eq!(code, 2);
    assert!(complaint.contains("Something other than a director listens there."), "{complaint}");
}

#[test]
fn user_without_permission_is_told_whose_socket_it_is() {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;
    let served = Served::new();
    let mut command = Command::new(env!("CARGO_BIN_EXE_ipvsadm"));
    command.arg("-Ln").env("SWITCHYARD_SOCKET", &served.path);
    // Root may do everything; as nobody it has to find its way to the socket first.
    let folder = served.path.parent().unwrap();
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755)).unwrap();
    let root = std::fs::metadata("/proc/self").is_ok_and(|me| {
        use std::os::unix::fs::MetadataExt;
        me.uid() == 0
    });
    if root {
        command.uid(65534).gid(65534);
    } else {
        std::fs::set_permissions(&served.path, std::fs::Permissions::from_mode(0o000)).unwrap();
    }
    let Ok(output) = command.output() else {
        eprintln!("skipped: the program is where nobody else may run it");
        return;
    };
    let complaint = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{complaint}");
    let socket = served.path.display().to_string();
    assert!(complaint.starts_with("Can't initialize ipvs: Permission denied (you must be root)\n"));
    assert!(complaint.contains(&format!("group that owns {socket}")), "{complaint}");
}
