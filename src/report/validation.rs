//! How close predictions are to measured runs, as tables.

use std::io;
use std::io::Write;

use crate::measure::Baseline;
use crate::measure::Bench;
use crate::measure::Figures;
use crate::measure::Fit;
use crate::measure::Predicted;
use crate::measure::Validation;

/// A validation with what it is called.
pub struct Titled {
    /// Which runs.
    pub set: String,
    /// Fitted to what.
    pub split: String,
    /// What was found.
    pub found: Validation,
}

/// Runs further off than this are named.
const FAR_OFF: f64 = 0.25;

/// One line per set and split.
pub fn table(all: &[Titled], out: &mut dyn Write) -> io::Result<()> {
    writeln!(
        out,
        "{:<34} {:<30} {:>3} {:>6} {:>6} {:>6} {:>6} {:>6} {:>13} {:>9} {:>6}",
        "set",
        "fitted on",
        "n",
        "mean",
        "median",
        "p90",
        "max",
        "bias",
        "90 % of means",
        "baseline",
        "ratio"
    )?;
    for Titled { set, split, found } in all {
        let Some(time) = &found.time else {
            writeln!(out, "{set:<34} {split:<30} nothing to fit on")?;
            continue;
        };
        let best = found.baselines.iter().flatten().map(|b| b.mean).fold(f64::INFINITY, f64::min);
        let [low, high] = time.interval;
        writeln!(
            out,
            "{set:<34} {split:<30} {:>3} {} {} {} {} {} {:>13} {:>9} {:>6.2}",
            time.n,
            percent(time.mean),
            percent(time.median),
            percent(time.p90),
            percent(time.max),
            percent(time.bias),
            format!("{}-{}", percent(low).trim(), percent(high).trim()),
            percent(best),
            time.mean / best,
        )?;
    }
    Ok(())
}

/// Ranks, where runs of one model are enough to be ranked.
pub fn ranks(all: &[Titled], out: &mut dyn Write) -> io::Result<()> {
    let ranked = |figures: &Option<Figures>| figures.as_ref().and_then(|figures| figures.rank);
    let mut first = true;
    for Titled { set, split, found } in all {
        let Some(rank) = ranked(&found.time) else { continue };
        if std::mem::take(&mut first) {
            writeln!(
                out,
                "\nrank of runs of one model, sequence and hardware, by seconds x devices / tokens"
            )?;
        }
        write!(
            out,
            "{set:<34} {split:<30} Spearman {:.2}, regret {}, concordance {:.2}",
            rank.spearman,
            percent(rank.regret).trim(),
            rank.concordance
        )?;
        let of_baselines = found.baselines.iter().filter_map(ranked);
        let spearman: Vec<String> = of_baselines.map(|r| format!("{:.2}", r.spearman)).collect();
        writeln!(out, "; Spearman of the baselines {}", spearman.join(", "))?;
    }
    Ok(())
}

/// Memory, where it was measured.
pub fn memory(all: &[Titled], out: &mut dyn Write) -> io::Result<()> {
    let mut first = true;
    for Titled { set, found, .. } in all.iter().filter(|one| one.split == "in sample") {
        let Some(memory) = &found.memory else { continue };
        if std::mem::take(&mut first) {
            writeln!(out, "\nmemory of the fullest device, allocated")?;
        }
        writeln!(
            out,
            "{set:<34} n {}, mean {:.2} %, max {:.2} %, bias {:+.2} %",
            memory.n,
            memory.mean * 100.0,
            memory.max * 100.0,
            memory.bias * 100.0
        )?;
    }
    Ok(())
}

/// The scalars of every fit, and how well each is known.
pub fn fits(all: &[Titled], out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "\nfitted scalars")?;
    for Titled { set, split, found } in all {
        for (of, fit) in &found.fits {
            write!(out, "{set:<34} {split:<30} ")?;
            if found.fits.len() > 1 {
                write!(out, "{of}: ")?;
            }
            scalars(fit, out)?;
        }
    }
    Ok(())
}

/// The scalars of a fit in a line.
pub fn scalars(fit: &Fit, out: &mut dyn Write) -> io::Result<()> {
    let each = fit.fitted.iter().map(|one| {
        let value = |units: u32| f64::from(units) / one.scalar.units();
        let kept = if one.is_loose { ", not identified: kept" } else { "" };
        format!(
            "{} {} (prior {}, {} to {}{kept})",
            one.scalar.name(),
            value(one.value),
            value(one.prior),
            value(one.range[0]),
            value(one.range[1])
        )
    });
    writeln!(out, "{} on {} runs", each.collect::<Vec<String>>().join(", "), fit.runs)
}

/// Runs that are far off, by name.
pub fn far_off(bench: &Bench, all: &[Titled], out: &mut dyn Write) -> io::Result<()> {
    for Titled { set, split, found } in all {
        for one in &found.predicted {
            let run = &bench.runs[one.at].run;
            let Some(seconds) = run.seconds else { continue };
            let error = one.prediction.seconds / seconds - 1.0;
            if error.abs() > FAR_OFF {
                let (model, strategy) = (&run.model_name, run.strategy());
                let off = percent(error);
                let off = off.trim();
                writeln!(out, "far off: {set}, {split}: {model} {strategy}: {off}")?;
            }
        }
    }
    Ok(())
}

/// Every run, term by term.
pub fn per_run(bench: &Bench, titled: &Titled, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "\n{}, {}", titled.set, titled.split)?;
    for one in &titled.found.predicted {
        line_of_run(bench, one, out)?;
    }
    Ok(())
}

fn line_of_run(bench: &Bench, one: &Predicted, out: &mut dyn Write) -> io::Result<()> {
    let run = &bench.runs[one.at].run;
    let error = run.seconds.map(|seconds| one.prediction.seconds / seconds - 1.0);
    write!(
        out,
        "  {:<22} {:<22} b{:<3} {:>9.4} s predicted, {} measured {}",
        run.model_name,
        run.strategy(),
        one.prediction.micro_batch,
        one.prediction.seconds,
        run.seconds.map_or("not".into(), |seconds| format!("{seconds:.4} s")),
        error.map_or(String::new(), |error| format!("{:>+6.1} %", error * 100.0)),
    )?;
    if let Some(gib) = run.memory_gib {
        let found = one.prediction.memory.0 as f64 / 2_f64.powi(30);
        write!(out, "; {found:.2} GiB, measured {gib}")?;
    }
    if !one.prediction.fits {
        write!(out, "; by our account more than the device has")?;
    }
    if let Some(parts) = bench.parts(one.at, one.scalars) {
        let named = parts.named();
        let said = named.iter().map(|(name, seconds)| format!("{name} {seconds:.4}"));
        write!(out, "\n      {}", said.collect::<Vec<String>>().join(", "))?;
    }
    writeln!(out)
}

/// What the baselines are.
pub fn legend(out: &mut dyn Write) -> io::Result<()> {
    let [one, other] = Baseline::ALL.map(Baseline::name);
    writeln!(
        out,
        "\nerrors are |predicted / measured - 1|; the baseline is the better of {one} and {other}, \
         fitted on the same runs"
    )
}

fn percent(part: f64) -> String {
    format!("{:>5.1}%", part * 100.0)
}
