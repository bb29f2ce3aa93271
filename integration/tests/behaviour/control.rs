//! The control socket: what is malformed is answered and changes nothing, and its path is treated
//! with care.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Instant;

use integration::running::Director;
use integration::topology::{Kind, Options};

use super::bed::{Bed, SECOND, can_run, lay, run_director, top, web};

/// Says something and listens until the director hangs up, or for `seconds`.
fn say(bed: &Bed, words: &[u8], seconds: u32) -> String {
    let mut stream = UnixStream::connect(bed.director.socket()).unwrap();
    stream.set_read_timeout(Some(SECOND * seconds)).unwrap();
    stream.set_write_timeout(Some(SECOND * 5)).unwrap();
    // It may hang up before it has heard all.
    let _ = stream.write_all(words);
    let mut answer = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(length) => answer.extend_from_slice(&buffer[..length]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) if error.kind() == ErrorKind::ConnectionReset => break,
            Err(error) => panic!("{error}"),
        }
    }
    String::from_utf8_lossy(&answer).into_owned()
}

fn post(path: &str, body: &str) -> Vec<u8> {
    format!(
        "POST {path} HTTP/1.1\r\nHost: director\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

#[test]
fn quick_malformed_control_requests_are_refused_and_change_nothing() {
    if !can_run() {
        return;
    }
    let bed = Bed::new(Kind::Nat, "copy");
    let before = bed.director.ipvsadm(&["-S", "-n"]).unwrap();
    let delete = r#"[{"op":"flush"},{"op":"no such thing"}]"#;
    let deep = "[".repeat(100_000);
    let huge = format!(
        "POST /v1/commands HTTP/1.1\r\nHost: d\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        1_u64 << 40
    );
    let heads = format!("GET /v1/status HTTP/1.1\r\n{}\r\n", "X-Y: z\r\n".repeat(2000));
    let cases: [(&str, Vec<u8>, &str); 12] = [
        ("garbage", (0..=255).chain(*b"\r\n\r\n").collect(), "400"),
        ("not HTTP", b"hello\r\n\r\n".to_vec(), "400"),
        ("no such path", post("/v1/nothing", ""), "404"),
        ("no such version", post("/v9/commands", "[]"), "404"),
        (
            "wrong method",
            b"PUT /v1/status HTTP/1.1\r\nHost: d\r\nConnection: close\r\n\r\n".to_vec(),
            "405",
        ),
        ("not JSON", post("/v1/commands", "{{{"), "400"),
        ("wrong JSON", post("/v1/commands", r#"{"op":"flush"}"#), "400"),
        ("one wrong of two", post("/v1/commands", delete), "400"),
        ("deep JSON", post("/v1/commands", &deep), "400"),
        (
            "wrong values",
            post(
                "/v1/commands",
                r#"[{"op":"add_service","service":{"protocol":"tcp","address":"192.0.2.10:99999","scheduler":"rr"}}]"#,
            ),
            "400",
        ),
        ("a huge body", huge.into_bytes(), "413"),
        ("too many headers", heads.into_bytes(), "431"),
    ];
    std::thread::scope(|scope| {
        let traffic = scope.spawn(|| bed.carries(500));
        for (what, words, status) in &cases {
            let answer = say(&bed, words, 3);
            assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{what}: {answer:?}");
        }
        traffic.join().unwrap();
    });
    assert_eq!(bed.director.ipvsadm(&["-S", "-n"]).unwrap(), before);
    let log = bed.director.process().log();
    assert!(!log.contains("panicked"), "{log}");
    bed.director.stop().unwrap();
}

#[test]
fn slow_and_broken_off_requests_keep_nobody_else_waiting() {
    if !can_run() {
        return;
    }
    let bed = Bed::new(Kind::Nat, "copy");
    let connect = || UnixStream::connect(bed.director.socket()).unwrap();
    // Hundreds that say half a request and no more: beyond the limit they are turned away.
    let mut idle: Vec<_> = (0..200).map(|_| connect()).collect();
    for (number, stream) in idle.iter_mut().enumerate() {
        let words: &[u8] = match number % 3 {
            0 => b"",
            1 => b"GET /v1/sta",
            _ => b"POST /v1/commands HTTP/1.1\r\nHost: d\r\nContent-Length: 100\r\n\r\n[{\"op\"",
        };
        stream.write_all(words).unwrap();
    }
    let start = Instant::now();
    bed.director.ipvsadm(&["-L", "-n"]).unwrap();
    bed.carries(30);
    assert!(start.elapsed() < SECOND * 3, "{:?}", start.elapsed());
    // More than there are places: they are told, or closed, but never left hanging.
    idle.extend((0..100).map(|_| connect()));
    let mut last = connect();
    last.set_read_timeout(Some(SECOND * 5)).unwrap();
    let _ = last.write_all(b"GET /v1/status HTTP/1.1\r\nHost: d\r\n\r\n");
    let mut answer = [0; 64];
    let length = last.read(&mut answer).unwrap_or(0);
    let answer = String::from_utf8_lossy(&answer[..length]);
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 503"), "{answer}");
    bed.carries(9);
    // When they have gone there is room again.
    drop((idle, last));
    std::thread::sleep(SECOND / 5);
    bed.director.ipvsadm(&["-L", "-n"]).unwrap();
    // One byte at a time does not hold a place for ever: ten seconds for a head.
    let mut slow = connect();
    slow.set_read_timeout(Some(SECOND / 4)).unwrap();
    let start = Instant::now();
    let mut byte = [0];
    loop {
        let said = slow.write_all(b"G");
        match slow.read(&mut byte) {
            _ if said.is_err() => break,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            // Closed, reset, or told why.
            _ => break,
        }
        assert!(start.elapsed() < SECOND * 14, "a client that never ends its head is kept");
    }
    bed.director.stop().unwrap();
}

#[test]
fn quick_a_stale_socket_is_replaced_and_what_is_no_socket_is_left_alone() {
    if !can_run() {
        return;
    }
    let topology = lay(Kind::Nat, &Options::default());
    let config = top("copy") + &web(Kind::Nat, "rr", &[1, 1, 1]);
    let path = topology.lab.logs().join("director.sock");
    // Nobody listens on it any more.
    drop(UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    let director = Director::start(&topology.lab, &topology.director, &config).unwrap();
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o660, "who may speak to the director");
    director.stop().unwrap();
    assert!(!path.exists());

    let file = topology.lab.logs().join("important");
    std::fs::write(&file, "do not touch").unwrap();
    for (name, taken) in [("file", file.clone()), ("folder", topology.lab.logs().to_path_buf())] {
        let control = format!("control = \"{}\"\n", taken.display());
        let (code, message) = run_director(&topology, name, &(control + &config), SECOND * 5);
        assert_eq!(code, Some(1), "{name}: {message}");
        for word in ["is not a socket", "remove it", &taken.display().to_string()] {
            assert!(message.contains(word), "{name}: no {word:?} in:\n{message}");
        }
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "do not touch");
}
