//! How fast whole spaces are searched: designs per second, and the share that is pruned.
//!
//! `cargo bench --bench search` runs GPT2-XL and GPT-3 175B over the published space, and GPT2-XL
//! over one twelve times as large (free vector width, three bandwidths of the global buffer);
//! `cargo bench --bench search -- gpt3-175b` runs one model over the published space.

use std::time::Instant;

use phaze::input::request::ModelEntry;
use phaze::input::request::RequestFile;
use phaze::input::request::ready;
use phaze::input::source::no_files;
use phaze::search::Status;
use phaze::search::Unlisted;
use phaze::search::designs::survey_boxes;

fn main() {
    let named: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let models = if named.is_empty() { vec!["gpt2-xl".into(), "gpt3-175b".into()] } else { named };
    println!(
        "{:<14}{:>9}{:>11}{:>9}{:>12}{:>10}{:>14}",
        "model", "designs", "evaluated", "pruned", "infeasible", "seconds", "designs/s"
    );
    for name in &models {
        run(name, "");
    }
    if models.len() > 1 {
        println!("twelve times the space:");
        run("gpt2-xl", LARGER);
    }
}

/// A space twelve times as large as the published one.
const LARGER: &str = "[space]\nvector_width = [32, 64, 128, 256]\n\
                      glb_bytes_per_cycle = [2048, 4096, 8192]\n";

fn run(name: &str, text: &str) {
    let mut file = RequestFile::read(text, "bench").expect("the request is well formed");
    file.model = vec![ModelEntry { name: name.into(), ..ModelEntry::default() }];
    let start = Instant::now();
    let setup = ready(&file, "bench", &no_files).expect("it makes sense");
    let survey = survey_boxes(&setup, &(), &()).survey;
    let seconds = start.elapsed().as_secs_f64();
    let statuses = || survey.walks.iter().flat_map(|walk| &walk.statuses);
    let unlisted = |count: fn(&Unlisted) -> usize| survey.unlisted.iter().map(count).sum::<usize>();
    let n_designs = statuses().count() + unlisted(Unlisted::designs);
    let evaluated = statuses().filter(|s| matches!(s, Status::Evaluated(..))).count();
    let pruned = statuses().filter(|s| matches!(s, Status::Pruned)).count()
        + unlisted(|others| others.pruned);
    let infeasible = n_designs - evaluated - pruned;
    let rate = n_designs as f64 / seconds;
    println!(
        "{name:<14}{n_designs:>9}{evaluated:>11}{:>8.1}%{infeasible:>12}{seconds:>10.2}{rate:>14.0}",
        100.0 * pruned as f64 / n_designs as f64,
    );
}
