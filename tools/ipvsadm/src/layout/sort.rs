//! The order of listings. ipvsadm compares by the signed 32-bit difference of two addresses, so
//! those 2^31 apart or more come out the wrong way round (255.255.255.255 before 10.0.0.1), and the
//! relation is not even an order. A listing that is to be compared with ipvsadm's needs the same
//! relation and the same merge sort; the standard library's sort may panic on such a relation.

use std::cmp::Ordering;
use std::net::IpAddr;

use director::control::api::{Protocol, ServerView, ServiceKey};

use super::protocol_of;

/// Sorts what belongs to services: by their mark, family, protocol, address, port.
pub fn by_service<T>(items: Vec<(ServiceKey, T)>) -> Vec<(ServiceKey, T)> {
    let mut places: Vec<usize> = (0..items.len()).collect();
    merge_sort(&mut places, &|left, right| compare_services(&items[*left].0, &items[*right].0));
    let mut items: Vec<Option<(ServiceKey, T)>> = items.into_iter().map(Some).collect();
    places.into_iter().filter_map(|place| items[place].take()).collect()
}

/// Sorts servers: by address, whatever its family, and port.
pub fn servers(servers: &mut [&ServerView]) {
    merge_sort(servers, &|left, right| {
        let (left, right) = (left.spec.address, right.spec.address);
        compare_addresses(left.ip(), right.ip()).then_with(|| left.port().cmp(&right.port()))
    });
}

fn compare_services(left: &ServiceKey, right: &ServiceKey) -> Ordering {
    let mark = |key: &ServiceKey| match key {
        ServiceKey::Address { .. } => 0,
        ServiceKey::Fwmark { fwmark, .. } => *fwmark,
    };
    let number = |key: &ServiceKey| protocol_of(key).map_or(0, Protocol::number);
    difference(mark(left), mark(right))
        .then_with(|| left.is_ipv6().cmp(&right.is_ipv6()))
        .then_with(|| number(left).cmp(&number(right)))
        .then_with(|| match (left, right) {
            (
                ServiceKey::Address { address: left, .. },
                ServiceKey::Address { address: right, .. },
            ) => compare_addresses(left.ip(), right.ip())
                .then_with(|| left.port().cmp(&right.port())),
            _ => Ordering::Equal,
        })
}

/// The sign of the difference as a C `int` has it.
fn difference(left: u32, right: u32) -> Ordering {
    (left.wrapping_sub(right) as i32).cmp(&0)
}

/// Word by word, of which an IPv4 address has one: the family of the left side says how many count.
fn compare_addresses(left: IpAddr, right: IpAddr) -> Ordering {
    let count = if left.is_ipv6() { 4 } else { 1 };
    let pairs = words(left).into_iter().zip(words(right)).take(count);
    pairs.fold(Ordering::Equal, |sofar, (left, right)| sofar.then_with(|| difference(left, right)))
}

fn words(address: IpAddr) -> [u32; 4] {
    match address {
        IpAddr::V4(address) => [address.into(), 0, 0, 0],
        IpAddr::V6(address) => [96, 64, 32, 0].map(|shift| (u128::from(address) >> shift) as u32),
    }
}

/// Merge sort that halves from the top, as the C library's qsort does.
fn merge_sort<T: Copy>(items: &mut [T], compare: &impl Fn(&T, &T) -> Ordering) {
    if items.len() < 2 {
        return;
    }
    let (left, right) = items.split_at_mut(items.len() / 2);
    merge_sort(left, compare);
    merge_sort(right, compare);
    let (left, right) = (left.to_vec(), right.to_vec());
    let (mut left, mut right) = (left.into_iter().peekable(), right.into_iter().peekable());
    for place in items {
        let from_left = match (left.peek(), right.peek()) {
            (Some(left), Some(right)) => compare(left, right).is_le(),
            (Some(_), None) => true,
            _ => false,
        };
        if let Some(item) = if from_left { left.next() } else { right.next() } {
            *place = item;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(addresses: &[&str]) -> Vec<String> {
        let mut items: Vec<IpAddr> = addresses.iter().map(|text| text.parse().unwrap()).collect();
        merge_sort(&mut items, &|left, right| compare_addresses(*left, *right));
        items.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn near_addresses_are_in_order_and_far_ones_are_the_wrong_way_round() {
        assert_eq!(
            sorted(&["10.0.0.12", "10.0.0.3", "10.0.0.2"]),
            ["10.0.0.2", "10.0.0.3", "10.0.0.12"]
        );
        assert_eq!(sorted(&["10.0.0.1", "255.255.255.255"]), ["255.255.255.255", "10.0.0.1"]);
        assert_eq!(sorted(&["2001:db8::2", "2001:db8::1"]), ["2001:db8::1", "2001:db8::2"]);
        // Families mix where tunnels lead from one to the other: 2001:: is 32.1.0.0.
        assert_eq!(
            sorted(&["2001:db8::1", "127.0.0.1", "10.0.0.1", "::1"]),
            ["::1", "10.0.0.1", "2001:db8::1", "127.0.0.1"]
        );
        assert_eq!(
            sorted(&["2001:db8::1", "2001:db8::f000:0"]),
            ["2001:db8::f000:0", "2001:db8::1"]
        );
    }

    #[test]
    fn relation_that_goes_in_circles_sorts_without_panic_and_loses_nothing() {
        let circle = ["10.0.0.1", "120.0.0.1", "220.0.0.1", "70.0.0.1", "180.0.0.1"];
        for turn in 0..circle.len() {
            let mut turned = circle;
            turned.rotate_left(turn);
            let mut all = sorted(&turned);
            all.sort();
            let mut expected = circle.map(str::to_owned);
            expected.sort();
            assert_eq!(all, expected);
        }
    }

    #[test]
    fn marks_come_last_and_families_and_protocols_in_the_order_of_their_numbers() {
        let key = |json: &str| serde_json::from_str::<ServiceKey>(json).unwrap();
        let keys = [
            r#"{"protocol":"tcp","address":"10.0.0.9:80"}"#,
            r#"{"protocol":"udp","address":"10.0.0.1:53"}"#,
            r#"{"protocol":"sctp","address":"10.0.0.1:53"}"#,
            r#"{"protocol":"tcp","address":"[2001:db8::1]:80"}"#,
            r#"{"fwmark":7,"ipv6":false}"#,
            r#"{"fwmark":7,"ipv6":true}"#,
            r#"{"fwmark":8,"ipv6":false}"#,
        ]
        .map(key);
        for pair in keys.windows(2) {
            assert_eq!(compare_services(&pair[0], &pair[1]), Ordering::Less, "{pair:?}");
        }
    }
}
