//! The fields of a packet by name, and which of them differ between two.

use forwarding::{Family, Fragment, Headers, parse};

use super::words;
use crate::control::explain::Change;

/// A field's name and value.
type Field = (&'static str, String);

/// What of `before` is another in `after`, outermost first.
pub(super) fn changes(before: &[u8], after: &[u8]) -> Vec<Change> {
    let (old, new) = (fields(before), fields(after));
    let find = |fields: &[Field], name: &str| {
        fields.iter().find(|field| field.0 == name).map(|field| field.1.clone())
    };
    let mut names: Vec<&'static str> = new.iter().map(|field| field.0).collect();
    names.extend(old.iter().map(|field| field.0).filter(|name| find(&new, name).is_none()));
    let change = |name| Change {
        field: str::to_owned(name),
        before: find(&old, name),
        after: find(&new, name),
    };
    let all = names.into_iter().map(change);
    all.filter(|change| change.before != change.after).collect()
}

/// Names of the outer header's fields, when there is one inside, and of the others.
const OUTER: [&str; 5] =
    ["outer source", "outer destination", "outer protocol", "outer TTL", "outer length"];

fn fields(frame: &[u8]) -> Vec<Field> {
    let mut fields = Vec::new();
    if let Some(header) = frame.get(..12) {
        fields.push(("Ethernet destination", mac(&header[..6])));
        fields.push(("Ethernet source", mac(&header[6..])));
    }
    let Ok(headers) = parse(frame) else { return fields };
    match inside(frame, &headers) {
        Some((shim, inner)) => {
            let values = [
                headers.source.to_string(),
                headers.destination.to_string(),
                shim,
                headers.ttl.to_string(),
                headers.ip_len().to_string(),
            ];
            fields.extend(OUTER.into_iter().zip(values));
            packet(&mut fields, &inner, frame);
        }
        None => packet(&mut fields, &headers, frame),
    }
    fields
}

/// The packet inside a tunnel's, and what is around it.
fn inside(frame: &[u8], headers: &Headers) -> Option<(String, Headers)> {
    use forwarding::wire::protocol;
    let name = match headers.protocol {
        protocol::IPIP | protocol::IPV6 => format!("{} (IP in IP)", headers.protocol),
        protocol::GRE => "47 (GRE)".to_owned(),
        protocol::UDP => format!("17 (GUE to port {})", headers.destination_port),
        _ => return None,
    };
    let inner = forwarding::icmp::tunnelled(frame, headers)?;
    Some((name, inner))
}

fn packet(fields: &mut Vec<Field>, headers: &Headers, frame: &[u8]) {
    let hops = if headers.family == Family::V4 { "TTL" } else { "hop limit" };
    fields.push(("source", words::end(headers.source, headers.source_port)));
    fields.push(("destination", words::end(headers.destination, headers.destination_port)));
    fields.push((hops, headers.ttl.to_string()));
    fields.push(("length", headers.ip_len().to_string()));
    if headers.family == Family::V4
        && let Some(sum) = frame.get(headers.l3 + 10..headers.l3 + 12)
    {
        fields.push(("IP checksum", format!("{:02x}{:02x}", sum[0], sum[1])));
    }
    if let Some(quote) = forwarding::icmp::quoted(frame, headers) {
        fields.push(("quoted source", words::end(quote.source, quote.source_port)));
        fields.push(("quoted destination", words::end(quote.destination, quote.destination_port)));
    }
    if headers.is_tcp()
        && let Some(size) = largest_segment(frame.get(headers.l4..headers.end).unwrap_or_default())
    {
        fields.push(("largest segment", size.to_string()));
    }
    let at = match headers.protocol {
        1 | 58 => 2,
        6 => 16,
        17 => 6,
        _ => return,
    };
    if matches!(headers.fragment, Fragment::Whole | Fragment::First { .. })
        && let Some(sum) = frame.get(headers.l4 + at..headers.l4 + at + 2)
    {
        fields.push(("transport checksum", format!("{:02x}{:02x}", sum[0], sum[1])));
    }
}

/// What a TCP header announces as the largest segment that its sender takes (option 2).
fn largest_segment(segment: &[u8]) -> Option<u16> {
    let length = usize::from(*segment.get(12)? >> 4) * 4;
    let mut options = segment.get(20..length)?;
    loop {
        options = match *options {
            [0, ..] | [] => return None,
            [1, ref rest @ ..] => rest,
            [2, 4, high, low, ..] => return Some(u16::from_be_bytes([high, low])),
            // An option of less than its own two bytes would never end.
            [_, length, ..] => options.get(usize::from(length.max(2))..)?,
            [_] => return None,
        };
    }
}

/// As `ip link` writes it.
pub(super) fn mac(bytes: &[u8]) -> String {
    let bytes: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    bytes.join(":")
}
