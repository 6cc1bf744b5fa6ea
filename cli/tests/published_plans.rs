//! Training runs that were published can be asked for as they were run, are legal in the framework that
//! ran them, and need no more memory than they had: 84 GiB at the most by our account, which is within 5 %
//! of the 80 GiB of a device.

use std::process::Command;

use serde_json::Value;

/// What is asked of `phaze place`: a model and its options.
const RUNS: &[&str] = &[
    "llama3-8b --design h100-sxm --devices 8 --seq 8192 --launchable torchtitan \
     --strategy t=1,p=1,d=8,b=1,zero=3",
    "llama3-70b --design h100-sxm --devices 64 --seq 8192 \
     --strategy t=4,sp,p=8,v=5,zero=1,b=1,recompute=none",
    "llama3-70b --design h100-sxm --devices 256 --seq 8192 --launchable torchtitan \
     --strategy t=8,sp,p=1,d=32,zero=3,b=1,recompute=full",
    "llama3-405b --design h100-sxm --devices 1024 --seq 8192 --strategy t=8,sp,p=8,c=2,v=8,zero=1,b=1",
    // Its own schedule shares gradients in a pipeline, which no framework of the list does.
    "llama3-405b --design h100-sxm --devices 16384 --seq 131072 --launchable any \
     --strategy t=8,sp,p=16,c=16,zero=2,b=1",
    "gpt3-175b --design h100-sxm --devices 128 --seq 2048 --strategy t=4,sp,p=8,v=6,zero=1,b=1",
    // DeepSeek-V3 as it was trained, 1F1B in the place of its own schedule.
    "deepseek-v3 --design h800-sxm --devices 2048 --seq 4096 --global-batch 15360 \
     --strategy t=1,c=1,p=16,e=64,x=1,zero=1,b=1,v=1,recompute=layernorm+mla_up_proj+moe_act",
    // The same model by the recipe of Megatron-Bridge.
    "deepseek-v3 --design h100-sxm --devices 1024 --seq 4096 --global-batch 8192 \
     --strategy t=2,sp,c=1,p=8,v=4,e=64,x=1,zero=1,b=1,recompute=mla_up_proj+mlp",
];

/// Korthikanti et al., 2023, table 5: model, devices, batch, micro-batch and degrees; each was run
/// with full recompute, and with sequence parallelism and selective recompute.
const KORTHIKANTI: &[&str] = &[
    "megatron-22b --devices 8 --global-batch 4 --strategy t=8,p=1,d=1,b=4,zero=0",
    "gpt3-175b --devices 64 --global-batch 64 --strategy t=8,p=8,v=3,d=1,b=1,zero=0",
    "megatron-530b --devices 280 --global-batch 280 --strategy t=8,p=35,v=3,d=1,b=1,zero=0",
    "megatron-1t --devices 512 --global-batch 512 --strategy t=8,p=64,d=1,b=1,zero=0",
];

const GIB: f64 = (1_u64 << 30) as f64;

/// Bytes of the fullest device of a run.
fn fullest(run: &str) -> f64 {
    let output = Command::new(env!("CARGO_BIN_EXE_phaze"))
        .arg("place")
        .args(run.split_whitespace())
        .args(["--reserve", "0", "--json"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{run}: {said}");
    let plan: Value = serde_json::from_slice(&output.stdout).unwrap();
    let ranks = plan["ranks"].as_array().unwrap().iter();
    let most = ranks.map(|rank| rank["memory"].as_f64().unwrap()).fold(0.0, f64::max);
    println!("{:6.1} GiB  {run}", most / GIB);
    most
}

#[test]
fn what_clusters_have_run_is_answered_and_fits() {
    for run in RUNS {
        let most = fullest(run);
        assert!(most <= 84.0 * GIB, "{run}: {:.1} GiB", most / GIB);
    }
    for run in KORTHIKANTI {
        for how in ["recompute=full", "sp,recompute=selective"] {
            let run = format!("{run},{how} --design a100-80g --seq 2048 --attention stored");
            let most = fullest(&run);
            assert!(most <= 84.0 * GIB, "{run}: {:.1} GiB", most / GIB);
        }
    }
}
