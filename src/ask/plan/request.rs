//! A planner's request, typed and complete, and the command that asks for it.

use serde::Deserialize;
use serde::Serialize;

use crate::input::Conventions;
use crate::input::InputError;
use crate::input::batch::default_sequence;
use crate::input::batch::nearest_batch;
use crate::input::efficiency_choice;
use crate::input::numbers::Field;
use crate::input::place;
use crate::input::place::Basics;
use crate::input::place::Ready;
use crate::input::source;
use crate::input::source::Reader;
use crate::launch::Target;
use crate::model::Attention;
use crate::model::Precision;
use crate::parallel::frameworks::Framework;
use crate::plan::GivenStrategy;
use crate::plan::StrategySpace;

/// What a batch is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Batch {
    /// About 4 million tokens.
    #[default]
    Usual,
    /// About so many tokens: the nearest 2^k or 3·2^k sequences, or a number that devices divide.
    Tokens(u64),
    /// Exactly so many sequences.
    Sequences(u64),
}

/// A number of devices, or several of them from the least on, each twice the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceRange {
    /// The least.
    pub least: u64,
    /// The greatest; the same where there is one.
    pub most: u64,
}

impl DeviceRange {
    /// One number.
    pub fn only(devices: u64) -> Self {
        Self { least: devices, most: devices }
    }

    /// All numbers, the greatest last.
    pub fn each(&self) -> Vec<u64> {
        let doubled = std::iter::successors(Some(self.least), |devices| devices.checked_mul(2));
        let mut each: Vec<u64> = doubled.take_while(|&devices| devices < self.most).collect();
        each.push(self.most);
        each
    }
}

/// What a planner asks; what is `None` is chosen as planners do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanRequest {
    /// A built-in model or the path of a file.
    pub model: String,
    /// A built-in accelerator or the path of a file.
    pub hardware: String,
    /// Whose efficiency is assumed in place of the accelerator's own.
    pub efficiency: Option<String>,
    /// How unevenly tokens visit experts, in thousandths of an even load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imbalance_per_mille: Option<u64>,
    /// Layers that are trained to tell the token after the next.
    #[serde(rename = "mtp", default, skip_serializing_if = "Option::is_none")]
    pub next_tokens: Option<u64>,
    /// Devices at hand.
    pub devices: DeviceRange,
    /// How many times as fast as the accelerator's every link is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_times: Option<u64>,
    /// Tokens to train on; `None` for 20 for each parameter that a token visits.
    pub tokens: Option<u64>,
    /// Tokens in a sequence.
    pub sequence: Option<u64>,
    /// What a batch is.
    pub batch: Batch,
    /// In which numbers matmuls compute.
    pub precision: Precision,
    /// What attention leaves behind.
    pub attention: Option<Attention>,
    /// The part of a strategy that is given.
    pub strategy: GivenStrategy,
    /// What shall start the plan.
    pub target: Option<Target>,
    /// What must accept the plan, where nothing shall start it.
    pub framework: Option<Framework>,
    /// Thousandths of memory that plans leave free.
    pub reserve_per_mille: Option<i64>,
    /// Thousandths of a dollar that a device costs in an hour.
    pub price: Option<u64>,
    /// Thousandths of the time in which a run makes progress.
    pub goodput_per_mille: Option<u64>,
    /// Watts of a device at work.
    pub watts: Option<u64>,
    /// Watts of the host of a device at work, its share of processors, network cards and fans.
    pub host_watts: Option<u64>,
    /// Thousandths of the power of devices and hosts that a building takes.
    pub pue_per_mille: Option<u64>,
    /// Grams of carbon dioxide of a kilowatt-hour.
    pub grams_per_kwh: Option<u64>,
    /// The most seconds that a run may take.
    pub deadline: Option<u64>,
}

impl PlanRequest {
    /// A model on so many devices of an accelerator, everything else as planners choose.
    pub fn new(model: &str, hardware: &str, devices: u64) -> Self {
        Self {
            model: model.to_owned(),
            hardware: hardware.to_owned(),
            efficiency: None,
            imbalance_per_mille: None,
            next_tokens: None,
            devices: DeviceRange::only(devices),
            network_times: None,
            tokens: None,
            sequence: None,
            batch: Batch::Usual,
            precision: Precision::Bf16,
            attention: None,
            strategy: GivenStrategy::default(),
            target: None,
            framework: None,
            reserve_per_mille: None,
            price: None,
            goodput_per_mille: None,
            watts: None,
            host_watts: None,
            pue_per_mille: None,
            grams_per_kwh: None,
            deadline: None,
        }
    }

    /// The same for one number of devices.
    #[must_use]
    pub fn on(&self, devices: u64) -> Self {
        Self { devices: DeviceRange::only(devices), ..self.clone() }
    }

    /// The question about one chip that it asks, made ready, for the greatest number of devices, and
    /// the space before a part of a strategy narrowed it.
    ///
    /// # Errors
    /// What cannot be read, is not known or makes no sense.
    pub fn ready(&self, read: &Reader) -> Result<(Ready, StrategySpace), InputError> {
        let (model, _) = source::model(&self.model, read)?;
        let sequence = self.sequence.unwrap_or(default_sequence(model.spec.max_sequence));
        let basics = Basics {
            model: &self.model,
            hardware: &self.hardware,
            devices: self.devices.most,
            sequence: Some(sequence),
            global_batch: match self.batch {
                Batch::Usual => None,
                Batch::Tokens(tokens) => Some(nearest_batch(tokens, sequence)),
                Batch::Sequences(sequences) => Some(sequences),
            },
            attention: self.attention,
            framework: self.target.map(Target::framework).or(self.framework),
        };
        let mut question = place::question(&basics, &Conventions::OURS, read)?;
        question.precision = self.precision;
        question.imbalance_per_mille = self.imbalance_per_mille;
        question.next_tokens = self.next_tokens;
        question.network_times = self.network_times;
        let assumed = self.efficiency.as_ref();
        let assumed = assumed.map(|name| efficiency_choice::source(name, "--efficiency", read));
        question.efficiency = assumed.transpose()?;
        if let Some(reserve) = self.reserve_per_mille {
            question.reserve_per_mille = reserve;
        }
        if let Some(target) = self.target {
            let known = target.context_kinds();
            question.space.context_kinds.retain(|kind| known.contains(kind));
            if target == Target::Maxtext {
                // Its meshes are filled node by node, and a device's part of a sequence is a decimal.
                question.space.tensor_parallel.retain(|width| width.is_power_of_two());
                question.space.context_parallel.retain(|degree| degree.is_power_of_two());
                question.space.expert_parallel.retain(|degree| degree.is_power_of_two());
            }
        }
        let whole = question.space.clone();
        self.strategy.narrow(&mut question.space);
        let name = source::printable(&self.model);
        let ready = place::ready(question, &name)?;
        crate::ask::solved::legal(&ready, &whole).map_err(|reason| {
            let field = Field::new("--strategy", "strategy");
            field.value(&self.strategy.to_string(), &reason.to_string(), "ask for another")
        })?;
        Ok((ready, whole))
    }

    /// The command that asks for it.
    pub fn command(&self) -> String {
        let mut words = vec!["phaze plan".to_owned(), word(&self.model)];
        let DeviceRange { least, most } = self.devices;
        let devices = if least == most { most.to_string() } else { format!("{least}..{most}") };
        words.push(format!("--gpus {}", word(&format!("{devices}x{}", self.hardware))));
        let mut option = |name: &str, value: Option<String>| {
            words.extend(value.map(|value| format!("--{name} {}", word(&value))));
        };
        option("network-times", self.network_times.map(|times| times.to_string()));
        option("efficiency", self.efficiency.clone());
        let thousandths = |value: u64| (value as f64 / 1000.0).to_string();
        option("imbalance", self.imbalance_per_mille.map(thousandths));
        option("mtp", self.next_tokens.map(|count| count.to_string()));
        option("tokens", self.tokens.map(tokens_told));
        match self.batch {
            Batch::Usual => {}
            Batch::Tokens(tokens) => option("batch-tokens", Some(tokens_told(tokens))),
            Batch::Sequences(sequences) => option("global-batch", Some(sequences.to_string())),
        }
        option("seq", self.sequence.map(|tokens| tokens.to_string()));
        let precision = (!self.precision.is_usual()).then(|| self.precision.name().to_owned());
        option("precision", precision);
        option("attention", self.attention.map(|attention| attention.name().to_owned()));
        let strategy = self.strategy.to_string();
        option("strategy", (!strategy.is_empty()).then_some(strategy));
        option("for", self.target.map(|target| target.name().to_owned()));
        option("launchable", self.framework.map(|framework| framework.to_string()));
        option("reserve", self.reserve_per_mille.map(|part| (part as f64 / 10.0).to_string()));
        option("price", self.price.map(thousandths));
        option("goodput", self.goodput_per_mille.map(|part| (part as f64 / 10.0).to_string()));
        option("watts", self.watts.map(|watts| watts.to_string()));
        option("host-watts", self.host_watts.map(|watts| watts.to_string()));
        option("pue", self.pue_per_mille.map(thousandths));
        option("carbon", self.grams_per_kwh.map(|grams| grams.to_string()));
        option("deadline", self.deadline.map(|seconds| format!("{}h", seconds.div_ceil(3600))));
        words.join(" ")
    }
}

/// Tokens as `--tokens` reads them.
fn tokens_told(tokens: u64) -> String {
    let letters = [(1_000_000_000_000, "T"), (1_000_000_000, "G"), (1_000_000, "M")];
    let found =
        letters.into_iter().find(|(unit, _)| tokens >= *unit && tokens.is_multiple_of(unit / 1000));
    match found {
        Some((unit, letter)) => format!("{}{letter}", tokens as f64 / unit as f64),
        None => tokens.to_string(),
    }
}

/// What a shell takes as one word.
fn word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,:+".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::batch::read_tokens;

    #[test]
    fn numbers_of_devices_double_up_to_the_greatest() {
        assert_eq!(DeviceRange { least: 8, most: 40 }.each(), [8, 16, 32, 40]);
        assert_eq!(DeviceRange::only(24).each(), [24]);
    }

    #[test]
    fn tokens_are_told_as_they_are_read() {
        for tokens in [2_000_000_000_000, 1_500_000_000, 4_194_304, 999, 12_345_678_000] {
            assert_eq!(read_tokens(&tokens_told(tokens), "--tokens"), Ok(tokens));
        }
    }

    #[test]
    fn a_command_says_what_is_not_usual() {
        let request = PlanRequest {
            tokens: Some(2_000_000_000_000),
            batch: Batch::Tokens(4_000_000),
            precision: Precision::Fp8,
            target: Some(Target::Megatron),
            price: Some(2200),
            goodput_per_mille: Some(950),
            ..PlanRequest::new("llama3-70b", "h100-sxm", 256)
        };
        assert_eq!(
            request.command(),
            "phaze plan llama3-70b --gpus 256xh100-sxm --tokens 2T --batch-tokens 4M \
             --precision fp8 --for megatron --price 2.2 --goodput 95"
        );
        assert_eq!(
            PlanRequest::new("my models/a.json", "h100-sxm", 8).command(),
            "phaze plan 'my models/a.json' --gpus 8xh100-sxm"
        );
    }
}
