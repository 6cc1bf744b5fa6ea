//! The efficiency block of a hardware file: what hardware and software reach of the data sheet, and
//! which runs say so.

use std::fmt::Write as _;

use serde::Deserialize;

use super::InputError;
use super::numbers::Field;
use crate::hardware::Efficiency;
use crate::hardware::efficiency::Calibration;
use crate::model::Kernels;
use crate::model::Precision;
use crate::units::Time;

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawEfficiency {
    kernels: Option<String>,
    matmul: Option<f64>,
    matmul_fp8: Option<f64>,
    attention: Option<f64>,
    grouped: Option<f64>,
    memory: Option<f64>,
    link: Option<f64>,
    between: Option<f64>,
    launch_us: Option<f64>,
    collective_us: Option<f64>,
    step_us: Option<f64>,
    between_us: Option<f64>,
    tp_hidden: Option<f64>,
    dp_hidden: Option<f64>,
    grad_bytes: Option<u64>,
    #[serde(default)]
    calibrated: Vec<RawCalibration>,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
struct RawCalibration {
    precision: String,
    stack: String,
    runs: u64,
    date: Option<String>,
    interval_80: Option<[f64; 2]>,
}

/// The least fraction that a block may hold, and the longest time.
const LEAST: f64 = 0.01;
const LONGEST_US: f64 = 1e5;

impl RawEfficiency {
    /// Whether it says what matmuls in 8 bits reach.
    pub(super) fn has_fp8(&self) -> bool {
        self.matmul_fp8.is_some()
    }

    /// The block, with what it rests on.
    pub(super) fn read(&self, file: &str) -> Result<(Efficiency, Vec<Calibration>), InputError> {
        let field = |name: &str| Field::new(file, &format!("efficiency.{name}"));
        let fraction = |name: &str, found: Option<f64>| {
            let thousandths = field(name).scaled(found.unwrap_or(1.0), 1e3, LEAST, 1.0)?;
            Ok::<u16, InputError>(u16::try_from(thousandths).unwrap_or(1000))
        };
        let hidden = |name: &str, found: Option<f64>| {
            let part = |found| field(name).scaled(found, 1e3, 0.0, 1.0);
            let thousandths = found.map(part).transpose()?;
            Ok::<_, InputError>(thousandths.map(|part| u16::try_from(part).unwrap_or(1000)))
        };
        let time = |name: &str, found: Option<f64>| {
            let picoseconds = |found| field(name).scaled(found, 1e6, 0.0, LONGEST_US).map(Time);
            found.map(picoseconds).transpose()
        };
        let efficiency = Efficiency {
            matmul: fraction("matmul", self.matmul)?,
            matmul_fp8: fraction("matmul_fp8", self.matmul_fp8)?,
            attention: fraction("attention", self.attention)?,
            grouped: fraction("grouped", self.grouped)?,
            memory: fraction("memory", self.memory)?,
            link: fraction("link", self.link)?,
            between: fraction("between", self.between)?,
            launch: time("launch_us", self.launch_us)?.unwrap_or(Time::ZERO),
            collective: time("collective_us", self.collective_us)?,
            step: time("step_us", self.step_us)?.unwrap_or(Time::ZERO),
            between_step: time("between_us", self.between_us)?,
            tensor_hidden: hidden("tp_hidden", self.tp_hidden)?.unwrap_or(0),
            gradients_hidden: hidden("dp_hidden", self.dp_hidden)?,
            gradient_bytes: self.grad_bytes.map(|bytes| gradient_bytes(bytes, file)).transpose()?,
            kernels: self.kernels.as_deref().map_or(Ok(Kernels::FusedIdeal), |name| {
                Kernels::named(name).ok_or_else(|| InputError::Unknown {
                    file: file.to_owned(),
                    what: "`efficiency.kernels`".into(),
                    found: name.to_owned(),
                    known: Kernels::ALL.map(|kernels| kernels.name().to_owned()).to_vec(),
                })
            })?,
        };
        let calibrated = self.calibrated.iter().map(|raw| raw.read(file));
        Ok((efficiency, calibrated.collect::<Result<_, _>>()?))
    }
}

/// Bytes in which gradients are exchanged: numbers of 8, 16 or 32 bits.
fn gradient_bytes(found: u64, file: &str) -> Result<u8, InputError> {
    match found {
        1 => Ok(1),
        2 => Ok(2),
        4 => Ok(4),
        _ => {
            let field = Field::new(file, "efficiency.grad_bytes");
            Err(field.value(&found.to_string(), "is no size of numbers", "allowed are 1, 2 and 4"))
        }
    }
}

impl RawCalibration {
    fn read(&self, file: &str) -> Result<Calibration, InputError> {
        let field = |name: &str| Field::new(file, &format!("efficiency.calibrated.{name}"));
        let precision = Precision::named(&self.precision).ok_or_else(|| InputError::Unknown {
            file: file.to_owned(),
            what: "`efficiency.calibrated.precision`".into(),
            found: self.precision.clone(),
            known: Precision::ALL.map(|known| known.name().to_owned()).to_vec(),
        })?;
        let bound = |found: f64| {
            let thousandths = field("interval_80").scaled(found, 1e3, 0.01, 60.0)?;
            Ok::<u16, InputError>(u16::try_from(thousandths).unwrap_or(u16::MAX))
        };
        let interval = match self.interval_80 {
            None => None,
            Some([low, high]) if low <= high => Some([bound(low)?, bound(high)?]),
            Some([low, high]) => {
                let found = format!("[{low}, {high}]");
                let allowed = "give the lower figure first";
                return Err(field("interval_80").value(&found, "is no interval", allowed));
            }
        };
        Ok(Calibration {
            precision,
            stack: super::source::printable(&self.stack),
            runs: field("runs").whole(self.runs, 1, 1 << 32)?,
            date: self.date.as_deref().map(super::source::printable),
            interval,
        })
    }
}

/// The text of a block, as [`RawEfficiency`] reads it; `fp8` is whether
/// arrays compute in 8 bits, and `notes` say of a key where its value is from.
pub fn block(
    (efficiency, fp8): (&Efficiency, bool),
    calibrated: &[Calibration],
    notes: &dyn Fn(&str) -> &'static str,
) -> String {
    let part = |thousandths: u16| f64::from(thousandths) / 1e3;
    let us = |time: Time| time.seconds() * 1e6;
    let mut text = String::from("[efficiency]\n");
    let mut line = |key: &str, value: String| {
        let (key, note) = (format!("{key} = {value}"), notes(key));
        let _ = if note.is_empty() {
            writeln!(text, "{key}")
        } else {
            writeln!(text, "{key:<24}# {note}")
        };
    };
    line("kernels", format!("\"{}\"", efficiency.kernels.name()));
    let fractions = [
        ("matmul", efficiency.matmul),
        ("matmul_fp8", efficiency.matmul_fp8),
        ("attention", efficiency.attention),
        ("grouped", efficiency.grouped),
        ("memory", efficiency.memory),
        ("link", efficiency.link),
        ("between", efficiency.between),
    ];
    let is_told = |&(key, thousandths): &(&str, u16)| match key {
        "matmul_fp8" => fp8,
        "grouped" => thousandths < 1000,
        _ => true,
    };
    for (key, thousandths) in fractions.into_iter().filter(is_told) {
        line(key, part(thousandths).to_string());
    }
    line("launch_us", us(efficiency.launch).to_string());
    let step = Some(efficiency.step).filter(|&step| step > Time::ZERO);
    for (key, time) in [
        ("collective_us", efficiency.collective),
        ("step_us", step),
        ("between_us", efficiency.between_step),
    ] {
        if let Some(time) = time {
            line(key, us(time).to_string());
        }
    }
    line("tp_hidden", part(efficiency.tensor_hidden).to_string());
    if let Some(hidden) = efficiency.gradients_hidden {
        line("dp_hidden", part(hidden).to_string());
    }
    if let Some(bytes) = efficiency.gradient_bytes {
        line("grad_bytes", bytes.to_string());
    }
    for Calibration { precision, stack, runs, date, interval } in calibrated {
        let _ = writeln!(text, "\n[[efficiency.calibrated]]\nprecision = \"{}\"", precision.name());
        let _ = writeln!(text, "stack = {}\nruns = {runs}", quoted(stack));
        if let Some(date) = date {
            let _ = writeln!(text, "date = {}", quoted(date));
        }
        if let Some([low, high]) = interval {
            let _ = writeln!(
                text,
                "interval_80 = [{}, {}]    # measured / predicted, models left out",
                part(*low),
                part(*high)
            );
        }
    }
    text
}

/// A text in quotes, as TOML has it.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// The text of a hardware file with another block.
pub fn replaced(text: &str, block: &str) -> String {
    let mut kept = String::new();
    let mut within = false;
    for line in text.lines() {
        let heading = line.trim_start().trim_start_matches('[').trim_start();
        if line.trim_start().starts_with('[') {
            let name = heading.split([']', '.', ' ']).next().unwrap_or_default();
            within = name == "efficiency";
        }
        if !within {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    format!("{}\n\n{block}", kept.trim_end())
}

#[cfg(test)]
mod tests {
    use super::super::hardware::hardware;
    use super::super::hardware::preset_text;
    use super::*;

    const BLOCK: &str = "[efficiency]\nkernels = \"megatron\"\nmatmul = 0.75\nmatmul_fp8 = 0.5\n\
        attention = 0.5\nmemory = 0.6\nlink = 0.76\nbetween = 0.8\nlaunch_us = 5\n\
        collective_us = 40\nstep_us = 8\nbetween_us = 20\ntp_hidden = 0.7\ndp_hidden = 0\ngrad_bytes = 2\n\n\
        [[efficiency.calibrated]]\nprecision = \"bf16\"\nstack = \"mine\"\nruns = 12\n\
        date = \"2026-11\"\ninterval_80 = [0.95, 1.04]\n";

    fn with(block: &str) -> Result<(Efficiency, Vec<Calibration>), InputError> {
        let text = format!("{}\n{block}", preset_text("tpuv4-like").unwrap());
        let found = hardware(&text, "mine.toml")?.physics;
        Ok((found.efficiency, found.calibrations))
    }

    #[test]
    fn a_block_is_read_and_written_alike() {
        let (found, calibrated) = with(BLOCK).unwrap();
        assert_eq!((found.matmul, found.memory, found.launch), (750, 600, Time(5_000_000)));
        assert_eq!(found.gradients_hidden, Some(0));
        assert_eq!(calibrated[0].interval, Some([950, 1040]));
        let written = block((&found, true), &calibrated, &|_| "");
        assert_eq!(with(&written).unwrap(), (found, calibrated));
        let noted = block((&found, false), &[], &|key| if key == "memory" { "given" } else { "" });
        assert!(!noted.contains("matmul_fp8"), "{noted}");
        assert!(noted.contains("memory = 0.6            # given\n"), "{noted}");
    }

    #[test]
    fn a_block_takes_the_place_of_another_and_nothing_else_changes() {
        let text = format!("summary = \"x\"\n\n{BLOCK}\n[network]\ngb_per_s = 1\n");
        let found = replaced(&text, "[efficiency]\nmatmul = 0.5\n");
        let expected = "summary = \"x\"\n\n[network]\ngb_per_s = 1\n\n[efficiency]\nmatmul = 0.5\n";
        assert_eq!(found, expected);
        assert_eq!(
            replaced(&found, "[efficiency]\nmatmul = 0.5\n"),
            expected,
            "as often as it is done"
        );
    }

    #[test]
    fn what_a_block_leaves_out_is_ideal() {
        assert_eq!(with("").unwrap(), (Efficiency::IDEAL, Vec::new()));
        let (found, _) = with("[efficiency]\nmatmul = 0.5\n").unwrap();
        assert_eq!(found, Efficiency { matmul: 500, ..Efficiency::IDEAL });
    }

    #[test]
    fn errors_name_the_field_and_what_is_allowed() {
        for (from, to, expected) in [
            ("matmul = 0.75", "matmul = 1.2", "`efficiency.matmul = 1.2` is out of range"),
            ("memory = 0.6", "memory = 0", "`efficiency.memory = 0` is out of range"),
            ("\"megatron\"", "\"megatorn\"", "did you mean `megatron`"),
            ("tp_hidden", "tp_hiden", "unknown field `tp_hiden`"),
            ("[0.95, 1.04]", "[1.04, 0.95]", "give the lower figure first"),
            ("grad_bytes = 2", "grad_bytes = 3", "allowed are 1, 2 and 4"),
            ("precision = \"bf16\"", "precision = \"bf8\"", "known are bf16, fp8"),
        ] {
            assert!(BLOCK.contains(from), "{from}");
            let error = with(&BLOCK.replace(from, to)).unwrap_err().to_string();
            assert!(error.starts_with("mine.toml: ") && error.contains(expected), "{error}");
        }
    }
}
