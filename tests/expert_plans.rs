//! Plans that deal experts out: what they claim can be refuted, and they follow the laws.

use std::sync::LazyLock;

use phaze::input::Conventions;
use phaze::input::place::Basics;
use phaze::input::place::judge;
use phaze::input::place::question;
use phaze::input::request::RequestFile;
use phaze::input::source::no_files;
use phaze::parallel::frameworks::Framework;
use phaze::plan::Limits;
use phaze::plan::Plan;
use phaze::plan::Proof;
use phaze::plan::Question;
use phaze::plan::Source;
use phaze::plan::StrategySpace;
use phaze::plan::check::placement::check;
use serde_json::Value;
use serde_json::json;

/// A mixture of experts on 16 devices, its space changed as told.
fn asked(change: impl Fn(&mut StrategySpace)) -> Question {
    let basics = Basics {
        model: "qwen3-30b-a3b",
        hardware: "a100-80g",
        devices: 16,
        sequence: Some(512),
        global_batch: Some(64),
        attention: None,
        framework: Some(Framework::Megatron),
    };
    let mut found = question(&basics, &Conventions::OURS, &no_files).unwrap();
    let space = &mut found.space;
    space.micro_batches = vec![1, 2];
    space.tensor_parallel = vec![1, 2];
    space.context_parallel = vec![1];
    space.chunks = Limits::only(1);
    change(space);
    found
}

/// Experts in eight parts, state shared, a pipeline of two.
fn given() -> Question {
    asked(|space| {
        space.micro_batches = vec![1];
        space.tensor_parallel = vec![2];
        space.sequence_parallel = vec![true];
        space.expert_parallel = vec![4];
        space.expert_tensor = vec![2];
        space.pipeline = Limits::only(2);
    })
}

fn plan(question: Question) -> Plan {
    phaze::place(question).unwrap().expect("it fits")
}

static GIVEN: LazyLock<Plan> = LazyLock::new(|| plan(given()));
static SEARCHED: LazyLock<Plan> = LazyLock::new(|| plan(asked(|_| ())));

fn verdict(plan: &Plan) -> String {
    match judge(plan, "plan") {
        Ok(Ok(())) => "believed".into(),
        Ok(Err(lie)) => lie.to_string(),
        Err(senseless) => senseless.to_string(),
    }
}

fn is_rejected(text: &Value) -> bool {
    let Ok(plan) = serde_json::from_value::<Plan>(text.clone()) else { return true };
    check(&plan).is_err() || verdict(&plan) != "believed"
}

#[test]
fn honest_plans_hold_also_after_writing_and_reading() {
    for honest in [&*GIVEN, &*SEARCHED] {
        assert_eq!(verdict(honest), "believed");
        assert!(!is_rejected(&serde_json::to_value(honest).unwrap()));
    }
    let strategy = SEARCHED.training.as_ref().unwrap().strategy;
    assert!(strategy.expert_parallel > 1, "experts are dealt out: {strategy}");
    let all_to_all = SEARCHED.profile.kinds.iter().map(|kind| kind.all_to_all).max();
    assert!(all_to_all > Some(0), "rows are sent to their experts");
}

#[test]
fn what_a_plan_says_of_experts_can_be_refuted() {
    let honest = serde_json::to_value(&*GIVEN).unwrap();
    for (path, lie) in [
        ("/training/strategy/expert_parallel", json!(8)),
        ("/training/strategy/expert_parallel", json!(0)),
        ("/training/strategy/expert_tensor", json!(1)),
        ("/training/expert_load_per_mille", json!(1200)),
        ("/profile/expert_devices", json!(4)),
        ("/profile/expert_devices", Value::Null),
        ("/profile/expert_devices", json!(3)),
        ("/profile/kinds/1/expert_parameters", json!(0)),
        ("/profile/kinds/1/expert_parameters", json!(u64::MAX)),
        ("/profile/kinds/1/all_to_all", json!(1)),
        ("/question/space/expert_parallel", json!([2])),
        ("/question/space/expert_parallel", json!([])),
        ("/question/space/expert_tensor", json!([1])),
        ("/answer/ranks/0/memory/optimizer_state", json!(1)),
        ("/answer/ranks/0/exchange", json!(1)),
    ] {
        let mut forged = honest.clone();
        *forged.pointer_mut(path).unwrap_or_else(|| panic!("{path} is there")) = lie.clone();
        assert!(is_rejected(&forged), "{path} = {lie}");
    }
    let mut uneven = honest.clone();
    uneven["question"]["imbalance_per_mille"] = json!(1200);
    assert!(is_rejected(&uneven), "a load that was not counted");
}

#[test]
fn degrees_of_experts_outside_the_space_are_named() {
    for narrow in [
        |space: &mut StrategySpace| space.expert_parallel = vec![1, 8],
        |space: &mut StrategySpace| space.expert_tensor = vec![4],
    ] {
        let mut told = GIVEN.clone();
        let question = told.question.as_mut().unwrap();
        narrow(&mut question.space);
        let Proof::Optimal { open, .. } = told.proof;
        told.proof = Proof::Optimal { space: Some(question.space.clone()), open };
        let said = verdict(&told);
        assert!(said.contains("expert_parallel"), "{said}");
    }
}

#[test]
fn a_more_uneven_load_is_never_faster() {
    for base in [given(), asked(|_| ())] {
        let mut before = 0;
        for load in [1000, 1001, 1200, 2000] {
            let question = Question { imbalance_per_mille: Some(load), ..base.clone() };
            let time = plan(question).answer.time_per_batch;
            assert!(time >= before, "{load}: {time} after {before}");
            before = time;
        }
    }
}

#[test]
fn more_bandwidth_is_never_slower() {
    let text = include_str!("../inputs/hardware/a100-80g.toml");
    let line = |text: &str, key: &str| {
        let found = text.lines().find(|line| line.trim_start().starts_with(key));
        found.unwrap_or_else(|| panic!("{key} is there")).to_owned()
    };
    let mut before = u128::MAX;
    for between in ["12.5", "25", "50", "100"] {
        let faster =
            text.replace(&line(text, "between_gb_per_s"), &format!("between_gb_per_s = {between}"));
        let hardware = Source { name: "./faster.toml".into(), text: Some(faster) };
        let time = plan(Question { hardware, ..asked(|_| ()) }).answer.time_per_batch;
        assert!(time <= before, "{between}: {time} after {before}");
        before = time;
    }
}

#[test]
fn what_a_table_of_designs_says_of_experts_can_be_refuted() {
    let request = "hardware = \"tpuv4-like\"\n[[model]]\nname = \"mixtral-8x7b\"\nsequence = 4096\n\
                   [job]\ndevices = 16\nglobal_batch = 64\nmicro_batches = [1]\n\
                   tensor_parallel = [1, 2]\n[space]\nname = \"published\"\nhbm_gib = 80\n\
                   tensor_cores = [8, 16]\ndepth = 128\nwidth = 128\nglb_mib = 32\n";
    let request = RequestFile::read(request, "request").unwrap();
    let mut found = phaze::search(&request).unwrap();
    assert!(phaze::check(&found).unwrap().is_ok());
    let rows: Vec<&str> = found.designs.lines().collect();
    assert!(rows[0].ends_with(",expert_parallel,expert_tensor"));
    let told = rows.iter().position(|row| row.ends_with(",8,1")).expect("experts are dealt out");
    let forged = rows[told].strip_suffix(",8,1").map(|rest| format!("{rest},4,1")).unwrap();
    let lie = [&rows[..told], &[&forged[..]], &rows[told + 1..]].concat().join("\n") + "\n";
    found.designs = lie;
    let refuted = phaze::check(&found).unwrap().map(|_| ()).unwrap_err().to_string();
    assert!(refuted.contains("expert_parallel of design"), "{refuted}");
}
