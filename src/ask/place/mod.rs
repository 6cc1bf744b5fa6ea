//! Placing a model on a cluster of accelerators: the best strategy, or why nothing fits.

pub mod profile;
mod request;

pub use request::ATTENTIONS;
pub use request::PlaceRequest;
pub use request::RecomputeChoice;

use serde_json::Value;
use serde_json::json;

use super::Refusal;
use super::Spelling;
use crate::estimate::EstimateTable;
use crate::hardware::Accelerator;
use crate::input::place;
use crate::input::place::Ready;
use crate::input::place::ready;
use crate::input::source::Reader;
use crate::model::Model;
use crate::parallel::frameworks::Framework;
use crate::parallel::is_legal;
use crate::placement::Choices;
use crate::placement::Problem;
use crate::placement::Usage;
use crate::placement::fewest_devices;
use crate::placement::fits;
use crate::placement::obstacle;
use crate::placement::refusal;
use crate::plan::Job;
use crate::plan::Limits;
use crate::plan::Plan;
use crate::plan::Profile;
use crate::plan::Question;
use crate::plan::StrategySpace;
use crate::plan::Units;
use crate::plan::check::placement::check;
use crate::report::placement as report;
use crate::report::placement::Alternative;
use crate::strategy::Best;
use crate::strategy::Planner;
use crate::strategy::Sharded;
use crate::strategy::Terms;
use crate::strategy::Training;
use crate::strategy::settings;
use crate::strategy::shardings;

/// What a user asks, every default filled in and ready to run.
pub struct Placer {
    question: Question,
    /// The space before a strategy that was given narrowed it.
    whole: StrategySpace,
    model: Model,
    chip: Accelerator,
    terms: Terms,
    table: EstimateTable,
    /// Whether the fewest devices are looked for first.
    fit: bool,
    /// Whether a strategy was given.
    given: bool,
    spelling: Spelling,
}

/// What became of a request.
pub enum Placed {
    /// The best way to train.
    Plan(Box<PlacedPlan>),
    /// Nothing fits.
    Nothing {
        /// What was to be placed.
        name: String,
        /// On what, where it is not the user's own layers.
        design: Option<String>,
        /// The limit that comes closest to being kept.
        reason: String,
    },
}

/// A plan that was found.
pub struct PlacedPlan {
    /// The plan, as `plan.json` holds it.
    pub plan: Plan,
    /// What was chosen, where a model was placed and not the user's own layers.
    pub best: Option<Best>,
    /// How many devices the model needs, where that was asked for.
    pub fitted: Option<Fitted>,
}

impl Placed {
    /// The answer for programs.
    pub fn value(&self) -> Value {
        match self {
            Self::Nothing { name, reason, .. } => report::infeasible(name, reason),
            Self::Plan(found) => {
                let mut value = report::value(&found.plan);
                if let Some(fitted) = &found.fitted {
                    value["fit"] = json!({
                        "fewest_devices": fitted.fewest,
                        "nodes": fitted.nodes(),
                        "devices_per_node": fitted.per_node,
                        "comfortable_devices": fitted.comfortable,
                    });
                }
                value
            }
        }
    }
}

/// How many devices a model needs.
#[derive(Clone, Copy, Debug)]
pub struct Fitted {
    /// The fewest on which something fits.
    pub fewest: u64,
    /// Devices of a node.
    pub per_node: u64,
    /// A number that leaves room.
    pub comfortable: u64,
}

impl Fitted {
    /// Whole nodes that have the fewest devices.
    pub fn nodes(&self) -> u64 {
        self.fewest.div_ceil(self.per_node)
    }
}

/// Thousandths by which a strategy that was given may exceed the memory of a device.
const OVER_FULL: i64 = -50;

/// The most devices on which a model is made to fit.
const MOST_FITTED: u64 = 1 << 20;

/// What is asked of the placement of one division.
struct Asked {
    profile: Profile,
    job: Job,
    choices: Choices,
}

impl Asked {
    fn problem(&self) -> Problem<'_> {
        Problem { profile: &self.profile, job: &self.job, choices: &self.choices }
    }
}

impl Placer {
    /// Makes a request ready; `read` opens the files that it names.
    ///
    /// # Errors
    /// What cannot be read, is not known, or makes no sense.
    pub fn new(request: &PlaceRequest, read: &Reader) -> Result<Self, Refusal> {
        let (question, whole) = request.question(read)?;
        let Ready { question, model, chip, terms } = ready(question, &request.model)?;
        let table = EstimateTable::new(terms.options);
        let (fit, given) = (request.fit, request.strategy.is_some());
        let spelling = request.chip.spelling;
        Ok(Self { question, whole, model, chip, terms, table, fit, given, spelling })
    }

    /// Finds the best way to train, or says why there is none.
    ///
    /// # Errors
    /// That the model cannot be trained so at all.
    pub fn answer(&mut self) -> Result<Placed, Refusal> {
        if !self.fit {
            return self.placed(None);
        }
        let Some(fewest) = self.fewest_devices()? else { return self.infeasible() };
        let per_node = self.terms.cluster.network.devices_per_node().unwrap_or(1);
        // Twice the least leaves room for longer sequences and larger micro-batches.
        let comfortable = (2 * fewest).div_ceil(per_node) * per_node;
        let comfortable = comfortable.next_power_of_two();
        self.terms.cluster.devices = comfortable;
        self.question.devices = comfortable;
        self.placed(Some(Fitted { fewest, per_node, comfortable }))
    }

    fn placed(&mut self, fitted: Option<Fitted>) -> Result<Placed, Refusal> {
        let mut found = self.best(&self.terms)?;
        if found.is_none() && self.given {
            // What a cluster runs is not called infeasible for a few percent of memory.
            self.reserve(OVER_FULL);
            found = self.best(&self.terms)?;
        }
        let Some((best, plan)) = found else { return self.infeasible() };
        Ok(Placed::Plan(Box::new(PlacedPlan { plan, best: Some(best), fitted })))
    }

    fn infeasible(&self) -> Result<Placed, Refusal> {
        let asked = self.asked(&self.terms)?;
        let problems: Vec<Problem> = asked.iter().map(Asked::problem).collect();
        let obstacles = problems.iter().map(|problem| (problem, obstacle(problem)));
        let refusal = problems.iter().find_map(refusal);
        let reason = match refusal {
            Some(broken) => format!("memory and devices would do, but {broken}"),
            None if self.would_fit_with_some_idle(&problems) => format!(
                "memory would do, but plans that {} accepts use all {} devices and give every \
                 pipeline as many of the {} sequences: no degrees do both; change one of the \
                 numbers, or give {} any",
                self.terms.space.framework,
                self.terms.cluster.devices,
                self.terms.global_batch,
                self.spelling.of("launchable"),
            ),
            None => report::reason(&Units::physical(), obstacles),
        };
        let name = self.question.model.name.clone();
        Ok(Placed::Nothing { name, design: Some(self.terms.design.clone()), reason })
    }

    fn reserve(&mut self, per_mille: i64) {
        self.question.reserve_per_mille = per_mille;
        self.terms.reserve_per_mille = per_mille;
    }

    fn refused(&self, reason: &dyn std::fmt::Display) -> Refusal {
        Refusal::Options(format!("{}: {reason}", self.question.model.name))
    }

    fn training(&self, terms: &Terms) -> Result<Training, Refusal> {
        self.legal(terms)?;
        Training::new(&self.question.model.name, self.model.clone(), self.question.sequence, terms)
            .map_err(|reason| self.refused(&reason))
    }

    /// Refuses widths and context degrees that were asked for and that the model forbids.
    fn legal(&self, terms: &Terms) -> Result<(), Refusal> {
        let space = &terms.space;
        let mut alone = terms.clone();
        if self.model.spec.experts.is_none() {
            // Where experts are shared, so are tokens.
            alone.space.sequence_parallel = vec![false];
        }
        alone.space.micro_batches.truncate(1);
        alone.space.repeated.truncate(1);
        for &width in &space.tensor_parallel {
            for &context in &space.context_parallel {
                alone.space.tensor_parallel = vec![width];
                alone.space.context_parallel = vec![context];
                alone.space.context_kinds = space.context_kinds[..1].to_vec();
                let found = settings(&self.model, self.question.sequence, &alone);
                let given = width_or_context_given(&self.whole, space, width, context);
                if let (Some(&setting), true) = (found.first(), given) {
                    is_legal(&self.model, setting).map_err(|reason| self.refused(&reason))?;
                }
            }
        }
        Ok(())
    }

    /// The best way to train on these terms, with its plan; `None` where nothing fits.
    fn best(&self, terms: &Terms) -> Result<Option<(Best, Plan)>, Refusal> {
        let training = self.training(terms)?;
        let planner = Planner { terms, training: &training, table: &self.table };
        let Some(best) = planner.best_on(&self.chip) else { return Ok(None) };
        let plan = place::plan(&planner, &self.chip, &self.question, &best);
        check(&plan).expect("a plan that was found keeps every rule");
        Ok(Some((best, plan)))
    }

    /// What is asked of the placement of every division on these terms; refused where none can be
    /// timed.
    fn asked(&self, terms: &Terms) -> Result<Vec<Asked>, Refusal> {
        let training = self.training(terms)?;
        let planner = Planner { terms, training: &training, table: &self.table };
        let mut asked = Vec::new();
        let mut untimed = None;
        let divisions = training.divisions.iter().enumerate();
        let ways = divisions.flat_map(|(at, division)| {
            shardings(terms, division).into_iter().map(move |sharded| (at, sharded))
        });
        for (at, sharded) in ways {
            match planner.asked(at, &self.chip) {
                Ok((profile, job)) => {
                    asked.extend(terms.space.recompute.iter().map(|&recompute| Asked {
                        profile: profile.clone(),
                        job: job.clone(),
                        choices: training.choices(terms, at, (sharded, recompute)),
                    }));
                }
                Err(reason) => untimed = Some(reason),
            }
        }
        match untimed {
            Some(reason) if asked.is_empty() => Err(self.refused(&reason)),
            _ => Ok(asked),
        }
    }

    /// Whether something fits where some devices may be idle and pipelines may differ.
    fn would_fit_with_some_idle(&self, problems: &[Problem]) -> bool {
        self.terms.space.framework != Framework::Any
            && problems.iter().any(|problem| {
                let choices = Choices { usage: Usage::Any, legal: None, ..problem.choices.clone() };
                let needed = fewest_devices(&Problem { choices: &choices, ..*problem });
                needed.is_some_and(|needed| needed <= problem.job.devices)
            })
    }

    /// The fewest devices on which some strategy fits, whoever runs it; `None` where none does.
    fn fewest_devices(&self) -> Result<Option<u64>, Refusal> {
        let mut terms = self.terms.clone();
        terms.cluster.devices = MOST_FITTED;
        // Others may be idle.
        terms.space.framework = Framework::Any;
        let training = self.training(&terms)?;
        let planner = Planner { terms: &terms, training: &training, table: &self.table };
        let mut fewest: Option<u64> = None;
        let divisions = training.divisions.iter().enumerate();
        for (at, division) in divisions.filter(|(_, d)| d.cluster.devices == MOST_FITTED) {
            let Ok((profile, mut job)) = planner.asked(at, &self.chip) else { continue };
            let each = division.share.setting.devices();
            let devices = |sharded: &Sharded| sharded.data_parallel * sharded.ranks * each;
            let mut ways = shardings(&terms, division);
            ways.sort_by_key(|way| way.as_ref().map(devices));
            for sharded in ways {
                let devices = sharded.as_ref().map(devices);
                if devices.zip(fewest).is_some_and(|(devices, known)| known <= devices) {
                    break;
                }
                for &recompute in &terms.space.recompute {
                    let mut choices = terms.choices(recompute, sharded);
                    // Several virtual stages hold no less.
                    choices.chunks = *choices.chunks.start()..=*choices.chunks.start();
                    job.devices = devices.unwrap_or(MOST_FITTED);
                    let problem = Problem { profile: &profile, job: &job, choices: &choices };
                    let found = match devices {
                        Some(devices) => fits(&problem).then_some(devices),
                        None => fewest_devices(&problem),
                    };
                    fewest = fewest.into_iter().chain(found).min();
                }
            }
        }
        Ok(fewest)
    }

    /// What users ask next: what each choice brings.
    pub fn alternatives(&self, best: &Best) -> Vec<Alternative> {
        let mut rows = Vec::new();
        let space = &self.terms.space;
        let with = |change: &dyn Fn(&mut StrategySpace)| {
            let mut terms = self.terms.clone();
            change(&mut terms.space);
            terms
        };
        let mut add = |title: &str, terms: Terms| rows.push(self.alternative(title, &terms));
        let chosen = &best.chosen.strategy;
        if self.whole != *space {
            let terms = Terms { space: self.whole.clone(), ..self.terms.clone() };
            add("nothing given", terms);
        }
        if space.framework != Framework::Any && self.whole == *space {
            add("launchable or not", with(&|space| space.framework = Framework::Any));
        }
        if space.tensor_parallel.len() > 1 {
            let others = |space: &mut StrategySpace| {
                space.tensor_parallel.retain(|&width| width != chosen.tensor_parallel);
            };
            add("with another width", with(&others));
        }
        if chosen.pipeline > 1 && space.pipeline.contains(1) {
            add("without pipeline", with(&|space| space.pipeline = Limits::only(1)));
        } else if chosen.pipeline == 1 && space.pipeline.most > 1 {
            let deeper = Limits { least: 2, most: space.pipeline.most };
            add("with a pipeline", with(&|space| space.pipeline = deeper));
        }
        rows
    }

    /// The fastest on these terms.
    fn alternative(&self, title: &str, terms: &Terms) -> Alternative {
        let fastest = match Training::new("", self.model.clone(), self.question.sequence, terms) {
            Err(_) => None,
            Ok(training) => {
                let planner = Planner { terms, training: &training, table: &self.table };
                planner.best_on(&self.chip)
            }
        };
        let strategy = fastest.map(|best| (best.found.rank.time, best.chosen.strategy.to_string()));
        Alternative { title: title.to_owned(), strategy }
    }
}

/// Whether a width or a context degree was asked for by name, not taken from the defaults.
fn width_or_context_given(
    whole: &StrategySpace,
    space: &StrategySpace,
    width: u64,
    context: u64,
) -> bool {
    let widths =
        whole.tensor_parallel != space.tensor_parallel || !whole.tensor_parallel.contains(&width);
    let contexts = whole.context_parallel != space.context_parallel
        || !whole.context_parallel.contains(&context);
    widths || contexts
}
