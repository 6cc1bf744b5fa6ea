//! How long plans take from 8 to 16,384 devices, and that each keeps what planners count on: at most a
//! node is idle, the batch divides, and beside a plan that is odd to an expert's eye stands the
//! ordinary one. `cargo bench --bench plan -- llama3-8b 256` asks for one model and one number alone.

use std::sync::atomic::AtomicUsize;
use std::time::Instant;

use phaze::ask::plan::Context;
use phaze::ask::plan::PlanAnswer;
use phaze::ask::plan::PlanRequest;
use phaze::ask::plan::advise;
use phaze::ask::plan::next_rows;
use phaze::ask::plan::room;
use phaze::ask::plan::what_if_rows;
use phaze::input::source::no_files;
use phaze::plan::Plan;

const MODELS: [&str; 5] = ["llama3-8b", "llama3-70b", "llama3-405b", "mixtral-8x7b", "deepseek-v3"];

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let is_asked = |word: &str, any: &dyn Fn(&str) -> bool| {
        words.iter().all(|asked| !any(asked)) || words.iter().any(|asked| asked == word)
    };
    let is_number = |word: &str| word.parse::<u64>().is_ok();
    println!("{:14} {:>6} {:>8} {:>8} {:>8}  plan", "model", "GPUs", "first s", "floor s", "all s");
    for model in MODELS.into_iter().filter(|model| is_asked(model, &|word| !is_number(word))) {
        for devices in (3..=14).map(|power| 1_u64 << power) {
            if is_asked(&devices.to_string(), &is_number) {
                planned(model, devices);
            }
        }
    }
}

/// Plans one model on so many devices and prints how long that took.
fn planned(model: &str, devices: u64) {
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let context = Context { n_threads: threads, ..Context::new(&no_files) };
    let request = PlanRequest::new(model, "h100-sxm", devices);
    let start = Instant::now();
    let seconds = || start.elapsed().as_secs_f64();
    let answer = advise(&request, &context).expect("the request makes sense");
    let first = seconds();
    let PlanAnswer::Found(advice) = answer else {
        println!("{model:14} {devices:6} {first:8.2} {:>8} {:>8}  nothing fits", "", "");
        return;
    };
    let floor = room(&request, &context).expect("the request makes sense");
    let fewest = floor.map_or(0, |room| room.fewest);
    assert!(fewest <= advice.plan.job.devices, "{model}: {fewest} devices at the least");
    let told = seconds();
    let done = (threads, &AtomicUsize::new(0));
    let next = next_rows(&request, &advice, &context, done).expect("the request makes sense");
    let what_if = what_if_rows(&request, &advice, &context, done).expect("it makes sense");
    let all = seconds();
    let training = advice.plan.training.as_ref().expect("a plan of a model");
    let strategy = &training.strategy;
    assert!(devices - advice.plan.answer.devices <= 8, "{model} on {devices}: too many are idle");
    assert_eq!(training.global_batch % (strategy.micro_batch * strategy.data_parallel), 0);
    assert!(next.iter().chain(&what_if).all(|row| !row.command.is_empty()), "rows have commands");
    let has = |title: &str| next.iter().any(|row| row.title == title && row.found.is_some());
    let even = has("with even stages");
    let odd = is_uneven(&advice.plan);
    println!(
        "{model:14} {devices:6} {first:8.2} {told:8.2} {all:8.2}  {strategy}{}",
        match (odd, even) {
            (false, _) => "",
            (true, true) => " (even stages beside it)",
            (true, false) => " (no even stages divide it)",
        }
    );
}

/// Whether some stage has more layers than another, embedding and head apart.
fn is_uneven(plan: &Plan) -> bool {
    let last = plan.profile.n_layers() - 1;
    let inner = |layers: &[usize]| layers.iter().filter(|&&l| l > 0 && l < last).count();
    let counts: Vec<usize> = plan.answer.stages.iter().map(|stage| inner(&stage.layers)).collect();
    counts.iter().min() != counts.iter().max()
}
