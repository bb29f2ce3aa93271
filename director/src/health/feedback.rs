//! Weights by what servers report of themselves: a factor, per mille of the configured weight.
//!
//! Knows neither weights nor servers. A factor is never 0: a server that wants nothing says that it
//! drains, and does not get there by rounding.

use super::plan::Feedback;

/// As configured.
const WHOLE: u16 = 1000;

/// The factor of one server in one service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Factor {
    settings: Feedback,
    permille: u16,
}

/// What a server reports of itself; what it does not speak of is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Load, 0..=10000.
    pub load: Option<u16>,
    /// Share of its weight that it asks for, percent, 0..=1000.
    pub percent: Option<u16>,
}

impl Factor {
    /// Of a server that has not reported.
    pub fn new(settings: Feedback) -> Factor {
        Factor { settings, permille: WHOLE }
    }

    /// From now on within other limits, from where it is.
    pub fn follow(&mut self, settings: Feedback) {
        self.settings = settings;
    }

    /// Per mille of the configured weight, 1..=10000.
    pub fn permille(&self) -> u16 {
        self.permille
    }

    /// Follows a report, by one step at most. Where load and percentage are both known the smaller
    /// factor counts. A report of what cannot be changes nothing.
    pub fn report(&mut self, report: Report) {
        let load = report.load.map(|load| match load {
            0..=10_000 => Some(WHOLE - load / 10),
            _ => None,
        });
        let percent = report.percent.map(|percent| match percent {
            0..=1000 => Some(percent * 10),
            _ => None,
        });
        let known = [load, percent].into_iter().flatten().flatten().min();
        if let Some(target) = known {
            let target = self.clamp(target);
            if target.abs_diff(self.permille) >= self.settings.hysteresis.max(1) {
                self.step_to(target);
            }
        }
    }

    /// Nothing is reported any more, or nothing new: one step back to the configured weight.
    pub fn forget(&mut self) {
        self.step_to(self.clamp(WHOLE));
    }

    fn clamp(&self, target: u16) -> u16 {
        let least = self.settings.least.max(1);
        target.clamp(least, self.settings.most.max(least))
    }

    fn step_to(&mut self, target: u16) {
        let step = self.settings.step.max(1);
        let least = self.permille.saturating_sub(step);
        self.permille = target.clamp(least, self.permille.saturating_add(step)).max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(load: u16) -> Report {
        Report { load: Some(load), percent: None }
    }

    fn percent(percent: u16) -> Report {
        Report { load: None, percent: Some(percent) }
    }

    fn after(settings: Feedback, reports: &[Report]) -> Vec<u16> {
        let mut factor = Factor::new(settings);
        let permille = |report: &Report| {
            factor.report(*report);
            factor.permille()
        };
        reports.iter().map(permille).collect()
    }

    #[test]
    fn a_factor_follows_load_in_steps_within_its_limits() {
        let settings = Feedback { least: 100, most: 1000, hysteresis: 50, step: 200 };
        let full = after(settings, &[load(10_000); 6]);
        assert_eq!(full, [800, 600, 400, 200, 100, 100], "never below `least`");
        assert_eq!(after(settings, &[load(3000), load(3000)]), [800, 700]);
        let quick = Feedback { least: 1, most: 10_000, hysteresis: 0, step: 10_000 };
        assert_eq!(after(quick, &[load(10_000), load(0), load(9999)]), [1, 1000, 1]);
        assert_eq!(after(quick, &[percent(150), percent(1000), percent(0)]), [1500, 10_000, 1]);
        let both = Report { load: Some(5000), percent: Some(80) };
        assert_eq!(after(quick, &[both]), [500]);
    }

    #[test]
    fn small_changes_are_not_made() {
        let settings = Feedback { hysteresis: 50, step: 1000, ..Feedback::default() };
        let factors = after(settings, &[load(490), load(500), load(990), load(10), load(0)]);
        assert_eq!(factors, [1000, 950, 950, 950, 1000].map(|f| f), "a change below 50");
    }

    #[test]
    fn nonsense_changes_nothing_and_what_is_old_is_forgotten_in_steps() {
        let settings = Feedback { hysteresis: 300, step: 300, ..Feedback::default() };
        let mut factor = Factor::new(settings);
        factor.report(load(4000));
        assert_eq!(factor.permille(), 700);
        for nonsense in [load(10_001), load(u16::MAX), percent(1001), Report::default()] {
            factor.report(nonsense);
            assert_eq!(factor.permille(), 700, "{nonsense:?}");
        }
        let one_good = Report { load: Some(u16::MAX), percent: Some(40) };
        factor.report(one_good);
        assert_eq!(factor.permille(), 400);
        let back = [(); 3].map(|()| {
            factor.forget();
            factor.permille()
        });
        assert_eq!(back, [700, 1000, 1000]);
    }
}
