//! Placing a model on a cluster of accelerators.

use std::io::Write;

use super::Args;
use super::RecomputeChoice;
use crate::cli::Exit;
use crate::cli::Refusal;
use crate::cli::files;
use crate::estimate::EstimateTable;
use crate::hardware::Accelerator;
use crate::hardware::Cluster;
use crate::input::Conventions;
use crate::input::batch::devices_of_nodes;
use crate::input::batch::nearest_batch;
use crate::input::batch::read_tokens;
use crate::input::place;
use crate::input::place::Ready;
use crate::input::place::ready;
use crate::model::Model;
use crate::parallel::legal_widths;
use crate::placement::Problem;
use crate::placement::fewest_devices;
use crate::placement::obstacle;
use crate::plan::Job;
use crate::plan::Placement;
use crate::plan::Plan;
use crate::plan::Profile;
use crate::plan::Question;
use crate::plan::Recompute;
use crate::plan::TimeModel;
use crate::plan::Units;
use crate::plan::check::placement::check;
use crate::plan::cost;
use crate::profile;
use crate::report::placement as report;
use crate::report::placement::Alternative;
use crate::strategy::Best;
use crate::strategy::Degrees;
use crate::strategy::Planner;
use crate::strategy::Terms;
use crate::strategy::Training;

/// What a user asks, every default filled in.
struct Request {
    question: Question,
    model: Model,
    conventions: &'static Conventions,
    chip: Accelerator,
    terms: Terms,
    degrees: Option<Degrees>,
    table: EstimateTable,
}

/// Answers for a model.
pub(super) fn run(args: &Args, name: &str) -> Result<Exit, Refusal> {
    let mut request = Request::new(args, name)?;
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let ended = if args.fit {
        fit(args, &mut request, &mut out)?
    } else {
        match request.degrees {
            Some(degrees) => given(args, &request, degrees, &mut out)?,
            None => search(args, &request, &mut out)?,
        }
    };
    out.flush()?;
    Ok(ended)
}

fn search(args: &Args, request: &Request, out: &mut dyn Write) -> Result<Exit, Refusal> {
    let Some((best, plan)) = request.best(&request.terms)? else {
        return infeasible(args, request, out);
    };
    args.save(&plan)?;
    if args.json {
        writeln!(out, "{:#}", report::value(&plan))?;
        return Ok(Exit::Done);
    }
    report::text(&plan, out)?;
    args.draw(&plan, out)?;
    report::alternatives(&plan, &request.alternatives(&best)?, out)?;
    Ok(Exit::Done)
}

fn infeasible(args: &Args, request: &Request, out: &mut dyn Write) -> Result<Exit, Refusal> {
    let asked = request.asked(&request.terms)?;
    let problems = request.problems(&asked);
    let obstacles = problems.iter().map(|problem| (problem, obstacle(problem)));
    let reason = report::reason(&Units::physical(), obstacles);
    if args.json {
        writeln!(out, "{:#}", report::infeasible(&request.question.model.name, &reason))?;
    } else {
        writeln!(
            out,
            "{} on {}: nothing fits: {reason}",
            request.question.model.name, request.terms.design
        )?;
    }
    Ok(Exit::Negative)
}

/// The fewest devices on which the model fits, and the best placement on them.
fn fit(args: &Args, request: &mut Request, out: &mut dyn Write) -> Result<Exit, Refusal> {
    let widest = request.terms.widths.iter().max().copied().unwrap_or(1);
    let deepest = request.model.sequence.len() as u64 * widest;
    request.terms.cluster.devices = deepest;
    let asked = request.asked(&request.terms)?;
    let Some(fewest) = request.problems(&asked).iter().filter_map(fewest_devices).min() else {
        return infeasible(args, request, out);
    };
    if !args.json {
        writeln!(
            out,
            "{} fits on {fewest} {} and on no fewer: memory is the limit\n",
            request.question.model.name, request.terms.design
        )?;
    }
    request.terms.cluster.devices = fewest;
    search(args, request, out)
}

/// Evaluates a given strategy, its layers cut evenly, beside the best cut and the best strategy.
fn given(
    args: &Args,
    request: &Request,
    degrees: Degrees,
    out: &mut dyn Write,
) -> Result<Exit, Refusal> {
    let plan = match (request.evenly_cut(degrees)?, args.json) {
        (Ok(plan), true) => {
            writeln!(out, "{:#}", report::value(&plan))?;
            args.save(&plan)?;
            return Ok(Exit::Done);
        }
        (Ok(plan), false) => {
            args.save(&plan)?;
            report::text(&plan, out)?;
            args.draw(&plan, out)?;
            Some(plan)
        }
        (Err(reason), true) => {
            writeln!(out, "{:#}", report::infeasible(&request.question.model.name, &reason))?;
            return Ok(Exit::Negative);
        }
        (Err(reason), false) => {
            writeln!(out, "{}: the strategy does not fit: {reason}", request.question.model.name)?;
            None
        }
    };
    report::beside(plan.as_ref(), &request.beside(degrees)?, out)?;
    Ok(if plan.is_some() { Exit::Done } else { Exit::Negative })
}

impl Request {
    fn new(args: &Args, name: &str) -> Result<Self, Refusal> {
        let Ready { question, model, chip, terms, degrees } = ready(question(args, name)?, name)?;
        let table = EstimateTable::new(terms.options);
        let conventions = Conventions::of(question.published);
        Ok(Self { question, model, conventions, chip, terms, degrees, table })
    }

    fn refused(&self, reason: &dyn std::fmt::Display) -> Refusal {
        Refusal::Options(format!("{}: {reason}", self.question.model.name))
    }

    fn training(&self, terms: &Terms) -> Result<Training, Refusal> {
        let illegal =
            terms.widths.iter().find(|width| !legal_widths(&self.model.spec).contains(width));
        if let Some(&width) = illegal {
            let setting = terms.setting(self.question.sequence, width, 1);
            crate::parallel::shard(&self.model, setting).map_err(|reason| self.refused(&reason))?;
        }
        Training::new(&self.question.model.name, self.model.clone(), self.question.sequence, terms)
            .map_err(|reason| self.refused(&reason))
    }

    /// The best way to train on these terms, with its plan; `None` where nothing fits.
    fn best(&self, terms: &Terms) -> Result<Option<(Best, Plan)>, Refusal> {
        let training = self.training(terms)?;
        let planner = Planner { terms, training: &training, table: &self.table };
        let Some(best) = planner.best_on(&self.chip) else {
            return Ok(None);
        };
        let plan = self.plan(&planner, &best);
        Ok(Some((best, plan)))
    }

    /// The plan of a way to train, with all that it takes to verify it.
    fn plan(&self, planner: &Planner, best: &Best) -> Plan {
        let plan = place::plan(planner, &self.chip, &self.question, best);
        check(&plan).expect("a plan that was found keeps every rule");
        plan
    }

    /// What is asked of the placement of every division on these terms; refused where none can be
    /// timed.
    fn asked(&self, terms: &Terms) -> Result<Vec<(Profile, Job)>, Refusal> {
        let training = self.training(terms)?;
        let planner = Planner { terms, training: &training, table: &self.table };
        let mut asked = Vec::new();
        let mut untimed = None;
        for at in 0..training.divisions.len() {
            match planner.asked(at, &self.chip) {
                Ok(found) => asked.push(found),
                Err(reason) => untimed = Some(reason),
            }
        }
        match untimed {
            Some(reason) if asked.is_empty() => Err(self.refused(&reason)),
            _ => Ok(asked),
        }
    }

    fn problems<'a>(&self, asked: &'a [(Profile, Job)]) -> Vec<Problem<'a>> {
        let choices = &self.terms.recompute;
        let each = asked.iter().flat_map(|(profile, job)| {
            choices.iter().map(move |&choice| Problem::new(profile, job, choice))
        });
        each.collect()
    }

    /// The best micro-batch and recompute for a strategy whose layers are cut evenly, or why none
    /// fits.
    fn evenly_cut(&self, degrees: Degrees) -> Result<Result<Plan, String>, Refusal> {
        let sequence = &self.model.sequence;
        if profile::even_cut(sequence, degrees.stages).is_none() {
            let most = profile::most_frequent(sequence)
                .map_or(0, |kind| sequence.iter().filter(|&&other| other == kind).count());
            let n_stages = degrees.stages;
            let problem =
                format!("{n_stages} stages cannot share {most} layers; give p from 1 to {most}");
            return Err(Refusal::Options(format!("--strategy: {problem}")));
        }
        let training = self.training(&self.terms)?;
        let planner = Planner { terms: &self.terms, training: &training, table: &self.table };
        let Some(best) = planner.given(&self.chip, degrees) else {
            return Ok(Err(self.overflow(degrees)?));
        };
        Ok(Ok(self.plan(&planner, &best)))
    }

    /// What is in the way of a strategy: its fullest stage, with the least that a micro-batch and a
    /// recompute choice need there.
    fn overflow(&self, degrees: Degrees) -> Result<String, Refusal> {
        let mut tightest: Option<(u128, String)> = None;
        for (profile, job) in &self.asked(&self.terms)? {
            let Degrees { stages, data_parallel, .. } = degrees;
            let pipeline = profile::even_cut(&profile.sequence, stages);
            let Some(pipeline) = pipeline.filter(|_| job.micro_batches >= data_parallel) else {
                continue;
            };
            for &recompute in &self.terms.recompute {
                let placement = Placement { data_parallel, recompute, pipeline: pipeline.clone() };
                let cost = cost(profile, job, &placement);
                let needs = cost.stages.iter().map(|stage| stage.memory.total()).enumerate();
                let (stage, needed) = needs.max_by_key(|&(_, needed)| needed).unwrap_or((0, 0));
                if tightest.as_ref().is_none_or(|(least, _)| needed < *least) {
                    let said = report::overflow(job.memory, stage, needed, recompute);
                    tightest = Some((needed, said));
                }
            }
        }
        let none = || "there are fewer micro-batches than pipelines".into();
        Ok(tightest.map_or_else(none, |(_, said)| said))
    }

    /// What users ask next: what each choice brings.
    fn alternatives(&self, best: &Best) -> Result<Vec<Alternative>, Refusal> {
        let terms = || self.terms.clone();
        let mut rows = Vec::new();
        let mut add = |title: &str, others: Vec<Terms>| {
            rows.push(self.alternative(title, &others)?);
            Ok::<(), Refusal>(())
        };
        let chosen = &best.chosen;
        if chosen.tensor_parallel > 1 && self.terms.widths.contains(&1) {
            add("without tensor parallelism", vec![Terms { widths: vec![1], ..terms() }])?;
        }
        let repeats = |how: &Recompute| {
            let recompute = vec![*how];
            match how {
                Recompute::None => None,
                Recompute::Full => Some(Terms { recompute, ..terms() }),
                // A single stage is the last one, which repeats nothing.
                Recompute::Stage => Some(Terms { recompute, stages: 2..=usize::MAX, ..terms() }),
            }
        };
        let repeating: Vec<Terms> = self.terms.recompute.iter().filter_map(repeats).collect();
        if chosen.repeats_nothing() {
            if !repeating.is_empty() {
                add("with recompute", repeating)?;
            }
        } else if self.terms.recompute.contains(&Recompute::None) {
            let recompute = vec![Recompute::None];
            add("without recompute", vec![Terms { recompute, ..terms() }])?;
        }
        if chosen.stages > 1 {
            add("without pipeline", vec![Terms { stages: 1..=1, ..terms() }])?;
        }
        let devices = self.terms.cluster.devices;
        if devices >= 2 {
            let cluster = Cluster { devices: devices / 2, ..self.terms.cluster };
            let widths = &self.terms.widths;
            let widths = widths.iter().copied().filter(|&width| width <= devices / 2).collect();
            add("with half the devices", vec![Terms { cluster, widths, ..terms() }])?;
        }
        Ok(rows)
    }

    /// What the best cut of a given strategy, and the best strategy, would bring.
    fn beside(&self, degrees: Degrees) -> Result<Vec<Alternative>, Refusal> {
        let Degrees { stages: n_stages, data_parallel: degree, .. } = degrees;
        let same = Terms {
            data_parallel: degree..=degree,
            stages: n_stages..=n_stages,
            ..self.terms.clone()
        };
        let any = Terms {
            widths: place::default_widths(&self.model, self.conventions),
            ..self.terms.clone()
        };
        Ok(vec![
            self.alternative("the best cut", &[same])?,
            self.alternative("the best strategy", &[any])?,
        ])
    }

    /// The fastest on any of these terms.
    fn alternative(&self, title: &str, others: &[Terms]) -> Result<Alternative, Refusal> {
        let mut fastest: Option<Best> = None;
        for terms in others.iter().filter(|terms| !terms.widths.is_empty()) {
            let Some((best, _)) = self.best(terms)? else { continue };
            if fastest.as_ref().is_none_or(|known| best.found.rank < known.found.rank) {
                fastest = Some(best);
            }
        }
        let strategy = fastest.map(|best| {
            let chosen = &best.chosen;
            let line = report::strategy(
                (chosen.data_parallel, best.found.rank.stages, chosen.tensor_parallel),
                Some(chosen.micro_batch),
                chosen.recompute,
            );
            (best.found.rank.time, line)
        });
        Ok(Alternative { title: title.to_owned(), strategy })
    }
}

/// The question that the options ask, every default filled in.
fn question(args: &Args, name: &str) -> Result<Question, Refusal> {
    let conventions = Conventions::of(args.published);
    let design = args.design.source()?;
    let defaults = place::question(name, &design.name, devices(args)?, conventions, &files::small)?;
    let tensor_parallel = match (&args.tensor_parallel, args.strategy) {
        (Some(_), Some(_)) => {
            let problem = "--strategy says how wide it is; leave out --tensor-parallel";
            return Err(Refusal::Options(problem.into()));
        }
        (_, Some(strategy)) => vec![strategy.tensor_parallel],
        (Some(widths), None) => ascending(widths),
        (None, None) => defaults.tensor_parallel.clone(),
    };
    let recompute = args.recompute.map(RecomputeChoice::choices);
    let sequence = args.options.seq.unwrap_or(defaults.sequence);
    let global_batch = match &args.batch_tokens {
        Some(text) => nearest_batch(read_tokens(text, "--batch-tokens")?, sequence),
        None => args.global_batch.unwrap_or(defaults.global_batch),
    };
    Ok(Question {
        sequence,
        knobs: args.design.turned_knobs()?,
        global_batch,
        micro_batches: micro_batches(args, global_batch)?,
        tensor_parallel,
        recompute: recompute.unwrap_or_else(|| defaults.recompute.clone()),
        optimizer: args.optimizer.unwrap_or(defaults.optimizer),
        attention: args.options.attention.unwrap_or(defaults.attention),
        sequence_parallel: args.options.sequence_parallel,
        time_model: args.time_model.map_or(defaults.time_model, TimeModel::from),
        strategy: args.strategy,
        ..defaults
    })
}

fn ascending(list: &[u64]) -> Vec<u64> {
    let mut list = list.to_vec();
    list.sort_unstable();
    list.dedup();
    list
}

/// The devices at hand: enough for a given strategy.
fn devices(args: &Args) -> Result<u64, Refusal> {
    let devices = match args.nodes {
        None => args.devices,
        Some(nodes) => {
            let (hardware, _) = args.design.resolve(Conventions::of(args.published))?;
            let per_node = hardware.physics.network.devices_per_node();
            Some(devices_of_nodes(nodes, per_node, "--nodes")?)
        }
    };
    let needed = args.strategy.map_or(Some(1024), super::devices_of);
    let devices = devices.or(needed).filter(|&n| n <= Job::LARGEST_COUNT);
    let devices = devices
        .ok_or_else(|| Refusal::Options("--strategy: it takes more than 2^32 devices".into()))?;
    match needed.filter(|&needed| args.strategy.is_some() && needed > devices) {
        None => Ok(devices),
        Some(short) => {
            let problem = format!("--strategy: it takes {short} devices, there are {devices}");
            Err(Refusal::Options(problem))
        }
    }
}

/// The micro-batch sizes to try; those of the user must divide the batch.
fn micro_batches(args: &Args, batch: u64) -> Result<Vec<u64>, Refusal> {
    let Some(given) = &args.micro_batch else {
        return Ok(place::default_micro_batches(batch));
    };
    match given.iter().find(|&&size| !batch.is_multiple_of(size)) {
        None => Ok(ascending(given)),
        Some(size) => {
            let near = (1..=*size).rev().find(|&other| batch.is_multiple_of(other)).unwrap_or(1);
            Err(Refusal::Options(format!(
                "--micro-batch {size} does not divide the batch of {batch} sequences; try {near}"
            )))
        }
    }
}
