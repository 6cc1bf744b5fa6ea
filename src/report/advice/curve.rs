//! Time and cost against numbers of devices, as a table and as a picture of characters.

use std::io;
use std::io::Write;

use super::figures;
use crate::advise::Curve;
use crate::report::quantity::grouped;

/// The table of a curve, its knee, and the cheapest within the deadline.
pub fn write(curve: &Curve, out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "{:>10}  {:>14}  {:>12}  {:>16}  strategy",
        "devices", "time", "GPU-hours", "cost"
    )?;
    for point in &curve.points {
        let devices = grouped(point.devices);
        match &point.found {
            None => writeln!(out, "{devices:>10}  nothing fits")?,
            Some(found) => writeln!(
                out,
                "{devices:>10}  {:>14}  {:>12}  {:>16}  {}",
                figures::duration(found.run.seconds),
                figures::three(found.run.device_hours),
                found.run.dollars.map_or_else(|| "-".into(), figures::dollars),
                found.strategy
            )?,
        }
    }
    if let Some(knee) = curve.knee() {
        let is_last = curve.points.last().is_some_and(|point| point.devices == knee);
        let lost = if is_last { "up to them less" } else { "beyond them more" };
        writeln!(
            out,
            "KNEE     {} devices: {lost} than a tenth of the GPU-hours is lost",
            grouped(knee)
        )?;
    }
    match (curve.cheapest(), curve.deadline) {
        (Some(devices), Some(deadline)) => writeln!(
            out,
            "CHEAPEST {} devices within {}",
            grouped(devices),
            figures::duration(deadline)
        ),
        (Some(devices), None) => writeln!(out, "CHEAPEST {} devices", grouped(devices)),
        (None, Some(deadline)) => writeln!(
            out,
            "CHEAPEST none: no number of devices takes less than {}; give more of them",
            figures::duration(deadline)
        ),
        (None, None) => writeln!(out, "nothing fits on any of these numbers of devices"),
    }
}

/// Characters of the longest bar.
const WIDTH: f64 = 48.0;

/// Bars of time and of GPU-hours, each against the longest of its kind, by the logarithm of time.
pub fn plot(curve: &Curve, out: &mut dyn Write) -> io::Result<()> {
    let most = |of: fn(&crate::advise::Found) -> f64| {
        curve.fitting().map(|(_, found)| of(found)).fold(0.0, f64::max)
    };
    let (longest, dearest) = (most(|f| f.run.seconds), most(|f| f.run.device_hours));
    writeln!(out, "\ntime █ and GPU-hours ░ against devices")?;
    for (devices, found) in curve.fitting() {
        let bar = |value: f64, most: f64, mark: &str| {
            let places = usize::try_from(figures::whole(value / most * WIDTH)).unwrap_or(0);
            mark.repeat(places.max(1))
        };
        let name = grouped(devices);
        let time = bar(found.run.seconds, longest, "█");
        writeln!(out, "{name:>10} {time} {}", figures::duration(found.run.seconds))?;
        let hours = bar(found.run.device_hours, dearest, "░");
        writeln!(out, "{:>10} {hours} {}", "", figures::three(found.run.device_hours))?;
    }
    Ok(())
}
