//! Placing a model on a cluster of accelerators: the best strategy, or why nothing fits.

pub mod profile;
mod request;

pub use request::ATTENTIONS;
pub use request::PlaceRequest;
pub use request::RecomputeChoice;

pub use super::fewest::Fitted;

use serde_json::Value;
use serde_json::json;

use super::Refusal;
use super::Spelling;
use super::solved;
use crate::estimate::EstimateTable;
use crate::input::place::Ready;
use crate::input::place::ready;
use crate::input::source::Reader;
use crate::model::Model;
use crate::parallel::frameworks::Framework;
use crate::plan::Limits;
use crate::plan::Plan;
use crate::plan::StrategySpace;
use crate::report::placement as report;
use crate::report::placement::Alternative;
use crate::strategy::Best;
use crate::strategy::Planner;
use crate::strategy::Terms;
use crate::strategy::Training;

/// What a user asks, every default filled in and ready to run.
pub struct Placer {
    ready: Ready,
    /// The space before a strategy that was given narrowed it.
    whole: StrategySpace,
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

/// The load of the fullest device of a mixture of experts that is told beside an even one, in
/// thousandths of it.
pub(in crate::ask) const UNEVEN_LOAD: u64 = 1200;
/// What it is called.
const UNEVEN: &str = "with 1.2 times an even expert load";

/// Thousandths by which a strategy that was given may exceed the memory of a device.
const OVER_FULL: i64 = -50;

impl Placer {
    /// Makes a request ready; `read` opens the files that it names.
    ///
    /// # Errors
    /// What cannot be read, is not known, or makes no sense.
    pub fn new(request: &PlaceRequest, read: &Reader) -> Result<Self, Refusal> {
        let (question, whole) = request.question(read)?;
        let ready = ready(question, &request.model)?;
        let table = EstimateTable::new(ready.terms.options);
        let (fit, given) = (request.fit, request.strategy.is_some());
        let spelling = request.chip.spelling;
        Ok(Self { ready, whole, table, fit, given, spelling })
    }

    /// Finds the best way to train, or says why there is none.
    ///
    /// # Errors
    /// That the model cannot be trained so at all.
    pub fn answer(&mut self) -> Result<Placed, Refusal> {
        solved::legal(&self.ready, &self.whole).map_err(|reason| {
            Refusal::Options(format!("{}: {reason}", self.ready.question.model.name))
        })?;
        if !self.fit {
            return self.placed(None);
        }
        let Some(fitted) = Fitted::of(&self.ready, &self.table)? else {
            return self.infeasible();
        };
        self.ready.terms.cluster.devices = fitted.comfortable;
        self.ready.question.devices = fitted.comfortable;
        self.placed(Some(fitted))
    }

    fn placed(&mut self, fitted: Option<Fitted>) -> Result<Placed, Refusal> {
        let mut found = solved::best(&self.ready, &self.table)?;
        if found.is_none() && self.given {
            // What a cluster runs is not called infeasible for a few percent of memory.
            self.ready.question.reserve_per_mille = OVER_FULL;
            self.ready.terms.reserve_per_mille = OVER_FULL;
            found = solved::best(&self.ready, &self.table)?;
        }
        let Some((best, plan)) = found else { return self.infeasible() };
        Ok(Placed::Plan(Box::new(PlacedPlan { plan, best: Some(best), fitted })))
    }

    fn infeasible(&self) -> Result<Placed, Refusal> {
        let reason = solved::why_nothing_fits(&self.ready, &self.table, self.spelling)?;
        let name = self.ready.question.model.name.clone();
        Ok(Placed::Nothing { name, design: Some(self.ready.terms.design.clone()), reason })
    }

    /// What users ask next: what each choice brings.
    pub fn alternatives(&self, best: &Best) -> Vec<Alternative> {
        let mut rows = Vec::new();
        let space = &self.ready.terms.space;
        let with = |change: &dyn Fn(&mut StrategySpace)| {
            let mut terms = self.ready.terms.clone();
            change(&mut terms.space);
            terms
        };
        let mut add = |title: &str, terms: Terms| {
            rows.push(self.alternative(title, &self.ready.model, &terms));
        };
        let chosen = &best.chosen.strategy;
        if self.whole != *space {
            let terms = Terms { space: self.whole.clone(), ..self.ready.terms.clone() };
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
        if chosen.expert_parallel > 1 && self.whole.expert_parallel.contains(&1) {
            let on_each = |space: &mut StrategySpace| space.expert_parallel = vec![1];
            add("without expert parallelism", with(&on_each));
        }
        if let Some(uneven) = self.unevenly_loaded() {
            rows.push(self.alternative(UNEVEN, &uneven, &self.ready.terms));
        }
        rows
    }

    /// The model whose experts are loaded unevenly, where nobody says how they are.
    fn unevenly_loaded(&self) -> Option<Model> {
        let mut model = self.ready.model.clone();
        let experts = model.spec.experts.as_mut()?;
        let is_usual = experts.load_per_mille == 1000;
        experts.load_per_mille = UNEVEN_LOAD;
        (is_usual && self.ready.question.imbalance_per_mille.is_none()).then_some(model)
    }

    /// The fastest for a model on these terms.
    fn alternative(&self, title: &str, model: &Model, terms: &Terms) -> Alternative {
        let sequence = self.ready.question.sequence;
        let fastest = match Training::with(&self.ready.shares, ("", model.clone()), sequence, terms)
        {
            Err(_) => None,
            Ok(training) => {
                let planner = Planner { terms, training: &training, table: &self.table };
                planner.best_on(&self.ready.chip)
            }
        };
        let strategy = fastest.map(|best| (best.found.rank.time, best.chosen.strategy.to_string()));
        Alternative { title: title.to_owned(), strategy }
    }
}
