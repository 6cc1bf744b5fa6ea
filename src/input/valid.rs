//! Which requests make sense: the same for one that a user wrote and for one inside a saved
//! outcome, which may be hostile.

use super::InputError;
use super::chip_space::FASTEST_CARD;
use super::numbers::Field;
use super::source::is_path;
use super::source::printable;
use super::space::check_areas;
use crate::hardware::DesignSpace;
use crate::hardware::Knob;
use crate::hardware::chip::CHIP_KNOBS;
use crate::hardware::chip::ChipKnob;
use crate::hardware::chip::ChipNetwork;
use crate::hardware::chip::ChipSpace;
use crate::hardware::chip::cubic_torus;
use crate::hardware::network::Levels;
use crate::hardware::technology::Constant;
use crate::plan::Source;
use crate::search::ModelRequest;
use crate::search::Objective;
use crate::search::Request;

/// Far beyond any use, and small enough to count with.
const LARGEST_COUNT: u64 = 1 << 24;

/// How much a model may count beside others; only ratios matter.
const WEIGHTS: (f64, f64) = (1e-9, 1e9);

/// Points of a grid of knobs: each takes a moment even where it is no design.
const MOST_POINTS: u64 = 100_000_000;

/// Values of one knob of a chip, and combinations of them.
const MOST_VALUES: u64 = 1 << 14;
const MOST_CHIPS: u64 = 1 << 60;

/// The best designs that are found exactly.
const LARGEST_TOP: u64 = 10_000;

/// The request itself where every figure of it makes sense; `file` is what errors refer to.
///
/// Fields are named as in request files. What a request file cannot ask for is refused: numbers
/// out of range, empty lists, lists that are not ascending or hold a value twice.
///
/// # Errors
/// The first field that makes no sense, with what is allowed.
pub fn validated(request: Request, file: &str) -> Result<Request, InputError> {
    let request = sensible(request, file)?;
    let check = Check { file };
    check.space(&request.space)?;
    if request.objective.needs_technology() {
        let problem = "needs what chips cost, which the published space does not know";
        let found = serde_json::to_string(&request.objective).unwrap_or_default();
        let allowed = "search chips, or choose throughput, throughput-per-area or energy-per-token";
        return Err(check.field("search.objective").value(&found, problem, allowed));
    }
    Ok(request)
}

/// The same of a request over chips.
///
/// # Errors
/// The first field that makes no sense, with what is allowed.
pub fn validated_chips(
    request: Request<ChipSpace>,
    file: &str,
) -> Result<Request<ChipSpace>, InputError> {
    let request = sensible(request, file)?;
    Check { file }.chips(&request)?;
    Ok(request)
}

/// What does not depend on the kind of designs.
fn sensible<S>(request: Request<S>, file: &str) -> Result<Request<S>, InputError> {
    let check = Check { file };
    if request.models.is_empty() {
        return Err(check.field("model").missing("give at least one"));
    }
    request.models.iter().try_for_each(|model| check.model(model))?;
    check.source("hardware", &request.hardware.name, request.hardware.text.is_some())?;
    if let Some(Source { name, text }) = &request.efficiency {
        check.source("efficiency", name, text.is_some())?;
    }
    if let Some(samples) = request.spotlight {
        check.field("search.spotlight").whole(samples, 1, 10_000_000)?;
    }
    for Source { name, text } in &request.baselines {
        check.source("search.baselines", name, text.is_some())?;
    }
    check.count("job.devices", request.devices)?;
    check.count("job.global_batch", request.global_batch)?;
    super::space_of::validate(&request.strategies, request.global_batch, file, "job")?;
    if !(0..1000).contains(&request.reserve_per_mille) {
        let found = request.reserve_per_mille.to_string();
        let allowed = "allowed are 0 to 999 thousandths";
        return Err(check.field("job.reserve").value(&found, "is no part of a memory", allowed));
    }
    check.field("search.top").whole(request.top as u64, 1, LARGEST_TOP)?;
    if let Some(watts) = request.power_cap_w.filter(|watts| !(watts.is_finite() && *watts > 0.0)) {
        let field = check.field("search.power_cap_w");
        return Err(field.value(&watts.to_string(), "is no power", "give watts above 0"));
    }
    Ok(request)
}

/// Checks that refer to one file.
struct Check<'a> {
    file: &'a str,
}

impl Check<'_> {
    fn field(&self, name: &str) -> Field {
        Field::new(self.file, name)
    }

    fn count(&self, name: &str, found: u64) -> Result<(), InputError> {
        self.field(name).whole(found, 1, LARGEST_COUNT).map(|_| ())
    }

    fn model(&self, model: &ModelRequest) -> Result<(), InputError> {
        self.source("model.name", &model.name, model.text.is_some())?;
        self.count("model.sequence", model.sequence)?;
        self.field("model.weight").number(model.weight, WEIGHTS.0, WEIGHTS.1).map(|_| ())
    }

    /// A file has a text, what is built in has none, and either can be printed.
    fn source(&self, name: &str, found: &str, has_text: bool) -> Result<(), InputError> {
        let shown = printable(found);
        let problem = if shown != found {
            "holds control characters"
        } else if has_text && !is_path(found) {
            "is a name of something built in, and yet has a text"
        } else if !has_text && is_path(found) {
            "is a file, and yet has no text"
        } else {
            return Ok(());
        };
        let allowed = "give a built-in name, or the path of a file with its text";
        Err(self.field(name).value(&format!("\"{shown}\""), problem, allowed))
    }

    fn ascending(&self, name: &str, found: &[u64]) -> Result<(), InputError> {
        match found.windows(2).find(|pair| pair[0] >= pair[1]) {
            None => Ok(()),
            Some(pair) => {
                let (found, problem) = (format!("{}, {}", pair[0], pair[1]), "is not ascending");
                Err(self.field(name).value(&found, problem, "list values upwards, each once"))
            }
        }
    }

    fn space(&self, space: &DesignSpace) -> Result<(), InputError> {
        for knob in Knob::listed() {
            let name = format!("space.{}", knob.name);
            let values = knob.values(space);
            if values.is_empty() && !knob.follows() {
                return Err(self.field(&name).missing("give at least one value"));
            }
            for &value in values {
                self.field(&name).whole(value, *knob.range.start(), *knob.range.end())?;
            }
            self.ascending(&name, values)?;
        }
        check_areas(space, self.file)?;
        match space.points() {
            Some(points) if points <= MOST_POINTS => Ok(()),
            points => {
                let found = points.map_or("more than 2^64".into(), |points| points.to_string());
                let allowed = format!("allowed are at most {MOST_POINTS} combinations of knobs");
                Err(self.field("space").value(&found, "has too many points", &allowed))
            }
        }
    }
}

impl Check<'_> {
    fn chips(&self, request: &Request<ChipSpace>) -> Result<(), InputError> {
        let space = &request.space;
        for knob in &CHIP_KNOBS {
            let name = format!("space.{}", knob.name);
            let values = space.knobs.get(knob.name).map_or(&[][..], Vec::as_slice);
            if values.is_empty() {
                return Err(self.field(&name).missing("give at least one value"));
            }
            for &value in values {
                self.field(&name).whole(value, *knob.range.start(), *knob.range.end())?;
            }
            self.field(&name).whole(values.len() as u64, 1, MOST_VALUES)?;
            self.ascending(&name, values)?;
        }
        if let Some(stranger) = space.knobs.keys().find(|name| ChipKnob::named(name).is_none()) {
            return Err(self.field("space").value(
                stranger,
                "is no knob of a chip",
                "leave it out",
            ));
        }
        if space.points() > u128::from(MOST_CHIPS) {
            let allowed = format!("allowed are at most {MOST_CHIPS} combinations of values");
            let found = space.points().to_string();
            return Err(self.field("space").value(&found, "has too many points", &allowed));
        }
        self.field("chip.max_area_nm2").whole(space.max_area_nm2, 1, 858_000_000_000_000)?;
        self.field("chip.tdp_mw").whole(space.tdp_mw, 1, 100_000_000)?;
        if let Some(cents) = space.max_price_cents {
            self.field("chip.max_price_cents").whole(cents, 1, 1_000_000_000)?;
        }
        for (name, &value) in &space.constants {
            let field = self.field(&format!("chip.constants.{name}"));
            let Some(constant) = Constant::named(name) else {
                return Err(field.value(&value.to_string(), "is no constant", "leave it out"));
            };
            let row = constant.row();
            let number = value as f64 / row.factor;
            field.number(number, *row.range.start(), *row.range.end())?;
        }
        if let ChipNetwork::Torus(sides) = &space.network {
            let product = sides.iter().fold(1_u64, |all, side| all.saturating_mul(*side));
            if !sides.is_empty() && product != request.devices {
                let found = sides.iter().map(u64::to_string).collect::<Vec<_>>().join("x");
                let nearest = cubic_torus(request.devices);
                let nearest = nearest.iter().map(u64::to_string).collect::<Vec<_>>().join("x");
                let problem = format!("does not hold the {} devices", request.devices);
                return Err(self.field("chip.network").value(
                    &found,
                    &problem,
                    &format!("sides whose product they are would do, such as {nearest}"),
                ));
            }
        }
        if let ChipNetwork::Nodes { devices, between_gb_per_s } = space.network {
            self.field("chip.devices_per_node").whole(devices, 2, Levels::LARGEST)?;
            self.field("chip.between_gb_per_s").whole(between_gb_per_s, 1, FASTEST_CARD)?;
        }
        if request.exhaustive {
            let problem = "would list every chip of the space";
            let instead = "name the published space for it";
            return Err(self.field("search.exhaustive").value("true", problem, instead));
        }
        if request.table {
            let problem = "would list every chip of the space";
            let instead = "name the published space for it";
            return Err(self.field("search.table").value("true", problem, instead));
        }
        self.front(request)
    }

    /// A front compares the times of one model, and nothing that only energy decides.
    fn front(&self, request: &Request<ChipSpace>) -> Result<(), InputError> {
        if let Some(part) = request.resolution_per_mille {
            let field = self.field("search.resolution_percent");
            field.whole(part, 0, 1000)?;
            if !request.pareto {
                let found = (part as f64 / 10.0).to_string();
                let problem = "rounds the figures of a front, which is not asked for";
                return Err(field.value(&found, problem, "ask for it with `pareto`"));
            }
        }
        if !request.pareto {
            return Ok(());
        }
        let field = self.field("search.pareto");
        if request.models.len() > 1 {
            let problem = "compares the times of one model, and there are several";
            return Err(field.value("true", problem, "search each model for itself"));
        }
        if request.objective == Objective::EnergyPerToken || request.power_cap_w.is_some() {
            let problem =
                "compares plans of the least time, which energy and a cap of power do not choose";
            return Err(field.value(
                "true",
                problem,
                "leave out the cap, or take another objective",
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::request::RequestFile;
    use crate::input::request::setup_of;
    use crate::input::source::no_files;
    use serde_json::Value;
    use serde_json::json;

    fn honest() -> Request {
        let file = RequestFile::read("[[model]]\nname = \"bert-large\"\n", "r").unwrap();
        file.complete("r", &no_files).unwrap()
    }

    /// What becomes of the request with the value at `pointer` changed, as in a saved outcome.
    fn forged(pointer: &str, value: &Value) -> Result<Request, String> {
        let mut json = serde_json::to_value(honest()).unwrap();
        *json.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer} is there")) = value.clone();
        let request: Request = serde_json::from_value(json).map_err(|error| error.to_string())?;
        validated(request, "outcome.json").map_err(|error| error.to_string())
    }

    #[test]
    fn an_honest_request_survives_being_written_and_read() {
        let text = serde_json::to_string(&honest()).unwrap();
        let read: Request = serde_json::from_str(&text).unwrap();
        assert_eq!(validated(read, "outcome.json").unwrap(), honest());
        for words in [
            "\"optimizer\":\"adam-mixed\"",
            "\"attention\":\"recomputed\"",
            "\"rule\":\"own-kind\"",
            "\"published_vector_costs\":false",
            "\"time_model\":\"1f1b\"",
        ] {
            assert!(text.contains(words), "{words} in {text}");
        }
    }

    #[test]
    fn hostile_figures_are_refused_by_name() {
        let cases = [
            ("/models", json!([]), "`model` is missing"),
            ("/models/0/sequence", json!(0), "`model.sequence = 0`"),
            ("/models/0/sequence", json!(1_u64 << 62), "`model.sequence"),
            ("/models/0/weight", json!(0.0), "`model.weight = 0`"),
            ("/models/0/weight", json!(-3.0), "`model.weight = -3`"),
            ("/models/0/weight", json!(1e300), "`model.weight"),
            ("/models/0/weight", json!(null), "null"),
            ("/models/0/text", json!("{}"), "and yet has a text"),
            ("/models/0/name", json!("own.json"), "and yet has no text"),
            ("/models/0/name", json!("a\u{1b}[31m"), "control characters"),
            ("/hardware/text", json!("[cores]"), "and yet has a text"),
            ("/devices", json!(0), "`job.devices = 0`"),
            ("/devices", json!(u64::MAX), "`job.devices"),
            ("/devices", json!(-1), "-1"),
            ("/global_batch", json!(1_u64 << 40), "`job.global_batch"),
            ("/strategies/micro_batches", json!([]), "`job.micro_batches` is missing"),
            ("/strategies/micro_batches", json!([0]), "`job.micro_batches = 0`"),
            ("/strategies/micro_batches", json!([3]), "does not divide"),
            ("/strategies/micro_batches", json!([2, 1]), "is not ascending"),
            ("/strategies/micro_batches", json!([2, 2]), "is not ascending"),
            ("/strategies/tensor_parallel", json!([]), "`job.tensor_parallel` is missing"),
            ("/strategies/tensor_parallel", json!([1_u64 << 60]), "`job.tensor_parallel"),
            ("/strategies/recompute", json!([]), "`job.recompute` is missing"),
            (
                "/strategies/recompute",
                json!(["stage", "none"]),
                "`job.recompute = \"stage\", \"none\"` is not",
            ),
            ("/strategies/recompute", json!(["none", "none"]), "is not ascending; list values"),
            (
                "/strategies/recompute",
                json!(["often"]),
                "\"often\" is no recompute choice; allowed",
            ),
            ("/strategies/context_parallel", json!([]), "`job.context_parallel` is missing"),
            ("/strategies/context_parallel", json!([0]), "`job.context_parallel = 0`"),
            ("/strategies/context_kinds", json!([]), "`job.context_kinds` is missing"),
            ("/strategies/context_kinds", json!(["mesh"]), "unknown variant `mesh`"),
            (
                "/strategies/sequence_parallel",
                json!([true, false]),
                "`job.sequence_parallel = true, f",
            ),
            ("/strategies/zero", json!([]), "`job.zero` is missing"),
            ("/strategies/orders", json!([]), "`job.orders` is missing"),
            ("/strategies/pipeline", json!({"least": 0, "most": 1}), "`job.pipeline = 0`"),
            (
                "/strategies/pipeline",
                json!({"least": 3, "most": 2}),
                "`job.pipeline = 3 to 2` is no range",
            ),
            ("/strategies/chunks", json!({"least": 2, "most": 1}), "the least comes first"),
            ("/strategies/group", json!(0), "`job.group = 0`"),
            ("/strategies/shards", json!(0), "`job.shards = 0`"),
            ("/reserve_per_mille", json!(1000), "`job.reserve = 1000` is no part of a memory"),
            ("/reserve_per_mille", json!(-1), "allowed are 0 to 999 thousandths"),
            ("/optimizer", json!("foo"), "unknown variant `foo`, expected one of `adam-mixed`"),
            ("/attention", json!("flash"), "unknown variant `flash`"),
            ("/rule", json!("any"), "unknown variant `any`, expected `alone` or `own-kind`"),
            ("/time_model", json!("2f2b"), "unknown variant `2f2b`"),
            ("/published_vector_costs", json!("yes"), "yes"),
            ("/objective", json!("speed"), "unknown variant `speed`"),
            ("/combine", json!("sum"), "unknown variant `sum`"),
            ("/top", json!(0), "`search.top = 0`"),
            ("/top", json!(1_u64 << 40), "`search.top"),
            ("/power_cap_w", json!(0.0), "`search.power_cap_w = 0`"),
            ("/power_cap_w", json!(-1.0), "is no power"),
            ("/space/hbm_gib", json!([]), "`space.hbm_gib` is missing"),
            ("/space/hbm_gib", json!([1_u64 << 62]), "`space.hbm_gib"),
            ("/space/hbm_gib", json!([64, 32]), "is not ascending"),
            ("/space/glb_mib", json!([1_u64 << 60]), "`space.glb_mib"),
            ("/space/glb_mib", json!([]), "`space.glb_mib` is missing"),
            ("/space/width", json!([0]), "`space.width = 0`"),
            ("/space/width", json!([8, 8]), "is not ascending"),
            ("/space/glb_bytes_per_cycle", json!([0]), "`space.glb_bytes_per_cycle = 0`"),
            ("/space/max_area_nm2", json!(u64::MAX), "`space.max_area_nm2"),
            ("/space/max_area_nm2", json!(0), "`space.max_area_nm2 = 0`"),
            ("/space/min_area_nm2", json!(u64::MAX), "`space.min_area_nm2"),
        ];
        for (pointer, value, expected) in cases {
            let refused = forged(pointer, &value).unwrap_err();
            assert!(refused.contains(expected), "{pointer} = {value}: {refused}");
        }
    }

    #[test]
    fn a_space_that_cannot_be_walked_is_refused_before_it_is_listed() {
        let mut request = honest();
        let all: Vec<u64> = (1..=4096).collect();
        for knob in ["tensor_cores", "vector_cores", "width", "depth", "vector_width", "glb_mib"] {
            let knob = Knob::named(knob).unwrap();
            knob.set_values(&mut request.space, all.clone());
            if knob.name == "vector_cores" {
                let refused = validated(request.clone(), "o").unwrap_err().to_string();
                assert!(refused.contains("has too many points"), "{refused}");
            }
        }
        let refused = validated(request, "o").unwrap_err().to_string();
        assert!(refused.contains("more than 2^64"), "{refused}");
    }

    #[test]
    fn widths_and_memories_that_the_model_and_hardware_lack_are_refused() {
        let with = |pointer: &str, value: Value| {
            setup_of(forged(pointer, &value).unwrap(), "outcome.json").unwrap_err().to_string()
        };
        assert!(
            with("/strategies/tensor_parallel", json!([1, 3]))
                .contains("`job.tensor_parallel = 3`")
        );
        let refused = with("/space/hbm_gib", json!([48]));
        assert!(refused.contains("nearest are 32 and 64"), "{refused}");
        assert!(with("/hardware/name", json!("tpuv9")).contains("unknown hardware `tpuv9`"));
        assert!(with("/models/0/name", json!("gpt5")).contains("unknown model `gpt5`"));
    }
}
