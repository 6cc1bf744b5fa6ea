//! Small spaces of chips: their answers, what the judge says, and all of their points.

use phaze::ask::chips;
use phaze::ask::chips::ChipVerdict;
use phaze::ask::chips::SearchedChips;
use phaze::search::chips::ChipOutcome;
use phaze::search::chips::ChipPoint;
use phaze::search::chips::ChipSetup;

/// The answer to what is asked.
pub fn searched(setup: &ChipSetup) -> SearchedChips {
    chips::answer(setup, (&(), false, ""), &()).unwrap()
}

/// What the judge says of an answer.
pub fn verdict(outcome: &ChipOutcome, boxes: &str, deeply: bool) -> Result<(), String> {
    let deeply = deeply.then_some(&() as &dyn phaze::search::Observer);
    match chips::check(("test", outcome), ("boxes.csv", boxes), deeply)
        .map_err(|e| e.to_string())?
    {
        ChipVerdict::Holds(..) => Ok(()),
        ChipVerdict::False(lie) => Err(lie),
        ChipVerdict::Stopped => Err("stopped".into()),
    }
}

/// Every point of a grid.
pub fn points(setup: &ChipSetup) -> Vec<ChipPoint> {
    let mut points = vec![[0; 10]];
    for (knob, len) in setup.grid.lens().into_iter().enumerate() {
        let with = |place| {
            move |mut point: ChipPoint| {
                point[knob] = place;
                point
            }
        };
        points = (0..len).flat_map(|place| points.clone().into_iter().map(with(place))).collect();
    }
    points
}
