//! From what was surveyed to what is answered: the winner in full, comparisons, and the proof.

use rayon::prelude::*;

use super::baselines::Compare;
use super::baselines::References;
use super::baselines::baselines;
use super::sensitivity::sensitivities;
use crate::placement::Obstacle;
use crate::placement::Problem;
use crate::placement::fits;
use crate::placement::obstacle;
use crate::plan::Recompute;
use crate::search::BestByHbm;
use crate::search::Entry;
use crate::search::Evaluator;
use crate::search::Listing;
use crate::search::ModelFacts;
use crate::search::Observer;
use crate::search::Outcome;
use crate::search::Proof;
use crate::search::ProofByHbm;
use crate::search::Setup;
use crate::search::Share;
use crate::search::Status;
use crate::search::Survey;
use crate::search::Unlisted;
use crate::search::entry::entry;
use crate::search::sentences::Hindrance;
use crate::search::sentences::Proved;
use crate::search::sentences::TOO_MUCH_POWER;
use crate::search::survey::best_place;
use crate::search::walk::Merit;
use crate::search::walk::Walk;
use crate::strategy::Best;
use crate::strategy::Chosen;
use crate::strategy::Planner;
use crate::strategy::Standing;
use crate::strategy::Terms;
use crate::strategy::shardings;
use crate::units::Bytes;

/// How many of the best designs are told in full, exact or not.
const TOLD: usize = 20;

/// The whole answer; `stopped_by` says what ended the search early.
pub fn outcome(
    setup: &Setup,
    survey: &Survey,
    references: &References,
    stopped_by: Option<&str>,
    observer: &dyn Observer,
) -> Outcome {
    let evaluator = Evaluator::new(setup);
    let concluding = Concluding { evaluator: &evaluator, survey };
    let place = best_place(&survey.walks);
    let winner = place.map(|place| concluding.best(place));
    let entries = |places: Vec<(usize, usize)>| -> Vec<Entry> {
        places.into_par_iter().map(|place| concluding.entry(place)).collect()
    };
    let request = &setup.request;
    let told = entries(concluding.top(TOLD.max(request.top)));
    let front = entries(concluding.front());
    let compared = match (&winner, place) {
        (Some(winner), Some((hbm, design))) => {
            let (judge, area) = (&survey.judge, setup.areas[design]);
            let compare = Compare { evaluator: &evaluator, judge, hbm, area, winner };
            baselines(&compare, references, observer)
        }
        _ => Vec::new(),
    };
    let winner_entry = place.map(|place| concluding.entry(place));
    let turned = match (&winner, place) {
        (Some(best), Some((hbm, design))) if !observer.stops() => {
            let own: Vec<Standing> = best.iter().map(|best| best.chosen.standing).collect();
            sensitivities(setup, &survey.judge, &setup.chip(design, hbm), &own)
        }
        _ => Vec::new(),
    };
    Outcome {
        schema: Outcome::SCHEMA.into(),
        version: Outcome::VERSION,
        phaze: env!("CARGO_PKG_VERSION").into(),
        request: request.clone(),
        models: models(setup, survey),
        infeasible_reason: winner_entry.is_none().then(|| match stopped_by {
            Some(reason) => format!("stopped by {reason} before anything was found to fit"),
            None => concluding.reason(),
        }),
        best_by_hbm: concluding.best_by_hbm(),
        baselines: compared,
        pareto: Listing {
            exact: survey.complete && (request.pareto || request.exhaustive),
            entries: front,
        },
        top: Listing { exact: survey.complete && request.top >= told.len(), entries: told },
        proof: concluding.proof(stopped_by),
        limited_by: winner_entry.as_ref().map(limits).unwrap_or_default(),
        winner: winner_entry,
        sensitivities: turned,
    }
}

fn models(setup: &Setup, survey: &Survey) -> Vec<ModelFacts> {
    let trainings = setup.trainings.iter().zip(&survey.own_best).zip(&survey.judge.stakes);
    trainings
        .map(|((training, own_best), stake)| ModelFacts {
            own_best_cost: stake.own_best,
            name: training.name.clone(),
            sequence: training.sequence,
            parameters: training.model.parameters(),
            flops_per_sequence: training.flops_per_sequence.0 as f64,
            best_throughput_sequences_per_s: own_best
                .map(|standing| setup.request.global_batch as f64 / standing.time.seconds()),
        })
        .collect()
}

/// Where the time of the first model's batch goes, as shares.
fn limits(winner: &Entry) -> Vec<Share> {
    let Some(result) = winner.results.first() else { return Vec::new() };
    let parts = result.breakdown_s.parts();
    let total = result.breakdown_s.total();
    parts
        .iter()
        .map(|(what, seconds)| Share { what: (*what).into(), share: seconds / total })
        .collect()
}

/// Tells of places in a survey: a walk and a candidate.
struct Concluding<'a> {
    evaluator: &'a Evaluator<'a>,
    survey: &'a Survey,
}

impl Concluding<'_> {
    /// The exact best at a place, found once more with all that it rests on.
    fn best(&self, (hbm, design): (usize, usize)) -> Vec<Best> {
        let models = 0..self.evaluator.setup.trainings.len();
        models
            .map(|model| {
                self.evaluator.best(model, design, hbm).expect("it was found before, and is again")
            })
            .collect()
    }

    fn entry(&self, place: (usize, usize)) -> Entry {
        let (hbm, design) = place;
        let chip = self.evaluator.setup.chip(design, hbm);
        let best = self.best(place);
        entry(self.evaluator, &self.survey.judge, &chip, Some(design), None, &best)
    }

    /// The best places over all sizes of memory; each design once, with its best size.
    fn top(&self, n: usize) -> Vec<(usize, usize)> {
        let mut all = Vec::new();
        for (hbm, walk) in self.survey.walks.iter().enumerate() {
            all.extend(walk.evaluated().map(|(at, merit, _)| (merit.value, merit.area, hbm, at)));
        }
        all.sort_unstable();
        let mut seen = std::collections::BTreeSet::new();
        let places = all.into_iter().map(|(_, _, hbm, design)| (hbm, design));
        places.filter(|(_, design)| seen.insert(*design)).take(n).collect()
    }

    /// The places that no other beats in throughput, area and energy, over all sizes of memory.
    fn front(&self) -> Vec<(usize, usize)> {
        let walks = self.survey.walks.iter().enumerate();
        let mut candidates: Vec<_> = walks
            .flat_map(|(hbm, walk)| {
                let merit = move |design: usize| match &walk.statuses[design] {
                    Status::Evaluated(merit, _) => Some((*merit, (hbm, design))),
                    _ => None,
                };
                walk.front().into_iter().filter_map(merit)
            })
            .collect();
        candidates.sort_unstable_by_key(|(merit, place)| {
            (merit.area, merit.slowness, merit.energy, *place)
        });
        let undominated = |(merit, _): &&(Merit, (usize, usize))| {
            !candidates.iter().any(|(other, _)| other.dominates(merit))
        };
        candidates.iter().filter(undominated).map(|(_, place)| *place).collect()
    }

    fn best_by_hbm(&self) -> Vec<BestByHbm> {
        let walks = self.survey.walks.iter().enumerate();
        walks
            .map(|(hbm, walk)| BestByHbm {
                hbm_gib: self.evaluator.setup.request.space.hbm_gib[hbm],
                entry: walk.ranking().first().map(|&design| self.entry((hbm, design))),
            })
            .collect()
    }

    fn proof(&self, stopped_by: Option<&str>) -> Proof {
        let by_hbm: Vec<ProofByHbm> =
            self.survey.walks.iter().enumerate().map(|(hbm, walk)| self.row(hbm, walk)).collect();
        let listed = self.evaluator.setup.candidates.len();
        let unlisted = self.survey.unlisted.first().map_or(0, Unlisted::designs);
        let designs = listed + unlisted;
        let facts = Proved {
            designs,
            by_hbm: &by_hbm,
            stopped_by,
            capped: self.evaluator.setup.request.power_cap_w.is_some(),
        };
        let complete = self.survey.complete && facts.gap() == 0.0;
        let statement = facts.statement();
        Proof { complete, stopped_by: stopped_by.map(str::to_owned), designs, statement, by_hbm }
    }

    fn row(&self, hbm: usize, walk: &Walk<Vec<Chosen>>) -> ProofByHbm {
        let count = |wanted: fn(&Status<Vec<Chosen>>) -> bool| {
            walk.statuses.iter().filter(|status| wanted(status)).count()
        };
        let best = walk.evaluated().map(|(_, merit, _)| merit.value).min();
        let unlisted = self.survey.unlisted.get(hbm).copied().unwrap_or_default();
        let left = [walk.best_bound_left(), unlisted.left].into_iter().flatten().min();
        let figure = |value: u128| self.survey.judge.figure(value);
        ProofByHbm {
            hbm_gib: self.evaluator.setup.request.space.hbm_gib[hbm],
            evaluated: count(|status| matches!(status, Status::Evaluated(..))),
            pruned: count(|status| matches!(status, Status::Pruned)) + unlisted.pruned,
            beaten: count(|status| matches!(status, Status::Beaten)) + unlisted.beaten,
            infeasible: count(|status| matches!(status, Status::Infeasible)) + unlisted.infeasible,
            open: count(|status| matches!(status, Status::Open)) + unlisted.open,
            best_pruned_bound: left.filter(|&value| value > 0).map(figure),
            best_value: best.map(figure),
            gap: self.gap(walk, best, left),
        }
    }

    /// By what part of the best value something unknown could be better, at the most.
    fn gap(&self, walk: &Walk<Vec<Chosen>>, best: Option<u128>, left: Option<u128>) -> f64 {
        let Some(best) = best else {
            return if left.is_some() { 1.0 } else { 0.0 };
        };
        // Unproved schedules leave every evaluated price uncertain by the same part as its value.
        let price = self.evaluator.setup.terms.price;
        let part =
            |chosen: &Chosen| chosen.least_price as f64 / price.of(chosen.standing).max(1) as f64;
        let certain = walk.evaluated().map(|(_, merit, chosen)| {
            let least = chosen.iter().map(part).fold(1.0, f64::min);
            merit.value as f64 * least
        });
        let possible = certain.chain(left.map(|value| value as f64)).fold(best as f64, f64::min);
        1.0 - possible / best as f64
    }

    /// Why nothing fits anywhere.
    fn reason(&self) -> String {
        let setup = self.evaluator.setup;
        if setup.request.power_cap_w.is_some() {
            // What fits does not depend on how fast a design is: the first stands for all.
            let terms = Terms { power_cap_w: None, ..setup.terms.clone() };
            let fits = |hbm: usize, training| {
                let table = self.evaluator.table();
                let planner = Planner { terms: &terms, training, table };
                planner.best_on(&setup.chip_of(&setup.first, hbm)).is_some()
            };
            let sizes = 0..setup.request.space.hbm_gib.len();
            if sizes.into_iter().any(|hbm| setup.trainings.iter().all(|t| fits(hbm, t))) {
                return TOO_MUCH_POWER.into();
            }
        }
        let tightest: Vec<String> =
            (0..setup.trainings.len()).filter_map(|model| self.tightest(model)).collect();
        tightest.join("; ")
    }

    /// What is in the way of a model even at its widest division, with the least kept and the most
    /// memory; `None` where it does fit.
    fn tightest(&self, model: usize) -> Option<String> {
        let setup = self.evaluator.setup;
        let training = &setup.trainings[model];
        let widest = training.divisions.iter().enumerate().max_by_key(|(_, division)| {
            let setting = &division.share.setting;
            (setting.tensor_parallel, std::cmp::Reverse(setting.micro_batch))
        });
        let (division, share) = widest.map(|(at, division)| (at, &division.share))?;
        let sizes = setup.request.space.hbm_gib.iter().enumerate();
        let (hbm, gib) = sizes.max_by_key(|(_, gib)| **gib)?;
        let chip = setup.chip_of(&setup.first, hbm);
        let shardings = shardings(&setup.terms, &training.divisions[division]);
        // What shares most holds least.
        let sharded = shardings.into_iter().max().flatten();
        let (profile, job) = self.evaluator.planner(model).asked(division, &chip).ok()?;
        let least = [Recompute::AsNeeded, Recompute::Full, Recompute::Stage, Recompute::None];
        let asked = &setup.terms.space.recompute;
        let recompute =
            least.into_iter().find(|how| asked.contains(how)).or(asked.last().copied())?;
        let choices = training.choices(&setup.terms, division, (sharded, recompute));
        let problem = Problem { profile: &profile, job: &job, choices: &choices };
        if fits(&problem) {
            return None;
        }
        let name = &training.name;
        let width = share.setting.tensor_parallel;
        let hindrance = match obstacle(&problem) {
            Obstacle::Layer { layer, needed } => Hindrance::Layer {
                layer,
                name: profile.layer(layer).name.clone(),
                needed_gib: needed as f64 / Bytes::GIB.0 as f64,
            },
            Obstacle::Devices { needed: Some(needed) } => {
                Hindrance::Devices { needed, available: setup.request.devices }
            }
            Obstacle::Devices { needed: None } => Hindrance::Activations,
        };
        Some(hindrance.sentence(name, *gib, width))
    }
}
