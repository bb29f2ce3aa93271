//! Which text announces what.

use super::*;

fn told(found: Option<super::super::Announcement>) -> Option<(Form, Option<String>, u16)> {
    found.map(|found| (found.form, found.address.map(|address| address.to_string()), found.port))
}

#[test]
fn port_and_eprt_announce_the_clients_address_and_port() {
    let v4 = Some("192.0.2.7".to_owned());
    let v6 = Some("2001:db8::7".to_owned());
    let cases: [(&str, Form, &Option<String>, u16); 9] = [
        ("PORT 192,0,2,7,4,1\r\n", Form::HostPort, &v4, 1025),
        ("port 192,0,2,7,255,255\n", Form::HostPort, &v4, 65535),
        ("Port   192,0,2,7,0,1  \r\n", Form::HostPort, &v4, 1),
        ("PORT 192,0,2,7,4,1\r\nNOOP\r\n", Form::HostPort, &v4, 1025),
        ("PORT 192,00,002,07,004,1\r\n", Form::HostPort, &v4, 1025),
        ("EPRT |1|192.0.2.7|1025|\r\n", Form::Extended(b'|'), &v4, 1025),
        ("eprt |2|2001:DB8::7|65535|\n", Form::Extended(b'|'), &v6, 65535),
        ("EPRT !1!192.0.2.7!21!\r\n", Form::Extended(b'!'), &v4, 21),
        ("EPRT ~2~2001:db8:0:0::7~21~\r\n", Form::Extended(b'~'), &v6, 21),
    ];
    for (line, form, address, port) in cases {
        assert_eq!(told(active(line.as_bytes())), Some((form, address.clone(), port)), "{line:?}");
    }
}

#[test]
fn lines_that_announce_nothing_are_no_announcements() {
    for line in [
        "",
        "PORT",
        "PORT\r\n",
        "PORT \r\n",
        "PORT 192,0,2,7,4,1",
        "PORT 192,0,2,7,4,1\r",
        "PORT192,0,2,7,4,1\r\n",
        " PORT 192,0,2,7,4,1\r\n",
        "XPORT 192,0,2,7,4,1\r\n",
        "NOOP\r\nPORT 192,0,2,7,4,1\r\n",
        "PORT 192,0,2,7,4\r\n",
        "PORT 192,0,2,7,4,1,1\r\n",
        "PORT 192,0,2,7,4,256\r\n",
        "PORT 192,0,2,300,4,1\r\n",
        "PORT 192,0,2,7,0,0\r\n",
        "PORT 192,0,2,,4,1\r\n",
        "PORT 192,0,2,7, 4,1\r\n",
        "PORT 192,0,2,-7,4,1\r\n",
        "PORT 99999999999999999999,0,2,7,4,1\r\n",
        "PORT 192,0,2,7,4,1 x\r\n",
        "EPRT |||1025|\r\n",
        "EPRT |1|192.0.2.7|1025\r\n",
        "EPRT |1|192.0.2.7|1025|x\r\n",
        "EPRT |1|192.0.2.7|0|\r\n",
        "EPRT |1|192.0.2.7|65536|\r\n",
        "EPRT |1|192.0.2.7||\r\n",
        "EPRT |1|192.0.2|1025|\r\n",
        "EPRT |1||1025|\r\n",
        "EPRT ||192.0.2.7|1025|\r\n",
        "EPRT |2|192.0.2.7|1025|\r\n",
        "EPRT |1|2001:db8::7|1025|\r\n",
        "EPRT |2|fe80::1%eth0|1025|\r\n",
        "EPRT |3|192.0.2.7|1025|\r\n",
        "EPRT 111192.0.2.7110251\r\n",
        "EPRT \u{7}1\u{7}192.0.2.7\u{7}1025\u{7}\r\n",
    ] {
        assert_eq!(active(line.as_bytes()), None, "{line:?}");
    }
    for line in [
        "227 Entering Passive Mode (10,0,0,11,195,80)",
        "227 Entering Passive Mode\r\n",
        "227 Entering Passive Mode (\r\n",
        "227-Entering Passive Mode (10,0,0,11,195,80)\r\n",
        "228 Entering Passive Mode (10,0,0,11,195,80)\r\n",
        "227 v2 (10,0,0,11,195,80)\r\n",
        "227 Entering Passive Mode (10,0,0,11,0,0)\r\n",
        "229 Entering Extended Passive Mode (|||0|)\r\n",
        "229 Entering Extended Passive Mode (|||50000)\r\n",
        "229 Entering Extended Passive Mode |||50000|\r\n",
        "229 Entering Extended Passive Mode (|1||50000|)\r\n",
        "150 ok\r\n227 Entering Passive Mode (10,0,0,11,195,80)\r\n",
    ] {
        assert_eq!(reply(line.as_bytes()), None, "{line:?}");
    }
}

#[test]
fn replies_announce_the_servers_address_and_port_and_where_they_stand() {
    let v4 = Some("10.0.0.11".to_owned());
    let cases = [
        ("227 Entering Passive Mode (10,0,0,11,195,80)\r\n", "10,0,0,11,195,80"),
        ("227 Entering Passive Mode (10,0,0,11,195,80).\r\n", "10,0,0,11,195,80"),
        ("227 =10,0,0,11,195,80\r\n", "10,0,0,11,195,80"),
        ("227 Entering Passive Mode 10,0,0,11,195,80\n226 x\r\n", "10,0,0,11,195,80"),
    ];
    for (line, text) in cases {
        let found = reply(line.as_bytes()).unwrap();
        assert_eq!(&line[found.text.clone()], text);
        assert_eq!(found.line, 0..line.find('\n').unwrap() + 1);
        assert_eq!(told(Some(found)), Some((Form::HostPort, v4.clone(), 50000)));
    }
    let line = "229 Entering Extended Passive Mode (|||50000|)\r\n";
    let found = reply(line.as_bytes()).unwrap();
    assert_eq!(&line[found.text.clone()], "|||50000|");
    assert_eq!(told(Some(found)), Some((Form::PortOnly(b'|'), None, 50000)));
    let line = "229 ok (!1!10.0.0.11!50000!)\r\n";
    let found = reply(line.as_bytes()).unwrap();
    assert_eq!(&line[found.text.clone()], "!1!10.0.0.11!50000!");
    assert_eq!(told(Some(found)), Some((Form::Extended(b'!'), v4, 50000)));
}

#[test]
fn passive_mode_is_asked_for_by_pasv_and_epsv_anywhere_in_the_segment() {
    for text in [
        "PASV\r\n",
        "pasv\n",
        "Epsv\r\n",
        "EPSV 1\r\n",
        "TYPE I\r\nPASV\r\n",
        "PASV\r\nRETR file\r\n",
    ] {
        assert!(is_passive(text.as_bytes(), Family::V4), "{text:?}");
    }
    for text in [
        "",
        "PASV",
        "PASV\r",
        "XPASV\r\n",
        "PASVX\r\n",
        "PASV now\r\n",
        "EPSV ALL\r\n",
        "EPSV 3\r\n",
        "RETR PASV\r\n",
    ] {
        for family in [Family::V4, Family::V6] {
            assert!(!is_passive(text.as_bytes(), family), "{text:?}");
        }
    }
}

#[test]
fn a_request_for_the_other_family_is_none() {
    for (text, v4, v6) in [
        ("PASV\r\n", true, false),
        ("EPSV\r\n", true, true),
        ("EPSV 1\r\n", true, false),
        ("EPSV 2\r\n", false, true),
    ] {
        let asked = [Family::V4, Family::V6].map(|family| is_passive(text.as_bytes(), family));
        assert_eq!(asked, [v4, v6], "{text:?}");
    }
}

#[test]
fn a_line_without_end_is_not_searched_for_ever() {
    let mut line = b"227 ".to_vec();
    line.resize(600, b' ');
    line.extend_from_slice(b"(10,0,0,11,195,80)\r\n");
    assert_eq!(reply(&line), None);
}

proptest! {
    #[test]
    fn any_text_gives_places_inside_it(
        begin in prop::sample::select(vec!["PORT ", "EPRT ", "227 ", "229 (", "227 (", ""]),
        rest in prop::collection::vec(
            prop_oneof![any::<u8>(), prop::sample::select(b"0123456789,,,,|||(:.\n".to_vec())],
            0..60,
        ),
    ) {
        let mut text = begin.as_bytes().to_vec();
        text.extend(rest);
        let _ = is_passive(&text, Family::V4);
        for found in [active(&text), reply(&text)].into_iter().flatten() {
            prop_assert!(found.line.start == 0 && found.line.end <= text.len());
            prop_assert_eq!(text[found.line.end - 1], b'\n');
            prop_assert!(4 <= found.text.start && found.text.start < found.text.end);
            prop_assert!(found.text.end < found.line.end);
            prop_assert!(found.port != 0);
        }
    }
}
