//! Call-IDs that count and Call-IDs that do not.

use proptest::prelude::*;

use super::{MAX_CALL_ID, call_id};

/// The Call-ID of a message.
fn found(message: &str) -> Option<&str> {
    call_id(message.as_bytes()).map(|range| &message[range])
}

/// A request with these lines behind the request line, each ended by CRLF.
fn request(lines: &[&str]) -> String {
    format!("INVITE sip:bob@example.com SIP/2.0\r\n{}\r\n\r\n", lines.join("\r\n"))
}

#[test]
fn requests_and_responses_are_found_by_either_name_in_any_case() {
    let id = "f81d4fae-7dec-11d0-a765-00a0c91e6bf6@foo.bar.com";
    for name in ["Call-ID", "call-id", "CALL-ID", "Call-Id", "i", "I"] {
        for space in [":", ": ", " : ", "   :    "] {
            let header = format!("{name}{space}{id}");
            let lines = ["Via: SIP/2.0/UDP pc33", &header, "CSeq: 1 INVITE"];
            assert_eq!(found(&request(&lines)), Some(id), "{header}");
            let response = format!("SIP/2.0 200 OK\r\n{header}\r\nFrom: a\r\n\r\n");
            assert_eq!(found(&response), Some(id), "{header}");
        }
    }
}

#[test]
fn cr_lf_and_crlf_end_a_line() {
    for end in ["\r", "\n", "\r\n"] {
        let message = format!("BYE sip:b SIP/2.0{end}To: b{end}i: abc{end}{end}");
        assert_eq!(found(&message), Some("abc"), "{end:?}");
    }
}

#[test]
fn a_call_id_without_host_counts() {
    assert_eq!(found(&request(&["Call-ID: 12345600"])), Some("12345600"));
}

#[test]
fn every_byte_of_a_word_counts_and_no_other() {
    let word = "azAZ09-.!%*_+`'~()<>:\\\"/[]?{}";
    // The apostrophe is in the grammar but not in the kernel's table.
    assert_eq!(
        found(&request(&[&format!("i: {}", word.replace('\'', ""))])),
        Some(&*word.replace('\'', ""))
    );
    for bad in ["ab c", "ab\tc", "ab'c", "ab;c", "ab@c@d", "ab\u{e9}", "ab=c", "ab&c", "ab#c"] {
        assert_eq!(found(&request(&[&format!("i: {bad}")])), None, "{bad}");
    }
}

#[test]
fn at_most_255_bytes_count() {
    let longest = "x".repeat(MAX_CALL_ID);
    assert_eq!(found(&request(&[&format!("i:{longest}")])), Some(&*longest));
    assert_eq!(found(&request(&[&format!("i:{longest}x")])), None);
    let with_host = format!("{}@{}", "x".repeat(127), "y".repeat(127));
    assert_eq!(found(&request(&[&format!("i:{with_host}")])), Some(&*with_host));
    assert_eq!(found(&request(&[&format!("i:{with_host}y")])), None);
}

#[test]
fn other_headers_that_begin_alike_are_not_taken() {
    assert_eq!(found(&request(&["Identity: abc", "i: def"])), Some("def"));
    assert_eq!(found(&request(&["In-Reply-To: abc", "Call-ID: def"])), Some("def"));
    assert_eq!(found(&request(&["X-Call-ID: abc"])), None);
    assert_eq!(found(&request(&["Call-IDs: abc", "i: def"])), None, "as the kernel stops");
}

#[test]
fn the_first_line_and_continuation_lines_are_no_headers() {
    assert_eq!(found("Call-ID: abc\r\n\r\n"), None);
    assert_eq!(found(&request(&["Subject: a", " Call-ID: abc"])), None);
    assert_eq!(found(&request(&["Subject: a", "\tCall-ID: abc", "i: def"])), Some("def"));
}

#[test]
fn a_fold_before_the_value_is_followed_as_the_kernel_does() {
    assert_eq!(found(&request(&["Call-ID:", " abc"])), Some("abc"));
    assert_eq!(found(&request(&["Call-ID", "\t : ", "  \tabc"])), Some("abc"));
    assert_eq!(found(&request(&["Call-ID:", "To: b"])), None);
}

#[test]
fn a_malformed_one_is_passed_over_for_the_next() {
    assert_eq!(found(&request(&["Call-ID: @host", "i: abc"])), Some("abc"));
    assert_eq!(found(&request(&["Call-ID: abc@", "i: def"])), Some("def"));
}

#[test]
fn a_message_cut_off_anywhere_gives_the_whole_id_or_none() {
    let message = request(&["Via: x", "Call-ID: abc@host", "CSeq: 1"]);
    let end = message.find("abc@host").unwrap() + "abc@host".len();
    for len in 0..message.len() {
        let expected = (len > end).then_some("abc@host");
        assert_eq!(found(&message[..len]), expected, "{len} bytes");
    }
}

proptest! {
    #[test]
    fn any_bytes_give_a_terminated_word_inside_the_payload_or_none(
        payload in prop_oneof![
            prop::collection::vec(any::<u8>(), 0..300),
            // Bytes that lead deep into the reader.
            prop::collection::vec(prop::sample::select(b"\r\n \ti:@Ix".to_vec()), 0..60),
        ],
    ) {
        if let Some(range) = call_id(&payload) {
            let id = &payload[range.clone()];
            prop_assert!(!id.is_empty() && id.len() <= MAX_CALL_ID);
            prop_assert!(id.iter().all(u8::is_ascii_graphic));
            prop_assert!(matches!(payload[range.end], b'\r' | b'\n'));
        }
    }
}
