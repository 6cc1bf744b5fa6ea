//! Why a plan is believed to be the best, and of what.

use std::fmt::Display;
use std::io;
use std::io::Write;

use super::headline;
use super::judged;
use super::time;
use crate::model::Modules;
use crate::parallel::frameworks::Framework;
use crate::parallel::zero::Zero;
use crate::plan::CutSpace;
use crate::plan::Limits;
use crate::plan::Plan;
use crate::plan::Proof;
use crate::plan::Recompute;
use crate::plan::StrategySpace;
use crate::report::quantity::percent;

/// Why the plan is believed to be the best, in one paragraph.
pub fn proof(plan: &Plan) -> String {
    let Proof::Optimal { space, open } = &plan.proof;
    let mut told = match space.as_ref().map(|space| (space, is_one_strategy(space))) {
        Some((StrategySpace { cut: CutSpace::Even, .. }, true)) => {
            return "The strategy and its even cut were given: nothing is claimed of others."
                .into();
        }
        Some((_, true)) => {
            "The strategy was given. Proved: no other cut of its layers is faster.".to_owned()
        }
        Some((space, false)) => {
            format!("Proved: no other placement is faster, over {}.", described(space))
        }
        None => "Proved: no other placement is faster, over every number of pipelines and stages \
                 and every cut."
            .to_owned(),
    };
    if let Some(least) = *open {
        let batch = plan.answer.time_per_batch;
        let gap = batch.saturating_sub(least) as f64 / batch as f64;
        let (least, gap) = (time(&plan.units, least), percent(gap));
        told = format!(
            "{told} Layouts of virtual stages were compared within a declared family; none outside \
             it takes less than {least}, {gap} below this plan."
        );
    }
    told + " It is optimal within this model and these strategies."
}

/// Whether everything but the cut is decided.
fn is_one_strategy(space: &StrategySpace) -> bool {
    let one = |limits: Limits| limits.least == limits.most;
    let several_ranks = space.pipeline.least > 1;
    [space.micro_batches.len(), space.tensor_parallel.len(), space.context_parallel.len()]
        .into_iter()
        .chain([space.expert_parallel.len(), space.expert_tensor.len()])
        .chain([space.sequence_parallel.len(), space.repeated.len(), space.recompute.len()])
        .chain([space.zero_with(if several_ranks { 2 } else { 1 }).len()])
        .all(|n| n == 1)
        && (space.context_kinds.len() == 1 || space.context_parallel == [1])
        && (space.orders.len() == 1 || space.pipeline == Limits::only(1))
        && [space.pipeline, space.chunks, space.data_parallel].into_iter().all(one)
}

/// A space of strategies in one sentence.
pub fn described(space: &StrategySpace) -> String {
    let mut said = vec![format!("micro-batch {}", list(&space.micro_batches))];
    let scattered = match space.sequence_parallel[..] {
        [false] => "",
        [true] => " with sequence parallelism",
        _ => " with and without sequence parallelism",
    };
    said.push(format!("TP {}{scattered}", list(&space.tensor_parallel)));
    if space.context_parallel != [1] {
        let kinds = list(&space.context_kinds);
        said.push(format!("CP {} ({kinds})", list(&space.context_parallel)));
    }
    if space.expert_parallel != [1] {
        said.push(format!("EP {}", list(&space.expert_parallel)));
    }
    if space.expert_tensor != [1] {
        let either = if space.expert_tensor.len() > 1 { ", 1 or TP" } else { "" };
        said.push(format!("ETP {}{either}", list(&space.expert_tensor)));
    }
    said.push(match space.pipeline {
        Limits { least: 1, most: 1 } => "no pipeline".to_owned(),
        ranks => format!("PP {}{}", limits(ranks), chunks(space)),
    });
    said.push(format!("DP {}", limits(space.data_parallel)));
    said.push(sharing(space));
    if space.orders.len() > 1 && space.pipeline != Limits::only(1) {
        said.push(format!("orders {}", list(&space.orders)));
    }
    said.push(repeating(space));
    said.push(match space.cut {
        CutSpace::Best => "every cut into stages".into(),
        CutSpace::Even => "the even cut into stages".into(),
    });
    let accepted = match space.framework {
        Framework::Any => String::new(),
        framework => format!(", of what {framework} accepts"),
    };
    format!("{}{accepted}", said.join("; "))
}

fn chunks(space: &StrategySpace) -> String {
    if space.chunks == Limits::only(1) {
        return String::new();
    }
    let groups = space.group.map_or_else(String::new, |group| format!(" in groups of {group}"));
    let number = match space.chunks {
        Limits::ALL => "any number of".into(),
        some => limits(some),
    };
    format!(" with {number} chunks each{groups}")
}

/// What replicas may share.
fn sharing(space: &StrategySpace) -> String {
    let stages = |zero: &[Zero]| list(&zero.iter().map(|zero| zero.stage()).collect::<Vec<_>>());
    let (alone, piped) = (stages(&space.zero), stages(&space.zero_in_pipelines));
    let shards = space.shards.map_or_else(String::new, |shards| format!(" over {shards}"));
    if alone == piped || space.pipeline == Limits::only(1) {
        format!("ZeRO {alone}{shards}")
    } else if space.pipeline.least > 1 {
        format!("ZeRO {piped}{shards}")
    } else {
        format!("ZeRO {alone} without a pipeline and {piped} with one{shards}")
    }
}

/// What may be computed again.
fn repeating(space: &StrategySpace) -> String {
    let layers = match space.recompute[..] {
        [Recompute::AsNeeded] => "as many layers as memory asks for".to_owned(),
        _ => list(&space.recompute),
    };
    let modules: Vec<String> = space
        .repeated
        .iter()
        .map(|modules| match *modules {
            Modules::NONE => "none".into(),
            some => some.to_string(),
        })
        .collect();
    match &modules[..] {
        [only] if only == "none" => format!("recompute of {layers}"),
        several => format!("recompute of {layers} and of modules: {}", several.join(" or ")),
    }
}

/// Values with commas; many that follow each other by their ends.
fn list<T: Display>(values: &[T]) -> String {
    let texts: Vec<String> = values.iter().map(ToString::to_string).collect();
    match &texts[..] {
        [first, .., last] if texts.len() > 8 => {
            format!("{first} to {last} ({} values)", texts.len())
        }
        _ => texts.join(", "),
    }
}

fn limits(Limits { least, most }: Limits) -> String {
    match (least, most) {
        (1, u64::MAX) => "any".into(),
        (least, u64::MAX) => format!("{least} or more"),
        (least, most) if least == most => least.to_string(),
        (least, most) => format!("{least} to {most}"),
    }
}

/// What a check found.
pub fn verdict(file: &str, plan: &Plan, solved: bool, out: &mut dyn Write) -> io::Result<()> {
    let (placement, cost) = judged(plan);
    writeln!(out, "{file}: holds")?;
    writeln!(out, "  {}", headline(plan, &placement, &cost))?;
    let batch = time(&plan.units, cost.time_per_batch);
    writeln!(
        out,
        "  every layer once, no edge back, every rank fits, and a batch takes {batch}, as claimed"
    )?;
    let rests = match &plan.question {
        Some(_) => "operators, schedules, memory and profile rebuilt from the question",
        None => "times and sizes of the layers are taken from the profile in the file",
    };
    writeln!(out, "  {rests}")?;
    if solved {
        writeln!(out, "  the solvers were asked again and found nothing faster")
    } else {
        writeln!(
            out,
            "Not checked, because it needs a solver (`--deep` does): that no strategy, mapping or \
             schedule is faster"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::placement::example;

    #[test]
    fn a_proof_says_of_which_strategies_it_speaks() {
        let told = proof(&example(true));
        let space = "over micro-batch 1; TP 1, 2; PP any with 1 to 2 chunks each; DP any; \
                     ZeRO 0, 1 without a pipeline and 1 with one; \
                     recompute of as many layers as memory asks for; every cut into stages.";
        assert_eq!(
            told,
            format!(
                "Proved: no other placement is faster, {space} It is optimal within this model \
                 and these strategies."
            )
        );
    }

    #[test]
    fn layouts_outside_the_family_are_told_by_the_gap_to_them() {
        let mut plan = example(true);
        let Proof::Optimal { open, .. } = &mut plan.proof;
        *open = Some(plan.answer.time_per_batch * 9 / 10);
        let told = proof(&plan);
        assert!(told.contains("none outside it takes less than "), "{told}");
        assert!(told.contains(", 10.0 % below this plan."), "{told}");
    }

    #[test]
    fn of_a_given_strategy_only_its_cut_is_claimed() {
        let mut plan = example(false);
        let one = StrategySpace {
            pipeline: Limits::only(2),
            data_parallel: Limits::only(2),
            ..StrategySpace::plain(vec![1], vec![2], vec![Recompute::None])
        };
        let mut with = |cut| {
            let space = Some(StrategySpace { cut, ..one.clone() });
            plan.proof = Proof::Optimal { space, open: None };
            proof(&plan)
        };
        assert!(with(CutSpace::Best).starts_with("The strategy was given. Proved: no other cut"));
        assert!(with(CutSpace::Even).ends_with("nothing is claimed of others."));
    }

    #[test]
    fn many_values_are_told_by_their_ends() {
        assert_eq!(list(&[1, 2, 4]), "1, 2, 4");
        let many: Vec<u64> = (1..=64).collect();
        assert_eq!(list(&many), "1 to 64 (64 values)");
    }
}
