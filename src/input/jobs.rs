//! Lines of points to estimate: a matmul and the cores it runs on, one JSON object per line.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::InputError;
use super::hardware::Hardware;
use super::hardware::preset;
use super::numbers::Field;
use super::numbers::plainly;
use crate::estimate::LARGEST_MATMUL;
use crate::hardware::Accelerator;
use crate::hardware::CoreSpec;
use crate::hardware::Design;
use crate::hardware::Physics;
use crate::hardware::Port;
use crate::hardware::Use;
use crate::model::op::Matmul;
use crate::units::Bandwidth;
use crate::units::Bytes;
use crate::units::Frequency;

/// A matmul and the cores it runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// What is multiplied.
    pub matmul: Matmul,
    /// On what.
    pub core: CoreSpec,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object")]
struct RawJob {
    matmul: RawMatmul,
    core: RawCore,
    hardware: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object")]
struct RawMatmul {
    b: u64,
    m: u64,
    k: u64,
    n: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object")]
struct RawCore {
    count: u64,
    width: u64,
    depth: u64,
    glb_bytes: u64,
    local_bytes: Option<u64>,
    local_read_bytes_per_cycle: Option<u64>,
    local_write_bytes_per_cycle: Option<u64>,
    glb_read_bytes_per_cycle: Option<u64>,
    glb_write_bytes_per_cycle: Option<u64>,
    glb_multicast: Option<Multicast>,
    hbm_gb_per_s: Option<f64>,
    clock_ghz: Option<f64>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "`glb_multicast` is neither a whole number nor \"unlimited\"")]
enum Multicast {
    Cores(u64),
    Named(String),
}

/// Reads all lines of `text`, skipping empty ones; `default` is the hardware of lines that name
/// none.
pub fn jobs(text: &str, file: &str, default: &Hardware) -> Result<Vec<Job>, InputError> {
    let mut known: BTreeMap<String, Hardware> = BTreeMap::new();
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(i, line)| {
            let raw: RawJob = serde_json::from_str(line).map_err(|error| InputError::Syntax {
                file: file.to_owned(),
                line: Some(i + 1),
                message: without_place(&error),
            })?;
            let place = format!("{file}: line {}", i + 1);
            let hardware = match &raw.hardware {
                None => default,
                Some(name) if known.contains_key(name) => &known[name],
                Some(name) => {
                    let found = preset(name, &place)?.in_process(&place)?;
                    known.entry(name.clone()).or_insert(found)
                }
            };
            job(&raw, hardware, &place)
        })
        .collect()
}

/// A matmul written as batch x rows x inner x columns, such as `1x2048x12288x12288`.
pub fn matmul(text: &str, place: &str) -> Result<Matmul, InputError> {
    let field = Field::new(place, "matmul");
    let sizes: Option<Vec<u64>> =
        text.split(['x', 'X', '×']).map(|size| size.trim().parse().ok()).collect();
    match sizes.as_deref() {
        Some(&[b, m, k, n]) => checked(Matmul { b, m, k, n }, place),
        _ => Err(field.value(
            text,
            "is not four whole numbers",
            "write batch x rows x inner x columns, as 1x2048x12288x12288",
        )),
    }
}

fn checked(matmul: Matmul, place: &str) -> Result<Matmul, InputError> {
    let sizes = [("b", matmul.b), ("m", matmul.m), ("k", matmul.k), ("n", matmul.n)];
    for (name, size) in sizes {
        Field::new(place, &format!("matmul.{name}")).whole(size, 1, LARGEST_MATMUL)?;
    }
    let product = sizes.iter().try_fold(1_u64, |product, (_, size)| product.checked_mul(*size));
    if product.is_none_or(|macs| macs > LARGEST_MATMUL) {
        let Matmul { b, m, k, n } = matmul;
        return Err(Field::new(place, "matmul").value(
            &format!("{b}x{m}x{k}x{n}"),
            "has more than 2^62 multiply-accumulates",
            "b·m·k·n must be at most 2^62",
        ));
    }
    Ok(matmul)
}

fn job(raw: &RawJob, hardware: &Hardware, place: &str) -> Result<Job, InputError> {
    let RawMatmul { b, m, k, n } = raw.matmul;
    let matmul = checked(Matmul { b, m, k, n }, place)?;
    let core = &raw.core;
    let field = |name: &str| Field::new(place, &format!("core.{name}"));
    let mut design = hardware.design.with_array(core.width, core.depth);
    design.tensor_cores = core.count;
    design.glb = Bytes(core.glb_bytes);
    if let Some(bytes) = core.local_bytes {
        design.local = Bytes(bytes);
    }
    let physics = physics(core, &hardware.physics, &field)?;
    let spec = spec(design, &physics).map_err(|reason| InputError::Syntax {
        file: place.to_owned(),
        line: None,
        message: reason,
    })?;
    Ok(Job { matmul, core: spec })
}

/// All cores of a chip with such cores; a job never asks for one core's share of the buffer.
fn spec(design: Design, physics: &Physics) -> Result<CoreSpec, String> {
    let whole = Design { tensor_cores: 1, ..design };
    let chip = Accelerator::new(whole, physics).map_err(|reason| reason.to_string())?;
    if design.tensor_cores == 0 || design.tensor_cores > 1 << 16 {
        let found = design.tensor_cores;
        return Err(format!("`core.count = {found}` is outside its range; allowed are 1 to 65536"));
    }
    Ok(CoreSpec { count: design.tensor_cores, ..chip.tensor(Use::Spread) })
}

fn physics(
    core: &RawCore,
    base: &Physics,
    field: &dyn Fn(&str) -> Field,
) -> Result<Physics, InputError> {
    let mut physics = base.clone();
    let port = |name: &str, value: Option<u64>| {
        value.map(|value| field(name).whole(value, 1, 1 << 20)).transpose()
    };
    let read = port("local_read_bytes_per_cycle", core.local_read_bytes_per_cycle)?;
    let write = port("local_write_bytes_per_cycle", core.local_write_bytes_per_cycle)?;
    if read.is_some() || write.is_some() {
        let e = base.element_bytes;
        let feed = Port { read: e * (core.width + core.depth), write: e * core.width };
        let default = base.local.unwrap_or(feed);
        physics.local = Some(Port {
            read: read.unwrap_or(default.read),
            write: write.unwrap_or(default.write),
        });
    }
    let glb_read = port("glb_read_bytes_per_cycle", core.glb_read_bytes_per_cycle)?;
    let glb_write = port("glb_write_bytes_per_cycle", core.glb_write_bytes_per_cycle)?;
    physics.glb = Port {
        read: glb_read.unwrap_or(base.glb.read),
        write: glb_write.unwrap_or(base.glb.write),
    };
    match &core.glb_multicast {
        None => {}
        Some(Multicast::Cores(cores)) => {
            physics.multicast = Some(field("glb_multicast").whole(*cores, 1, 1 << 32)?);
        }
        Some(Multicast::Named(name)) if name == "unlimited" => physics.multicast = None,
        Some(Multicast::Named(name)) => {
            return Err(field("glb_multicast").value(
                &format!("\"{name}\""),
                "is no number of cores",
                "allowed are whole numbers and \"unlimited\"",
            ));
        }
    }
    if let Some(rate) = core.hbm_gb_per_s {
        let rate = field("hbm_gb_per_s").scaled(rate, 1e9, 1e-3, 1e6)?;
        let rate = Bandwidth::bytes_per_second(rate).expect("a rate in range is not zero");
        physics.hbm = crate::hardware::HbmBandwidth::Fixed(rate);
    }
    if let Some(clock) = core.clock_ghz {
        let clock = field("clock_ghz").scaled(clock, 1e9, 1e-3, 100.0)?;
        physics.clock = Frequency::hertz(clock).expect("a clock in range is not zero");
    }
    Ok(physics)
}

/// What the parser said, with the column but without its own count of lines, which is always 1.
fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rsplit_once(" at line 1 column ") {
        Some((message, column)) => plainly(&format!("{message} (column {column})")),
        None => plainly(&text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"{"matmul": {"b": 1, "m": 2048, "k": 4096, "n": 11008}, "core": {"count": 8, "width": 128, "depth": 128, "glb_bytes": 134217728}, "hardware": "icml24"}"#;

    fn read(text: &str) -> Result<Vec<Job>, InputError> {
        jobs(text, "points.jsonl", &preset("tpuv4-like", "").unwrap())
    }

    #[test]
    fn a_point_takes_what_it_leaves_out_from_its_hardware() {
        let found = read(&format!("{GOOD}\n\n{GOOD}\n")).unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!(found[0], found[1]);
        let core = found[0].core;
        assert_eq!((core.count, core.local.0, core.multicast), (8, 16 * 128 * 128, u64::MAX));
        assert_eq!(core.local_port, Port { read: 128, write: 128 });
    }

    #[test]
    fn fields_of_the_core_override_the_hardware() {
        let text = GOOD.replace(
            "\"count\": 8",
            "\"count\": 4, \"local_bytes\": 400000, \"clock_ghz\": 2, \"hbm_gb_per_s\": 10, \
             \"glb_multicast\": 3, \"glb_write_bytes_per_cycle\": 5, \"local_read_bytes_per_cycle\": 7",
        );
        let core = read(&text).unwrap()[0].core;
        assert_eq!((core.count, core.local.0, core.multicast), (4, 400_000, 3));
        assert_eq!(core.clock.as_hertz(), 2_000_000_000);
        assert_eq!(core.hbm.as_bytes_per_second(), 10_000_000_000);
        assert_eq!(core.glb_port, Port { read: 512, write: 5 });
        assert_eq!(core.local_port, Port { read: 7, write: 128 });
    }

    #[test]
    fn a_bad_line_is_named() {
        let cases = [
            ("\"m\": 2048", "\"m\": 0", "line 7: `matmul.m = 0` is out of range"),
            ("\"m\": 2048", "\"m\": 4611686018427387904", "2^62"),
            ("\"m\": 2048", "\"m\": -1", "line 7: found integer `-1`, expected a whole number"),
            ("\"m\": 2048", "\"q\": 1", "line 7: unknown field `q`"),
            ("\"icml24\"", "\"icml25\"", "line 7: unknown hardware `icml25` (did you mean"),
            ("134217728", "100", "line 7: a local buffer"),
            ("\"count\": 8", "\"count\": 0", "`core.count = 0`"),
            ("\"width\": 128", "\"width\": 0", "`width = 0`"),
            ("{\"matmul\"", "{\"matmul", "line 7: "),
        ];
        for (from, to, expected) in cases {
            assert!(GOOD.contains(from), "{from}");
            let text = format!("{}{}\n", format!("{GOOD}\n").repeat(6), GOOD.replace(from, to));
            let error = read(&text).unwrap_err().to_string();
            let expected = expected.replace("a local buffer", "a core's global buffer");
            assert!(error.starts_with("points.jsonl: ") && error.contains(&expected), "{error}");
        }
    }

    #[test]
    fn matmuls_are_written_as_four_sizes() {
        let found = matmul("1x2048x12288x49152", "--matmul").unwrap();
        assert_eq!(found, Matmul { b: 1, m: 2048, k: 12288, n: 49152 });
        for wrong in ["", "1x2x3", "1x2x3x4x5", "1x2x3xq", "0x1x1x1", "2x2147483648x2147483648x2"] {
            matmul(wrong, "--matmul").unwrap_err();
        }
    }
}
