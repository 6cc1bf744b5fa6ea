//! The accelerator that a command is about: a name or a file, and knobs turned by hand.

use std::collections::BTreeMap;

use clap::Args;

use super::Refusal;
use phaze::ask::Spelling;
use phaze::ask::chip::ChipRequest;
use phaze::hardware::Accelerator;
use phaze::hardware::Knob;
use phaze::input::Conventions;
use phaze::input::efficiency_choice::IDEAL;
use phaze::input::hardware::Hardware;
use phaze::store::files;

/// Which accelerator, for every command that needs one.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Accelerator")]
pub struct DesignArgs {
    /// A built-in accelerator (icml24, tpuv4-like, tpuv4, a100-40g, a100-80g, h100-sxm, h200-sxm,
    /// h800-sxm, b200, l40s, mi300x, gaudi3, trainium2, tpuv5e, tpuv5p, tpuv6e) or a hardware file
    /// [default: tpuv4-like]
    #[arg(long, value_name = "NAME|FILE")]
    pub design: Option<String>,
    /// Number of tensor cores, instead of the design's
    #[arg(long, value_name = "N")]
    pub tensor_cores: Option<u64>,
    /// Width of each array
    #[arg(long, value_name = "N")]
    pub width: Option<u64>,
    /// Depth of each array
    #[arg(long, value_name = "N")]
    pub depth: Option<u64>,
    /// Number of vector cores
    #[arg(long, value_name = "N")]
    pub vector_cores: Option<u64>,
    /// Lanes of each vector core
    #[arg(long, value_name = "N")]
    pub vector_width: Option<u64>,
    /// Local buffer of each tensor core
    #[arg(long, value_name = "KIB")]
    pub local_kib: Option<u64>,
    /// Global on-chip buffer
    #[arg(long, value_name = "MIB")]
    pub glb_mib: Option<u64>,
    /// Off-chip memory; its bandwidth follows where the design's physics say so
    #[arg(long, value_name = "GIB")]
    pub hbm_gib: Option<u64>,
    /// Whose efficiency is assumed in place of the accelerator's own: ideal, a class (systolic, simt),
    /// or a built-in accelerator or a hardware file with a block
    #[arg(long, value_name = "NAME|FILE")]
    pub efficiency: Option<String>,
    /// Everything as the data sheet says: the same as --efficiency ideal
    #[arg(long, conflicts_with = "efficiency")]
    pub ideal: bool,
}

impl DesignArgs {
    /// Whether the user named or changed an accelerator at all.
    pub fn given(&self) -> bool {
        self.design.is_some() || self.knobs().iter().any(|(_, value)| value.is_some())
    }

    /// The knobs by name, with what was given.
    fn knobs(&self) -> [(&'static str, Option<u64>); 8] {
        [
            ("tensor_cores", self.tensor_cores),
            ("width", self.width),
            ("depth", self.depth),
            ("vector_cores", self.vector_cores),
            ("vector_width", self.vector_width),
            ("local_kib", self.local_kib),
            ("glb_mib", self.glb_mib),
            ("hbm_gib", self.hbm_gib),
        ]
    }

    /// The hardware named, with the knobs turned, and the accelerator it makes.
    ///
    /// With the published conventions, the constants are the published ones, whatever the design.
    pub fn resolve(&self, conventions: &Conventions) -> Result<(Hardware, Accelerator), Refusal> {
        Ok(self.request()?.resolve(conventions, &files::small)?)
    }

    /// What the user asks of the accelerator.
    pub fn request(&self) -> Result<ChipRequest, Refusal> {
        Ok(ChipRequest {
            design: self.design.clone(),
            knobs: self.turned_knobs()?,
            efficiency: if self.ideal { Some(IDEAL.into()) } else { self.efficiency.clone() },
            spelling: Spelling::Options,
        })
    }

    /// The knobs that the user turned, each within its range.
    fn turned_knobs(&self) -> Result<BTreeMap<String, u64>, Refusal> {
        let mut turned = BTreeMap::new();
        for (name, value) in self.knobs() {
            let (Some(value), Some(knob)) = (value, Knob::named(name)) else { continue };
            let option = name.replace('_', "-");
            knob.check(value)
                .map_err(|reason| Refusal::Options(format!("--{option}: {reason}")))?;
            turned.insert(name.to_owned(), value);
        }
        Ok(turned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use phaze::units::Bytes;

    #[test]
    fn knobs_that_follow_others_keep_following_them() {
        let args = DesignArgs { width: Some(32), depth: Some(16), ..DesignArgs::default() };
        let (found, chip) = args.resolve(&Conventions::OURS).unwrap();
        assert_eq!(found.design.vector_width, 32);
        assert_eq!(found.design.local, Bytes(16 * 32 * 16));
        assert_eq!(chip.design(), &found.design);
    }

    #[test]
    fn a_buffer_size_that_a_file_gives_is_kept() {
        let args =
            DesignArgs { design: Some("tpuv4".into()), width: Some(64), ..Default::default() };
        let (found, _) = args.resolve(&Conventions::OURS).unwrap();
        assert_eq!(found.design.local, Bytes::MIB * 3);
        assert_eq!(found.design.vector_width, 2048);
    }

    #[test]
    fn unusable_requests_are_refused_with_the_reason() {
        let refusal = |args: DesignArgs| args.resolve(&Conventions::OURS).unwrap_err().to_string();
        let unknown = DesignArgs { design: Some("tpv4".into()), ..Default::default() };
        assert!(refusal(unknown).contains("did you mean `tpuv4`"));
        let small = DesignArgs { local_kib: Some(1), ..Default::default() };
        assert!(refusal(small).contains("cannot hold one tile of a 128x128 array"));
        let zero = DesignArgs { tensor_cores: Some(0), ..Default::default() };
        assert!(refusal(zero).contains("`tensor_cores = 0` is outside its range"));
        let huge = DesignArgs { hbm_gib: Some(u64::MAX), ..Default::default() };
        assert!(refusal(huge).contains("--hbm-gib"));
        let untabled = DesignArgs { hbm_gib: Some(48), ..Default::default() };
        assert!(refusal(untabled).contains("nearest are 32 and 64"));
        let one_rate =
            DesignArgs { design: Some("tpuv4".into()), hbm_gib: Some(48), ..Default::default() };
        assert!(one_rate.resolve(&Conventions::OURS).is_ok());
    }
}
