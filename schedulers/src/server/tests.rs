//! The overload flag and the counters, also when two workers change them at once.

use super::*;

fn server(weight: i32) -> Server {
    Server::new(ServerId(1), IpAddr::from([10, 0, 0, 1]), 80, weight)
}

fn open(server: &Server, count: u32) {
    (0..count).for_each(|_| server.connection_opened());
}

fn close(server: &Server, count: u32) {
    (0..count).for_each(|_| server.connection_closed(false));
}

#[test]
fn overload_lasts_until_the_lower_threshold_is_left() {
    let server = server(1);
    server.set_thresholds(10, 4);
    open(&server, 9);
    assert!(!server.is_overloaded());
    open(&server, 1);
    assert!(server.is_overloaded());
    close(&server, 6);
    assert!(server.is_overloaded(), "4 is not below 4");
    close(&server, 1);
    assert!(!server.is_overloaded());
}

#[test]
fn without_a_lower_threshold_three_quarters_count() {
    for (upper, lower) in [(10, 8), (3, 3), (1, 1), (7, 6)] {
        let server = server(1);
        server.set_thresholds(upper, 0);
        open(&server, upper);
        close(&server, upper - lower);
        assert!(server.is_overloaded(), "{upper}: {lower} is not below");
        close(&server, 1);
        assert!(!server.is_overloaded(), "{upper}");
    }
}

#[test]
fn a_raised_threshold_frees_a_server_at_once_and_a_lowered_one_waits_for_a_connection() {
    let server = server(1);
    open(&server, 5);
    server.set_thresholds(5, 0);
    assert!(!server.is_overloaded(), "nobody has come since");
    open(&server, 1);
    assert!(server.is_overloaded());
    server.set_thresholds(5, 5);
    server.set_thresholds(4, 0);
    assert!(server.is_overloaded(), "only raising frees");
    server.set_thresholds(7, 1);
    assert!(!server.is_overloaded(), "also between the thresholds");
    open(&server, 1);
    assert!(server.is_overloaded());
    server.set_thresholds(0, 0);
    assert!(!server.is_overloaded());
}

#[test]
fn the_last_weight_survives_quiescing() {
    let server = server(7);
    server.set_weight(0);
    assert_eq!((server.weight(), server.last_weight()), (0, 7));
    assert!(!server.is_eligible());
    assert_eq!(self::server(0).last_weight(), 0);
}

#[test]
fn miscounting_stops_at_zero() {
    let server = server(1);
    server.connection_closed(true);
    server.connection_closed(false);
    server.connection_moved(false);
    assert_eq!((server.active(), server.inactive()), (0, 1));
    server.connection_closed(false);
    assert_eq!(server.connections(), 0);
}

#[test]
fn a_worker_that_is_late_with_an_old_count_leaves_no_flag_standing() {
    let server = server(1);
    server.set_thresholds(1, 0);
    open(&server, 1);
    let old = server.look();
    // Another worker closes the last connection before the first one has written the flag.
    close(&server, 1);
    server.settle_overload(old);
    assert!(server.is_eligible());

    open(&server, 1);
    let old = server.look();
    server.set_thresholds(0, 0);
    server.settle_overload(old);
    assert!(server.is_eligible(), "nor when the limit has been lifted meanwhile");

    close(&server, 1);
    let old = server.look();
    server.set_thresholds(1, 0);
    open(&server, 1);
    server.settle_overload(old);
    assert!(server.is_overloaded(), "nor is a flag lost");
}

#[test]
fn workers_at_once_lose_no_count() {
    let server = server(1);
    let work = || {
        for _ in 0..2000 {
            server.connection_opened();
            server.connection_moved(true);
            server.connection_opened();
            server.connection_closed(true);
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(work);
        scope.spawn(work);
    });
    assert_eq!((server.active(), server.inactive()), (0, 4000));
}

fn watched(weight: i32) -> Server {
    let server = server(weight);
    server.watch_progress(true);
    server
}

/// Opens TCP connections, whose first packet makes them active.
fn open_active(server: &Server, count: u32) {
    for _ in 0..count {
        server.connection_opened();
        server.connection_moved(true);
    }
}

#[test]
fn nothing_is_in_progress_where_no_bias_watches() {
    let server = server(1);
    open_active(&server, 3);
    server.handshake_begun();
    assert_eq!((server.in_progress(), server.opened_since_report()), (0, 0));
}

#[test]
fn a_connection_is_in_progress_until_the_window_is_over() {
    let server = watched(1);
    open_active(&server, 2);
    server.turn_window(8);
    open_active(&server, 1);
    server.turn_window(7);
    assert_eq!(server.in_progress(), 3);
    server.turn_window(1);
    assert_eq!(server.in_progress(), 1);
    server.turn_window(8);
    assert_eq!(server.in_progress(), 0);
    open_active(&server, 5);
    server.turn_window(usize::MAX);
    assert_eq!(server.in_progress(), 0);
}

#[test]
fn a_young_connection_that_was_closed_is_not_in_progress() {
    let server = watched(1);
    open_active(&server, 5);
    server.connection_closed(true);
    server.connection_moved(false);
    assert_eq!(server.in_progress(), 3);
    (0..3).for_each(|_| server.connection_moved(false));
    assert_eq!(server.in_progress(), 0, "closing ones are inactive");
}

#[test]
fn connections_that_never_become_active_are_in_progress_while_they_exist() {
    let server = watched(1);
    open(&server, 4);
    assert_eq!(server.in_progress(), 4);
    close(&server, 3);
    assert_eq!(server.in_progress(), 1);
}

#[test]
fn a_connection_is_in_progress_until_it_is_established_however_old() {
    let server = watched(1);
    for _ in 0..4 {
        open_active(&server, 1);
        server.handshake_begun();
    }
    server.turn_window(100);
    assert_eq!(server.in_progress(), 4);
    server.handshake_ended();
    assert_eq!(server.in_progress(), 3);
    (0..9).for_each(|_| server.handshake_ended());
    assert_eq!(server.in_progress(), 0);
    server.handshake_begun();
    assert_eq!(server.in_progress(), 1, "ends told too often leave no debt");
    (0..4).for_each(|_| server.connection_closed(true));
    assert_eq!(server.in_progress(), 0, "nor is there a handshake without a connection");
}

#[test]
fn without_a_window_only_those_that_are_not_established_are_in_progress() {
    let server = watched(1);
    open_active(&server, 3);
    server.watch_progress(false);
    assert_eq!(server.in_progress(), 0);
    server.handshake_begun();
    assert_eq!(server.in_progress(), 1);
}

#[test]
fn a_report_contains_what_was_opened_before() {
    let server = watched(1);
    open(&server, 3);
    assert_eq!((server.reported(), server.opened_since_report()), (None, 3));
    server.report(Some(0));
    assert_eq!((server.reported(), server.opened_since_report()), (Some(0), 0));
    open(&server, 1);
    assert_eq!(server.opened_since_report(), 1);
    server.report(None);
    assert_eq!((server.reported(), server.opened_since_report()), (None, 0));
}

#[test]
fn workers_at_once_leave_no_progress_behind() {
    let server = watched(1);
    let work = || {
        for _ in 0..5000 {
            open_active(&server, 1);
            server.handshake_begun();
            server.handshake_ended();
        }
    };
    std::thread::scope(|scope| {
        let workers = [scope.spawn(work), scope.spawn(work)];
        while workers.iter().any(|worker| !worker.is_finished()) {
            server.turn_window(1);
        }
    });
    server.turn_window(16);
    assert_eq!((server.active(), server.in_progress()), (10_000, 0));
}
