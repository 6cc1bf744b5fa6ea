//! Whose efficiency is assumed of a design, and that designs without any keep the numbers that they
//! had before there were efficiencies.

use phaze::input::Conventions;
use phaze::input::efficiency::replaced;
use phaze::input::efficiency_choice::source;
use phaze::input::hardware::preset_text;
use phaze::input::place::Basics;
use phaze::input::place::judge;
use phaze::input::place::question;
use phaze::input::source::no_files;
use phaze::plan::Basis;
use phaze::plan::Plan;
use phaze::plan::Question;
use phaze::plan::Source;
use serde_json::Value;

fn asked(model: &str, hardware: &str, efficiency: Option<&str>) -> Question {
    let basics = Basics {
        sequence: Some(1024),
        global_batch: Some(256),
        ..Basics::new(model, hardware, 64)
    };
    let mut found = question(&basics, &Conventions::OURS, &no_files).unwrap();
    let chosen = efficiency.map(|name| source(name, "--efficiency", &no_files).unwrap());
    found.efficiency = chosen;
    found.space.micro_batches = vec![1, 2];
    found.space.tensor_parallel = vec![1, 4];
    found
}

fn plan(question: Question) -> Plan {
    phaze::place(question).unwrap().expect("it fits")
}

fn basis(plan: &Plan) -> Option<&Basis> {
    plan.training.as_ref().unwrap().basis.as_ref()
}

/// All that a plan says but for its question.
fn answer(plan: &Plan) -> Value {
    let told = Plan { question: None, ..plan.clone() };
    let mut told = serde_json::to_value(told).unwrap();
    told["training"]["design"] = Value::Null;
    told
}

#[test]
fn an_ideal_plan_is_that_of_the_same_file_without_its_block() {
    for hardware in ["a100-80g", "h100-sxm", "b200"] {
        let ideal = plan(asked("gpt2-xl", hardware, Some("ideal")));
        let mut bare = asked("gpt2-xl", hardware, None);
        let text = replaced(preset_text(hardware).unwrap(), "");
        bare.hardware = Source { name: "bare.toml".into(), text: Some(text) };
        assert_eq!(answer(&ideal), answer(&plan(bare)), "{hardware}");
        assert_eq!(basis(&ideal), None, "{hardware}");
        assert_eq!(judge(&ideal, "plan").unwrap(), Ok(()), "{hardware}");
    }
}

#[test]
fn a_class_is_an_assumption_and_makes_no_plan_faster() {
    for class in ["simt", "systolic"] {
        for hardware in ["tpuv4", "tpuv4-like", "mi300x"] {
            let assumed = plan(asked("gpt2-xl", hardware, Some(class)));
            let ideal = plan(asked("gpt2-xl", hardware, None));
            assert_eq!(basis(&assumed), Some(&Basis::TakenFrom(class.into())));
            assert_eq!(basis(&ideal), None);
            let (slow, fast) = (assumed.answer.time_per_batch, ideal.answer.time_per_batch);
            assert!(slow > fast, "{class} on {hardware}: {slow} is not above {fast}");
            assert_eq!(judge(&assumed, "plan").unwrap(), Ok(()), "{class} on {hardware}");
            let mut forged = assumed.clone();
            forged.question.as_mut().unwrap().efficiency = None;
            assert!(judge(&forged, "plan").unwrap().is_err(), "{class} on {hardware}");
        }
    }
}

#[test]
fn what_is_taken_from_a_calibrated_part_is_no_calibration_of_another() {
    let own = plan(asked("gpt2-xl", "a100-80g", None));
    assert!(matches!(basis(&own), Some(Basis::Calibrated { runs: 18, .. })), "{:?}", basis(&own));
    let taken = plan(asked("gpt2-xl", "h100-sxm", Some("a100-80g")));
    assert_eq!(basis(&taken), Some(&Basis::TakenFrom("a100-80g".into())));
}

#[test]
fn designs_without_a_block_keep_their_numbers_bit_for_bit() {
    let golden = include_str!("golden/ideal-plans.csv");
    let mut lines = golden.lines().filter(|line| !line.starts_with('#'));
    assert_eq!(lines.next(), Some("model,sequence,hardware,time_per_batch_ps,memory_bytes"));
    let mut n_plans = 0;
    for line in lines {
        let cells: Vec<&str> = line.split(',').collect();
        let mut question = asked(cells[0], cells[2], Some("ideal"));
        question.sequence = cells[1].parse().unwrap();
        let answer = plan(question).answer;
        let memory = answer.ranks.iter().map(|rank| rank.memory.total()).max().unwrap_or(0);
        let found = [answer.time_per_batch.to_string(), memory.to_string()];
        assert_eq!(found, [cells[3], cells[4]], "{} on {}", cells[0], cells[2]);
        n_plans += 1;
    }
    assert_eq!(n_plans, 9);
}

#[test]
fn only_mixtures_feel_what_the_matmuls_of_experts_reach() {
    let own = preset_text("h100-sxm").unwrap();
    assert!(own.contains("\ngrouped = 0.66"));
    let without: Vec<&str> = own.lines().filter(|line| !line.starts_with("grouped")).collect();
    let without = Source { name: "h100-sxm.toml".into(), text: Some(without.join("\n")) };
    let both = |model: &str| {
        let mut mixture = asked(model, "h100-sxm", None);
        mixture.space.expert_parallel = vec![8];
        mixture.space.expert_tensor = vec![1];
        if model == "gpt2-xl" {
            mixture = asked(model, "h100-sxm", None);
        }
        let alike = Question { hardware: without.clone(), ..mixture.clone() };
        [mixture, alike].map(plan)
    };
    let [dense, same] = both("gpt2-xl");
    assert_eq!(answer(&dense), answer(&same));
    let [slow, fast] = both("mixtral-8x7b");
    assert!(slow.answer.time_per_batch > fast.answer.time_per_batch);
    // A block that makes experts as fast as all other matmuls is refuted.
    let forged = Plan { question: fast.question, ..slow };
    assert!(judge(&forged, "plan").unwrap().is_err());
}
