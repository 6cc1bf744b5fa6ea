//! Whose efficiency a request asks for: none at all, a class of designs, or another part.
//!
//! Designs that were never built have no runs. A class holds what the nearest calibrated part
//! reaches, and answers say that it is assumed.

use serde::Deserialize;

use super::InputError;
use super::efficiency::RawEfficiency;
use super::hardware;
use super::hardware::Hardware;
use super::numbers::Field;
use super::numbers::syntax;
use super::source;
use super::source::Reader;
use super::source::printable;
use crate::hardware::Efficiency;
use crate::hardware::Physics;
use crate::plan::Source;

/// What leaves every block out.
pub const IDEAL: &str = "ideal";

/// The classes, by name.
const CLASSES: [(&str, &str); 2] = [
    ("systolic", include_str!("../../inputs/efficiency/systolic.toml")),
    ("simt", include_str!("../../inputs/efficiency/simt.toml")),
];

/// What a user called `name`, with its text where it is a file that `read` opens; `place` is what
/// held the name.
///
/// # Errors
/// What cannot be read, is not known, or holds no efficiency.
pub fn source(name: &str, place: &str, read: &Reader) -> Result<Source, InputError> {
    let text = source::is_path(name).then(|| read(std::path::Path::new(name))).transpose()?;
    let found = Source { name: printable(name), text };
    efficiency(&found, place)?;
    Ok(found)
}

/// Gives hardware the efficiency that was chosen in place of its own; `place` is what held the name.
///
/// # Errors
/// A name that is not known, or a file without an efficiency.
pub fn assume(
    chosen: Option<&Source>,
    hardware: &mut Hardware,
    place: &str,
) -> Result<(), InputError> {
    let Some(chosen) = chosen else { return Ok(()) };
    let has_fp8 = assume_physics(chosen, &mut hardware.physics, place)?;
    hardware.fp8 = hardware.fp8 && has_fp8;
    Ok(())
}

/// The same for physics alone; answers whether the efficiency speaks of matmuls in 8 bits.
///
/// # Errors
/// As of [`assume`].
pub fn assume_physics(
    chosen: &Source,
    physics: &mut Physics,
    place: &str,
) -> Result<bool, InputError> {
    let (found, has_fp8) = efficiency(chosen, place)?;
    physics.efficiency = found;
    physics.calibrations.clear();
    physics.efficiency_from = (chosen.name != IDEAL).then(|| chosen.name.clone());
    Ok(has_fp8)
}

/// A file of which only the block is read: a class, or any hardware file.
#[derive(Deserialize)]
#[serde(expecting = "a table")]
struct BlockFile {
    efficiency: Option<RawEfficiency>,
}

/// The efficiency of that name or file, and whether it speaks of matmuls in 8 bits.
fn efficiency(chosen: &Source, place: &str) -> Result<(Efficiency, bool), InputError> {
    let Source { name, text } = chosen;
    if name == IDEAL && text.is_none() {
        return Ok((Efficiency::IDEAL, true));
    }
    let class = || CLASSES.iter().find(|(known, _)| known == name).map(|(_, text)| *text);
    let built_in = || class().or_else(|| hardware::preset_text(name));
    let text = text.as_deref().or_else(built_in).ok_or_else(|| {
        let classes = CLASSES.iter().map(|(known, _)| (*known).to_owned());
        let known = std::iter::once(IDEAL.to_owned()).chain(classes).chain(with_blocks());
        InputError::Unknown {
            file: place.to_owned(),
            what: "efficiency".into(),
            found: name.clone(),
            known: known.collect(),
        }
    })?;
    let file: BlockFile = toml::from_str(text).map_err(|error| syntax(&error, text, name))?;
    let Some(block) = file.efficiency else {
        let known = with_blocks().join(", ");
        let expected =
            format!("give a hardware file with a table [efficiency], a class, or one of {known}");
        return Err(Field::new(name, "efficiency").missing(&expected));
    };
    let (found, _) = block.read(name)?;
    Ok((found, block.has_fp8()))
}

/// The built-in accelerators that have a block.
fn with_blocks() -> Vec<String> {
    let has_block = |name: &String| {
        let text = hardware::preset_text(name).unwrap_or_default();
        toml::from_str::<BlockFile>(text).is_ok_and(|file| file.efficiency.is_some())
    };
    hardware::preset_names().into_iter().filter(has_block).collect()
}

#[cfg(test)]
mod tests {
    use super::super::hardware::preset;
    use super::super::source::no_files;
    use super::*;
    use crate::model::Kernels;

    fn of(name: &str) -> Result<(Efficiency, bool), InputError> {
        let found = source(name, "--efficiency", &no_files)?;
        efficiency(&found, "--efficiency")
    }

    #[test]
    fn classes_hold_what_the_nearest_calibrated_parts_reach() {
        let part = |name| preset(name, "test").unwrap().physics.efficiency;
        let nearest = Efficiency { matmul_fp8: part("h100-sxm").matmul_fp8, ..part("a100-80g") };
        assert_eq!(of("simt").unwrap(), (nearest, true));
        let compiled = Efficiency {
            kernels: Kernels::FusedIdeal,
            collective: None,
            between_step: None,
            gradients_hidden: None,
            ..nearest
        };
        assert_eq!(of("systolic").unwrap(), (compiled, true));
    }

    #[test]
    fn what_is_assumed_takes_the_place_of_the_block_and_of_its_runs() {
        let mut part = preset("a100-80g", "test").unwrap();
        let chosen = source("b200", "--efficiency", &no_files).unwrap();
        assume(Some(&chosen), &mut part, "--efficiency").unwrap();
        assert_eq!(part.physics.efficiency, preset("b200", "test").unwrap().physics.efficiency);
        assert_eq!(part.physics.efficiency_from.as_deref(), Some("b200"));
        assert!(part.physics.calibrations.is_empty());
        let before = preset("h100-sxm", "test").unwrap();
        let mut after = before.clone();
        assume(None, &mut after, "--efficiency").unwrap();
        assert_eq!(after.physics, before.physics);
        let ideal = source(IDEAL, "--efficiency", &no_files).unwrap();
        assume(Some(&ideal), &mut after, "--efficiency").unwrap();
        assert_eq!(after.physics.efficiency, Efficiency::IDEAL);
        assert_eq!((after.physics.efficiency_from, after.fp8), (None, true));
    }

    #[test]
    fn eight_bits_need_a_fraction_of_their_own() {
        let mut part = preset("h100-sxm", "test").unwrap();
        let chosen = source("a100-80g", "--efficiency", &no_files).unwrap();
        assume(Some(&chosen), &mut part, "--efficiency").unwrap();
        assert!(!part.fp8);
    }

    #[test]
    fn errors_name_what_would_do() {
        let refusal = |name: &str| of(name).unwrap_err().to_string();
        let unknown = refusal("sistolic");
        assert!(unknown.contains("did you mean `systolic`"), "{unknown}");
        assert!(unknown.contains("ideal, systolic, simt, a100-40g"), "{unknown}");
        let none = refusal("tpuv4");
        assert!(none.contains("`efficiency` is missing; give a hardware file with"), "{none}");
        let broken =
            Source { name: "my.toml".into(), text: Some("[efficiency]\nmatmul = 2".into()) };
        let broken = efficiency(&broken, "--efficiency").unwrap_err().to_string();
        assert!(broken.contains("my.toml: `efficiency.matmul = 2` is out of range"), "{broken}");
    }
}
