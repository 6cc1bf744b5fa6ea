//! What stands beside a plan, and ways out where there is none.

use std::io;
use std::io::Write;

use super::figures;
use super::text::line;
use crate::advise::Advice;
use crate::advise::Found;
use crate::advise::Row;
use crate::advise::WayOut;
use crate::report::quantity::grouped;

/// Other questions, each with how its answer compares and the command that asks it; `name` is that
/// of the block.
pub fn write(name: &str, advice: &Advice, rows: &[Row], out: &mut dyn Write) -> io::Result<()> {
    for (at, Row { title, found, command }) in rows.iter().enumerate() {
        let name = if at == 0 { name } else { "" };
        match found {
            None => line(out, name, &format!("{title:<34}nothing fits"))?,
            Some(found) => {
                let told = compared(advice, found);
                line(out, name, &format!("{title:<34}{told}  {}", found.strategy))?;
            }
        }
        if !command.is_empty() {
            line(out, "", &format!("  {command}"))?;
        }
    }
    Ok(())
}

/// The time and the cost of another answer beside those of the plan.
fn compared(advice: &Advice, found: &Found) -> String {
    let run = &advice.run;
    let time = figures::change(found.run.seconds / run.seconds);
    let time = if time == "as fast" { time } else { format!("time {time}") };
    let cost = match (found.run.dollars, run.dollars) {
        (Some(one), Some(other)) => {
            let change = figures::change(one / other);
            let change = if change == "as fast" { "same".into() } else { change };
            format!("cost {change}, {}", figures::dollars(one))
        }
        _ => format!("GPU-hours {}", figures::change(found.run.device_hours / run.device_hours)),
    };
    let days = figures::duration(found.run.seconds);
    let devices = if found.devices == advice.plan.job.devices {
        String::new()
    } else {
        format!("{} devices, ", grouped(found.devices))
    };
    format!("{devices}{days} ({time}), {cost};")
}

/// That nothing fits, and what was tried and works.
pub fn infeasible(
    name: &str,
    reason: &str,
    ways_out: &[WayOut],
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out, "{name}: nothing fits: {reason}")?;
    if ways_out.is_empty() {
        return writeln!(out, "Nothing that was tried makes it fit.");
    }
    writeln!(out, "What was tried and makes it fit:")?;
    for WayOut { title, strategy, command } in ways_out {
        writeln!(out, "  {title}: {strategy}\n    {command}")?;
    }
    Ok(())
}
