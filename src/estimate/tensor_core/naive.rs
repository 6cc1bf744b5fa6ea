//! The mapper as it is defined: every mapping of the space, one after the other.

use super::cost::Cost;
use super::cost::buffer_bytes;
use super::cost::cost;
use super::glb_tiles::tile_sizes;
use super::mapping::Loop;
use super::mapping::Mapping;
use super::mapping::Sizes;
use super::mapping::Way;
use crate::hardware::CoreSpec;
use crate::model::op::Homes;
use crate::model::op::Matmul;

/// Calls `visit` with every mapping of the space that fits, and its cost.
pub fn every_mapping(
    matmul: &Matmul,
    homes: Homes,
    spec: &CoreSpec,
    mut visit: impl FnMut(&Mapping, &Cost),
) {
    let sizes = [matmul.m, matmul.k, matmul.n];
    let options = |choices: [Vec<u64>; 3]| -> Vec<Sizes> {
        let [ms, ks, ns] = &choices;
        let pairs = ms.iter().flat_map(|&m| ks.iter().map(move |&k| (m, k)));
        pairs.flat_map(|(m, k)| ns.iter().map(move |&n| [m, k, n])).collect()
    };
    let glb_options = options(sizes.map(|size| tile_sizes(size).collect()));
    for (batch_split, split) in splits(matmul, spec.count) {
        for way in Way::ALL {
            let share = |i: usize| sizes[i].div_ceil(split[i]);
            let local_options = options(std::array::from_fn(|i| {
                let side = match Loop::ALL[i] {
                    on if on == way.width => spec.width,
                    on if on == way.depth => spec.depth,
                    _ => 1,
                };
                let doubled = (0..40).map(|exponent| side << exponent);
                doubled.take_while(|&size| size < share(i)).chain([share(i)]).collect()
            }));
            for &local in &local_options {
                if buffer_bytes(spec, local) > u128::from(spec.local.0) {
                    continue;
                }
                for &glb in &glb_options {
                    for local_inner in Loop::ALL {
                        for glb_inner in Loop::ALL {
                            let mapping = Mapping {
                                batch_split,
                                split,
                                way,
                                local,
                                local_inner,
                                glb,
                                glb_inner,
                            };
                            let Some(cost) = cost(matmul, homes, spec, &mapping) else { break };
                            visit(&mapping, &cost);
                        }
                    }
                }
            }
        }
    }
}

/// Every way to divide batch, m, k and n among at most `count` cores.
fn splits(matmul: &Matmul, count: u64) -> Vec<(u64, Sizes)> {
    let along = |size: u64| -> Vec<u64> {
        (1..=count)
            .filter(|cores| !count.is_power_of_two() || cores.is_power_of_two())
            .filter(|&cores| cores <= size.next_power_of_two())
            .collect()
    };
    let mut found = Vec::new();
    for b in along(matmul.b) {
        for m in along(matmul.m) {
            for k in along(matmul.k) {
                for n in along(matmul.n) {
                    if b * m * k * n <= count {
                        found.push((b, [m, k, n]));
                    }
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::search::Scratch;
    use super::super::search::best;
    use super::*;
    use crate::hardware::Energies;
    use crate::hardware::Port;
    use crate::model::op::Home;
    use crate::units::Bandwidth;
    use crate::units::Bytes;
    use crate::units::Frequency;

    /// A small repeatable source of numbers (xorshift).
    struct Dice(u64);

    impl Dice {
        fn below(&mut self, n: u64) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 >> 11) % n
        }

        fn one_of(&mut self, choices: &[u64]) -> u64 {
            choices[usize::try_from(self.below(choices.len() as u64)).unwrap()]
        }
    }

    fn small_case(dice: &mut Dice) -> (Matmul, Homes, CoreSpec) {
        let most = dice.one_of(&[3, 5, 9]);
        let mut size = || 1 + dice.below(most);
        let matmul = Matmul { b: size().min(3), m: size(), k: size(), n: size() };
        let mut home = || if dice.below(4) == 0 { Home::Chip } else { Home::Hbm };
        let homes = Homes { a: home(), b: home(), out: home() };
        let spec = CoreSpec {
            count: dice.one_of(&[1, 1, 2, 3, 4, 4, 6]),
            width: dice.one_of(&[1, 2, 2, 3, 4]),
            depth: dice.one_of(&[1, 2, 2, 3, 4]),
            local: Bytes(dice.one_of(&[24, 40, 64, 96, 200])),
            local_port: Port { read: dice.one_of(&[1, 4, 9]), write: dice.one_of(&[1, 3, 8]) },
            glb: Bytes(dice.one_of(&[64, 128, 256, 600])),
            glb_port: Port { read: dice.one_of(&[1, 4, 9]), write: dice.one_of(&[1, 3, 8]) },
            multicast: dice.one_of(&[1, 2, u64::MAX]),
            hbm: Bandwidth::bytes_per_second(dice.one_of(&[1, 3, 7, 20])).unwrap(),
            clock: Frequency::hertz(dice.one_of(&[1, 2])).unwrap(),
            element_bytes: dice.one_of(&[1, 2]),
            partial_sum_bytes: dice.one_of(&[2, 4]),
            fill_and_drain: dice.below(2) == 0,
            energies: Energies {
                local_read: dice.below(5),
                local_write: dice.below(5),
                glb_read: dice.below(40),
                glb_write: dice.below(40),
                hbm: dice.below(90),
                mac: dice.below(9),
                register: dice.below(5),
                lane: dice.below(9),
                lane_register: dice.below(5),
            },
        };
        (matmul, homes, spec)
    }

    #[test]
    fn the_search_equals_naive_enumeration_in_cycles_and_energy() {
        let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
        let (mut feasible, mut scratch) = (0, Scratch::default());
        for case in 0..1500 {
            let (matmul, homes, spec) = small_case(&mut dice);
            let mut expected: Option<(u64, u128)> = None;
            every_mapping(&matmul, homes, &spec, |_, cost| {
                let found = (cost.cycles.0, cost.energy_eighths);
                expected = Some(expected.map_or(found, |least| least.min(found)));
            });
            let found = best(&matmul, homes, &spec, 0, &mut scratch)
                .map(|(_, cost)| (cost.cycles.0, cost.energy_eighths));
            assert_eq!(found, expected, "case {case}: {matmul:?} {homes:?} {spec:?}");
            feasible += u64::from(expected.is_some());
        }
        assert!(feasible > 1000, "{feasible} cases had a mapping at all");
    }

    #[test]
    fn slack_buys_the_least_energy_within_it() {
        let mut dice = Dice(0xdead_beef_cafe_f00d);
        let mut scratch = Scratch::default();
        for case in 0..300 {
            let (matmul, homes, spec) = small_case(&mut dice);
            let slack = dice.one_of(&[50_000, 250_000, 1_000_000]);
            let mut all = Vec::new();
            every_mapping(&matmul, homes, &spec, |_, cost| {
                all.push((cost.cycles.0, cost.energy_eighths));
            });
            let least = all.iter().map(|cost| cost.0).min();
            let allowed = least.map(|least| least * (1_000_000 + slack) / 1_000_000);
            let expected =
                all.iter().filter(|cost| Some(cost.0) <= allowed).map(|cost| cost.1).min();
            let found = best(&matmul, homes, &spec, slack, &mut scratch);
            let found = found.map(|(_, cost)| {
                assert!(Some(cost.cycles.0) <= allowed);
                cost.energy_eighths
            });
            assert_eq!(found, expected, "case {case}: {matmul:?} {homes:?} {spec:?}");
        }
    }
}
