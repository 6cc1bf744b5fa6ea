//! Judges boxes of designs without any solver.

use std::collections::BTreeMap;

use rayon::prelude::*;

use crate::hardware::Candidate;
use crate::hardware::DesignGrid;
use crate::hardware::N_DESIGN_KNOBS;
use crate::hardware::PointKind;
use crate::report::boxes_csv;
use crate::search::Certainty;
use crate::search::Judge;
use crate::search::NEAR_PERCENT;
use crate::search::Unlisted;
use crate::search::boxes::Point;
use crate::search::boxes::Region;
use crate::search::boxes::Value;
use crate::search::boxes::Why;
use crate::strategy::Standing;
use crate::units::Area;
use crate::units::Bytes;
use crate::units::Energy;
use crate::units::Time;

use super::super::super::claims::FalseClaim;
use super::super::super::claims::Verdict;
use super::super::super::claims::close;
use super::super::super::claims::require;
use super::super::super::feasible::Fit;
use super::super::super::rebuild::Question;
use super::super::super::table;
use super::super::super::table::BOUND;
use super::super::super::table::Judging;
use super::super::super::table::Status;
use super::super::rows;
use super::super::rows::Row;
use super::super::tile::allowed;
use super::super::tile::tiles;

type DesignPoint = Point<N_DESIGN_KNOBS>;
type DesignRegion = Region<N_DESIGN_KNOBS>;

/// What the boxes of one size of memory prove.
pub struct BoxClaim {
    /// The model, where it is about one alone.
    pub alone: Option<usize>,
    /// The size of memory.
    pub hbm: usize,
    /// How designs are compared.
    pub judge: Judge,
    /// The last of what is kept; `None` where fewer designs are kept than were asked for.
    pub worst: Option<Value>,
    /// The best that was evaluated.
    pub best: Option<Value>,
    /// Its boxes.
    pub rows: Vec<Row<N_DESIGN_KNOBS>>,
}

/// What the boxes of an answer say.
pub struct JudgedBoxes {
    /// All that they prove: the claims of all models together first, by size of memory.
    pub claims: Vec<BoxClaim>,
    /// By size of memory: what became of designs that have no row.
    pub unlisted: Vec<Unlisted>,
}

/// The designs of the rows of a designs.csv, which must be designs of the space in the published order.
pub fn listed(question: &Question, cells: &[Vec<String>]) -> Result<Vec<Candidate>, FalseClaim> {
    let grid = question.grid();
    let mut found: Vec<(u128, Candidate)> = Vec::new();
    for (row, cells) in cells.iter().skip(1).enumerate() {
        let wrong = |is: &str| FalseClaim::new(format!("designs.csv: row {row}"), "a design", is);
        let mut point = [0; N_DESIGN_KNOBS];
        for (knob, place) in point.iter_mut().enumerate() {
            if grid.value(knob, 0).is_some() {
                let said = cells.get(knob + 1).and_then(|text| text.parse().ok());
                let known = said.and_then(|value| grid.place_of(knob, Some(value)));
                *place = known.ok_or_else(|| wrong("no point of the space"))?;
            }
        }
        let candidate = grid.candidate(&point);
        if question.request.space.kind(&candidate, &question.physics) != PointKind::Design {
            return Err(wrong("no design: its area is out of limits, or it cannot be built"));
        }
        let place = grid.published_place(&point);
        if found.last().is_some_and(|(before, _)| *before >= place) {
            return Err(wrong("one that comes before, in the published order"));
        }
        found.push((place, candidate));
    }
    Ok(found.into_iter().map(|(_, candidate)| candidate).collect())
}

/// Judges all boxes, and that the rows of the table agree with them.
pub fn check(
    judging: &Judging,
    table: &[table::Row],
    cells: &[Vec<String>],
) -> Result<JudgedBoxes, FalseClaim> {
    let question = judging.question;
    let grid = question.grid();
    let points: Option<Vec<DesignPoint>> =
        question.candidates.iter().map(|candidate| grid.point(candidate)).collect();
    let points = points.expect("listed designs are points of the grid");
    let places = points.iter().copied().zip(0..).collect();
    let boxes = Boxes { judging, grid, places, table };
    let mut of_name: BTreeMap<String, Vec<Row<N_DESIGN_KNOBS>>> = BTreeMap::new();
    for row in rows::read_designs(&boxes.grid, cells)? {
        of_name.entry(row.proves.clone()).or_default().push(row);
    }
    let models = question.models.len();
    let alone = (0..models).map(Some).filter(|_| models > 1);
    let mut claims = Vec::new();
    for alone in std::iter::once(None).chain(alone) {
        for (hbm, &gib) in question.request.space.hbm_gib.iter().enumerate() {
            let proves = boxes_csv::with_memory(alone, gib);
            let rows = of_name.remove(&proves).unwrap_or_default();
            let claim = boxes.claim((alone, hbm), rows);
            boxes.holds(&claim, &proves)?;
            claims.push(claim);
        }
    }
    if let Some(stranger) = of_name.values().flatten().next() {
        return Err(FalseClaim::new(stranger.claim("proves"), &stranger.proves, "no claim"));
    }
    let together = claims.iter().filter(|claim| claim.alone.is_none());
    let unlisted = together.map(|claim| boxes.unlisted(claim)).collect();
    Ok(JudgedBoxes { claims, unlisted })
}

struct Boxes<'a> {
    judging: &'a Judging<'a>,
    grid: DesignGrid,
    /// The rows of listed designs.
    places: BTreeMap<DesignPoint, usize>,
    table: &'a [table::Row],
}

const NOTHING_KNOWN: Standing = Standing { time: Time(0), energy: Energy::ZERO };

impl Boxes<'_> {
    /// What boxes must prove: that nothing is better than what the table keeps, or for a model alone than
    /// what they say themselves to have evaluated.
    fn claim(
        &self,
        (alone, hbm): (Option<usize>, usize),
        rows: Vec<Row<N_DESIGN_KNOBS>>,
    ) -> BoxClaim {
        let judge = self.judging.judge;
        let (judge, top) = match alone {
            None => (judge.clone(), self.judging.question.request.top.max(1)),
            Some(model) => (Judge { stakes: vec![judge.stakes[model]], ..judge.clone() }, 1),
        };
        let mut values: Vec<Value> = match alone {
            None => self.places.keys().filter_map(|point| self.value(point, hbm)).collect(),
            Some(_) => rows
                .iter()
                .filter_map(|row| match row.why {
                    Some(Why::Evaluated(value)) => Some(value),
                    _ => None,
                })
                .collect(),
        };
        values.sort_unstable();
        let best = values.first().copied();
        // A search that was stopped proves nothing of a model alone.
        let worst = match alone {
            Some(_) if self.judging.stopped => Some(Value { first: 0, second: 0, place: 0 }),
            _ => values.get(top - 1).copied(),
        };
        BoxClaim { alone, hbm, judge, worst, best, rows }
    }

    /// What the table says that a design is worth with a size of memory.
    fn value(&self, point: &DesignPoint, hbm: usize) -> Option<Value> {
        let row = &self.table[*self.places.get(point)?];
        let merit = row.pairs[hbm].found.as_ref()?.merit;
        Some(Value { first: merit.value, second: merit.area, place: self.place(point) })
    }

    /// Places of designs are counted from 1, because bounds have the place 0.
    fn place(&self, point: &DesignPoint) -> u128 {
        self.grid.published_place(point) + 1
    }

    fn holds(&self, claim: &BoxClaim, proves: &str) -> Verdict {
        let regions: Vec<DesignRegion> = claim.rows.iter().map(|row| row.region).collect();
        tiles(DesignRegion::whole(self.grid.lens()), &regions, proves)?;
        claim.rows.par_iter().try_for_each(|row| self.row(claim, row))?;
        if claim.alone.is_none() {
            self.places.keys().try_for_each(|point| self.agrees(claim, point))?;
        }
        Ok(())
    }

    /// Judges why a box is closed.
    fn row(&self, claim: &BoxClaim, row: &Row<N_DESIGN_KNOBS>) -> Verdict {
        let inner = allowed(&row.region, |point| self.keeps_the_limit(point));
        let Some(why) = row.why else {
            let settled = "closed: nothing stopped the search";
            return require(self.judging.stopped, row.claim("why"), "open", settled);
        };
        let Some(region) = inner else {
            let over = why == Why::OverBudget;
            return require(over, row.claim("why"), why.word().0, "over_budget");
        };
        let not_better = |value: Value| {
            let enough = claim.worst.is_some_and(|worst| value >= worst);
            let worst = claim.worst.map_or("anything".to_owned(), |worst| worst.first.to_string());
            require(enough, row.claim("value"), value.first, format!("less than {worst}"))
        };
        let bound = self.bound(claim, &region);
        let above = |value: Value| {
            let least = bound.map_or(0, |bound| bound.first);
            let above = value.first as f64 >= least as f64 * (1.0 - BOUND);
            require(above, row.claim("value"), value.first, format!("at least {least}"))
        };
        let is_point = region.only().is_some() && bound.is_some();
        match why {
            Why::OverBudget | Why::Corner(_) | Why::CornerNothing => {
                Err(FalseClaim::new(row.claim("why"), why.word().0, "no reason for this box"))
            }
            Why::NothingFits => {
                let found = bound.map_or(0, |bound| bound.first);
                let said = "nothing_fits";
                require(bound.is_none(), row.claim("why"), said, format!("bounded by {found}"))
            }
            Why::Bound(value) => {
                not_better(value)?;
                let Some(found) = bound else {
                    return Err(FalseClaim::new(row.claim("why"), "bound", "nothing_fits"));
                };
                let same = close(value.first as f64, found.first as f64, BOUND);
                require(same, row.claim("value"), value.first, found.first)?;
                require(
                    value.second == found.second,
                    row.claim("tie"),
                    value.second,
                    found.second,
                )?;
                require(value.place == 0, row.claim("place"), value.place, 0)
            }
            Why::Evaluated(value) => {
                require(is_point, row.claim("why"), "a design", "a box of several, or no design")?;
                above(value)?;
                let is = match claim.alone {
                    None => self.value(&region.lo, claim.hbm),
                    Some(_) => bound.map(|bound| Value {
                        first: value.first,
                        place: self.place(&region.lo),
                        ..bound
                    }),
                };
                let found = is.map_or("not in designs.csv".to_owned(), |is| format!("{is:?}"));
                require(is == Some(value), row.claim("value"), format!("{value:?}"), found)
            }
            Why::Beaten(value) => {
                require(is_point, row.claim("why"), "a design", "a box of several, or no design")?;
                not_better(value)
            }
            Why::Nothing => {
                require(is_point, row.claim("why"), "a design", "a box of several, or no design")?;
                let capped = self.judging.question.request.power_cap_w.is_some();
                let fits = self.judging.fits[claim.hbm] == Fit::Yes && !capped;
                require(!fits, row.claim("why"), "nothing", "possible: some way to train fits")
            }
        }
    }

    /// What is said of a listed design in the table is what its box says.
    fn agrees(&self, claim: &BoxClaim, point: &DesignPoint) -> Verdict {
        let Some(row) = claim.rows.iter().find(|row| row.region.contains(point)) else {
            return Ok(());
        };
        let pair = &self.table[self.places[point]].pairs[claim.hbm];
        let is_worth = self.value(point, claim.hbm);
        let agrees = match (pair.status, row.why) {
            // What was met on the way may lie in a box that was closed later.
            (Status::Evaluated, Some(Why::Evaluated(_)) | None)
            | (Status::Pruned, Some(Why::Bound(_)))
            | (Status::Beaten, Some(Why::Beaten(_)))
            | (Status::Infeasible, Some(Why::NothingFits | Why::Nothing))
            | (Status::Open, None) => true,
            (Status::Evaluated, Some(Why::Bound(value))) => {
                is_worth.is_some_and(|is| is.first as f64 >= value.first as f64 * (1.0 - BOUND))
            }
            (Status::Evaluated, Some(Why::Beaten(Value { first, .. }))) => {
                let near = first.saturating_add(first / 100 * NEAR_PERCENT);
                is_worth.is_some_and(|is| is.first > near)
            }
            _ => false,
        };
        let said = format!("{:?} in designs.csv", pair.status).to_lowercase();
        let why = row.why.map_or(boxes_csv::OPEN, |why| why.word().0);
        require(agrees, row.claim("why"), why, said)
    }

    fn area(&self, point: &DesignPoint) -> Option<Area> {
        self.grid.area(point)
    }

    fn keeps_the_limit(&self, point: &DesignPoint) -> bool {
        let most = self.judging.question.request.space.max_area_nm2;
        self.area(point).is_some_and(|area| area.0 <= most)
    }

    fn is_design(&self, point: &DesignPoint) -> bool {
        let Question { request, physics, .. } = self.judging.question;
        request.space.kind(&self.grid.candidate(point), physics) == PointKind::Design
    }

    /// The least value of any design of a box, written a second time; `None` where surely none of its points is
    /// a design on which something fits.
    fn bound(&self, claim: &BoxClaim, region: &DesignRegion) -> Option<Value> {
        let question = self.judging.question;
        let [least, most] = [region.lo, region.hi].map(|corner| self.grid.candidate(&corner));
        // With one core of a kind a design may be as small as it likes.
        let several = least.design.tensor_cores > 1 && least.design.vector_cores > 1;
        let small = |area: Area| area.0 < question.request.space.min_area_nm2;
        let none = several && self.area(&region.hi).is_some_and(small);
        if none || region.only().is_some_and(|point| !self.is_design(&point)) {
            return None;
        }
        let size = Bytes::GIB * question.request.space.hbm_gib[claim.hbm];
        let chip = most.optimistic(&least, size, &question.physics);
        let standing = |model: usize| match &chip {
            Some(chip) => self.judging.bounds.standing(model, chip, claim.hbm),
            None => Some(NOTHING_KNOWN),
        };
        let models = match claim.alone {
            Some(model) => model..model + 1,
            None => 0..question.models.len(),
        };
        let standings: Option<Vec<Standing>> = models.map(standing).collect();
        let merit = claim.judge.merit(&standings?, self.area(&region.lo)?, Certainty::Bound);
        Some(Value { first: merit.value, second: merit.area, place: 0 })
    }

    /// What became of designs that have no row.
    fn unlisted(&self, claim: &BoxClaim) -> Unlisted {
        let mut all = Unlisted::default();
        let is_unlisted = |at: &DesignPoint| !self.places.contains_key(at) && self.is_design(at);
        for row in &claim.rows {
            if row.why == Some(Why::OverBudget) {
                continue;
            }
            let count = row.region.points().filter(is_unlisted).count();
            match row.why {
                None => {
                    all.open += count;
                    all.least(row.least.map_or(0, |value| value.first));
                }
                Some(Why::Bound(value)) => {
                    all.pruned += count;
                    all.least(value.first);
                }
                Some(Why::Beaten(_)) => all.beaten += count,
                Some(_) => all.infeasible += count,
            }
        }
        all
    }
}
