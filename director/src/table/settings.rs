//! The settings, as an operator and the configuration file change them.

use std::collections::BTreeMap;
use std::time::Duration;

use schedulers::Expirations;

use super::check::refuse;
use super::{State, Table};
use crate::control::api::{Refusal, RefusalKind};
use crate::dispatch::settings::Setting;
use crate::plan::settings;

impl Table {
    /// Gives settings new values, all of them or none.
    ///
    /// # Errors
    /// When one is not known or its value out of range.
    pub(super) fn set_settings(
        &self,
        state: &State,
        wanted: &BTreeMap<String, u32>,
    ) -> Result<(), Refusal> {
        for (setting, value) in check(wanted)? {
            self.shared.settings.set(setting, value);
        }
        self.settings_changed(state);
        Ok(())
    }

    /// Tells those who do not look at settings packet by packet.
    fn settings_changed(&self, state: &State) {
        self.shared.review_defence();
        for service in state.services.iter() {
            service.choice().set_expirations(&self.expirations());
        }
    }

    /// How long schedulers are to remember.
    pub(super) fn expirations(&self) -> Expirations {
        let seconds = |setting| Duration::from_secs(self.shared.settings.get(setting).into());
        Expirations {
            lblc: seconds(Setting::LblcExpiration),
            lblcr: seconds(Setting::LblcrExpiration),
        }
    }

    /// Makes the settings follow the file: what it says otherwise than before, and what it does not
    /// say any more, which goes back to its default. What an operator has set stays where the file
    /// has not changed.
    pub fn declare_settings(
        &self,
        before: &BTreeMap<Setting, u32>,
        after: &BTreeMap<Setting, u32>,
    ) {
        // Names and values of the file are known to be good.
        for (setting, value) in check(&settings(before, after)).unwrap_or_default() {
            self.shared.settings.set(setting, value);
        }
        let mut state = self.lock();
        self.settings_changed(&state);
        self.publish(&mut state);
    }
}

/// Settings and their values, if all of them can be had.
pub(super) fn check(wanted: &BTreeMap<String, u32>) -> Result<Vec<(Setting, u32)>, Refusal> {
    wanted.iter().map(|(name, &value)| checked(name, value)).collect()
}

fn checked(name: &str, value: u32) -> Result<(Setting, u32), Refusal> {
    let Some(setting) = Setting::find(name) else {
        let known: Vec<_> = Setting::ALL.iter().map(|setting| setting.name()).collect();
        return Err(refuse(
            RefusalKind::Invalid,
            format!("there is no setting '{name}'; there are: {}", known.join(" ")),
        ));
    };
    let range = setting.range();
    if !range.contains(&value) {
        let (low, high) = (range.start(), range.end());
        return Err(refuse(
            RefusalKind::Invalid,
            format!("{name} = {value} is not within {low}..={high}"),
        ));
    }
    Ok((setting, value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::operations::Command;
    use crate::dispatch::Shared;
    use std::sync::Arc;

    fn table() -> Table {
        Table::new(Arc::new(Shared::new(100)), Box::new(|_| false), 1)
    }

    fn set(table: &Table, wanted: &[(&str, u32)]) -> Result<(), Refusal> {
        let settings = wanted.iter().map(|&(name, value)| (name.to_owned(), value)).collect();
        table.change(Command::SetSettings { settings }, Duration::ZERO)
    }

    #[test]
    fn one_wrong_setting_refuses_all_of_a_request() {
        let table = table();
        for wrong in [("conn_reuse_mode", 4), ("conntrack", 1), ("sloppy_tcp", 2)] {
            let refusal = set(&table, &[("cache_bypass", 1), wrong, ("pmtu_disc", 0)]).unwrap_err();
            assert_eq!(refusal.error, RefusalKind::Invalid);
            assert!(refusal.message.contains(wrong.0), "{}", refusal.message);
            let changed =
                |setting: &Setting| table.shared().settings.get(*setting) != setting.default();
            assert!(!Setting::ALL.iter().any(changed), "{wrong:?}");
        }
        set(&table, &[("cache_bypass", 1), ("pmtu_disc", 0)]).unwrap();
        assert!(table.shared().settings.is_on(Setting::CacheBypass));
    }

    #[test]
    fn a_reload_changes_what_the_file_has_changed_and_nothing_else() {
        let table = table();
        let settings = &table.shared().settings;
        let file = |said: &[(Setting, u32)]| said.iter().copied().collect::<BTreeMap<_, _>>();
        let first = file(&[(Setting::SloppyTcp, 1), (Setting::AmDroprate, 20)]);
        table.declare_settings(&BTreeMap::new(), &first);
        assert_eq!(settings.get(Setting::AmDroprate), 20);
        set(&table, &[("am_droprate", 5), ("drop_entry", 3)]).unwrap();
        table.declare_settings(&first, &file(&[(Setting::AmDroprate, 20)]));
        assert_eq!(settings.get(Setting::SloppyTcp), 0, "no longer in the file");
        assert_eq!(
            settings.get(Setting::AmDroprate),
            5,
            "an operator's, and the file is as before"
        );
        assert_eq!(settings.get(Setting::DropEntry), 3);
    }
}
