//! Design spaces: the `[space]` section of a request, each knob a list or a power-of-two range.

use serde::Deserialize;

use super::InputError;
use super::numbers::Field;
use super::numbers::syntax;
use crate::hardware::DesignSpace;
use crate::hardware::VectorWidths;
use crate::units::Area;
use crate::units::Bytes;

/// The `[space]` section as it is written; a knob left out is as in the published space.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawSpace {
    tensor_cores: Option<Values>,
    vector_cores: Option<Values>,
    width: Option<Values>,
    depth: Option<Values>,
    vector_width: Option<Lanes>,
    glb_mib: Option<Values>,
    glb_bytes_per_cycle: Option<Values>,
    hbm_gib: Option<Values>,
    max_area_mm2: Option<f64>,
    min_area_fraction: Option<f64>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Values {
    One(u64),
    List(Vec<u64>),
    Range(Range),
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Range {
    from: u64,
    to: u64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Lanes {
    Named(String),
    Values(Values),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    space: RawSpace,
}

/// Reads a file with a `[space]` section.
pub fn space(text: &str, file: &str) -> Result<DesignSpace, InputError> {
    let found: File = toml::from_str(text).map_err(|error| syntax(&error, text, file))?;
    found.space.checked(file)
}

impl RawSpace {
    /// Reads the keys of the section alone, without its heading.
    pub fn read(text: &str, file: &str) -> Result<Self, InputError> {
        toml::from_str(text).map_err(|error| syntax(&error, text, file))
    }

    /// This section laid over another: what it sets counts.
    #[must_use]
    pub fn over(self, under: Self) -> Self {
        Self {
            tensor_cores: self.tensor_cores.or(under.tensor_cores),
            vector_cores: self.vector_cores.or(under.vector_cores),
            width: self.width.or(under.width),
            depth: self.depth.or(under.depth),
            vector_width: self.vector_width.or(under.vector_width),
            glb_mib: self.glb_mib.or(under.glb_mib),
            glb_bytes_per_cycle: self.glb_bytes_per_cycle.or(under.glb_bytes_per_cycle),
            hbm_gib: self.hbm_gib.or(under.hbm_gib),
            max_area_mm2: self.max_area_mm2.or(under.max_area_mm2),
            min_area_fraction: self.min_area_fraction.or(under.min_area_fraction),
        }
    }

    /// The space it describes; `file` is where it was written.
    pub fn checked(&self, file: &str) -> Result<DesignSpace, InputError> {
        let published = DesignSpace::published();
        let list = |name: &str, values: &Option<Values>, default: Vec<u64>, high: u64| match values
        {
            None => Ok(default),
            Some(values) => values.checked(&Field::new(file, &format!("space.{name}")), high),
        };
        let sizes = |sizes: &[Bytes], unit: Bytes| sizes.iter().map(|s| s.0 / unit.0).collect();
        let in_units = |unit: Bytes, counts: Vec<u64>| -> Vec<Bytes> {
            counts.into_iter().map(|count| unit * count).collect()
        };
        let max_area = match self.max_area_mm2 {
            None => published.max_area,
            Some(area) => {
                Area(Field::new(file, "space.max_area_mm2").scaled(area, 1e12, 1e-3, 1e6)?)
            }
        };
        let fraction = Field::new(file, "space.min_area_fraction");
        let billionths = fraction.scaled(self.min_area_fraction.unwrap_or(0.3), 1e9, 0.0, 1.0)?;
        let min_area = (u128::from(max_area.0) * u128::from(billionths)).div_ceil(1_000_000_000);
        Ok(DesignSpace {
            tensor_cores: list(
                "tensor_cores",
                &self.tensor_cores,
                published.tensor_cores,
                1 << 16,
            )?,
            vector_cores: list(
                "vector_cores",
                &self.vector_cores,
                published.vector_cores,
                1 << 16,
            )?,
            widths: list("width", &self.width, published.widths, 1 << 12)?,
            depths: list("depth", &self.depth, published.depths, 1 << 12)?,
            vector_widths: self.lanes(file)?,
            glb: in_units(
                Bytes::MIB,
                list("glb_mib", &self.glb_mib, sizes(&published.glb, Bytes::MIB), 1 << 20)?,
            ),
            glb_bytes_per_cycle: list(
                "glb_bytes_per_cycle",
                &self.glb_bytes_per_cycle,
                Vec::new(),
                1 << 20,
            )?,
            hbm: in_units(
                Bytes::GIB,
                list("hbm_gib", &self.hbm_gib, sizes(&published.hbm, Bytes::GIB), 1 << 20)?,
            ),
            max_area,
            min_area: Area(u64::try_from(min_area).expect("a fraction of an area is an area")),
        })
    }

    fn lanes(&self, file: &str) -> Result<VectorWidths, InputError> {
        let field = Field::new(file, "space.vector_width");
        match &self.vector_width {
            None => Ok(VectorWidths::AsWidth),
            Some(Lanes::Named(name)) if name == "as-width" => Ok(VectorWidths::AsWidth),
            Some(Lanes::Named(name)) => Err(field.value(
                &format!("\"{name}\""),
                "is neither",
                "allowed are \"as-width\", a list, and a range { from = 2, to = 256 }",
            )),
            Some(Lanes::Values(values)) => Ok(VectorWidths::Free(values.checked(&field, 1 << 16)?)),
        }
    }
}

impl Values {
    fn checked(&self, field: &Field, high: u64) -> Result<Vec<u64>, InputError> {
        let values = match self {
            Self::One(value) => vec![*value],
            Self::List(values) => values.clone(),
            Self::Range(Range { from, to }) => {
                field.whole(*from, 1, high)?;
                field.whole(*to, 1, high)?;
                std::iter::successors(Some(*from), |value| value.checked_mul(2))
                    .take_while(|value| value <= to)
                    .collect()
            }
        };
        if values.is_empty() {
            return Err(field.value(
                "[]",
                "has no value",
                "give a list, or a range whose `from` is at most its `to`",
            ));
        }
        values.iter().try_for_each(|&value| field.whole(value, 1, high).map(|_| ()))?;
        Ok(values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_section_is_the_published_space() {
        assert_eq!(space("[space]\n", "space.toml").unwrap(), DesignSpace::published());
    }

    #[test]
    fn knobs_are_lists_or_ranges_of_powers_of_two() {
        let text = "[space]\nwidth = [64, 100]\ntensor_cores = { from = 2, to = 16 }\n\
                    vector_width = { from = 128, to = 256 }\nmax_area_mm2 = 100\n";
        let found = space(text, "space.toml").unwrap();
        assert_eq!(found.widths, [64, 100]);
        assert_eq!(found.tensor_cores, [2, 4, 8, 16]);
        assert_eq!(found.vector_widths, VectorWidths::Free(vec![128, 256]));
        assert_eq!(found.max_area.square_millimetres().to_bits(), 100_f64.to_bits());
    }

    #[test]
    fn impossible_spaces_are_refused_by_name() {
        let cases = [
            ("width = []", "`space.width = []` has no value"),
            ("width = { from = 8, to = 4 }", "`space.width = []` has no value"),
            ("depth = [0]", "`space.depth = 0` is out of range"),
            ("vector_width = \"free\"", "`space.vector_width = \"free\"`"),
            ("max_area_mm2 = -3", "`space.max_area_mm2 = -3`"),
            ("widht = [2]", "unknown field `widht`"),
        ];
        for (line, expected) in cases {
            let error = space(&format!("[space]\n{line}\n"), "s.toml").unwrap_err().to_string();
            assert!(error.starts_with("s.toml: ") && error.contains(expected), "{error}");
        }
    }
}
