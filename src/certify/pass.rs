//! One pass of one kind of layer, judged against the model's own graph: every operator priced,
//! the schedule checked against cores and rule, the memories added up.
//!
//! What the answer decides (modes, cores, starts, mappings) is taken from it and judged; every
//! figure is computed from that.

use crate::estimate::Estimate;
use crate::estimate::Limit;
use crate::graph::Dag;
use crate::hardware::Use;
use crate::model::Axis;
use crate::model::op::CoreKind;
use crate::model::op::Op;
use crate::model::op::Work;
use crate::plan::ExchangeFacts;
use crate::plan::MappingFacts;
use crate::plan::MatmulFacts;
use crate::plan::OpFacts;
use crate::plan::PassFacts;
use crate::plan::ScheduleProof;
use crate::plan::check;
use crate::plan::schedule::Cores;
use crate::plan::schedule::Problem;
use crate::plan::schedule::Rule;
use crate::plan::schedule::Run;
use crate::plan::schedule::Schedule;
use crate::plan::schedule::Task;
use crate::profile::parts::PassParts;
use crate::units::Bytes;
use crate::units::Energy;
use crate::units::Time;

use super::claims::FalseClaim;
use super::claims::equal;
use super::claims::require;
use super::operator::Place;
use super::operator::mapping;
use super::operator::price;

/// What a pass comes to.
pub struct Pass {
    /// The largest of the makespan and what each memory needs.
    pub time: Time,
    /// Of all operators.
    pub energy: Energy,
    /// What its exchanges take on the network.
    pub collectives: Time,
    /// Of these, what it takes to send rows to their experts and back.
    pub all_to_all: Time,
    /// Where its time goes.
    pub parts: PassParts,
}

/// One operator as it runs.
struct Running {
    start: u64,
    end: u64,
    estimate: Estimate,
    run: Run,
}

/// Judges a pass with the operators `ops`; `path` is where it stands in the answer.
pub fn check(
    path: &str,
    ops: &Dag<Op>,
    place: Place,
    rule: Rule,
    claimed: &PassFacts,
) -> Result<Pass, FalseClaim> {
    let (said, is) = (claimed.operators.len(), ops.len());
    require(said == is, format!("{path}.operators.length"), said, is)?;
    let running: Vec<Running> = ops
        .nodes()
        .iter()
        .zip(&claimed.operators)
        .enumerate()
        .map(|(at, (op, facts))| running(&format!("{path}.operators[{at}]"), op, place, facts))
        .collect::<Result<_, _>>()?;
    let makespan = makespan(path, ops, place, rule, &running)?;
    let sum = |bytes: fn(&Estimate) -> Bytes| {
        let each = running.iter().map(|op| u128::from(bytes(&op.estimate).0));
        u64::try_from(each.sum::<u128>()).map(Bytes)
    };
    let (Ok(hbm), Ok(read), Ok(written)) =
        (sum(|e| e.hbm), sum(|e| e.glb_read), sum(|e| e.glb_written))
    else {
        return Err(FalseClaim::new(path, "a pass", "2^64 bytes or more"));
    };
    let hbm = place.chip.hbm_bandwidth().transfer(hbm);
    let (reads, writes) = place.chip.glb_bandwidth();
    let glb = reads.transfer(read).max(writes.transfer(written));
    let time = makespan.max(hbm).max(glb);
    let found = PassFacts {
        time_s: time.seconds(),
        makespan_s: makespan.seconds(),
        hbm_s: hbm.seconds(),
        glb_s: glb.seconds(),
        proof: proof(path, time, &claimed.proof)?,
        operators: claimed.operators.clone(),
    };
    equal(path, claimed, &found)?;
    let exchanges = ops.nodes().iter().zip(&running);
    let exchanges = exchanges.filter(|(op, _)| op.core() == CoreKind::Network);
    Ok(Pass {
        time,
        energy: running.iter().map(|op| op.estimate.energy).sum(),
        all_to_all: {
            let to_experts = ops.nodes().iter().zip(&running).filter(|(op, _)| match &op.work {
                Work::Collective(exchange) => {
                    exchange.axis == Axis::Expert || exchange.axis == Axis::ExpertGroup
                }
                _ => false,
            });
            to_experts.map(|(_, op)| op.estimate.time).sum()
        },
        collectives: exchanges.map(|(_, op)| op.estimate.time).sum(),
        parts: parts(ops, &running, makespan, time),
    })
}

/// An operator is what the model says and costs what its mapping costs.
fn running(path: &str, op: &Op, place: Place, facts: &OpFacts) -> Result<Running, FalseClaim> {
    let cores = if facts.spread { Use::Spread } else { Use::Alone };
    let said = facts.mapping.as_ref().and_then(mapping);
    let estimate = price(op, place, cores, said.as_ref()).ok_or_else(|| {
        let written = serde_json::to_string(&facts.mapping).unwrap_or_default();
        FalseClaim::new(format!("{path}.mapping"), written, "no mapping of this operator")
    })?;
    let seconds = |field: &str, seconds: f64| {
        let ticks = Time::from_seconds(seconds).map(|time| time.0);
        ticks.ok_or_else(|| FalseClaim::new(format!("{path}.{field}"), seconds, "no time"))
    };
    let start = seconds("start_s", facts.start_s)?;
    let end = start.checked_add(estimate.time.0.max(1));
    let end = end.ok_or_else(|| FalseClaim::new(format!("{path}.start_s"), start, "too late"))?;
    let mut held = facts.cores.iter().copied();
    let (tensor, vector) = match op.core() {
        CoreKind::Tensor => (held.next(), None),
        CoreKind::Vector => (None, held.next()),
        CoreKind::Both => (held.next(), held.next()),
        CoreKind::Network | CoreKind::None => (None, None),
    };
    let matmul = match &op.work {
        Work::Matmul { matmul, .. } => Some(*matmul),
        _ => None,
    };
    let found = OpFacts {
        name: op.name.clone(),
        core: op.core().name().into(),
        start_s: Time(start).seconds(),
        end_s: Time(end).seconds(),
        spread: facts.spread,
        cores: [tensor, vector].into_iter().flatten().collect(),
        flops: op.flops().0 as f64,
        hbm_bytes: estimate.hbm.0,
        energy_j: estimate.energy.joules(),
        limit: estimate.limit.name().into(),
        matmul: matmul.map(|of| MatmulFacts { b: of.b, m: of.m, k: of.k, n: of.n }),
        mapping: matmul.and(said).as_ref().map(MappingFacts::from),
        exchange: match &op.work {
            Work::Collective(exchange) => Some(ExchangeFacts::from(exchange)),
            _ => None,
        },
    };
    equal(path, facts, &found)?;
    let run = Run { start, spread: facts.spread, tensor, vector };
    Ok(Running { start, end, estimate, run })
}

/// The schedule keeps the order of the graph, the cores and the rule; answers when it ends.
fn makespan(
    path: &str,
    ops: &Dag<Op>,
    place: Place,
    rule: Rule,
    running: &[Running],
) -> Result<Time, FalseClaim> {
    let mut each = running.iter();
    let tasks = ops.map(|op| {
        let ticks = each.next().map_or(0, |run| run.end - run.start);
        Task { core: op.core(), alone: ticks, spread: ticks }
    });
    let count = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
    let design = place.chip.design();
    let cores = Cores { tensor: count(design.tensor_cores), vector: count(design.vector_cores) };
    let schedule = Schedule { runs: running.iter().map(|op| op.run).collect() };
    check::schedule::check(&Problem { tasks, cores, rule }, &schedule)
        .map(Time)
        .map_err(|broken| FalseClaim::new(format!("{path}.operators"), "a schedule", broken))
}

/// A proof says what its own figures say: it is complete exactly where its bound is the time.
fn proof(path: &str, time: Time, claimed: &ScheduleProof) -> Result<ScheduleProof, FalseClaim> {
    let at = |field: &str| format!("{path}.proof.{field}");
    let known = ["bound", "search", "ilp", "none"].contains(&claimed.kind.as_str());
    require(known, at("kind"), &claimed.kind, "bound, search, ilp or none")?;
    let bound = Time::from_seconds(claimed.lower_bound_s);
    let bound = bound
        .ok_or_else(|| FalseClaim::new(at("lower_bound_s"), claimed.lower_bound_s, "no time"))?;
    let holds = if claimed.kind == "none" { bound < time } else { bound == time };
    let found = format!("{} for a pass of {} s", claimed.kind, time.seconds());
    require(holds, at("lower_bound_s"), bound.seconds(), found)?;
    let gap = if time.0 == 0 { 0.0 } else { (time.0 - bound.0) as f64 / time.0 as f64 };
    Ok(ScheduleProof { kind: claimed.kind.clone(), lower_bound_s: bound.seconds(), gap })
}

/// What a moment is spent on, the most valuable first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Spent {
    Tensor,
    Vector,
    Memory,
    Network,
}

/// Seconds of a pass by the most valuable thing that runs at each moment; what the memories need
/// beyond the makespan is theirs.
fn parts(ops: &Dag<Op>, running: &[Running], makespan: Time, time: Time) -> PassParts {
    let spent = |op: &Op, estimate: &Estimate| match (op.core(), estimate.limit) {
        (CoreKind::Network, _) => Spent::Network,
        (_, Limit::Lanes) => Spent::Vector,
        (_, Limit::Compute) => Spent::Tensor,
        _ => Spent::Memory,
    };
    let mut moments: Vec<u64> = running.iter().flat_map(|op| [op.start, op.end]).collect();
    moments.sort_unstable();
    moments.dedup();
    let mut ticks = [0_u64; 4];
    for window in moments.windows(2) {
        let both = ops.nodes().iter().zip(running);
        let now = both.filter(|(_, op)| op.start <= window[0] && window[1] <= op.end);
        let best = now.map(|(op, run)| spent(op, &run.estimate)).min().unwrap_or(Spent::Memory);
        ticks[best as usize] += window[1] - window[0];
    }
    ticks[Spent::Memory as usize] += time.0 - makespan.0;
    let [tensor, vector, memory, network] = ticks.map(|ticks| Time(ticks).seconds());
    PassParts { tensor, vector, memory, collectives: network }
}
