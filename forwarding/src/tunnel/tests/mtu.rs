//! What is left of an MTU, by the table of the kernel (`__ip_vs_get_out_rt`, `ip_vs_xmit.c`).

use super::*;

#[test]
fn every_type_takes_from_the_mtu_what_the_kernel_takes() {
    // The MTU of the way is 1500; what is left for a packet with a whole and a partial checksum.
    let table = [
        (Encapsulation::Ipip, [1480, 1480], [1460, 1460]),
        (gue(GueChecksum::Nocsum), [1468, 1468], [1448, 1448]),
        (gue(GueChecksum::Csum), [1468, 1468], [1448, 1448]),
        (gue(GueChecksum::Remcsum), [1468, 1460], [1448, 1440]),
        (Encapsulation::Gre { checksum: false }, [1476, 1476], [1456, 1456]),
        (Encapsulation::Gre { checksum: true }, [1472, 1472], [1452, 1452]),
    ];
    for (encapsulation, v4, v6) in table {
        for (server, left) in [(SERVER_V4.destination, v4), (SERVER_V6.destination, v6)] {
            for (partial, left) in [(false, left[0]), (true, left[1])] {
                let overhead = encapsulation.overhead(server, partial);
                assert_eq!(1500 - overhead, left, "{encapsulation:?} to {server}");
            }
        }
    }
}

#[test]
fn the_largest_packet_that_fits_becomes_as_long_as_the_mtu() {
    for index in 0..KINDS {
        for outer in [SERVER_V4, SERVER_V6] {
            for partial in [false, true] {
                let left = 1500 - tunnel_type(index).overhead(outer.destination, partial);
                let spec = Spec {
                    payload: vec![7; left - 20 - 20],
                    ..Spec::new(Transport::Tcp, "10.0.0.1:1", "10.0.0.2:2")
                };
                let frame = if partial { left_to_hardware(&spec) } else { spec.build() };
                let (_, made) = wrap(&frame, tunnel_type(index), &outer);
                assert_eq!(made.headers.ip_len(), 1500, "{:?}", tunnel_type(index));
            }
        }
    }
}
