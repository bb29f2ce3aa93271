//! `[settings]`: what kernel IPVS has as sysctls, by the kernel's names.

use std::collections::BTreeMap;

use realserver_agent::settings::key::{KeySpec, key};

use super::fields::Fields;
use super::problem::Report;
use crate::dispatch::settings::Setting;

/// Keys of `[settings]`: a setting each.
pub(super) const KEYS: &[KeySpec] = &{
    let mut keys = [key("", ""); Setting::ALL.len()];
    let mut place = 0;
    while place < keys.len() {
        let setting = Setting::ALL[place];
        let range = setting.range();
        keys[place] = key(setting.name(), setting.meaning())
            .numbers(*range.start() as i64, *range.end() as i64)
            .default(setting.default_text());
        place += 1;
    }
    keys
};

/// Reads the settings that the file names; an empty map when it names none.
pub(super) fn read(root: &Fields<'_>, report: &mut Report<'_>) -> BTreeMap<Setting, u32> {
    let Some(table) = root.get("settings").and_then(|field| {
        field.table(&[KEYS], "[settings] and below it conn_reuse_mode = 1", report)
    }) else {
        return BTreeMap::new();
    };
    Setting::ALL
        .iter()
        .filter_map(|&setting| Some((setting, value(&table, setting, report)?)))
        .collect()
}

fn value(table: &Fields<'_>, setting: Setting, report: &mut Report<'_>) -> Option<u32> {
    let field = table.get(setting.name())?;
    if setting.is_switch() && field.is_boolean() {
        return field.boolean(report).map(u32::from);
    }
    field.number("", report)
}
