//! Lies told of real results: every one is rejected, by `phaze check` or, where the table in
//! docs/outcome.md says so, by `phaze check --deep`.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use phaze::certify;
use phaze::certify::Question;
use phaze::certify::Tables;
use phaze::certify::deep;
use phaze::certify::deep::Solved;
use phaze::input::request::judged_by;
use phaze::input::saved;
use phaze::model::Model;
use phaze::search::Outcome;
use serde_json::Value;
use serde_json::json;

/// A space of about a hundred designs.
const SMALL: [&str; 18] = [
    "--micro-batch",
    "1,2",
    "--fix",
    "depth=64",
    "--space",
    "glb_mib=16,32",
    "--space",
    "vector_cores=1..256",
    "--space",
    "tensor_cores=16..256",
    "--space",
    "width=32..128",
    "--devices",
    "64",
    "--global-batch",
    "256",
    "--recompute",
    "none,full",
];

/// What strategies the searches of most tests choose from.
const PLAIN: &str = "[job]\ncontext_parallel = [1]\nstrategy = \"v=1\"\n";
/// The same with sequences that devices may share.
const CONTEXTS: &str = "[job]\ncontext_parallel = [1, 2]\nstrategy = \"v=1\"\n";
/// Virtual stages alone.
const CHUNKS: &str = "[job]\ncontext_parallel = [1]\nstrategy = \"p=2,v=2,b=1\"\n";
/// What one framework accepts.
const LAUNCHABLE: &str =
    "[job]\nlaunchable = \"megatron\"\ncontext_parallel = [1, 2]\nstrategy = \"v=1\"\n";

/// A result with its files taken apart.
struct Real {
    outcome: Value,
    cells: Vec<Vec<String>>,
    solved: Solved,
}

/// What a lie may change.
struct Files {
    outcome: Value,
    cells: Vec<Vec<String>>,
}

/// Which command rejects a lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Check,
    Deep,
}
use By::Check;
use By::Deep;

type Lie = (&'static str, By, fn(&mut Files));

/// Searches for real and reads what was written.
fn searched(name: &str, request: &str, arguments: &[&str]) -> (PathBuf, Files) {
    let directory =
        std::env::temp_dir().join(format!("phaze-forgeries-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&directory);
    let file = directory.with_extension("toml");
    fs::write(&file, request).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_phaze"));
    let command =
        command.arg("search").arg(&file).args(arguments).args(["--table", "--out"]).arg(&directory);
    let searched = command.output().unwrap();
    let said = String::from_utf8_lossy(&searched.stderr);
    assert!(matches!(searched.status.code(), Some(0 | 1)), "{name}: {said}");
    fs::remove_file(file).unwrap();
    let text = fs::read_to_string(directory.join("outcome.json")).unwrap();
    let table = fs::read_to_string(directory.join("designs.csv")).unwrap();
    let outcome = serde_json::from_str(&text).unwrap();
    (directory, Files { outcome, cells: saved::cells("designs.csv", &table).unwrap() })
}

/// A real result that both commands accept, with what the solvers say of it.
fn real(name: &str, request: &str, arguments: &[&str]) -> Real {
    let (directory, Files { outcome, cells }) = searched(name, request, arguments);
    fs::remove_dir_all(directory).unwrap();
    let claimed: Outcome = serde_json::from_value(outcome.clone()).unwrap();
    let (question, models) = question(&claimed).unwrap();
    let judged = certify::check(&question, &claimed, tables(&cells));
    let judged = judged.unwrap_or_else(|lie| panic!("{name}: an honest result is refused: {lie}"));
    let read = |text: &str| saved::cells("designs.csv", text).unwrap();
    let solved = deep::solve(&question, models, &claimed, &judged, &(), read);
    let solved = solved.unwrap_or_else(|lie| panic!("{name}: an honest result is refused: {lie}"));
    solved
        .compare(&claimed, &cells)
        .unwrap_or_else(|lie| panic!("{name}: an honest result is refused: {lie}"));
    Real { outcome, cells, solved }
}

/// Every design has a row in these tests; `cli/tests/boxed.rs` is about boxes.
fn tables(designs: &[Vec<String>]) -> Tables<'_> {
    Tables { designs, boxes: &[] }
}

fn question(outcome: &Outcome) -> Result<(Question, Vec<Model>), String> {
    judged_by(outcome.request.clone(), "test").map_err(|error| error.to_string())
}

/// Which command rejects the files, and why; `None` where both accept them.
fn rejected(real: &Real, files: &Files) -> Option<(By, String)> {
    let claimed: Outcome = match serde_json::from_value(files.outcome.clone()) {
        Ok(claimed) => claimed,
        Err(malformed) => return Some((Check, malformed.to_string())),
    };
    let question = match question(&claimed) {
        Ok((question, _)) => question,
        Err(senseless) => return Some((Check, senseless)),
    };
    if let Err(lie) = certify::check(&question, &claimed, tables(&files.cells)) {
        return Some((Check, lie.to_string()));
    }
    let deep = real.solved.compare(&claimed, &files.cells);
    deep.err().map(|lie| (Deep, lie.to_string()))
}

fn check(real: &Real, lies: &[Lie]) {
    let mut believed = Vec::new();
    for (name, by, tell) in lies {
        let mut files = Files { outcome: real.outcome.clone(), cells: real.cells.clone() };
        tell(&mut files);
        match rejected(real, &files) {
            Some((found, _)) if found == *by => {}
            other => believed.push(format!("{name}: {other:?}")),
        }
    }
    assert!(believed.is_empty(), "{}", believed.join("\n"));
}

impl Files {
    fn at(&mut self, path: &str) -> &mut Value {
        let found = self.outcome.pointer_mut(path);
        found.unwrap_or_else(|| panic!("the outcome has no {path}"))
    }

    fn times(&mut self, path: &str, factor: f64) {
        let value = self.at(path);
        *value = match value.as_u64() {
            Some(whole) if factor >= 2.0 => json!(whole * 2),
            _ => json!(value.as_f64().unwrap() * factor),
        };
    }

    fn plus(&mut self, path: &str, more: u64) {
        let value = self.at(path);
        *value = json!(value.as_u64().unwrap() + more);
    }

    fn set(&mut self, path: &str, to: Value) {
        *self.at(path) = to;
    }

    fn opposite(&mut self, path: &str) {
        let value = self.at(path);
        *value = json!(!value.as_bool().unwrap());
    }

    fn pop(&mut self, path: &str) {
        self.at(path).as_array_mut().unwrap().pop();
    }

    /// Tells a lie of the winner's design wherever it is told of.
    fn everywhere(&mut self, tell: fn(&mut Value)) {
        let winner = self.outcome["winner"]["design"].clone();
        let mut entries: Vec<&mut Value> = Vec::new();
        let outcome = self.outcome.as_object_mut().unwrap();
        for (key, value) in outcome {
            match key.as_str() {
                "winner" => entries.push(value),
                "best_by_hbm" => {
                    let best = value.as_array_mut().unwrap().iter_mut();
                    entries.extend(best.map(|best| &mut best["entry"]));
                }
                "top" | "pareto" => {
                    entries.extend(value["entries"].as_array_mut().unwrap().iter_mut());
                }
                _ => {}
            }
        }
        entries.into_iter().filter(|entry| entry["design"] == winner).for_each(tell);
    }

    fn column(&self, name: &str) -> usize {
        self.cells[0].iter().position(|column| column == name).unwrap()
    }

    /// The first row with these words in a column.
    fn row(&self, column: &str, words: &str) -> usize {
        let at = self.column(column);
        self.cells.iter().position(|row| row[at] == words).unwrap()
    }

    fn cell(&mut self, row: usize, column: &str, to: &str) {
        let at = self.column(column);
        to.clone_into(&mut self.cells[row][at]);
    }

    /// Relabels the first evaluated row that is not the winner's.
    fn relabel(&mut self, from: &str, to: &str) {
        let winner = self.outcome["winner"]["design"]["index"].as_u64().unwrap();
        let at = self.column("status_hbm32");
        let row = (1..self.cells.len())
            .find(|&row| self.cells[row][at] == from && row as u64 != winner + 1)
            .unwrap();
        to.clone_into(&mut self.cells[row][at]);
    }
}

/// Another reason why a layer's schedule is the fastest.
fn another_proof(entry: &mut Value) {
    let kind = &mut entry["results"][0]["layers"][1]["forward"]["proof"]["kind"];
    *kind = json!(if kind == "bound" { "search" } else { "bound" });
}

const WINNER: &str = "/winner/results/0";

/// The path of one of the winner's degrees.
fn degree(name: &str) -> String {
    format!("{WINNER}/strategy/degrees/{name}")
}

/// One lie for every claim of an outcome with one model.
const LIES: &[Lie] = &[
    ("another schema", Check, |f| f.set("/schema", json!("phaze-plan"))),
    ("version 7", Check, |f| f.set("/version", json!(7))),
    ("no version of the program", Check, |f| f.set("/phaze", json!("latest"))),
    ("an unknown key", Check, |f| f.outcome["proved_by"] = json!("me")),
    ("an unknown key of an entry", Check, |f| f.at("/winner")["rank"] = json!(1)),
    ("the optimizer foo", Check, |f| f.set("/request/optimizer", json!("foo"))),
    ("no size of memory", Check, |f| f.set("/request/space/hbm_gib", json!([]))),
    ("2^62 GiB of memory", Check, |f| f.set("/request/space/hbm_gib", json!([1_u64 << 62]))),
    ("2^60 MiB of buffer", Check, |f| f.set("/request/space/glb_mib", json!([1_u64 << 60]))),
    ("a weight that is none", Check, |f| f.set("/request/models/0/weight", json!(-3.0))),
    ("twice the devices", Check, |f| f.times("/request/devices", 2.0)),
    ("another batch", Check, |f| f.set("/request/global_batch", json!(512))),
    ("another objective", Check, |f| f.set("/request/objective", json!("energy-per-token"))),
    ("the efficiency of a class", Check, |f| {
        f.at("/request")["efficiency"] = json!({"name": "simt", "text": null});
    }),
    ("an efficiency that is none", Check, |f| {
        f.at("/request")["efficiency"] = json!({"name": "mine", "text": null});
    }),
    ("an efficiency without its file", Check, |f| {
        f.at("/request")["efficiency"] = json!({"name": "mine.toml", "text": null});
    }),
    ("times that rest on an assumption", Check, |f| {
        f.at(&format!("{WINNER}/plan/training"))["basis"] = json!("assumed");
    }),
    ("times that rest on runs", Check, |f| {
        let runs = json!({"stack": "mine", "runs": 12, "interval_per_mille": [990, 1010]});
        f.at(&format!("{WINNER}/plan/training"))["basis"] = json!({ "calibrated": runs });
    }),
    ("two models and one result", Check, |f| {
        let model = f.outcome["request"]["models"][0].clone();
        f.at("/request/models").as_array_mut().unwrap().push(model);
    }),
    ("another model", Check, |f| f.set("/models/0/name", json!("gpt5"))),
    ("a longer sequence", Check, |f| f.plus("/models/0/sequence", 1)),
    ("more parameters", Check, |f| f.plus("/models/0/parameters", 1)),
    ("fewer operations", Check, |f| f.times("/models/0/flops_per_sequence", 0.9)),
    ("a better own best", Check, |f| f.times("/models/0/best_throughput_sequences_per_s", 1.1)),
    ("another own cost", Check, |f| f.set("/models/0/own_best_cost", json!(2.0))),
    ("a winner ten times as good", Check, |f| f.times("/winner/value", 10.0)),
    ("no winner", Check, |f| f.set("/winner", Value::Null)),
    ("no winner and a reason", Check, |f| {
        f.set("/winner", Value::Null);
        f.set("/infeasible_reason", json!("bert-large: layer 0 alone is too large"));
    }),
    ("a reason beside a winner", Check, |f| f.set("/infeasible_reason", json!("nothing fits"))),
    ("the worst of the list as winner", Check, |f| {
        let last = f.outcome["top"]["entries"].as_array().unwrap().last().unwrap().clone();
        f.set("/winner", last);
    }),
    ("the worst of the front as winner, throughout", Check, |f| {
        let last = f.outcome["pareto"]["entries"].as_array().unwrap().last().unwrap().clone();
        f.set("/best_by_hbm/0/entry", last.clone());
        f.set("/winner", last);
    }),
    ("another index", Check, |f| f.plus("/winner/design/index", 1)),
    ("a name", Check, |f| f.set("/winner/design/name", json!("tpuv4"))),
    ("more tensor cores", Check, |f| f.times("/winner/design/tensor_cores", 2.0)),
    ("a wider array", Check, |f| f.plus("/winner/design/width", 1)),
    ("a deeper array", Check, |f| f.plus("/winner/design/depth", 1)),
    ("more vector cores", Check, |f| f.plus("/winner/design/vector_cores", 1)),
    ("more lanes", Check, |f| f.plus("/winner/design/vector_width", 1)),
    ("a larger buffer", Check, |f| f.plus("/winner/design/glb_bytes", 1)),
    ("more memory", Check, |f| f.plus("/winner/design/hbm_bytes", 1 << 30)),
    ("a larger local buffer", Check, |f| f.plus("/winner/design/local_tensor_bytes", 1)),
    ("a larger vector buffer", Check, |f| f.plus("/winner/design/local_vector_bytes", 1)),
    ("a faster clock", Check, |f| f.plus("/winner/design/clock_hz", 1)),
    ("a higher peak", Check, |f| f.times("/winner/design/peak_flops_per_s", 1.01)),
    ("faster memory", Check, |f| f.plus("/winner/design/hbm_bytes_per_s", 1)),
    ("a faster buffer", Check, |f| f.plus("/winner/design/glb_bytes_per_cycle", 1)),
    ("less area", Check, |f| f.times("/winner/design/area_um2", 0.9)),
    ("less area of arrays", Check, |f| f.times("/winner/design/area/tensor_cores_um2", 0.9)),
    ("less area of lanes", Check, |f| f.times("/winner/design/area/vector_cores_um2", 0.9)),
    ("less area of local buffers", Check, |f| f.times("/winner/design/area/tensor_local_um2", 0.9)),
    ("less area of vector buffers", Check, |f| {
        f.times("/winner/design/area/vector_local_um2", 0.9);
    }),
    ("less area of the buffer", Check, |f| f.times("/winner/design/area/glb_um2", 0.9)),
    ("a faster batch", Check, |f| f.times(&format!("{WINNER}/time_per_batch_s"), 0.5)),
    ("a simulated time beside an exact one", Check, |f| {
        f.set(&format!("{WINNER}/simulated_time_per_batch_s"), json!(0.9));
    }),
    ("more throughput", Check, |f| f.times(&format!("{WINNER}/throughput_sequences_per_s"), 2.0)),
    ("more tokens", Check, |f| f.times(&format!("{WINNER}/tokens_per_s"), 2.0)),
    ("a higher utilisation", Check, |f| f.times(&format!("{WINNER}/mfu"), 1.01)),
    ("a higher utilisation of all", Check, |f| {
        f.times(&format!("{WINNER}/mfu_requested_devices"), 1.01);
    }),
    ("less energy", Check, |f| f.times(&format!("{WINNER}/energy_per_batch_j"), 0.9)),
    ("less energy for a token", Check, |f| f.times(&format!("{WINNER}/energy_per_token_j"), 0.9)),
    ("less power", Check, |f| f.times(&format!("{WINNER}/average_power_w"), 0.9)),
    ("more replicas", Check, |f| f.plus(&degree("data_parallel"), 1)),
    ("more ranks", Check, |f| f.plus(&degree("pipeline"), 1)),
    ("a width that is not asked for", Check, |f| f.set(&degree("tensor_parallel"), json!(16))),
    ("a scattered sequence", Check, |f| f.opposite(&degree("sequence_parallel"))),
    ("a shared context", Check, |f| f.plus(&degree("context_parallel"), 1)),
    ("another kind of context", Check, |f| f.set(&degree("context_kind"), json!("ulysses"))),
    ("a micro-batch that is not asked for", Check, |f| f.set(&degree("micro_batch"), json!(4))),
    ("another recompute", Check, |f| f.set(&degree("recompute"), json!("stage"))),
    ("repeated modules", Check, |f| f.set(&degree("repeated"), json!("mlp"))),
    ("another schedule", Check, |f| {
        f.set(&degree("schedule"), json!({"interleaved": {"chunks": 2, "group": 7}}));
    }),
    ("another stage of sharding", Check, |f| f.set(&degree("zero"), json!(2))),
    ("shards that are not asked for", Check, |f| f.set(&degree("shards"), json!(2))),
    ("another order", Check, |f| f.set(&degree("order"), json!("tp-pp-dp-cp"))),
    ("fewer devices", Check, |f| f.set(&format!("{WINNER}/strategy/devices_used"), json!(1))),
    ("another sentence", Check, |f| {
        f.set(&format!("{WINNER}/strategy/sentence"), json!("one replica"));
    }),
    ("less on tensor cores", Check, |f| {
        let total = f.outcome["winner"]["results"][0]["time_per_batch_s"].as_f64().unwrap();
        f.set(&format!("{WINNER}/breakdown_s/tensor"), json!(total / 7.0));
    }),
    ("another bubble", Check, |f| {
        let total = f.outcome["winner"]["results"][0]["time_per_batch_s"].as_f64().unwrap();
        f.set(&format!("{WINNER}/breakdown_s/bubble"), json!(total / 3.0));
    }),
    ("a stage that begins later", Check, |f| f.plus(&format!("{WINNER}/stages/0/first_layer"), 1)),
    ("a stage with more layers", Check, |f| f.plus(&format!("{WINNER}/stages/0/n_layers"), 1)),
    ("a stage with other layers", Check, |f| {
        f.plus(&format!("{WINNER}/stages/0/layers/0/count"), 1);
    }),
    ("a stage on more devices", Check, |f| f.plus(&format!("{WINNER}/stages/0/devices"), 1)),
    ("a faster stage", Check, |f| f.times(&format!("{WINNER}/stages/0/forward_s"), 0.5)),
    ("a faster stage back", Check, |f| f.times(&format!("{WINNER}/stages/0/backward_s"), 0.5)),
    ("less load", Check, |f| f.times(&format!("{WINNER}/stages/0/load_s"), 0.5)),
    ("no weights", Check, |f| {
        f.set(&format!("{WINNER}/stages/0/memory_bytes/weights"), json!(0));
    }),
    ("no activations", Check, |f| {
        f.set(&format!("{WINNER}/stages/0/memory_bytes/activations"), json!(0));
    }),
    ("nothing gathered or all", Check, |f| {
        f.plus(&format!("{WINNER}/stages/0/memory_bytes/gathered"), 1);
    }),
    ("less for a moment", Check, |f| {
        f.plus(&format!("{WINNER}/stages/0/memory_bytes/working"), 1);
    }),
    ("another rank", Check, |f| f.plus(&format!("{WINNER}/stages/0/rank"), 1)),
    ("repeated layers", Check, |f| f.plus(&format!("{WINNER}/stages/0/n_repeated"), 1)),
    ("weights that arrive at once", Check, |f| {
        let total = f.outcome["winner"]["results"][0]["time_per_batch_s"].as_f64().unwrap();
        f.set(&format!("{WINNER}/breakdown_s/weight_gathering"), json!(total / 5.0));
    }),
    ("a larger limit", Check, |f| f.plus(&format!("{WINNER}/stages/0/memory_limit_bytes"), 1)),
    ("no stage", Check, |f| f.set(&format!("{WINNER}/stages"), json!([]))),
    ("other rounds", Check, |f| f.plus(&format!("{WINNER}/n_micro_batches"), 1)),
    ("no layers", Check, |f| f.set(&format!("{WINNER}/layers"), json!([]))),
    ("one layer fewer", Check, |f| f.pop(&format!("{WINNER}/layers"))),
    ("another layer", Check, |f| f.set(&format!("{WINNER}/layers/1/kind"), json!("attention"))),
    ("more of a layer", Check, |f| f.plus(&format!("{WINNER}/layers/1/count"), 1)),
    ("a faster pass", Check, |f| f.times(&format!("{WINNER}/layers/1/forward/time_s"), 0.5)),
    ("a shorter makespan", Check, |f| {
        f.times(&format!("{WINNER}/layers/1/forward/makespan_s"), 0.5);
    }),
    ("less time of memory", Check, |f| f.times(&format!("{WINNER}/layers/1/forward/hbm_s"), 0.5)),
    ("less time of the buffer", Check, |f| {
        f.times(&format!("{WINNER}/layers/1/forward/glb_s"), 0.5);
    }),
    ("an unknown proof", Check, |f| {
        f.set(&format!("{WINNER}/layers/1/forward/proof/kind"), json!("faith"));
    }),
    ("another complete proof of one entry", Check, |f| another_proof(f.at("/winner"))),
    ("another complete proof, throughout", Deep, |f| f.everywhere(another_proof)),
    ("a lower bound", Check, |f| {
        f.times(&format!("{WINNER}/layers/1/forward/proof/lower_bound_s"), 0.5);
    }),
    ("a gap", Check, |f| f.set(&format!("{WINNER}/layers/1/forward/proof/gap"), json!(0.5))),
    ("operators four times faster", Check, |f| four_times_faster(f.at(WINNER))),
    ("an operator fewer", Check, |f| f.pop(&format!("{WINNER}/layers/1/forward/operators"))),
    ("another operator", Check, |f| {
        f.set(&format!("{WINNER}/layers/1/forward/operators/0/name"), json!("nothing"));
    }),
    ("another core", Check, |f| {
        f.set(&format!("{WINNER}/layers/1/forward/operators/0/core"), json!("network"));
    }),
    ("an operator that starts later", Check, |f| {
        f.set(&format!("{WINNER}/layers/1/forward/operators/0/start_s"), json!(1.0));
    }),
    ("an operator that ends earlier", Check, |f| {
        f.times(&format!("{WINNER}/layers/1/forward/operators/1/end_s"), 0.5);
    }),
    ("fewer operations of an operator", Check, |f| {
        f.set(&format!("{WINNER}/layers/1/forward/operators/1/flops"), json!(1.5));
    }),
    ("fewer bytes of an operator", Check, |f| {
        f.set(&format!("{WINNER}/layers/1/forward/operators/1/hbm_bytes"), json!(1));
    }),
    ("less energy of an operator", Check, |f| {
        f.times(&format!("{WINNER}/layers/1/forward/operators/1/energy_j"), 0.5);
    }),
    ("another limit of an operator", Check, |f| {
        f.set(&format!("{WINNER}/layers/1/forward/operators/1/limit"), json!("luck"));
    }),
    ("cores that are not there", Check, |f| {
        f.set(&format!("{WINNER}/layers/1/forward/operators/1/cores"), json!([1_000_000]));
    }),
    ("a smaller product", Check, |f| f.plus(&first_matmul(f, "/matmul/m"), 1)),
    ("no mapping", Check, |f| f.set(&first_matmul(f, "/mapping"), Value::Null)),
    ("more cores for a product", Check, |f| {
        f.set(&first_matmul(f, "/mapping/cores/m"), json!(1 << 20));
    }),
    ("a core for nothing", Check, |f| f.set(&first_matmul(f, "/mapping/cores/m"), json!(0))),
    ("a loop twice", Check, |f| {
        let width = f.at(&first_matmul(f, "/mapping/array/width")).clone();
        f.set(&first_matmul(f, "/mapping/array/depth"), width);
    }),
    ("a tile beyond its buffer", Check, |f| {
        let path = first_matmul(f, "/mapping/local_tile");
        f.set(&path, json!({"m": 1_u64 << 40, "k": 1_u64 << 40, "n": 1_u64 << 40}));
    }),
    ("an empty tile", Check, |f| f.set(&first_matmul(f, "/mapping/glb_tile/m"), json!(0))),
    ("another innermost loop", Check, |f| {
        f.set(&first_matmul(f, "/mapping/glb_inner"), json!("x"));
    }),
    ("a plan of another version", Check, |f| f.set(&format!("{WINNER}/plan/version"), json!(7))),
    ("a plan of another schema", Check, |f| f.set(&format!("{WINNER}/plan/schema"), json!("x"))),
    ("a plan of something else", Check, |f| f.set(&format!("{WINNER}/plan/name"), json!("x"))),
    ("a plan in other units", Check, |f| {
        f.set(&format!("{WINNER}/plan/units/time_digits"), json!(15));
    }),
    ("a plan for another chip", Check, |f| {
        f.set(&format!("{WINNER}/plan/training/design"), json!("a100"));
    }),
    ("a plan with fewer operations", Check, |f| {
        f.set(&format!("{WINNER}/plan/training/flops_per_sequence"), json!(1));
    }),
    ("a plan with a higher peak", Check, |f| {
        f.plus(&format!("{WINNER}/plan/training/peak_flops_per_second"), 1);
    }),
    ("a plan for more memory", Check, |f| f.plus(&format!("{WINNER}/plan/job/memory"), 1 << 30)),
    ("a plan with more installed", Check, |f| {
        f.plus(&format!("{WINNER}/plan/job/installed"), 1 << 30);
    }),
    ("a plan whose steps wait for nothing", Check, |f| {
        f.set(&format!("{WINNER}/plan/job/ends/step_start"), json!("own_gradients"));
    }),
    ("a plan with other buckets", Check, |f| {
        f.set(&format!("{WINNER}/plan/job/ends/buckets"), json!("stages"));
    }),
    ("a reserve that was not kept", Check, |f| f.set("/request/reserve_per_mille", json!(0))),
    ("a plan of fewer operations behind a mask", Check, |f| {
        f.set(&format!("{WINNER}/plan/training/causal_flops_per_sequence"), json!(1));
    }),
    ("a plan with a repeatable head", Check, |f| {
        f.opposite(&format!("{WINNER}/plan/profile/kinds/2/repeatable"));
    }),
    ("a plan that holds less for a moment", Check, |f| {
        f.plus(&format!("{WINNER}/plan/profile/kinds/1/working"), 1);
    }),
    ("a plan with other exchanges backward", Check, |f| {
        f.plus(&format!("{WINNER}/plan/profile/kinds/1/backward_collectives"), 1);
    }),
    ("a plan with less gathered", Check, |f| {
        f.plus(&format!("{WINNER}/plan/answer/ranks/0/memory/gathered"), 1);
    }),
    ("a plan with less exposed", Check, |f| {
        f.plus(&format!("{WINNER}/plan/answer/ranks/0/after/exposed"), 1);
    }),
    ("a plan with a shorter gathering", Check, |f| {
        f.plus(&format!("{WINNER}/plan/answer/ranks/0/gathering"), 1);
    }),
    ("a plan whose rank ends sooner", Check, |f| {
        f.set(&format!("{WINNER}/plan/answer/ranks/0/finished"), json!(1));
    }),
    ("a plan with fewer ranks", Check, |f| f.pop(&format!("{WINNER}/plan/answer/ranks"))),
    ("a plan with more repeated layers", Check, |f| {
        f.plus(&format!("{WINNER}/plan/answer/stages/0/repeated"), 1);
    }),
    ("a plan that holds no state", Check, |f| {
        f.set(&format!("{WINNER}/plan/job/per_parameter/state"), json!(0));
    }),
    ("a plan with a faster step", Check, |f| {
        f.set(&format!("{WINNER}/plan/job/per_parameter/step_per_gibi"), json!(1));
    }),
    ("a plan without parameters", Check, |f| {
        f.set(&format!("{WINNER}/plan/profile/kinds/1/parameters"), json!(0));
    }),
    ("a plan without activations", Check, |f| {
        f.set(&format!("{WINNER}/plan/profile/kinds/1/activations"), json!(0));
    }),
    ("a plan with a faster layer", Check, |f| {
        f.set(&format!("{WINNER}/plan/profile/kinds/1/forward"), json!(1));
    }),
    ("a plan without exchanges", Check, |f| {
        f.plus(&format!("{WINNER}/plan/profile/kinds/1/collectives"), 1);
    }),
    ("a plan without sends", Check, |f| f.set(&format!("{WINNER}/plan/profile/edges"), json!([]))),
    ("a plan with other names", Check, |f| f.plus(&format!("{WINNER}/plan/profile/tied"), 1)),
    ("a plan with a layer twice", Check, |f| {
        f.set(&format!("{WINNER}/plan/answer/stages/0/layers/0"), json!(1));
    }),
    ("a plan without layers", Check, |f| f.set(&format!("{WINNER}/plan/answer/stages"), json!([]))),
    ("a plan with no replica", Check, |f| {
        f.set(&format!("{WINNER}/plan/answer/data_parallel"), json!(0));
    }),
    ("a plan that takes less", Check, |f| {
        f.set(&format!("{WINNER}/plan/answer/time_per_batch"), json!(1));
    }),
    ("a plan that compared more widths", Check, |f| {
        f.set(&format!("{WINNER}/plan/proof/space/tensor_parallel"), json!([1, 2, 4, 8, 16]));
    }),
    ("a plan that compared no space", Check, |f| {
        f.set(&format!("{WINNER}/plan/proof/space"), Value::Null);
    }),
    ("a plan that leaves nothing to beat open", Check, |f| {
        f.set(&format!("{WINNER}/plan/proof/open"), json!(0));
    }),
    ("a plan that leaves more open than it takes", Check, |f| {
        f.set(&format!("{WINNER}/plan/proof/open"), json!(u64::MAX));
    }),
    ("a plan that was given", Check, |f| {
        f.set(&format!("{WINNER}/plan/proof"), json!({"kind": "given"}));
    }),
    ("another size of memory", Check, |f| f.set("/best_by_hbm/0/hbm_gib", json!(48))),
    ("no best of a size", Check, |f| f.set("/best_by_hbm/0/entry", Value::Null)),
    ("a size fewer", Check, |f| f.pop("/best_by_hbm")),
    ("an inexact list called exact", Check, |f| {
        let exact = f.at("/top/exact");
        *exact = json!(!exact.as_bool().unwrap());
    }),
    ("an inexact front called exact", Check, |f| {
        let exact = f.at("/pareto/exact");
        *exact = json!(!exact.as_bool().unwrap());
    }),
    ("an entry of the front deleted", Check, |f| f.pop("/pareto/entries")),
    ("an entry of the list deleted", Check, |f| f.pop("/top/entries")),
    ("the list in another order", Check, |f| {
        f.at("/top/entries").as_array_mut().unwrap().swap(0, 1);
    }),
    ("a baseline fewer", Check, |f| f.pop("/baselines")),
    ("another baseline", Check, |f| f.set("/baselines/0/name", json!("tpuv5"))),
    ("another description", Check, |f| f.set("/baselines/0/description", json!("a chip"))),
    ("a worse baseline", Check, |f| f.times("/baselines/1/winner_ratio", 2.0)),
    ("a baseline that does not fit", Check, |f| {
        f.set("/baselines/1/entry", Value::Null);
        f.set("/baselines/1/winner_ratio", Value::Null);
        f.set("/baselines/1/reason", json!("no placement fits"));
    }),
    ("a reason beside a baseline", Check, |f| f.set("/baselines/1/reason", json!("bad luck"))),
    ("a baseline of another design", Check, |f| f.plus("/baselines/3/entry/design/width", 1)),
    ("a baseline of a worse design of the space", Deep, |f| {
        let mut entry = f.outcome["winner"].clone();
        let theirs = &f.outcome["baselines"][3]["entry"];
        if entry["design"]["tensor_cores"] == theirs["design"]["tensor_cores"]
            && entry["design"]["width"] == theirs["design"]["width"]
        {
            entry = f.outcome["top"]["entries"][1].clone();
        }
        entry["design"]["index"] = Value::Null;
        let time = |entry: &Value| entry["results"][0]["time_per_batch_s"].as_f64().unwrap();
        let ratio = time(&entry) / time(&f.outcome["winner"]);
        if entry["design"]["hbm_bytes"] != f.outcome["winner"]["design"]["hbm_bytes"] {
            entry = f.outcome["winner"].clone();
            entry["design"]["index"] = Value::Null;
        }
        f.set("/baselines/3/winner_ratio", json!(ratio));
        f.set("/baselines/3/entry", entry);
    }),
    ("one evaluated fewer", Check, |f| f.set("/proof/by_hbm/0/evaluated", json!(1))),
    ("one pruned more", Check, |f| f.plus("/proof/by_hbm/0/pruned", 1)),
    ("some infeasible", Check, |f| f.plus("/proof/by_hbm/0/infeasible", 1)),
    ("some open", Check, |f| f.plus("/proof/by_hbm/0/open", 1)),
    ("another best bound", Check, |f| f.times("/proof/by_hbm/0/best_pruned_bound", 0.5)),
    ("another best value", Check, |f| f.times("/proof/by_hbm/0/best_value", 2.0)),
    ("a gap of the proof", Check, |f| f.set("/proof/by_hbm/0/gap", json!(0.1))),
    ("an incomplete proof", Check, |f| f.set("/proof/complete", json!(false))),
    ("a stopped search", Check, |f| f.set("/proof/stopped_by", json!("the time limit"))),
    ("more designs", Check, |f| f.plus("/proof/designs", 1)),
    ("another statement", Check, |f| f.set("/proof/statement", json!("Proved: trust me."))),
    ("another limit", Check, |f| f.set("/limited_by/0/what", json!("patience"))),
    ("another share", Check, |f| f.set("/limited_by/0/share", json!(0.123))),
    ("no limits", Check, |f| f.set("/limited_by", json!([]))),
    ("another knob", Check, |f| f.set("/sensitivities/0/knob", json!("luck"))),
    ("another change", Check, |f| f.set("/sensitivities/0/change", json!("halved"))),
    ("from another value", Check, |f| f.times("/sensitivities/0/from", 2.0)),
    ("to another value", Check, |f| f.times("/sensitivities/0/to", 2.0)),
    ("another area", Check, |f| f.times("/sensitivities/0/area_ratio", 0.9)),
    ("a note", Check, |f| f.set("/sensitivities/0/note", json!("does not fit"))),
    ("another gain", Deep, |f| f.times("/sensitivities/0/throughput_ratio", 1.5)),
    ("a sensitivity fewer", Check, |f| f.pop("/sensitivities")),
    ("a row fewer", Check, |f| {
        f.cells.pop();
    }),
    ("a row twice", Check, |f| {
        let row = f.cells[1].clone();
        f.cells[2] = row;
    }),
    ("a column fewer", Check, |f| {
        f.cells.iter_mut().for_each(|row| {
            row.pop();
        });
    }),
    ("another heading", Check, |f| f.cells[0][1] = "cores".into()),
    ("other knobs", Check, |f| f.cell(1, "width", "31")),
    ("another area of a row", Check, |f| f.cell(1, "area_um2", "1")),
    ("an evaluated row called infeasible", Check, |f| f.relabel("evaluated", "infeasible")),
    ("an evaluated row called pruned", Check, |f| f.relabel("evaluated", "pruned")),
    ("an evaluated row called open", Check, |f| f.relabel("evaluated", "open")),
    ("an evaluated row called beaten", Check, |f| f.relabel("evaluated", "beaten")),
    ("a beaten row called evaluated", Check, |f| f.relabel("beaten", "evaluated")),
    ("a beaten row called pruned", Check, |f| f.relabel("beaten", "pruned")),
    ("a beaten row called infeasible", Check, |f| f.relabel("beaten", "infeasible")),
    ("a pruned row called beaten", Check, |f| f.relabel("pruned", "beaten")),
    ("one beaten more", Check, |f| f.plus("/proof/by_hbm/0/beaten", 1)),
    ("a pruned row called infeasible", Check, |f| f.relabel("pruned", "infeasible")),
    ("a pruned row called evaluated", Check, |f| f.relabel("pruned", "evaluated")),
    ("a pruned row called open", Check, |f| f.relabel("pruned", "open")),
    ("an unknown status", Check, |f| f.relabel("pruned", "boring")),
    ("a worse bound", Check, |f| {
        let row = f.row("status_hbm32", "pruned");
        f.cell(row, "bound_hbm32", "1");
    }),
    ("no bound", Check, |f| {
        let row = f.row("status_hbm32", "pruned");
        f.cell(row, "bound_hbm32", "");
    }),
    ("a better value of a row", Check, |f| {
        let row = f.row("status_hbm32", "evaluated");
        f.cell(row, "value_hbm32", "1e9");
    }),
    ("a batch faster than its bound", Check, |f| {
        let row = f.row("status_hbm32", "evaluated");
        f.cell(row, "time_per_batch_s_hbm32", "0.000000000001");
    }),
    ("an evaluated row that is consistently slower", Deep, slower_row),
    ("a row that is nearly as good, consistently called beaten", Deep, hidden_row),
    ("a row best with another memory", Check, |f| {
        let row = f.row("best_hbm_gib", "64");
        f.cell(row, "best_hbm_gib", "32");
    }),
    ("more utilisation of a row", Check, |f| {
        let row = f.row("best_hbm_gib", "64");
        f.cell(row, "mfu", "0.99");
    }),
    ("a recompute that was not asked for", Check, |f| {
        let row = f.row("best_hbm_gib", "64");
        f.cell(row, "recompute", "stage");
    }),
    ("more ranks of a row", Check, |f| {
        let row = f.row("best_hbm_gib", "64");
        f.cell(row, "pipeline", "1000");
    }),
    ("more chunks of a row", Check, |f| {
        let row = f.row("best_hbm_gib", "64");
        f.cell(row, "chunks", "1000");
    }),
    ("a shared context of a row", Check, |f| {
        let row = f.row("best_hbm_gib", "64");
        f.cell(row, "context_parallel", "64");
    }),
    ("another sharding of a row", Check, |f| {
        let row = f.row("best_hbm_gib", "64");
        f.cell(row, "zero", "7");
    }),
    ("another sentence of a row", Check, |f| {
        let row = f.row("best_hbm_gib", "64");
        f.cell(row, "strategy", "TP 1 x PP 1 x DP 1, micro-batch 1, no recompute");
    }),
    ("an unproved value", Deep, |f| {
        // The slowest evaluated row: its gap cannot reach the winner's value.
        let (at, least) = (f.column("value_hbm32"), f.column("least_value_hbm32"));
        let value = |row: &Vec<String>| row[at].parse::<f64>().unwrap_or(f64::INFINITY);
        let slowest = f.cells[1..].iter_mut().min_by(|a, b| value(a).total_cmp(&value(b)));
        let row = slowest.unwrap();
        row[least] = (value(row) * 1.000_001).to_string();
    }),
];

/// Every time of every operator a quarter of what it was, and all that follows from them.
fn four_times_faster(result: &mut Value) {
    for layer in result["layers"].as_array_mut().unwrap() {
        for pass in ["forward", "backward"] {
            for key in ["time_s", "makespan_s", "hbm_s", "glb_s"] {
                layer[pass][key] = json!(layer[pass][key].as_f64().unwrap() / 4.0);
            }
            for op in layer[pass]["operators"].as_array_mut().unwrap() {
                for key in ["start_s", "end_s"] {
                    op[key] = json!(op[key].as_f64().unwrap() / 4.0);
                }
            }
        }
    }
}

/// The path of something of the first product of the transformer's forward pass.
fn first_matmul(files: &Files, inner: &str) -> String {
    let operators = &files.outcome["winner"]["results"][0]["layers"][1]["forward"]["operators"];
    let mut each = operators.as_array().unwrap().iter();
    let at = each.position(|op| !op["matmul"].is_null()).unwrap();
    format!("{WINNER}/layers/1/forward/operators/{at}{inner}")
}

/// An evaluated row takes a nanosecond longer with a memory that is not its best, in every figure.
fn slower_row(files: &mut Files) {
    let best = files.outcome["best_by_hbm"][0]["entry"]["design"]["index"].as_u64().unwrap();
    let front = files.outcome["pareto"]["entries"].as_array().unwrap();
    let told: Vec<u64> =
        front.iter().filter_map(|entry| entry["design"]["index"].as_u64()).chain([best]).collect();
    let (status, best) = (files.column("status_hbm32"), files.column("best_hbm_gib"));
    let fits = |row: usize| {
        let cells = &files.cells[row];
        cells[status] == "evaluated" && cells[best] == "64" && !told.contains(&(row as u64 - 1))
    };
    let row = (1..files.cells.len()).find(|&row| fits(row)).unwrap();
    let (time, value) = (files.column("time_per_batch_s_hbm32"), files.column("value_hbm32"));
    let ticks = (files.cells[row][time].parse::<f64>().unwrap() * 1e12).round();
    let figure: f64 = files.cells[row][value].parse().unwrap();
    files.cells[row][time] = format!("{:.12}", (ticks + 1000.0) / 1e12);
    files.cells[row][value] = (figure * ticks / (ticks + 1000.0)).to_string();
}

/// A row that came after the best of its memory, and is not told of elsewhere, is called beaten, its
/// figures are gone, and the proof counts so.
fn hidden_row(files: &mut Files) {
    let best = files.outcome["best_by_hbm"][0]["entry"]["design"]["index"].as_u64().unwrap();
    let front = files.outcome["pareto"]["entries"].as_array().unwrap();
    let told: Vec<u64> =
        front.iter().filter_map(|entry| entry["design"]["index"].as_u64()).chain([best]).collect();
    let (status, bound) = (files.column("status_hbm32"), files.column("bound_hbm32"));
    let size = files.column("best_hbm_gib");
    let bound_of = |row: usize| files.cells[row][bound].parse::<f64>().unwrap_or(f64::INFINITY);
    let best_bound = bound_of(usize::try_from(best).unwrap() + 1);
    let fits = |row: usize| {
        let cells = &files.cells[row];
        let is_told = told.contains(&(row as u64 - 1));
        cells[status] == "evaluated"
            && cells[size] == "64"
            && !is_told
            && bound_of(row) < best_bound
    };
    let row = (1..files.cells.len()).find(|&row| fits(row)).unwrap();
    files.cells[row][status] = "beaten".into();
    for name in ["value", "least_value", "time_per_batch_s", "energy_per_batch_j", "devices_used"] {
        files.cell(row, &format!("{name}_hbm32"), "");
    }
    let count = |files: &Files, of: &str| -> u64 {
        let rows = files.outcome["proof"]["by_hbm"].as_array().unwrap();
        rows.iter().map(|row| row[of].as_u64().unwrap()).sum()
    };
    let (evaluated, beaten) = (count(files, "evaluated"), count(files, "beaten"));
    let fewer = files.outcome["proof"]["by_hbm"][0]["evaluated"].as_u64().unwrap() - 1;
    files.set("/proof/by_hbm/0/evaluated", json!(fewer));
    files.plus("/proof/by_hbm/0/beaten", 1);
    let said = files.outcome["proof"]["statement"].as_str().unwrap().to_owned();
    let said = said
        .replace(
            &format!("{evaluated} were evaluated"),
            &format!("{} were evaluated", evaluated - 1),
        )
        .replace(&format!("{beaten} were found"), &format!("{} were found", beaten + 1));
    files.set("/proof/statement", json!(said));
}

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    more.iter().copied().chain(SMALL).collect()
}

#[test]
fn every_claim_of_a_search_can_be_refuted() {
    let arguments = with(&["--model", "bert-large", "--hbm", "32,64"]);
    let real = real("small", PLAIN, &arguments);
    check(&real, LIES);
    mutations(&real, 250);
}

#[test]
fn every_claim_of_an_exact_front_and_list_can_be_refuted() {
    let arguments = with(&["--model", "bert-large", "--hbm", "32,64", "--pareto", "--top", "5"]);
    let real = real("pareto", PLAIN, &arguments);
    let lies: &[Lie] = &[
        ("an entry of an exact front deleted", Check, |f| f.pop("/pareto/entries")),
        ("an exact front called inexact", Check, |f| f.set("/pareto/exact", json!(false))),
        ("an entry of the front twice", Check, |f| {
            let entries = f.at("/pareto/entries").as_array_mut().unwrap();
            let first = entries[0].clone();
            entries.push(first);
        }),
        ("a value of the front", Check, |f| f.times("/pareto/entries/0/value", 1.5)),
        ("an evaluated row called pruned", Check, |f| f.relabel("evaluated", "pruned")),
    ];
    check(&real, lies);
    mutations(&real, 60);
}

#[test]
fn every_claim_about_several_models_can_be_refuted() {
    let arguments = with(&["--model", "bert-large", "--model", "opt-350m", "--hbm", "32"]);
    let real = real("two", PLAIN, &arguments);
    let lies: &[Lie] = &[
        ("one result of two", Check, |f| f.pop("/winner/results")),
        ("results in another order", Check, |f| {
            f.at("/winner/results").as_array_mut().unwrap().swap(0, 1);
        }),
        ("a model fewer", Check, |f| f.pop("/models")),
        ("another own cost alone", Check, |f| f.times("/models/0/own_best_cost", 0.9)),
        ("another own best", Check, |f| {
            f.times("/models/0/best_throughput_sequences_per_s", 1.1);
        }),
        ("a worse own best, in both figures", Check, |f| {
            f.times("/models/0/own_best_cost", 2.0);
            f.times("/models/0/best_throughput_sequences_per_s", 0.5);
        }),
    ];
    check(&real, lies);
    mutations(&real, 60);
}

#[test]
fn energy_published_rules_and_nodes_are_judged_too() {
    let energy = ["--model", "bert-large", "--hbm", "32", "--objective", "energy-per-token"];
    mutations(&real("energy", PLAIN, &with(&energy)), 40);
    let published = ["--model", "bert-large", "--hbm", "32", "--published"];
    mutations(&real("published", "", &with(&published)), 40);
    let nodes = ["--model", "bert-large", "--hbm", "80", "--hardware", "a100-80g", "--pareto"];
    mutations(&real("nodes", CONTEXTS, &with(&nodes)), 40);
}

#[test]
fn virtual_stages_and_rules_of_a_framework_are_judged_too() {
    let small = ["--model", "bert-large", "--fix", "width=64", "--fix", "tensor_cores=64"];
    let chunks = ["--hbm", "32", "--space", "vector_cores=16,64", "--devices", "8"];
    let chunks = [&small[..], &["--global-batch", "16", "--fix", "depth=64"], &chunks].concat();
    let chunks = real("chunks", CHUNKS, &chunks);
    let lies: &[Lie] = &[
        ("one chunk", Check, |f| f.set(&degree("schedule"), json!("one_forward_one_backward"))),
        ("another group", Check, |f| f.plus(&degree("schedule/interleaved/group"), 1)),
        ("a plan with other chunks", Check, |f| {
            f.plus(&format!("{WINNER}/plan/answer/schedule/interleaved/chunks"), 1);
        }),
        ("a faster chunk", Check, |f| {
            f.plus(&format!("{WINNER}/plan/answer/stages/3/forward"), 1);
        }),
        ("a smaller rank", Check, |f| {
            f.plus(&format!("{WINNER}/plan/answer/ranks/1/memory/activations"), 1);
        }),
        ("more left open than the plan takes", Check, |f| {
            f.set(&format!("{WINNER}/plan/proof/open"), json!(u64::MAX));
        }),
    ];
    check(&chunks, lies);
    mutations(&chunks, 40);
    let megatron = ["--hbm", "80", "--hardware", "a100-80g"];
    mutations(&real("megatron", LAUNCHABLE, &with(&[&small[..2], &megatron].concat())), 40);
}

#[test]
fn a_search_in_which_nothing_fits_is_judged_too() {
    let arguments = [
        "--model",
        "gpt3-175b",
        "--devices",
        "8",
        "--fix",
        "width=128",
        "--fix",
        "depth=128",
        "--fix",
        "glb_mib=32",
        "--hbm",
        "32",
    ];
    let real = real("infeasible", PLAIN, &arguments);
    let lies: &[Lie] = &[
        ("another reason", Check, |f| f.set("/infeasible_reason", json!("no luck"))),
        ("no reason", Check, |f| f.set("/infeasible_reason", Value::Null)),
        ("pruned designs", Check, |f| f.cell(1, "status_hbm32", "pruned")),
        ("evaluated designs", Check, |f| f.cell(1, "status_hbm32", "evaluated")),
        ("a best of a size", Check, |f| f.set("/proof/by_hbm/0/best_value", json!(1.0))),
    ];
    check(&real, lies);
    mutations(&real, 40);
}

/// Changes figures, words and switches anywhere but in the request: what is still believed reads
/// as the same outcome.
fn mutations(real: &Real, count: usize) {
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let mut leaves = Vec::new();
    for (key, value) in real.outcome.as_object().unwrap() {
        if key != "request" {
            collect(&format!("/{key}"), value, &mut leaves);
        }
    }
    for _ in 0..count {
        let mut files = Files { outcome: real.outcome.clone(), cells: real.cells.clone() };
        let place = if dice.below(3) == 0 {
            let row = dice.below(files.cells.len());
            let column = dice.below(files.cells[row].len());
            let cell = files.cells[row][column].clone();
            let mutated = dice.cell(&cell);
            files.cells[row][column].clone_from(&mutated);
            format!("row {row}, {}: {cell} to {mutated}", real.cells[0][column])
        } else {
            let path = leaves[dice.below(leaves.len())].clone();
            let mutated = dice.value(files.at(&path));
            files.set(&path, mutated.clone());
            format!("{path}: {} to {mutated}", real.outcome.pointer(&path).unwrap())
        };
        // Only the name of the program's version may be another's.
        let refused = rejected(real, &files).is_some() || place.starts_with("/phaze");
        assert!(refused, "believed: {place}");
    }
}

fn collect(path: &str, value: &Value, leaves: &mut Vec<String>) {
    match value {
        Value::Array(items) if !items.is_empty() => {
            items
                .iter()
                .enumerate()
                .for_each(|(at, item)| collect(&format!("{path}/{at}"), item, leaves));
        }
        Value::Object(fields) => fields.iter().for_each(|(key, inner)| {
            collect(
                &format!("{path}/{}", key.replace('~', "~0").replace('/', "~1")),
                inner,
                leaves,
            );
        }),
        _ => leaves.push(path.to_owned()),
    }
}

/// A small repeatable source of numbers (xorshift).
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from((self.0 >> 11) % n as u64).unwrap()
    }

    fn figure(&mut self, from: f64) -> f64 {
        match self.below(5) {
            0 => from * 2.0 + 1.0,
            1 => from * (1.0 + 1e-6) + 1e-6,
            2 => from * 0.999 - 1e-6,
            3 => -from - 1.0,
            // More than the rounding of a figure of any size.
            _ => from + 1.0 + from.abs() * 1e-6,
        }
    }

    /// Something else of the same kind.
    fn value(&mut self, from: &Value) -> Value {
        match from {
            Value::Number(number) => match number.as_u64() {
                Some(whole) if self.below(4) > 0 => match self.below(3) {
                    0 => json!(whole + 1),
                    1 => json!(whole * 2 + 1),
                    _ => json!(if whole == 0 { 7 } else { whole - 1 }),
                },
                _ => json!(self.figure(number.as_f64().unwrap())),
            },
            Value::String(text) => match self.below(2) {
                0 => json!(format!("{text}x")),
                _ => json!(if text.is_empty() { "y" } else { "" }),
            },
            Value::Bool(is) => json!(!is),
            Value::Null => json!(1),
            other => json!([other]),
        }
    }

    fn cell(&mut self, from: &str) -> String {
        match from.parse::<f64>() {
            Ok(number) => self.figure(number).to_string(),
            Err(_) if from.is_empty() => "1".into(),
            Err(_) => ["evaluated", "beaten", "pruned", "infeasible", "open", ""]
                .into_iter()
                .filter(|word| *word != from)
                .nth(self.below(5))
                .unwrap()
                .to_owned(),
        }
    }
}

#[test]
fn the_command_names_a_lie_and_never_panics() {
    let (directory, mut files) =
        searched("command", PLAIN, &with(&["--model", "bert-large", "--hbm", "32"]));
    let path = directory.join("outcome.json");
    let honest = files.outcome.clone();
    let run = |outcome: &Value, more: &[&str]| {
        fs::write(&path, outcome.to_string()).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_phaze"));
        let ended = command.arg("check").arg(&path).args(more).output().unwrap();
        let text = String::from_utf8([ended.stdout, ended.stderr].concat()).unwrap();
        (ended.status.code(), text)
    };
    let (code, text) = run(&honest, &[]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("Not checked, because it needs a solver"), "{text}");
    let (code, text) = run(&honest, &["--deep"]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("evaluated once more") && !text.contains("Not checked"), "{text}");
    files.times("/winner/value", 10.0);
    let (code, text) = run(&files.outcome, &[]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("does not hold: winner.value is said to be"), "{text}");
    files.outcome = honest.clone();
    files.times("/sensitivities/0/throughput_ratio", 1.5);
    assert_eq!(run(&files.outcome, &[]).0, Some(0));
    let (code, text) = run(&files.outcome, &["--deep"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("sensitivities[0].throughput_ratio"), "{text}");
    // Whatever a request says, the answer is a sentence.
    let mut leaves = Vec::new();
    collect("/request", &honest["request"], &mut leaves);
    let hostile =
        [json!(0), json!(u64::MAX), json!(1_u64 << 40), json!(-1), json!(1e300), json!("")];
    for leaf in &leaves {
        for value in &hostile {
            files.outcome = honest.clone();
            files.set(leaf, value.clone());
            let claimed = serde_json::from_value::<Outcome>(files.outcome.clone());
            let Ok(claimed) = claimed else { continue };
            if let Ok((question, _)) = question(&claimed) {
                let _ = certify::check(&question, &claimed, tables(&files.cells));
            }
        }
    }
    for (leaf, value) in [("/request/space/hbm_gib/0", 1_u64 << 62), ("/request/devices", 0)] {
        files.outcome = honest.clone();
        files.set(leaf, json!(value));
        let (code, text) = run(&files.outcome, &[]);
        assert_eq!(code, Some(2), "{leaf}: {text}");
    }
    fs::remove_dir_all(directory).unwrap();
}
