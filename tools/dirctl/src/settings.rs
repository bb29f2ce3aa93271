//! `dirctl settings`: the settings with their defaults, and new values for them.

use std::collections::BTreeMap;
use std::str::FromStr;

use director::dispatch::settings::Setting;

use crate::columns::{Side, columns};
use crate::paint::Paint;

/// A new value for a setting, as it is written on the command line: `sloppy_tcp=1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// The setting's name. Whether there is such a one is for the director to say.
    pub name: String,
    /// Its new value.
    pub value: u32,
}

impl FromStr for Assignment {
    type Err = String;

    fn from_str(text: &str) -> Result<Assignment, String> {
        let (name, value) = text.split_once('=').ok_or("write NAME=VALUE")?;
        let value = value.trim().parse();
        let value = value.map_err(|_| "the value is a whole number, 0 or 1 for a switch")?;
        Ok(Assignment { name: name.trim().to_owned(), value })
    }
}

/// The settings as a person reads them: those that are not at their default stand out.
pub fn text(settings: &BTreeMap<String, u32>, paint: Paint) -> String {
    let default = |name: &str| Setting::find(name).map(Setting::default);
    let mut rows = vec![["setting", "value", "default"].map(str::to_owned)];
    // The director may be newer, and have settings that are not known here.
    rows.extend(settings.iter().map(|(name, value)| {
        let default = default(name).map_or_else(|| "?".to_owned(), |default| default.to_string());
        [name.escape_default().to_string(), value.to_string(), default]
    }));
    let lines = columns([Side::Left, Side::Right, Side::Right], &rows);
    let changed = settings.iter().map(|(name, &value)| default(name).is_some_and(|it| it != value));
    let mut lines = lines.into_iter();
    let mut text = paint.heading(&lines.next().unwrap_or_default()) + "\n";
    for (line, changed) in lines.zip(changed) {
        text.push_str(&if changed { paint.warning(&line) } else { line });
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_assignment_is_a_name_and_a_whole_number() {
        let right: Assignment = "am_droprate=20".parse().unwrap();
        assert_eq!((right.name.as_str(), right.value), ("am_droprate", 20));
        for wrong in ["am_droprate", "am_droprate=", "am_droprate=-1", "sloppy_tcp=yes"] {
            assert!(wrong.parse::<Assignment>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn settings_stand_beside_their_defaults() {
        let settings = [("am_droprate", 20), ("from_the_future", 7), ("sloppy_tcp", 0)];
        let settings = settings.map(|(name, value)| (name.to_owned(), value)).into();
        assert_eq!(
            text(&settings, Paint::new(false, None, None)),
            "  setting          value  default\n\
             \x20 am_droprate         20       10\n\
             \x20 from_the_future      7        ?\n\
             \x20 sloppy_tcp           0        0\n"
        );
    }
}
