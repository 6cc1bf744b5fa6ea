//! What keywords ask of a run: those of `phaze plan`, parts of one where the command has percent.

use serde_json::Value;

use super::Batch;
use super::DeviceRange;
use super::PlanRequest;
use super::read_devices;
use super::read_scaled;
use super::read_seconds;
use crate::ask::Keywords;
use crate::ask::Refusal;
use crate::ask::place::ATTENTIONS;
use crate::input::InputError;
use crate::input::batch::read_tokens;
use crate::input::imbalance;
use crate::input::strategy;
use crate::launch::Target;
use crate::model::Precision;
use crate::parallel::frameworks::Framework;
use crate::plan::GivenStrategy;

impl PlanRequest {
    /// What the keywords ask of `model`, which is empty where a run of a user's own names it; `devices`
    /// with `design` may stand in place of `gpus`.
    ///
    /// # Errors
    /// What is not known, of another kind or out of range.
    pub fn from_keywords(model: &str, mut given: Keywords) -> Result<Self, Refusal> {
        let (devices, hardware) = devices(&mut given)?;
        let tokens = count(&mut given, "tokens")?;
        let batch = match (count(&mut given, "batch_tokens")?, given.take("global_batch")?) {
            (None, None) => Batch::Usual,
            (Some(tokens), None) => Batch::Tokens(tokens),
            (None, Some(sequences)) => Batch::Sequences(sequences),
            (Some(_), Some(_)) => {
                let message = "global_batch and batch_tokens say the same twice; give one of them";
                return Err(Refusal::Options(message.into()));
            }
        };
        let text: Option<String> = given.take("strategy")?;
        let given_strategy =
            text.map_or(Ok(GivenStrategy::default()), |text| strategy::read(&text, "strategy"))?;
        let targets = Target::ALL.map(|known| (known.name(), known));
        let precisions = [("bf16", Precision::Bf16), ("fp8", Precision::Fp8)];
        let deadline: Option<String> = given.take("deadline")?;
        let imbalance: Option<f64> = given.take("imbalance")?;
        let mut scaled = |key: &str, factor: f64, range: (f64, f64)| {
            let found = given.take::<f64>(key)?;
            read_scaled(key, found, factor, range).map_err(Refusal::from)
        };
        // As in request files, a part of memory, where the option of the command line is in percent.
        let reserve = scaled("reserve", 1e3, (0.0, 0.9))?;
        let price = scaled("price", 1e3, (0.0, 1e6))?;
        let goodput_per_mille = scaled("goodput", 1e3, (0.01, 1.0))?;
        let watts = scaled("watts", 1.0, (1.0, 1e6))?;
        let host_watts = scaled("host_watts", 1.0, (0.0, 1e6))?;
        let pue_per_mille = scaled("pue", 1e3, (1.0, 10.0))?;
        let grams_per_kwh = scaled("carbon", 1.0, (0.0, 1e4))?;
        let request = Self {
            model: model.to_owned(),
            hardware,
            efficiency: given.take("efficiency")?,
            imbalance_per_mille: imbalance
                .map(|factor| imbalance::read(factor, "imbalance"))
                .transpose()?,
            next_tokens: given.take("mtp")?,
            network_times: given.take("network_times")?,
            devices,
            tokens,
            sequence: given.take("sequence")?,
            batch,
            precision: given.word("precision", &precisions)?.unwrap_or_default(),
            attention: given.word("attention", &ATTENTIONS)?,
            strategy: given_strategy,
            target: given.word("for", &targets)?,
            framework: given.word("launchable", &Framework::NAMES)?,
            reserve_per_mille: reserve.and_then(|part| i64::try_from(part).ok()),
            price,
            goodput_per_mille,
            watts,
            host_watts,
            pue_per_mille,
            grams_per_kwh,
            deadline: deadline.map(|text| read_seconds(&text, "deadline")).transpose()?,
        };
        given.end()?;
        if request.target.is_some() && request.framework.is_some() {
            let message = "for and launchable say the same twice; give one of them";
            return Err(Refusal::Options(message.into()));
        }
        Ok(request)
    }
}

/// The devices and what they are: `gpus`, or `devices` and `design`.
fn devices(given: &mut Keywords) -> Result<(DeviceRange, String), Refusal> {
    let gpus: Option<String> = given.take("gpus")?;
    let devices: Option<u64> = given.take("devices")?;
    let design: Option<String> = given.take("design")?;
    match (gpus, devices, design) {
        (Some(gpus), None, None) => Ok(read_devices(&gpus, "gpus")?),
        (None, Some(devices), Some(design)) => Ok((DeviceRange::only(devices), design)),
        _ => {
            let message = "plan: give gpus, such as 256xh100-sxm, or devices and design";
            Err(Refusal::Options(message.into()))
        }
    }
}

/// A number of tokens: whole, or written as `2T`.
fn count(given: &mut Keywords, key: &str) -> Result<Option<u64>, InputError> {
    let Some(found) = given.take::<Value>(key)? else { return Ok(None) };
    let text = match &found {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.as_u64().map_or_else(
            || number.as_f64().map_or_else(String::new, |tokens| format!("{tokens:.0}")),
            |tokens| tokens.to_string(),
        ),
        other => other.to_string(),
    };
    read_tokens(&text, key).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn asked(given: Value) -> Result<PlanRequest, String> {
        let Value::Object(given) = given else { unreachable!("a call has names") };
        let found = PlanRequest::from_keywords("llama3-8b", Keywords::new("plan", given));
        found.map_err(|refusal| refusal.to_string())
    }

    #[test]
    fn keywords_ask_what_options_ask() {
        let given = json!({ "gpus": "256xh100-sxm", "tokens": "2T", "batch_tokens": 4_000_000,
            "for": "megatron", "price": 2.2, "goodput": 0.95, "reserve": 0.06, "deadline": "30d",
            "precision": "fp8", "strategy": "t=8" });
        assert_eq!(
            asked(given).unwrap().command(),
            "phaze plan llama3-8b --gpus 256xh100-sxm --tokens 2T --batch-tokens 4M --precision fp8 \
             --strategy t=8 --for megatron --reserve 6 --price 2.2 --goodput 95 --deadline 720h"
        );
        let plain = asked(json!({ "devices": 8, "design": "h100-sxm" })).unwrap();
        assert_eq!(plain, PlanRequest::new("llama3-8b", "h100-sxm", 8));
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_name() {
        for (given, expected) in [
            (json!({}), "give gpus, such as 256xh100-sxm, or devices and design"),
            (json!({ "gpus": "8xh100-sxm", "devices": 8 }), "give gpus, such as"),
            (json!({ "gpus": "8xh100-sxm", "token": 3 }), "did you mean `tokens`?"),
            (json!({ "gpus": "8xh100-sxm", "tokens": "many" }), "tokens: `tokens = many`"),
            (json!({ "gpus": "8xh100-sxm", "tokens": -3 }), "tokens: `tokens = -3`"),
            (json!({ "gpus": "8xh100-sxm", "goodput": 95 }), "`goodput = 95` is out of range"),
            (json!({ "gpus": "8xh100-sxm", "for": "megatrom" }), "did you mean `megatron`?"),
            (json!({ "gpus": "8xh100-sxm", "deadline": "soon" }), "is no span of time"),
            (json!({ "gpus": "8xh100-sxm", "batch_tokens": "4M", "global_batch": 8 }), "twice"),
            (
                json!({ "gpus": "8xh100-sxm", "for": "nemo", "launchable": "any" }),
                "for and launchable",
            ),
        ] {
            let said = asked(given.clone()).unwrap_err();
            assert!(said.contains(expected), "{given}: {said}");
        }
    }
}
