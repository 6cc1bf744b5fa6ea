//! What predicted times rest on, in words: the data sheet, an assumption, or measured runs.

use super::quantity::grouped;
use super::quantity::shown;
use crate::plan::Basis;

/// What times rest on, in a few words.
pub fn words(basis: Option<&Basis>) -> String {
    match basis {
        None => "the data sheet: ideal, no runs".into(),
        Some(Basis::Assumed) => "an assumed efficiency, no runs".into(),
        Some(Basis::TakenFrom(name)) => {
            format!("an assumed efficiency ({}), no runs", shown(name))
        }
        Some(Basis::Calibrated { stack, runs, .. }) => {
            format!("calibrated on {} runs ({})", grouped(*runs), shown(stack))
        }
    }
}

/// The shortest and the longest of what four of five measured runs would take, for a predicted time;
/// `None` where no runs say.
pub fn interval(basis: Option<&Basis>, ticks: u128) -> Option<[u128; 2]> {
    let Some(Basis::Calibrated { interval_per_mille: Some(parts), .. }) = basis else {
        return None;
    };
    Some(parts.map(|per_mille| ticks.saturating_mul(per_mille.into()) / 1000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_basis_says_on_how_many_runs_it_rests() {
        let calibrated = |interval_per_mille| {
            let stack = "nemo-2024".into();
            Some(Basis::Calibrated { stack, runs: 12, interval_per_mille })
        };
        for (basis, said, range) in [
            (None, "the data sheet: ideal, no runs", None),
            (Some(Basis::Assumed), "an assumed efficiency, no runs", None),
            (Some(Basis::TakenFrom("simt".into())), "an assumed efficiency (simt), no runs", None),
            (calibrated(None), "calibrated on 12 runs (nemo-2024)", None),
            (
                calibrated(Some([968, 1070])),
                "calibrated on 12 runs (nemo-2024)",
                Some([1936, 2140]),
            ),
        ] {
            assert_eq!(words(basis.as_ref()), said);
            assert_eq!(interval(basis.as_ref(), 2000), range);
        }
    }
}
