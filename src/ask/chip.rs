//! The accelerator that a request is about: a name or a file, and knobs turned by hand.

use std::collections::BTreeMap;

use super::Keywords;
use super::Refusal;
use super::Spelling;
use crate::hardware::Accelerator;
use crate::input::Conventions;
use crate::input::InputError;
use crate::input::efficiency_choice;
use crate::input::efficiency_choice::IDEAL;
use crate::input::hardware::Hardware;
use crate::input::place;
use crate::input::source;
use crate::input::source::Reader;
use crate::plan::Source;

/// The knobs of one accelerator that can be turned by hand; the others are of spaces.
pub const TURNED: [&str; 8] = [
    "tensor_cores",
    "width",
    "depth",
    "vector_cores",
    "vector_width",
    "local_kib",
    "glb_mib",
    "hbm_gib",
];

/// Which accelerator, for every verb that needs one.
#[derive(Clone, Debug, Default)]
pub struct ChipRequest {
    /// A built-in accelerator or the path of a hardware file.
    pub design: Option<String>,
    /// The knobs that were turned.
    pub knobs: BTreeMap<String, u64>,
    /// Whose efficiency is assumed in place of the accelerator's own: `ideal`, a class, a built-in
    /// accelerator or the path of a hardware file.
    pub efficiency: Option<String>,
    /// How it was written.
    pub spelling: Spelling,
}

impl ChipRequest {
    /// Takes what is about the accelerator.
    ///
    /// # Errors
    /// What is of another kind.
    pub fn take(given: &mut Keywords) -> Result<Self, InputError> {
        let design = given.take("design")?;
        let mut knobs = BTreeMap::new();
        for name in TURNED {
            if let Some(value) = given.take(name)? {
                knobs.insert(name.to_owned(), value);
            }
        }
        let efficiency = given.take("efficiency")?;
        let efficiency = if given.switch("ideal")? { Some(IDEAL.into()) } else { efficiency };
        Ok(Self { design, knobs, efficiency, spelling: Spelling::Keywords })
    }

    /// Whether an accelerator was named or changed at all.
    pub fn given(&self) -> bool {
        self.design.is_some() || !self.knobs.is_empty()
    }

    /// What was named, with its text where it is a file.
    ///
    /// # Errors
    /// What cannot be read or is not known.
    pub fn source(&self, read: &Reader) -> Result<Source, InputError> {
        let name = self.design.as_deref().unwrap_or(Conventions::OURS.hardware);
        let (_, text) = source::hardware(name, &self.spelling.of("design"), read)?;
        Ok(Source { name: name.to_owned(), text })
    }

    /// The hardware named, with the knobs turned, and the accelerator it makes. With the published
    /// conventions, the constants are the published ones, whatever the design.
    ///
    /// # Errors
    /// What cannot be read, is not known, or cannot be built.
    pub fn resolve(
        &self,
        conventions: &Conventions,
        read: &Reader,
    ) -> Result<(Hardware, Accelerator), Refusal> {
        let source = self.source(read)?;
        let place = self.spelling.of("design");
        let efficiency = self.efficiency(read)?;
        let given = (conventions, efficiency.as_ref());
        Ok(place::accelerator(&source, &self.knobs, given, &place)?)
    }

    /// Whose efficiency is assumed, with its text where it is a file.
    ///
    /// # Errors
    /// What cannot be read, is not known, or holds no efficiency.
    pub fn efficiency(&self, read: &Reader) -> Result<Option<Source>, InputError> {
        let place = self.spelling.of("efficiency");
        let chosen = |name: &String| efficiency_choice::source(name, &place, read);
        self.efficiency.as_ref().map(chosen).transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hardware::Knob;
    use crate::input::source::no_files;
    use crate::units::Bytes;
    use serde_json::Value;
    use serde_json::json;

    fn asked(given: Value) -> Result<(Hardware, Accelerator), Refusal> {
        let Value::Object(given) = given else { unreachable!("a call has names") };
        let mut given = Keywords::new("designs", given);
        let request = ChipRequest::take(&mut given)?;
        given.end()?;
        request.resolve(&Conventions::OURS, &no_files)
    }

    #[test]
    fn every_knob_that_can_be_turned_is_one() {
        assert!(TURNED.iter().all(|name| Knob::named(name).is_some()));
    }

    #[test]
    fn knobs_that_follow_others_keep_following_them() {
        let (found, chip) = asked(json!({ "width": 32, "depth": 16 })).unwrap();
        assert_eq!(found.design.vector_width, 32);
        assert_eq!(found.design.local, Bytes(16 * 32 * 16));
        assert_eq!(chip.design(), &found.design);
    }

    #[test]
    fn a_buffer_size_that_a_file_gives_is_kept() {
        let (found, _) = asked(json!({ "design": "tpuv4", "width": 64 })).unwrap();
        assert_eq!(found.design.local, Bytes::MIB * 3);
        assert_eq!(found.design.vector_width, 2048);
    }

    #[test]
    fn unusable_requests_are_refused_with_the_reason() {
        for (given, expected) in [
            (json!({ "design": "tpv4" }), "did you mean `tpuv4`"),
            (json!({ "local_kib": 1 }), "cannot hold one tile of a 128x128 array"),
            (json!({ "tensor_cores": 0 }), "outside its range"),
            (json!({ "hbm_gib": u64::MAX }), "hbm_gib"),
            (json!({ "hbm_gib": 48 }), "nearest are 32 and 64"),
            (json!({ "tensor_core": 8 }), "did you mean `tensor_cores`?"),
            (json!({ "width": "wide" }), "give a whole number"),
        ] {
            let refusal = asked(given).unwrap_err().to_string();
            assert!(refusal.contains(expected), "{refusal}");
        }
        assert!(asked(json!({ "design": "tpuv4", "hbm_gib": 48 })).is_ok());
    }
}
