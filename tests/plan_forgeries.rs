//! Lies told of a real plan: every one is rejected, by `phaze check` or, where only a solver can
//! tell, by `phaze check --deep`.

use phaze::input::Conventions;
use phaze::input::place::judge;
use phaze::input::place::question;
use phaze::input::place::ready;
use phaze::input::place::solve;
use phaze::input::source::no_files;
use phaze::plan::GivenDegrees;
use phaze::plan::Plan;
use phaze::plan::Proof;
use phaze::plan::Question;
use phaze::plan::check::placement::check;
use serde_json::Value;
use serde_json::json;

/// Who rejects a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Check,
    Deep,
}

fn asked() -> Question {
    let conventions = &Conventions::OURS;
    let defaults = question("bert-large", "a100-80g", 16, conventions, &no_files).unwrap();
    Question {
        global_batch: 64,
        micro_batches: vec![1, 4],
        tensor_parallel: vec![1, 2],
        ..defaults
    }
}

fn honest() -> Plan {
    phaze::place(asked()).unwrap().expect("it fits")
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

#[test]
fn an_honest_plan_holds_also_after_writing_and_reading() {
    let plan = honest();
    assert_eq!(rejected(&serde_json::to_value(&plan).unwrap()), None);
    let given = GivenDegrees { pipeline: 2, data_parallel: 4, tensor_parallel: 2 };
    let question = Question { strategy: Some(given), tensor_parallel: vec![2], ..asked() };
    let plan = phaze::place(question).unwrap().expect("it fits");
    assert_eq!(plan.proof, Proof::Given);
    assert_eq!(rejected(&serde_json::to_value(&plan).unwrap()), None);
}

#[test]
fn every_claim_of_a_plan_can_be_refuted() {
    let honest = serde_json::to_value(honest()).unwrap();
    let lies: [(&str, Value); 30] = [
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
        ("/question/micro_batches", json!([])),
        ("/question/knobs", json!({"hbm_gib": 1_u64 << 62})),
        ("/question/knobs", json!({"glb_mib": 1_u64 << 60})),
        ("/question/knobs", json!({"no such knob": 1})),
        ("/training/flops_per_sequence", json!(1)),
        ("/training/peak_flops_per_second", json!(1)),
        ("/training/micro_batch", json!(2)),
        ("/training/design", json!("h100-sxm")),
        ("/job/memory", json!(1_u64 << 40)),
        ("/job/per_parameter/state", json!(0)),
        ("/job/per_parameter/step_per_gibi", json!(1)),
        ("/profile/kinds/1/forward", json!(1)),
        ("/profile/kinds/1/parameters", json!(0)),
        ("/profile/kinds/1/activations", json!(0)),
        ("/profile/edges/0/size", json!(0)),
        ("/answer/time_per_batch", json!(1)),
        ("/answer/devices", json!(1)),
        ("/proof", json!({"kind": "given"})),
        ("/layers", json!([])),
        ("/layers/1/forward/time_s", json!(1e-9)),
    ];
    for (path, lie) in lies {
        let mut forged = honest.clone();
        *forged.pointer_mut(path).unwrap_or_else(|| panic!("{path} is there")) = lie.clone();
        assert_eq!(rejected(&forged), Some(By::Check), "{path} = {lie}");
    }
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
fn a_slower_plan_is_not_optimal() {
    let given = GivenDegrees { pipeline: 4, data_parallel: 2, tensor_parallel: 2 };
    let question = Question { strategy: Some(given), tensor_parallel: vec![2], ..asked() };
    let slower = phaze::place(question).unwrap().expect("it fits");
    let Proof::Optimal { widths, recompute, micro_batch_sizes } = honest().proof else {
        panic!("a searched plan is optimal")
    };
    let proof = Proof::Optimal { widths, recompute, micro_batch_sizes };
    let forged = Plan { question: Some(asked()), proof, ..slower };
    assert_eq!(rejected(&serde_json::to_value(&forged).unwrap()), Some(By::Deep));
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
    let honest = serde_json::to_value(honest()).unwrap();
    let mut paths = Vec::new();
    leaves(&honest, "", &mut paths);
    let step = paths.len() / 250;
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
