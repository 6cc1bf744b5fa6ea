//! What only a solver can refute: that what was evaluated is the best way to train, that nothing
//! fits where a cap of power decides, each model's own best, baselines, sensitivities, and why no
//! schedule is faster.
//!
//! Every evaluated pair is evaluated once more, and the answer is told again from that. This is
//! the one file of the room that may use what makes answers.

use rayon::prelude::*;

use crate::compare;
use crate::model::Model;
use crate::report::designs_csv;
use crate::search;
use crate::search::Certainty;
use crate::search::Evaluator;
use crate::search::Judge;
use crate::search::Observer;
use crate::search::Outcome;
use crate::search::Setup;
use crate::search::Survey;
use crate::search::Walk;
use crate::strategy::Chosen;
use crate::strategy::Standing;

use super::bound::Bounds;
use super::boxes;
use super::cells::Cells;
use super::claims::FalseClaim;
use super::claims::SAME;
use super::claims::Verdict;
use super::claims::close;
use super::claims::equal;
use super::claims::require;
use super::claims::same;
use super::outcome::Judged;
use super::rebuild::Question;
use super::table::BOUND;
use super::table::Row;
use super::table::Status;

/// Why no verdict of the solvers was reached.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unsolved {
    /// A claim does not hold.
    #[error(transparent)]
    False(#[from] FalseClaim),
    /// The observer wanted an end.
    #[error("stopped before all was evaluated again")]
    Stopped,
    /// The request cannot be searched.
    #[error("{0}")]
    Senseless(String),
}

/// The answer as the solvers tell it.
pub struct Solved {
    /// What outcome.json should say; its proof is judged without solvers.
    outcome: Outcome,
    /// What designs.csv should say, the heading first.
    cells: Vec<Vec<String>>,
    /// How many pairs were evaluated.
    pub evaluated: usize,
}

/// Evaluates again what `judged` holds and tells the answer from it; `read` turns the text of a
/// designs.csv into cells.
pub fn solve(
    question: &Question,
    models: Vec<Model>,
    outcome: &Outcome,
    judged: &Judged,
    observer: &dyn Observer,
    read: impl Fn(&str) -> Vec<Vec<String>>,
) -> Result<Solved, Unsolved> {
    let setup = Setup::new(question.request.clone(), models, question.physics.clone())
        .map_err(|reason| Unsolved::Senseless(reason.to_string()))?;
    let setup = if question.request.lists_all() {
        setup
    } else {
        setup.listing(question.candidates.clone())
    };
    let evaluator = Evaluator::new(&setup);
    let again = Again { question, evaluator: &evaluator, judged, observer };
    let mut walks = Vec::new();
    let mut evaluated = 0;
    for hbm in 0..question.n_sizes() {
        let walk = again.walk(hbm)?;
        evaluated += walk.evaluated().count();
        walks.push(walk);
    }
    let (points, of_boxes) =
        boxes::designs::deep::solve(question, &evaluator, &judged.boxes, observer)?;
    evaluated += points;
    let stopped_by = outcome.proof.stopped_by.as_deref();
    let own_best = match outcome.models.as_slice() {
        [_] => vec![search::best_of(&walks).map(|(_, chosen)| chosen[0].standing)],
        // A stopped search proves nothing of each model's own best: it is taken as told.
        several if stopped_by.is_some() => vec![None; several.len()],
        _ if question.request.lists_all() => again.own_bests(outcome)?,
        _ => of_boxes,
    };
    let complete = stopped_by.is_none();
    let survey =
        Survey { judge: judged.judge.clone(), walks, own_best, complete, unlisted: Vec::new() };
    let mut found = compare::outcome(&setup, &survey, &question.references, stopped_by, observer);
    found.phaze.clone_from(&outcome.phaze);
    found.proof = outcome.proof.clone();
    if stopped_by.is_some() {
        found.models.clone_from(&outcome.models);
        // What a stopped search did not come to is left out, and says so.
        for (found, said) in found.baselines.iter_mut().zip(&outcome.baselines) {
            if said.reason.as_deref() == Some(compare::STOPPED) {
                found.clone_from(said);
            }
        }
        if outcome.sensitivities.is_empty() {
            found.sensitivities.clear();
        }
    }
    let mut text = Vec::new();
    let written = designs_csv::write(&setup, &survey, &mut text).map(|()| String::from_utf8(text));
    let Ok(Ok(text)) = written else {
        return Err(Unsolved::Senseless("the table cannot be written".into()));
    };
    Ok(Solved { outcome: found, cells: read(&text), evaluated })
}

impl Solved {
    /// Compares every claim with what the solvers tell.
    pub fn compare(&self, outcome: &Outcome, cells: &[Vec<String>]) -> Verdict {
        let names = self.cells.first().map_or(&[][..], Vec::as_slice);
        for (at, (said, is)) in cells.iter().zip(&self.cells).enumerate().skip(1) {
            let said = Cells { design: at - 1, names, texts: said };
            for (column, found) in is.iter().enumerate() {
                let part = if names[column].starts_with("bound_") { BOUND } else { SAME };
                let claimed = said.text(column);
                let number = |text: &str| text.parse::<f64>().ok();
                let agree = claimed == found
                    || number(claimed).zip(number(found)).is_some_and(|(a, b)| close(a, b, part));
                if !agree {
                    return Err(said.wrong(column, found));
                }
            }
        }
        equal("", outcome, &self.outcome)
    }
}

/// Evaluates once more.
struct Again<'a> {
    question: &'a Question,
    evaluator: &'a Evaluator<'a>,
    judged: &'a Judged,
    observer: &'a dyn Observer,
}

impl Again<'_> {
    /// All pairs with one size of memory, those that are said to be known evaluated again.
    fn walk(&self, hbm: usize) -> Result<Walk<Vec<Chosen>>, Unsolved> {
        let rows = &self.judged.rows;
        let gib = self.question.request.space.hbm_gib[hbm];
        let what = format!("evaluating again with {gib} GiB");
        self.observer.begins(&what);
        let statuses: Vec<Result<search::Status<Vec<Chosen>>, Unsolved>> = rows
            .par_iter()
            .enumerate()
            .map(|(design, row)| {
                let pair = &row.pairs[hbm];
                match pair.status {
                    Status::Pruned => return Ok(search::Status::Pruned),
                    Status::Open => return Ok(search::Status::Open),
                    Status::Infeasible if pair.bound.is_none() => {
                        return Ok(search::Status::Infeasible);
                    }
                    Status::Infeasible | Status::Evaluated | Status::Beaten => {}
                }
                if self.observer.stops() {
                    return Err(Unsolved::Stopped);
                }
                let found = self.pair(design, hbm);
                self.observer.evaluated(&what, rows.len() - design);
                Ok(self.status(design, hbm, row, found)?)
            })
            .collect();
        let bounds = rows.iter().map(|row| row.pairs[hbm].bound.map(|(_, merit)| merit)).collect();
        let statuses = statuses.into_iter().collect::<Result<Vec<_>, _>>()?;
        Ok(Walk { bounds, statuses, complete: true })
    }

    /// The best way to train each model; `None` where one does not fit or draws too much.
    fn pair(&self, design: usize, hbm: usize) -> Option<Vec<Chosen>> {
        (0..self.question.models.len()).map(|model| self.best(model, design, hbm)).collect()
    }

    fn best(&self, model: usize, design: usize, hbm: usize) -> Option<Chosen> {
        self.evaluator.best(model, design, hbm).map(|best| best.chosen)
    }

    /// What a pair was found to be is what is said of it.
    fn status(
        &self,
        design: usize,
        hbm: usize,
        row: &Row,
        found: Option<Vec<Chosen>>,
    ) -> Result<search::Status<Vec<Chosen>>, FalseClaim> {
        let gib = self.question.request.space.hbm_gib[hbm];
        let claim = |what: &str| format!("designs.csv: {what}_hbm{gib} of design {design}");
        let said = row.pairs[hbm].found.as_ref();
        if row.pairs[hbm].status == Status::Beaten {
            return self.beaten(claim("status"), (design, hbm), found);
        }
        let Some(chosen) = found else {
            require(said.is_none(), claim("status"), "evaluated", "infeasible")?;
            return Ok(search::Status::Infeasible);
        };
        let Some(said) = said else {
            return Err(FalseClaim::new(claim("status"), "infeasible", "evaluated"));
        };
        for (model, chosen) in chosen.iter().enumerate() {
            let (said, is) = (said.standings[model], chosen.standing);
            let (said_s, is_s) = (said.time.seconds(), is.time.seconds());
            require(said.time == is.time, claim("time_per_batch_s"), said_s, is_s)?;
            let (said_j, is_j) = (said.energy.joules(), is.energy.joules());
            require(said.energy == is.energy, claim("energy_per_batch_j"), said_j, is_j)?;
        }
        let standings: Vec<Standing> = chosen.iter().map(|chosen| chosen.standing).collect();
        let area = self.question.areas[design];
        let merit = self.judged.judge.merit(&standings, area, Certainty::Fact);
        Ok(search::Status::Evaluated(merit, chosen))
    }

    /// A pair that is said to be beaten is: what is kept is better by more than two percent.
    fn beaten(
        &self,
        claim: String,
        (design, hbm): (usize, usize),
        found: Option<Vec<Chosen>>,
    ) -> Result<search::Status<Vec<Chosen>>, FalseClaim> {
        let Some(chosen) = found else { return Ok(search::Status::Beaten) };
        let standings: Vec<Standing> = chosen.iter().map(|chosen| chosen.standing).collect();
        let area = self.question.areas[design];
        let value = self.judged.judge.merit(&standings, area, Certainty::Bound).value;
        let pairs = self.judged.rows.iter().map(|row| &row.pairs[hbm]);
        let mut kept: Vec<u128> =
            pairs.filter_map(|pair| Some(pair.found.as_ref()?.merit.value)).collect();
        kept.sort_unstable();
        let worst = kept.get(self.question.request.top.max(1) - 1);
        let is_beaten = worst
            .is_some_and(|worst| value > worst.saturating_add(worst / 100 * search::NEAR_PERCENT));
        require(is_beaten, claim, "beaten", "not so, or by less")?;
        Ok(search::Status::Beaten)
    }

    /// Each model's own best: no design whose bound is better than what is told is better in fact.
    fn own_bests(&self, outcome: &Outcome) -> Result<Vec<Option<Standing>>, Unsolved> {
        let bounds = Bounds::new(self.question);
        let models = outcome.models.iter().enumerate();
        models
            .map(|(model, facts)| {
                let told = facts.best_throughput_sequences_per_s.map(|_| facts.own_best_cost);
                let best = self.own_best(model, &bounds, told)?;
                let found = best.map_or(1.0, |(cost, _)| cost);
                let path = format!("models[{model}].own_best_cost");
                let agree = same(facts.own_best_cost, found);
                require(agree, path, facts.own_best_cost, found)?;
                Ok(best.map(|(_, standing)| standing))
            })
            .collect()
    }

    /// The least cost of a model alone, and its standing there, over all pairs whose bound is not
    /// worse than `told`.
    fn own_best(
        &self,
        model: usize,
        bounds: &Bounds,
        told: Option<f64>,
    ) -> Result<Option<(f64, Standing)>, Unsolved> {
        let question = self.question;
        let what = format!("the best of {} alone", question.models[model].name);
        self.observer.begins(&what);
        let n_designs = question.candidates.len();
        let pairs = (0..question.n_sizes() * n_designs).into_par_iter();
        let found: Vec<Result<Option<Own>, Unsolved>> = pairs
            .map(|at| {
                let (hbm, design) = (at / n_designs, at % n_designs);
                let area = question.areas[design];
                let cost = |standing| Judge::cost(self.judged.judge.objective, standing, area);
                let chip = question.chip(design, hbm);
                let Some(bound) = bounds.standing(model, &chip, hbm).map(cost) else {
                    return Ok(None);
                };
                if told.is_some_and(|told| bound > told * (1.0 + SAME)) {
                    return Ok(None);
                }
                if self.observer.stops() {
                    return Err(Unsolved::Stopped);
                }
                let chosen = self.best(model, design, hbm);
                self.observer.evaluated(&what, n_designs - design);
                let Some(chosen) = chosen else { return Ok(None) };
                let key = (area.0, hbm, chosen.devices, design);
                Ok(Some(Own { cost: cost(chosen.standing), key, standing: chosen.standing }))
            })
            .collect();
        let mut best: Option<Own> = None;
        for own in found {
            let Some(own) = own? else { continue };
            let better = best.as_ref().is_none_or(|known| {
                own.cost.total_cmp(&known.cost).then(own.key.cmp(&known.key)).is_lt()
            });
            if better {
                best = Some(own);
            }
        }
        Ok(best.map(|own| (own.cost, own.standing)))
    }
}

/// One model on one pair: what it costs, what decides among equals, and how it does.
struct Own {
    cost: f64,
    key: (u64, usize, u64, usize),
    standing: Standing,
}

#[cfg(test)]
mod tests {
    use super::super::operator::Place;
    use super::super::operator::price;
    use crate::estimate::EstimateTable;
    use crate::estimate::Limit;
    use crate::estimate::Options;
    use crate::estimate::VectorCosts;
    use crate::estimate::tensor_core::Scratch;
    use crate::estimate::tensor_core::best;
    use crate::hardware::Cluster;
    use crate::hardware::Efficiency;
    use crate::hardware::OffChipTime;
    use crate::hardware::Physics;
    use crate::hardware::Use;
    use crate::hardware::chip::ChipKnobs;
    use crate::hardware::chip::properties;
    use crate::hardware::chip::torus_of_links;
    use crate::model::families;
    use crate::model::op::Op;
    use crate::model::op::Traffic;
    use crate::model::op::Work;
    use crate::model::spec::examples;
    use crate::parallel::Setting;
    use crate::parallel::shard;
    use crate::units::Bytes;
    use crate::units::Time;

    /// A block in which nothing reaches its data sheet.
    const BLOCK: Efficiency = Efficiency {
        matmul: 700,
        attention: 450,
        grouped: 660,
        memory: 830,
        launch: Time(7),
        ..Efficiency::IDEAL
    };

    #[test]
    fn every_operator_has_the_price_of_its_estimate_by_either_rule_of_off_chip_time() {
        let network = torus_of_links(300, 8, Time(500_000));
        let cluster = Cluster { devices: 8, network };
        let (technology, table) =
            (properties::technology(), EstimateTable::new(Options::default()));
        let small = ChipKnobs { tensor_cores: 3, width: 16, depth: 32, ..properties::example() };
        let (mut limited, mut differ) = (0, 0);
        for efficiency in [Efficiency::IDEAL, BLOCK] {
            let physics = Physics { efficiency, ..properties::physics() };
            let exact = small.accelerator(&technology, &physics).unwrap();
            let chips = [exact.clone(), exact.counting(OffChipTime::WholeCycles)];
            for spec in examples::all() {
                let setting = Setting { sequence: 64, ..Setting::ALONE };
                let share = shard(&families::build(&spec), setting).unwrap();
                let passes = share.kinds.iter().flat_map(|kind| [&kind.forward, &kind.backward]);
                let own = [Op {
                    name: "own".into(),
                    work: Work::Opaque { flops: 12_345_678_901 },
                    traffic: Traffic { hbm_read: Bytes(4_321), ..Traffic::default() },
                }];
                for op in passes.flat_map(crate::graph::Dag::nodes).chain(&own) {
                    for cores in [Use::Alone, Use::Spread] {
                        let [exact, whole] = [0, 1].map(|at| {
                            let chip = &chips[at];
                            let mapping = match &op.work {
                                Work::Matmul { matmul, homes, numbers, .. } => {
                                    let spec = chip.tensor_in(*numbers, cores);
                                    let mut scratch = Scratch::default();
                                    best(matmul, *homes, &spec, 0, &mut scratch).map(|best| best.0)
                                }
                                _ => None,
                            };
                            let costs = VectorCosts::default();
                            let place = Place { chip, cluster: &cluster, costs };
                            let priced = price(op, place, cores, mapping.as_ref());
                            let estimate = table.estimate(op, chip, &cluster, cores);
                            assert_eq!(priced, estimate.ok(), "{}", op.name);
                            priced.unwrap()
                        });
                        assert!(exact.time <= whole.time, "{}", op.name);
                        limited += usize::from(exact.limit == Limit::Hbm);
                        differ += usize::from(exact.time < whole.time);
                    }
                }
            }
        }
        assert!(limited > 20 && differ > 20, "{limited} wait for memory, {differ} differ");
    }
}
