//! The accelerator that a command is about: a name or a file, and knobs turned by hand.

use std::path::Path;

use clap::Args;

use super::Refusal;
use super::files;
use crate::hardware::Accelerator;
use crate::hardware::Design;
use crate::input::InputError;
use crate::input::hardware::Hardware;
use crate::input::hardware::hardware;
use crate::input::hardware::preset;
use crate::input::hardware::preset_names;
use crate::units::Bytes;

/// Hardware files are a page long; this is a thousand times that.
const LARGEST_FILE: u64 = 4 << 20;

/// Which accelerator, for every command that needs one.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Accelerator")]
pub struct DesignArgs {
    /// A built-in accelerator (icml24, tpuv4-like, tpuv4, a100-80g, h100-sxm) or a hardware file
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
}

impl DesignArgs {
    /// Whether the user named or changed an accelerator at all.
    pub fn given(&self) -> bool {
        let knobs = [
            self.tensor_cores,
            self.width,
            self.depth,
            self.vector_cores,
            self.vector_width,
            self.local_kib,
            self.glb_mib,
            self.hbm_gib,
        ];
        self.design.is_some() || knobs.iter().any(Option::is_some)
    }

    /// The hardware named, with the knobs turned, and the accelerator it makes.
    ///
    /// With `published`, the constants are the published ones, whatever the design.
    pub fn resolve(&self, published: bool) -> Result<(Hardware, Accelerator), Refusal> {
        let mut found = self.named()?;
        found.design = self.turned(found.design)?;
        if published {
            found.physics = preset("icml24", "--published")?.physics;
        }
        let chip = Accelerator::new(found.design, &found.physics)
            .map_err(|reason| Refusal::Options(format!("{}: {reason}", found.name)))?;
        Ok((found, chip))
    }

    fn named(&self) -> Result<Hardware, InputError> {
        let name = self.design.as_deref().unwrap_or("tpuv4-like");
        let path = Path::new(name);
        let looks_like_a_file = name.contains(['/', '\\', '.']) || path.exists();
        if !preset_names().iter().any(|known| known == name) && looks_like_a_file {
            return hardware(&files::read(path, LARGEST_FILE)?, &files::name(path));
        }
        preset(name, "--design")
    }

    fn turned(&self, base: Design) -> Result<Design, Refusal> {
        let bytes = |option: &str, count: u64, unit: Bytes| {
            let most = (1 << 50) / unit.0;
            if (1..=most).contains(&count) {
                return Ok(unit * count);
            }
            Err(Refusal::Options(format!("{option} {count}: allowed are 1 to {most}")))
        };
        let (width, depth) = (self.width.unwrap_or(base.width), self.depth.unwrap_or(base.depth));
        let mut design = base.with_array(width, depth);
        if let Some(lanes) = self.vector_width {
            design = design.with_lanes(lanes);
        }
        design.tensor_cores = self.tensor_cores.unwrap_or(base.tensor_cores);
        design.vector_cores = self.vector_cores.unwrap_or(base.vector_cores);
        if let Some(kib) = self.local_kib {
            design.local = bytes("--local-kib", kib, Bytes::KIB)?;
        }
        if let Some(mib) = self.glb_mib {
            design.glb = bytes("--glb-mib", mib, Bytes::MIB)?;
        }
        if let Some(gib) = self.hbm_gib {
            design.hbm = bytes("--hbm-gib", gib, Bytes::GIB)?;
        }
        Ok(design)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knobs_that_follow_others_keep_following_them() {
        let args = DesignArgs { width: Some(32), depth: Some(16), ..DesignArgs::default() };
        let (found, chip) = args.resolve(false).unwrap();
        assert_eq!(found.design.vector_width, 32);
        assert_eq!(found.design.local, Bytes(16 * 32 * 16));
        assert_eq!(chip.design(), &found.design);
    }

    #[test]
    fn a_buffer_size_that_a_file_gives_is_kept() {
        let args =
            DesignArgs { design: Some("tpuv4".into()), width: Some(64), ..Default::default() };
        let (found, _) = args.resolve(false).unwrap();
        assert_eq!(found.design.local, Bytes::MIB * 3);
        assert_eq!(found.design.vector_width, 2048);
    }

    #[test]
    fn unusable_requests_are_refused_with_the_reason() {
        let refusal = |args: DesignArgs| args.resolve(false).unwrap_err().to_string();
        let unknown = DesignArgs { design: Some("tpuv5".into()), ..Default::default() };
        assert!(refusal(unknown).contains("did you mean `tpuv4`"));
        let small = DesignArgs { local_kib: Some(1), ..Default::default() };
        assert!(refusal(small).contains("cannot hold one tile of a 128x128 array"));
        let zero = DesignArgs { tensor_cores: Some(0), ..Default::default() };
        assert!(refusal(zero).contains("`tensor_cores = 0` is outside its range"));
        let huge = DesignArgs { hbm_gib: Some(u64::MAX), ..Default::default() };
        assert!(refusal(huge).contains("--hbm-gib"));
    }
}
