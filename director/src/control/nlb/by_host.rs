//! Numbers by host id, as an object of JSON: its keys are text there, which serde takes back to numbers
//! only where no tag stands beside them.

use std::collections::BTreeMap;

use serde::de::{Deserialize, Deserializer, Error};
use serde::ser::{Serialize, Serializer};

pub(super) fn serialize<T: Serialize, S: Serializer>(
    numbers: &BTreeMap<u8, T>,
    to: S,
) -> Result<S::Ok, S::Error> {
    to.collect_map(numbers)
}

pub(super) fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    from: D,
) -> Result<BTreeMap<u8, T>, D::Error> {
    let texts = BTreeMap::<String, T>::deserialize(from)?;
    let number = |(host, number): (String, T)| match host.parse() {
        Ok(host) => Ok((host, number)),
        Err(_) => Err(D::Error::custom(format!("{host:?} is no host id, 1 to 32"))),
    };
    texts.into_iter().map(number).collect()
}
