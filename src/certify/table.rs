//! designs.csv: every row against the design it is about, its bound, and what can fit.
//!
//! Of an evaluated design the times, energies and strategies are the answer's own; that they are
//! those of the best way to train is for `deep` to say. Everything else is computed.

use std::ops::Range;

use rayon::prelude::*;

use crate::plan::Strategy;
use crate::report::designs_csv;
use crate::search::Certainty;
use crate::search::Judge;
use crate::search::Merit;
use crate::strategy::Standing;
use crate::units::Bytes;
use crate::units::Energy;
use crate::units::Time;

use super::bound::Bounds;
use super::cells::Cells;
use super::claims::FalseClaim;
use super::claims::SAME;
use super::claims::Verdict;
use super::claims::close;
use super::claims::require;
use super::feasible::Fit;
use super::rebuild::Question;
use super::sentence;

/// Two computations of one bound agree to this part: each is lowered by half of it.
pub const BOUND: f64 = 2e-9;

/// What an answer says of a design with one size of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Its value is known.
    Evaluated,
    /// Its bound is worse than what is kept.
    Pruned,
    /// Its bound is not, but its value is, and not nearly as good.
    Beaten,
    /// Nothing fits.
    Infeasible,
    /// It was not looked at.
    Open,
}

/// A design with one size of memory.
#[derive(Clone, Debug)]
pub struct Pair {
    /// What became of it.
    pub status: Status,
    /// The figure of its bound as the answer tells it, and the bound as it was computed here.
    pub bound: Option<(f64, Merit)>,
    /// What was found, where it was evaluated.
    pub found: Option<Evaluated>,
}

/// What is said of an evaluated pair.
#[derive(Clone, Debug)]
pub struct Evaluated {
    /// How good it is.
    pub merit: Merit,
    /// For each model.
    pub standings: Vec<Standing>,
    /// For each model.
    pub devices: Vec<u64>,
    /// The figure of the value if every schedule that is not proved ended at its bound.
    pub least: f64,
}

/// A row.
#[derive(Clone, Debug)]
pub struct Row {
    /// By size of memory.
    pub pairs: Vec<Pair>,
    /// The best size of memory, and the strategies that may be those told of each model there.
    pub best: Option<(usize, Vec<Vec<Strategy>>)>,
}

/// Which column holds what.
struct Layout {
    n_models: usize,
    n_sizes: usize,
    /// Whether it is told how experts are divided.
    experts: bool,
}

impl Layout {
    const KNOBS: usize = 9;
    const BY_SIZE: usize = 4;
    const BY_SIZE_AND_MODEL: usize = 3;
    const BY_MODEL: usize = 16;

    fn size(&self, hbm: usize) -> usize {
        Self::KNOBS + hbm * (Self::BY_SIZE + Self::BY_SIZE_AND_MODEL * self.n_models)
    }

    fn size_and_model(&self, hbm: usize, model: usize) -> usize {
        self.size(hbm) + Self::BY_SIZE + Self::BY_SIZE_AND_MODEL * model
    }

    fn best(&self) -> usize {
        self.size(self.n_sizes)
    }

    fn model(&self, model: usize) -> usize {
        let of_experts = if self.experts { 2 } else { 0 };
        self.best() + 2 + (Self::BY_MODEL + of_experts) * model
    }
}

/// All that rows are judged by.
pub struct Judging<'a> {
    /// The request.
    pub question: &'a Question,
    /// How designs are compared.
    pub judge: &'a Judge,
    /// What no design can beat.
    pub bounds: &'a Bounds,
    /// By size of memory: whether every model fits.
    pub fits: &'a [Fit],
    /// Whether the search was stopped early.
    pub stopped: bool,
}

/// Judges the whole table; the first row of `cells` holds the names of the columns.
pub fn check(judging: &Judging, cells: &[Vec<String>]) -> Result<Vec<Row>, FalseClaim> {
    let question = judging.question;
    let models: Vec<&str> = question.models.iter().map(|model| model.name.as_str()).collect();
    let experts = question.request.strategies.divides_experts();
    let names = designs_csv::columns(&question.request.space.hbm_gib, &models, experts);
    let (heading, rows) = cells.split_first().map_or((&[][..], &[][..]), |(h, r)| (&h[..], r));
    require(heading == names, "designs.csv: heading", heading.join(","), names.join(","))?;
    let (said, is) = (rows.len(), question.candidates.len());
    require(said == is, "designs.csv: number of rows", said, is)?;
    let layout = Layout { n_models: models.len(), n_sizes: question.n_sizes(), experts };
    let judged: Vec<Result<Row, FalseClaim>> = rows
        .par_iter()
        .enumerate()
        .map(|(design, cells)| {
            let (said, is) = (cells.len(), names.len());
            require(said == is, format!("designs.csv: cells of design {design}"), said, is)?;
            let cells = Cells { design, names: &names, texts: cells };
            judging.row(&layout, &cells)
        })
        .collect();
    judged.into_iter().collect()
}

impl Judging<'_> {
    fn row(&self, layout: &Layout, cells: &Cells) -> Result<Row, FalseClaim> {
        self.knobs(cells)?;
        let pairs: Vec<Pair> = (0..layout.n_sizes)
            .map(|hbm| self.pair(layout, cells, hbm))
            .collect::<Result<_, _>>()?;
        let evaluated = pairs.iter().enumerate().filter_map(|(hbm, pair)| {
            pair.found.as_ref().map(|found| (found.merit.value, hbm, found))
        });
        let best = evaluated.min_by_key(|(value, hbm, _)| (*value, *hbm));
        let best = if let Some((_, hbm, found)) = best {
            Some((hbm, self.best(layout, cells, hbm, found)?))
        } else {
            empty(cells, layout.best()..layout.model(layout.n_models))?;
            None
        };
        Ok(Row { pairs, best })
    }

    fn knobs(&self, cells: &Cells) -> Verdict {
        let candidate = &self.question.candidates[cells.design];
        let knobs = &candidate.design;
        let counts = [
            cells.design as u64,
            knobs.tensor_cores,
            knobs.width,
            knobs.depth,
            knobs.vector_cores,
            knobs.vector_width,
            knobs.glb.0 / Bytes::MIB.0,
        ];
        for (column, count) in counts.into_iter().enumerate() {
            cells.is_text(column, &count.to_string())?;
        }
        let rate = candidate.glb_bytes_per_cycle.map_or_else(String::new, |rate| rate.to_string());
        cells.is_text(7, &rate)?;
        cells.is_number(8, self.question.areas[cells.design].square_micrometres(), SAME)
    }

    fn pair(&self, layout: &Layout, cells: &Cells, hbm: usize) -> Result<Pair, FalseClaim> {
        let at = layout.size(hbm);
        let status = match cells.text(at) {
            "evaluated" => Status::Evaluated,
            "pruned" => Status::Pruned,
            "beaten" => Status::Beaten,
            "infeasible" => Status::Infeasible,
            "open" => Status::Open,
            _ => return Err(cells.wrong(at, "evaluated, beaten, pruned, infeasible or open")),
        };
        let chip = self.question.chip(cells.design, hbm);
        let bounds: Option<Vec<Standing>> =
            (0..layout.n_models).map(|model| self.bounds.standing(model, &chip, hbm)).collect();
        let area = self.question.areas[cells.design];
        let merit = bounds.as_ref().map(|all| self.judge.merit(all, area, Certainty::Bound));
        // A search may be stopped before it knows a bound.
        let unlooked = self.stopped && status == Status::Open && cells.text(at + 1).is_empty();
        let bound = if unlooked {
            None
        } else if let Some(merit) = merit {
            let figure = self.judge.figure(merit.value);
            cells.is_number(at + 1, figure, BOUND)?;
            Some((cells.number(at + 1)?.unwrap_or(figure), merit))
        } else {
            cells.is_text(at + 1, "")?;
            None
        };
        self.possible(cells, hbm, at, status, bound.is_some() || unlooked)?;
        let found = if let (Status::Evaluated, Some(bounds)) = (status, &bounds) {
            Some(self.evaluated(layout, cells, hbm, bounds)?)
        } else {
            empty(cells, at + 2..layout.size(hbm + 1))?;
            None
        };
        Ok(Pair { status, bound, found })
    }

    /// A status does not contradict what memory and devices allow.
    fn possible(
        &self,
        cells: &Cells,
        hbm: usize,
        column: usize,
        status: Status,
        bounded: bool,
    ) -> Verdict {
        let capped = self.question.request.power_cap_w.is_some();
        match status {
            Status::Evaluated | Status::Pruned if self.fits[hbm] == Fit::No || !bounded => {
                Err(cells.wrong(column, "`infeasible`: nothing fits"))
            }
            Status::Pruned | Status::Beaten if self.question.request.exhaustive => {
                Err(cells.wrong(column, "never so in an exhaustive search"))
            }
            Status::Beaten if self.question.request.pareto => {
                Err(cells.wrong(column, "never so where the front is asked for"))
            }
            Status::Beaten if !bounded => Err(cells.wrong(column, "`infeasible`: nothing fits")),
            Status::Infeasible if self.fits[hbm] == Fit::Yes && !capped => {
                Err(cells.wrong(column, "possible: some way to train fits"))
            }
            Status::Open if !self.stopped || !bounded => {
                Err(cells.wrong(column, "settled: the search was not stopped before"))
            }
            _ => Ok(()),
        }
    }

    /// The figures of an evaluated pair agree with each other and lie on the right side of bounds.
    fn evaluated(
        &self,
        layout: &Layout,
        cells: &Cells,
        hbm: usize,
        bounds: &[Standing],
    ) -> Result<Evaluated, FalseClaim> {
        let request = &self.question.request;
        let (mut standings, mut devices) = (Vec::new(), Vec::new());
        for (model, bound) in bounds.iter().enumerate() {
            let at = layout.size_and_model(hbm, model);
            let time = u64::try_from(cells.decimal(at, 12)?);
            let time = time.map_err(|_| cells.wrong(at, "longer than 213 days"))?;
            let energy = cells.decimal(at + 1, 15)?;
            let used = cells.whole(at + 2)?;
            let slowest = format!("at least {} s by its bound", bound.time.seconds());
            require(time >= bound.time.0, cells.path(at), cells.text(at), slowest)?;
            let frugal = format!("at least {} J by its bound", bound.energy.joules());
            let path = cells.path(at + 1);
            require(energy >= bound.energy.0, path, cells.text(at + 1), frugal)?;
            if !(1..=request.devices).contains(&used) {
                return Err(cells.wrong(at + 2, format!("1 to {}", request.devices)));
            }
            let standing = Standing { time: Time(time), energy: Energy(energy) };
            let power = standing.energy.joules() / (standing.time.seconds() * used as f64);
            if request.power_cap_w.is_some_and(|cap| power > cap) {
                return Err(cells.wrong(at + 1, "more than the cap of power"));
            }
            standings.push(standing);
            devices.push(used);
        }
        let area = self.question.areas[cells.design];
        let merit = self.judge.merit(&standings, area, Certainty::Fact);
        let figure = self.judge.figure(merit.value);
        let at = layout.size(hbm);
        cells.is_number(at + 2, figure, SAME)?;
        let least = cells.number(at + 3)?.unwrap_or(figure);
        let better = if self.judge.larger_is_better() { least >= figure } else { least <= figure };
        let told_apart = cells.text(at + 3).is_empty() || !close(least, figure, SAME);
        if !better || !told_apart {
            return Err(cells.wrong(at + 3, format!("better than the value {figure}")));
        }
        Ok(Evaluated { merit, standings, devices, least })
    }

    /// What is told of the best size of memory.
    fn best(
        &self,
        layout: &Layout,
        cells: &Cells,
        hbm: usize,
        found: &Evaluated,
    ) -> Result<Vec<Vec<Strategy>>, FalseClaim> {
        let question = self.question;
        let request = &question.request;
        let at = layout.best();
        cells.is_text(at, &request.space.hbm_gib[hbm].to_string())?;
        cells.is_number(at + 1, self.judge.figure(found.merit.value), SAME)?;
        let peak = question.chip(cells.design, hbm).peak_flops_per_second() as f64;
        let mut strategies = Vec::new();
        for (model, trained) in question.models.iter().enumerate() {
            let at = layout.model(model);
            let (standing, used) = (found.standings[model], found.devices[model]);
            let (seconds, joules) = (standing.time.seconds(), standing.energy.joules());
            let sequences = request.global_batch as f64;
            let tokens = sequences * trained.sequence as f64;
            let flops = trained.flops_per_sequence.0 as f64 * sequences;
            let figures = [
                seconds,
                sequences / seconds,
                tokens / seconds,
                flops / (used as f64 * peak * seconds),
                joules / tokens,
                joules / (seconds * used as f64),
            ];
            for (column, figure) in (at..).zip(figures) {
                cells.is_number(column, figure, SAME)?;
            }
            let mut told = self.strategy(cells, at + 6, model, used)?;
            cells.is_text(at + 15, &used.to_string())?;
            if layout.experts {
                let of_experts = [cells.whole(at + 16)?, cells.whole(at + 17)?];
                told.retain(|way| [way.expert_parallel, way.expert_tensor] == of_experts);
                if told.is_empty() {
                    return Err(cells.wrong(at + 16, "what the strategy says"));
                }
            }
            strategies.push(told);
        }
        Ok(strategies)
    }

    /// A strategy is one of the request's, told alike in words and figures, and takes the devices
    /// that it is said to take.
    fn strategy(
        &self,
        cells: &Cells,
        at: usize,
        model: usize,
        used: u64,
    ) -> Result<Vec<Strategy>, FalseClaim> {
        let degrees = sentence::Degrees {
            data_parallel: cells.whole(at + 1)?,
            pipeline: cells.whole(at + 2)?,
            chunks: cells.whole(at + 3)?,
            tensor_parallel: cells.whole(at + 4)?,
            context_parallel: cells.whole(at + 5)?,
            micro_batch: cells.whole(at + 6)?,
            zero: cells.whole(at + 7)?,
            recompute: cells.text(at + 8),
        };
        let asked = self.question.asked(model);
        let found = sentence::strategies(&asked, &degrees, cells.text(at));
        if found.is_empty() {
            return Err(cells.wrong(at, "no strategy of the request's space with these degrees"));
        }
        let parts = [degrees.data_parallel, degrees.pipeline, degrees.context_parallel];
        let each = parts.into_iter().fold(1_u64, u64::saturating_mul);
        let most = each.saturating_mul(degrees.tensor_parallel);
        if used != most {
            return Err(cells.wrong(at + 9, most));
        }
        Ok(found)
    }
}

/// Nothing is told in these columns.
fn empty(cells: &Cells, mut columns: Range<usize>) -> Verdict {
    columns.try_for_each(|column| cells.is_text(column, ""))
}
