//! `phaze plan` as users meet it: its blocks, its directory, what it refuses, its traces.

mod command;

use std::path::Path;
use std::path::PathBuf;

use command::phaze;
use serde_json::Value;

fn scratch(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    folder.join(format!("plan-{}-{name}", std::process::id()))
}

/// Runs a command line; answers status, output and errors.
fn run(line: &str) -> (Option<i32>, String, String) {
    let words: Vec<&str> = line.split_whitespace().collect();
    let output = phaze(&words, "");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

const SMALL: &str = "plan llama3-8b --gpus 16xh100-sxm --seq 4096 --tokens 100G";

#[test]
fn every_block_is_told_with_units_and_nothing_in_kiloseconds() {
    let (status, text, errors) = run(&format!("{SMALL} --for megatron --price 2.20"));
    assert_eq!(status, Some(0), "{errors}");
    for said in [
        "llama3-8b (8.03 B) on 16 h100-sxm, 2 nodes of 8",
        "\nFITS ",
        " GiB on the fullest device (reserve ",
        "at least ",
        "\nLAUNCH ",
        "\nSPEED ",
        " tokens/s/GPU",
        "\nRUN ",
        " steps, ",
        " GPU-hours, $",
        " CO2e, checkpoint ",
        "at 95.0 % goodput",
        "\nWHERE ",
        "\nNEXT ",
        "half the devices",
        "twice the devices",
        "\nWHAT IF ",
        "H200 ",
        "twice the network",
        "one node more",
        "\n$ ",
        "pretrain_gpt.py",
    ] {
        assert!(text.contains(said), "{said} is missing: {text}");
    }
    assert!(!text.contains(" ks"), "{text}");
    let again = run(&format!("{SMALL} --for megatron --price 2.20")).1;
    assert_eq!(again, text, "the same question has the same answer");
}

#[test]
fn a_directory_of_a_plan_is_checked_and_every_change_of_a_file_is_found() {
    let folder = scratch("out");
    let out = folder.to_str().unwrap();
    let (status, _, errors) = run(&format!("{SMALL} --for bridge --out {out}"));
    assert_eq!(status, Some(0), "{errors}");
    let names = ["plan.json", "advice.json", "plan.html", "recipe.py"];
    assert!(names.iter().all(|name| folder.join(name).is_file()));
    let (status, text, errors) = run(&format!("check {out}"));
    assert_eq!(status, Some(0), "{text}{errors}");
    assert!(names.iter().all(|name| text.contains(&format!("{name}: holds"))), "{text}");
    for (name, from, to) in [
        ("recipe.py", "micro_batch_size = ", "micro_batch_size = 3"),
        ("plan.html", "<title>", "<title>x"),
        ("advice.json", "\"dollars\": ", "\"dollars\": 1"),
        ("advice.json", "\"steps\": ", "\"steps\": 1"),
        ("advice.json", "\"seconds\": ", "\"seconds\": 1"),
        ("plan.json", "\"global_batch\": ", "\"global_batch\": 1"),
    ] {
        let path = folder.join(name);
        let text = std::fs::read_to_string(&path).unwrap();
        let forged = text.replacen(from, to, 1);
        assert_ne!(forged, text, "{name} has no {from}");
        std::fs::write(&path, forged).unwrap();
        let (status, said, errors) = run(&format!("check {out}"));
        assert_ne!(status, Some(0), "{name} {to}: {said}{errors}");
        std::fs::write(&path, text).unwrap();
    }
    assert_eq!(run(&format!("check {out}")).0, Some(0));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn what_is_beside_a_plan_is_told_again_by_the_solvers() {
    let folder = scratch("deep");
    let out = folder.to_str().unwrap();
    let line = "plan llama3-8b --gpus 8xh100-sxm --seq 2048 --tokens 1G";
    assert_eq!(run(&format!("{line} --out {out}")).0, Some(0));
    let path = folder.join("advice.json");
    let text = std::fs::read_to_string(&path).unwrap();
    let mut value: Value = serde_json::from_str(&text).unwrap();
    let row = &mut value["what_if"][0]["found"]["time_per_batch"];
    *row = Value::from(row.as_f64().unwrap() * 0.5);
    std::fs::write(&path, format!("{value:#}\n")).unwrap();
    let (status, said, _) = run(&format!("check {out} --deep"));
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains("what_if"), "{said}");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn numbers_of_devices_are_compared_with_knee_and_deadline() {
    let line = "plan llama3-8b --gpus 8..64xh100-sxm --seq 4096 --tokens 1T --deadline 30d";
    let (status, text, errors) = run(&format!("{line} --plot"));
    assert_eq!(status, Some(0), "{errors}");
    for said in ["KNEE", "CHEAPEST", "time █ and GPU-hours", "       64 "] {
        assert!(text.contains(said), "{said} is missing: {text}");
    }
    let (_, text, _) = run(&format!("{line} --json"));
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["curve"]["points"].as_array().unwrap().len(), 4);
    let cheapest = value["curve"]["cheapest"].as_u64().unwrap();
    assert_eq!(value["plan"]["devices"].as_u64().unwrap(), cheapest);
}

#[test]
fn what_does_not_fit_names_the_limit_and_ways_out_that_work() {
    let line = "plan llama3-70b --gpus 8xh100-sxm --seq 8192 --tokens 1T";
    let (status, text, errors) = run(line);
    assert_eq!(status, Some(1), "{text}{errors}");
    assert!(text.contains("nothing fits: "), "{text}");
    let ways = text.lines().filter_map(|line| line.trim().strip_prefix("phaze "));
    let ways: Vec<&str> = ways.collect();
    assert!(!ways.is_empty(), "{text}");
    let (status, _, errors) = run(ways[ways.len() - 1]);
    assert_eq!(status, Some(0), "{}: {errors}", ways[ways.len() - 1]);
    let (_, json, _) = run(&format!("{line} --json"));
    let value: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(value["feasible"], false);
    assert_eq!(value["ways_out"].as_array().unwrap().len(), ways.len());
}

#[test]
fn bad_input_is_refused_with_what_would_do() {
    for (line, said) in [
        ("plan llama3-8b --gpus 16xh100-sxm --tokens 2X", "give a number such as"),
        ("plan llama3-8b --gpus 0xh100-sxm", "allowed are 1 to"),
        ("plan llama3-8b --gpus 16xh100-sxm --price -1", "allowed are 0 to"),
        ("plan llama3-8b --gpus 16xh100-sxm --goodput 0", "allowed are 1 to 100"),
        ("plan llama3-8b --gpus 16xh100", "h100-sxm"),
        ("plan llama3-8b --gpus 16xh100-sxm --for megatorn", "megatron"),
        ("plan bert-large --gpus 16xh100-sxm --for megatron", "it is an encoder"),
        (
            "plan gpt3-175b --gpus 64xh100-sxm --for torchtitan",
            "`--for megatron` takes any numbers",
        ),
        ("plan llama3-8b --gpus 16xh100-sxm --deadline 30", "30d"),
        ("plan llama3-8b --gpus 16xh100-sxm --strategy t=3", "legal are [1, 2, 4, 8, 16, 32]"),
    ] {
        let (status, text, errors) = run(line);
        assert_eq!(status, Some(2), "{line}: {text}");
        assert!(errors.contains(said), "{line}: {errors}");
    }
}

/// Fields of a protobuf message: number, and a number or bytes.
fn fields(mut bytes: &[u8]) -> Vec<(u64, u64, Vec<u8>)> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        if key.is_multiple_of(8) {
            found.push((key >> 3, varint(&mut bytes), Vec::new()));
        } else {
            assert_eq!(key % 8, 2, "only numbers and bytes are written");
            let length = usize::try_from(varint(&mut bytes)).unwrap();
            found.push((key >> 3, 0, bytes[..length].to_vec()));
            bytes = &bytes[length..];
        }
    }
    found
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..).step_by(7) {
        let byte = bytes[0];
        *bytes = &bytes[1..];
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return value;
        }
    }
    unreachable!("a number ends")
}

/// How many nodes of each type a trace has, and the bytes that they exchange.
fn counted(path: &Path) -> ([u64; 8], u64) {
    let bytes = std::fs::read(path).unwrap();
    let mut rest = &bytes[..];
    let (mut counts, mut moved, mut first) = ([0; 8], 0, true);
    while !rest.is_empty() {
        let length = usize::try_from(varint(&mut rest)).unwrap();
        let message = fields(&rest[..length]);
        rest = &rest[length..];
        if std::mem::take(&mut first) {
            continue;
        }
        let kind = message.iter().find(|field| field.0 == 3).unwrap().1;
        counts[usize::try_from(kind).unwrap()] += 1;
        for attribute in message.iter().filter(|field| field.0 == 10) {
            let attribute = fields(&attribute.2);
            if attribute[0].2 == b"comm_size" {
                moved += attribute[1].1;
            }
        }
    }
    (counts, moved)
}

#[test]
fn traces_have_as_many_nodes_and_bytes_as_the_plan() {
    let (folder, traces) = (scratch("chakra"), scratch("chakra-traces"));
    let line = format!(
        "plan llama3-8b --gpus 16xh100-sxm --seq 4096 --global-batch 32 --tokens 1G \
         --strategy t=4,sp,p=2,v=2,zero=1,b=1,recompute=full --out {} --chakra {}",
        folder.display(),
        traces.display()
    );
    let (status, _, errors) = run(&line);
    assert_eq!(status, Some(0), "{errors}");
    let text = std::fs::read_to_string(folder.join("plan.json")).unwrap();
    let plan: Value = serde_json::from_str(&text).unwrap();
    let stages = plan["answer"]["stages"].as_array().unwrap();
    let micro_batches = 32 / 2;
    for (rank, device) in [(0, 0), (1, 8)] {
        let (mut computed, mut exchanges, mut messages, mut bytes) = (1, 2, 0, 0);
        for (at, stage) in stages.iter().enumerate().filter(|(at, _)| at % 2 == rank) {
            let ends = u64::from(at > 0) + u64::from(at + 1 < stages.len());
            messages += 2 * ends * micro_batches;
            let edge = plan["profile"]["edges"][0].clone();
            let size = edge["part"].as_u64().or(edge["size"].as_u64()).unwrap();
            bytes += 2 * ends * micro_batches * size;
            for layer in stage["layers"].as_array().unwrap() {
                let kind = plan["profile"]["sequence"]
                    [usize::try_from(layer.as_u64().unwrap()).unwrap()]
                .as_u64()
                .unwrap();
                let facts = &plan["layers"][usize::try_from(kind).unwrap()];
                let again = facts["kind"] == "transformer";
                let forward = ["forward"].repeat(1 + usize::from(again));
                for pass in forward.into_iter().chain(["backward"]) {
                    computed += micro_batches;
                    for op in facts[pass]["operators"].as_array().unwrap() {
                        let Some(exchange) = op.get("exchange") else { continue };
                        let times = exchange["times"].as_u64().unwrap();
                        exchanges += times * micro_batches;
                        bytes += times * micro_batches * exchange["bytes"].as_u64().unwrap();
                    }
                }
            }
            // Gradients of 4 bytes are scattered, weights of 2 gathered.
            bytes += 6 * stage["parameters"].as_u64().unwrap();
        }
        let (counts, moved) = counted(&traces.join(format!("trace.{device}.et")));
        assert_eq!([counts[4], counts[7]], [computed, exchanges], "rank {rank}");
        assert_eq!(counts[5] + counts[6], messages, "rank {rank}");
        assert_eq!(moved, bytes, "rank {rank}");
    }
    std::fs::remove_dir_all(folder).unwrap();
    std::fs::remove_dir_all(traces).unwrap();
}

#[test]
fn a_run_of_ones_own_is_judged_and_bettered() {
    let folder = scratch("from");
    std::fs::create_dir_all(&folder).unwrap();
    let script = folder.join("run.sh");
    let text = "TP=8\ntorchrun --nproc-per-node 8 --nnodes 2 pretrain_gpt.py \\\n  \
                --tensor-model-parallel-size $TP --pipeline-model-parallel-size 2 \\\n  \
                --micro-batch-size 1 --global-batch-size 64 --seq-length 4096 \\\n  \
                --num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 \\\n  \
                --num-attention-heads 32 --group-query-attention --num-query-groups 8 --swiglu \\\n  \
                --untie-embeddings-and-output-weights --vocab-size 128256 --train-iters 1000 --bf16\n";
    std::fs::write(&script, text).unwrap();
    let line = format!("plan --from {} --gpus 16xh100-sxm", script.display());
    let (status, text, errors) = run(&line);
    assert_eq!(status, Some(0), "{errors}");
    for said in ["t=8", "TP 8 x PP 2 x DP 1", "1,000 steps", "nothing given", "(8.03 B)"] {
        assert!(text.contains(said), "{said} is missing: {text}");
    }
    let computed = "torchrun pretrain_gpt.py --tensor-model-parallel-size $TP --num-layers 32";
    std::fs::write(&script, computed).unwrap();
    let (status, _, errors) = run(&format!("plan llama3-8b {}", &line[5..]));
    assert_eq!(status, Some(2));
    let said = "`tensor-model-parallel-size = $TP` is computed by the file; give --strategy t=…";
    assert!(errors.contains(said), "{errors}");
    // What phaze writes it also reads, and finds the same plan.
    for target in ["megatron", "bridge", "torchtitan", "maxtext"] {
        let out = folder.join(target);
        let line = "plan llama3-8b --gpus 16xh100-sxm --seq 4096 --global-batch 64 --tokens 1G";
        let line = format!("{line} --for {target} --out {}", out.display());
        assert_eq!(run(&line).0, Some(0), "{line}");
        let names = ["run.sh", "recipe.py", "phaze_plan.py", "maxtext.yml"];
        let file = names.iter().map(|name| out.join(name)).find(|path| path.is_file()).unwrap();
        let again = format!("plan --from {} --gpus 16xh100-sxm --json", file.display());
        let (status, text, errors) = run(&again);
        assert_eq!(status, Some(0), "{again}: {errors}");
        let found: Value = serde_json::from_str(&text).unwrap();
        let made = std::fs::read_to_string(out.join("advice.json")).unwrap();
        let made: Value = serde_json::from_str(&made).unwrap();
        for key in ["tensor_parallel", "pipeline", "context_parallel", "zero", "time_per_batch"] {
            assert_eq!(found["plan"][key], made["plan"][key], "{target} {key}");
        }
    }
    std::fs::remove_dir_all(folder).unwrap();
}
