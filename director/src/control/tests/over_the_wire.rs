//! What any HTTP client gets, well-behaved or not.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use super::fake::{Fake, Served};
use crate::control::server::Limits;

const ADD: &str = r#"[{"op":"add_service","service":{"protocol":"tcp","address":"192.0.2.10:80",
"scheduler":"wlc"}},{"op":"add_server","service":{"protocol":"tcp","address":"192.0.2.10:80"},
"server":{"address":"10.0.0.11:80","forwarding":"direct","weight":5}}]"#;

fn served() -> Served {
    Served::new(Limits::default(), Fake::default())
}

#[test]
fn every_path_answers_and_names_the_version() {
    let server = served();
    let paths = crate::control::routes::PATHS.iter().filter(|(method, ..)| *method == "GET");
    // A capture goes on for ever, and this director has no packets.
    for (_, path, _) in paths.filter(|(_, path, _)| *path != "/v1/capture") {
        let answer = server.request("GET", path, "");
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{path}: {answer}");
        assert!(answer.contains("\r\nswitchyard-version: 0.1.0\r\n"), "{path}: {answer}");
    }
}

#[test]
fn commands_given_as_json_reach_the_table_in_order() {
    let server = served();
    let answer = server.request("POST", "/v1/commands", ADD);
    assert!(answer.ends_with("\r\n\r\n{\"applied\":2}\n"), "{answer}");
    let services = server.request("GET", "/v1/services", "");
    assert!(services.contains(r#""address":"10.0.0.11:80","forwarding":"direct""#), "{services}");
}

#[test]
fn a_capture_is_refused_where_there_are_no_packets_or_the_question_is_wrong() {
    let server = served();
    let answer = server.request("GET", "/v1/capture?verdict=dropped", "");
    assert!(answer.starts_with("HTTP/1.1 501 "), "{answer}");
    let answer = server.request("GET", "/v1/capture?reason=bad_luck", "");
    assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains("bad_luck"), "{answer}");
}

#[test]
fn who_is_no_node_refuses_what_only_a_node_can_do() {
    let server = served();
    for (method, body) in [("GET", ""), ("POST", r#"{"op":"drainstop","deadline":60}"#)] {
        let answer = server.request(method, "/v1/nlb", body);
        assert!(answer.starts_with("HTTP/1.1 501 "), "{answer}");
        assert!(answer.contains("this director is a dispatcher"), "{answer}");
    }
    let answer = server.request("POST", "/v1/nlb", r#"{"op":"explode"}"#);
    assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains("explode"), "{answer}");
    let answer = server.request("PUT", "/v1/nlb", "");
    assert!(answer.starts_with("HTTP/1.1 405 "), "{answer}");
}

#[test]
fn refused_command_stops_the_rest_and_names_its_place() {
    let server = served();
    let again = format!("{},{}", ADD.strip_suffix(']').unwrap(), &ADD[1..]);
    let answer = server.request("POST", "/v1/commands", &again);
    assert!(answer.starts_with("HTTP/1.1 409 Conflict"), "{answer}");
    assert!(
        answer.ends_with(
            "{\"error\":\"service_exists\",\"message\":\"it is there already\",\"index\":2}\n"
        ),
        "{answer}"
    );
    assert_eq!(server.fake.services.lock().unwrap()[0].servers.len(), 1);
}

#[test]
fn unknown_path_lists_the_paths_and_wrong_method_names_the_right_one() {
    let server = served();
    let answer = server.request("GET", "/v2/status", "");
    assert!(answer.starts_with("HTTP/1.1 404 "), "{answer}");
    assert!(answer.contains("no such path: /v2/status. There are GET /v1/status ("), "{answer}");
    assert!(answer.contains("; POST /v1/commands ("), "{answer}");
    let answer = server.request("DELETE", "/v1/commands", "");
    assert!(answer.starts_with("HTTP/1.1 405 "), "{answer}");
    assert!(answer.contains("\r\nallow: POST\r\n"), "{answer}");
}

#[test]
fn bad_json_is_refused_with_line_and_column() {
    let server = served();
    for (body, place) in [
        ("[\n {\"op\": }]", "line 2 column 9"),
        ("[{\"op\":\"explode\"}]", "unknown variant `explode`"),
        ("", "line 1 column 0"),
        ("{\"op\":\"flush\"}", "line 1 column"),
    ] {
        let answer = server.request("POST", "/v1/commands", body);
        assert!(answer.starts_with("HTTP/1.1 400 "), "{body}: {answer}");
        assert!(answer.contains(place), "{body}: {answer}");
    }
}

#[test]
fn body_beyond_the_limit_is_refused_before_and_after_it_is_sent() {
    let server = Served::new(
        Limits { body: 100, head_time: Duration::from_millis(200), ..Limits::default() },
        Fake::default(),
    );
    let announced = server.raw(b"POST /v1/commands HTTP/1.1\r\ncontent-length: 101\r\n\r\n");
    assert!(announced.starts_with("HTTP/1.1 413 "), "{announced}");
    let mut chunked = b"POST /v1/commands HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
    chunked.extend_from_slice(format!("65\r\n{}\r\n0\r\n\r\n", " ".repeat(0x65)).as_bytes());
    let sent = server.raw(&chunked);
    assert!(sent.starts_with("HTTP/1.1 413 "), "{sent}");
}

#[test]
fn garbage_long_heads_and_slow_bodies_end_with_an_answer_not_a_hang() {
    let limits = Limits {
        body_time: Duration::from_millis(100),
        head_time: Duration::from_millis(200),
        ..Limits::default()
    };
    let server = Served::new(limits, Fake::default());
    let answer = server.raw(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    let headers: String = (0..65).map(|n| format!("x-{n}: y\r\n")).collect();
    let answer = server.raw(format!("GET /metrics HTTP/1.1\r\n{headers}\r\n").as_bytes());
    assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
    let long = format!("GET /metrics HTTP/1.1\r\nx: {}\r\n", "y".repeat(33 * 1024));
    let answer = server.raw(long.as_bytes());
    assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
    let answer = server.raw(b"POST /v1/commands HTTP/1.1\r\ncontent-length: 10\r\n\r\n[");
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
}

#[test]
fn panic_in_the_director_becomes_status_500_and_the_server_lives_on() {
    let server = Served::new(Limits::default(), Fake { panics: true, ..Fake::default() });
    let answer = server.request("GET", "/v1/services", "");
    assert!(answer.starts_with("HTTP/1.1 500 "), "{answer}");
    assert!(answer.contains("\"error\":\"internal\""), "{answer}");
    assert!(server.request("GET", "/v1/timeouts", "").starts_with("HTTP/1.1 200 "));
}

#[test]
fn idle_clients_are_closed_and_the_one_too_many_is_told_so() {
    let limits =
        Limits { connections: 3, head_time: Duration::from_millis(500), ..Limits::default() };
    let server = Served::new(limits, Fake::default());
    let mut idle: Vec<UnixStream> =
        (0..3).map(|_| UnixStream::connect(&server.path).unwrap()).collect();
    let answer = server.request("GET", "/v1/timeouts", "");
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert!(answer.contains("3 clients are connected"), "{answer}");
    for stream in &mut idle {
        // Ends without this test's doing: the server loses patience.
        stream.read_to_end(&mut Vec::new()).unwrap();
    }
    let answer = server.request("GET", "/v1/timeouts", "");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
}

#[test]
fn client_that_stops_reading_loses_its_place() {
    let limits = Limits {
        connections: 1,
        write_time: Duration::from_millis(200),
        head_time: Duration::from_millis(200),
        ..Limits::default()
    };
    let fake = Fake { shards: 100, per_shard: 20_000, ..Fake::default() };
    let server = Served::new(limits, fake);
    let mut deaf = UnixStream::connect(&server.path).unwrap();
    deaf.write_all(b"GET /v1/connections HTTP/1.1\r\n\r\n").unwrap();
    let patience = std::time::Instant::now() + Duration::from_secs(10);
    while !server.request("GET", "/v1/timeouts", "").starts_with("HTTP/1.1 200 ") {
        assert!(std::time::Instant::now() < patience, "still served");
    }
    // The whole table was not copied for somebody who does not read it.
    assert!(*server.fake.reached.lock().unwrap() < 10);
}

#[test]
fn metrics_count_verdicts_ports_services_and_servers() {
    let server = served();
    server.request("POST", "/v1/commands", ADD);
    let page = server.request("GET", "/metrics", "");
    for line in [
        "switchyard_packets_total{verdict=\"passed\",reason=\"no_service\"} 7",
        "switchyard_connections 0",
        "switchyard_port_received_frames_total{interface=\"eth0\",queue=\"0\",worker=\"0\",\
         io=\"AF_XDP copy\"} 11",
        "switchyard_service_connections_total{service=\"192.0.2.10:80/tcp\"} 0",
        "switchyard_server_connections_total{service=\"192.0.2.10:80/tcp\",\
         server=\"10.0.0.11:80\"} 9",
        "switchyard_control_requests_total{path=\"/v1/commands\"} 1",
        "switchyard_server_weight{service=\"192.0.2.10:80/tcp\",server=\"10.0.0.11:80\"} 5",
    ] {
        assert!(page.contains(&format!("\n{line}\n")), "{line} is not in\n{page}");
    }
}

#[test]
fn documentation_names_every_path_and_its_example_works() {
    let text = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/control-api.md"));
    for (method, path, _) in crate::control::routes::PATHS {
        assert!(text.contains(&format!("`{method} {path}`")), "{method} {path}");
    }
    let example = text.split("/v1/commands --data '").nth(1).unwrap().split('\'').next().unwrap();
    let answer = served().request("POST", "/v1/commands", example);
    assert!(answer.ends_with("{\"applied\":2}\n"), "{answer}");
}
