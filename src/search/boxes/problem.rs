//! What a search over boxes must be told of a grid.

use super::region::Point;
use super::region::Region;
use super::region::place;
use super::walk::Kept;

/// How good a point is; less is better, each figure decides among equals of those before it. No two points of a
/// grid are equal, so that what is best does not depend on who looks for it, or in which order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Value {
    /// What is made as small as possible.
    pub first: u128,
    /// What decides among equals.
    pub second: u128,
    /// What decides among equals of both: the place of a point in its grid, of a box the least of its places.
    pub place: u128,
}

/// What is known of one point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Evaluation<F> {
    /// Its value.
    Found(Value, F),
    /// Its value is not better than the limit.
    Beyond,
    /// Nothing can be done with it.
    Nothing,
}

/// What the greatest corner of a box says of all of its points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Corner {
    /// A point of the box may be better than the limit, and perhaps as good as this; which is no bound, and
    /// only guides where boxes are divided.
    Reached(Value),
    /// No point of the box has a better value than the limit.
    Beyond,
    /// Nothing can be done with any of them.
    Nothing,
}

/// A grid of points, what may be taken of it, and how good points are.
///
/// Three laws make a search over boxes of it right:
/// - where a point fits, every point fits that is nowhere above it;
/// - [`bound`](Self::bound) of a box is no more than the value of any of its points that fit, and
///   does not fall when the box shrinks;
/// - [`corner`](Self::corner) is asked only of boxes in which no knob varies but those that are
///   [`proved`](Self::proved), and of several only where they are [`kin`](Self::kin). It says then `Beyond` only
///   where no point of the boxes is better than the limit, and `Nothing` only where nothing can be done with any.
pub trait BoxProblem<const N: usize>: Sync {
    /// What an evaluation yields besides its value.
    type Found: Clone + Send + Sync;

    /// How many values each knob has.
    fn lens(&self) -> [u16; N];

    /// How many points of the grid come before a point; of a box its least corner has the fewest.
    fn place(&self, point: &Point<N>) -> u128 {
        place(self.lens(), point)
    }

    /// The knobs along which exact values at the greatest corner bound a box.
    fn proved(&self) -> [bool; N];

    /// The knobs of which bounds know nothing.
    fn blind(&self) -> [bool; N];

    /// Whether bounds may rise with the least corner.
    fn rises(&self) -> bool;

    /// Whether a point keeps within what may be taken.
    fn fits(&self, point: &Point<N>) -> bool;

    /// What no point of a box can beat; `None` where surely nothing can be done with any.
    fn bound(&self, region: &Region<N>) -> Option<Value>;

    /// Which boxes may be looked at together, though they differ in knobs that have no law: those whose least points
    /// have the same number here. `None` for a box by itself.
    fn kin(&self, _: &Point<N>) -> Option<u64> {
        None
    }

    /// What the greatest corner says of boxes, at least one: whether any of their points may be better than `limit`.
    fn corner(&self, boxes: &[Region<N>], limit: Option<Value>) -> Corner;

    /// How near the greatest corner of boxes comes to closing them, where a point must be better than `worst`:
    /// from 1 on it does. A guess from what is known of another point: it decides where boxes are divided and
    /// when corners are evaluated, not what they say.
    fn guess(&self, boxes: &[Region<N>], like: &Kept<N, Self::Found>, worst: Value) -> f64;

    /// What a point is worth, where values that are not better than `limit` need not be known.
    fn evaluate(&self, point: &Point<N>, limit: Option<Value>) -> Evaluation<Self::Found>;

    /// Told between two batches of boxes: what was found until now may be used to answer later questions. What is used
    /// earlier must not depend on which box of a batch was looked at first.
    fn settle(&self) {}
}

/// What the corners of boxes say of all of them, where each is asked alone.
pub fn each_alone<const N: usize>(
    boxes: &[Region<N>],
    corner: impl Fn(&Region<N>) -> Corner,
) -> Corner {
    let all = boxes.iter().map(corner).reduce(|known, next| match (known, next) {
        (reached @ Corner::Reached(_), _) | (_, reached @ Corner::Reached(_)) => reached,
        (Corner::Beyond, _) | (_, Corner::Beyond) => Corner::Beyond,
        (Corner::Nothing, Corner::Nothing) => Corner::Nothing,
    });
    all.unwrap_or(Corner::Nothing)
}

/// A box that is done with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closed<const N: usize> {
    /// Its points.
    pub region: Region<N>,
    /// Why none of them can be better than what is kept.
    pub why: Why,
}

/// Why no point of a box can be better than what is kept.
///
/// Points that do not fit with the least values of all knobs but one are left out of a box before
/// anything else is said of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Its least corner takes more than is allowed.
    OverBudget,
    /// Surely nothing can be done even with its greatest corner.
    NothingFits,
    /// This is what none of its points can beat.
    Bound(Value),
    /// By its greatest corner, evaluated exactly, none of its points is better than this.
    Corner(Value),
    /// Its greatest corner was evaluated exactly, and nothing can be done with it.
    CornerNothing,
    /// A point, evaluated exactly.
    Evaluated(Value),
    /// A point, found not to be better than this.
    Beaten(Value),
    /// A point, evaluated exactly: nothing can be done with it.
    Nothing,
}

impl Why {
    /// The word that certificates have for it, and the value that it rests on.
    pub fn word(&self) -> (&'static str, Option<Value>) {
        match *self {
            Self::OverBudget => ("over_budget", None),
            Self::NothingFits => ("nothing_fits", None),
            Self::Bound(value) => ("bound", Some(value)),
            Self::Corner(value) => ("corner", Some(value)),
            Self::CornerNothing => ("corner_nothing", None),
            Self::Evaluated(value) => ("evaluated", Some(value)),
            Self::Beaten(value) => ("beaten", Some(value)),
            Self::Nothing => ("nothing", None),
        }
    }

    /// The reason of that word and value.
    pub fn of_word(word: &str, value: Option<Value>) -> Option<Self> {
        Some(match (word, value) {
            ("over_budget", None) => Self::OverBudget,
            ("nothing_fits", None) => Self::NothingFits,
            ("bound", Some(value)) => Self::Bound(value),
            ("corner", Some(value)) => Self::Corner(value),
            ("corner_nothing", None) => Self::CornerNothing,
            ("evaluated", Some(value)) => Self::Evaluated(value),
            ("beaten", Some(value)) => Self::Beaten(value),
            ("nothing", None) => Self::Nothing,
            _ => return None,
        })
    }
}
