//! Figures of error and rank over predicted and measured times.

/// A prediction beside what was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// Predicted seconds, or bytes.
    pub predicted: f64,
    /// The same, measured.
    pub measured: f64,
    /// Which model it is about, as a number: errors of one model go together.
    pub model: usize,
    /// Runs of one group can be ranked: one model, sequence and hardware.
    pub group: usize,
    /// What both are divided by to be ranked: tokens of a batch for each device.
    pub tokens: f64,
}

/// How close predictions are.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    /// How many.
    pub n: usize,
    /// Mean of |predicted / measured − 1|.
    pub mean: f64,
    /// Its median.
    pub median: f64,
    /// What nine of ten do not exceed.
    pub p90: f64,
    /// The largest.
    pub max: f64,
    /// Mean of predicted / measured − 1.
    pub bias: f64,
    /// Between these the mean lies in nine of ten resamplings of the models.
    pub interval: [f64; 2],
    /// How runs of one model are ranked; `None` where no group has enough runs.
    pub rank: Option<RankFigures>,
}

/// How well runs of one model, sequence and hardware are ranked, on average over such groups.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RankFigures {
    /// Spearman's correlation of ranks.
    pub spearman: f64,
    /// By how much the run that is predicted to be the fastest is slower than the fastest.
    pub regret: f64,
    /// Of pairs that differ by more than a tenth, the part that is ordered right.
    pub concordance: f64,
}

/// The fewest runs of one model that are ranked.
const LEAST_RANKED: usize = 5;
/// Resamplings of the models.
const RESAMPLINGS: usize = 1000;

impl Figures {
    /// Of these pairs; `None` where there are none.
    pub fn of(pairs: &[Pair]) -> Option<Self> {
        if pairs.is_empty() {
            return None;
        }
        let errors: Vec<f64> = pairs.iter().map(|pair| pair.error().abs()).collect();
        let mut sorted = errors.clone();
        sorted.sort_by(f64::total_cmp);
        Some(Self {
            n: pairs.len(),
            mean: mean(&errors),
            median: quantile(&sorted, 0.5),
            p90: quantile(&sorted, 0.9),
            max: sorted[sorted.len() - 1],
            bias: mean(&pairs.iter().map(Pair::error).collect::<Vec<f64>>()),
            interval: interval(pairs, &errors),
            rank: RankFigures::of(pairs),
        })
    }
}

impl Pair {
    /// Predicted / measured − 1.
    pub fn error(&self) -> f64 {
        self.predicted / self.measured - 1.0
    }
}

impl RankFigures {
    fn of(pairs: &[Pair]) -> Option<Self> {
        let groups = pairs.iter().map(|pair| pair.group).max()? + 1;
        let of_groups: Vec<Self> = (0..groups)
            .filter_map(|group| {
                let own: Vec<&Pair> = pairs.iter().filter(|pair| pair.group == group).collect();
                (own.len() >= LEAST_RANKED).then(|| Self::of_group(&own))
            })
            .collect();
        let over = |of: fn(&Self) -> f64| mean(&of_groups.iter().map(of).collect::<Vec<f64>>());
        (!of_groups.is_empty()).then(|| Self {
            spearman: over(|rank| rank.spearman),
            regret: over(|rank| rank.regret),
            concordance: over(|rank| rank.concordance),
        })
    }

    fn of_group(pairs: &[&Pair]) -> Self {
        let said: Vec<f64> = pairs.iter().map(|pair| pair.predicted / pair.tokens).collect();
        let is: Vec<f64> = pairs.iter().map(|pair| pair.measured / pair.tokens).collect();
        let first = (0..said.len()).min_by(|&a, &b| said[a].total_cmp(&said[b])).unwrap_or(0);
        let fastest = is.iter().copied().fold(f64::INFINITY, f64::min);
        let (mut right, mut all) = (0.0, 0.0);
        for a in 0..is.len() {
            for b in a + 1..is.len() {
                if (is[a] / is[b]).max(is[b] / is[a]) > 1.1 {
                    all += 1.0;
                    right += f64::from(u8::from((is[a] < is[b]) == (said[a] < said[b])));
                }
            }
        }
        Self {
            spearman: correlation(&ranks(&said), &ranks(&is)),
            regret: is[first] / fastest - 1.0,
            concordance: if all > 0.0 { right / all } else { 1.0 },
        }
    }
}

/// Ranks from 1; equals share the mean of theirs.
fn ranks(values: &[f64]) -> Vec<f64> {
    let below = |value: f64| values.iter().filter(|&&other| other < value).count() as f64;
    let alike =
        |value: f64| values.iter().filter(|other| other.total_cmp(&value).is_eq()).count() as f64;
    values.iter().map(|&value| below(value) + f64::midpoint(alike(value), 1.0)).collect()
}

/// Pearson's correlation; 1 where one side does not vary.
fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let (ma, mb) = (mean(a), mean(b));
    let sum = |of: &dyn Fn(f64, f64) -> f64| a.iter().zip(b).map(|(&a, &b)| of(a, b)).sum::<f64>();
    let both = sum(&|a, b| (a - ma) * (b - mb));
    let spread = sum(&|a, _| (a - ma).powi(2)) * sum(&|_, b| (b - mb).powi(2));
    if spread > 0.0 { both / spread.sqrt() } else { 1.0 }
}

/// Mean of some figures; 0 of none.
pub(super) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// The value that a part of ascending ones does not exceed, between neighbours in proportion.
pub(super) fn quantile(sorted: &[f64], part: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let at = part * last as f64;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a place in a list, rounded down"
    )]
    let low = (at.floor() as usize).min(last);
    let high = (low + 1).min(last);
    sorted[low] + (sorted[high] - sorted[low]) * (at - low as f64)
}

/// Where the mean error lies if models are drawn anew: errors of one model are not independent.
fn interval(pairs: &[Pair], errors: &[f64]) -> [f64; 2] {
    let mut models: Vec<usize> = pairs.iter().map(|pair| pair.model).collect();
    models.sort_unstable();
    models.dedup();
    let of_model = |model: usize| {
        let own = pairs.iter().zip(errors).filter(move |(pair, _)| pair.model == model);
        let own: Vec<f64> = own.map(|(_, &error)| error).collect();
        (own.iter().sum::<f64>(), own.len() as f64)
    };
    let sums: Vec<(f64, f64)> = models.iter().map(|&model| of_model(model)).collect();
    let mut state: u64 = 0x5EED;
    let mut draw = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % sums.len() as u64).expect("a place in a list")
    };
    let mut means: Vec<f64> = (0..RESAMPLINGS)
        .map(|_| {
            let drawn = (0..sums.len()).map(|_| sums[draw()]);
            let (sum, n) = drawn.fold((0.0, 0.0), |(s, n), (ds, dn)| (s + ds, n + dn));
            sum / n
        })
        .collect();
    means.sort_by(f64::total_cmp);
    [quantile(&means, 0.05), quantile(&means, 0.95)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(of: &[(f64, f64)]) -> Vec<Pair> {
        let pair = |(model, &(predicted, measured)): (usize, &(f64, f64))| Pair {
            predicted,
            measured,
            model: model % 2,
            group: 0,
            tokens: 1.0,
        };
        of.iter().enumerate().map(pair).collect()
    }

    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-12, "{found} is not {expected}");
    }

    #[test]
    fn errors_are_told_by_their_size_and_their_sign() {
        let found = Figures::of(&pairs(&[(1.1, 1.0), (0.8, 1.0), (2.0, 2.0)])).unwrap();
        close(found.mean, 0.1);
        close(found.median, 0.1);
        close(found.max, 0.2);
        close(found.bias, -0.1 / 3.0);
        assert!(found.interval[0] <= found.mean && found.mean <= found.interval[1]);
        assert!(found.rank.is_none(), "three runs are too few to be ranked");
        assert!(Figures::of(&[]).is_none());
    }

    #[test]
    fn runs_of_one_model_are_ranked_by_time_per_token() {
        let right = [(1.0, 1.0), (2.0, 2.0), (3.0, 4.0), (4.0, 5.0), (5.0, 9.0)];
        let rank = Figures::of(&pairs(&right)).unwrap().rank.unwrap();
        close(rank.spearman, 1.0);
        close(rank.regret, 0.0);
        close(rank.concordance, 1.0);
        let wrong = right.map(|(said, is)| (-said, is));
        let rank = RankFigures::of(&pairs(&wrong)).unwrap();
        close(rank.spearman, -1.0);
        close(rank.regret, 8.0);
        close(rank.concordance, 0.0);
    }

    #[test]
    fn equal_times_share_their_rank() {
        assert_eq!(ranks(&[2.0, 1.0, 2.0]), [2.5, 1.0, 2.5]);
    }
}
