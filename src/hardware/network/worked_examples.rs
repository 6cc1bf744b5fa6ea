//! Examples worked out by hand, and laws that every network keeps.

#![cfg(test)]

use super::*;
use crate::units::Time;

const GB: u64 = 1_000_000_000;

fn link(gb_per_s: u64, latency: u64) -> Link {
    let bandwidth = Bandwidth::bytes_per_second(gb_per_s * GB).unwrap();
    Link { bandwidth, latency: Time(latency) }
}

/// 450, 50 and 25 GB/s from the innermost level on.
fn levels(units: &[u64]) -> Levels {
    let rates = [450, 50, 25];
    let own: Vec<Level> =
        units.iter().zip(rates).map(|(&n, rate)| Level::new(Some(n), link(rate, 0))).collect();
    Levels::new(&own).unwrap()
}

/// A group as (size, stride) of one or two axes.
fn group(runs: &[(u64, u64)]) -> Group {
    runs.iter().map(|&(size, stride)| Group::along(size, stride)).fold(Group::ALONE, Group::both)
}

const REDUCE: Exchange = Exchange::Collective(CollectiveKind::AllReduce);
const GATHER: Exchange = Exchange::Collective(CollectiveKind::AllGather);
const SCATTER: Exchange = Exchange::Collective(CollectiveKind::ReduceScatter);
const TO_ALL: Exchange = Exchange::Collective(CollectiveKind::AllToAll);
const EVERY: [Exchange; 6] = [REDUCE, GATHER, SCATTER, TO_ALL, Exchange::Send, Exchange::RingSend];

/// Ten-thousandths of a millisecond, rounded.
fn tenths_of_microseconds(time: Time) -> u64 {
    (time.0 + 50_000) / 100_000
}

#[test]
fn worked_examples_take_what_was_worked_out() {
    // Units; the runs of the group; members and parts of each level; exchange; microseconds / 10.
    type Case<'a> = (&'a [u64], &'a [(u64, u64)], &'a [(u64, u64)], Exchange, u64);
    let cases: &[Case] = &[
        (&[8, 2], &[(8, 1)], &[(8, 8), (8, 1)], REDUCE, 38_889),
        (&[8, 2], &[(2, 8)], &[(1, 1), (2, 2)], REDUCE, 200_000),
        (&[8, 2], &[(16, 1)], &[(8, 8), (16, 2)], REDUCE, 46_875),
        (&[8, 2], &[(16, 1)], &[(8, 8), (16, 2)], TO_ALL, 100_000),
        // Context 2 x data 4, without and with a pipeline of 2 between them, after tensor 2.
        (&[8, 4], &[(8, 2)], &[(4, 4), (8, 2)], REDUCE, 83_333),
        (&[8, 4], &[(2, 2), (4, 8)], &[(2, 2), (8, 4)], REDUCE, 172_222),
        (&[8, 3], &[(6, 1)], &[(2, 6), (6, 2)], REDUCE, 166_667),
        (&[4, 3], &[(3, 2)], &[(1, 2), (3, 2)], REDUCE, 266_667),
        (&[8, 4, 4], &[(16, 8)], &[(1, 1), (4, 4), (16, 4)], REDUCE, 375_000),
        (&[8, 4, 4], &[(16, 8)], &[(1, 1), (4, 4), (16, 4)], TO_ALL, 300_000),
        (&[8, 4], &[(8, 2)], &[(4, 4), (8, 2)], TO_ALL, 100_000),
        (&[8, 4], &[(8, 1)], &[(8, 8), (8, 1)], TO_ALL, 19_444),
        (&[8, 4], &[(4, 4)], &[(2, 2), (4, 2)], Exchange::Send, 200_000),
        (&[8, 4], &[(4, 4)], &[(2, 2), (4, 2)], Exchange::RingSend, 200_000),
    ];
    for &(units, runs, expected, exchange, time) in cases {
        let (network, devices) = (levels(units), units.iter().product());
        let found = spread::spreads(group(runs), &network.units(devices));
        let spread: Vec<_> = found.levels.iter().map(|s| (s.members, s.parts)).collect();
        assert_eq!(spread, expected, "{units:?} {runs:?}");
        let took = network.time(exchange, Bytes(GB), group(runs), devices);
        assert_eq!(tenths_of_microseconds(took), time, "{units:?} {runs:?} {exchange:?}");
    }
}

/// Bus bandwidth: what an all-reduce moves per second and device, in GB/s.
fn bus_bandwidth(network: &dyn Topology, n: u64, stride: u64, devices: u64) -> f64 {
    let time = network.time(REDUCE, Bytes(GB), Group::along(n, stride), devices);
    2.0 * (n - 1) as f64 / n as f64 / time.seconds()
}

#[test]
fn bus_bandwidths_are_near_what_clusters_reach() {
    let nodes = |inside, between| Levels::nodes(8, link(inside, 0), link(between, 0)).unwrap();
    let near =
        |found: f64, expected: f64| assert!((found / expected - 1.0).abs() < 1e-6, "{found}");
    near(bus_bandwidth(&nodes(300, 25), 8, 1, 64), 300.0);
    near(bus_bandwidth(&nodes(450, 50), 8, 1, 64), 450.0);
    near(bus_bandwidth(&nodes(450, 50), 16, 1, 16), 400.0);
    near(bus_bandwidth(&nodes(450, 50), 8, 8, 64), 50.0);
    // An all-to-all of 64: 56 of 64 parts leave the node, each device through its own card.
    let time = nodes(450, 50).time(TO_ALL, Bytes(GB), Group::along(64, 1), 64);
    near(1.0 / time.seconds(), 50.0 * 64.0 / 56.0);
}

#[test]
fn switches_that_reduce_carry_a_sum_once() {
    let plain = Level::new(None, link(450, 0));
    let switched = Levels::new(&[Level { reduces_in_switch: true, ..plain }]).unwrap();
    let time = |exchange| switched.time(exchange, Bytes(8 * GB), Group::along(8, 1), 8);
    assert_eq!(time(REDUCE), link(450, 0).bandwidth.transfer(Bytes(9 * GB)));
    assert_eq!(time(GATHER), link(450, 0).bandwidth.transfer(Bytes(7 * GB)));
    // Of two, a ring moves less.
    let two = switched.time(REDUCE, Bytes(8 * GB), Group::along(2, 1), 8);
    assert_eq!(two, link(450, 0).bandwidth.transfer(Bytes(8 * GB)));
}

#[test]
fn an_efficiency_slows_its_own_level_only() {
    let [inside, between] = [(Some(8), 450), (None, 50)].map(|(n, r)| Level::new(n, link(r, 0)));
    let slowed = Levels::new(&[inside, Level { efficiency: 800, ..between }]).unwrap();
    let whole = Levels::new(&[inside, between]).unwrap();
    let time = |levels: &Levels, n| levels.time(REDUCE, Bytes(GB), Group::along(n, 1), 64);
    assert_eq!(time(&slowed, 8), time(&whole, 8));
    assert!(time(&slowed, 64) > time(&whole, 64));
}

#[test]
fn a_flat_ring_moves_two_tensors_less_one_share_of_each() {
    let bandwidth = Bandwidth::bytes_per_second(Time::PER_SECOND).unwrap();
    let flat = Levels::flat(Link { bandwidth, latency: Time(7) });
    let time = |exchange, n| flat.time(exchange, Bytes(800), Group::along(n, 1), n);
    assert_eq!(time(REDUCE, 4), Time(1200 + 6 * 7));
    assert_eq!(time(GATHER, 4), Time(600 + 3 * 7));
    assert_eq!(time(SCATTER, 4), Time(600 + 3 * 7));
    assert_eq!(time(TO_ALL, 4), Time(600 + 3 * 7));
    assert_eq!(time(Exchange::Send, 4), Time(807));
    assert_eq!(time(Exchange::Collective(CollectiveKind::Send), 4), Time(807));
    assert_eq!(time(REDUCE, 1), Time::ZERO);
}

struct Noise(u64);

impl Noise {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// Any levels, of which an outer one may also be the faster; some reduce in their switches.
fn any_levels(noise: &mut Noise) -> Levels {
    let count = 1 + noise.below(3);
    let own: Vec<Level> = (1..=count)
        .map(|level| Level {
            units: (level < count).then(|| 1 + noise.below(8)),
            link: link(1 + noise.below(20), noise.below(4) * 1_000_000),
            efficiency: 1000 - 250 * u16::try_from(noise.below(3)).unwrap(),
            reduces_in_switch: noise.below(4) == 0,
            startup: (noise.below(2) == 0).then(|| Time(noise.below(4) * 3_000_000)),
            step: Time(noise.below(3) * 1_000_000),
        })
        .collect();
    Levels::new(&own).unwrap()
}

fn any_network(noise: &mut Noise) -> Network {
    if noise.below(4) > 0 {
        return Network::Levels(any_levels(noise));
    }
    let dims: Vec<u64> = (0..=noise.below(3)).map(|_| 2 + noise.below(7)).collect();
    let link = link(1 + noise.below(20), noise.below(4) * 1_000_000);
    Network::Torus(Torus::new(&dims, link).unwrap())
}

/// Any group whose members are at least `stride` apart.
fn any_group(noise: &mut Noise, stride: u64) -> Group {
    let inner = Group::along(2 + noise.below(20), stride + noise.below(9));
    if noise.below(2) == 0 {
        return inner;
    }
    Group::both(inner, Group::along(1 + noise.below(6), inner.block() * (1 + noise.below(3))))
}

#[test]
fn nothing_beats_the_least_time_of_its_size() {
    let mut noise = Noise(11);
    for _ in 0..20_000 {
        let network = any_network(&mut noise);
        let stride = 1 + noise.below(9);
        let group = any_group(&mut noise, stride);
        let (below, above) = (noise.below(5), noise.below(9));
        let sizes = group.size().saturating_sub(below).max(1)..=group.size() + above;
        let devices = group.block() * (1 + noise.below(4));
        let size = Bytes(1 + noise.below(1 << 30));
        for exchange in EVERY {
            let topology = network.topology();
            let time = topology.time(exchange, size, group, devices);
            let least = topology.least(exchange, size, stride, sizes.clone(), devices);
            assert!(least <= time, "{network:?} {group:?} {sizes:?} {devices} {exchange:?}");
        }
    }
}

#[test]
fn more_bandwidth_or_fewer_bytes_are_never_slower() {
    let mut noise = Noise(12);
    for _ in 0..5000 {
        let network = any_network(&mut noise);
        let faster = network.with_bandwidths(|rate| {
            Bandwidth::bytes_per_second(rate.as_bytes_per_second() + GB).unwrap()
        });
        let group = any_group(&mut noise, 1);
        let (devices, size) = (group.block() * 3, Bytes(1 + noise.below(1 << 30)));
        let fewer = Bytes(noise.below(size.0));
        for exchange in EVERY {
            let time = network.topology().time(exchange, size, group, devices);
            assert!(faster.topology().time(exchange, size, group, devices) <= time);
            assert!(network.topology().time(exchange, fewer, group, devices) <= time);
        }
    }
}

#[test]
fn more_devices_in_all_never_change_what_a_group_takes_but_within_one_unit() {
    let mut noise = Noise(13);
    for _ in 0..5000 {
        let network = any_network(&mut noise);
        let group = any_group(&mut noise, 1);
        let devices = group.block() * (1 + noise.below(4));
        let time = |devices| network.topology().time(REDUCE, Bytes(GB), group, devices);
        let confined = network.scopes(devices + 1);
        assert!(time(devices + 1) == time(devices) || confined.contains(&devices));
    }
}

#[test]
fn of_sizes_that_are_not_worth_trying_a_smaller_one_is_never_slower() {
    let mut noise = Noise(14);
    for _ in 0..400 {
        let network = any_network(&mut noise);
        let (stride, devices) = (1 + noise.below(9), 1 + noise.below(600));
        let most = if noise.below(2) == 0 { 40 } else { 2000 };
        let first = 1 + noise.below(most);
        let sizes = first..=first + noise.below(70);
        let tried = network.topology().worth_trying(stride, sizes.clone(), devices);
        let times = |size: u64| {
            let time =
                |exchange, group| network.topology().time(exchange, Bytes(GB), group, devices);
            let mut times = vec![time(REDUCE, Group::along(size, stride))];
            for n in 2..6 {
                times.push(time(Exchange::Send, Group::along(n, stride * size)));
                times.push(time(REDUCE, Group::along(2, stride * size * (n - 1))));
            }
            times
        };
        for size in sizes.filter(|size| !tried.contains(size)) {
            let own = times(size);
            let beaten = tried
                .iter()
                .take_while(|&&less| less < size)
                .any(|&less| times(less).iter().zip(&own).all(|(a, b)| a <= b));
            assert!(beaten, "{network:?} {size} of {tried:?}, {stride} apart, {devices} devices");
        }
    }
}
