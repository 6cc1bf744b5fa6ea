//! Many searches in one table and one page of curves.
//!
//! In: the outcome of each search with the values of the keys that vary. Out: CSV ([`csv`]) and a page
//! that needs nothing else ([`page`]). Figures are told as the outcomes hold them.

pub mod csv;
mod curve;
pub mod page;

use serde_json::Value;

/// The searches of a sweep.
#[derive(Clone, Debug)]
pub struct SweepTable {
    /// The keys that vary.
    pub keys: Vec<String>,
    /// One search each, in the order of the sweep.
    pub rows: Vec<SweepRow>,
}

/// One search of a sweep.
#[derive(Clone, Debug)]
pub struct SweepRow {
    /// The values of the keys.
    pub values: Vec<String>,
    /// The folder that holds its files.
    pub folder: String,
    /// Its `outcome.json`, of which plans and layers are not needed.
    pub outcome: Value,
}

/// A figure of a winner: its key among the results of a model, and what people call it.
const FIGURES: [(&str, &str); 7] = [
    ("tokens_per_s", "tokens per second"),
    ("throughput_sequences_per_s", "sequences per second"),
    ("time_per_batch_s", "seconds per batch"),
    ("mfu", "model FLOPs utilisation"),
    ("energy_per_token_j", "joules per token"),
    ("average_power_w", "watts of a device"),
    ("devices_used", "devices in use"),
];

impl SweepRow {
    /// How the search ended.
    fn status(&self) -> &'static str {
        if self.outcome["winner"].is_null() {
            "infeasible"
        } else if self.outcome["proof"]["complete"] == true {
            "proved"
        } else {
            "unproved"
        }
    }

    /// The results of the winner, one for each model.
    fn results(&self) -> &[Value] {
        self.outcome["winner"]["results"].as_array().map_or(&[], Vec::as_slice)
    }

    /// A figure of the winner for one of the models.
    fn figure(&self, model: usize, key: &str) -> Option<f64> {
        let result = self.results().get(model)?;
        match key {
            "devices_used" => result["strategy"][key].as_f64(),
            _ => result[key].as_f64(),
        }
    }
}

/// Only what a table of searches tells of an outcome: plans and layers are left out.
pub fn told(mut outcome: Value) -> Value {
    let mut winner = outcome["winner"].take();
    if let Some(results) = winner.get_mut("results").and_then(Value::as_array_mut) {
        for result in results.iter_mut().filter_map(Value::as_object_mut) {
            result.retain(|key, _| !["plan", "layers", "stages"].contains(&key.as_str()));
        }
    }
    if let Some(chip) = winner.get_mut("chip").map(Value::take) {
        winner["design"] = flat(chip);
    }
    let reason = outcome["infeasible_reason"].take();
    let proof = outcome["proof"].take();
    serde_json::json!({"winner": winner, "infeasible_reason": reason, "proof": proof})
}

/// A chip with its knobs beside its figures, as a design has them.
fn flat(mut chip: Value) -> Value {
    let knobs = chip["knobs"].take();
    if let (Some(chip), Value::Object(knobs)) = (chip.as_object_mut(), knobs) {
        chip.extend(knobs);
    }
    chip
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use serde_json::json;

    /// Two models on three numbers of devices; one search found nothing.
    pub fn table() -> SweepTable {
        let row = |model: &str, devices: u32, tokens: Option<f64>| {
            let winner = tokens.map(|tokens| {
                json!({
                    "value": tokens / 8.0,
                    "design": {"width": 128, "area_um2": 4e8, "name": null, "area": {"glb_um2": 1.0}},
                    "results": [{
                        "model": model, "tokens_per_s": tokens, "mfu": 0.5, "plan": {"huge": true},
                        "strategy": {"sentence": "8 pipelines, \"ZeRO\" 1", "devices_used": devices},
                    }],
                })
            });
            let reason = winner.is_none().then_some("it needs at least 16 devices");
            let outcome =
                json!({"winner": winner, "infeasible_reason": reason, "proof": {"complete": true}});
            SweepRow {
                values: vec![model.into(), devices.to_string()],
                folder: format!("{model}-{devices}"),
                outcome: told(outcome),
            }
        };
        SweepTable {
            keys: vec!["model".into(), "job.devices".into()],
            rows: vec![
                row("small", 8, Some(1e3)),
                row("small", 64, Some(7e3)),
                row("small", 512, Some(4e4)),
                row("<large>", 8, None),
                row("<large>", 64, Some(800.0)),
                row("<large>", 512, Some(6e3)),
            ],
        }
    }

    #[test]
    fn the_knobs_of_a_chip_are_told_as_those_of_a_design() {
        let chip = json!({"knobs": {"width": 128}, "die_mm2": 500.0, "die": []});
        let outcome = json!({"winner": {"value": 1.0, "chip": chip, "results": []}});
        let design = &told(outcome)["winner"]["design"];
        assert_eq!((&design["width"], &design["die_mm2"]), (&json!(128), &json!(500.0)));
        assert!(design["knobs"].is_null());
    }

    #[test]
    fn plans_are_not_kept() {
        assert!(table().rows[0].results()[0]["plan"].is_null());
        assert_eq!(table().rows[0].figure(0, "devices_used"), Some(8.0));
    }
}
