//! What a request over chips is judged by: for every value of the links a question of its own, with its
//! own network, and bounds for every size of memory.

use std::sync::OnceLock;

use crate::compare::chips::RealPart;
use crate::hardware::DesignSpace;
use crate::hardware::Physics;
use crate::hardware::chip::ChipSpace;
use crate::hardware::chip::knob_place;
use crate::search::Request;
use crate::search::chips::ChipPoint;
use crate::search::chips::ChipSetup;
use crate::strategy::Standing;
use crate::units::Bytes;
use crate::units::Energy;
use crate::units::Time;

use super::super::bound::Bounds;
use super::super::bound::Shapes;
use super::super::rebuild::Question;

/// A request over chips, made ready to judge its answer.
pub struct ChipQuestion {
    /// The request, its grid and its models.
    pub setup: ChipSetup,
    references: crate::compare::References,
    /// What winners are compared with besides chips of the space.
    pub parts: Vec<RealPart>,
    /// By links.
    questions: Vec<OnceLock<Result<Question, String>>>,
    /// By links, then by stacks.
    bounds: Vec<Vec<OnceLock<Bounds>>>,
    links: usize,
    stacks: usize,
}

impl ChipQuestion {
    /// Of a request that was made ready, or why it could not have been asked.
    ///
    /// # Errors
    /// Which model cannot be trained so.
    pub fn new(
        setup: ChipSetup,
        references: crate::compare::References,
        parts: Vec<RealPart>,
    ) -> Result<Self, String> {
        let place = |name| knob_place(name).expect("a knob of chips");
        let (links, stacks) = (place("links"), place("stacks"));
        let lens = setup.grid.lens().map(usize::from);
        let question = Self {
            questions: (0..lens[links]).map(|_| OnceLock::new()).collect(),
            bounds: (0..lens[links])
                .map(|_| (0..lens[stacks]).map(|_| OnceLock::new()).collect())
                .collect(),
            setup,
            references,
            parts,
            links,
            stacks,
        };
        question.try_question(0).as_ref().map_err(Clone::clone)?;
        Ok(question)
    }

    fn try_question(&self, links: usize) -> &Result<Question, String> {
        self.questions[links].get_or_init(|| {
            let physics = self.setup.physics_with(links);
            let request = without_space(&self.setup.request);
            let of = (&request, self.setup.request.space.precision);
            Question::of_request(of, &self.setup.models, physics, self.references.clone())
        })
    }

    /// What chips with the links of a point are judged by.
    pub fn question(&self, point: &ChipPoint) -> &Question {
        let question = self.try_question(usize::from(point[self.links])).as_ref();
        question.expect("what can be trained does not depend on how fast links are")
    }

    fn bounds_at(&self, point: &ChipPoint) -> &Bounds {
        let (links, stacks) = (usize::from(point[self.links]), usize::from(point[self.stacks]));
        self.bounds[links][stacks].get_or_init(|| {
            let setup = &self.setup;
            let values = |name| setup.grid.values(knob_place(name).expect("a knob of chips"));
            let depths = values("depth");
            let arrays = values("width").iter();
            let arrays = arrays.flat_map(|&w| depths.iter().map(move |&d| (w, d))).collect();
            let sample = setup.knobs(&[0; crate::hardware::chip::N_CHIP_KNOBS]);
            let sample = sample.boundless(&setup.grid.technology, &setup.physics);
            let sample = sample.expect("the smallest chip of a grid can be built");
            let memories = [self.memory(point)];
            let shapes = Shapes { arrays, memories: &memories, sample: &sample };
            Bounds::prepared(self.question(point), &shapes)
        })
    }

    /// What a part that is not of the space is judged by, in its own physics.
    ///
    /// # Errors
    /// Which model cannot be trained so.
    pub fn of_part(&self, part: &RealPart) -> Result<Question, String> {
        let mut request = without_space(&self.setup.request);
        request.hardware.name.clone_from(&part.name);
        let (models, physics) = (&self.setup.models, part.physics.clone());
        let of = (&request, part.precision);
        Question::of_request(of, models, physics, self.references.clone())
    }

    /// The memory of the chip at a point.
    pub fn memory(&self, point: &ChipPoint) -> Bytes {
        self.setup.knobs(point).design(&self.setup.grid.technology).hbm
    }

    /// What no way to train a model on any chip between two points can beat; `None` where surely
    /// nothing fits on any.
    pub fn standing(&self, model: usize, least: &ChipPoint, most: &ChipPoint) -> Option<Standing> {
        let setup = &self.setup;
        let (low, high) = (setup.knobs(least), setup.knobs(most));
        let (technology, base) = (&setup.grid.technology, &setup.physics);
        let with_energies = high.optimistic(&low, technology, base);
        match with_energies.or_else(|| high.boundless(technology, base)) {
            Some(chip) => self.bounds_at(most).standing(model, &chip, 0),
            // Nothing is known of what cannot be built.
            None => Some(Standing { time: Time(0), energy: Energy::ZERO }),
        }
    }

    /// Picoseconds that a model takes at the least on any chip between two points where no device draws more
    /// than `cap` watts on average; `None` where each draws more without any work.
    pub fn slowed_by(
        &self,
        model: usize,
        (least, most): (&ChipPoint, &ChipPoint),
        cap: f64,
    ) -> Option<f64> {
        let setup = &self.setup;
        let (low, high) = (setup.knobs(least), setup.knobs(most));
        let Some(chip) = high.optimistic(&low, &setup.grid.technology, &setup.physics) else {
            return Some(0.0);
        };
        let microwatts = cap * 1e6 - chip.static_power_uw() as f64;
        if microwatts <= 0.0 {
            return None;
        }
        let work = self.bounds_at(most).standing(model, &chip.drawing_nothing_at_rest(), 0)?;
        // A microwatt for a picosecond is a thousandth of a femtojoule.
        let femtojoules_per_picosecond = microwatts / 1e3 * setup.request.devices as f64;
        Some(work.energy.0 as f64 / femtojoules_per_picosecond)
    }

    /// What no knob decides, with the network of a point.
    pub fn physics(&self, point: &ChipPoint) -> Physics {
        self.setup.physics_with(usize::from(point[self.links]))
    }
}

/// The request of one value of the links: that its designs are chips is not asked by what reads it.
fn without_space(request: &Request<ChipSpace>) -> Request {
    Request {
        models: request.models.clone(),
        hardware: request.hardware.clone(),
        imbalance_per_mille: request.imbalance_per_mille,
        next_tokens: request.next_tokens,
        efficiency: request.efficiency.clone(),
        devices: request.devices,
        global_batch: request.global_batch,
        strategies: request.strategies.clone(),
        reserve_per_mille: request.reserve_per_mille,
        optimizer: request.optimizer,
        attention: request.attention,
        masked: request.masked,
        time_model: request.time_model,
        rule: request.rule,
        vector_costs: request.vector_costs,
        space: DesignSpace::published(),
        objective: request.objective,
        combine: request.combine,
        top: request.top,
        pareto: request.pareto,
        resolution_per_mille: None,
        exhaustive: request.exhaustive,
        table: request.table,
        power_cap_w: request.power_cap_w,
        baselines: Vec::new(),
        why: false,
        spotlight: None,
        robust: false,
    }
}
