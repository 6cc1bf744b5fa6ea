//! `phaze designs`: the design space, or one design of it.

use std::io::Write;
use std::path::PathBuf;

use clap::Args as ClapArgs;

use super::DesignArgs;
use super::Exit;
use super::Refusal;
use phaze::hardware::DesignSpace;
use phaze::input::Conventions;
use phaze::input::hardware::preset;
use phaze::input::space;
use phaze::report::design;
use phaze::report::part::Part;
use phaze::store::files;

/// Space files are a page long; this is a thousand times that.
const LARGEST_FILE: u64 = 4 << 20;

/// List the designs of a space, or show one: peak, bandwidths, balance, and where its area, power and
/// cost go, beside what is public.
#[derive(ClapArgs)]
pub struct Args {
    #[command(flatten)]
    design: DesignArgs,
    /// A file with a [space] section: lists or power-of-two ranges for each knob, area limits
    /// [default: the published space]
    #[arg(long, value_name = "FILE")]
    space: Option<PathBuf>,
    /// List every design of the space as CSV
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Args {
    /// Answers on standard output.
    pub fn run(&self) -> Result<Exit, Refusal> {
        let mut out = std::io::BufWriter::new(std::io::stdout().lock());
        if self.design.given() {
            if self.csv || self.space.is_some() {
                let message = "--csv and --space are about a space; leave out the single design";
                return Err(Refusal::Options(message.into()));
            }
            let (hardware, chip) = self.design.resolve(&Conventions::OURS)?;
            let part = Part {
                design: &hardware.design,
                physics: &hardware.physics,
                making: hardware.making.as_ref(),
                published: &hardware.published,
            };
            if self.json {
                serde_json::to_writer_pretty(
                    &mut out,
                    &design::value(&chip, &hardware.name, &part),
                )
                .map_err(std::io::Error::from)?;
                writeln!(out)?;
            } else {
                design::text(&chip, &hardware.name, &part, &mut out)?;
            }
        } else {
            self.list(&mut out)?;
        }
        out.flush()?;
        Ok(Exit::Done)
    }

    fn list(&self, out: &mut dyn Write) -> Result<(), Refusal> {
        let space = match &self.space {
            None => DesignSpace::published(),
            Some(path) => space::space(&files::read(path, LARGEST_FILE)?, &files::name(path))?,
        };
        let physics = preset(Conventions::OURS.hardware, "--design")?.physics;
        let (found, counts) = space.designs(&physics);
        let designs: Vec<_> = found
            .into_iter()
            .map(|candidate| {
                let chip = candidate.build(candidate.design.hbm, &physics);
                (candidate, chip.expect("a design of a space can be built").total_area())
            })
            .collect();
        if self.csv {
            design::csv(&designs, out)?;
        } else if self.json {
            serde_json::to_writer_pretty(&mut *out, &design::space_value(counts, &designs))
                .map_err(std::io::Error::from)?;
            writeln!(out)?;
        } else {
            design::space_text(counts, &designs, out)?;
        }
        Ok(())
    }
}
