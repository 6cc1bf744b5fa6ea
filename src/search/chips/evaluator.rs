//! Chips of a grid, bounded and evaluated for every model of a request.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::OnceLock;
use std::sync::PoisonError;

use crate::estimate::EstimateTable;
use crate::hardware::Accelerator;
use crate::hardware::MostLanes;
use crate::hardware::chip::N_CHIP_KNOBS;
use crate::search::Fact;
use crate::search::Memory;
use crate::strategy::Best;
use crate::strategy::Chosen;
use crate::strategy::Corner;
use crate::strategy::EnergyReach;
use crate::strategy::Figures;
use crate::strategy::Heard;
use crate::strategy::Planner;
use crate::strategy::Price;
use crate::strategy::Reach;
use crate::strategy::Reached;
use crate::strategy::Shares;
use crate::strategy::SpaceBound;
use crate::strategy::Standing;
use crate::strategy::Terms;
use crate::strategy::Training;
use crate::strategy::Untrainable;
use crate::strategy::Way;
use crate::strategy::Within;
use crate::units::Energy;
use crate::units::Time;

use super::ChipPoint;
use super::ChipRegion;
use super::ChipSurvey;
use super::KeptChip;
use super::bounded::Bounded;
use super::corners::Greatest;
use super::corners::KnownCorner;
use super::implied::Implied;
use super::setup::ChipSetup;
use super::setup::LINKS;
use super::setup::STACKS;

/// What all chips with the same links share: the network between them, and models divided on it.
pub struct Ground {
    /// What may be chosen.
    pub terms: Terms,
    /// What is trained.
    pub trainings: Vec<Training>,
    /// By model: bounds for every shape of array, and for no memory.
    sketches: Vec<SpaceBound>,
    /// By stacks of memory, then by model.
    bounds: Vec<OnceLock<Vec<Arc<SpaceBound>>>>,
}

/// What was found of a model on a point.
type Facts = BTreeMap<(usize, ChipPoint), Fact>;

/// By model and point: the least time.
type Bounds = Bounded<(usize, ChipPoint), Option<Time>>;

/// Evaluates chips of a setup; what was found once is remembered.
pub struct ChipEvaluator<'a> {
    /// What is asked.
    pub setup: &'a ChipSetup,
    memory: &'a dyn Memory,
    table: EstimateTable,
    /// What one device does, which links do not change.
    shares: Shares,
    grounds: Vec<OnceLock<Result<Ground, Untrainable>>>,
    facts: Mutex<Facts>,
    corners: Mutex<BTreeMap<(usize, Greatest), KnownCorner>>,
    implied: Implied,
    /// Boxes whose least energy was asked for.
    frugal: Mutex<BTreeSet<(usize, ChipRegion)>>,
    bounds: Vec<Mutex<Bounds>>,
    guesses: Mutex<Bounded<(usize, Greatest, Way), Option<Time>>>,
}

/// Facts from before that are found again although nothing is told of their chips.
const SAMPLE: usize = 16;

/// How the keys begin under which corners are kept; of these the last word counts.
pub const CORNER: &str = "corner/";

/// Bounds are kept in so many tables, so that threads seldom wait for each other.
const TABLES: usize = 16;

/// The halves of each of these tables hold so many bounds at the most.
const MOST_BOUNDS: usize = 1 << 15;

/// The halves of the table of guesses hold so many at the most.
const MOST_GUESSES: usize = 1 << 18;

impl<'a> ChipEvaluator<'a> {
    /// Of a setup whose facts outlive it in `memory`.
    ///
    /// # Errors
    /// Which model cannot be trained on these terms at all, and why.
    pub fn new(
        setup: &'a ChipSetup,
        memory: &'a dyn Memory,
    ) -> Result<Self, (String, Untrainable)> {
        let lens = setup.grid.lens();
        let evaluator = Self {
            table: EstimateTable::new(setup.terms(&setup.physics).options),
            grounds: (0..lens[LINKS]).map(|_| OnceLock::new()).collect(),
            shares: Shares::default(),
            facts: Mutex::default(),
            corners: Mutex::default(),
            implied: Implied::default(),
            frugal: Mutex::default(),
            bounds: (0..TABLES).map(|_| Mutex::new(Bounded::new(MOST_BOUNDS))).collect(),
            guesses: Mutex::new(Bounded::new(MOST_GUESSES)),
            setup,
            memory,
        };
        // Links decide how fast exchanges are, not what is legal: one ground stands for all.
        match evaluator.try_ground(usize::from(lens[LINKS]) - 1) {
            Ok(_) => Ok(evaluator),
            Err(reason) => {
                let names: Vec<&str> =
                    setup.request.models.iter().map(|model| model.name.as_str()).collect();
                Err((names.join(", "), reason.clone()))
            }
        }
    }

    fn try_ground(&self, links: usize) -> &Result<Ground, Untrainable> {
        self.grounds[links].get_or_init(|| Ground::new(self.setup, &self.shares, links))
    }

    /// What chips with such links share.
    pub fn ground(&self, links: usize) -> &Ground {
        let ground = self.try_ground(links).as_ref();
        ground.expect("what can be trained does not depend on how fast links are")
    }

    /// Who finds the best way to train a model on chips with the links of a point.
    pub fn planner(&self, model: usize, point: &ChipPoint) -> Planner<'_> {
        let ground = self.ground(usize::from(point[LINKS]));
        Planner { terms: &ground.terms, training: &ground.trainings[model], table: &self.table }
    }

    /// The bounds of a model on chips with the links and the memory of a point.
    pub fn bound_of(&self, model: usize, point: &ChipPoint) -> &SpaceBound {
        let place = (usize::from(point[LINKS]), usize::from(point[STACKS]));
        let greatest = self.setup.grid.lens();
        let greatest = (usize::from(greatest[LINKS]) - 1, usize::from(greatest[STACKS]) - 1);
        // What no way to divide beats with the most memory and the fastest links tells which are looked at closely.
        if place == greatest {
            return &self.bounds_at(greatest, None)[model];
        }
        &self.bounds_at(place, Some(self.bounds_at(greatest, None)))[model]
    }

    /// The bounds of all models on chips with such links and so many stacks of memory, where those of the greatest are
    /// given or are asked for.
    fn bounds_at(
        &self,
        (links, stacks): (usize, usize),
        greatest: Option<&[Arc<SpaceBound>]>,
    ) -> &[Arc<SpaceBound>] {
        let ground = self.ground(links);
        ground.bounds[stacks].get_or_init(|| {
            let mut point = [0; N_CHIP_KNOBS];
            point[STACKS] = u16::try_from(stacks).expect("places are of 16 bits");
            let memory = self.setup.knobs(&point).design(&self.setup.grid.technology).hbm;
            let models = ground.sketches.iter().zip(&ground.trainings).enumerate();
            let each = models.map(|(model, (sketch, training))| {
                let greater = greatest.map(|greatest| Arc::clone(&greatest[model]));
                let own = sketch.with_memory(memory, greater);
                if greatest.is_none() {
                    own.prepare((&ground.terms, training));
                }
                Arc::new(own)
            });
            each.collect()
        })
    }

    /// A time that no way to train a model on any chip nowhere above a point can beat; `None` where
    /// surely nothing fits on any.
    pub fn least_time(&self, model: usize, point: &ChipPoint) -> Option<Time> {
        let mut seen = *point;
        for knob in BLIND {
            seen[knob] = 0;
        }
        let key = (model, seen);
        let table = seen.iter().fold(0_usize, |sum, &place| sum * 31 + usize::from(place)) % TABLES;
        let lock = || self.bounds[table].lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = lock().get(&key) {
            return known;
        }
        let standing = self.optimistic(model, &seen, point, Figures::Time);
        let least = standing.map(|standing| standing.time);
        lock().insert(key, least);
        least
    }

    /// A time that no way to train a model on any chip between two points can beat whose devices draw at most
    /// `cap` watts on average; `None` where even at rest they draw more.
    ///
    /// A batch takes at least the work of `most`, at the energies of `least`, and each device in use draws at
    /// rest what `least` does: u devices that draw at most the cap need work / (u · (cap − at rest)).
    pub fn least_time_within(
        &self,
        model: usize,
        (least, most): (&ChipPoint, &ChipPoint),
        cap: f64,
    ) -> Option<Time> {
        let setup = self.setup;
        let (low, high) = (setup.knobs(least), setup.knobs(most));
        let Some(chip) = high.optimistic(&low, &setup.grid.technology, &setup.physics) else {
            return Some(Time(0));
        };
        let left = cap * 1e6 - chip.static_power_uw() as f64;
        if left <= 0.0 {
            return None;
        }
        let ground = self.ground(usize::from(most[LINKS]));
        let (terms, training) = (&ground.terms, &ground.trainings[model]);
        let (working, both) = (chip.drawing_nothing_at_rest(), Figures::TimeAndEnergy);
        let work = self.bound_of(model, most).least((terms, training), &working, both)?.energy;
        let seconds = work.joules() * 1e6 / (left * setup.request.devices as f64);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "not negative, rounded down, and lowered by more than floats lose"
        )]
        let time = Time((seconds * Time::PER_SECOND as f64 * (1.0 - 1e-9)) as u64);
        Some(time)
    }

    /// A time and an energy that no way to train a model on any chip between two points can beat.
    pub fn optimistic(
        &self,
        model: usize,
        least: &ChipPoint,
        most: &ChipPoint,
        figures: Figures,
    ) -> Option<Standing> {
        let setup = self.setup;
        let (low, high) = (setup.knobs(least), setup.knobs(most));
        // For times alone any chip lends its energies, even one without a die.
        let technology = &setup.grid.technology;
        let chip = match figures {
            Figures::Time => high.boundless(technology, &setup.physics),
            Figures::TimeAndEnergy => high.optimistic(&low, technology, &setup.physics),
        };
        let Some(chip) = chip else {
            // Nothing is known of what cannot be built.
            return Some(Standing { time: Time(0), energy: Energy::ZERO });
        };
        let ground = self.ground(usize::from(most[LINKS]));
        let asked = (&ground.terms, &ground.trainings[model]);
        self.bound_of(model, most).least(asked, &chip, figures)
    }

    /// What is known or can be found of a model on the chip at a point, where ways to train that are
    /// slower than `limit` need not be known.
    ///
    /// A chip that no die can hold is timed as if one could: what it draws is not known then.
    pub fn known(&self, model: usize, point: &ChipPoint, limit: Option<Time>) -> Fact {
        let lock = || self.facts.lock().unwrap_or_else(PoisonError::into_inner);
        let remembered = lock().get(&(model, *point)).cloned();
        if let Some(known) = remembered.and_then(|known| known.within(limit)) {
            return known;
        }
        let key = Self::key(model, point);
        // A fact that does not read as one is found again.
        let recalled = self.memory.recall(&key).and_then(|fact| serde_json::from_str(fact).ok());
        let recalled = recalled.and_then(|known: Fact| known.within(limit));
        let known = recalled.unwrap_or_else(|| {
            let known = self.find(model, point, limit);
            let fact = serde_json::to_string(&known).expect("plain figures can be written");
            self.memory.remember(&key, &fact);
            known
        });
        lock().insert((model, *point), known.clone());
        known
    }

    /// Whether some way to train a model on the greatest chip of a box, or on one that has no more of the proved
    /// knobs, may take at most `limit`.
    ///
    /// Those with as many lanes are nearly alike, however they are dealt to cores: what none of them reaches is asked
    /// once.
    pub fn reach(&self, model: usize, greatest: &Greatest, limit: Time) -> Reach {
        let anyhow = greatest.with_lanes_anyhow(self.setup);
        let among_all = self.reach_of(model, &anyhow, limit);
        if anyhow == *greatest || !matches!(among_all, Reach::Within(_)) {
            return among_all;
        }
        self.reach_of(model, greatest, limit)
    }

    fn reach_of(&self, model: usize, greatest: &Greatest, limit: Time) -> Reach {
        let heard = match self.implied.within(model, greatest, limit) {
            Ok(implied) => return implied,
            Err(heard) => heard,
        };
        let known = self.known_corner(model, greatest).and_then(|known| known.within(limit));
        let found = if let Some(reach) = known {
            Reached { reach, slower: Vec::new(), by: None }
        } else {
            let found = self.find_reach(model, greatest, limit, &heard);
            self.learn_corner(model, greatest, |known| known.learn(found.reach, limit));
            found
        };
        let reach = found.reach;
        self.implied.learn(model, greatest, limit, found);
        reach
    }

    /// Lets what corners said until now speak for other corners.
    pub(super) fn settle(&self) {
        self.implied.settle();
    }

    fn find_reach(&self, model: usize, greatest: &Greatest, limit: Time, heard: &Heard) -> Reached {
        let Some(chip) = self.greatest_chip(greatest) else {
            return Reached { reach: Reach::Nothing, slower: Vec::new(), by: None };
        };
        let planner = self.planner(model, &greatest.point);
        planner.reach(&chip, self.bound_of(model, &greatest.point), limit, heard)
    }

    /// What is known of a greatest corner, also from before.
    fn known_corner(&self, model: usize, greatest: &Greatest) -> Option<KnownCorner> {
        let lock = || self.corners.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = lock().get(&(model, *greatest)) {
            return Some(*known);
        }
        // What does not read as one is found again.
        let recalled = self.memory.recall(&self.corner_key(model, greatest))?;
        let recalled: KnownCorner = serde_json::from_str(recalled).ok()?;
        Some(*lock().entry((model, *greatest)).or_insert(recalled))
    }

    fn learn_corner(&self, model: usize, greatest: &Greatest, learn: impl Fn(&mut KnownCorner)) {
        let mut corners = self.corners.lock().unwrap_or_else(PoisonError::into_inner);
        let known = corners.entry((model, *greatest)).or_default();
        learn(known);
        let fact = serde_json::to_string(known).expect("plain figures can be written");
        // While nobody else may learn of it: the last word is what is kept.
        self.memory.remember(&self.corner_key(model, greatest), &fact);
    }

    /// Takes up how a chip trains all models.
    pub fn take_up(&self, kept: &KeptChip) {
        let mut facts = self.facts.lock().unwrap_or_else(PoisonError::into_inner);
        for (model, chosen) in kept.found.iter().enumerate() {
            let known = Fact::Chosen(Box::new(*chosen));
            facts.entry((model, kept.point)).or_insert(known);
        }
    }

    /// A time that no way to train a model can beat on the greatest chip of a box, nor on any that has no more
    /// of the proved knobs, where what is slower than `limit` need not be known.
    pub fn corner(&self, model: usize, greatest: &Greatest, limit: Time) -> Corner {
        let known = self.known_corner(model, greatest).and_then(|known| known.least_within(limit));
        known.unwrap_or_else(|| {
            let Some(chip) = self.greatest_chip(greatest) else { return Corner::Nothing };
            let planner = self.planner(model, &greatest.point);
            let found = planner.corner(&chip, self.bound_of(model, &greatest.point), Some(limit));
            self.learn_corner(model, greatest, |known| known.learn_least(found));
            found
        })
    }

    /// Whether some way to train a model on a chip of a box, in which only proved knobs vary and whose chips have at
    /// most so many lanes in all, may take at most `limit` for a batch; the least of all where that is asked for.
    pub fn reach_energy(
        &self,
        model: usize,
        (region, lanes): (&ChipRegion, u64),
        (limit, asks_for_least): (Energy, bool),
    ) -> EnergyReach {
        let lock = || self.frugal.lock().unwrap_or_else(PoisonError::into_inner);
        lock().insert((model, *region));
        let Some(chip) = self.frugal_chip(region, lanes) else { return EnergyReach::Nothing };
        let planner = self.planner(model, &region.hi);
        planner.reach_energy(&chip, self.bound_of(model, &region.hi), (limit, asks_for_least))
    }

    /// The greatest chip of a box with the energies and the power at rest of the least; `None` where it holds no
    /// tile.
    fn frugal_chip(&self, region: &ChipRegion, lanes: u64) -> Option<Accelerator> {
        let setup = self.setup;
        let (low, high) = (setup.knobs(&region.lo), setup.knobs(&region.hi));
        let technology = &setup.grid.technology;
        let chip = high.greatest_at_energies_of(&low, technology, &setup.physics)?;
        let fed_alike = setup.physics.vector_local.is_none();
        Some(chip.with_most_lanes(MostLanes { lanes, fed_alike }))
    }

    /// About how much a model takes on the chips of a box, from how it trains on one that is known.
    pub fn guess_energy(
        &self,
        model: usize,
        (region, greatest): (&ChipRegion, &Greatest),
        (known, chosen): (&ChipPoint, &Chosen),
    ) -> Option<Energy> {
        let way = self.planner(model, known).way_of(&chosen.strategy)?;
        let time = self.guess(model, greatest, (known, chosen))?;
        let there = self.frugal_chip(region, greatest.lanes)?;
        let own = ChipRegion::point(*known);
        let here = self.frugal_chip(&own, Greatest::of_point(self.setup, known).lanes)?;
        let standing = chosen.standing;
        let at_rest = |chip: &Accelerator, time: Time| {
            chip.static_power_uw() as f64 * time.0 as f64 / 1000.0 * chosen.devices as f64
        };
        let work = |chip: &Accelerator, point: &ChipPoint| {
            Some(self.planner(model, point).least_work(chip, way)?.0 as f64)
        };
        let working = (standing.energy.0 as f64 - at_rest(&here, standing.time)).max(0.0);
        let ratio = work(&there, &region.hi)? / work(&here, known)?.max(1.0);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "energies are positive; a guess may be rounded"
        )]
        let energy = Energy((working * ratio + at_rest(&there, time)) as u128);
        Some(energy)
    }

    /// The chip of a greatest corner, which stands for chips with any of its arrays and with as many lanes at the
    /// most; `None` where no such chip can hold a tile.
    fn greatest_chip(&self, greatest: &Greatest) -> Option<Accelerator> {
        let fed_alike = self.setup.physics.vector_local.is_none();
        let most = MostLanes { lanes: greatest.lanes, fed_alike };
        let each = self.setup.with_each(greatest.kin, &greatest.point).into_iter();
        let mut each = each.filter_map(|point| self.chip(&point));
        let first = each.next()?;
        let others: Vec<Accelerator> = each.collect();
        Some(first.with_arrays_of(&others).with_most_lanes(most))
    }

    /// About how long a model takes on the greatest chip of a box, from how it trains on one that is known.
    pub fn guess(
        &self,
        model: usize,
        greatest: &Greatest,
        (known, chosen): (&ChipPoint, &Chosen),
    ) -> Option<Time> {
        let way = self.planner(model, known).way_of(&chosen.strategy)?;
        // However lanes are dealt to cores, as for what corners reach: then most are guessed already.
        let by = |greatest: &Greatest| {
            self.guess_by(model, &greatest.with_lanes_anyhow(self.setup), way)
        };
        let there = by(greatest)?.0 as f64;
        let here = by(&Greatest::of_point(self.setup, known))?.0 as f64;
        let ratio = chosen.standing.time.0 as f64 / here.max(1.0);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "times are positive; a guess may be rounded"
        )]
        let time = Time((there * ratio) as u64);
        Some(time)
    }

    fn guess_by(&self, model: usize, greatest: &Greatest, way: Way) -> Option<Time> {
        let key = (model, *greatest, way);
        let lock = || self.guesses.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = lock().get(&key) {
            return known;
        }
        let (chip, point) = (self.greatest_chip(greatest)?, &greatest.point);
        let found = self.planner(model, point).guess(&chip, self.bound_of(model, point), way);
        lock().insert(key, found);
        found
    }

    fn find(&self, model: usize, point: &ChipPoint, limit: Option<Time>) -> Fact {
        let Some(chip) = self.chip(point) else { return Fact::Nothing };
        let planner = self.planner(model, point);
        match planner.best_within(&chip, self.bound_of(model, point), limit) {
            Within::Best(best) => Fact::Chosen(Box::new(best.chosen)),
            Within::Slower(limit) => Fact::Slower(limit),
            Within::Nothing => Fact::Nothing,
        }
    }

    /// The chip at a point, though no die might hold it; `None` where a buffer holds no tile.
    pub fn chip(&self, point: &ChipPoint) -> Option<Accelerator> {
        let setup = self.setup;
        let (knobs, technology) = (setup.knobs(point), &setup.grid.technology);
        let made = knobs.accelerator(technology, &setup.physics);
        made.ok().or_else(|| knobs.dieless(technology, &setup.physics))
    }

    /// The best way to train a model on the chip at a point, with all that it rests on.
    pub fn best(&self, model: usize, point: &ChipPoint) -> Option<Best> {
        let chip = self.chip(point)?;
        self.planner(model, point).best(&chip, self.bound_of(model, point))
    }

    /// The part of a model's time at a point that is certain where some schedule is not proved;
    /// `None` where its time is not known.
    pub fn certain_part(&self, model: usize, point: &ChipPoint) -> Option<f64> {
        let facts = self.facts.lock().unwrap_or_else(PoisonError::into_inner);
        let recalled = || serde_json::from_str(self.memory.recall(&Self::key(model, point))?).ok();
        match facts.get(&(model, *point)).cloned().or_else(recalled) {
            Some(Fact::Chosen(chosen)) => Some(chosen.certain_part(self.price())),
            _ => None,
        }
    }

    fn price(&self) -> Price {
        match self.setup.request.objective {
            crate::search::Objective::EnergyPerToken => Price::Energy,
            _ => Price::Time,
        }
    }

    /// How many times a model was trained on a chip, or on the greatest of a box, within a limit or not.
    pub fn n_evaluated(&self) -> usize {
        let corners = self.corners.lock().unwrap_or_else(PoisonError::into_inner).len();
        let frugal = self.frugal.lock().unwrap_or_else(PoisonError::into_inner).len();
        corners + frugal + self.facts.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Whether what was recalled from before is found again, for all chips of which something is told
    /// and for some of the others: nobody's word is taken for an answer. Else the chip of which it is
    /// not.
    ///
    /// # Errors
    /// The places of that chip's values.
    pub fn is_believed(&self, survey: &ChipSurvey) -> Result<(), String> {
        let near = survey.near.iter().flat_map(|near| &near.1.kept);
        let alone = survey.alone.iter().flat_map(|alone| &alone.kept);
        let told = survey.walk.kept.iter().chain(near).chain(alone);
        self.finds_again(&told.map(|kept| kept.point).collect())
    }

    /// The same for these chips and some of the others.
    ///
    /// # Errors
    /// As of [`Self::is_believed`].
    pub(super) fn finds_again(&self, told: &BTreeSet<ChipPoint>) -> Result<(), String> {
        let facts = self.facts.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let step = facts.len().div_ceil(SAMPLE).max(1);
        for (at, ((model, point), known)) in facts.iter().enumerate() {
            if at % step != 0 && !told.contains(point) {
                continue;
            }
            let limit = match known {
                Fact::Slower(limit) => Some(*limit),
                Fact::Chosen(_) | Fact::Nothing => None,
            };
            let found = self.find(*model, point, limit);
            let written = |known: &Fact| serde_json::to_string(known).unwrap_or_default();
            if written(&found) != written(known) {
                return Err(Self::key(*model, point));
            }
        }
        let corners = self.corners.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let step = corners.len().div_ceil(SAMPLE).max(1);
        for ((model, greatest), known) in corners.iter().step_by(step) {
            let nothing = Heard::default();
            let find = |limit| self.find_reach(*model, greatest, limit, &nothing).reach;
            if !known.is_found(find) {
                return Err(self.corner_key(*model, greatest));
            }
        }
        Ok(())
    }

    /// Where facts outlive the search.
    pub(super) fn memory(&self) -> &'a dyn Memory {
        self.memory
    }

    /// The table of estimates that all evaluations share.
    pub fn table(&self) -> &EstimateTable {
        &self.table
    }

    /// Whether facts can no longer be kept.
    pub fn fails(&self) -> bool {
        self.memory.fails()
    }

    /// Under what a journal keeps what is known of a corner.
    fn corner_key(&self, model: usize, greatest: &Greatest) -> String {
        let each = self.setup.with_each(greatest.kin, &greatest.point);
        let each: Vec<String> = each.iter().map(|point| Self::key(model, point)).collect();
        format!("{CORNER}{}/{}", each.join("+"), greatest.lanes)
    }

    /// Under what a journal keeps a fact.
    fn key(model: usize, point: &ChipPoint) -> String {
        let places = point.map(|place| place.to_string()).join(".");
        format!("{model}/{places}")
    }
}

/// Knobs that bounds know nothing of: the size and the bandwidth of the global buffer.
pub(super) const BLIND: [usize; 2] = [5, 6];

impl Ground {
    fn new(setup: &ChipSetup, shares: &Shares, links: usize) -> Result<Self, Untrainable> {
        let request = &setup.request;
        let terms = setup.terms(&setup.physics_with(links));
        let asked = request.models.iter().zip(&setup.models);
        let trainings = asked.map(|(asked, model)| {
            Training::with(shares, (&asked.name, model.clone()), asked.sequence, &terms)
        });
        let trainings: Vec<Training> = trainings.collect::<Result<_, _>>()?;
        let [widths, depths] = [1, 2].map(|knob| setup.grid.values(knob));
        let arrays = widths.iter().flat_map(|&w| depths.iter().map(move |&d| (w, d)));
        // And what stands for arrays of several kinds (`Accelerator::rooflines`).
        let arrays: Vec<(u64, u64)> = arrays.chain([(1, 1)]).collect();
        let sketch = |training| SpaceBound::new(training, arrays.clone(), &[]);
        Ok(Self {
            sketches: trainings.iter().map(sketch).collect(),
            bounds: (0..setup.grid.lens()[STACKS]).map(|_| OnceLock::new()).collect(),
            trainings,
            terms,
        })
    }
}
