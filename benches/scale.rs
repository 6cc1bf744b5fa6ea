//! How long spaces of chips take to be certified, from 10^5 to 10^10 of them, and which reasons share their points.
//!
//! `cargo bench --bench scale` runs Llama-3-8B over the default space with its lists of values thinned and refined;
//! `cargo bench --bench scale -- 5 9` over those of 10^5 and 10^9, `-- 11` over one of more than 10^11. `-- refined`
//! prints how many times longer it takes where every list is refined so that the space is ten times larger, by
//! throughput and by cost, and the worst of these; `-- refined gpt3-175b` does so for another model. `-- request 11`
//! prints the request of such a space, for `phaze search`. Seconds are those of processors, of the search for the best
//! alone: neither near-winners nor baselines.

use std::collections::BTreeMap;

use phaze::hardware::chip::CHIP_KNOBS;
use phaze::input::request::RequestFile;
use phaze::input::request::ready_chips;
use phaze::input::source::no_files;
use phaze::search::boxes::walk;
use phaze::search::chips::ByObjective;
use phaze::search::chips::ChipEvaluator;
use phaze::search::chips::ChipRegion;
use phaze::search::chips::judge;

/// By powers of ten: how many values each knob has, in the order of the table of knobs; where they are more than
/// the default, values are put between its own.
const LENS: [(u32, [usize; 10]); 7] = [
    (5, [11, 2, 2, 4, 3, 3, 2, 3, 3, 4]),
    (6, [15, 3, 2, 5, 3, 4, 2, 5, 3, 6]),
    (7, [22, 3, 3, 7, 4, 4, 2, 6, 4, 9]),
    (8, [30, 4, 3, 9, 5, 5, 3, 7, 5, 11]),
    (9, [44, 4, 4, 13, 6, 6, 4, 10, 6, 13]),
    (10, [44, 4, 4, 13, 6, 11, 7, 19, 6, 25]),
    (11, [80, 4, 4, 25, 11, 11, 7, 19, 6, 49]),
];

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let named: Vec<u32> = words.iter().filter_map(|word| word.parse().ok()).collect();
    let asked = |power: u32| if named.is_empty() { power < 11 } else { named.contains(&power) };
    let spaces = LENS.iter().filter(|(power, _)| asked(*power)).map(|(_, lens)| lens);
    if words.iter().any(|word| word == "request") {
        spaces.for_each(|lens| print!("{}", request("llama3-8b", "throughput", lens)));
        return;
    }
    println!(
        "{:>16}{:>10}{:>11}{:>9}  share of the points by reason (boxes)",
        "chips", "seconds", "evaluated", "boxes"
    );
    if words.iter().any(|word| word == "refined") {
        let model = words.iter().find(|word| *word != "refined");
        refined(model.map_or("llama3-8b", String::as_str));
        return;
    }
    for lens in spaces {
        run("llama3-8b", "throughput", lens);
    }
}

/// Prints how many times longer a space takes that is ten times larger, by objective, and the worst.
fn refined(model: &str) {
    let lens = |power: u32| &LENS.iter().find(|(own, _)| *own == power).expect("in the list").1;
    let mut worst: f64 = 0.0;
    for objective in ["throughput", "cost-per-token"] {
        let [usual, finer] = [9, 10].map(|power| run(model, objective, lens(power)));
        println!("{model} by {objective}: {:.2} times as long", finer / usual);
        worst = worst.max(finer / usual);
    }
    println!("the worst: {worst:.2} times as long in a space ten times larger");
}

/// The request of a space of so many values of each knob.
fn request(model: &str, objective: &str, lens: &[usize; 10]) -> String {
    let text = format!("[[model]]\nname = \"{model}\"\n[search]\nobjective = \"{objective}\"\n");
    let file = RequestFile::read(&text, "bench").expect("well formed");
    let usual = ready_chips(&file, "bench", &no_files).expect("it makes sense");
    let lists = CHIP_KNOBS.iter().zip(lens).enumerate().map(|(knob, (row, &len))| {
        let values = spread(usual.grid.values(knob), len);
        match row.name {
            // Files have it in GHz.
            "clock_mhz" => {
                let ghz = |&mhz: &u64| format!("{}.{:03}", mhz / 1000, mhz % 1000);
                format!("clock = [{}]\n", values.iter().map(ghz).collect::<Vec<_>>().join(", "))
            }
            name => format!("{name} = {values:?}\n"),
        }
    });
    format!("{text}[space]\n{}", lists.collect::<String>())
}

/// Prints what a search takes, and answers how many seconds.
fn run(model: &str, objective: &str, lens: &[usize; 10]) -> f64 {
    let text = request(model, objective, lens);
    let file = RequestFile::read(&text, "bench").expect("well formed");
    let setup = ready_chips(&file, "bench", &no_files).expect("it makes sense");
    let begun = processor_seconds();
    let evaluator = ChipEvaluator::new(&setup, &()).map_err(|(_, why)| why).expect("it trains");
    let judge = judge(&setup);
    let problem = ByObjective { evaluator: &evaluator, models: vec![0], judge: &judge };
    let whole = ChipRegion::whole(setup.grid.lens());
    let walked = walk(&problem, whole, (1, Vec::new()), "bench", &());
    let seconds = processor_seconds() - begun;
    let mut by: BTreeMap<&str, (usize, u128)> = BTreeMap::new();
    for closed in &walked.closed {
        let (boxes, points) = by.entry(closed.why.word().0).or_default();
        *boxes += 1;
        *points += closed.region.volume();
    }
    let shares = by.iter().map(|(why, (boxes, points))| {
        format!("{why} {:.3} % ({boxes})", 100.0 * *points as f64 / whole.volume() as f64)
    });
    println!(
        "{:>16}{seconds:>10.1}{:>11}{:>9}  {}",
        whole.volume(),
        evaluator.n_evaluated(),
        walked.closed.len(),
        shares.collect::<Vec<_>>().join(", ")
    );
    seconds
}

/// So many values from the first to the last: of those that are there, or with others evenly between them.
fn spread(values: &[u64], len: usize) -> Vec<u64> {
    let (steps, last) = ((len - 1).max(1), values.len() - 1);
    let mut found: Vec<u64> = (0..len)
        .map(|at| {
            let (whole, part) = (at * last / steps, at * last % steps);
            let (low, high) = (values[whole], values[(whole + 1).min(last)]);
            if len <= values.len() {
                return if 2 * part >= steps { high } else { low };
            }
            low + (high - low) * part as u64 / steps as u64
        })
        .collect();
    found.dedup();
    found
}

/// Seconds that this process has computed, on all of its threads; 0 where the system does not tell.
fn processor_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after = text.rsplit(')').next().unwrap_or_default();
    let ticks =
        |at: usize| after.split_whitespace().nth(at).and_then(|word| word.parse::<f64>().ok());
    // User and system time, in hundredths.
    (ticks(11).unwrap_or(0.0) + ticks(12).unwrap_or(0.0)) / 100.0
}
