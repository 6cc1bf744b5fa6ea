//! Lies told of real plans: every one is rejected, by `phaze check` or, where only a solver can
//! tell, by `phaze check --deep`.

use std::sync::LazyLock;

use phaze::input::Conventions;
use phaze::input::place::Basics;
use phaze::input::place::judge;
use phaze::input::place::question;
use phaze::input::place::ready;
use phaze::input::place::solve;
use phaze::input::source::no_files;
use phaze::model::Attention;
use phaze::model::Module;
use phaze::model::Modules;
use phaze::parallel::ContextKind;
use phaze::parallel::Order;
use phaze::parallel::frameworks::Framework;
use phaze::parallel::zero::Zero;
use phaze::plan::CutSpace;
use phaze::plan::Limits;
use phaze::plan::Plan;
use phaze::plan::Proof;
use phaze::plan::Question;
use phaze::plan::Recompute;
use phaze::plan::StrategySpace;
use phaze::plan::check::placement::check;
use serde_json::Value;
use serde_json::json;

/// Who rejects a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Check,
    Deep,
}

/// A question about a model on 16 devices, its space changed as told.
fn asked(model: &str, framework: Framework, change: impl Fn(&mut StrategySpace)) -> Question {
    let basics = Basics {
        model,
        hardware: "a100-80g",
        devices: 16,
        sequence: Some(512),
        global_batch: Some(64),
        attention: None,
        framework: Some(framework),
    };
    let mut found = question(&basics, &Conventions::OURS, &no_files).unwrap();
    let space = &mut found.space;
    space.micro_batches = vec![1, 4];
    space.tensor_parallel = vec![1, 2];
    space.context_parallel = vec![1];
    change(space);
    found
}

/// What Megatron would run of all that is searched by default.
fn searched() -> Question {
    asked("bert-large", Framework::Megatron, |space| {
        space.micro_batches = vec![4];
        space.chunks = Limits { least: 1, most: 2 };
    })
}

/// Every axis given: weights gathered layer by layer by replicas that also share sequences.
fn gathering() -> Question {
    let mut found = asked("gpt2-xl", Framework::Any, |space| {
        space.tensor_parallel = vec![1];
        space.context_parallel = vec![2];
        space.context_kinds = vec![ContextKind::Gather];
        space.pipeline = Limits::only(1);
        space.data_parallel = Limits::only(8);
        space.zero = vec![Zero::Weights];
        space.recompute = vec![Recompute::First(3)];
    });
    found.reserve_per_mille = 100;
    found
}

/// Virtual stages, modules repeated, state shared by a part of the replicas.
fn interleaved() -> Question {
    let mut found = asked("bert-large", Framework::Any, |space| {
        space.micro_batches = vec![1];
        space.tensor_parallel = vec![2];
        space.sequence_parallel = vec![true];
        space.pipeline = Limits::only(2);
        space.chunks = Limits::only(3);
        space.group = Some(4);
        space.data_parallel = Limits::only(4);
        space.zero_in_pipelines = vec![Zero::State];
        space.shards = Some(2);
        space.orders = vec![Order::MEGATRON[1]];
        space.repeated = vec![Modules::NONE.with(Module::CoreAttention)];
    });
    found.attention = Attention::Stored;
    found
}

fn plan(question: Question) -> Plan {
    phaze::place(question).unwrap().expect("it fits")
}

/// The honest answers, found once.
static SEARCHED: LazyLock<Plan> = LazyLock::new(|| plan(searched()));
static GATHERING: LazyLock<Plan> = LazyLock::new(|| plan(gathering()));
static INTERLEAVED: LazyLock<Plan> = LazyLock::new(|| plan(interleaved()));

fn text(plan: &Plan) -> Value {
    serde_json::to_value(plan).unwrap()
}

/// Who rejects the text of a plan; `None` where it is accepted by both.
fn rejected(text: &Value) -> Option<By> {
    let Ok(plan) = serde_json::from_value::<Plan>(text.clone()) else { return Some(By::Check) };
    if check(&plan).is_err() || !matches!(judge(&plan, "plan"), Ok(Ok(()))) {
        return Some(By::Check);
    }
    let found = solve(&ready(plan.question.clone()?, "plan").ok()?).ok()?;
    let same = found.is_some_and(|found| found == plan);
    (!same).then_some(By::Deep)
}

/// What is in the way of believing a plan, in the words of the judge.
fn verdict(plan: &Plan) -> String {
    match judge(plan, "plan") {
        Ok(Ok(())) => "believed".into(),
        Ok(Err(lie)) => lie.to_string(),
        Err(senseless) => senseless.to_string(),
    }
}

#[test]
fn honest_plans_hold_also_after_writing_and_reading() {
    for honest in [&*SEARCHED, &*GATHERING, &*INTERLEAVED] {
        assert_eq!(verdict(honest), "believed", "{}", honest.training.as_ref().unwrap().strategy);
        assert_eq!(rejected(&text(honest)), None);
    }
}

#[test]
fn every_claim_of_a_plan_can_be_refuted() {
    let honest = text(&SEARCHED);
    let lies: [(&str, Value); 42] = [
        ("/schema", json!("phaze-outcome")),
        ("/version", json!(7)),
        ("/name", json!("gpt2-xl")),
        ("/units/time_digits", json!(9)),
        ("/question", Value::Null),
        ("/question/sequence", json!(128)),
        ("/question/optimizer", json!("foo")),
        ("/question/optimizer", json!("sgd")),
        ("/question/devices", json!(17)),
        ("/question/global_batch", json!(1_u64 << 62)),
        ("/question/space/micro_batches", json!([])),
        ("/question/reserve_per_mille", json!(0)),
        ("/question/reserve_per_mille", json!(-1_000_000)),
        ("/question/knobs", json!({"hbm_gib": 1_u64 << 62})),
        ("/question/knobs", json!({"glb_mib": 1_u64 << 60})),
        ("/question/knobs", json!({"no such knob": 1})),
        ("/training/flops_per_sequence", json!(1)),
        ("/training/causal_flops_per_sequence", json!(1)),
        ("/training/peak_flops_per_second", json!(1)),
        ("/training/micro_batch", json!(2)),
        ("/training/design", json!("h100-sxm")),
        ("/training/basis/calibrated/runs", json!(1000)),
        ("/training/basis/calibrated/interval_per_mille", json!([999, 1001])),
        ("/training/basis", json!("assumed")),
        ("/training/basis", json!({"taken_from": "simt"})),
        ("/job/memory", json!(1_u64 << 40)),
        ("/job/installed", json!(1_u64 << 40)),
        ("/job/ends/step_start", json!("own_gradients")),
        ("/job/ends/buckets", json!("layers")),
        ("/job/per_parameter/state", json!(0)),
        ("/job/per_parameter/step_per_gibi", json!(1)),
        ("/profile/kinds/1/forward", json!(1)),
        ("/profile/kinds/1/parameters", json!(0)),
        ("/profile/kinds/1/activations", json!(0)),
        ("/profile/kinds/1/working", json!(0)),
        ("/profile/edges/0/size", json!(0)),
        ("/answer/time_per_batch", json!(1)),
        ("/answer/devices", json!(1)),
        ("/proof", json!({"kind": "given"})),
        ("/proof/space", Value::Null),
        ("/layers", json!([])),
        ("/layers/1/forward/time_s", json!(1e-9)),
    ];
    for (path, lie) in lies {
        let mut forged = honest.clone();
        *forged.pointer_mut(path).unwrap_or_else(|| panic!("{path} is there")) = lie.clone();
        assert_eq!(rejected(&forged), Some(By::Check), "{path} = {lie}");
    }
    for efficiency in ["ideal", "systolic", "h100-sxm", "mine", "mine.toml"] {
        let mut forged = honest.clone();
        forged["question"]["efficiency"] = json!({"name": efficiency, "text": null});
        assert_eq!(rejected(&forged), Some(By::Check), "the efficiency of {efficiency}");
    }
    let mut short = honest.clone();
    short["job"]["per_parameter"]["exchanged"] = json!(1);
    assert_eq!(rejected(&short), Some(By::Check), "gradients of one byte");
    let mut unmasked = text(&GATHERING);
    unmasked["question"]["masked"] = json!("computed");
    assert_eq!(rejected(&unmasked), Some(By::Check), "what a mask hides is computed");
    let mut faster = honest.clone();
    for operator in
        faster.pointer_mut("/layers/1/forward/operators").unwrap().as_array_mut().unwrap()
    {
        for key in ["start_s", "end_s"] {
            operator[key] = json!(operator[key].as_f64().unwrap() / 4.0);
        }
    }
    assert_eq!(rejected(&faster), Some(By::Check), "every operator four times faster");
}

#[test]
fn how_fast_the_network_is_said_to_be_is_what_times_were_told_with() {
    let fast = Question { network_times: Some(2), ..gathering() };
    let fast = plan(fast);
    assert_eq!(rejected(&text(&fast)), None);
    assert!(fast.answer.time_per_batch < GATHERING.answer.time_per_batch, "links are waited for");
    let told = |plan: &Plan, times: Value| {
        let mut forged = text(plan);
        forged["question"]["network_times"] = times;
        forged
    };
    for times in [json!(null), json!(1), json!(3), json!(0), json!(-2), json!(1_u64 << 40)] {
        assert_eq!(rejected(&told(&fast, times.clone())), Some(By::Check), "{times}");
    }
    for times in [2, 3, 1000] {
        assert_eq!(rejected(&told(&GATHERING, json!(times))), Some(By::Check), "{times}");
    }
}

#[test]
fn what_is_said_of_an_exchange_is_rebuilt() {
    let honest = text(&INTERLEAVED);
    let operators = honest.pointer("/layers/1/forward/operators").unwrap().as_array().unwrap();
    let at = operators.iter().position(|op| op.get("exchange").is_some()).unwrap();
    let path = format!("/layers/1/forward/operators/{at}/exchange");
    for (key, lie) in [
        ("axis", json!("data")),
        ("kind", json!("send")),
        ("bytes", json!(8)),
        ("devices", json!(3)),
        ("times", json!(2)),
        ("hidden_per_mille", json!(999)),
    ] {
        let mut forged = honest.clone();
        *forged.pointer_mut(&format!("{path}/{key}")).unwrap() = lie;
        assert_eq!(rejected(&forged), Some(By::Check), "{key}");
    }
    let mut forged = honest.clone();
    forged.pointer_mut(&path).unwrap().take();
    assert_eq!(rejected(&forged), Some(By::Check), "no exchange");
}

/// Changes a figure to another, a word to another, a switch to its opposite.
fn changed(value: &Value) -> Value {
    match value {
        Value::Number(number) => json!(number.as_u64().unwrap() + 1),
        Value::Bool(truth) => json!(!truth),
        Value::Null => json!(1),
        other => panic!("{other} is no leaf"),
    }
}

#[test]
fn every_figure_of_stages_ranks_and_degrees_can_be_refuted() {
    for honest in [&*GATHERING, &*INTERLEAVED] {
        let honest = text(honest);
        let paths = [
            "/answer/context_parallel",
            "/answer/data_parallel",
            "/answer/zero",
            "/answer/shards",
            "/answer/stages/0/repeated",
            "/answer/stages/0/devices",
            "/answer/stages/0/transfer",
            "/answer/stages/0/waits_for_weights",
            "/answer/stages/0/parameters",
            "/answer/ranks/0/memory/weights",
            "/answer/ranks/0/memory/gradients",
            "/answer/ranks/0/memory/optimizer_state",
            "/answer/ranks/0/memory/activations",
            "/answer/ranks/0/memory/gathered",
            "/answer/ranks/0/memory/working",
            "/answer/ranks/0/exchange",
            "/answer/ranks/0/gathering",
            "/answer/ranks/0/after/exposed",
            "/answer/ranks/0/after/step",
            "/answer/ranks/0/after/gather",
            "/answer/ranks/0/finished",
            "/profile/context",
            "/profile/kinds/1/collectives",
            "/profile/kinds/1/backward_collectives",
            "/profile/kinds/1/repeatable",
            "/training/strategy/tensor_parallel",
            "/training/strategy/sequence_parallel",
            "/training/strategy/context_parallel",
            "/training/strategy/pipeline",
            "/training/strategy/data_parallel",
            "/training/strategy/micro_batch",
            "/training/strategy/zero",
            "/training/strategy/shards",
        ];
        for path in paths {
            let mut forged = honest.clone();
            let leaf = forged.pointer_mut(path).unwrap_or_else(|| panic!("{path} is there"));
            *leaf = match leaf.as_u64() {
                // There is no stage of sharding beyond the third.
                Some(3) if path.ends_with("zero") => json!(2),
                _ => changed(leaf),
            };
            assert_eq!(rejected(&forged), Some(By::Check), "{path}");
        }
        let words = [
            ("/training/strategy/context_kind", "ulysses"),
            ("/training/strategy/order", "tp-dp-cp-pp"),
            ("/training/strategy/recompute", "every-layer"),
            ("/training/strategy/repeated", "mlp"),
            ("/answer/order", "tp-dp-cp-pp"),
            ("/answer/recompute", "every-layer"),
            ("/answer/schedule", "one_forward_one_backward_one"),
        ];
        for (path, word) in words {
            let mut forged = honest.clone();
            *forged.pointer_mut(path).unwrap() = json!(word);
            assert_eq!(rejected(&forged), Some(By::Check), "{path}");
        }
    }
}

/// The same plan, told as the answer to a question about another space.
fn told_of(plan: &Plan, change: impl Fn(&mut StrategySpace)) -> Plan {
    let mut told = plan.clone();
    let question = told.question.as_mut().unwrap();
    change(&mut question.space);
    let Proof::Optimal { open, .. } = told.proof;
    told.proof = Proof::Optimal { space: Some(question.space.clone()), open };
    told
}

type Narrowing = (&'static str, fn(&mut StrategySpace));

#[test]
fn a_strategy_outside_the_space_is_named_by_its_axis() {
    let narrowings: [Narrowing; 14] = [
        ("tensor_parallel", |space| space.tensor_parallel = vec![1, 4]),
        ("sequence_parallel", |space| space.sequence_parallel = vec![false]),
        ("context_parallel", |space| space.context_parallel = vec![2]),
        ("context_kind", |space| space.context_kinds = vec![ContextKind::Ulysses]),
        ("micro_batch", |space| space.micro_batches = vec![2, 4]),
        ("strategy.repeated", |space| space.repeated = vec![Modules::NONE]),
        ("pipeline", |space| space.pipeline = Limits { least: 3, most: 16 }),
        ("schedule.chunks", |space| space.chunks = Limits::only(2)),
        ("schedule.group", |space| space.group = None),
        ("data_parallel", |space| space.data_parallel = Limits { least: 1, most: 3 }),
        ("zero", |space| space.zero_in_pipelines = vec![Zero::Nothing]),
        ("shards", |space| space.shards = None),
        ("order", |space| space.orders = vec![Order::default()]),
        ("recompute", |space| space.recompute = vec![Recompute::None]),
    ];
    for (axis, narrow) in narrowings {
        let said = verdict(&told_of(&INTERLEAVED, narrow));
        assert!(said.contains(axis) && said.contains("is said to be"), "{axis}: {said}");
    }
}

#[test]
fn a_wider_space_is_not_what_was_proved() {
    let honest = INTERLEAVED.clone();
    let mut forged = honest.clone();
    let Proof::Optimal { space, open } = &honest.proof;
    let mut space = space.clone().unwrap();
    space.tensor_parallel = vec![1, 2];
    forged.proof = Proof::Optimal { space: Some(space), open: *open };
    assert_eq!(rejected(&text(&forged)), Some(By::Check));
    // What the question itself allows besides was not compared.
    let wider = told_of(&honest, |space| {
        space.tensor_parallel = vec![1, 2];
        space.sequence_parallel = vec![false, true];
        space.pipeline = Limits { least: 1, most: 2 };
        space.chunks = Limits { least: 1, most: 3 };
        space.data_parallel = Limits::ALL;
        space.zero = vec![Zero::State];
    });
    assert_eq!(rejected(&text(&wider)), Some(By::Deep));
}

#[test]
fn what_is_left_open_is_said_only_of_virtual_stages_and_below_the_time() {
    for (honest, least, by) in [
        (&*GATHERING, 1, By::Check),
        (&*INTERLEAVED, u128::MAX, By::Check),
        (&*INTERLEAVED, 0, By::Check),
        (&*INTERLEAVED, 1, By::Deep),
    ] {
        let mut forged = honest.clone();
        let Proof::Optimal { open, .. } = &mut forged.proof;
        *open = Some(least);
        if least > u128::from(u64::MAX) {
            assert!(verdict(&forged).contains("proof.open"), "{}", verdict(&forged));
        } else {
            assert_eq!(rejected(&text(&forged)), Some(by), "{least}");
        }
    }
}

#[test]
fn degrees_that_break_a_rule_of_the_framework_are_refused_by_name() {
    // Three pipelines leave a device idle and do not divide the batch.
    let idle = plan(asked("bert-large", Framework::Any, |space| {
        space.tensor_parallel = vec![1];
        space.pipeline = Limits::only(5);
        space.chunks = Limits::only(1);
        space.data_parallel = Limits::only(3);
    }));
    assert_eq!(verdict(&idle), "believed");
    let said = verdict(&told_of(&idle, |space| space.framework = Framework::Megatron));
    assert!(said.contains("megatron"), "{said}");
    let said = verdict(&told_of(&idle, |space| space.cut = CutSpace::Even));
    assert!(said.contains("not the even one"), "{said}");
    // Stages that repeat as memory asks for are no strategy of those that repeat alike.
    let said = verdict(&told_of(&GATHERING, |space| space.framework = Framework::Torchtitan));
    assert!(said.contains("torchtitan"), "{said}");
}

#[test]
fn a_slower_plan_is_not_optimal() {
    let slower = plan(asked("bert-large", Framework::Megatron, |space| {
        space.tensor_parallel = vec![2];
        space.pipeline = Limits::only(4);
        space.chunks = Limits::only(1);
        space.data_parallel = Limits::only(2);
        space.micro_batches = vec![4];
    }));
    let wide = searched();
    let forged = Plan {
        proof: Proof::Optimal { space: Some(wide.space.clone()), open: None },
        question: Some(wide),
        ..slower
    };
    assert_eq!(verdict(&forged), "believed");
    assert_eq!(rejected(&text(&forged)), Some(By::Deep));
}

/// The paths of all leaves.
fn leaves(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Array(items) => items
            .iter()
            .enumerate()
            .for_each(|(at, item)| leaves(item, &format!("{path}/{at}"), found)),
        Value::Object(keys) => {
            keys.iter().for_each(|(key, item)| leaves(item, &format!("{path}/{key}"), found));
        }
        _ => found.push(path.to_owned()),
    }
}

#[test]
fn no_figure_or_word_of_a_plan_can_be_changed() {
    for honest in [&*INTERLEAVED, &*GATHERING] {
        let honest = text(honest);
        let mut paths = Vec::new();
        leaves(&honest, "", &mut paths);
        let step = paths.len() / 125;
        for (at, path) in paths.iter().enumerate().step_by(step.max(1)) {
            let mut forged = honest.clone();
            let leaf = forged.pointer_mut(path).unwrap();
            *leaf = match leaf {
                Value::Number(number) => match (number.as_u64(), at % 3) {
                    (Some(whole), 0) => json!(whole + 1),
                    (Some(whole), 1) => json!(whole / 2 + 3 * u64::from(whole < 7)),
                    (Some(_), _) => json!(u64::MAX),
                    _ => json!(number.as_f64().unwrap() * 1.5 + 1.0),
                },
                Value::String(text) => json!(format!("{text}x")),
                Value::Bool(truth) => json!(!*truth),
                _ => json!(1),
            };
            if forged != honest {
                assert!(rejected(&forged).is_some(), "{path} was changed");
            }
        }
    }
}
