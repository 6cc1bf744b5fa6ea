//! The answer over a whole grid of chips from the shards of its parts.
//!
//! The boxes of all shards are joined: those of each must tile its part, and no box may rest on anything but what
//! some shard keeps, which is evaluated again. What no shard was asked for is searched here.

use std::collections::BTreeMap;

use super::RoundName;
use super::chips::BEGIN;
use super::chips::BOX;
use super::chips::ChipPartEnd;
use super::chips::odd;
use super::chips::read_box;
use super::chips::told;
use super::file::ShardFile;
use super::file::Shards;
use super::merge::Facts;
use crate::ask::Refusal;
use crate::ask::chips::SearchedChips;
use crate::ask::chips::believed;
use crate::ask::chips::concluded;
use crate::ask::chips::evaluator;
use crate::ask::search::Watcher;
use crate::certify::boxes::tile;
use crate::hardware::chip::N_CHIP_KNOBS;
use crate::input::request::chip_setup_of;
use crate::search::Request;
use crate::search::boxes::BoxProblem;
use crate::search::boxes::Corner;
use crate::search::boxes::Evaluation;
use crate::search::boxes::Why;
use crate::search::boxes::trimmed;
use crate::search::chips::Aim;
use crate::search::chips::ByObjective;
use crate::search::chips::ChipEvaluator;
use crate::search::chips::ChipRegion;
use crate::search::chips::ChipSetup;
use crate::search::chips::ChipWalk;
use crate::search::chips::ClosedChips;
use crate::search::chips::JoinedChips;
use crate::search::chips::KeptChip;
use crate::search::chips::NearFigure;
use crate::search::chips::Nearly;
use crate::search::chips::alone_judge;
use crate::search::chips::conclude;
use crate::search::chips::judge_of;
use crate::search::chips::nearly_as_good;
use crate::store::files;
use crate::store::results;
use crate::store::results::Shelf;
use crate::strategy::Chosen;

/// Joins all shards of a search over chips and writes the files of the result; `None` where the user ended it
/// before its end.
///
/// # Errors
/// Which shards are missing, damaged or do not belong together, or that nothing can be written.
pub fn merge(
    shards: &Shards,
    shelf: &Shelf,
    watcher: &dyn Watcher,
) -> Result<Option<SearchedChips>, Refusal> {
    let request: Request<crate::hardware::chip::ChipSpace> = shards.request()?;
    let several = request.models.len() > 1;
    if several {
        shards.are_whole(RoundName::Alone)?;
    }
    shards.are_whole(RoundName::Together)?;
    let has_near = shards.found.iter().any(|shard| shard.header.round == RoundName::Near);
    if has_near {
        shards.are_whole(RoundName::Near)?;
    }
    let setup = chip_setup_of(request, &files::name(&shards.found[0].place))?;
    let _alone = shelf.held(&setup.request)?;
    let joined = Joined::read(shards, &setup)?;
    let evaluator = evaluator(&setup, &joined.facts)?;
    let mut proved =
        Proved { shards, joined: joined.walks, ends: &joined.ends, evaluator: &evaluator };
    let (alone, walk) = proved.best_of_all()?;
    let near = if has_near { Some(proved.nearly(&alone, &walk)?) } else { None };
    let mut survey = conclude(&evaluator, (alone, walk), near, watcher);
    if !survey.complete {
        return Ok(None);
    }
    believed(&evaluator, &survey, "shards")?;
    survey.evaluated += joined.ends.iter().map(|end| end.evaluated).sum::<usize>();
    let found = concluded(&evaluator, &survey, watcher)?;
    if found.interrupted {
        return Ok(None);
    }
    // What is written holds all that is told: of millions of boxes one copy is enough.
    drop((survey, evaluator));
    results::write_chips(shelf.directory, &found.json(), found.boxes.as_bytes())?;
    Ok(Some(found))
}

/// What all shards hold.
struct Joined {
    facts: Facts,
    walks: BTreeMap<Aim, JoinedChips>,
    /// By shard.
    ends: Vec<ChipPartEnd>,
}

impl Joined {
    /// Reads shard after shard; what is held are facts and boxes, not files.
    fn read(shards: &Shards, setup: &ChipSetup) -> Result<Self, Refusal> {
        let mut all = Self { facts: Facts::default(), walks: BTreeMap::new(), ends: Vec::new() };
        for (number, shard) in shards.found.iter().enumerate() {
            let mut boxes: BTreeMap<Aim, Vec<ClosedChips>> = BTreeMap::new();
            let mut is_odd = false;
            let end: ChipPartEnd = shard.read(&mut |key, rest| match key {
                BEGIN => boxes.clear(),
                BOX => match read_box(rest) {
                    Some((aim, closed)) => boxes.entry(aim).or_default().push(closed),
                    None => is_odd = true,
                },
                _ => all.facts.learn(key, rest),
            })?;
            let aims: Vec<Aim> = end.walks.iter().map(|walk| walk.aim).collect();
            if is_odd || !boxes.keys().all(|aim| aims.contains(aim)) {
                return Err(odd(shard, "one of its boxes is none"));
            }
            let nothing = shard.header.round == RoundName::Near && end.best.is_none();
            if aims != if nothing { Vec::new() } else { aims_of(shard.header.round, setup) } {
                return Err(odd(shard, "its walks are not those of its round"));
            }
            let part = shard.part.boxes(&setup.grid);
            let volume: u128 = part.iter().map(ChipRegion::volume).sum();
            if end.chips != volume {
                let what = format!("it tells of {} chips where its part holds {volume}", end.chips);
                return Err(odd(shard, &what));
            }
            for walk in &end.walks {
                let own = boxes.remove(&walk.aim).unwrap_or_default();
                if own.len() != walk.boxes {
                    let what = format!("it holds {} of {} boxes", own.len(), walk.boxes);
                    return Err(odd(shard, &what));
                }
                tiles(&part, &own).map_err(|what| odd(shard, &what))?;
                let (top, models) = size_of(walk.aim, setup);
                let kept = walk.kept.iter().cloned();
                let kept = kept.map(|kept| told(kept, setup, models, shard));
                let joined = all.walks.entry(walk.aim).or_default();
                joined.take_up(top, kept.collect::<Result<_, _>>()?, number);
                joined.closed.extend(own);
            }
            all.ends.push(end);
        }
        Ok(all)
    }
}

/// The walks of a round.
fn aims_of(round: RoundName, setup: &ChipSetup) -> Vec<Aim> {
    match round {
        RoundName::Alone => (0..setup.models.len()).map(Aim::Alone).collect(),
        RoundName::Together => vec![Aim::Together],
        RoundName::Near => NearFigure::ALL.map(Aim::Near).to_vec(),
    }
}

/// How many chips a walk keeps, and for how many models.
fn size_of(aim: Aim, setup: &ChipSetup) -> (usize, usize) {
    match aim {
        Aim::Alone(_) => (1, 1),
        Aim::Together => (setup.request.top.max(1), setup.models.len()),
        Aim::Near(_) => (1, setup.models.len()),
    }
}

/// Whether boxes tile those of a part.
fn tiles(part: &[ChipRegion], boxes: &[ClosedChips]) -> Result<(), String> {
    let mut inside = 0;
    for region in part {
        let own: Vec<ChipRegion> = boxes
            .iter()
            .map(|closed| closed.region)
            .filter(|one| region.contains(&one.lo) && region.contains(&one.hi))
            .collect();
        inside += own.len();
        tile(*region, &own).map_err(|_| "its boxes do not tile its part".to_owned())?;
    }
    if inside == boxes.len() { Ok(()) } else { Err("some of its boxes are of no part".into()) }
}

/// Walks that are being proved to be those of the whole grid.
struct Proved<'a> {
    shards: &'a Shards,
    joined: BTreeMap<Aim, JoinedChips>,
    ends: &'a [ChipPartEnd],
    evaluator: &'a ChipEvaluator<'a>,
}

impl Proved<'_> {
    /// The walks of each model alone, where there are several, and of all together.
    fn best_of_all(&mut self) -> Result<(Vec<ChipWalk>, ChipWalk), Refusal> {
        let (setup, evaluator) = (self.evaluator.setup, self.evaluator);
        let models: Vec<usize> = (0..setup.models.len()).collect();
        let mut alone = Vec::new();
        if models.len() > 1 {
            for &model in &models {
                let judge = alone_judge(setup, model);
                let problem = ByObjective { evaluator, models: vec![model], judge: &judge };
                alone.push(self.proved(Aim::Alone(model), &problem)?);
            }
        }
        let own = own_bests(&alone);
        let values: Vec<Option<u128>> =
            own.iter().map(|own| own.as_ref().map(|kept| kept.value.first)).collect();
        let judge = judge_of(setup, &own);
        for (shard, end) in self.shards.found.iter().zip(self.ends) {
            if shard.header.round != RoundName::Alone && end.own != values {
                return Err(odd(shard, "it rests on other bests of models alone"));
            }
        }
        let problem = ByObjective { evaluator, models, judge: &judge };
        let walk = self.proved(Aim::Together, &problem)?;
        Ok((alone, walk))
    }

    /// The walks for chips nearly as good.
    fn nearly(
        &mut self,
        alone: &[ChipWalk],
        walk: &ChipWalk,
    ) -> Result<Vec<(NearFigure, ChipWalk)>, Refusal> {
        let (setup, evaluator) = (self.evaluator.setup, self.evaluator);
        let best = walk.kept.first();
        for (shard, end) in self.shards.found.iter().zip(self.ends) {
            let is_near = shard.header.round == RoundName::Near;
            if is_near && end.best != best.map(|kept| kept.value.first) {
                return Err(odd(shard, "it rests on another best chip than all shards know"));
            }
        }
        let Some(best) = best else { return Ok(Vec::new()) };
        let judge = judge_of(setup, &own_bests(alone));
        let models = (0..setup.models.len()).collect();
        let objective = ByObjective { evaluator, models, judge: &judge };
        let limit = nearly_as_good(best.value.first);
        let each = NearFigure::ALL.into_iter().map(|figure| {
            let near = Nearly { objective: &objective, limit, figure };
            Ok((figure, self.proved(Aim::Near(figure), &near)?))
        });
        each.collect()
    }

    /// The joined walk with an aim: what is kept is found again, and every box proves it.
    fn proved<P: BoxProblem<N_CHIP_KNOBS, Found = Vec<Chosen>>>(
        &mut self,
        aim: Aim,
        problem: &P,
    ) -> Result<ChipWalk, Refusal> {
        let joined = self.joined.remove(&aim).unwrap_or_default();
        for (kept, from) in joined.kept.values() {
            let found = problem.fits(&kept.point).then(|| problem.evaluate(&kept.point, None));
            let is_found = matches!(
                found,
                Some(Evaluation::Found(value, ref found)) if value == kept.value && *found == kept.found
            );
            if !is_found {
                let what = format!(
                    "what it says of the chip {} is not what is found (or it heard so through --share)",
                    kept.point.map(|place| place.to_string()).join(".")
                );
                return Err(odd(&self.shards.found[*from], &what));
            }
        }
        if let Some(closed) = joined.closed.iter().find(|closed| !holds(problem, closed)) {
            return Err(odd(
                self.shard_of(closed),
                "one of its boxes is not closed by what it says",
            ));
        }
        // What rests on corners is believed as facts are: some are found again.
        let nothing: Vec<&ClosedChips> =
            joined.closed.iter().filter(|closed| closed.why == Why::CornerNothing).collect();
        let sample = nothing.iter().step_by(nothing.len().div_ceil(SAMPLE).max(1));
        for closed in sample {
            let inner = trimmed(problem, &closed.region);
            if inner.is_some_and(|inner| problem.corner(&[inner], None) != Corner::Nothing) {
                return Err(odd(
                    self.shard_of(closed),
                    "it says that nothing fits where something may",
                ));
            }
        }
        let (top, _) = size_of(aim, self.evaluator.setup);
        if let Some(closed) = joined.unproved(top) {
            let what = "one of its boxes rests on a better chip than any shard keeps";
            return Err(odd(self.shard_of(closed), what));
        }
        Ok(joined.into_walk(top))
    }

    /// The shard that closed a box.
    fn shard_of(&self, closed: &ClosedChips) -> &ShardFile {
        let grid = &self.evaluator.setup.grid;
        let holds = |shard: &&ShardFile| {
            shard.part.boxes(grid).iter().any(|region| region.contains(&closed.region.lo))
        };
        self.shards.found.iter().find(holds).unwrap_or(&self.shards.found[0])
    }
}

/// Boxes in which nothing is said to fit that are looked at again.
const SAMPLE: usize = 16;

/// Whether a box is closed by what it says, as far as no chip need be evaluated for it.
fn holds<P: BoxProblem<N_CHIP_KNOBS>>(problem: &P, closed: &ClosedChips) -> bool {
    let inner = || trimmed(problem, &closed.region);
    match closed.why {
        Why::OverBudget => inner().is_none(),
        Why::NothingFits => inner().is_none_or(|inner| problem.bound(&inner).is_none()),
        Why::Bound(value) => {
            let bound = inner().and_then(|inner| problem.bound(&inner));
            bound.is_none_or(|bound| bound >= value)
        }
        Why::Corner(_) | Why::CornerNothing | Why::Evaluated(_) | Why::Beaten(_) | Why::Nothing => {
            true
        }
    }
}

/// The best of each model alone.
fn own_bests(alone: &[ChipWalk]) -> Vec<Option<KeptChip>> {
    alone.iter().map(|walk| walk.kept.first().cloned()).collect()
}
