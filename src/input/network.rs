//! The `[network]` table of a hardware file: flat, nodes, levels or a torus.

use serde::Deserialize;

use super::InputError;
use super::numbers::Field;
use crate::hardware::network::Level;
use crate::hardware::network::Levels;
use crate::hardware::network::Link;
use crate::hardware::network::Network;
use crate::hardware::network::Torus;
use crate::units::Bandwidth;
use crate::units::Time;

/// The table as it is written.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawNetwork {
    gb_per_s: Option<f64>,
    latency_us: Option<f64>,
    devices_per_node: Option<u64>,
    between_gb_per_s: Option<f64>,
    levels: Option<Vec<RawLevel>>,
    torus: Option<RawTorus>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
struct RawLevel {
    units: Option<u64>,
    gb_per_s: f64,
    latency_us: Option<f64>,
    efficiency: Option<f64>,
    #[serde(default)]
    reduces_in_switch: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
struct RawTorus {
    dims: Vec<u64>,
    gb_per_s: f64,
    latency_us: Option<f64>,
}

impl RawNetwork {
    /// Whether the file says nothing of a network.
    pub(super) fn is_absent(&self) -> bool {
        self.gb_per_s.is_none() && self.levels.is_none() && self.torus.is_none()
    }

    /// The network that it describes.
    pub(super) fn read(&self, file: &str) -> Result<Network, InputError> {
        let of_nodes = self.gb_per_s.is_some()
            || self.latency_us.is_some()
            || self.devices_per_node.is_some()
            || self.between_gb_per_s.is_some();
        match (&self.levels, &self.torus) {
            (None, None) => self.nodes(file),
            (Some(levels), None) if !of_nodes => self::levels(levels, file),
            (None, Some(torus)) if !of_nodes => self::torus(torus, file),
            _ => Err(Field::new(file, "network").value(
                "more than one kind of network",
                "cannot be built",
                "give [[network.levels]], or [network.torus], or gb_per_s with latency_us, \
                 devices_per_node and between_gb_per_s",
            )),
        }
    }

    /// A flat network, or one of nodes.
    fn nodes(&self, file: &str) -> Result<Network, InputError> {
        let field = |name: &str| Field::new(file, &format!("network.{name}"));
        let gb_per_s =
            self.gb_per_s.ok_or_else(|| field("gb_per_s").missing("give a rate per device"))?;
        let link = |name, gb_per_s| link(file, "network", (name, gb_per_s), self.latency_us);
        let inside = link("gb_per_s", gb_per_s)?;
        match (self.devices_per_node, self.between_gb_per_s) {
            (None, None) => Ok(Network::flat(inside)),
            (Some(per_node), Some(between)) => {
                let per_node = field("devices_per_node").whole(per_node, 1, Levels::LARGEST)?;
                let nodes = Levels::nodes(per_node, inside, link("between_gb_per_s", between)?);
                Ok(Network::Levels(nodes.expect("the size of a node was just checked")))
            }
            (Some(_), None) => {
                Err(field("between_gb_per_s")
                    .missing("a network of nodes needs its rate between them"))
            }
            (None, Some(_)) => {
                Err(field("devices_per_node").missing("a rate between nodes needs their size"))
            }
        }
    }
}

fn levels(raw: &[RawLevel], file: &str) -> Result<Network, InputError> {
    let count = raw.len() as u64;
    Field::new(file, "network.levels (how many)").whole(count, 1, Levels::MOST as u64)?;
    let mut levels = Vec::new();
    for (place, level) in raw.iter().enumerate() {
        let table = format!("network.levels[{}]", place + 1);
        let field = |name: &str| Field::new(file, &format!("{table}.{name}"));
        if level.units.is_none() && place + 1 < raw.len() {
            let expected = "only the outermost level may hold any number of units";
            return Err(field("units").missing(expected));
        }
        let units = level.units.map(|n| field("units").whole(n, 1, Levels::LARGEST)).transpose()?;
        let efficiency =
            field("efficiency").scaled(level.efficiency.unwrap_or(1.0), 1e3, 0.001, 1.0)?;
        levels.push(Level {
            units,
            link: link(file, &table, ("gb_per_s", level.gb_per_s), level.latency_us)?,
            efficiency: u16::try_from(efficiency).expect("at most a thousand thousandths"),
            reduces_in_switch: level.reduces_in_switch,
            startup: None,
            step: Time::ZERO,
        });
    }
    let levels = Levels::new(&levels).expect("every number of every level was just checked");
    Ok(Network::Levels(levels))
}

fn torus(raw: &RawTorus, file: &str) -> Result<Network, InputError> {
    let link = link(file, "network.torus", ("gb_per_s", raw.gb_per_s), raw.latency_us)?;
    let torus = Torus::new(&raw.dims, link).map_err(|reason| {
        let field = Field::new(file, "network.torus.dims");
        field.value(&format!("{:?}", raw.dims), "is no torus", &reason.to_string())
    })?;
    Ok(Network::Torus(torus))
}

/// A link whose rate and latency stand in a table.
fn link(
    file: &str,
    table: &str,
    (name, gb_per_s): (&str, f64),
    latency_us: Option<f64>,
) -> Result<Link, InputError> {
    let field = |name: &str| Field::new(file, &format!("{table}.{name}"));
    let latency = field("latency_us").scaled(latency_us.unwrap_or(0.0), 1e6, 0.0, 1e6)?;
    Ok(Link { bandwidth: rate(&field(name), gb_per_s)?, latency: Time(latency) })
}

/// A rate in bytes per second from GB/s.
pub(super) fn rate(field: &Field, gb_per_s: f64) -> Result<Bandwidth, InputError> {
    let rate = field.scaled(gb_per_s, 1e9, 1e-3, 1e6)?;
    Ok(Bandwidth::bytes_per_second(rate).expect("a rate in range is not zero"))
}

/// Refuses more devices than a network joins; `field` is what asks for them.
pub(super) fn reaches(network: &Network, devices: u64, field: &Field) -> Result<(), InputError> {
    match network.most_devices().filter(|&most| devices > most) {
        None => Ok(()),
        Some(most) => Err(field.value(
            &devices.to_string(),
            "is more than the network joins",
            &format!("allowed are 1 to {most}"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Network, String> {
        let raw: RawNetwork = toml::from_str(text).map_err(|error| error.to_string())?;
        raw.read("mine.toml").map_err(|error| error.to_string())
    }

    #[test]
    fn nodes_are_two_levels() {
        let short = "gb_per_s = 450\nbetween_gb_per_s = 50\ndevices_per_node = 8\nlatency_us = 1";
        let long = "[[levels]]\nunits = 8\ngb_per_s = 450\nlatency_us = 1\n\
                    [[levels]]\ngb_per_s = 50\nlatency_us = 1\n";
        assert_eq!(read(short), read(long));
        let limited = read(&format!("{long}units = 4\n")).unwrap();
        assert_eq!(limited.most_devices(), Some(32));
        let field = Field::new("mine.toml", "devices");
        assert!(reaches(&limited, 32, &field).is_ok());
        let error = reaches(&limited, 33, &field).unwrap_err().to_string();
        assert!(error.contains("`devices = 33`") && error.contains("1 to 32"), "{error}");
    }

    #[test]
    fn errors_name_the_level_and_what_is_allowed() {
        let cases = [
            ("[[levels]]\ngb_per_s = 1\n[[levels]]\ngb_per_s = 1", "`network.levels[1].units`"),
            ("[[levels]]\nunits = 0\ngb_per_s = 1", "`network.levels[1].units = 0`"),
            ("[[levels]]\ngb_per_s = 1\nefficiency = 2", "`network.levels[1].efficiency = 2`"),
            ("levels = []", "`network.levels (how many) = 0`"),
            ("[torus]\ndims = [4, 1]\ngb_per_s = 1", "`network.torus.dims = [4, 1]`"),
            ("[torus]\ndims = [4]\ngb_per_s = 0", "`network.torus.gb_per_s = 0`"),
            ("gb_per_s = 1\n[torus]\ndims = [4]\ngb_per_s = 1", "more than one kind of network"),
            ("[[levels]]\nrate = 1", "unknown field `rate`"),
        ];
        for (text, expected) in cases {
            let error = read(text).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
