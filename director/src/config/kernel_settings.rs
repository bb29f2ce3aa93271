//! `[settings]`: what kernel IPVS has as sysctls, by the kernel's names.

use std::collections::BTreeMap;

use super::fields::Fields;
use super::problem::Report;
use crate::dispatch::settings::Setting;

/// Reads the settings that the file names; an empty map when it names none.
pub(super) fn read(root: &Fields<'_>, report: &mut Report<'_>) -> BTreeMap<Setting, u32> {
    let known: Vec<&str> = Setting::ALL.iter().map(|setting| setting.name()).collect();
    let Some(table) = root.get("settings").and_then(|field| {
        field.table(&known, "[settings] and below it conn_reuse_mode = 1", report)
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
    let range = setting.range();
    let range = i64::from(*range.start())..=i64::from(*range.end());
    u32::try_from(field.integer(range, "", report)?).ok()
}
