//! Boxes against looking at every chip, on two thousand random small spaces of real chips: dies with pads,
//! watts, dollars, what is owned and emitted are those of the model, only times and energies are made up, so
//! that a space takes a millisecond. Every objective, every budget, caps of power, ties, nothing that fits.

use phaze::hardware::chip::CHIP_KNOBS;
use phaze::hardware::chip::ChipKnobs;
use phaze::input::request::RequestFile;
use phaze::input::request::ready_chips;
use phaze::input::source::no_files;
use phaze::search::Certainty;
use phaze::search::Judge;
use phaze::search::Objective;
use phaze::search::boxes::BoxProblem;
use phaze::search::boxes::Corner;
use phaze::search::boxes::Evaluation;
use phaze::search::boxes::Kept;
use phaze::search::boxes::Region;
use phaze::search::boxes::Value;
use phaze::search::boxes::Why;
use phaze::search::boxes::each_alone;
use phaze::search::boxes::place;
use phaze::search::boxes::walk;
use phaze::search::chips::ChipPoint;
use phaze::search::chips::ChipRegion;
use phaze::search::chips::ChipSetup;
use phaze::search::chips::judge;
use phaze::strategy::Standing;
use phaze::units::Energy;
use phaze::units::Time;

/// Spaces that are searched.
const SPACES: usize = 2000;

/// A step of the generator that Steele, Lea and Flood published as `SplitMix`.
struct Noise(u64);

impl Noise {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % n
    }

    fn of<T: Copy>(&mut self, list: &[T]) -> T {
        list[usize::try_from(self.below(list.len() as u64)).unwrap()]
    }

    /// One to three values of a list, ascending.
    fn some(&mut self, list: &[u64]) -> Vec<u64> {
        let mut found: Vec<u64> = (0..self.of(&[1, 2, 2, 3])).map(|_| self.of(list)).collect();
        found.sort_unstable();
        found.dedup();
        found
    }
}

/// Chips of a setup with times that are made up.
struct MadeUp<'a> {
    setup: &'a ChipSetup,
    judge: Judge,
    seed: u64,
    /// Times are multiples of this, so that many are equal.
    grain: u64,
    /// With fewer stacks nothing fits in memory.
    least_stacks: u64,
    /// Milliwatts.
    cap: Option<u128>,
}

impl MadeUp<'_> {
    /// Picoseconds that never rise along any knob.
    fn roofline(chip: &ChipKnobs) -> u64 {
        let macs = chip.tensor_cores * chip.width * chip.depth * chip.clock_mhz;
        let lanes = chip.vector_cores * chip.vector_width * chip.clock_mhz;
        let compute = 400_000_000_000_000_000 / macs;
        let vector = 10_000_000_000_000_000 / lanes;
        let memory = 3_000_000_000 / chip.stacks;
        compute.max(vector).max(memory) + 100_000_000_000 / chip.links_gb_per_s
    }

    /// From 0 to 15, jumping with the knobs that have no law.
    fn jump(&self, chip: &ChipKnobs) -> u64 {
        let mixed = chip.tensor_cores * 31 + chip.width * 17 + chip.depth * 7 + self.seed;
        mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60
    }

    /// Up to 30 % more than the roofline; it never rises along the proved knobs.
    fn time(&self, chip: &ChipKnobs) -> u64 {
        let room = chip.glb_mib / 8 * (chip.glb_bytes_per_cycle / 2048) * chip.stacks.min(2);
        let small = 16 / room.clamp(1, 16);
        let time = Self::roofline(chip) / 1000 * (1000 + 10 * self.jump(chip) + 9 * small);
        (time / self.grain + 1) * self.grain
    }

    /// Femtojoules of the work of a batch, which rise with the clock alone.
    fn work(chip: &ChipKnobs) -> u128 {
        u128::from(chip.clock_mhz) * u128::from(chip.clock_mhz) * 30_000_000
    }

    /// Milliwatts at rest: a part of the design power.
    fn at_rest(&self, chip: &ChipKnobs) -> Option<u128> {
        Some(u128::from(self.setup.figures(chip)?.tdp.total().0) / 8)
    }

    fn value(&self, standing: Standing, least: &ChipPoint, certainty: Certainty) -> Option<Value> {
        let taken = self.setup.footprint_for(self.judge.objective, &self.setup.knobs(least))?;
        let merit = self.judge.merit(&[standing], taken, certainty);
        let place = place(self.lens(), least);
        Some(Value { first: merit.value, second: merit.area, place })
    }

    /// Boxes are then closed by times of their greatest chip with the energies of the least.
    fn by_energy(&self) -> bool {
        self.judge.objective == Objective::EnergyPerToken
    }

    /// Every chip within the budget on which something can be done, the best first.
    fn exhaustive(&self) -> Vec<(Value, ChipPoint)> {
        let mut points: Vec<ChipPoint> = vec![[0; 10]];
        for (knob, len) in self.lens().into_iter().enumerate() {
            let each = points.iter().flat_map(|point| {
                (0..len).map(move |at| {
                    let mut next = *point;
                    next[knob] = at;
                    next
                })
            });
            points = each.collect();
        }
        let found = points.into_iter().filter(|point| self.fits(point)).filter_map(|point| {
            match self.evaluate(&point, None) {
                Evaluation::Found(value, ()) => Some((value, point)),
                _ => None,
            }
        });
        let mut found: Vec<_> = found.collect();
        found.sort_unstable();
        found
    }
}

impl BoxProblem<10> for MadeUp<'_> {
    type Found = ();

    fn lens(&self) -> [u16; 10] {
        self.setup.grid.lens()
    }

    fn proved(&self) -> [bool; 10] {
        std::array::from_fn(|knob| CHIP_KNOBS[knob].proved)
    }

    fn blind(&self) -> [bool; 10] {
        std::array::from_fn(|knob| CHIP_KNOBS[knob].name.starts_with("glb"))
    }

    fn rises(&self) -> bool {
        self.judge.objective != Objective::Throughput || self.cap.is_some()
    }

    fn fits(&self, point: &ChipPoint) -> bool {
        let grid = &self.setup.grid;
        grid.budget.allows(&grid.chip(point).chip(&grid.technology), &grid.technology)
    }

    fn bound(&self, region: &ChipRegion) -> Option<Value> {
        let [low, high] = [&region.lo, &region.hi].map(|point| self.setup.knobs(point));
        if high.stacks < self.least_stacks {
            return None;
        }
        let mut time = Self::roofline(&high) / 1000 * 1000;
        let (work, at_rest) = (Self::work(&low), self.at_rest(&low)?);
        if let Some(cap) = self.cap {
            let left = cap.checked_sub(at_rest).filter(|left| *left > 0)?;
            time = time.max(u64::try_from(work / left).unwrap_or(u64::MAX));
        }
        let energy = Energy(work + at_rest * u128::from(time));
        self.value(Standing { time: Time(time), energy }, &region.lo, Certainty::Bound)
    }

    fn kin(&self, point: &ChipPoint) -> Option<u64> {
        (!self.by_energy()).then(|| self.setup.kin(point).class())
    }

    fn corner(&self, boxes: &[ChipRegion], limit: Option<Value>) -> Corner {
        each_alone(boxes, |region| {
            let high = self.setup.knobs(&region.hi);
            if high.stacks < self.least_stacks {
                return Corner::Nothing;
            }
            // What a cap rules out of larger chips says nothing of smaller ones.
            let time = self.time(&high);
            let low = self.setup.knobs(&region.lo);
            let Some(at_rest) = self.at_rest(&low) else { return Corner::Nothing };
            let energy = Energy(Self::work(&low) + at_rest * u128::from(time));
            let standing = Standing { time: Time(time), energy };
            match self.value(standing, &region.lo, Certainty::Bound) {
                None => Corner::Nothing,
                Some(value) if limit.is_some_and(|limit| value >= limit) => Corner::Beyond,
                Some(value) => Corner::Reached(value),
            }
        })
    }

    fn guess(&self, boxes: &[ChipRegion], like: &Kept<10, ()>, worst: Value) -> f64 {
        let each = boxes.iter().map(|region| {
            // Off by up to a quarter: a guess decides no answer.
            let high = self.setup.knobs(&region.hi);
            let off = 750 + (high.tensor_cores * 131 + u64::from(like.point[0])) % 500;
            let time = Time(Self::roofline(&high) / 1000 * off);
            let low = self.setup.knobs(&region.lo);
            let at_rest = self.at_rest(&low).unwrap_or_default();
            let energy = Energy(Self::work(&low) + at_rest * u128::from(time.0));
            let standing = Standing { time, energy };
            let value = self.value(standing, &region.lo, Certainty::Fact);
            value.map_or(f64::INFINITY, |value| value.first as f64 / (worst.first as f64).max(1.0))
        });
        each.fold(f64::INFINITY, f64::min)
    }

    fn evaluate(&self, point: &ChipPoint, limit: Option<Value>) -> Evaluation<()> {
        let chip = self.setup.knobs(point);
        let Some(at_rest) = self.at_rest(&chip).filter(|_| chip.stacks >= self.least_stacks) else {
            return Evaluation::Nothing;
        };
        let time = self.time(&chip);
        let energy = Self::work(&chip) + at_rest * u128::from(time);
        if self.cap.is_some_and(|cap| energy > cap * u128::from(time)) {
            return Evaluation::Nothing;
        }
        let standing = Standing { time: Time(time), energy: Energy(energy) };
        match self.value(standing, point, Certainty::Fact) {
            None => Evaluation::Nothing,
            Some(value) if limit.is_some_and(|limit| value >= limit) => Evaluation::Beyond,
            Some(value) => Evaluation::Found(value, ()),
        }
    }
}

/// A random space; `None` where not even its smallest chip keeps within the budget.
fn space(noise: &mut Noise, objective: &str) -> Option<ChipSetup> {
    let lists: [(&str, &[u64]); 10] = [
        ("tensor_cores", &[1, 3, 6, 16, 27, 40]),
        ("width", &[32, 64, 128, 256]),
        ("depth", &[32, 128]),
        ("vector_cores", &[4, 16, 64, 256]),
        ("vector_width", &[64, 128, 512]),
        ("glb_mib", &[8, 32, 128]),
        ("glb_bytes_per_cycle", &[2048, 8192, 16_384]),
        ("clock_mhz", &[900, 1200, 1500, 1800]),
        ("stacks", &[1, 2, 4, 5, 6]),
        ("links", &[25, 100, 400, 1600]),
    ];
    let knobs = lists.map(|(name, list)| format!("{name} = {:?}\n", noise.some(list)));
    let price = match noise.below(3) {
        0 => format!("price_usd = {}\n", noise.of(&[800, 1500, 2500])),
        _ => String::new(),
    };
    let text = format!(
        "[[model]]\nname = \"bert-large\"\n[job]\ndevices = 8\nglobal_batch = 64\n[space]\n{}\
         max_area_mm2 = {}\n[chip]\nprocess_nm = {}\nmemory = \"{}\"\nprecision = \"{}\"\n\
         network = \"{}\"\ntdp_w = {}\n{price}[search]\nobjective = \"{objective}\"\n",
        knobs.concat(),
        noise.of(&[150, 300, 545, 700, 858]),
        noise.of(&[3, 5, 5]),
        noise.of(&["hbm2e", "hbm3e", "hbm4"]),
        noise.of(&["bf16", "fp8"]),
        noise.of(&["torus", "flat", "nodes"]),
        noise.of(&[80, 200, 400, 700, 2000]),
    );
    ready_chips(&RequestFile::read(&text, "test").unwrap(), "test", &no_files).ok()
}

#[test]
fn boxes_find_the_best_of_two_thousand_spaces_of_real_chips() {
    let mut noise = Noise(0xB0_CE5);
    let objectives = [
        "throughput",
        "throughput-per-area",
        "cost-per-token",
        "carbon-per-token",
        "energy-per-token",
    ];
    let (mut searched, mut nothing, mut tied, mut padded, mut capped) = (0, 0, 0, 0, 0);
    while searched < SPACES {
        let Some(setup) = space(&mut noise, objectives[searched % objectives.len()]) else {
            continue;
        };
        let problem = MadeUp {
            judge: judge(&setup),
            setup: &setup,
            seed: noise.below(u64::MAX),
            grain: noise.of(&[1, 1, 2_000_000_000]),
            least_stacks: noise.of(&[1, 1, 2, 6]),
            cap: noise.of(&[None, None, Some(60_000), Some(150_000)]),
        };
        let top = usize::try_from(1 + noise.below(3)).unwrap();
        let whole = Region::whole(problem.lens());
        let walked = walk(&problem, whole, (top, Vec::new()), "space", &());
        let all = problem.exhaustive();
        let found: Vec<_> = walked.kept.iter().map(|kept| (kept.value, kept.point)).collect();
        assert_eq!(found, all[..all.len().min(top)], "space {searched}");
        assert!(walked.complete());
        let volume: u128 = walked.closed.iter().map(|closed| closed.region.volume()).sum();
        assert_eq!(volume, whole.volume(), "space {searched}");
        searched += 1;
        nothing += usize::from(all.is_empty());
        tied += usize::from(all.windows(2).any(|pair| pair[0].0.first == pair[1].0.first));
        let edge = |point: &ChipPoint| setup.figures(&setup.knobs(point)).unwrap().die.edge.0 > 0;
        padded += usize::from(all.first().is_some_and(|(_, best)| edge(best)));
        let by_corner = |why: Why| matches!(why, Why::Corner(_) | Why::CornerNothing);
        let corners = walked.closed.iter().any(|closed| by_corner(closed.why));
        capped += usize::from(problem.cap.is_some() && corners);
    }
    println!(
        "{nothing} without a chip, {tied} tied, {padded} with pads, {capped} capped by corners"
    );
    assert!(nothing > 100 && tied > 100 && padded > 50 && capped > 100);
}
