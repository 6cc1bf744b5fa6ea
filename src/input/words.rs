//! Words of request files that each mean one of a few things.

use super::InputError;
use super::conventions::Conventions;
use super::numbers::Field;
use super::request::JobTable;
use crate::model::Attention;
use crate::parallel::frameworks::Framework;
use crate::plan::Recompute;
use crate::search::Combine;
use crate::search::Objective;

/// What can be made as good as possible, by name.
pub(super) const OBJECTIVES: [(&str, Objective); 5] = [
    ("throughput", Objective::Throughput),
    ("throughput-per-area", Objective::ThroughputPerArea),
    ("energy-per-token", Objective::EnergyPerToken),
    ("cost-per-token", Objective::CostPerToken),
    ("carbon-per-token", Objective::CarbonPerToken),
];

/// How several models become one number, by name.
pub(super) const COMBINES: [(&str, Combine); 3] =
    [("geomean", Combine::Geomean), ("mean", Combine::Mean), ("min-regret", Combine::MinRegret)];

/// Words of one file that each mean one of a few things.
pub(super) struct Words<'a> {
    pub file: &'a str,
}

impl Words<'_> {
    /// What the word `found` means, or the default where there is none.
    pub fn one_of<T: Copy>(
        &self,
        field: &str,
        found: Option<&str>,
        default: T,
        known: &[(&str, T)],
    ) -> Result<T, InputError> {
        let Some(found) = found else { return Ok(default) };
        let meaning = known.iter().find(|(name, _)| *name == found).map(|(_, meaning)| *meaning);
        meaning.ok_or_else(|| InputError::Unknown {
            file: self.file.to_owned(),
            what: format!("`{field}`"),
            found: found.to_owned(),
            known: known.iter().map(|(name, _)| (*name).to_owned()).collect(),
        })
    }

    /// What attention leaves behind.
    pub fn attention(
        &self,
        job: &JobTable,
        default: &Conventions,
    ) -> Result<Attention, InputError> {
        self.one_of(
            "job.attention",
            job.attention.as_deref(),
            default.attention,
            &[
                ("fused", Attention::Recomputed),
                ("unfused", Attention::Stored),
                ("recomputed", Attention::Recomputed),
                ("stored", Attention::Stored),
            ],
        )
    }

    /// The framework of that name.
    pub fn framework(&self, name: &str) -> Result<Framework, InputError> {
        name.parse().map_err(|_| InputError::Unknown {
            file: self.file.to_owned(),
            what: "`job.launchable`".into(),
            found: name.to_owned(),
            known: ["megatron", "torchtitan", "maxtext", "any"].map(str::to_owned).to_vec(),
        })
    }

    /// Thousandths, from a part of the whole.
    pub fn reserve(&self, found: Option<f64>, default: i64) -> Result<i64, InputError> {
        let Some(found) = found else { return Ok(default) };
        let field = Field::new(self.file, "job.reserve");
        let thousandths = field.scaled(found, 1e3, 0.0, 0.999)?;
        Ok(i64::try_from(thousandths).unwrap_or(default))
    }

    /// The choices named, in the usual order, each once; `auto` is what a search chooses from by
    /// default.
    pub fn recompute(
        &self,
        found: Option<&[String]>,
        default: &[Recompute],
    ) -> Result<Vec<Recompute>, InputError> {
        let Some(found) = found else { return Ok(default.to_vec()) };
        let every = [
            Recompute::None,
            Recompute::Full,
            Recompute::Stage,
            Recompute::EVERY_LAYER,
            Recompute::AsNeeded,
        ];
        let names = every.map(|choice| (choice.to_string(), vec![choice]));
        let auto = ("auto".to_owned(), default.to_vec());
        let known: Vec<(String, Vec<Recompute>)> = names.into_iter().chain([auto]).collect();
        let known: Vec<(&str, &[Recompute])> =
            known.iter().map(|(name, choices)| (name.as_str(), choices.as_slice())).collect();
        let mut wanted = Vec::new();
        for name in found {
            let none: &[Recompute] = &[];
            wanted.extend(self.one_of("job.recompute", Some(name), none, &known)?);
        }
        wanted.sort_unstable();
        wanted.dedup();
        Ok(wanted)
    }
}
