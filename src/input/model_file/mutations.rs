//! Files with a value, an entry or a part changed: each is refused by its place, or divided in every
//! way, and some are placed.

#![cfg(test)]

use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::RngAlgorithm;
use proptest::test_runner::TestRng;
use proptest::test_runner::TestRunner;
use serde_json::Value;
use serde_json::json;

use super::read;
use super::text;
use crate::input::Conventions;
use crate::input::place;
use crate::input::place::Basics;
use crate::model::Attention;
use crate::model::Kernels;
use crate::model::Model;
use crate::model::Module;
use crate::model::Modules;
use crate::model::Stack;
use crate::model::families;
use crate::model::spec::examples;
use crate::parallel::ContextKind;
use crate::parallel::Setting;
use crate::parallel::shard;

/// One change of a file.
#[derive(Clone, Debug)]
struct Change {
    place: Index,
    from: Index,
    number: usize,
    how: u8,
}

fn changes() -> impl Strategy<Value = Change> {
    let parts = (any::<Index>(), any::<Index>(), 0_usize..70, 0_u8..5);
    parts.prop_map(|(place, from, number, how)| Change { place, from, number, how })
}

impl Change {
    fn apply(&self, file: &mut Value) {
        let mut all = Vec::new();
        places(file, "", &mut all);
        let other = file.pointer(&all[self.from.index(all.len())]).unwrap().clone();
        let target = file.pointer_mut(&all[self.place.index(all.len())]).unwrap();
        match (self.how, target) {
            (0, target) => *target = json!(self.number),
            (1, Value::Array(entries)) if !entries.is_empty() => {
                entries.remove(self.number % entries.len());
            }
            (2, Value::Array(entries)) if entries.len() > 1 => {
                let at = self.number % (entries.len() - 1);
                entries.swap(at, at + 1);
            }
            (_, target) => *target = other,
        }
    }
}

/// Every place of a value, by its pointer.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Object(fields) => {
            fields.iter().for_each(|(key, inner)| places(inner, &format!("{at}/{key}"), found));
        }
        Value::Array(entries) => {
            let numbered = entries.iter().enumerate();
            numbered.for_each(|(nth, inner)| places(inner, &format!("{at}/{nth}"), found));
        }
        _ => {}
    }
}

/// As many files of each family as the environment says, or `usual`.
fn cases(usual: u32) -> u32 {
    let said = std::env::var("PROPTEST_CASES");
    said.ok().and_then(|cases| cases.parse().ok()).unwrap_or(usual)
}

/// Runs `tried` on so many changed files of every family that are read, the same on every run, and
/// answers how many those are.
fn on_changed_files(n_cases: u32, tried: impl Fn(&Model, &str, usize)) -> usize {
    let n_read = std::cell::Cell::new(0);
    for spec in examples::all() {
        let written = text(&families::build(&spec));
        let whole: Value = serde_json::from_str(&written).unwrap();
        let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
        let config = ProptestConfig { cases: n_cases, ..config };
        let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
        let drawn = (proptest::collection::vec(changes(), 1..3), any::<usize>());
        let run = TestRunner::new_with_rng(config, rng).run(&drawn, |(changes, nth)| {
            let mut file = whole.clone();
            for change in &changes {
                change.apply(&mut file);
            }
            let changed = file.to_string();
            match read("m.json", &changed) {
                Ok(model) => {
                    n_read.set(n_read.get() + 1);
                    tried(&model, &changed, nth);
                }
                // By the field, unless the whole is no such file.
                Err(refused) => {
                    let (refused, is_whole) = (refused.to_string(), !file.is_object());
                    assert!(is_whole || refused.contains('`'), "{refused}");
                }
            }
            Ok(())
        });
        run.unwrap_or_else(|failed| panic!("{:?}: {failed}", spec.family));
    }
    n_read.get()
}

/// Settings along every axis, whether they are legal for a model or not.
fn settings() -> Vec<Setting> {
    let mut found = Vec::new();
    let everything: Modules = Module::ALL.into_iter().collect();
    for (tensor_parallel, sequence_parallel) in [(1, false), (2, false), (2, true), (4, true)] {
        for context in [1, 2, 4] {
            for context_kind in ContextKind::ALL {
                for (expert, expert_tensor) in [(1, 1), (2, 1), (1, 2), (4, 2)] {
                    for attention in [Attention::Recomputed, Attention::Stored] {
                        for kernels in [Kernels::FusedIdeal, Kernels::Megatron] {
                            for repeated in [Modules::NONE, everything] {
                                found.push(Setting {
                                    micro_batch: 2,
                                    sequence: 64,
                                    tensor_parallel,
                                    sequence_parallel,
                                    context,
                                    context_kind,
                                    expert,
                                    expert_tensor,
                                    attention,
                                    repeated,
                                    stack: Stack { kernels, ..Stack::IDEAL },
                                    ..Setting::ALONE
                                });
                            }
                        }
                    }
                }
            }
        }
    }
    found
}

#[test]
fn changed_files_are_refused_by_their_place_or_divided_along_every_axis() {
    let settings = settings();
    let n_read = on_changed_files(cases(500), |model, _, nth| {
        // A few of all, others each time; a step that shares no factor with their number.
        for step in 0..6 {
            drop(shard(model, settings[nth.wrapping_add(step * 211) % settings.len()]));
        }
    });
    assert!(n_read > 100, "{n_read} were read");
}

/// The best plan of a changed file on four devices over all axes, judged.
fn place(changed: &str, sequence: u64) {
    let read = |_: &std::path::Path| Ok(changed.to_owned());
    let basics = Basics {
        sequence: Some(sequence),
        global_batch: Some(8),
        ..Basics::new("m.json", "h100-sxm", 4)
    };
    let question = place::question(&basics, Conventions::of(false), &read);
    let mut question = question.expect("the file was read before");
    question.space.context_parallel = vec![1, 2];
    question.space.micro_batches = vec![1];
    // Answered or refused.
    let Ok(ready) = place::ready(question, "question") else { return };
    if let Ok(Some(plan)) = place::solve(&ready) {
        place::judge(&plan, "plan").unwrap().unwrap_or_else(|lie| panic!("{lie}"));
    }
}

#[test]
fn changed_files_that_are_read_are_placed_and_their_plans_believed() {
    // One in so many of those that are divided, which takes far less.
    let n_cases = cases(500).div_ceil(50).min(200);
    let n_read = on_changed_files(n_cases, |model, changed, _| {
        place(changed, model.spec.max_sequence.min(64));
    });
    assert!(n_read > 0);
}
