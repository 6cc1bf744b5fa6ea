//! A network of levels: devices in nodes, nodes in blocks, blocks in a cluster.

use std::ops::RangeInclusive;

use serde::Deserialize;
use serde::Serialize;

use super::Exchange;
use super::Group;
use super::Link;
use super::Topology;
use super::moved;
use super::spread::Spread;
use super::spread::Spreads;
use super::spread::greatest_common_divisor;
use super::spread::spreads;
use crate::hardware::Efficiency;
use crate::model::op::CollectiveKind;
use crate::units::Bandwidth;
use crate::units::Bytes;
use crate::units::Time;

/// One level of a network: what joins the units of the level inside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Level {
    /// How many units of the next smaller level, or devices in the innermost one, are one unit of
    /// this level; nothing, in the outermost level, where there may be any number.
    pub units: Option<u64>,
    /// Each device's own share at this level.
    pub link: Link,
    /// Thousandths of the bandwidth that exchanges reach.
    pub efficiency: u16,
    /// Whether its switches add up what passes them, so that a sum crosses each link once.
    pub reduces_in_switch: bool,
    /// What an exchange pays whose outermost level this is, in place of the links' latency: in the
    /// innermost level an all-reduce once and others half of it, in others all for each doubling of
    /// the members.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub startup: Option<Time>,
    /// What an exchange inside units of the innermost level pays beside that for each step of its ring.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub step: Time,
}

/// Whether nothing is paid, which files leave out.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
fn is_zero(time: &Time) -> bool {
    *time == Time::ZERO
}

impl Level {
    /// A level of so many units joined by links that are used in full.
    pub const fn new(units: Option<u64>, link: Link) -> Self {
        let (startup, step) = (None, Time::ZERO);
        Self { units, link, efficiency: 1000, reduces_in_switch: false, startup, step }
    }

    /// What an exchange reaches.
    fn rate(&self) -> Bandwidth {
        self.link.bandwidth.thousandths(self.efficiency)
    }
}

/// Levels from the innermost to the outermost. Devices are numbered through: the first so many are
/// the first unit of the innermost level, and so on.
///
/// Invariant: there is at least one level and there are at most [`Levels::MOST`]; only the
/// outermost may hold any number of units, and none holds zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "Vec<Level>", into = "Vec<Level>")]
pub struct Levels([Option<Level>; Levels::MOST]);

/// Why a list of levels is not a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoLevels {
    /// None or too many.
    #[error("a network has 1 to {} levels, found {found}", Levels::MOST)]
    Count {
        /// How many there are.
        found: usize,
    },
    /// A level inside another one without a size, or a size out of range.
    #[error("level {level} needs its number of units, from 1 to {}", Levels::LARGEST)]
    Units {
        /// Which, counted from 1.
        level: usize,
    },
    /// An efficiency that is none.
    #[error("level {level} needs an efficiency of 1 to 1000 thousandths")]
    Efficiency {
        /// Which, counted from 1.
        level: usize,
    },
}

impl Levels {
    /// The most levels of a network.
    pub const MOST: usize = 4;

    /// The most units of a level.
    pub const LARGEST: u64 = 1 << 20;

    /// Every pair of devices alike.
    pub const fn flat(link: Link) -> Self {
        Self([Some(Level::new(None, link)), None, None, None])
    }

    /// Nodes of `per_node` devices; between them each device has a link of its own. `None` where
    /// the number is out of range.
    pub fn nodes(per_node: u64, inside: Link, between: Link) -> Option<Self> {
        Self::new(&[Level::new(Some(per_node), inside), Level::new(None, between)]).ok()
    }

    /// A network of these levels, the innermost first.
    pub fn new(levels: &[Level]) -> Result<Self, NoLevels> {
        if levels.is_empty() || levels.len() > Self::MOST {
            return Err(NoLevels::Count { found: levels.len() });
        }
        let mut own = [None; Self::MOST];
        for (place, level) in levels.iter().enumerate() {
            let outermost = place + 1 == levels.len();
            if !level.units.map_or(outermost, |units| (1..=Self::LARGEST).contains(&units)) {
                return Err(NoLevels::Units { level: place + 1 });
            }
            if !(1..=1000).contains(&level.efficiency) {
                return Err(NoLevels::Efficiency { level: place + 1 });
            }
            own[place] = Some(*level);
        }
        Ok(Self(own))
    }

    /// The levels, the innermost first.
    pub fn levels(&self) -> impl Iterator<Item = &Level> {
        self.0.iter().flatten()
    }

    /// The same levels with another bandwidth each.
    #[must_use]
    pub fn with_bandwidths(mut self, turn: impl Fn(Bandwidth) -> Bandwidth) -> Self {
        for level in self.0.iter_mut().flatten() {
            level.link.bandwidth = turn(level.link.bandwidth);
        }
        self
    }

    /// The same levels as exchanges reach them.
    #[must_use]
    pub(in crate::hardware) fn with_efficiency(mut self, reached: &Efficiency) -> Self {
        let n_levels = self.levels().count();
        for (place, level) in self.0.iter_mut().flatten().enumerate() {
            // One level alone joins nodes of one device.
            let inside = place == 0 && n_levels > 1;
            let part = if inside { reached.link } else { reached.between };
            let efficiency = u32::from(level.efficiency) * u32::from(part) / 1000;
            level.efficiency = u16::try_from(efficiency).unwrap_or(1000).max(1);
            level.startup = if inside { reached.collective } else { reached.between_step };
            if inside && reached.step > Time::ZERO {
                level.startup = level.startup.or(Some(Time::ZERO));
                level.step = reached.step;
            }
        }
        self
    }

    /// What an exchange of so many passes among `members` pays whose outermost level is the one at
    /// this place; `None` for the links' latency.
    fn startup(&self, place: usize, passes: u64, members: u64) -> Option<Time> {
        let level = self.levels().nth(place)?;
        let startup = level.startup?;
        let doublings = u64::from(members.max(1).next_power_of_two().trailing_zeros());
        let inside = place == 0 && self.levels().count() > 1;
        Some(if inside {
            Time((startup * passes).0 / 2) + level.step * (passes * members.saturating_sub(1))
        } else {
            startup * doublings
        })
    }

    /// Whether some level adds up in its switches.
    fn reduces_in_switch(&self) -> bool {
        self.levels().any(|level| level.reduces_in_switch)
    }

    /// Whether a group's time depends on its size alone, and never falls with it.
    pub(super) fn is_flat(&self) -> bool {
        self.levels().count() == 1 && !self.reduces_in_switch()
    }

    /// The bandwidth of the innermost level.
    pub(super) fn nearest_bandwidth(&self) -> Bandwidth {
        self.levels().next().expect("there is at least one level").link.bandwidth
    }

    /// The devices of an innermost unit, where there are several levels.
    pub(super) fn devices_per_node(&self) -> Option<u64> {
        self.levels().next()?.units.filter(|_| self.levels().count() > 1)
    }

    /// The most devices that it joins, where that is said.
    pub fn most_devices(&self) -> Option<u64> {
        self.levels().try_fold(1_u64, |all, level| Some(all.saturating_mul(level.units?)))
    }

    /// The numbers of devices of a unit of each level that is smaller than `devices`.
    pub(super) fn units(&self, devices: u64) -> Vec<u64> {
        let sizes = self.levels().scan(1_u64, |all, level| {
            *all = all.saturating_mul(level.units?);
            Some(*all)
        });
        let inner = self.levels().count() - 1;
        sizes.take(inner).take_while(|&unit| unit < devices).collect()
    }

    /// The slowest bandwidth of all levels, and all latencies one after the other.
    pub(super) fn slowest_link(&self) -> Link {
        let slowest = self.levels().map(Level::rate).min();
        Link {
            bandwidth: slowest.expect("there is at least one level"),
            latency: self
                .levels()
                .map(|level| {
                    level.startup.unwrap_or(Time::ZERO).max(level.link.latency) + level.step
                })
                .sum(),
        }
    }

    /// An all-reduce, all-gather or reduce-scatter: the faster of a ring through all members, in
    /// which every member of a unit uses its own link to the next unit, and of one level after the
    /// other, each with the part that the levels inside it have left.
    fn ring_or_levels(&self, passes: u64, size: Bytes, n: u64, found: &Spreads) -> Time {
        let rate =
            self.spanned(found).map(|(level, spread)| level.rate().times(spread.inside)).min();
        let Some(rate) = rate else { return Time::ZERO };
        let ring = rate.transfer(moved(size, passes * (n - 1), n));
        let latency = self.latency(found, passes, n);
        let mut inside = 1;
        let even = found.exact
            && found.levels.iter().all(|spread| {
                inside *= spread.parts;
                inside == spread.members
            });
        if !even {
            return ring + latency;
        }
        let by_levels: Time = self
            .spanned(found)
            .map(|(level, spread)| {
                let parts = spread.parts;
                let steps = passes * (parts - 1);
                let steps = if level.reduces_in_switch && passes == 2 {
                    steps.min(parts + 1)
                } else {
                    steps
                };
                level.rate().transfer(moved(size, steps, parts * spread.inside))
            })
            .sum();
        ring.min(by_levels) + latency
    }

    fn all_to_all(&self, size: Bytes, n: u64, found: &Spreads) -> Time {
        let slowest = self
            .spanned(found)
            .map(|(level, spread)| level.rate().transfer(moved(size, n - spread.inside, n)));
        slowest.max().unwrap_or(Time::ZERO) + self.latency(found, 1, n)
    }

    /// The levels that groups span, with how they do.
    fn spanned<'a>(&'a self, found: &'a Spreads) -> impl Iterator<Item = (&'a Level, &'a Spread)> {
        self.levels().zip(&found.levels).filter(|(_, spread)| spread.parts > 1)
    }

    /// Of so many passes: in each level from one unit to the next, or what the outermost says.
    fn latency(&self, found: &Spreads, passes: u64, members: u64) -> Time {
        let spanned = found.levels.iter().rposition(|spread| spread.parts > 1);
        let startup = spanned.and_then(|place| self.startup(place, passes, members));
        startup.unwrap_or_else(|| {
            let steps = self.spanned(found);
            steps.map(|(level, spread)| level.link.latency * (spread.parts - 1)).sum::<Time>()
                * passes
        })
    }
}

impl Topology for Levels {
    fn time(&self, exchange: Exchange, size: Bytes, group: Group, devices: u64) -> Time {
        let n = group.size();
        if n <= 1 {
            return Time::ZERO;
        }
        let found = spreads(group, &self.units(devices));
        match exchange {
            // The way from the last member back to the first leaves no unit that the others stay in.
            Exchange::Send | Exchange::RingSend | Exchange::Collective(CollectiveKind::Send) => {
                let outermost = self.spanned(&found).last();
                outermost.map_or(Time::ZERO, |(level, _)| {
                    level.rate().transfer(size) + level.link.latency
                })
            }
            Exchange::Collective(CollectiveKind::AllReduce) => {
                self.ring_or_levels(2, size, n, &found)
            }
            Exchange::Collective(CollectiveKind::AllGather | CollectiveKind::ReduceScatter) => {
                self.ring_or_levels(1, size, n, &found)
            }
            Exchange::Collective(CollectiveKind::AllToAll) => self.all_to_all(size, n, &found),
        }
    }

    /// Beyond the largest unit inside another, a block's greatest common divisor with it says how
    /// its groups lie in units, and of two that lie alike the smaller is never the slower.
    fn worth_trying(&self, stride: u64, sizes: RangeInclusive<u64>, devices: u64) -> Vec<u64> {
        // The more a switch adds up, the less each of its links carries.
        if self.reduces_in_switch() {
            return sizes.collect();
        }
        let Some(&unit) = self.units(devices).last() else {
            return sizes.take(1).collect();
        };
        let stride = stride.max(1);
        let (mut found, mut known, mut left) = (Vec::new(), Vec::new(), unit);
        for size in sizes {
            let block = stride.saturating_mul(size);
            if block <= unit {
                found.push(size);
                continue;
            }
            let kind = greatest_common_divisor(block, unit);
            if !known.contains(&kind) {
                known.push(kind);
                found.push(size);
            }
            left -= 1;
            if left == 0 {
                break;
            }
        }
        found
    }

    fn least(
        &self,
        exchange: Exchange,
        size: Bytes,
        stride: u64,
        members: RangeInclusive<u64>,
        devices: u64,
    ) -> Time {
        let (low, high) = (*members.start(), *members.end());
        if low <= 1 {
            return Time::ZERO;
        }
        let units = self.units(devices);
        if units.is_empty() && !self.reduces_in_switch() {
            return self.time(exchange, size, Group::along(low, stride), devices);
        }
        // The most members that any unit of the level inside, and of this level, can hold.
        let room = |unit: u64| unit.div_ceil(stride.max(1));
        let mut fastest: Option<Bandwidth> = None;
        let mut least: Option<Time> = None;
        let mut inside = 1;
        for (place, level) in self.levels().take(units.len() + 1).enumerate() {
            fastest = fastest.max(Some(level.rate()));
            let range = Range { low, high, inside, fastest: fastest.unwrap_or(level.rate()) };
            // Groups with more members than a unit of this level holds have to leave it.
            if units.get(place).is_none_or(|&unit| low <= room(unit)) {
                let bound = self.least_within(exchange, size, (place, level), &range);
                least = Some(least.map_or(bound, |known| known.min(bound)));
            }
            inside = units.get(place).map_or(inside, |&unit| room(unit));
        }
        least.unwrap_or(Time::ZERO)
    }
}

/// Groups of which only this is known.
struct Range {
    /// The fewest members.
    low: u64,
    /// The most members.
    high: u64,
    /// The most members in a unit of the level inside the outermost that they span.
    inside: u64,
    /// The fastest rate up to the outermost level that they span.
    fastest: Bandwidth,
}

impl Levels {
    /// What no group of a range can beat whose outermost level is this one.
    ///
    /// The first level that it spans carries all but an n-th of the tensor on each link, whichever
    /// it is. The outermost carries, on the links of at most `inside` members of a unit and of at
    /// most half of all, what the level inside has not already shared out: `1/inside − 1/n`, which
    /// is least where n is twice `inside`. A reduction in switches saves at most every other pass.
    fn least_within(
        &self,
        exchange: Exchange,
        size: Bytes,
        (place, level): (usize, &Level),
        range: &Range,
    ) -> Time {
        let &Range { low, high, inside, fastest } = range;
        let passes = match exchange {
            Exchange::Send | Exchange::RingSend | Exchange::Collective(CollectiveKind::Send) => {
                return level.rate().transfer(size) + level.link.latency;
            }
            Exchange::Collective(CollectiveKind::AllReduce) => 2,
            Exchange::Collective(_) => 1,
        };
        let twice = inside.saturating_mul(2);
        let (part, whole) = match exchange {
            Exchange::Collective(CollectiveKind::AllToAll) if low < twice => (1, 2),
            Exchange::Collective(CollectiveKind::AllToAll) => (low - inside, low),
            _ if high <= twice => (1, high),
            _ if low >= twice => (low - inside, low.saturating_mul(inside)),
            _ => (1, twice),
        };
        let paid = if self.reduces_in_switch() { 1 } else { passes };
        let first = fastest.transfer(rounded_down(size, paid * (low - 1), low));
        let last = level.rate().transfer(rounded_down(size, paid * part, whole));
        let steps = low.div_ceil(inside).max(2) - 1;
        let startup = self.startup(place, passes, low);
        first.max(last) + startup.unwrap_or(level.link.latency * (passes * steps))
    }
}

/// So many parts of `whole` of a tensor, rounded down.
fn rounded_down(size: Bytes, parts: u64, whole: u64) -> Bytes {
    let bytes = u128::from(size.0) * u128::from(parts) / u128::from(whole.max(1));
    Bytes(u64::try_from(bytes).expect("a tensor moved twice stays within 64 bits"))
}

impl TryFrom<Vec<Level>> for Levels {
    type Error = NoLevels;

    fn try_from(levels: Vec<Level>) -> Result<Self, NoLevels> {
        Self::new(&levels)
    }
}

impl From<Levels> for Vec<Level> {
    fn from(levels: Levels) -> Self {
        levels.levels().copied().collect()
    }
}
