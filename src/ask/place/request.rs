//! What can be asked of a placement: settings with their defaults, and the question they make.

use crate::ask::Keywords;
use crate::ask::Refusal;
use crate::ask::Spelling;
use crate::ask::chip::ChipRequest;
use crate::input::Conventions;
use crate::input::InputError;
use crate::input::batch::default_sequence;
use crate::input::batch::devices_of_nodes;
use crate::input::batch::nearest_batch;
use crate::input::batch::read_tokens;
use crate::input::imbalance;
use crate::input::numbers::Field;
use crate::input::place;
use crate::input::place::Basics;
use crate::input::place::LARGEST_DEGREE;
use crate::input::place::LARGEST_SEQUENCE;
use crate::input::source;
use crate::input::source::Reader;
use crate::input::strategy;
use crate::model::Attention;
use crate::model::Module;
use crate::model::Modules;
use crate::model::Optimizer;
use crate::model::Precision;
use crate::parallel::frameworks::Framework;
use crate::parallel::zero::Zero;
use crate::plan::GivenStrategy;
use crate::plan::Job;
use crate::plan::Question;
use crate::plan::Recompute;
use crate::plan::StrategySpace;
use crate::plan::TimeModel;

/// What is asked; what is left out has a default. Settings are named as in request files.
#[derive(Clone, Debug, Default)]
#[expect(missing_docs, reason = "docs/python.md and `phaze place --help` describe every setting")]
pub struct PlaceRequest {
    pub model: String,
    pub chip: ChipRequest,
    pub sequence: Option<u64>,
    pub attention: Option<Attention>,
    pub sequence_parallel: bool,
    pub devices: Option<u64>,
    pub nodes: Option<u64>,
    pub global_batch: Option<u64>,
    pub batch_tokens: Option<String>,
    pub micro_batches: Option<Vec<u64>>,
    pub tensor_parallel: Option<Vec<u64>>,
    pub context_parallel: Option<Vec<u64>>,
    pub expert_parallel: Option<Vec<u64>>,
    pub expert_tensor: Option<Vec<u64>>,
    pub imbalance: Option<f64>,
    pub mtp: Option<u64>,
    pub zero: Option<u64>,
    pub recompute: Option<RecomputeChoice>,
    /// The part of memory that is left free.
    pub reserve: Option<f64>,
    pub launchable: Option<String>,
    pub optimizer: Option<Optimizer>,
    pub time_model: Option<TimeModel>,
    pub strategy: Option<String>,
    pub precision: Option<Precision>,
    /// Whether the fewest devices are looked for first.
    pub fit: bool,
    pub published: bool,
}

/// What is dropped after the forward pass and computed again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecomputeChoice {
    /// Keep every activation.
    None,
    /// Keep each stage's inputs, run the stage's forward pass again; all but the last stage.
    Stage,
    /// Keep each layer's input, run the layer's forward pass again.
    Full,
    /// Run attention's core again, where its probabilities would be kept.
    Selective,
    /// Whichever is fastest and fits: in each stage as many layers as memory asks for.
    Auto,
}

impl RecomputeChoice {
    /// The choices by name.
    pub const NAMES: [(&str, Self); 5] = [
        ("none", Self::None),
        ("stage", Self::Stage),
        ("full", Self::Full),
        ("selective", Self::Selective),
        ("auto", Self::Auto),
    ];

    /// The choices for a user's own layers.
    pub fn choices(self) -> Vec<Recompute> {
        match self {
            Self::None | Self::Selective => vec![Recompute::None],
            Self::Stage => vec![Recompute::Stage],
            Self::Full => vec![Recompute::Full],
            Self::Auto => Recompute::ALL.to_vec(),
        }
    }

    /// Leaves of a model's space only this choice.
    fn narrow(self, space: &mut StrategySpace) {
        let core = Modules::NONE.with(Module::CoreAttention);
        match self {
            Self::None | Self::Selective => space.recompute = vec![Recompute::None],
            Self::Stage => space.recompute = vec![Recompute::Stage],
            Self::Full => space.recompute = vec![Recompute::EVERY_LAYER],
            Self::Auto => {}
        }
        match self {
            Self::Selective => space.repeated = vec![core],
            Self::Auto => {}
            Self::None | Self::Stage | Self::Full => space.repeated = vec![Modules::NONE],
        }
    }
}

/// The kernels of attention by name.
pub const ATTENTIONS: [(&str, Attention); 4] = [
    ("fused", Attention::Recomputed),
    ("unfused", Attention::Stored),
    ("recomputed", Attention::Recomputed),
    ("stored", Attention::Stored),
];

/// The ways to count the time of a batch by name.
pub const TIME_MODELS: [(&str, TimeModel); 2] =
    [("1f1b", TimeModel::OneForwardOneBackward), ("published", TimeModel::Published)];

/// The precisions by name.
pub const PRECISIONS: [(&str, Precision); 2] = [("bf16", Precision::Bf16), ("fp8", Precision::Fp8)];

impl PlaceRequest {
    /// What the keywords ask of `model`.
    ///
    /// # Errors
    /// What is not known or of another kind.
    pub fn read(model: &str, mut given: Keywords) -> Result<Self, InputError> {
        let request = Self {
            model: model.to_owned(),
            chip: ChipRequest::take(&mut given)?,
            sequence: given.take("sequence")?,
            attention: given.word("attention", &ATTENTIONS)?,
            sequence_parallel: given.switch("sequence_parallel")?,
            devices: given.take("devices")?,
            nodes: given.take("nodes")?,
            global_batch: given.take("global_batch")?,
            batch_tokens: given.take("batch_tokens")?,
            micro_batches: given.take("micro_batches")?,
            tensor_parallel: given.take("tensor_parallel")?,
            context_parallel: given.take("context_parallel")?,
            expert_parallel: given.take("expert_parallel")?,
            expert_tensor: given.take("expert_tensor")?,
            imbalance: given.take("imbalance")?,
            mtp: given.take("mtp")?,
            zero: given.take("zero")?,
            recompute: given.word("recompute", &RecomputeChoice::NAMES)?,
            reserve: given.take("reserve")?,
            launchable: given.take("launchable")?,
            optimizer: given
                .word("optimizer", &Optimizer::ALL.map(|known| (known.name(), known)))?,
            time_model: given.word("time_model", &TIME_MODELS)?,
            strategy: given.take("strategy")?,
            precision: given.word("precision", &PRECISIONS)?,
            fit: given.switch("fit")?,
            published: given.switch("published")?,
        };
        given.end()?;
        Ok(request)
    }

    fn spelled(&self, key: &str) -> String {
        self.chip.spelling.of(key)
    }

    /// The question that is asked, every default filled in, and the space of strategies before a
    /// part was given.
    ///
    /// # Errors
    /// What cannot be read, is not known, or makes no sense.
    pub fn question(&self, read: &Reader) -> Result<(Question, StrategySpace), Refusal> {
        self.contradictions()?;
        self.ranges()?;
        let conventions = Conventions::of(self.published);
        let design = match (&self.chip.design, self.published) {
            (None, false) => return Err(Refusal::Options(self.no_design())),
            _ => self.chip.source(read)?,
        };
        let given = match &self.strategy {
            Some(text) => strategy::read(text, &self.spelled("strategy"))?,
            None => GivenStrategy::default(),
        };
        let (model, _) = source::model(&self.model, read)?;
        let longest = model.spec.max_sequence;
        let usual = if self.published { longest } else { default_sequence(longest) };
        let sequence = self.sequence.unwrap_or(usual);
        let batch_tokens = self.spelled("batch_tokens");
        let basics = Basics {
            model: &self.model,
            hardware: &design.name,
            devices: self.devices(&given, read)?,
            sequence: Some(sequence),
            global_batch: match &self.batch_tokens {
                Some(text) => Some(nearest_batch(read_tokens(text, &batch_tokens)?, sequence)),
                None => self.global_batch,
            },
            attention: self.attention,
            framework: self.launchable.as_deref().map(|name| self.framework(name)).transpose()?,
        };
        let mut question = place::question(&basics, conventions, read)?;
        question.knobs.clone_from(&self.chip.knobs);
        question.efficiency = self.chip.efficiency(read)?;
        question.imbalance_per_mille = match self.imbalance {
            Some(factor) => Some(imbalance::read(factor, &self.spelled("imbalance"))?),
            None => None,
        };
        question.next_tokens = self.mtp;
        question.precision = self.precision.unwrap_or_default();
        question.optimizer = self.optimizer.unwrap_or(question.optimizer);
        question.time_model = self.time_model.unwrap_or(question.time_model);
        if let Some(part) = self.reserve {
            question.reserve_per_mille = self.reserve(part)?;
        }
        let whole = question.space.clone();
        self.narrow(&mut question)?;
        given.narrow(&mut question.space);
        Ok((question, whole))
    }

    /// Refuses counts beyond what can be counted with.
    fn ranges(&self) -> Result<(), InputError> {
        for (key, found, most) in [
            ("sequence", self.sequence, LARGEST_SEQUENCE),
            ("devices", self.devices, Job::LARGEST_COUNT),
            ("nodes", self.nodes, Job::LARGEST_COUNT),
            ("global_batch", self.global_batch, Job::LARGEST_COUNT),
        ] {
            found.map_or(Ok(0), |found| self.field(key).whole(found, 1, most))?;
        }
        for (key, found) in [
            ("micro_batches", &self.micro_batches),
            ("tensor_parallel", &self.tensor_parallel),
            ("context_parallel", &self.context_parallel),
            ("expert_parallel", &self.expert_parallel),
            ("expert_tensor", &self.expert_tensor),
        ] {
            if found.as_ref().is_some_and(Vec::is_empty) {
                return Err(self.field(key).missing("give at least one number"));
            }
            for &number in found.iter().flatten() {
                self.field(key).whole(number, 1, LARGEST_DEGREE)?;
            }
        }
        Ok(())
    }

    fn field(&self, key: &str) -> Field {
        Field::new("place", &self.spelled(key))
    }

    /// Refuses settings of which only one can hold.
    fn contradictions(&self) -> Result<(), Refusal> {
        let pairs = [
            ("devices", self.devices.is_some(), "nodes", self.nodes.is_some()),
            ("devices", self.devices.is_some(), "fit", self.fit),
            ("nodes", self.nodes.is_some(), "fit", self.fit),
            (
                "global_batch",
                self.global_batch.is_some(),
                "batch_tokens",
                self.batch_tokens.is_some(),
            ),
        ];
        match pairs.iter().find(|(_, one, _, other)| *one && *other) {
            None => Ok(()),
            Some((one, _, other, _)) => Err(Refusal::Options(format!(
                "{} and {} say the same twice; give one of them",
                self.spelled(one),
                self.spelled(other)
            ))),
        }
    }

    fn no_design(&self) -> String {
        let known = crate::input::hardware::preset_names().join(", ");
        let design = self.spelled("design");
        format!("{design} is missing: name an accelerator ({known}) or give a hardware file")
    }

    /// Leaves of the space what single settings ask for.
    fn narrow(&self, question: &mut Question) -> Result<(), Refusal> {
        let batch = question.global_batch;
        let space = &mut question.space;
        if let Some(sizes) = &self.micro_batches {
            space.micro_batches = self.micro_batches(sizes, batch)?;
        }
        if let Some(widths) = &self.tensor_parallel {
            space.tensor_parallel = ascending(widths);
        }
        if let Some(degrees) = &self.context_parallel {
            space.context_parallel = ascending(degrees);
        }
        if let Some(degrees) = &self.expert_parallel {
            space.expert_parallel = ascending(degrees);
        }
        if let Some(degrees) = &self.expert_tensor {
            space.expert_tensor = ascending(degrees);
        }
        if self.sequence_parallel {
            space.sequence_parallel = vec![true];
        }
        if let Some(stage) = self.zero {
            let zero = usize::try_from(stage).ok().and_then(Zero::of_stage);
            let Some(zero) = zero else {
                let option = self.spelled("zero");
                return Err(Refusal::Options(format!("{option} {stage} is none of 0, 1, 2 and 3")));
            };
            (space.zero, space.zero_in_pipelines) = (vec![zero], vec![zero]);
        }
        if let Some(choice) = self.recompute {
            choice.narrow(space);
        }
        Ok(())
    }

    fn framework(&self, name: &str) -> Result<Framework, Refusal> {
        let known = ["megatron", "bridge", "nemo", "torchtitan", "maxtext", "any"];
        name.parse().map_err(|_| {
            Refusal::from(InputError::Unknown {
                file: self.spelled("launchable"),
                what: "framework".into(),
                found: name.to_owned(),
                known: known.map(str::to_owned).to_vec(),
            })
        })
    }

    /// Thousandths of memory.
    fn reserve(&self, part: f64) -> Result<i64, Refusal> {
        if !(0.0..=0.9).contains(&part) {
            let reserve = self.spelled("reserve");
            let (found, most) = match self.chip.spelling {
                Spelling::Options => (format!("{}", part * 100.0), "90 percent"),
                Spelling::Keywords => (part.to_string(), "0.9"),
            };
            let problem = format!("{reserve} {found} is out of range; allowed are 0 to {most}");
            return Err(Refusal::Options(problem));
        }
        #[expect(clippy::cast_possible_truncation, reason = "it is between 0 and 900")]
        let thousandths = (part * 1000.0).round() as i64;
        Ok(thousandths)
    }

    /// The devices at hand: as many as a whole strategy takes where nobody says.
    fn devices(&self, given: &GivenStrategy, read: &Reader) -> Result<u64, Refusal> {
        if let Some(nodes) = self.nodes {
            let (hardware, _) = self.chip.resolve(Conventions::of(self.published), read)?;
            let per_node = hardware.physics.network.devices_per_node();
            return Ok(devices_of_nodes(nodes, per_node, &self.spelled("nodes"))?);
        }
        let needed = given.devices().unwrap_or(1024);
        let devices = self.devices.unwrap_or(needed);
        let strategy = self.spelled("strategy");
        if devices > Job::LARGEST_COUNT {
            return Err(Refusal::Options(format!("{strategy}: it takes more than 2^32 devices")));
        }
        if self.strategy.is_some() && given.devices().is_some() && needed > devices {
            let problem = format!("{strategy}: it takes {needed} devices, there are {devices}");
            return Err(Refusal::Options(problem));
        }
        Ok(devices)
    }

    /// The micro-batch sizes to try; those of the user must divide the batch.
    fn micro_batches(&self, given: &[u64], batch: u64) -> Result<Vec<u64>, Refusal> {
        match given.iter().find(|&&size| !batch.is_multiple_of(size)) {
            None => Ok(ascending(given)),
            Some(size) => {
                let near =
                    (1..=*size).rev().find(|&other| batch.is_multiple_of(other)).unwrap_or(1);
                Err(Refusal::Options(format!(
                    "{} {size} does not divide the batch of {batch} sequences; try {near}",
                    self.spelled("micro_batches")
                )))
            }
        }
    }
}

fn ascending(list: &[u64]) -> Vec<u64> {
    let mut list = list.to_vec();
    list.sort_unstable();
    list.dedup();
    list
}
