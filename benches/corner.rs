//! How long one chip takes to be judged exactly, and how close a corner comes to it.
//!
//! `cargo bench --bench corner` trains GPT-3 175B, Llama-3-8B at 32,768 tokens and Llama-3-70B at
//! 8,192 on 1,024 chips of 5 nm in a torus, with data, pipeline and tensor parallelism alone and with
//! every axis, on chips around those that searches find. A model's name runs that one alone.

use std::time::Instant;

use phaze::estimate::EstimateTable;
use phaze::hardware::chip::ChipKnobs;
use phaze::hardware::chip::torus_of_links;
use phaze::hardware::technology::Technology;
use phaze::input::request::ModelEntry;
use phaze::input::request::RequestFile;
use phaze::input::request::ready;
use phaze::input::source::no_files;
use phaze::input::technology::of_process;
use phaze::model::Precision;
use phaze::search::Setup;
use phaze::strategy::Corner;
use phaze::strategy::Planner;
use phaze::strategy::Terms;
use phaze::strategy::Training;
use phaze::units::Time;

/// A model, its sequence, and the best chip of a flat network.
const JOBS: [(&str, u64, [u64; 4]); 3] = [
    ("gpt3-175b", 2048, [48, 1600, 4, 1600]),
    ("llama3-8b", 32_768, [36, 1800, 4, 800]),
    ("llama3-70b", 8192, [32, 1800, 3, 1600]),
];

/// Every axis, and data, pipeline and tensor parallelism alone.
const SPACES: [(&str, &str); 2] = [("few axes", "c=1,v=1,zero=0"), ("all axes", "")];

fn main() {
    let named: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    println!(
        "{:<12}{:<10}{:>9}{:>11}{:>11}{:>11}{:>12}{:>10}",
        "model", "space", "chips", "bound ms", "exact ms", "corner ms", "within ms", "gap"
    );
    for (model, sequence, best) in JOBS {
        if named.is_empty() || named.iter().any(|name| name == model) {
            for (name, strategy) in SPACES {
                run(model, sequence, best, (name, strategy));
            }
        }
    }
}

fn run(model: &str, sequence: u64, best: [u64; 4], (name, strategy): (&str, &str)) {
    let technology = of_process(5, "bench", "process").expect("5 nm is built in");
    let mut file =
        RequestFile::read("[job]\ndevices = 1024\n", "bench").expect("it is well formed");
    let sequence = Some(sequence);
    file.model = vec![ModelEntry { name: model.into(), sequence, ..ModelEntry::default() }];
    file.job.strategy = (!strategy.is_empty()).then(|| strategy.into());
    let setup = ready(&file, "bench", &no_files).expect("it makes sense");
    let table = EstimateTable::new(setup.terms.options);
    let (mut n_chips, mut spent, mut gap) = (0, [0.0; 4], 0.0_f64);
    let mut fastest: Option<Time> = None;
    for knobs in around(best, &technology) {
        let (terms, training) = on_torus(&setup, &knobs);
        let planner = Planner { terms: &terms, training: &training, table: &table };
        let chip = knobs.accelerator(&technology, &setup.physics).expect("it can be built");
        let watch = Instant::now();
        let bound = planner.bound_on(&chip);
        spent[0] += watch.elapsed().as_secs_f64();
        let watch = Instant::now();
        let exact = planner.best(&chip, &bound).expect("it fits").chosen.standing.time;
        spent[1] += watch.elapsed().as_secs_f64();
        let watch = Instant::now();
        let corner = planner.corner(&chip, &bound, None);
        spent[2] += watch.elapsed().as_secs_f64();
        fastest = Some(fastest.map_or(exact, |fastest| fastest.min(exact)));
        let watch = Instant::now();
        planner.corner(&chip, &bound, fastest);
        spent[3] += watch.elapsed().as_secs_f64();
        let Corner::Least(corner) = corner else { panic!("what fits has a corner") };
        gap = gap.max(1.0 - corner.seconds() / exact.seconds());
        n_chips += 1;
    }
    let [bound, exact, corner, within] = spent.map(|seconds| 1e3 * seconds / f64::from(n_chips));
    println!(
        "{model:<12}{name:<10}{n_chips:>9}{bound:>11.1}{exact:>11.1}{corner:>11.1}{within:>12.1}{:>9.4}%",
        100.0 * gap
    );
}

/// The best chip and others with more and less of its knobs.
fn around([tensor_cores, clock_mhz, stacks, links]: [u64; 4], of: &Technology) -> Vec<ChipKnobs> {
    let best = ChipKnobs {
        precision: Precision::Bf16,
        tensor_cores,
        width: 128,
        depth: 128,
        vector_cores: 32,
        vector_width: 128,
        glb_mib: 64,
        glb_bytes_per_cycle: 8192,
        clock_mhz,
        generation: of.generation("hbm3e").expect("hbm3e is built in"),
        stacks,
        links_gb_per_s: links,
    };
    vec![
        best,
        ChipKnobs { links_gb_per_s: links / 4, ..best },
        ChipKnobs { stacks: stacks - 1, clock_mhz: 1400, ..best },
        ChipKnobs { glb_mib: 32, vector_cores: 16, ..best },
        ChipKnobs { glb_bytes_per_cycle: 4096, glb_mib: 128, ..best },
        ChipKnobs { tensor_cores: tensor_cores * 4, width: 64, depth: 64, ..best },
    ]
}

/// The terms on the torus that the links of a chip make, and the model made ready on them.
fn on_torus(setup: &Setup, knobs: &ChipKnobs) -> (Terms, Training) {
    let mut terms = setup.terms.clone();
    terms.cluster.network = torus_of_links(knobs.links_gb_per_s, 1024, Time(1_000_000));
    let made = &setup.trainings[0];
    let training = Training::new(&made.name, made.model.clone(), made.sequence, &terms);
    (terms, training.expect("it can be trained"))
}
