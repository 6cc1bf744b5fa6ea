//! What follows from the table: the best of all, the best by size of memory, the best so many,
//! the front. Pure functions of what was evaluated.

use std::collections::BTreeSet;

use crate::search::Merit;

use super::replay::dominates;
use super::table::Evaluated;
use super::table::Row;

/// A size of memory and a design.
pub type Place = (usize, usize);

/// How many of the best designs are told in full, exact or not.
pub const TOLD: usize = 20;

fn evaluated(rows: &[Row]) -> impl Iterator<Item = (Place, &Evaluated)> {
    rows.iter().enumerate().flat_map(|(design, row)| {
        let pairs = row.pairs.iter().enumerate();
        pairs.filter_map(move |(hbm, pair)| Some(((hbm, design), pair.found.as_ref()?)))
    })
}

/// The best of all; among equals the smaller area wins, then the smaller memory, then the fewer
/// devices, then the first.
pub fn winner(rows: &[Row]) -> Option<Place> {
    let key = |(hbm, design): Place, found: &Evaluated| {
        let devices: u64 = found.devices.iter().sum();
        (found.merit.value, found.merit.area, hbm, devices, design)
    };
    evaluated(rows).min_by_key(|(place, found)| key(*place, found)).map(|(place, _)| place)
}

/// The best with each size of memory.
pub fn best_by_size(rows: &[Row], n_sizes: usize) -> Vec<Option<Place>> {
    let best = |size: usize| {
        let there = evaluated(rows).filter(|((hbm, _), _)| *hbm == size);
        there
            .min_by_key(|((_, design), found)| (found.merit.value, found.merit.area, *design))
            .map(|(place, _)| place)
    };
    (0..n_sizes).map(best).collect()
}

/// The best `n` designs, each with its best size of memory.
pub fn top(rows: &[Row], n: usize) -> Vec<Place> {
    let mut all: Vec<(u128, u128, Place)> = evaluated(rows)
        .map(|(place, found)| (found.merit.value, found.merit.area, place))
        .collect();
    all.sort_unstable();
    let mut seen = BTreeSet::new();
    let places = all.into_iter().map(|(_, _, place)| place);
    places.filter(|(_, design)| seen.insert(*design)).take(n).collect()
}

/// The pairs that no other beats in throughput, area and energy at once.
pub fn front(rows: &[Row]) -> Vec<Place> {
    let mut all: Vec<(Merit, Place)> =
        evaluated(rows).map(|(place, found)| (found.merit, place)).collect();
    all.sort_unstable_by_key(|(merit, place)| (merit.area, merit.slowness, merit.energy, *place));
    let mut front: Vec<(Merit, Place)> = Vec::new();
    // Whatever dominates a merit comes before it, or is dominated by one that does.
    for (merit, place) in all {
        if !front.iter().any(|(known, _)| dominates(known, &merit)) {
            front.push((merit, place));
        }
    }
    front.into_iter().map(|(_, place)| place).collect()
}
