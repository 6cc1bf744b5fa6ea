//! How long it takes to read models and to divide them among devices.
//!
//! `cargo bench --bench inspect` prints the best of many runs, which a busy machine disturbs least.

use std::hint::black_box;
use std::time::Duration;
use std::time::Instant;

use phaze::input;
use phaze::model::Attention;
use phaze::model::Optimizer;
use phaze::parallel;
use phaze::parallel::Setting;
use phaze::report::inspect;
use phaze::report::inspect::Inspection;
use phaze::units::Bytes;

fn best_of(n_runs: usize, mut work: impl FnMut()) -> Duration {
    let time = |_| {
        let start = Instant::now();
        work();
        start.elapsed()
    };
    (0..n_runs).map(time).min().unwrap_or_default()
}

fn main() {
    let names = input::model_names();
    let all = best_of(200, || {
        for name in &names {
            black_box(input::model(name).expect("built-in models can be read"));
        }
    });
    println!("read all {} models              {all:>12.2?}", names.len());
    for name in ["gpt3-175b", "megatron-1t", "llama3-405b"] {
        let model = input::model(name).expect("built-in models can be read");
        let setting = Setting {
            micro_batch: 1,
            sequence: model.spec.max_sequence,
            tensor_parallel: 8,
            sequence_parallel: true,
            attention: Attention::Recomputed,
            element: Bytes(2),
            ..Setting::ALONE
        };
        let shard = best_of(500, || {
            black_box(parallel::shard(&model, setting).expect("8 devices can share it"));
        });
        println!("shard {name:<24} {shard:>12.2?}");
        let whole = best_of(200, || {
            let seen = Inspection::new(&model, setting, Optimizer::AdamMixed);
            let mut out = Vec::new();
            inspect::text(&seen.expect("8 devices can share it"), &mut out)
                .expect("memory can be written");
            black_box(out);
        });
        println!("inspect {name:<22} {whole:>12.2?}");
    }
}
