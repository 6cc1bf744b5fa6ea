//! What must hold of every search, whatever the space.

use phaze::compare;
use phaze::input;
use phaze::input::request::ModelEntry;
use phaze::input::request::RequestFile;
use phaze::input::request::ready;
use phaze::input::source::no_files;
use phaze::search;
use phaze::search::NEAR_PERCENT;
use phaze::search::Setup;
use phaze::search::Status;
use phaze::search::Survey;

/// A request for `models`, with every `step`-th design of its space.
fn setup(text: &str, models: &[&str], step: usize) -> Setup {
    let mut file = RequestFile::read(text, "test").unwrap();
    let entry = |name: &&str| ModelEntry { name: (*name).into(), ..ModelEntry::default() };
    file.model = models.iter().map(entry).collect();
    file.search.table = Some(true);
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
                assert!(matches!(without, Status::Infeasible | Status::Pruned | Status::Beaten));
            }
        }
        let best = walk.ranking().first().map(|&best| &walk.statuses[best]);
        for (design, status) in pruned.walks[hbm].statuses.iter().enumerate() {
            if let (Status::Beaten, Status::Evaluated(merit, _), Some(Status::Evaluated(best, _))) =
                (status, &walk.statuses[design], best)
            {
                let near = best.value.saturating_add(best.value / 100 * NEAR_PERCENT);
                assert!(merit.value > near, "design {design} is nearly as good as the best");
            }
        }
        let is_pruned = |status: &&Status<_>| matches!(status, Status::Pruned | Status::Beaten);
        left_out += pruned.walks[hbm].statuses.iter().filter(is_pruned).count();
    }
    left_out
}

#[test]
fn pruning_finds_the_winner_of_every_hundredth_design_in_both_time_models() {
    for time_model in ["1f1b", "published"] {
        let text = format!("[job]\ntime_model = \"{time_model}\"\n[space]\nhbm_gib = 80\n");
        let left_out = check(&setup(&text, &["gpt2-xl"], 100));
        assert!(left_out > 100, "{time_model}: only {left_out} of 294 were pruned");
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
        check(&setup(&text, &["bert-large"], 600));
    }
    for combine in ["geomean", "mean", "min-regret"] {
        let text = format!(
            "[job]\nmicro_batches = [1]\ntensor_parallel = [1]\n[space]\nhbm_gib = 32\n[search]\ncombine = \"{combine}\"\n"
        );
        check(&setup(&text, &["bert-large", "opt-350m"], 600));
    }
}

#[test]
fn pruning_finds_the_winner_of_designs_that_reach_what_a_class_does() {
    for class in ["simt", "systolic"] {
        let text = |efficiency: &str| {
            format!(
                "efficiency = \"{efficiency}\"\n[job]\nmicro_batches = [1, 2]\n[space]\nhbm_gib = 32\n"
            )
        };
        let assumed = setup(&text(class), &["bert-large"], 600);
        check(&assumed);
        let ideal = setup(&text("ideal"), &["bert-large"], 600);
        let plain = setup(&text("ideal")[21..], &["bert-large"], 600);
        assert_eq!(
            ideal.physics, plain.physics,
            "the hardware of a search has no block by default"
        );
        let best = |setup: &Setup| {
            let survey = survey(setup);
            let evaluated = survey.walks[0].evaluated();
            evaluated.map(|(_, merit, _)| merit.value).min().expect("some design fits")
        };
        assert!(best(&ideal) < best(&assumed), "no class makes a design faster than the ideal");
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
fn a_power_cap_leaves_out_strategies_and_not_designs_that_have_another() {
    let text = |cap: &str| {
        format!(
            "[job]\nmicro_batches = [1]\n[space]\nhbm_gib = 32\n[search]\nexhaustive = true\n{cap}\n"
        )
    };
    let under = |cap: &str| survey(&setup(&text(cap), &["bert-large"], 1200));
    let (free, capped) = (under(""), under("power_cap_w = 100.0"));
    let mut n_slower = 0;
    for (design, status) in free.walks[0].statuses.iter().enumerate() {
        let Status::Evaluated(_, fastest) = status else { continue };
        if let Status::Evaluated(_, chosen) = &capped.walks[0].statuses[design] {
            assert!(chosen[0].average_power() <= 100.0, "design {design}");
            assert!(chosen[0].standing.time >= fastest[0].standing.time, "design {design}");
            n_slower += usize::from(chosen[0].standing.time > fastest[0].standing.time);
        }
    }
    assert!(n_slower > 0, "the cap binds");
    let strict = under("power_cap_w = 0.0001");
    assert_eq!(strict.walks[0].evaluated().count(), 0, "every chip draws more at rest");
}

#[test]
fn the_answer_is_the_same_on_one_thread_and_on_three() {
    let text = "[job]\nmicro_batches = [1, 4]\n[search]\npareto = true\n";
    let setup = setup(text, &["gpt2-xl"], 600);
    let references = input::references().unwrap();
    let bytes_on = |n_threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
        pool.install(|| {
            let survey = survey(&setup);
            let outcome = compare::outcome(&setup, &survey, &references, None, &());
            let mut csv = Vec::new();
            phaze::report::designs_csv::write(&setup, &survey, &mut csv).unwrap();
            (serde_json::to_string(&outcome).unwrap(), csv)
        })
    };
    assert!(bytes_on(1) == bytes_on(3), "threads change the answer");
}

/// A hardware file with the physics of the baseline on a network of nodes.
fn on_nodes(per_node: u64, inside: f64, between: f64, latency_us: f64) -> String {
    format!(
        "[cores]\ntensor_cores = 8\nwidth = 128\ndepth = 128\nvector_cores = 2\n\
         [memory]\nglb_mib = 128\nhbm_gib = 32\n\
         [network]\ndevices_per_node = {per_node}\ngb_per_s = {inside}\n\
         between_gb_per_s = {between}\nlatency_us = {latency_us}\n"
    )
}

/// The same as [`setup`] in the physics of a hardware file, and only those designs that `wanted`
/// keeps, by their place.
fn setup_in(hardware: &str, text: &str, models: &[&str], wanted: impl Fn(usize) -> bool) -> Setup {
    let mut file = RequestFile::read(text, "test").unwrap();
    let entry = |name: &&str| ModelEntry { name: (*name).into(), ..ModelEntry::default() };
    file.model = models.iter().map(entry).collect();
    file.hardware = Some("own/nodes.toml".into());
    let mut setup = ready(&file, "test", &|_| Ok(hardware.to_owned())).unwrap();
    let kept: Vec<usize> = (0..setup.candidates.len()).filter(|&at| wanted(at)).collect();
    setup.candidates = kept.iter().map(|&at| setup.candidates[at]).collect();
    setup.areas = kept.iter().map(|&at| setup.areas[at]).collect();
    setup
}

/// Reproducible noise (an xorshift generator).
struct Noise(u64);

impl Noise {
    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        choices[usize::try_from(self.0 % choices.len() as u64).unwrap()]
    }
}

#[test]
fn a_group_that_fills_a_node_is_not_pruned_by_the_exchange_of_a_smaller_one() {
    let hardware = on_nodes(16, 100_000.0, 0.01, 0.0);
    let text = "[job]\ndevices = 31\nglobal_batch = 512\nmicro_batches = [32]\n\
                optimizer = \"sgd\"\n[space]\nhbm_gib = 32\n";
    let every = setup_in(&hardware, text, &["bert-large"], |at| at % 400 == 0);
    check(&every);
}

#[test]
fn no_bound_is_above_the_fact_on_random_networks_of_nodes() {
    let mut noise = Noise(0x0DE5);
    for per_node in [5, 8, 16, 72] {
        for objective in ["throughput", "throughput-per-area", "energy-per-token"] {
            let inside = noise.of(&[1.0, 50.0, 450.0, 100_000.0]);
            let between = noise.of(&[0.01, 1.0, 25.0, 50.0]);
            let hardware = on_nodes(per_node, inside, between, noise.of(&[0.0, 1.0]));
            let devices = noise.of(&[16, 31, 72, 144, 300]);
            let batch = noise.of(&[64, 128, 512]);
            let time_model = noise.of(&["1f1b", "1f1b", "published"]);
            let text = format!(
                "[job]\ndevices = {devices}\nglobal_batch = {batch}\nmicro_batches = [1, 8]\n\
                 time_model = \"{time_model}\"\n[space]\nhbm_gib = 32\n\
                 [search]\nobjective = \"{objective}\"\npareto = true\n"
            );
            let first = noise.of(&[0, 7, 31, 64]);
            let models = noise.of(&["bert-large", "opt-350m"]);
            check(&setup_in(&hardware, &text, &[models], |at| at % 700 == first));
        }
    }
}

#[test]
fn a_hundred_random_small_searches_prune_nothing_that_matters() {
    let mut noise = Noise(0x005E_A4C4);
    for _ in 0..100 {
        let per_node = noise.of(&[5, 8, 16, 72, 100_000]);
        let (inside, between) = (noise.of(&[5.0, 450.0]), noise.of(&[0.1, 50.0]));
        let hardware = on_nodes(per_node, inside, between, noise.of(&[0.0, 1.0]));
        let objective = noise.of(&["throughput", "throughput-per-area", "energy-per-token"]);
        let combine = noise.of(&["geomean", "mean", "min-regret"]);
        let cap = noise.of(&["", "", "power_cap_w = 90.0\n", "power_cap_w = 150.0\n"]);
        let devices = noise.of(&[8, 24, 72]);
        let text = format!(
            "[job]\ndevices = {devices}\nglobal_batch = 32\nmicro_batches = [{}]\n\
             tensor_parallel = [{}]\nrecompute = [{}]\n[space]\nhbm_gib = {}\n\
             [search]\nobjective = \"{objective}\"\ncombine = \"{combine}\"\ntop = {}\n{cap}",
            noise.of(&["1", "4", "1, 8"]),
            noise.of(&["1", "2", "1, 4"]),
            noise.of(&["\"none\"", "\"auto\"", "\"full\""]),
            noise.of(&[32, 80]),
            noise.of(&[1, 3]),
        );
        let models: &[&str] =
            noise.of(&[&["bert-large"][..], &["opt-350m"][..], &["bert-large", "opt-350m"][..]]);
        let (step, first) = (noise.of(&[2500, 3500]), noise.of(&[1, 500, 1900]));
        check(&setup_in(&hardware, &text, models, |at| at % step == first));
    }
}
