//! Placing a model on a cluster of accelerators.

use std::io::Write;

use super::Args;
use crate::Exit;
use crate::Refusal;
use crate::files;
use crate::progress;
use phaze::estimate::EstimateTable;
use phaze::hardware::Accelerator;
use phaze::input::Conventions;
use phaze::input::InputError;
use phaze::input::batch::default_sequence;
use phaze::input::batch::devices_of_nodes;
use phaze::input::batch::nearest_batch;
use phaze::input::batch::read_tokens;
use phaze::input::place;
use phaze::input::place::Basics;
use phaze::input::place::Ready;
use phaze::input::place::ready;
use phaze::input::source;
use phaze::input::strategy;
use phaze::model::Model;
use phaze::parallel::frameworks::Framework;
use phaze::parallel::is_legal;
use phaze::parallel::zero::Zero;
use phaze::placement::Choices;
use phaze::placement::Problem;
use phaze::placement::Usage;
use phaze::placement::fewest_devices;
use phaze::placement::fits;
use phaze::placement::obstacle;
use phaze::placement::refusal;
use phaze::plan::GivenStrategy;
use phaze::plan::Job;
use phaze::plan::Limits;
use phaze::plan::Plan;
use phaze::plan::Profile;
use phaze::plan::Question;
use phaze::plan::StrategySpace;
use phaze::plan::TimeModel;
use phaze::plan::Units;
use phaze::plan::check::placement::check;
use phaze::report::placement as report;
use phaze::report::placement::Alternative;
use phaze::strategy::Best;
use phaze::strategy::Planner;
use phaze::strategy::Sharded;
use phaze::strategy::Terms;
use phaze::strategy::Training;
use phaze::strategy::settings;
use phaze::strategy::shardings;

/// What a user asks, every default filled in.
struct Request {
    question: Question,
    /// The space before a strategy that was given narrowed it.
    whole: StrategySpace,
    model: Model,
    chip: Accelerator,
    terms: Terms,
    table: EstimateTable,
}

/// Answers for a model.
pub(super) fn run(args: &Args, name: &str) -> Result<Exit, Refusal> {
    let mut request = Request::new(args, name)?;
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let ended = if args.fit {
        fit(args, &mut request, &mut out)?
    } else {
        search(args, &mut request, None, &mut out)?
    };
    out.flush()?;
    Ok(ended)
}

/// How many devices a model needs.
struct Fitted {
    fewest: u64,
    per_node: u64,
    comfortable: u64,
}

impl Fitted {
    /// Whole nodes that have the fewest devices.
    fn nodes(&self) -> u64 {
        self.fewest.div_ceil(self.per_node)
    }
}

fn search(
    args: &Args,
    request: &mut Request,
    fitted: Option<&Fitted>,
    out: &mut dyn Write,
) -> Result<Exit, Refusal> {
    let mut found = request.best(&request.terms)?;
    if found.is_none() && args.strategy.is_some() {
        // What a cluster runs is not called infeasible for a few percent of memory.
        request.reserve(OVER_FULL);
        found = request.best(&request.terms)?;
    }
    let Some((best, plan)) = found else {
        return infeasible(args, request, out);
    };
    args.save(&plan)?;
    if args.json {
        let mut value = report::value(&plan);
        if let Some(fitted) = fitted {
            value["fit"] = serde_json::json!({
                "fewest_devices": fitted.fewest,
                "nodes": fitted.nodes(),
                "devices_per_node": fitted.per_node,
                "comfortable_devices": fitted.comfortable,
            });
        }
        writeln!(out, "{value:#}")?;
        return Ok(Exit::Done);
    }
    report::text(&plan, out)?;
    args.draw(&plan, out)?;
    report::alternatives(&plan, &request.alternatives(&best), out)?;
    Ok(Exit::Done)
}

/// Thousandths by which a strategy that was given may exceed the memory of a device.
const OVER_FULL: i64 = -50;

fn infeasible(args: &Args, request: &Request, out: &mut dyn Write) -> Result<Exit, Refusal> {
    let asked = request.asked(&request.terms)?;
    let problems: Vec<Problem> = asked.iter().map(Asked::problem).collect();
    let obstacles = problems.iter().map(|problem| (problem, obstacle(problem)));
    let refusal = problems.iter().find_map(refusal);
    let reason = match refusal {
        Some(broken) => format!("memory and devices would do, but {broken}"),
        None if request.would_fit_with_some_idle(&problems) => format!(
            "memory would do, but plans that {} accepts use all {} devices and give every pipeline as \
             many of the {} sequences: no degrees do both; change one of the numbers, or give \
             --launchable any",
            request.terms.space.framework,
            request.terms.cluster.devices,
            request.terms.global_batch
        ),
        None => report::reason(&Units::physical(), obstacles),
    };
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

/// The fewest devices on which the model fits, a comfortable number, and the best placement on it.
fn fit(args: &Args, request: &mut Request, out: &mut dyn Write) -> Result<Exit, Refusal> {
    let Some(fewest) = request.fewest_devices()? else {
        return infeasible(args, request, out);
    };
    let network = &request.terms.cluster.network;
    let per_node = network.devices_per_node().unwrap_or(1);
    // Twice the least leaves room for longer sequences and larger micro-batches.
    let comfortable = (2 * fewest).div_ceil(per_node) * per_node;
    let comfortable = comfortable.next_power_of_two();
    let fitted = Fitted { fewest, per_node, comfortable };
    if !args.json {
        let nodes = match (per_node, fitted.nodes()) {
            (1, _) => String::new(),
            (_, 1) => format!(" (1 node of {per_node})"),
            (_, nodes) => format!(" ({nodes} nodes of {per_node})"),
        };
        writeln!(
            out,
            "{} fits on {fewest} {}{nodes} and on no fewer: memory is the limit; {comfortable} \
             leave room\n",
            request.question.model.name, request.terms.design
        )?;
    }
    request.terms.cluster.devices = comfortable;
    request.question.devices = comfortable;
    search(args, request, Some(&fitted), out)
}

/// The most devices on which a model is made to fit.
const MOST_FITTED: u64 = 1 << 20;

/// What is asked of the placement of one division.
struct Asked {
    profile: Profile,
    job: Job,
    choices: Choices,
}

impl Asked {
    fn problem(&self) -> Problem<'_> {
        Problem { profile: &self.profile, job: &self.job, choices: &self.choices }
    }
}

impl Request {
    fn new(args: &Args, name: &str) -> Result<Self, Refusal> {
        let (question, whole) = question(args, name)?;
        let Ready { question, model, chip, terms } = ready(question, name)?;
        let table = EstimateTable::new(terms.options);
        Ok(Self { question, whole, model, chip, terms, table })
    }

    fn reserve(&mut self, per_mille: i64) {
        self.question.reserve_per_mille = per_mille;
        self.terms.reserve_per_mille = per_mille;
    }

    fn refused(&self, reason: &dyn std::fmt::Display) -> Refusal {
        Refusal::Options(format!("{}: {reason}", self.question.model.name))
    }

    fn training(&self, terms: &Terms) -> Result<Training, Refusal> {
        self.legal(terms)?;
        Training::new(&self.question.model.name, self.model.clone(), self.question.sequence, terms)
            .map_err(|reason| self.refused(&reason))
    }

    /// Refuses widths and context degrees that were asked for and that the model forbids.
    fn legal(&self, terms: &Terms) -> Result<(), Refusal> {
        let space = &terms.space;
        let mut alone = terms.clone();
        if self.model.spec.experts.is_none() {
            // Where experts are shared, so are tokens.
            alone.space.sequence_parallel = vec![false];
        }
        alone.space.micro_batches.truncate(1);
        alone.space.repeated.truncate(1);
        for &width in &space.tensor_parallel {
            for &context in &space.context_parallel {
                alone.space.tensor_parallel = vec![width];
                alone.space.context_parallel = vec![context];
                alone.space.context_kinds = space.context_kinds[..1].to_vec();
                let found = settings(&self.model, self.question.sequence, &alone);
                let given = width_or_context_given(&self.whole, space, width, context);
                if let (Some(&setting), true) = (found.first(), given) {
                    is_legal(&self.model, setting).map_err(|reason| self.refused(&reason))?;
                }
            }
        }
        Ok(())
    }

    /// The best way to train on these terms, with its plan; `None` where nothing fits.
    fn best(&self, terms: &Terms) -> Result<Option<(Best, Plan)>, Refusal> {
        let training = self.training(terms)?;
        let planner = Planner { terms, training: &training, table: &self.table };
        let what = "looking for the best strategy";
        let Some(best) = progress::timed(what, || planner.best_on(&self.chip)) else {
            return Ok(None);
        };
        let plan = place::plan(&planner, &self.chip, &self.question, &best);
        check(&plan).expect("a plan that was found keeps every rule");
        Ok(Some((best, plan)))
    }

    /// What is asked of the placement of every division on these terms; refused where none can be
    /// timed.
    fn asked(&self, terms: &Terms) -> Result<Vec<Asked>, Refusal> {
        let training = self.training(terms)?;
        let planner = Planner { terms, training: &training, table: &self.table };
        let mut asked = Vec::new();
        let mut untimed = None;
        let divisions = training.divisions.iter().enumerate();
        let ways = divisions.flat_map(|(at, division)| {
            shardings(terms, division).into_iter().map(move |sharded| (at, sharded))
        });
        for (at, sharded) in ways {
            match planner.asked(at, &self.chip) {
                Ok((profile, job)) => {
                    asked.extend(terms.space.recompute.iter().map(|&recompute| Asked {
                        profile: profile.clone(),
                        job: job.clone(),
                        choices: training.choices(terms, at, (sharded, recompute)),
                    }));
                }
                Err(reason) => untimed = Some(reason),
            }
        }
        match untimed {
            Some(reason) if asked.is_empty() => Err(self.refused(&reason)),
            _ => Ok(asked),
        }
    }

    /// Whether something fits where some devices may be idle and pipelines may differ.
    fn would_fit_with_some_idle(&self, problems: &[Problem]) -> bool {
        self.terms.space.framework != Framework::Any
            && problems.iter().any(|problem| {
                let choices = Choices { usage: Usage::Any, legal: None, ..problem.choices.clone() };
                let needed = fewest_devices(&Problem { choices: &choices, ..*problem });
                needed.is_some_and(|needed| needed <= problem.job.devices)
            })
    }

    /// The fewest devices on which some strategy fits, whoever runs it; `None` where none does.
    fn fewest_devices(&self) -> Result<Option<u64>, Refusal> {
        let mut terms = self.terms.clone();
        terms.cluster.devices = MOST_FITTED;
        // Others may be idle.
        terms.space.framework = Framework::Any;
        let training = self.training(&terms)?;
        let planner = Planner { terms: &terms, training: &training, table: &self.table };
        let mut fewest: Option<u64> = None;
        let divisions = training.divisions.iter().enumerate();
        for (at, division) in divisions.filter(|(_, d)| d.cluster.devices == MOST_FITTED) {
            let Ok((profile, mut job)) = planner.asked(at, &self.chip) else { continue };
            let each = division.share.setting.devices();
            let devices = |sharded: &Sharded| sharded.data_parallel * sharded.ranks * each;
            let mut ways = shardings(&terms, division);
            ways.sort_by_key(|way| way.as_ref().map(devices));
            for sharded in ways {
                let devices = sharded.as_ref().map(devices);
                if devices.zip(fewest).is_some_and(|(devices, known)| known <= devices) {
                    break;
                }
                for &recompute in &terms.space.recompute {
                    let mut choices = terms.choices(recompute, sharded);
                    // Several virtual stages hold no less.
                    choices.chunks = *choices.chunks.start()..=*choices.chunks.start();
                    job.devices = devices.unwrap_or(MOST_FITTED);
                    let problem = Problem { profile: &profile, job: &job, choices: &choices };
                    let found = match devices {
                        Some(devices) => fits(&problem).then_some(devices),
                        None => fewest_devices(&problem),
                    };
                    fewest = fewest.into_iter().chain(found).min();
                }
            }
        }
        Ok(fewest)
    }

    /// What users ask next: what each choice brings.
    fn alternatives(&self, best: &Best) -> Vec<Alternative> {
        let mut rows = Vec::new();
        let space = &self.terms.space;
        let with = |change: &dyn Fn(&mut StrategySpace)| {
            let mut terms = self.terms.clone();
            change(&mut terms.space);
            terms
        };
        let mut add = |title: &str, terms: Terms| rows.push(self.alternative(title, &terms));
        let chosen = &best.chosen.strategy;
        if self.whole != *space {
            let terms = Terms { space: self.whole.clone(), ..self.terms.clone() };
            add("nothing given", terms);
        }
        if space.framework != Framework::Any && self.whole == *space {
            add("launchable or not", with(&|space| space.framework = Framework::Any));
        }
        if space.tensor_parallel.len() > 1 {
            let others = |space: &mut StrategySpace| {
                space.tensor_parallel.retain(|&width| width != chosen.tensor_parallel);
            };
            add("with another width", with(&others));
        }
        if chosen.pipeline > 1 && space.pipeline.contains(1) {
            add("without pipeline", with(&|space| space.pipeline = Limits::only(1)));
        } else if chosen.pipeline == 1 && space.pipeline.most > 1 {
            let deeper = Limits { least: 2, most: space.pipeline.most };
            add("with a pipeline", with(&|space| space.pipeline = deeper));
        }
        rows
    }

    /// The fastest on these terms.
    fn alternative(&self, title: &str, terms: &Terms) -> Alternative {
        let fastest = match Training::new("", self.model.clone(), self.question.sequence, terms) {
            Err(_) => None,
            Ok(training) => {
                let planner = Planner { terms, training: &training, table: &self.table };
                planner.best_on(&self.chip)
            }
        };
        let strategy = fastest.map(|best| (best.found.rank.time, best.chosen.strategy.to_string()));
        Alternative { title: title.to_owned(), strategy }
    }
}

/// Whether a width or a context degree was asked for by name, not taken from the defaults.
fn width_or_context_given(
    whole: &StrategySpace,
    space: &StrategySpace,
    width: u64,
    context: u64,
) -> bool {
    let widths =
        whole.tensor_parallel != space.tensor_parallel || !whole.tensor_parallel.contains(&width);
    let contexts = whole.context_parallel != space.context_parallel
        || !whole.context_parallel.contains(&context);
    widths || contexts
}

/// The question that the options ask, every default filled in, and the space of strategies before
/// a part was given.
fn question(args: &Args, name: &str) -> Result<(Question, StrategySpace), Refusal> {
    let conventions = Conventions::of(args.published);
    let design = match (&args.design.design, args.published) {
        (None, false) => return Err(Refusal::Options(no_design())),
        _ => args.design.source()?,
    };
    let given = match &args.strategy {
        Some(text) => strategy::read(text, "--strategy")?,
        None => GivenStrategy::default(),
    };
    let (model, _) = source::model(name, &files::small)?;
    let longest = model.spec.max_sequence;
    let usual = if args.published { longest } else { default_sequence(longest) };
    let sequence = args.options.seq.unwrap_or(usual);
    let basics = Basics {
        model: name,
        hardware: &design.name,
        devices: devices(args, &given)?,
        sequence: Some(sequence),
        global_batch: match &args.batch_tokens {
            Some(text) => Some(nearest_batch(read_tokens(text, "--batch-tokens")?, sequence)),
            None => args.global_batch,
        },
        attention: args.options.attention,
        framework: args.launchable.as_deref().map(framework).transpose()?,
    };
    let mut question = place::question(&basics, conventions, &files::small)?;
    question.knobs = args.design.turned_knobs()?;
    question.ideal = args.design.ideal;
    question.precision = args.precision.unwrap_or_default();
    question.optimizer = args.optimizer.unwrap_or(question.optimizer);
    question.time_model = args.time_model.map_or(question.time_model, TimeModel::from);
    if let Some(percent) = args.reserve {
        question.reserve_per_mille = reserve(percent)?;
    }
    let whole = question.space.clone();
    narrow(args, &mut question)?;
    given.narrow(&mut question.space);
    Ok((question, whole))
}

fn no_design() -> String {
    let known = phaze::input::hardware::preset_names().join(", ");
    format!("--design is missing: name an accelerator ({known}) or give a hardware file")
}

/// Leaves of the space what single options ask for.
fn narrow(args: &Args, question: &mut Question) -> Result<(), Refusal> {
    let batch = question.global_batch;
    let space = &mut question.space;
    if let Some(sizes) = &args.micro_batch {
        space.micro_batches = micro_batches(sizes, batch)?;
    }
    if let Some(widths) = &args.tensor_parallel {
        space.tensor_parallel = ascending(widths);
    }
    if let Some(degrees) = &args.context_parallel {
        space.context_parallel = ascending(degrees);
    }
    if args.options.sequence_parallel {
        space.sequence_parallel = vec![true];
    }
    if let Some(stage) = args.zero {
        let zero = usize::try_from(stage).ok().and_then(Zero::of_stage);
        let zero = vec![zero.unwrap_or(Zero::Nothing)];
        (space.zero, space.zero_in_pipelines) = (zero.clone(), zero);
    }
    if let Some(choice) = args.recompute {
        choice.narrow(space);
    }
    Ok(())
}

fn framework(name: &str) -> Result<Framework, Refusal> {
    let known = ["megatron", "bridge", "nemo", "torchtitan", "maxtext", "any"];
    name.parse().map_err(|_| {
        Refusal::from(InputError::Unknown {
            file: "--launchable".into(),
            what: "framework".into(),
            found: name.to_owned(),
            known: known.map(str::to_owned).to_vec(),
        })
    })
}

/// Thousandths, from percent.
fn reserve(percent: f64) -> Result<i64, Refusal> {
    if !(0.0..=90.0).contains(&percent) {
        let problem = format!("--reserve {percent} is out of range; allowed are 0 to 90 percent");
        return Err(Refusal::Options(problem));
    }
    #[expect(clippy::cast_possible_truncation, reason = "it is between 0 and 900")]
    let thousandths = (percent * 10.0).round() as i64;
    Ok(thousandths)
}

fn ascending(list: &[u64]) -> Vec<u64> {
    let mut list = list.to_vec();
    list.sort_unstable();
    list.dedup();
    list
}

/// The devices at hand: as many as a whole strategy takes where nobody says.
fn devices(args: &Args, given: &GivenStrategy) -> Result<u64, Refusal> {
    if let Some(nodes) = args.nodes {
        let (hardware, _) = args.design.resolve(Conventions::of(args.published))?;
        let per_node = hardware.physics.network.devices_per_node();
        return Ok(devices_of_nodes(nodes, per_node, "--nodes")?);
    }
    let needed = given.devices().unwrap_or(1024);
    let devices = args.devices.unwrap_or(needed);
    if devices > Job::LARGEST_COUNT {
        return Err(Refusal::Options("--strategy: it takes more than 2^32 devices".into()));
    }
    if args.strategy.is_some() && given.devices().is_some() && needed > devices {
        let problem = format!("--strategy: it takes {needed} devices, there are {devices}");
        return Err(Refusal::Options(problem));
    }
    Ok(devices)
}

/// The micro-batch sizes to try; those of the user must divide the batch.
fn micro_batches(given: &[u64], batch: u64) -> Result<Vec<u64>, Refusal> {
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
