//! Designs of a space, bounded and evaluated for every model of a request.

use super::Setup;
use crate::estimate::EstimateTable;
use crate::hardware::Accelerator;
use crate::hardware::Candidate;
use crate::strategy::Best;
use crate::strategy::Figures;
use crate::strategy::Planner;
use crate::strategy::SpaceBound;
use crate::strategy::Standing;
use crate::strategy::Within;
use crate::units::Time;

/// Evaluates designs of a setup; estimates are shared by all threads.
pub struct Evaluator<'a> {
    /// What is asked.
    pub setup: &'a Setup,
    table: EstimateTable,
    /// By model.
    bounds: Vec<SpaceBound>,
}

impl<'a> Evaluator<'a> {
    /// Prepares the bounds of all models.
    pub fn new(setup: &'a Setup) -> Self {
        if setup.request.lists_all() {
            return Self::of_candidates(setup, setup.candidates.iter());
        }
        let space = &setup.request.space;
        let sides = space.width.iter();
        let sides = sides.flat_map(|&width| space.depth.iter().map(move |&depth| (width, depth)));
        Self::of_arrays(setup, &sides.collect::<Vec<_>>())
    }

    /// The same for some designs of the space alone.
    pub fn of_designs(setup: &'a Setup, designs: &[usize]) -> Self {
        Self::of_candidates(setup, designs.iter().map(|&design| &setup.candidates[design]))
    }

    fn of_candidates<'b>(
        setup: &'a Setup,
        candidates: impl Iterator<Item = &'b Candidate>,
    ) -> Self {
        let sides = |candidate: &Candidate| (candidate.design.width, candidate.design.depth);
        Self::of_arrays(setup, &candidates.map(sides).collect::<Vec<_>>())
    }

    fn of_arrays(setup: &'a Setup, arrays: &[(u64, u64)]) -> Self {
        let memories = setup.hbm_sizes();
        let bounds = setup
            .trainings
            .iter()
            .map(|training| SpaceBound::new(training, arrays.to_vec(), &memories));
        Self { table: EstimateTable::new(setup.terms.options), bounds: bounds.collect(), setup }
    }

    /// Who finds the best way to train one of the models.
    pub fn planner(&self, model: usize) -> Planner<'_> {
        let Setup { terms, trainings, .. } = self.setup;
        Planner { terms, training: &trainings[model], table: &self.table }
    }

    /// What no way to train a model on a chip of the space can beat; `None` where it surely does
    /// not fit.
    pub fn optimistic(
        &self,
        model: usize,
        chip: &Accelerator,
        figures: Figures,
    ) -> Option<Standing> {
        let Setup { terms, trainings, .. } = self.setup;
        self.bounds[model].least((terms, &trainings[model]), chip, figures)
    }

    /// The best way to train a model on a design of the space, where those slower than `limit` need
    /// not be known.
    pub fn best_within(
        &self,
        model: usize,
        (candidate, hbm): (usize, usize),
        limit: Option<Time>,
    ) -> Within {
        self.best_within_on(model, &self.setup.chip(candidate, hbm), limit)
    }

    /// The same on a chip of the space.
    pub fn best_within_on(&self, model: usize, chip: &Accelerator, limit: Option<Time>) -> Within {
        self.planner(model).best_within(chip, &self.bounds[model], limit)
    }

    /// The best way to train a model on a design of the space.
    pub fn best(&self, model: usize, candidate: usize, hbm: usize) -> Option<Best> {
        self.best_of(model, &self.setup.chip(candidate, hbm))
    }

    /// The same on a chip of the space.
    pub fn best_of(&self, model: usize, chip: &Accelerator) -> Option<Best> {
        self.planner(model).best(chip, &self.bounds[model])
    }

    /// The table of estimates that all evaluations share.
    pub fn table(&self) -> &EstimateTable {
        &self.table
    }
}
