//! The figures that planners speak in: tokens of a batch, nodes of a cluster; and what is taken
//! where they say nothing.

use super::InputError;
use super::decimal::Decimal;
use super::numbers::Field;
use super::place::LARGEST_SEQUENCE;
use crate::plan::Job;

/// Tokens of a batch where nobody says: what large models are trained with.
pub const DEFAULT_BATCH_TOKENS: u64 = 4_000_000;

/// The longest sequence that is taken where nobody says: models are made for longer ones than they
/// are mostly trained with.
pub const LONGEST_DEFAULT_SEQUENCE: u64 = 8192;

/// Letters that stand for a power of ten.
const LETTERS: [(char, i32); 5] = [('k', 3), ('M', 6), ('G', 9), ('B', 9), ('T', 12)];

/// The sequence to train with where nobody says, for a model made for at most `longest` tokens.
pub fn default_sequence(longest: u64) -> u64 {
    longest.clamp(1, LONGEST_DEFAULT_SEQUENCE)
}

/// Reads a number of tokens as `--batch-tokens` holds it: `4M`, `1.5G`, `500k`, `4000000`; `file`
/// is what errors refer to.
///
/// # Errors
/// What is no number, is none at all, or more than can be counted with.
pub fn read_tokens(text: &str, file: &str) -> Result<u64, InputError> {
    let text = text.trim();
    let field = Field::new(file, "tokens");
    let lettered = |&(letter, power): &(char, i32)| Some((text.strip_suffix(letter)?, power));
    let (number, places) = LETTERS.iter().find_map(lettered).unwrap_or((text, 0));
    let number = number.trim_end();
    let is_plain = !number.is_empty() && number.chars().all(|c| c.is_ascii_digit() || c == '.');
    let decimal = number.parse::<f64>().ok().filter(|_| is_plain).and_then(Decimal::of);
    let Some(decimal) = decimal else {
        let allowed = match text.chars().last() {
            Some('m' | 'g' | 'K' | 'b' | 't') => {
                "the letters are k, M, G (or B) and T: thousands, millions, billions, trillions"
            }
            _ => "give a number such as 4000000, 4M, 1.5G or 2T",
        };
        return Err(field.value(text, "is no number of tokens", allowed));
    };
    let largest = Job::LARGEST_COUNT * LARGEST_SEQUENCE;
    let whole = decimal.nearest(places).unwrap_or(u64::MAX);
    if (1..=largest).contains(&whole) {
        return Ok(whole);
    }
    let allowed = format!("allowed are 1 to {largest}");
    Err(field.value(text, "is out of range", &allowed))
}

/// The batch nearest to so many tokens: a power of two of sequences, or three times one, so that
/// many degrees divide it; of two that are as near, the smaller.
pub fn nearest_batch(tokens: u64, sequence: u64) -> u64 {
    let sequence = u128::from(sequence.max(1));
    let apart = |batch: u64| (u128::from(batch) * sequence).abs_diff(tokens.into());
    let powers = (0..=Job::LARGEST_COUNT.ilog2()).map(|power| 1_u64 << power);
    let batches = powers.flat_map(|power| [power, 3 * power]);
    let allowed = batches.filter(|&batch| batch <= Job::LARGEST_COUNT);
    allowed.min_by_key(|&batch| (apart(batch), batch)).unwrap_or(1)
}

/// The devices of so many nodes, where a node has `per_node`; `file` is what errors refer to.
///
/// # Errors
/// That the network has no nodes, or that these are too many or none.
pub fn devices_of_nodes(nodes: u64, per_node: Option<u64>, file: &str) -> Result<u64, InputError> {
    let field = Field::new(file, "nodes");
    let Some(per_node) = per_node else {
        let problem = "asks for nodes of a network that has none";
        let allowed = "give --devices, or hardware whose devices stand in nodes";
        return Err(field.value(&nodes.to_string(), problem, allowed));
    };
    let nodes = field.whole(nodes, 1, Job::LARGEST_COUNT / per_node.max(1))?;
    Ok(nodes * per_node)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_read_with_and_without_a_letter() {
        for (text, tokens) in [
            ("4M", 4_000_000),
            ("1.5G", 1_500_000_000),
            ("500k", 500_000),
            ("0.5k", 500),
            ("4000000", 4_000_000),
            (" 16 M ", 16_000_000),
            ("1.2345678M", 1_234_568),
            ("1", 1),
        ] {
            assert_eq!(read_tokens(text, "--batch-tokens"), Ok(tokens), "{text}");
        }
    }

    #[test]
    fn what_is_no_number_of_tokens_is_said_with_what_would_do() {
        for (text, said) in [
            ("", "is no number of tokens; give a number such as"),
            ("M", "is no number of tokens"),
            ("4m", "`tokens = 4m` is no number of tokens; the letters are k, M, G (or B) and T"),
            ("4MM", "is no number of tokens"),
            ("-4M", "is no number"),
            ("1e6", "is no number"),
            ("nan", "is no number"),
            ("4t", "the letters are k, M, G (or B) and T"),
            ("0", "`tokens = 0` is out of range; allowed are 1 to"),
            ("0.0001k", "is out of range"),
            ("99999999999G", "is out of range"),
        ] {
            let error = read_tokens(text, "--batch-tokens").expect_err(text).to_string();
            assert!(error.starts_with("--batch-tokens: `tokens = "), "{error}");
            assert!(error.contains(said), "{text}: {error} should say {said}");
        }
    }

    #[test]
    fn a_batch_is_the_nearest_that_many_degrees_divide() {
        for (tokens, sequence, batch) in [
            (4_000_000, 8192, 512),
            (4_000_000, 2048, 2048),
            (4_000_000, 4096, 1024),
            (4_000_000, 131_072, 32),
            (3_000_000, 8192, 384),
            (1, 8192, 1),
            (16_000_000, 8192, 2048),
            // Five sequences are as near to four as to six.
            (5 * 8192, 8192, 4),
            (5 * 8192 + 1, 8192, 6),
            (u64::MAX, 1, 1 << 32),
        ] {
            assert_eq!(nearest_batch(tokens, sequence), batch, "{tokens} of {sequence}");
        }
    }

    #[test]
    fn no_other_batch_of_that_kind_is_nearer() {
        let kinds: Vec<u64> = (0..20).flat_map(|k| [1 << k, 3 << k]).collect();
        for tokens in (1..400_000).step_by(97) {
            let batch = nearest_batch(tokens, 512);
            let apart = |batch: u64| (batch * 512).abs_diff(tokens);
            assert!(kinds.contains(&batch));
            let best = kinds.iter().copied().min_by_key(|&kind| (apart(kind), kind));
            assert_eq!(Some(batch), best, "{tokens}");
        }
    }

    #[test]
    fn nodes_are_whole_ones_of_a_network_that_has_them() {
        assert_eq!(devices_of_nodes(32, Some(8), "--nodes"), Ok(256));
        let said =
            |nodes, per_node| devices_of_nodes(nodes, per_node, "--nodes").unwrap_err().to_string();
        assert!(said(4, None).contains("a network that has none; give --devices"));
        assert!(
            said(0, Some(8)).contains("`nodes = 0` is out of range; allowed are 1 to 536870912")
        );
        assert!(said(1 << 32, Some(8)).contains("is out of range"));
    }

    #[test]
    fn sequences_are_as_long_as_models_are_mostly_trained_with() {
        assert_eq!([1024, 8192, 131_072].map(default_sequence), [1024, 8192, 8192]);
    }
}
