//! A whole search over chips, and whether its saved answer holds.

use std::io;
use std::io::Write;

use super::Refusal;
use super::check::Answer;
use super::search::Watcher;
use crate::certify::boxes;
use crate::certify::boxes::VerifiedChips;
use crate::certify::deep::Unsolved;
use crate::compare;
use crate::compare::STOPPED;
use crate::input::request::chip_setup_of;
use crate::input::request::chips_judged_by;
use crate::input::request::real_parts;
use crate::input::saved;
use crate::report;
use crate::report::chip_page;
use crate::report::chip_page::SavedChips;
use crate::report::chip_page::ShownBoxes;
use crate::search;
use crate::search::Memory;
use crate::search::Observer;
use crate::search::chips::ByObjective;
use crate::search::chips::ChipBaseline;
use crate::search::chips::ChipEvaluator;
use crate::search::chips::ChipOutcome;
use crate::search::chips::ChipSetup;
use crate::search::chips::ChipSurvey;
use crate::search::chips::Ended;
use crate::search::chips::Unturned;

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

/// How many bytes were written.
struct Counted(usize);

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
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
    let evaluator = evaluator(setup, memory)?;
    let survey = search::chips::survey(&evaluator, watcher);
    if recalls {
        believed(&evaluator, &survey, kept)?;
    }
    concluded(&evaluator, &survey, watcher)
}

/// Who evaluates the chips of a request.
///
/// # Errors
/// That a model cannot be trained so.
pub fn evaluator<'a>(
    setup: &'a ChipSetup,
    memory: &'a dyn Memory,
) -> Result<ChipEvaluator<'a>, Refusal> {
    ChipEvaluator::new(setup, memory)
        .map_err(|(model, reason)| Refusal::Options(format!("{model}: {reason}")))
}

/// Whether what was recalled from the place `kept` is found again.
///
/// # Errors
/// The chip of which it is not.
pub fn believed(evaluator: &ChipEvaluator, survey: &ChipSurvey, kept: &str) -> Result<(), Refusal> {
    evaluator.is_believed(survey).map_err(|chip| disbelieved(kept, &chip))
}

/// The whole answer from what was surveyed: the best in full, and what it is compared with.
///
/// # Errors
/// That a part to compare with is not known, or that what was recalled is not what is found.
pub fn concluded(
    evaluator: &ChipEvaluator,
    survey: &ChipSurvey,
    watcher: &dyn Watcher,
) -> Result<SearchedChips, Refusal> {
    let setup = evaluator.setup;
    let [time_limit, user] = search::sentences::STOPPED_BY;
    let reason = || if watcher.interrupted() { user } else { time_limit };
    let stopped_by = (!survey.complete).then(reason);
    let mut outcome = compare::chip_outcome(evaluator, survey, stopped_by);
    let (mut why, mut front) = (None, None);
    if survey.complete {
        let parts = real_parts(setup, "request")?;
        let found = (evaluator, survey);
        outcome = compare::chips::with_baselines(outcome, found, &parts, watcher);
        let asked = setup.request.why.then_some(());
        why = asked.and_then(|()| search::chips::survey_why(evaluator, survey, watcher));
        outcome.why = why.as_ref().and_then(|why| compare::chips::why_it_wins(found, why));
        why = why.filter(|why| why.complete);
        let asked = setup.request.pareto && outcome.winner.is_some();
        front = asked.then(|| search::chips::survey_front(evaluator, survey, watcher));
        outcome.front = front.as_ref().and_then(|one| compare::chips::told_front(found, one));
        front = front.filter(|front| front.complete);
        let unfronted = asked && front.is_none();
        let samples = setup.request.spotlight.filter(|_| outcome.winner.is_some());
        let problem = problem_of(evaluator, survey);
        let drawn =
            samples.map(|n| search::chips::best_of_samples(&problem, n, watcher).map(|p| (n, p)));
        let (drawn, undrawn) = told(drawn);
        outcome.spotlight = drawn.map(|(n, best)| compare::chips::spotlight(found, n, best));
        let winner = survey.walk.kept.first().filter(|_| setup.request.robust);
        let turned = winner.map(|winner| {
            let judged = (&survey.judge, winner);
            let found = search::chips::survey_robust(evaluator, judged, watcher);
            let told = |found: Vec<_>| {
                compare::chips::under_assumptions((&survey.judge, winner.point), &found)
            };
            match found {
                Ok(found) => Ok(Ok(told(found))),
                Err(Unturned::Ended) => Ok(Err(Ended)),
                Err(Unturned::Disbelieved(chip)) => Err(disbelieved("the journal", &chip)),
            }
        });
        let turned = turned.transpose()?;
        let (turned, unturned) = told(turned);
        outcome.robust = turned;
        let left_out = |one: &ChipBaseline| one.reason.as_deref() == Some(STOPPED);
        let untold = setup.request.why && outcome.winner.is_some() && why.is_none();
        let stopped =
            untold || unfronted || undrawn || unturned || outcome.baselines.iter().any(left_out);
        outcome.comparisons_stopped_by = stopped.then(|| reason().to_owned());
    }
    watcher.finish();
    let ended = stopped_by.is_some() || outcome.comparisons_stopped_by.is_some();
    let interrupted = watcher.interrupted() && ended;
    let write = |out: &mut dyn Write| {
        report::boxes_csv::write(setup, survey, out)?;
        why.iter().try_for_each(|why| report::boxes_csv::write_why(setup, why, out))?;
        front.iter().try_for_each(|front| report::boxes_csv::write_front(setup, front, out))
    };
    // Of millions of boxes a text that grows would take twice its length.
    let mut counted = Counted(0);
    write(&mut counted).expect("it is only counted");
    let mut boxes = Vec::with_capacity(counted.0);
    write(&mut boxes).expect("memory takes what is written");
    let boxes = String::from_utf8(boxes).expect("a table is text");
    Ok(SearchedChips { outcome, boxes, interrupted })
}

fn disbelieved(kept: &str, chip: &str) -> Refusal {
    Refusal::Options(format!(
        "{kept}: what it says of the chip {chip} is not what is found; search with --force to begin anew"
    ))
}

/// All models of a request on its chips, compared as they were.
fn problem_of<'a>(evaluator: &'a ChipEvaluator<'a>, survey: &'a ChipSurvey) -> ByObjective<'a> {
    let models = (0..evaluator.setup.models.len()).collect();
    ByObjective { evaluator, models, judge: &survey.judge }
}

/// What was found of what was asked for, and whether that was ended early.
fn told<T>(asked: Option<Result<T, Ended>>) -> (Option<T>, bool) {
    match asked {
        None => (None, false),
        Some(Ok(found)) => (Some(found), false),
        Some(Err(Ended)) => (None, true),
    }
}

impl SearchedChips {
    /// The content of `outcome.json`.
    pub fn json(&self) -> Vec<u8> {
        let mut json = serde_json::to_vec(&self.outcome).expect("an outcome has only string keys");
        json.push(b'\n');
        json
    }
}

/// The page of a saved answer that goes by `name`, from the texts of its files.
///
/// # Errors
/// That the files do not hold an answer over chips.
pub fn page(name: &str, outcome: &str, boxes: &str) -> Result<Vec<u8>, Refusal> {
    let (setup, outcome, cells) = read_back(name, outcome, boxes)?;
    let name = name.to_owned();
    let saved = SavedChips { name, setup: &setup, outcome: &outcome, boxes: &cells };
    let mut page = Vec::new();
    chip_page::write(&saved, &mut page).expect("memory takes what is written");
    Ok(page)
}

/// The page that sets two saved answers side by side, each a name with the texts of its files.
///
/// # Errors
/// That the files do not hold answers over chips.
pub fn comparison(
    (first, one): (&str, &(String, String)),
    (second, other): (&str, &(String, String)),
) -> Result<Vec<u8>, Refusal> {
    let one = read_back(first, &one.0, &one.1)?;
    let other = read_back(second, &other.0, &other.1)?;
    let [one, other] = [(first, &one), (second, &other)].map(|(name, (setup, outcome, boxes))| {
        SavedChips { name: name.to_owned(), setup, outcome, boxes }
    });
    let mut page = Vec::new();
    chip_page::write_comparison(&one, &other, &mut page).expect("memory takes what is written");
    Ok(page)
}

/// An answer with its question, from the texts of its files.
fn read_back(
    name: &str,
    outcome: &str,
    boxes: &str,
) -> Result<(ChipSetup, ChipOutcome, ShownBoxes), Refusal> {
    let (file, table) = (format!("{name}/outcome.json"), format!("{name}/boxes.csv"));
    let Answer::Chips(outcome) = super::check::read(&file, outcome)? else {
        return Err(Refusal::Options(format!("{file}: is no answer over chips")));
    };
    let setup = chip_setup_of(outcome.request.clone(), &file)?;
    let mut shown = ShownBoxes::default();
    saved::each_row(&table, boxes, |row| shown.take_up(row))?;
    Ok((setup, *outcome, shown))
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
