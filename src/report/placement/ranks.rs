//! The ranks of a pipeline as a table, runs of equal ranks folded.

use std::io;
use std::io::Write;

use super::size;
use super::time;
use crate::plan::Cost;
use crate::plan::Memory;
use crate::plan::Placement;
use crate::plan::Plan;
use crate::plan::StageCost;

/// One line per run of ranks with the same layers and times; early ones keep more than late ones,
/// so memory is shown as a range.
pub fn table(
    plan: &Plan,
    placement: &Placement,
    cost: &Cost,
    out: &mut dyn Write,
) -> io::Result<()> {
    let units = &plan.units;
    writeln!(
        out,
        "{:<9}{:>14}{:>22}{:>9}{:>9}{:>11}{:>11}{:>22}{:>22}{:>11}",
        "rank",
        "layers",
        "ids",
        "repeated",
        "devices",
        "forward",
        "backward",
        "kept",
        "memory",
        "left"
    )?;
    let ranks = Ranks::of(plan, placement, cost);
    let mut first = 0;
    while first < ranks.held.len() {
        let alike = |other: usize| ranks.look(other) == ranks.look(first);
        let last =
            (first..ranks.held.len()).take_while(|&other| alike(other)).last().unwrap_or(first);
        let stages = &ranks.held[first];
        let sum = |of: fn(&StageCost) -> u64| stages.iter().map(|(_, s)| u128::from(of(s))).sum();
        let ids: Vec<i64> = ranks.held[first..=last]
            .iter()
            .flatten()
            .flat_map(|(layers, _)| layers.iter().map(|&layer| plan.profile.ids[layer]))
            .collect();
        let memories = || cost.ranks[first..=last].iter().map(|rank| &rank.memory);
        let range = |of: &dyn Fn(&Memory) -> u128| {
            let (least, most) = (memories().map(of).min(), memories().map(of).max());
            let [least, most] = [least, most].map(|found| size(units, found.unwrap_or(0)));
            if least == most { most } else { format!("{least} – {most}") }
        };
        let fullest = memories().map(Memory::total).max().unwrap_or(0);
        let left = u128::from(plan.job.memory).checked_sub(fullest);
        let name = if first == last { format!("{first}") } else { format!("{first} – {last}") };
        writeln!(
            out,
            "{name:<9}{:>14}{:>22}{:>9}{:>9}{:>11}{:>11}{:>22}{:>22}{:>11}",
            counted(stages),
            runs(&ids),
            stages.iter().map(|(_, stage)| stage.repeated).sum::<usize>(),
            stages.first().map_or(0, |(_, stage)| stage.devices),
            time(units, sum(|stage| stage.time.forward)),
            time(units, sum(|stage| stage.time.backward)),
            range(&|memory| memory.activations),
            range(&Memory::total),
            left.map_or_else(|| "none".into(), |left| size(units, left)),
        )?;
        first = last + 1;
    }
    Ok(())
}

/// A virtual stage: its layers and what it costs.
type Held<'a> = (&'a [usize], StageCost);

/// What each rank holds.
struct Ranks<'a> {
    plan: &'a Plan,
    held: Vec<Vec<Held<'a>>>,
}

impl<'a> Ranks<'a> {
    fn of(plan: &'a Plan, placement: &'a Placement, cost: &Cost) -> Self {
        let n_ranks = cost.ranks.len();
        let mut held = vec![Vec::new(); n_ranks];
        for (at, layers) in placement.pipeline.stages().enumerate() {
            held[at % n_ranks].push((layers, cost.stages[at]));
        }
        Self { plan, held }
    }

    /// What makes ranks alike: the kinds of their layers, what is repeated, devices and times.
    fn look(&self, rank: usize) -> Vec<(Vec<usize>, usize, u64, u64, u64)> {
        let look = |(layers, stage): &Held| {
            let kinds = layers.iter().map(|&layer| self.plan.profile.sequence[layer]).collect();
            let StageCost { repeated, devices, time, .. } = *stage;
            (kinds, repeated, devices, time.forward, time.backward)
        };
        self.held[rank].iter().map(look).collect()
    }
}

/// How many layers a rank holds; with several virtual stages, how many in each.
fn counted(stages: &[Held]) -> String {
    let counts: Vec<usize> = stages.iter().map(|(layers, _)| layers.len()).collect();
    let all: usize = counts.iter().sum();
    match &counts[..] {
        [] | [_] => all.to_string(),
        [first, others @ ..] if others.iter().all(|other| other == first) => {
            format!("{all} = {} x {first}", counts.len())
        }
        several if several.len() <= 4 => {
            several.iter().map(ToString::to_string).collect::<Vec<_>>().join(" + ")
        }
        several => format!("{all} in {}", several.len()),
    }
}

/// Ids as ranges: `-1 – 3` or `2, 5, 7`.
fn runs(ids: &[i64]) -> String {
    let mut sorted = ids.to_vec();
    sorted.sort_unstable();
    let mut parts: Vec<(i64, i64)> = Vec::new();
    for id in sorted {
        match parts.last_mut() {
            Some(part) if part.1.checked_add(1) == Some(id) => part.1 = id,
            _ => parts.push((id, id)),
        }
    }
    let most = if parts.len() > 3 { 2 } else { 3 };
    let shown = parts
        .iter()
        .take(most)
        .map(|&(from, to)| if from == to { from.to_string() } else { format!("{from} – {to}") });
    let more = if parts.len() > most { ", …" } else { "" };
    format!("{}{more}", shown.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_that_follow_each_other_are_told_by_their_ends() {
        assert_eq!(runs(&[3, 1, 2, -1]), "-1, 1 – 3");
        assert_eq!(runs(&[0, 2, 4]), "0, 2, 4");
        assert_eq!(runs(&[0, 2, 4, 6]), "0, 2, …");
    }
}
