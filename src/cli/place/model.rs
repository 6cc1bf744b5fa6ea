//! Placing a model on a cluster of accelerators.

use std::io::Write;

use super::Args;
use super::RecomputeChoice;
use super::Strategy;
use crate::cli::Exit;
use crate::cli::Refusal;
use crate::cli::model_args::load;
use crate::estimate::EstimateTable;
use crate::estimate::Options;
use crate::graph::Dag;
use crate::hardware::Accelerator;
use crate::hardware::Cluster;
use crate::hardware::network::Network;
use crate::input::Conventions;
use crate::model::Model;
use crate::model::Optimizer;
use crate::model::op::Op;
use crate::parallel::Setting;
use crate::parallel::Share;
use crate::parallel::legal_widths;
use crate::parallel::shard;
use crate::placement::Found;
use crate::placement::Problem;
use crate::placement::best_of;
use crate::placement::fewest_devices;
use crate::placement::obstacle;
use crate::placement::profile;
use crate::placement::profile::LayerGraphs;
use crate::plan::Answer;
use crate::plan::Job;
use crate::plan::Placement;
use crate::plan::Plan;
use crate::plan::Profile;
use crate::plan::Proof;
use crate::plan::Recompute;
use crate::plan::TimeModel;
use crate::plan::Training;
use crate::plan::Units;
use crate::plan::check::placement::check;
use crate::plan::cost;
use crate::report::placement as report;
use crate::report::placement::Alternative;
use crate::schedule::Rule;
use crate::units::Flops;

/// What a user asks, every default filled in.
struct Request {
    name: String,
    model: Model,
    setting: Setting,
    design: String,
    chip: Accelerator,
    network: Network,
    devices: u64,
    global_batch: u64,
    micro_batches: Vec<u64>,
    widths: Vec<u64>,
    recompute: Vec<Recompute>,
    optimizer: Optimizer,
    time_model: TimeModel,
    rule: Rule,
    table: EstimateTable,
}

/// The layers at one width and micro-batch, and what is asked of them.
struct Candidate {
    micro_batch: u64,
    profile: Profile,
    job: Job,
}

/// Answers for a model.
pub(super) fn run(args: &Args, name: &str) -> Result<Exit, Refusal> {
    let mut request = Request::new(args, name)?;
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    if args.fit {
        return fit(args, &mut request, &mut out);
    }
    let ended = match args.strategy {
        Some(strategy) => given(args, &request, strategy, &mut out)?,
        None => search(args, &request, &mut out)?,
    };
    out.flush()?;
    Ok(ended)
}

fn search(args: &Args, request: &Request, out: &mut dyn Write) -> Result<Exit, Refusal> {
    let candidates = request.candidates(request.devices, &request.widths)?;
    let problems = request.problems(&candidates);
    let Some((place, found)) = best(&problems)? else {
        return infeasible(args, request, &problems, out);
    };
    let candidate = &candidates[place / request.recompute.len()];
    let plan = request.plan(candidate, &found.placement, request.optimal());
    args.save(&plan)?;
    if args.json {
        writeln!(out, "{:#}", report::value(&plan))?;
        return Ok(Exit::Done);
    }
    report::text(&plan, out)?;
    args.draw(&plan, out)?;
    report::alternatives(&plan, &request.alternatives(&candidates, &plan)?, out)?;
    Ok(Exit::Done)
}

fn infeasible(
    args: &Args,
    request: &Request,
    problems: &[Problem],
    out: &mut dyn Write,
) -> Result<Exit, Refusal> {
    let obstacles = problems.iter().map(|problem| (problem, obstacle(problem)));
    let reason = report::reason(&Units::physical(), obstacles);
    if args.json {
        writeln!(out, "{:#}", report::infeasible(&request.name, &reason))?;
    } else {
        writeln!(out, "{} on {}: nothing fits: {reason}", request.name, request.design)?;
    }
    Ok(Exit::Negative)
}

/// The fewest devices on which the model fits, and the best placement on them.
fn fit(args: &Args, request: &mut Request, out: &mut dyn Write) -> Result<Exit, Refusal> {
    let most = request.widths.iter().max().copied().unwrap_or(1);
    let deepest = request.model.sequence.len() as u64 * most;
    let candidates = request.candidates(deepest, &request.widths)?;
    let problems = request.problems(&candidates);
    let Some(fewest) = problems.iter().filter_map(fewest_devices).min() else {
        return infeasible(args, request, &problems, out);
    };
    if !args.json {
        writeln!(
            out,
            "{} fits on {fewest} {} and on no fewer: memory is the limit\n",
            request.name, request.design
        )?;
    }
    request.devices = fewest;
    search(args, request, out)
}

/// Evaluates a given strategy, its layers cut evenly, beside the best cut and the best strategy.
fn given(
    args: &Args,
    request: &Request,
    strategy: Strategy,
    out: &mut dyn Write,
) -> Result<Exit, Refusal> {
    let candidates = request.candidates(request.devices, &[strategy.tensor_parallel])?;
    let plan = evenly_cut(request, &candidates, strategy)?;
    let plan = match (plan, args.json) {
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
            writeln!(out, "{:#}", report::infeasible(&request.name, &reason))?;
            return Ok(Exit::Negative);
        }
        (Err(reason), false) => {
            writeln!(out, "{}: the strategy does not fit: {reason}", request.name)?;
            None
        }
    };
    let rows = request.beside(&candidates, strategy)?;
    report::beside(plan.as_ref(), &rows, out)?;
    Ok(if plan.is_some() { Exit::Done } else { Exit::Negative })
}

/// The best micro-batch and recompute for a strategy whose layers are cut evenly, or why none
/// fits.
fn evenly_cut(
    request: &Request,
    candidates: &[Candidate],
    strategy: Strategy,
) -> Result<Result<Plan, String>, Refusal> {
    let sequence = &request.model.sequence;
    let Strategy { pipeline, data_parallel, .. } = strategy;
    let n_stages = usize::try_from(pipeline).unwrap_or(usize::MAX);
    let pipeline = profile::even_cut(sequence, n_stages).ok_or_else(|| {
        let most = profile::most_frequent(sequence)
            .map_or(0, |kind| sequence.iter().filter(|&&other| other == kind).count());
        let problem =
            format!("{n_stages} stages cannot share {most} layers; give p from 1 to {most}");
        Refusal::Options(format!("--strategy: {problem}"))
    })?;
    let mut best: Option<(u128, &Candidate, Placement)> = None;
    let mut tightest: Option<(u128, String)> = None;
    let enough = candidates.iter().filter(|c| c.job.micro_batches >= data_parallel);
    let choices = enough.flat_map(|c| request.recompute.iter().map(move |&r| (c, r)));
    for (candidate, recompute) in choices {
        let placement = Placement { data_parallel, recompute, pipeline: pipeline.clone() };
        let cost = cost(&candidate.profile, &candidate.job, &placement);
        let needs = cost.stages.iter().map(|stage| stage.memory.total()).enumerate();
        let (stage, needed) = needs.max_by_key(|&(_, needed)| needed).unwrap_or((0, 0));
        if needed > u128::from(candidate.job.memory) {
            if tightest.as_ref().is_none_or(|(least, _)| needed < *least) {
                let said = report::overflow(candidate.job.memory, stage, needed, recompute);
                tightest = Some((needed, said));
            }
        } else if best.as_ref().is_none_or(|(time, _, _)| cost.time_per_batch < *time) {
            best = Some((cost.time_per_batch, candidate, placement));
        }
    }
    let none = || tightest.map_or("there are fewer micro-batches than pipelines".into(), |t| t.1);
    Ok(best
        .map(|(_, candidate, placement)| request.plan(candidate, &placement, Proof::Given))
        .ok_or_else(none))
}

fn best(problems: &[Problem]) -> Result<Option<(usize, Found)>, Refusal> {
    best_of(problems, None).map_err(|many| Refusal::Options(many.to_string()))
}

impl Request {
    fn new(args: &Args, name: &str) -> Result<Self, Refusal> {
        let conventions = Conventions::of(args.published);
        let model = load(name)?;
        let setting = args.options.setting(&model, conventions);
        let (hardware, chip) = args.design.resolve(conventions)?;
        let widths = match (&args.tensor_parallel, args.strategy) {
            (Some(_), Some(_)) => {
                let problem = "--strategy says how wide it is; leave out --tensor-parallel";
                return Err(Refusal::Options(problem.into()));
            }
            (_, Some(strategy)) => vec![strategy.tensor_parallel],
            (Some(widths), None) => widths.clone(),
            (None, None) => {
                let legal = legal_widths(&model.spec);
                let widths = conventions.widths.iter().copied();
                widths.filter(|width| legal.contains(width)).collect()
            }
        };
        let needed = args.strategy.map_or(Some(1024), Strategy::devices);
        let devices = args.devices.or(needed).filter(|&n| n <= Job::LARGEST_COUNT);
        let devices = devices.ok_or_else(|| {
            Refusal::Options("--strategy: it takes more than 2^32 devices".into())
        })?;
        if let Some(short) = needed.filter(|&needed| args.strategy.is_some() && needed > devices) {
            let problem = format!("--strategy: it takes {short} devices, there are {devices}");
            return Err(Refusal::Options(problem));
        }
        let recompute = args.recompute.map(RecomputeChoice::choices);
        let vector_costs = conventions.vector_costs;
        Ok(Self {
            name: name.to_owned(),
            micro_batches: micro_batches(args)?,
            model,
            setting,
            design: hardware.name,
            chip,
            network: hardware.physics.network,
            devices,
            global_batch: args.global_batch,
            widths,
            recompute: recompute.unwrap_or_else(|| conventions.recompute.to_vec()),
            optimizer: args.optimizer.unwrap_or(conventions.optimizer),
            time_model: args.time_model.map_or(conventions.time_model, TimeModel::from),
            rule: conventions.rule,
            table: EstimateTable::new(Options { vector_costs, ..Options::default() }),
        })
    }

    /// One candidate for each width and micro-batch, on so many devices.
    fn candidates(&self, devices: u64, widths: &[u64]) -> Result<Vec<Candidate>, Refusal> {
        let cluster = Cluster { devices, network: self.network };
        let place = (&self.chip, &cluster);
        let refused =
            |reason: &dyn std::fmt::Display| Refusal::Options(format!("{}: {reason}", self.name));
        let mut candidates = Vec::new();
        for &width in widths {
            for &micro_batch in &self.micro_batches {
                let setting = Setting { micro_batch, tensor_parallel: width, ..self.setting };
                let share = shard(&self.model, setting).map_err(|illegal| refused(&illegal))?;
                if profile::is_too_deep(&share) {
                    return Err(refused(&"has more than 2,000 layers"));
                }
                let passes = LayerGraphs::new(&share)
                    .passes(&share, place, &self.table, self.rule)
                    .map_err(|large| refused(&large))?;
                let micro_batches = self.global_batch / micro_batch;
                let (optimizer, model) = (self.optimizer, self.time_model);
                let job = profile::job(place, optimizer, micro_batches, model, &self.table)
                    .map_err(|large| refused(&large))?;
                let profile = profile::profile(&share, &passes);
                job.validate(&profile).map_err(|flaw| refused(&flaw))?;
                candidates.push(Candidate { micro_batch, profile, job });
            }
        }
        Ok(candidates)
    }

    fn problems<'a>(&self, candidates: &'a [Candidate]) -> Vec<Problem<'a>> {
        candidates
            .iter()
            .flat_map(|candidate| {
                let Candidate { profile, job, .. } = candidate;
                self.recompute.iter().map(|&choice| Problem::new(profile, job, choice))
            })
            .collect()
    }

    fn optimal(&self) -> Proof {
        Proof::Optimal {
            widths: self.widths.clone(),
            recompute: self.recompute.clone(),
            micro_batch_sizes: self.micro_batches.clone(),
        }
    }

    fn plan(&self, candidate: &Candidate, placement: &Placement, proof: Proof) -> Plan {
        let Candidate { micro_batch, profile, job } = candidate;
        let plan = Plan {
            schema: Plan::SCHEMA.into(),
            version: Plan::VERSION,
            name: self.name.clone(),
            units: Units::physical(),
            training: Some(Training {
                design: self.design.clone(),
                global_batch: self.global_batch,
                micro_batch: *micro_batch,
                sequence: self.setting.sequence,
                optimizer: self.optimizer.name().into(),
                attention: self.setting.attention.name().into(),
                sequence_parallel: self.setting.sequence_parallel,
                flops_per_sequence: self.flops_per_sequence(),
                peak_flops_per_second: self.peak(),
            }),
            job: job.clone(),
            profile: profile.clone(),
            answer: Answer::new(profile, job, placement),
            proof,
        };
        check(&plan).expect("a plan that was found keeps every rule");
        plan
    }

    fn peak(&self) -> u64 {
        u64::try_from(self.chip.peak_flops_per_second()).unwrap_or(u64::MAX)
    }

    /// Operations of one sequence on the whole model, what is repeated not counted.
    fn flops_per_sequence(&self) -> u128 {
        let setting = Setting { micro_batch: 1, tensor_parallel: 1, ..self.setting };
        let share: Share = shard(&self.model, setting).expect("one device can hold any layer");
        let flops = |ops: &Dag<Op>| ops.nodes().iter().map(Op::flops).sum::<Flops>().0;
        let layers = share.sequence.iter().map(|&kind| &share.kinds[kind]);
        layers.map(|l| flops(&l.forward) + flops(&l.backward) - l.repeated.0).sum()
    }

    /// What users ask next: what each choice brings.
    fn alternatives(
        &self,
        candidates: &[Candidate],
        plan: &Plan,
    ) -> Result<Vec<Alternative>, Refusal> {
        let problems = self.problems(candidates);
        let mut rows = Vec::new();
        let mut add = |title: &str, keep: &dyn Fn(&Problem) -> bool| {
            let kept: Vec<Problem> = problems.iter().filter(|p| keep(p)).cloned().collect();
            if !kept.is_empty() && kept.len() < problems.len() {
                let found = best(&kept)?;
                rows.push(self.alternative(title, &kept, found));
            }
            Ok::<(), Refusal>(())
        };
        if plan.profile.width > 1 {
            add("without tensor parallelism", &|p| p.profile.width == 1)?;
        }
        if plan.answer.recompute == Recompute::None {
            add("with recompute", &|p| p.recompute != Recompute::None)?;
        } else {
            add("without recompute", &|p| p.recompute == Recompute::None)?;
        }
        let one = plan.answer.stages.len() == 1;
        let unpiped: Vec<Problem> =
            problems.iter().map(|p| Problem { stages: 1..=1, ..p.clone() }).collect();
        if !one {
            rows.push(self.alternative("without pipeline", &unpiped, best(&unpiped)?));
        }
        if self.devices >= 2 {
            let half = self.candidates(self.devices / 2, &self.widths)?;
            let halves = self.problems(&half);
            rows.push(self.alternative("with half the devices", &halves, best(&halves)?));
        }
        Ok(rows)
    }

    /// What the best cut of a given strategy, and the best strategy, would bring.
    fn beside(
        &self,
        candidates: &[Candidate],
        strategy: Strategy,
    ) -> Result<Vec<Alternative>, Refusal> {
        let n_stages = usize::try_from(strategy.pipeline).unwrap_or(usize::MAX);
        let degree = strategy.data_parallel;
        let problems = self.problems(candidates);
        let same: Vec<Problem> = problems
            .iter()
            .map(|p| Problem {
                data_parallel: degree..=degree,
                stages: n_stages..=n_stages,
                ..p.clone()
            })
            .collect();
        let mut rows = vec![self.alternative("the best cut", &same, best(&same)?)];
        let legal = legal_widths(&self.model.spec);
        let widths: Vec<u64> = [1, 2, 4, 8].into_iter().filter(|w| legal.contains(w)).collect();
        let all = self.candidates(self.devices, &widths)?;
        let problems = self.problems(&all);
        rows.push(self.alternative("the best strategy", &problems, best(&problems)?));
        Ok(rows)
    }

    fn alternative(
        &self,
        title: &str,
        problems: &[Problem],
        found: Option<(usize, Found)>,
    ) -> Alternative {
        let strategy = found.map(|(place, found)| {
            let problem = &problems[place];
            let micro_batch = self.global_batch / problem.job.micro_batches;
            let Placement { data_parallel, recompute, pipeline } = found.placement;
            let line = report::strategy(
                (data_parallel, pipeline.n_stages(), problem.profile.width),
                Some(micro_batch),
                recompute,
            );
            (found.rank.time, line)
        });
        Alternative { title: title.to_owned(), strategy }
    }
}

/// The micro-batch sizes to try; those of the user must divide the batch.
fn micro_batches(args: &Args) -> Result<Vec<u64>, Refusal> {
    let batch = args.global_batch;
    let Some(given) = &args.micro_batch else {
        return Ok([1, 2, 4, 8].into_iter().filter(|&size| batch.is_multiple_of(size)).collect());
    };
    match given.iter().find(|&&size| !batch.is_multiple_of(size)) {
        None => Ok(given.clone()),
        Some(size) => {
            let near = (1..=*size).rev().find(|&other| batch.is_multiple_of(other)).unwrap_or(1);
            Err(Refusal::Options(format!(
                "--micro-batch {size} does not divide --global-batch {batch}; try {near}"
            )))
        }
    }
}
