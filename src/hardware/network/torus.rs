//! A torus: every device has a link to each of its neighbours along every dimension.

use std::ops::RangeInclusive;

use serde::Deserialize;
use serde::Serialize;

use super::Exchange;
use super::Group;
use super::Link;
use super::Topology;
use super::group::Run;
use super::moved;
use crate::model::op::CollectiveKind;
use crate::units::Bandwidth;
use crate::units::Bytes;
use crate::units::Time;

/// A box of devices in up to three dimensions, each of which closes to a ring.
///
/// Devices are numbered along the first dimension, then along the second, then along the third.
/// More devices than the box holds continue its last dimension.
///
/// Invariant: there is at least one dimension, and none is shorter than 2 devices or longer than
/// [`Torus::LONGEST`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "Description", into = "Description")]
pub struct Torus {
    dims: [Option<u64>; Torus::MOST],
    link: Link,
}

/// A torus as it is saved.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    dims: Vec<u64>,
    link: Link,
}

/// Why a list of dimensions is not a torus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a torus has 1 to {} dimensions of 2 to {} devices", Torus::MOST, Torus::LONGEST)]
pub struct NoTorus;

/// What a group takes of one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part {
    /// How many of its devices along this dimension.
    members: u64,
    /// From one to the next; so many groups share each link.
    apart: u64,
    /// Whether they close to a ring.
    wraps: bool,
}

impl Torus {
    /// The most dimensions.
    pub const MOST: usize = 3;

    /// The most devices along a dimension.
    pub const LONGEST: u64 = 1 << 20;

    /// A torus with these dimensions, the first numbered first, and such a link from each device to
    /// each of its neighbours.
    pub fn new(dims: &[u64], link: Link) -> Result<Self, NoTorus> {
        let legal = dims.iter().all(|length| (2..=Self::LONGEST).contains(length));
        if dims.is_empty() || dims.len() > Self::MOST || !legal {
            return Err(NoTorus);
        }
        let mut own = [None; Self::MOST];
        for (place, &length) in dims.iter().enumerate() {
            own[place] = Some(length);
        }
        Ok(Self { dims: own, link })
    }

    /// The dimensions, the first numbered first.
    pub fn dims(&self) -> impl Iterator<Item = u64> {
        self.dims.into_iter().flatten()
    }

    /// The same torus with another bandwidth.
    #[must_use]
    pub(super) fn with_bandwidth(mut self, turn: impl Fn(Bandwidth) -> Bandwidth) -> Self {
        self.link.bandwidth = turn(self.link.bandwidth);
        self
    }

    /// From a device to a neighbour.
    pub(super) fn link(&self) -> Link {
        self.link
    }

    /// A message that crosses the whole torus, on links that as many share as the longest
    /// dimension has devices: what the messages of a group cost that takes no whole parts of
    /// dimensions, and more than any other costs.
    pub(super) fn slowest_link(&self) -> Link {
        let longest = self.dims().max().unwrap_or(1);
        let rate = self.link.bandwidth.as_bytes_per_second() / longest;
        Link {
            bandwidth: Bandwidth::bytes_per_second(rate.max(1)).expect("one is not zero"),
            latency: self.link.latency * self.dims().sum::<u64>(),
        }
    }

    /// Steps along a dimension that are no better than crossing the torus.
    fn across(&self) -> u64 {
        self.dims().sum::<u64>().max(2 * self.dims().max().unwrap_or(1))
    }

    /// What a group takes of each dimension; `None` where that is no whole factor of each, or where
    /// it takes two separate parts of one, or members too far apart.
    fn parts(&self, group: Group) -> Option<Vec<Part>> {
        let (inner, outer) = group.runs();
        let mut parts: [Option<Part>; Self::MOST] = [None; Self::MOST];
        for run in [Some(inner), outer].into_iter().flatten() {
            for (place, part) in self.parts_of_run(run)? {
                if parts[place].replace(part).is_some() {
                    return None;
                }
            }
        }
        Some(parts.into_iter().flatten().collect())
    }

    /// By dimension, in order.
    fn parts_of_run(&self, run: Run) -> Option<Vec<(usize, Part)>> {
        let (block, count) = (run.block(), self.dims().count());
        let mut parts = Vec::with_capacity(count);
        // The device numbers of one step along a dimension.
        let mut step = 1_u64;
        for (place, length) in self.dims().enumerate() {
            let outermost = place + 1 == count;
            let end = if outermost { u64::MAX } else { step.saturating_mul(length) };
            let (from, to) = (run.stride.max(step), block.min(end));
            if from < to {
                let whole_factors = from.is_multiple_of(step)
                    && from.is_multiple_of(run.stride)
                    && to.is_multiple_of(from)
                    && (outermost || length.is_multiple_of(to / step));
                if !whole_factors {
                    return None;
                }
                let (members, apart) = (to / from, from / step);
                if apart > self.across() {
                    return None;
                }
                parts.push((place, Part { members, apart, wraps: members * apart == length }));
            }
            step = end;
        }
        Some(parts)
    }
}

impl Part {
    /// Links that the members use at once, for every link of which a message needs one.
    fn steps(&self) -> u64 {
        let hops = if self.wraps { self.members.div_ceil(2) } else { self.members - 1 };
        hops * self.apart
    }
}

impl Torus {
    /// An all-reduce, all-gather or reduce-scatter over all dimensions at once, each with its part
    /// of the tensor: in both directions around a ring, in one along a line.
    fn collective(&self, passes: u64, size: Bytes, n: u64, parts: &[Part]) -> Time {
        // As fast in each as in the slowest: thus many links for each `apart` groups.
        let slowest = parts.iter().map(|part| (if part.wraps { 2 } else { 1 }, part.apart));
        let slowest = slowest.min_by(|a, b| (a.0 * b.1).cmp(&(b.0 * a.1)));
        let (links, shared) = slowest.unwrap_or((1, 1));
        let rate = self.link.bandwidth.times(links * parts.len() as u64);
        let steps: u64 = parts.iter().map(Part::steps).sum();
        let bytes = moved(size, passes * (n - 1), n);
        rate.transfer(bytes) * shared + self.link.latency * (passes * steps)
    }

    /// An all-to-all is as slow as the middle of the dimension in which it is longest.
    fn all_to_all(&self, size: Bytes, parts: &[Part]) -> Time {
        let middle = |part: &Part| {
            let crossings = if part.wraps { 8 } else { 4 };
            self.link.bandwidth.transfer(moved(size, part.members * part.apart, crossings))
        };
        let steps: u64 = parts.iter().map(Part::steps).sum();
        parts.iter().map(middle).max().unwrap_or(Time::ZERO) + self.link.latency * steps
    }

    /// From each member to the next. Where a dimension ends the message goes back to its beginning
    /// and a step along the next dimension; so does the one from the last member to the first.
    fn send(&self, size: Bytes, parts: &[Part], to_the_first: bool) -> Time {
        let back =
            |part: &Part| if part.wraps { part.apart } else { (part.members - 1) * part.apart };
        let turns = if to_the_first { parts.len() } else { parts.len().saturating_sub(1) };
        let last = parts.get(turns).map_or(0, |part| part.apart);
        let hops = parts[..turns].iter().map(back).sum::<u64>() + last;
        let shared = parts.iter().map(|part| part.apart).max().unwrap_or(1);
        self.link.bandwidth.transfer(size) * shared + self.link.latency * hops
    }

    /// A group that takes no whole factors of the dimensions: every message crosses the torus.
    fn unaligned(&self, exchange: Exchange, size: Bytes, n: u64) -> Time {
        let link = self.slowest_link();
        let steps = match exchange {
            Exchange::Send | Exchange::RingSend | Exchange::Collective(CollectiveKind::Send) => {
                return link.bandwidth.transfer(size) + link.latency;
            }
            Exchange::Collective(CollectiveKind::AllReduce) => 2 * (n - 1),
            Exchange::Collective(_) => n - 1,
        };
        link.bandwidth.transfer(moved(size, steps, n)) + link.latency * steps
    }
}

impl Topology for Torus {
    fn time(&self, exchange: Exchange, size: Bytes, group: Group, _devices: u64) -> Time {
        let n = group.size();
        if n <= 1 {
            return Time::ZERO;
        }
        let anywhere = self.unaligned(exchange, size, n);
        let Some(parts) = self.parts(group) else { return anywhere };
        let along = match exchange {
            Exchange::Send => self.send(size, &parts, false),
            Exchange::RingSend | Exchange::Collective(CollectiveKind::Send) => {
                self.send(size, &parts, true)
            }
            Exchange::Collective(CollectiveKind::AllReduce) => self.collective(2, size, n, &parts),
            Exchange::Collective(CollectiveKind::AllGather | CollectiveKind::ReduceScatter) => {
                self.collective(1, size, n, &parts)
            }
            Exchange::Collective(CollectiveKind::AllToAll) => self.all_to_all(size, &parts),
        };
        along.min(anywhere)
    }

    /// Within the box any size may be a better factor of the dimensions than a smaller one. Far
    /// beyond it, blocks differ only in whether they end where a step along the last dimension does:
    /// no message from one to another takes whole steps at less than the cost of crossing the torus.
    fn worth_trying(&self, stride: u64, sizes: RangeInclusive<u64>, _devices: u64) -> Vec<u64> {
        let last: u64 = self.dims().take(self.dims().count() - 1).product();
        let far = last.saturating_mul(self.across());
        let stride = stride.max(1);
        let near = |size: &u64| stride.saturating_mul(*size) <= far;
        let mut found: Vec<u64> = sizes.clone().take_while(near).collect();
        let beyond = sizes.skip(found.len()).take(usize::try_from(last).unwrap_or(usize::MAX));
        let mut seen = [false; 2];
        for size in beyond {
            let aligned = self.parts_of_run(Run { size, stride }).is_some();
            if !std::mem::replace(&mut seen[usize::from(aligned)], true) {
                found.push(size);
            }
        }
        found
    }

    /// All links of a device at once, to neighbours.
    fn least(
        &self,
        exchange: Exchange,
        size: Bytes,
        _stride: u64,
        members: RangeInclusive<u64>,
        _devices: u64,
    ) -> Time {
        let n = *members.start();
        if n <= 1 {
            return Time::ZERO;
        }
        let Link { bandwidth, latency } = self.link;
        let passes = match exchange {
            Exchange::Send | Exchange::RingSend | Exchange::Collective(CollectiveKind::Send) => {
                return bandwidth.transfer(size) + latency;
            }
            Exchange::Collective(CollectiveKind::AllToAll) => {
                let quarter = Bytes(size.0 / 4);
                return bandwidth.transfer(quarter) + latency;
            }
            Exchange::Collective(CollectiveKind::AllReduce) => 2,
            Exchange::Collective(_) => 1,
        };
        let all_links = bandwidth.times(2 * self.dims().count() as u64);
        all_links.transfer(moved(size, passes * (n - 1), n)) + latency * passes
    }
}

impl TryFrom<Description> for Torus {
    type Error = NoTorus;

    fn try_from(found: Description) -> Result<Self, NoTorus> {
        Self::new(&found.dims, found.link)
    }
}

impl From<Torus> for Description {
    fn from(torus: Torus) -> Self {
        Self { dims: torus.dims().collect(), link: torus.link }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REDUCE: Exchange = Exchange::Collective(CollectiveKind::AllReduce);
    const TO_ALL: Exchange = Exchange::Collective(CollectiveKind::AllToAll);

    fn torus(dims: &[u64], gb_per_s: u64) -> Torus {
        let bandwidth = Bandwidth::bytes_per_second(gb_per_s * 1_000_000_000).unwrap();
        Torus::new(dims, Link { bandwidth, latency: Time(0) }).unwrap()
    }

    #[test]
    fn a_pod_adds_up_a_petabyte_and_bisects_at_twenty_three_terabytes_a_second() {
        let pod = torus(&[16, 16, 16], 45);
        let (n, size) = (4096, 1_u64 << 30);
        let time = pod.time(REDUCE, Bytes(size), Group::along(n, 1), n);
        // All devices together move twice the tensor, less one share, in every direction.
        let moved = 2.0 * (n - 1) as f64 * size as f64;
        let petabytes = moved / time.seconds() / 1e15;
        assert!((petabytes - 1.106).abs() < 0.001, "{petabytes}");
        // In an all-to-all, a quarter of all that is sent crosses the middle, one way.
        let time = pod.time(TO_ALL, Bytes(size), Group::along(n, 1), n);
        let terabytes = n as f64 * size as f64 / 4.0 / time.seconds() / 1e12;
        assert!((terabytes - 23.04).abs() < 0.01, "{terabytes}");
    }

    #[test]
    fn a_whole_dimension_is_a_ring_and_a_part_of_it_a_line() {
        let own = torus(&[8, 4, 4], 1);
        let time = |n, stride| own.time(REDUCE, Bytes(8_000_000), Group::along(n, stride), 128).0;
        let tick = 1_000_000_000;
        assert_eq!(time(8, 1), 7 * tick, "14 MB of which half goes each way");
        assert_eq!(time(4, 1), 12 * tick, "a line");
        assert_eq!(time(2, 4), 16 * tick, "every fourth device shares its links with three others");
        assert_eq!(time(4, 8), 6 * tick, "the second dimension");
        assert_eq!(time(16, 8), 15 * tick / 4, "the second and the third at once");
        assert_eq!(time(3, 1), 10_666_667 * 8000, "no factor: as if all crossed the torus");
    }

    #[test]
    fn a_message_to_a_neighbour_takes_one_link() {
        let bandwidth = Bandwidth::bytes_per_second(Time::PER_SECOND).unwrap();
        let own = Torus::new(&[8, 4], Link { bandwidth, latency: Time(10) }).unwrap();
        let time =
            |exchange, n, stride| own.time(exchange, Bytes(100), Group::along(n, stride), 32);
        assert_eq!(time(Exchange::Send, 4, 1), Time(110));
        assert_eq!(time(Exchange::RingSend, 4, 1), Time(130), "three links back");
        assert_eq!(time(Exchange::RingSend, 8, 1), Time(110), "a ring");
        assert_eq!(time(Exchange::Send, 4, 8), Time(110));
        assert_eq!(time(Exchange::Send, 4, 2), Time(220));
        assert_eq!(time(Exchange::Send, 32, 1), Time(120), "around, and one along the second");
    }

    #[test]
    fn dimensions_are_saved_and_read_back() {
        let own = torus(&[4, 2], 3);
        let text = serde_json::to_string(&own).unwrap();
        assert_eq!(serde_json::from_str::<Torus>(&text).unwrap(), own);
        assert!(serde_json::from_str::<Torus>(&text.replace("[4,2]", "[4,1]")).is_err());
        assert_eq!(Torus::new(&[], own.link), Err(NoTorus));
    }
}
