//! What the best chip of a space is compared with: same devices, batch and budget.

use crate::hardware::chip::N_CHIP_KNOBS;
use crate::hardware::chip::knob_place;
use crate::plan::StrategySpace;
use crate::search::Judge;
use crate::search::Observer;
use crate::search::boxes::walk;
use crate::search::chips::ByObjective;
use crate::search::chips::ChipBaseline;
use crate::search::chips::ChipEntry;
use crate::search::chips::ChipEvaluator;
use crate::search::chips::ChipPoint;
use crate::search::chips::ChipRegion;
use crate::search::chips::ChipSetup;
use crate::search::chips::PartEntry;
use crate::search::chips::trained_beside;
use crate::strategy::Standing;

use super::super::baselines::STOPPED;
use super::super::experts;
use super::operators::Given;
use super::operators::OperatorsAlone;
use super::operators::Stopped;
use super::parts::Beside;
use super::parts::RealPart;
use super::parts::Takes;
use super::parts::winner_is;

/// Why a baseline is missing whose plan fits nowhere.
pub const NO_PLAN: &str = "no placement fits";

/// The same where a cap of power rules plans out.
pub const NO_PLAN_WITHIN_CAP: &str = "no placement fits that keeps the cap of power";

/// Why a baseline is missing whose operators alone draw more than the cap on every chip.
pub const OPERATORS_OVER_CAP: &str =
    "operators alone draw more than the cap of power on every chip that is allowed";

/// Why a baseline is missing whose memory and links take more than the budget.
pub const NO_SUCH_CHIP: &str = "no chip within the budget has such memory and links";

/// Why there is no plan of experts for several models.
pub const SEVERAL_MODELS: &str = "experts choose a plan for one model: search each alone";

/// Why a part is missing that is not made for so many.
pub const NETWORK_ENDS: &str = "its network does not join so many devices";

/// Baselines that are chips of the space; parts come after them.
pub const N_OF_SPACE: usize = 3;

/// The place among them of the chip for the plan of experts.
const FOR_EXPERTS: usize = 2;

/// The memory and links of an H100: stacks, and GB/s per direction.
const H100_CLASS: (u64, u64) = (5, 450);

/// A winner, and all that it takes to compare with it.
pub struct Comparison<'a> {
    /// Evaluates chips.
    pub evaluator: &'a ChipEvaluator<'a>,
    /// Says what is better.
    pub judge: &'a Judge,
    /// Where the winner stands.
    pub winner: ChipPoint,
    /// How it trains each model.
    pub standings: Vec<Standing>,
}

/// What a baseline is called, and what it is.
pub fn described(at: usize, setup: &ChipSetup, parts: &[RealPart]) -> (String, String) {
    match at {
        0 => (
            "operators alone".into(),
            "the chip within the same budget whose operators, summed up, do best by the objective, \
             blind to distribution and so with the least links, and the best plan on it"
                .into(),
        ),
        1 => {
            let (stacks, links) = H100_CLASS;
            let Given { stacks: place, links: at_links } = given(setup);
            let value = |name: &str, place: u16| {
                let knob = knob_place(name).expect("a knob of chips");
                setup.grid.values(knob)[usize::from(place)]
            };
            let has = (value("stacks", place.unwrap_or(0)), value("links", at_links));
            (
                format!("operators alone, {} stacks, {} GB/s", has.0, has.1),
                format!(
                    "the same among chips with the memory and links of an H100 ({stacks} stacks, \
                     {links} GB/s), or the nearest values of the space"
                ),
            )
        }
        FOR_EXPERTS => match expert_degrees(setup) {
            Some(experts::Degrees { stages, data_parallel, tensor_parallel }) => (
                format!("plan of experts, {tensor_parallel} wide, {stages} stages"),
                format!(
                    "the chip within the same budget that is best for the plan that experts would \
                     take ({tensor_parallel} wide, {stages} stages, {data_parallel} replicas), and that \
                     plan on it"
                ),
            ),
            None => ("plan of experts".into(), "the chip that is best for experts' plans".into()),
        },
        _ => {
            let part = &parts[at - N_OF_SPACE];
            let summary = part.summary.trim_end_matches('.');
            let summary = if summary.is_empty() { &part.name } else { summary };
            (
                part.name.clone(),
                format!("{summary}; at its own area, power and cost, on its own network"),
            )
        }
    }
}

/// The degrees that experts would choose for the only model.
fn expert_degrees(setup: &ChipSetup) -> Option<experts::Degrees> {
    let ([asked], [model]) = (setup.request.models.as_slice(), setup.models.as_slice()) else {
        return None;
    };
    Some(experts::usual_strategy(&asked.name, model, setup.request.devices))
}

/// What is left to choose where experts have chosen; `None` where there are several models.
pub fn expert_space_of(setup: &ChipSetup) -> Option<StrategySpace> {
    Some(experts::space(expert_degrees(setup)?, &setup.request.strategies))
}

/// The memory and links of an H100, or the nearest of the space, the lesser of two.
pub fn given(setup: &ChipSetup) -> Given {
    let nearest = |name: &str, wanted: u64| {
        let values = setup.grid.values(knob_place(name).expect("a knob of chips"));
        let nearest = values.iter().enumerate().min_by_key(|(_, value)| value.abs_diff(wanted));
        nearest.and_then(|(place, _)| u16::try_from(place).ok()).unwrap_or(0)
    };
    let (stacks, links) = H100_CLASS;
    Given { stacks: Some(nearest("stacks", stacks)), links: nearest("links", links) }
}

/// The least chip of the space with such memory and links.
pub fn least_given(given: Given) -> ChipPoint {
    let mut least = [0; N_CHIP_KNOBS];
    let place = |name| knob_place(name).expect("a knob of chips");
    (least[place("stacks")], least[place("links")]) = (given.stacks.unwrap_or(0), given.links);
    least
}

/// Why no chip was found for operators alone.
fn no_chip(setup: &ChipSetup, given: Given) -> Missing {
    let grid = &setup.grid;
    let least = grid.chip(&least_given(given)).chip(&grid.technology);
    if setup.request.power_cap_w.is_some() && grid.budget.allows(&least, &grid.technology) {
        OPERATORS_OVER_CAP
    } else {
        NO_SUCH_CHIP
    }
}

/// Why no plan was found.
pub fn no_plan(setup: &ChipSetup) -> &'static str {
    if setup.request.power_cap_w.is_some() { NO_PLAN_WITHIN_CAP } else { NO_PLAN }
}

/// Why a baseline is missing.
type Missing = &'static str;

impl From<Stopped> for Missing {
    fn from(_: Stopped) -> Self {
        STOPPED
    }
}

impl Comparison<'_> {
    /// All baselines, those of the space first; what the observer stops is left out, with that as its
    /// reason.
    ///
    /// The chip for the plan of experts is a search of its own, and may take long: it is looked for when all others
    /// are known.
    pub fn baselines(&self, parts: &[RealPart], observer: &dyn Observer) -> Vec<ChipBaseline> {
        let setup = self.evaluator.setup;
        let others = (0..N_OF_SPACE + parts.len()).filter(|&at| at != FOR_EXPERTS);
        let mut found: Vec<(usize, ChipBaseline)> = others
            .chain([FOR_EXPERTS])
            .map(|at| {
                let (name, description) = described(at, setup, parts);
                let mut baseline = ChipBaseline {
                    name,
                    description,
                    entry: None,
                    part: None,
                    reason: None,
                    winner_is: None,
                };
                let found = match at.checked_sub(N_OF_SPACE) {
                    None => self.of_space(at, observer).map(|(entry, other)| {
                        baseline.entry = Some(entry);
                        other
                    }),
                    Some(at) => self.on_part(&parts[at], observer).map(|(entry, other)| {
                        baseline.part = Some(entry);
                        other
                    }),
                };
                match found {
                    Ok((standings, takes)) => {
                        let other = Beside { standings: &standings, takes };
                        baseline.winner_is = self.winner_is(&other);
                    }
                    Err(reason) => baseline.reason = Some(reason.to_owned()),
                }
                (at, baseline)
            })
            .collect();
        found.sort_unstable_by_key(|(at, _)| *at);
        found.into_iter().map(|(_, baseline)| baseline).collect()
    }

    /// How the winner stands beside another.
    fn winner_is(&self, other: &Beside) -> Option<crate::search::chips::WinnerIs> {
        let takes = Takes::of_chip(self.evaluator.setup, &self.winner)?;
        let winner = Beside { standings: &self.standings, takes };
        Some(winner_is(self.judge, &winner, other))
    }

    fn of_space(
        &self,
        at: usize,
        observer: &dyn Observer,
    ) -> Result<(ChipEntry, (Vec<Standing>, Takes)), Missing> {
        let setup = self.evaluator.setup;
        if at == FOR_EXPERTS {
            return self.for_experts(observer);
        }
        let given = if at == 0 { Given::NOTHING } else { given(setup) };
        let alone = OperatorsAlone::new(self.evaluator, self.judge);
        let (what, _) = described(at, setup, &[]);
        let point = alone.best(given, &what, observer)?;
        let point = point.ok_or_else(|| no_chip(setup, given))?;
        let no_plan = no_plan(setup);
        let (entry, standings) = super::entry(self.evaluator, self.judge, &point).ok_or(no_plan)?;
        Ok((entry, (standings, Takes::of_chip(setup, &point).ok_or(no_plan)?)))
    }

    /// The chip that is best for the plan of experts, with that plan.
    fn for_experts(
        &self,
        observer: &dyn Observer,
    ) -> Result<(ChipEntry, (Vec<Standing>, Takes)), Missing> {
        let mut setup = self.evaluator.setup.clone();
        setup.request.strategies = expert_space_of(&setup).ok_or(SEVERAL_MODELS)?;
        let no_plan = no_plan(&setup);
        let evaluator = ChipEvaluator::new(&setup, &()).map_err(|_| no_plan)?;
        let problem = ByObjective { evaluator: &evaluator, models: vec![0], judge: self.judge };
        let whole = ChipRegion::whole(setup.grid.lens());
        let (what, _) = described(FOR_EXPERTS, &setup, &[]);
        let walked = walk(&problem, whole, (1, Vec::new()), &what, observer);
        if !walked.complete() {
            return Err(STOPPED);
        }
        let point = walked.kept.first().ok_or(no_plan)?.point;
        let (entry, standings) = super::entry(&evaluator, self.judge, &point).ok_or(no_plan)?;
        Ok((entry, (standings, Takes::of_chip(&setup, &point).ok_or(no_plan)?)))
    }

    fn on_part(
        &self,
        part: &RealPart,
        observer: &dyn Observer,
    ) -> Result<(PartEntry, (Vec<Standing>, Takes)), Missing> {
        let setup = self.evaluator.setup;
        if observer.stops() {
            return Err(STOPPED);
        }
        let most = part.physics.network.most_devices();
        if most.is_some_and(|most| setup.request.devices > most) {
            return Err(NETWORK_ENDS);
        }
        observer.begins(&part.name);
        let on = (part.name.as_str(), &part.chip, &part.physics);
        let trained = trained_beside(setup, on, part.precision).ok_or(no_plan(setup))?;
        let (standings, results): (Vec<Standing>, Vec<_>) = trained.into_iter().unzip();
        let entry = PartEntry {
            part: part.facts.clone(),
            value: value_of(self.judge, &standings, &part.takes),
            results,
        };
        Ok((entry, (standings, part.takes)))
    }
}

/// The value of something by the objective, where what that asks for is known.
pub fn value_of(judge: &Judge, standings: &[Standing], takes: &Takes) -> Option<f64> {
    let taken = takes.footprint(judge.objective)?;
    let merit = judge.merit(standings, taken, crate::search::Certainty::Fact);
    Some(judge.figure(merit.value))
}
