//! What a run takes: batches, time, devices, money, energy, carbon, room on disks.

use crate::plan::Plan;

/// A number with where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assumed {
    /// The number, in the unit that its place says.
    pub value: u64,
    /// `given`, or a source.
    pub source: String,
}

impl Assumed {
    /// A number that a user gave.
    pub fn given(value: u64) -> Self {
        Self { value, source: "given".into() }
    }
}

/// What a run is asked for, and what its time costs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Economics {
    /// Tokens to train on.
    pub tokens: Assumed,
    /// Thousandths of a dollar that a device costs in an hour, where that is known.
    pub price: Option<Assumed>,
    /// Thousandths of the time in which a run makes progress.
    pub goodput_per_mille: Assumed,
    /// Watts of a device at work, where that is known.
    pub watts: Option<Assumed>,
    /// Watts of the host for each device, where that is known.
    pub host_watts: Option<Assumed>,
    /// Thousandths of the power of devices and hosts that a building takes.
    pub pue_per_mille: Assumed,
    /// Grams of carbon dioxide of a kilowatt-hour.
    pub grams_per_kwh: Assumed,
}

/// What a run takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunFigures {
    /// Batches.
    pub steps: u64,
    /// Seconds on the clock, failures and restarts among them.
    pub seconds: f64,
    /// Hours of all devices at hand.
    pub device_hours: f64,
    /// What they cost, where a price is known.
    pub dollars: Option<f64>,
    /// Kilowatt-hours of devices, hosts and building, where the power of a device is known.
    pub kwh: Option<f64>,
    /// Kilograms of carbon dioxide of them.
    pub kg_co2e: Option<f64>,
    /// Bytes of a checkpoint that training can go on from: weights and state.
    pub checkpoint_bytes: f64,
}

/// Seconds of an hour.
const HOUR: f64 = 3600.0;

impl RunFigures {
    /// Those of a plan for a model of so many parameters.
    pub fn of(plan: &Plan, parameters: u64, economics: &Economics) -> Self {
        let seconds = plan.units.time(plan.answer.time_per_batch);
        let per_step = plan
            .training
            .as_ref()
            .map_or(1, |training| training.global_batch.saturating_mul(training.sequence));
        let steps = economics.tokens.value.div_ceil(per_step.max(1));
        let goodput = economics.goodput_per_mille.value as f64 / 1000.0;
        let seconds = steps as f64 * seconds / goodput;
        let device_hours = plan.job.devices as f64 * seconds / HOUR;
        let pue = economics.pue_per_mille.value as f64 / 1000.0;
        let host = economics.host_watts.as_ref().map_or(0, |host| host.value);
        let watts = economics.watts.as_ref().map(|device| device.value.saturating_add(host));
        let kwh = watts.map(|watts| device_hours * watts as f64 / 1000.0 * pue);
        let grams = economics.grams_per_kwh.value as f64;
        let per = &plan.job.per_parameter;
        Self {
            steps,
            seconds,
            device_hours,
            dollars: economics.price.as_ref().map(|p| device_hours * p.value as f64 / 1000.0),
            kwh,
            kg_co2e: kwh.map(|kwh| kwh * grams / 1000.0),
            checkpoint_bytes: parameters as f64 * (per.weight + per.state) as f64,
        }
    }
}
