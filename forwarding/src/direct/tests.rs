use proptest::prelude::*;

use super::*;
use crate::parse;
use crate::tests::frames::{Spec, Transport, specs};
use crate::tests::oracle;

proptest! {
    #[test]
    fn only_ttl_and_header_checksum_change(spec in specs()) {
        prop_assume!(spec.ttl > 1);
        let mut frame = spec.build();
        let mut headers = parse(&frame).unwrap();
        prop_assert!(decrement_ttl(&mut frame, &mut headers));
        let expected = Spec { ttl: spec.ttl - 1, ..spec }.build();
        prop_assert_eq!(parse(&frame), Ok(headers));
        prop_assert_eq!(&frame, &expected);
        oracle::assert_checksums(&frame);
    }
}

#[test]
fn a_packet_on_its_last_hop_is_refused_unchanged() {
    for source in ["10.0.0.1:1", "[fd00::1]:1"] {
        for ttl in [0, 1] {
            let spec = Spec { ttl, ..Spec::new(Transport::Tcp, source, source) };
            let mut frame = spec.build();
            let mut headers = parse(&frame).unwrap();
            assert!(!decrement_ttl(&mut frame, &mut headers));
            assert_eq!(frame, spec.build());
            assert_eq!(headers.ttl, ttl);
        }
    }
}
