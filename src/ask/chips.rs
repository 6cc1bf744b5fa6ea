//! A whole search over chips, and whether its saved answer holds.

use super::Refusal;
use super::search::Watcher;
use crate::certify::boxes;
use crate::certify::boxes::VerifiedChips;
use crate::certify::deep::Unsolved;
use crate::compare;
use crate::compare::STOPPED;
use crate::input::request::chips_judged_by;
use crate::input::request::real_parts;
use crate::input::saved;
use crate::report;
use crate::search;
use crate::search::Memory;
use crate::search::Observer;
use crate::search::chips::ChipEvaluator;
use crate::search::chips::ChipOutcome;
use crate::search::chips::ChipSetup;

/// What a search over chips ended with: what `outcome.json` and `boxes.csv` hold.
#[derive(Clone, Debug)]
pub struct SearchedChips {
    /// The winner, what binds it, chips nearly as good, and the proof.
    pub outcome: ChipOutcome,
    /// Every closed box, one row each.
    pub boxes: String,
    /// Whether the user ended it before its end.
    pub interrupted: bool,
}

/// Searches; `memory` may recall what was known before, which is found again where something is told
/// of it, and here and there. `kept` names the place of the memory.
///
/// # Errors
/// That a model cannot be trained so, or that what was recalled is not what is found.
pub fn answer(
    setup: &ChipSetup,
    (memory, recalls, kept): (&dyn Memory, bool, &str),
    watcher: &dyn Watcher,
) -> Result<SearchedChips, Refusal> {
    let evaluator = ChipEvaluator::new(setup, memory)
        .map_err(|(model, reason)| Refusal::Options(format!("{model}: {reason}")))?;
    let survey = search::chips::survey(&evaluator, watcher);
    if recalls {
        evaluator.is_believed(&survey).map_err(|chip| {
            Refusal::Options(format!(
                "{kept}: what it says of the chip {chip} is not what is found; search with --force to \
                 begin anew"
            ))
        })?;
    }
    let [time_limit, user] = search::sentences::STOPPED_BY;
    let reason = || if watcher.interrupted() { user } else { time_limit };
    let stopped_by = (!survey.complete).then(reason);
    let mut outcome = compare::chip_outcome(&evaluator, &survey, stopped_by);
    if survey.complete {
        let parts = real_parts(setup, "request")?;
        let found = (&evaluator, &survey);
        outcome = compare::chips::with_baselines(outcome, found, &parts, watcher);
        let stopped = outcome.baselines.iter().any(|one| one.reason.as_deref() == Some(STOPPED));
        outcome.comparisons_stopped_by = stopped.then(|| reason().to_owned());
    }
    watcher.finish();
    let ended = stopped_by.is_some() || outcome.comparisons_stopped_by.is_some();
    let interrupted = watcher.interrupted() && ended;
    let mut boxes = Vec::new();
    report::boxes_csv::write(setup, &survey, &mut boxes).expect("memory takes what is written");
    let boxes = String::from_utf8(boxes).expect("a table is text");
    Ok(SearchedChips { outcome, boxes, interrupted })
}

impl SearchedChips {
    /// The content of `outcome.json`.
    pub fn json(&self) -> Vec<u8> {
        let mut json = serde_json::to_vec(&self.outcome).expect("an outcome has only string keys");
        json.push(b'\n');
        json
    }
}

/// What became of a check.
#[derive(Clone, Debug)]
pub enum ChipVerdict {
    /// Everything holds; so much was verified, and so many boxes were solved again.
    Holds(VerifiedChips, usize),
    /// The first claim that is false.
    False(String),
    /// Somebody ended the check.
    Stopped,
}

/// Judges the outcome of a search over chips with the text of its `boxes.csv`; where somebody looks on
/// `deeply`, the solvers evaluate every corner and point of the certificate once more.
///
/// # Errors
/// That the request makes no sense.
pub fn check(
    (name, outcome): (&str, &ChipOutcome),
    (boxes_name, boxes): (&str, &str),
    deeply: Option<&dyn Observer>,
) -> Result<ChipVerdict, Refusal> {
    let question = chips_judged_by(outcome.request.clone(), name)?;
    let cells = saved::cells(boxes_name, boxes)?;
    let judged = match boxes::check(&question, outcome, &cells) {
        Ok(judged) => judged,
        Err(lie) => return Ok(ChipVerdict::False(lie.to_string())),
    };
    let Some(observer) = deeply else { return Ok(ChipVerdict::Holds(judged.verified, 0)) };
    match boxes::deep::solve(&question, outcome, &judged, observer) {
        Ok(again) => Ok(ChipVerdict::Holds(judged.verified, again)),
        Err(Unsolved::False(lie)) => Ok(ChipVerdict::False(lie.to_string())),
        Err(Unsolved::Stopped) => Ok(ChipVerdict::Stopped),
        Err(Unsolved::Senseless(reason)) => Err(Refusal::Options(format!("{name}: {reason}"))),
    }
}
