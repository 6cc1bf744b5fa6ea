//! One layer's schedule as text and JSON; the picture is in [`super::gantt`].

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::io::Write;

use serde_json::Value;
use serde_json::json;

use super::gantt;
use super::quantity;
use super::quantity::grouped;
use super::quantity::percent;
use super::quantity::time;
use crate::graph::NodeId;
use crate::model::op::CoreKind;
use crate::plan::schedule::Problem;
use crate::plan::schedule::Proof;
use crate::plan::schedule::ProofKind;
use crate::plan::schedule::Run;
use crate::plan::schedule::Schedule;
use crate::profile::pass::PassTime;
use crate::units::Time;

/// A schedule with all that is needed to show it.
pub struct View<'a> {
    /// What the whole is called.
    pub title: Option<&'a str>,
    /// The operators' names, in the order of the tasks.
    pub names: &'a [String],
    /// The order in which operators are listed, as indices of tasks.
    pub order: &'a [usize],
    /// The question.
    pub problem: &'a Problem,
    /// The answer.
    pub schedule: &'a Schedule,
    /// Its end.
    pub makespan: u64,
    /// Why it is believed.
    pub proof: Proof,
    /// Moments that searches visited.
    pub n_nodes: u64,
    /// What the whole takes where cores share memories: for layers of a model.
    pub pass: Option<&'a PassTime>,
    /// Ticks as a number of the reader's unit.
    pub number: &'a dyn Fn(u64) -> f64,
    /// Ticks as text with a unit.
    pub text: &'a dyn Fn(u64) -> String,
}

impl View<'_> {
    /// When a task ends.
    pub fn end(&self, task: usize) -> u64 {
        let run = self.schedule.runs[task];
        run.start + self.problem.tasks.nodes()[task].ticks(run.spread)
    }

    /// Core ticks of a kind that are used, as a share of all until the end.
    pub fn utilisation(&self, kind: CoreKind) -> f64 {
        let n_cores = self.n_cores(kind);
        let used: u128 = (0..self.names.len())
            .filter(|&task| uses(self.problem.tasks.nodes()[task].core, kind))
            .map(|task| {
                let run = self.schedule.runs[task];
                let cores = if run.spread { n_cores } else { 1 };
                u128::from(self.end(task) - run.start) * u128::from(cores)
            })
            .sum();
        let all = u128::from(n_cores) * u128::from(self.makespan);
        if all == 0 { 0.0 } else { used as f64 / all as f64 }
    }

    fn n_cores(&self, kind: CoreKind) -> u32 {
        match kind {
            CoreKind::Tensor => self.problem.cores.tensor,
            CoreKind::Vector => self.problem.cores.vector,
            _ => 1,
        }
    }

    /// Tasks from the first to the last end, each starting when the one before it ends: a task that
    /// it reads from where there is one, else one that left a core then.
    pub fn critical_path(&self) -> Vec<usize> {
        let ids: Vec<NodeId> = self.problem.tasks.ids().collect();
        let costs = |task: usize| self.schedule.runs[task].start < self.end(task);
        let ended: BTreeMap<u64, usize> =
            (0..ids.len()).rev().filter(|&task| costs(task)).map(|t| (self.end(t), t)).collect();
        let mut path = Vec::new();
        let mut last = ended.last_key_value().map(|(_, &task)| task);
        while let Some(task) = last {
            path.push(task);
            let start = self.schedule.runs[task].start;
            let reads = self.problem.tasks.predecessors(ids[task]).iter().map(|read| read.index());
            let read = reads.into_iter().find(|&read| costs(read) && self.end(read) == start);
            last = read.or_else(|| ended.get(&start).copied());
        }
        path.reverse();
        path
    }

    /// The names of the cores that a task holds, a range where it is spread.
    pub fn cores(&self, task: usize) -> Vec<String> {
        let (core, run) = (self.problem.tasks.nodes()[task].core, self.schedule.runs[task]);
        let mut cores = Vec::new();
        let mut add = |kind: CoreKind, word: &str, one: Option<u32>| {
            if uses(core, kind) {
                let last = self.n_cores(kind).saturating_sub(1);
                cores.push(match one {
                    Some(core) => format!("{word} {core}"),
                    None if last == 0 => format!("{word} 0"),
                    None => format!("{word} 0-{last}"),
                });
            }
        };
        add(CoreKind::Tensor, "tensor", run.tensor);
        add(CoreKind::Vector, "vector", run.vector);
        if core == CoreKind::Network {
            cores.push("network".into());
        }
        cores
    }
}

fn uses(core: CoreKind, kind: CoreKind) -> bool {
    core == kind || (core == CoreKind::Both && kind != CoreKind::Network)
}

/// The schedule as JSON.
pub fn value(view: &View) -> Value {
    let number = |ticks: u64| json!((view.number)(ticks));
    let operator = |&task: &usize| {
        let run: Run = view.schedule.runs[task];
        json!({
            "id": view.names[task],
            "start": number(run.start),
            "end": number(view.end(task)),
            "spread": run.spread,
            "cores": view.cores(task),
        })
    };
    let path: Vec<&str> =
        view.critical_path().into_iter().map(|t| view.names[t].as_str()).collect();
    let mut value = json!({
        "makespan": number(view.makespan),
        "proof": {
            "kind": view.proof.kind.name(),
            "lower_bound": number(view.proof.lower_bound),
            "gap": view.proof.gap(view.makespan),
        },
        "rule": view.problem.rule.name(),
        "critical_path": path,
        "utilisation": {
            "tensor": view.utilisation(CoreKind::Tensor),
            "vector": view.utilisation(CoreKind::Vector),
            "network": view.utilisation(CoreKind::Network),
        },
        "operators": view.order.iter().map(operator).collect::<Vec<Value>>(),
    });
    if let Some(title) = view.title {
        value["name"] = json!(title);
    }
    if let Some(pass) = view.pass {
        value["unit"] = json!("s");
        value["layer"] = json!({
            "time": pass.time.seconds(),
            "hbm_time": pass.hbm.seconds(),
            "glb_time": pass.glb.seconds(),
            "energy_joules": pass.energy.joules(),
            "proof": {
                "kind": pass.proof.kind.name(),
                "lower_bound": number(pass.proof.lower_bound),
                "gap": pass.proof.gap(pass.time.0),
            },
        });
    }
    value
}

/// The schedule for a reader at a terminal of so many columns.
pub fn text(view: &View, columns: usize, out: &mut dyn Write) -> io::Result<()> {
    if let Some(title) = view.title {
        writeln!(out, "{}", quantity::shown(title))?;
    }
    if let Some(pass) = view.pass {
        writeln!(out, "layer time     {}", layer_time(pass))?;
        let share = |time: Time| percent(time.0 as f64 / pass.time.0.max(1) as f64);
        let (hbm, glb) = (share(pass.hbm), share(pass.glb));
        writeln!(out, "memory in use  HBM {hbm}, global buffer {glb}")?;
    }
    writeln!(out, "makespan       {}", (view.text)(view.makespan))?;
    writeln!(out, "proof          {}", proof(view))?;
    let mut used = format!("tensor cores {}", percent(view.utilisation(CoreKind::Tensor)));
    let _ = write!(used, ", vector cores {}", percent(view.utilisation(CoreKind::Vector)));
    if view.problem.tasks.nodes().iter().any(|task| task.core == CoreKind::Network) {
        let _ = write!(used, ", network {}", percent(view.utilisation(CoreKind::Network)));
    }
    writeln!(out, "cores in use   {used}")?;
    writeln!(out, "critical path  {}", path(view))?;
    writeln!(out)?;
    gantt::draw(view, columns, out)
}

/// The time of a layer and what decides it.
fn layer_time(pass: &PassTime) -> String {
    let decides = match pass.time {
        time if time == pass.makespan => "the schedule decides",
        time if time == pass.hbm => "off-chip memory decides",
        _ => "the global buffer decides",
    };
    format!("{}, {decides}", time(pass.time))
}

/// The proof: of the layer's time where there is one, else of the makespan.
fn proof(view: &View) -> String {
    let (proof, time) = match view.pass {
        Some(pass) => (pass.proof, pass.time.0),
        None => (view.proof, view.makespan),
    };
    let searched = if view.n_nodes == 0 {
        String::new()
    } else {
        format!(" ({} partial schedules searched)", grouped(view.n_nodes))
    };
    match proof.kind {
        ProofKind::Bound => "fastest: it meets a lower bound".into(),
        ProofKind::Search => {
            format!("fastest: every other schedule was searched or excluded{searched}")
        }
        ProofKind::Ilp => "fastest: the integer program was solved to gap 0".into(),
        ProofKind::None => format!(
            "UNPROVEN: none takes less than {}, so at most {} could be saved{searched}",
            (view.text)(proof.lower_bound),
            percent(proof.gap(time)),
        ),
    }
}

/// The critical path in one line, shortened in the middle where it is long.
fn path(view: &View) -> String {
    let path = view.critical_path();
    let names: Vec<String> = path.into_iter().map(|t| quantity::shown(&view.names[t])).collect();
    let most = 12;
    if names.len() <= most {
        return names.join(" → ");
    }
    let (head, tail) = (&names[..most / 2], &names[names.len() - most / 2..]);
    format!("{} → … {} more … → {}", head.join(" → "), names.len() - most, tail.join(" → "))
}
