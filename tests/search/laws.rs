//! What must hold of every search, whatever the space.

use phaze::input;
use phaze::input::request::ModelEntry;
use phaze::input::request::RequestFile;
use phaze::input::request::ready;
use phaze::input::source::no_files;
use phaze::search;
use phaze::search::References;
use phaze::search::Setup;
use phaze::search::Status;
use phaze::search::Survey;

/// A request for `models`, with every `step`-th design of its space.
fn setup(text: &str, models: &[&str], step: usize) -> Setup {
    let mut file = RequestFile::read(text, "test").unwrap();
    let entry = |name: &&str| ModelEntry { name: (*name).into(), ..ModelEntry::default() };
    file.model = models.iter().map(entry).collect();
    let mut setup = ready(&file, "test", &no_files).unwrap();
    setup.candidates = setup.candidates.into_iter().step_by(step).collect();
    setup.areas = setup.areas.into_iter().step_by(step).collect();
    setup
}

fn survey(setup: &Setup) -> Survey {
    search::survey(setup, &(), &())
}

fn exhaustive(setup: &Setup) -> Survey {
    let mut all = setup.clone();
    all.request.exhaustive = true;
    survey(&all)
}

/// Checks that pruning changes no winner and that no bound is above what was found; answers how
/// many candidates the pruned search left out.
fn check(setup: &Setup) -> usize {
    let (all, pruned) = (exhaustive(setup), survey(setup));
    let mut left_out = 0;
    for (hbm, walk) in all.walks.iter().enumerate() {
        assert_eq!(walk.ranking().first(), pruned.walks[hbm].ranking().first());
        for (design, merit, _) in walk.evaluated() {
            let bound = walk.bounds[design].expect("what was evaluated has a bound");
            assert!(bound.value <= merit.value, "design {design}: {bound:?} above {merit:?}");
            assert!(bound.energy <= merit.energy, "design {design}: {bound:?} above {merit:?}");
        }
        // A design on which nothing fits has no merit, with or without pruning.
        for (design, status) in walk.statuses.iter().enumerate() {
            if matches!(status, Status::Infeasible) {
                let without = &pruned.walks[hbm].statuses[design];
                assert!(matches!(without, Status::Infeasible | Status::Pruned));
            }
        }
        let is_pruned = |status: &&Status<_>| matches!(status, Status::Pruned);
        left_out += pruned.walks[hbm].statuses.iter().filter(is_pruned).count();
    }
    left_out
}

#[test]
fn pruning_finds_the_winner_of_every_twentieth_design_in_both_time_models() {
    for time_model in ["1f1b", "published"] {
        let text = format!("[job]\ntime_model = \"{time_model}\"\n[space]\nhbm_gib = 80\n");
        let left_out = check(&setup(&text, &["gpt2-xl"], 20));
        assert!(left_out > 700, "{time_model}: only {left_out} of 1,468 were pruned");
    }
}

#[test]
fn pruning_finds_the_winner_where_memory_is_tight_and_under_the_published_rules() {
    let tight = "[job]\ndevices = 256\nglobal_batch = 256\nmicro_batches = [1, 4]\n[space]\nhbm_gib = [32, 80]\n";
    check(&setup(tight, &["gpt3-175b"], 700));
    check(&setup("published = true\n[job]\nmicro_batches = [2]\n", &["megatron-gpt2-2.5b"], 500));
    check(&setup("[job]\nsequence_parallel = true\nmicro_batches = [1]\n", &["llama3-8b"], 900));
}

#[test]
fn pruning_finds_the_winner_by_every_objective_and_of_several_models() {
    for objective in ["throughput-per-area", "energy-per-token"] {
        let text = format!(
            "[job]\nmicro_batches = [2]\n[space]\nhbm_gib = 32\n[search]\nobjective = \"{objective}\"\n"
        );
        check(&setup(&text, &["bert-large"], 150));
    }
    for combine in ["geomean", "mean", "min-regret"] {
        let text = format!(
            "[job]\nmicro_batches = [1]\ntensor_parallel = [1]\n[space]\nhbm_gib = 32\n[search]\ncombine = \"{combine}\"\n"
        );
        check(&setup(&text, &["bert-large", "opt-350m"], 300));
    }
}

#[test]
fn the_front_and_the_best_few_are_those_of_the_whole_space() {
    let text =
        "[job]\nmicro_batches = [1, 2]\n[space]\nhbm_gib = 64\n[search]\ntop = 7\npareto = true\n";
    let setup = setup(text, &["bert-large"], 100);
    let (all, pruned) = (exhaustive(&setup), survey(&setup));
    assert_eq!(all.walks[0].front(), pruned.walks[0].front());
    assert_eq!(all.walks[0].ranking()[..7], pruned.walks[0].ranking()[..7]);
}

#[test]
fn a_power_cap_leaves_out_what_draws_more() {
    let text = |cap: &str| {
        format!(
            "[job]\nmicro_batches = [1]\n[space]\nhbm_gib = 32\n[search]\nexhaustive = true\n{cap}\n"
        )
    };
    let free = survey(&setup(&text(""), &["bert-large"], 400));
    let capped = survey(&setup(&text("power_cap_w = 100.0"), &["bert-large"], 400));
    let mut n_left_out = 0;
    for (design, status) in free.walks[0].statuses.iter().enumerate() {
        let Status::Evaluated(_, chosen) = status else { continue };
        let fits = chosen[0].average_power() <= 100.0;
        n_left_out += usize::from(!fits);
        let still_there = matches!(capped.walks[0].statuses[design], Status::Evaluated(..));
        assert_eq!(fits, still_there, "design {design}");
    }
    assert!(n_left_out > 0, "the cap binds");
}

#[test]
fn the_answer_is_the_same_on_one_thread_and_on_three() {
    let text = "[job]\nmicro_batches = [1, 4]\n[search]\npareto = true\n";
    let setup = setup(text, &["gpt2-xl"], 600);
    let real = input::hardware::preset("tpuv4", "test").unwrap();
    let references = References {
        tpuv4_like: input::hardware::preset("tpuv4-like", "test").unwrap().design,
        tpuv4: (real.design, real.physics),
    };
    let bytes_on = |n_threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
        pool.install(|| {
            let survey = survey(&setup);
            let outcome = search::outcome(&setup, &survey, &references, None);
            let mut csv = Vec::new();
            phaze::report::designs_csv::write(&setup, &survey, &mut csv).unwrap();
            (serde_json::to_string(&outcome).unwrap(), csv)
        })
    };
    assert!(bytes_on(1) == bytes_on(3), "threads change the answer");
}
