//! The fastest order of one layer's operators, or of a graph that a user brings.

use super::Keywords;
use super::Refusal;
use super::chip::ChipRequest;
use super::training::TrainingRequest;
use super::training::layer_named;
use crate::estimate::EstimateTable;
use crate::estimate::Options;
use crate::hardware::Accelerator;
use crate::hardware::Cluster;
use crate::input::InputError;
use crate::input::graph::UserGraph;
use crate::input::source;
use crate::input::source::Reader;
use crate::model::Precision;
use crate::parallel;
use crate::parallel::LayerShare;
use crate::parallel::Setting;
use crate::plan::Basis;
use crate::profile::pass::PassGraph;
use crate::profile::pass::costs;
use crate::report::basis;
use crate::report::quantity;
use crate::report::schedule::View;
use crate::schedule::Limits;
use crate::schedule::Rule;
use crate::schedule::Solver;
use crate::schedule::solve_with;
use crate::units::Time;

/// The two passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// From input to loss.
    Forward,
    /// From loss to gradients.
    Backward,
}

impl Pass {
    /// The passes by name.
    pub const NAMES: [(&str, Self); 2] = [("forward", Self::Forward), ("backward", Self::Backward)];
}

/// How schedules are found.
#[derive(Clone, Copy)]
pub struct Effort<'a> {
    /// Which solver.
    pub solver: Solver,
    /// Partial schedules of one block's search at the most.
    pub nodes: u64,
    /// Asked when a schedule begins: what then says whether it must end.
    pub stopper: &'a dyn Fn() -> Option<Box<dyn Fn() -> bool + Sync>>,
}

impl Effort<'_> {
    /// Makes one schedule within the limits, which start to count now.
    fn within<S>(&self, schedule: impl FnOnce(&Limits) -> S) -> S {
        let stop = (self.stopper)();
        let stop = stop.as_ref().map(|stop| &**stop as &(dyn Fn() -> bool + Sync));
        schedule(&Limits { nodes: self.nodes, stop })
    }
}

/// A layer of a model to be scheduled.
#[derive(Clone, Debug)]
pub struct LayerRequest {
    /// A built-in model or the path of a file.
    pub model: String,
    /// On what.
    pub chip: ChipRequest,
    /// How it is trained.
    pub training: TrainingRequest,
    /// Which layer; `layer` is the most frequent.
    pub layer: String,
    /// Which pass; `None` for both.
    pub pass: Option<Pass>,
    /// What a spread operator leaves to others.
    pub rule: Option<Rule>,
}

impl LayerRequest {
    /// What the keywords ask of `model`; those of effort were taken before.
    ///
    /// # Errors
    /// What is not known or of another kind.
    pub fn read(model: &str, mut given: Keywords) -> Result<Self, InputError> {
        let request = Self {
            model: model.to_owned(),
            chip: ChipRequest::take(&mut given)?,
            training: TrainingRequest::take(&mut given)?,
            layer: given.take("layer")?.unwrap_or_else(|| "layer".into()),
            pass: given.word("pass", &Pass::NAMES)?,
            rule: given.word("rule", &Rule::ALL.map(|known| (known.name(), known)))?,
        };
        given.end()?;
        Ok(request)
    }

    /// Schedules the layer and hands over every schedule with its pass, the forward one first.
    ///
    /// # Errors
    /// What cannot be read, is not known, or cannot be trained so; and what `tell` refuses.
    pub fn schedule<E: From<Refusal>>(
        &self,
        read: &Reader,
        effort: &Effort,
        tell: &mut dyn FnMut(Pass, &View) -> Result<(), E>,
    ) -> Result<(), E> {
        let (model, _) = source::model(&self.model, read).map_err(Refusal::from)?;
        let place = self.chip.spelling.of("layer");
        let kind = layer_named(&model, &self.layer, &place).map_err(Refusal::from)?;
        let (hardware, chip) = self.chip.resolve(self.training.conventions(), read)?;
        let setting = Setting {
            stack: chip.efficiency().stack(Precision::Bf16),
            ..self.training.setting(&model)
        };
        let share = parallel::shard(&model, setting)
            .map_err(|illegal| Refusal::Options(format!("{}: {illegal}", self.model)))?;
        let cluster = Cluster {
            devices: self.training.tensor_parallel,
            network: hardware.physics.reached_network(),
        };
        let basis = Basis::of(&hardware.physics, Precision::Bf16);
        let rests_on = basis::words(basis.as_ref());
        let named = (hardware.name.as_str(), rests_on.as_str());
        let ground = Ground { request: self, named, chip: &chip, cluster };
        let passes = [Pass::Forward, Pass::Backward];
        for pass in passes.into_iter().filter(|&pass| self.pass.unwrap_or(pass) == pass) {
            ground.pass_of(&share.kinds[kind], pass, effort, tell)?;
        }
        Ok(())
    }
}

/// Where a layer runs.
struct Ground<'a> {
    request: &'a LayerRequest,
    /// The hardware, and what its times rest on.
    named: (&'a str, &'a str),
    chip: &'a Accelerator,
    cluster: Cluster,
}

impl Ground<'_> {
    fn pass_of<E: From<Refusal>>(
        &self,
        layer: &LayerShare,
        pass: Pass,
        effort: &Effort,
        tell: &mut dyn FnMut(Pass, &View) -> Result<(), E>,
    ) -> Result<(), E> {
        let (word, ops) = match pass {
            Pass::Forward => ("forward", &layer.forward),
            Pass::Backward => ("backward", &layer.backward),
        };
        let conventions = self.request.training.conventions();
        let options = Options { vector_costs: conventions.vector_costs, ..Options::default() };
        let table = EstimateTable::new(options);
        let costs = costs(ops, self.chip, &self.cluster, &table).map_err(|too_large| {
            Refusal::Options(format!("{}: {too_large}", self.request.model))
        })?;
        let rule = self.request.rule.unwrap_or(conventions.rule);
        let graph = PassGraph::new(ops);
        let found = effort
            .within(|limits| graph.schedule_with(&costs, self.chip, rule, effort.solver, limits));
        let title = self.title(&layer.name, word);
        let names: Vec<String> = ops.nodes().iter().map(|op| op.name.clone()).collect();
        let order: Vec<usize> = (0..names.len()).collect();
        let view = View {
            title: Some(&title),
            names: &names,
            order: &order,
            problem: &found.problem,
            schedule: &found.schedule,
            makespan: found.total.makespan.0,
            proof: found.proof,
            n_nodes: found.total.n_nodes,
            pass: Some(&found.total),
            number: &|ticks| Time(ticks).seconds(),
            text: &|ticks| quantity::time(Time(ticks)),
        };
        tell(pass, &view)
    }

    fn title(&self, layer: &str, pass: &str) -> String {
        let design = self.chip.design();
        format!(
            "{} {layer} {pass} on {}: {} tensor cores {}x{}, {} vector cores x{}, resting on {}",
            self.request.model,
            self.named.0,
            design.tensor_cores,
            design.width,
            design.depth,
            design.vector_cores,
            design.vector_width,
            self.named.1,
        )
    }
}

/// Schedules a graph that a user brings, and hands over its schedule.
///
/// # Errors
/// What `tell` refuses.
pub fn graph<E>(
    graph: &UserGraph,
    effort: &Effort,
    tell: impl FnOnce(&View) -> Result<(), E>,
) -> Result<(), E> {
    let solved = effort.within(|limits| solve_with(&graph.problem, effort.solver, limits));
    let number = |ticks: u64| graph.scale.unscaled(ticks);
    tell(&View {
        title: graph.name.as_deref(),
        names: &graph.names,
        order: &graph.order,
        problem: &graph.problem,
        schedule: &solved.schedule,
        makespan: solved.makespan,
        proof: solved.proof,
        n_nodes: solved.n_nodes,
        pass: None,
        number: &number,
        text: &|ticks| quantity::plain(number(ticks)),
    })
}
