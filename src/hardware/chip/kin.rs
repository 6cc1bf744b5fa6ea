//! Arrays of about as many multiply-accumulators: chips that have them are nearly alike in all that they take and in
//! how fast they are, so that boxes of them are looked at together.
//!
//! Tensor cores and the sides of arrays have no law: nothing is said of one chip by another that differs in them.
//! But a corner may count every operator at the least of several such arrays, and speak for all of them at once.

use std::collections::BTreeMap;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::PoisonError;
use std::sync::RwLock;

use super::ChipGrid;
use super::N_CHIP_KNOBS;

/// The places of tensor cores, width and depth among the knobs.
const ARRAYS: [usize; 3] = [0, 1, 2];

/// The places of their values.
type Places = [u16; ARRAYS.len()];

/// So many arrays are counted together at the most: members are bits.
const MOST: usize = u32::BITS as usize;

/// So many kinds of arrays are told apart by class at the most.
const MOST_LISTED: u64 = 1 << 20;

/// Arrays are of one class where the leading bits of their multiply-accumulators are the same, the first and so many
/// more.
const BITS: u32 = 5;

/// Some arrays of one class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kin {
    class: u64,
    /// Places in the list of the class, as bits.
    members: u32,
}

impl Kin {
    /// Which arrays they are some of.
    pub fn class(&self) -> u64 {
        self.class
    }

    /// Whether all of them are among others.
    pub fn are_among(&self, others: &Self) -> bool {
        self.class == others.class && self.members & !others.members == 0
    }

    /// Those of a class at such places, as bits.
    #[cfg(test)]
    pub(crate) fn example(class: u64, members: u32) -> Self {
        Self { class, members }
    }

    /// Both together; `None` where they are of two classes.
    pub fn with(self, other: Self) -> Option<Self> {
        let members = self.members | other.members;
        (self.class == other.class).then_some(Self { members, ..self })
    }
}

/// All classes of a grid, each listed when it is first asked for.
#[derive(Debug, Default)]
pub struct Classes(RwLock<HashMap<u64, Arc<[Places]>>>);

impl Classes {
    /// The arrays of a point.
    pub fn of(&self, grid: &ChipGrid, point: &[u16; N_CHIP_KNOBS]) -> Kin {
        let own = ARRAYS.map(|knob| point[knob]);
        let leading = leading(macs(grid, own));
        let listed = self.listed(grid, leading);
        let place = listed.iter().position(|places| *places == own);
        let place = place.expect("the arrays of a point are of their class");
        // Two numbers that stay apart: a class of more than so many is several.
        let class = (leading << 32) + (place / MOST) as u64;
        Kin { class, members: 1 << (place % MOST) }
    }

    /// A point with each of these arrays.
    pub fn each(
        &self,
        grid: &ChipGrid,
        kin: Kin,
        point: &[u16; N_CHIP_KNOBS],
    ) -> Vec<[u16; N_CHIP_KNOBS]> {
        let listed = self.listed(grid, kin.class >> 32);
        let first = usize::try_from(kin.class & u64::from(u32::MAX)).unwrap_or(0) * MOST;
        let members = (0..MOST).filter(|bit| kin.members >> bit & 1 == 1);
        let with = |places: &Places| {
            let mut point = *point;
            for (knob, place) in ARRAYS.into_iter().zip(places) {
                point[knob] = *place;
            }
            point
        };
        members.filter_map(|bit| Some(with(listed.get(first + bit)?))).collect()
    }

    /// All arrays with such leading bits, those of the fewest multiply-accumulators first.
    fn listed(&self, grid: &ChipGrid, leading: u64) -> Arc<[Places]> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner).get(&leading).cloned();
        known.unwrap_or_else(|| {
            let found = list(grid, leading);
            let mut classes = self.0.write().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(classes.entry(leading).or_insert(found))
        })
    }
}

/// All arrays of a grid by class: boxes of places of tensor cores, width and depth, from the first to the last.
///
/// Where there are more arrays than can be listed, they are one class.
pub fn classes(grid: &ChipGrid) -> Vec<Vec<[(u16, u16); 3]>> {
    let lens = ARRAYS.map(|knob| grid.lens()[knob]);
    if lens.into_iter().map(u64::from).product::<u64>() > MOST_LISTED {
        return vec![vec![lens.map(|len| (0, len - 1))]];
    }
    let mut all: BTreeMap<u64, Vec<[(u16, u16); 3]>> = BTreeMap::new();
    for (width, depth) in (0..lens[1]).flat_map(|w| (0..lens[2]).map(move |d| (w, d))) {
        for cores in 0..lens[0] {
            let class = all.entry(leading(macs(grid, [cores, width, depth]))).or_default();
            match class.last_mut() {
                Some([(_, last), w, d]) if (w.0, d.0) == (width, depth) && *last + 1 == cores => {
                    *last = cores;
                }
                _ => class.push([(cores, cores), (width, width), (depth, depth)]),
            }
        }
    }
    all.into_values().collect()
}

fn list(grid: &ChipGrid, wanted: u64) -> Arc<[Places]> {
    let [cores, widths, depths] = ARRAYS.map(|knob| grid.values(knob).len());
    let place = |at: usize| u16::try_from(at).unwrap_or(u16::MAX);
    let mut found: Vec<(u64, Places)> = Vec::new();
    for (width, depth) in (0..widths).flat_map(|w| (0..depths).map(move |d| (place(w), place(d)))) {
        let macs = |at: usize| macs(grid, [place(at), width, depth]);
        // With more cores there are more of them.
        let (mut at, mut end) = (0, cores);
        while at < end {
            let middle = at.midpoint(end);
            if leading(macs(middle)) < wanted { at = middle + 1 } else { end = middle }
        }
        let alike = (at..cores).take_while(|&at| leading(macs(at)) == wanted);
        found.extend(alike.map(|at| (macs(at), [place(at), width, depth])));
    }
    found.sort_unstable();
    found.into_iter().map(|(_, places)| places).collect()
}

fn macs(grid: &ChipGrid, places: Places) -> u64 {
    let values = ARRAYS.into_iter().zip(places);
    let values = values.map(|(knob, place)| grid.values(knob)[usize::from(place)]);
    values.fold(1, u64::saturating_mul)
}

/// The position of the first bit of a number that is not 0, and as many bits as count after it.
fn leading(macs: u64) -> u64 {
    let bits = u64::BITS - macs.leading_zeros();
    let spare = bits.saturating_sub(BITS + 1);
    (u64::from(spare) << (BITS + 1)) + (macs >> spare)
}

#[cfg(test)]
mod tests {
    use super::super::CHIP_KNOBS;
    use super::super::ChipSpace;
    use super::super::properties::technology;
    use super::*;

    fn grid(change: impl Fn(&mut ChipSpace)) -> ChipGrid {
        let technology = technology();
        let mut space = ChipSpace::default_of(&technology);
        change(&mut space);
        ChipGrid::new(&space, &technology).unwrap()
    }

    #[test]
    fn places_of_knobs_are_those_of_the_table() {
        let lawless = (0..CHIP_KNOBS.len()).filter(|&knob| !CHIP_KNOBS[knob].proved);
        assert!(lawless.eq(ARRAYS));
    }

    #[test]
    fn leading_bits_rise_with_what_they_are_of_and_no_two_of_a_class_differ_by_a_part_in_32() {
        for macs in 1..20_000_u64 {
            assert!(leading(macs) <= leading(macs + 1));
            let first = (1..=macs).rev().take_while(|&less| leading(less) == leading(macs)).last();
            assert!(macs - first.unwrap() <= macs / 32);
        }
        assert!(leading(u64::MAX) > leading(u64::MAX / 2));
    }

    #[test]
    fn every_array_is_one_of_its_class_and_all_of_a_class_are_found_again() {
        let many = |space: &mut ChipSpace| {
            space.knobs.insert("tensor_cores".into(), (1000..1100).collect());
        };
        for grid in [grid(|_| ()), grid(many)] {
            let classes = Classes::default();
            let mut all: BTreeMap<u64, (Kin, Vec<[u16; N_CHIP_KNOBS]>)> = BTreeMap::new();
            let lens = grid.lens();
            for cores in 0..lens[0] {
                for (width, depth) in (0..lens[1]).flat_map(|w| (0..lens[2]).map(move |d| (w, d))) {
                    let mut point = [1; N_CHIP_KNOBS];
                    (point[0], point[1], point[2]) = (cores, width, depth);
                    let kin = classes.of(&grid, &point);
                    assert_eq!(classes.each(&grid, kin, &point), [point]);
                    let known = all.entry(kin.class()).or_insert((kin, Vec::new()));
                    let both = known.0.with(kin).expect("of one class");
                    assert!(kin.are_among(&both) && known.0.are_among(&both));
                    known.0 = both;
                    known.1.push(point);
                }
            }
            for (kin, mut points) in all.into_values() {
                let mut found = classes.each(&grid, kin, &[1; N_CHIP_KNOBS]);
                points.sort_unstable();
                found.sort_unstable();
                assert_eq!(found, points);
                assert!(points.len() <= MOST);
            }
        }
    }
}
