//! From a request that a user wrote, or that a saved answer holds, to what is ready to be searched or
//! judged. Everything is in the request: no file is read here.

use super::InputError;
use super::efficiency_choice;
use super::hardware;
use super::hardware::Hardware;
use super::imbalance;
use super::network;
use super::next_tokens;
use super::numbers::Field;
use super::request::RequestFile;
use super::request::allowed;
use super::request::divides;
use super::source;
use super::source::Reader;
use super::technology;
use super::valid::validated;
use super::valid::validated_chips;
use crate::certify::Question;
use crate::certify::boxes::ChipQuestion;
use crate::compare::chips::PartFile;
use crate::compare::chips::RealPart;
use crate::compare::chips::USUAL_PARTS;
use crate::hardware::Efficiency;
use crate::hardware::Physics;
use crate::hardware::chip::ChipSpace;
use crate::model::Model;
use crate::model::Precision;
use crate::parallel::Setting;
use crate::parallel::legal_contexts;
use crate::parallel::legal_widths;
use crate::plan::Source;
use crate::search::ModelRequest;
use crate::search::Request;
use crate::search::Setup;
use crate::search::chips::ChipSetup;

/// What is asked of chips in `file`, ready to be searched; as [`ready`].
///
/// # Errors
/// What cannot be read, is not known, or makes no sense.
pub fn ready_chips(file: &RequestFile, name: &str, read: &Reader) -> Result<ChipSetup, InputError> {
    chip_setup_of(file.complete_chips(name, read)?, name)
}

/// What is asked in `file`, ready to be searched; `name` is what errors refer to, and `read` opens
/// the files that it names.
///
/// # Errors
/// What cannot be read, is not known, or makes no sense.
pub fn ready(file: &RequestFile, name: &str, read: &Reader) -> Result<Setup, InputError> {
    setup_of(file.complete(name, read)?, name)
}

/// What a request asks, ready to be searched: everything is in the request, no file is read. The
/// request may come from a saved outcome and is checked as one that was just written; `file` is
/// what errors refer to.
///
/// # Errors
/// What is not known or makes no sense.
pub fn setup_of(request: Request, file: &str) -> Result<Setup, InputError> {
    let request = validated(request, file)?;
    let Named { models, physics, .. } = named(&request, file)?;
    for &gib in &request.space.hbm_gib {
        let field = Field::new(file, "space.hbm_gib");
        physics.hbm.knows(gib).map_err(|unknown| {
            field.value(&gib.to_string(), &unknown.problem(), &unknown.allowed())
        })?;
    }
    network::reaches(&physics.network, request.devices, &Field::new(file, "job.devices"))?;
    let file = file.to_owned();
    Setup::new(request, models, physics).map_err(|reason| InputError::Senseless { file, reason })
}

/// What a request over chips asks, ready to be searched; as [`setup_of`].
///
/// # Errors
/// What is not known or makes no sense.
pub fn chip_setup_of(request: Request<ChipSpace>, file: &str) -> Result<ChipSetup, InputError> {
    let request = validated_chips(request, file)?;
    let Named { models, physics, fp8 } = named(&request, file)?;
    if request.space.precision == Precision::Fp8 && !fp8 {
        let problem = "is not what the efficiency of this hardware speaks of";
        let allowed = "take bf16, or efficiency with `matmul_fp8`, as ideal, systolic or h100-sxm";
        return Err(Field::new(file, "chip.precision").value("fp8", problem, allowed));
    }
    let technology = technology::of_process(request.space.process_nm, file, "chip.process_nm")?;
    let name = file.to_owned();
    ChipSetup::new(request, models, physics, &technology)
        .map_err(|reason| InputError::NoChip { file: name, reason })
}

/// The parts that the best chip of a request is compared with: the usual ones, and those that it names.
///
/// # Errors
/// What is not known or cannot be built.
pub fn real_parts(setup: &ChipSetup, file: &str) -> Result<Vec<RealPart>, InputError> {
    let place = format!("{file}: search.baselines");
    let usual = USUAL_PARTS.map(|name| Source { name: name.to_owned(), text: None });
    let named = usual.iter().chain(&setup.request.baselines);
    named
        .map(|source| {
            let part = match &source.text {
                Some(text) => hardware::hardware(text, &source.name)?,
                None => hardware::preset(&source.name, &place)?,
            };
            let part = part.in_process(&source.name)?;
            let described = PartFile {
                named: (&part.name, &part.summary),
                design: part.design,
                physics: &part.physics,
                making: part.making.as_ref(),
                published: &part.published,
                fp8: part.fp8,
            };
            RealPart::new(&described, &setup.request.space, &setup.physics).map_err(|reason| {
                let field = Field::new(&place, &source.name);
                field.value("it", &format!("cannot be built: {reason}"), "leave it out")
            })
        })
        .collect()
}

/// What a request names.
struct Named {
    models: Vec<Model>,
    physics: Physics,
    /// Whether what is reached of the physics is known of matmuls in 8 bits; where nothing is said of any
    /// matmul, all of the peak is.
    fp8: bool,
}

/// The models and the physics that a request names, which allow the degrees that it asks for.
fn named<S>(request: &Request<S>, file: &str) -> Result<Named, InputError> {
    let models = request.models.iter().map(|model| match &model.text {
        Some(text) => source::model_text(&model.name, text),
        None => super::model(&model.name),
    });
    let mut models: Vec<Model> = models.collect::<Result<_, _>>()?;
    if let Some(count) = request.next_tokens {
        let field = Field::new(file, "job.mtp");
        next_tokens::apply_to_those_that_can(&mut models, count, &field)?;
    }
    if let Some(load) = request.imbalance_per_mille {
        imbalance::apply_to_mixtures(&mut models, load, &Field::new(file, "job.imbalance"))?;
    }
    let hardware = match &request.hardware.text {
        Some(text) => hardware::hardware(text, &request.hardware.name)?,
        None => hardware::preset(&request.hardware.name, &format!("{file}: hardware"))?,
    };
    let Hardware { mut physics, mut fp8, .. } = hardware;
    fp8 |= physics.efficiency == Efficiency::IDEAL;
    if let Some(chosen) = &request.efficiency {
        let place = format!("{file}: efficiency");
        fp8 = efficiency_choice::assume_physics(chosen, &mut physics, &place)?;
    }
    let widths = &request.strategies.tensor_parallel;
    let legal = allowed(widths, &models);
    if let Some(odd) = widths.iter().find(|&width| !legal.contains(width)) {
        return Err(illegal_width(*odd, &request.models, &models, file));
    }
    for &degree in &request.strategies.context_parallel {
        let mut each = request.models.iter().zip(&models);
        if !each.any(|(asked, model)| divides(model, asked.sequence, degree)) {
            return Err(illegal_context(degree, &request.models, &models, file));
        }
    }
    Ok(Named { models, physics, fp8 })
}

/// What an answer to a request is judged by, and the models that it names; `file` is what errors
/// refer to.
///
/// # Errors
/// The first field that makes no sense, with what is allowed.
pub fn judged_by(request: Request, file: &str) -> Result<(Question, Vec<Model>), InputError> {
    let Setup { request, physics, trainings, .. } = setup_of(request, file)?;
    let models: Vec<Model> = trainings.into_iter().map(|training| training.model).collect();
    let question = Question::new(&request, &models, physics, super::references()?)
        .map_err(|reason| Field::new(file, "request").value("it", &reason, "search again"))?;
    Ok((question, models))
}

/// What an answer to a request over chips is judged by; as [`judged_by`].
///
/// # Errors
/// The first field that makes no sense, with what is allowed.
pub fn chips_judged_by(
    request: Request<ChipSpace>,
    file: &str,
) -> Result<ChipQuestion, InputError> {
    let setup = chip_setup_of(request, file)?;
    let parts = real_parts(&setup, file)?;
    ChipQuestion::new(setup, super::references()?, parts)
        .map_err(|reason| Field::new(file, "request").value("it", &reason, "search again"))
}

fn illegal_width(width: u64, asked: &[ModelRequest], models: &[Model], file: &str) -> InputError {
    let legal = asked.iter().zip(models).map(|(asked, model)| {
        let widths: Vec<String> = legal_widths(&model.spec).iter().map(u64::to_string).collect();
        format!("{} allows {}", asked.name, widths.join(", "))
    });
    let legal: Vec<String> = legal.collect();
    let problem = "is a tensor-parallel width that no model allows";
    Field::new(file, "job.tensor_parallel").value(&width.to_string(), problem, &legal.join("; "))
}

fn illegal_context(
    degree: u64,
    asked: &[ModelRequest],
    models: &[Model],
    file: &str,
) -> InputError {
    let legal = asked.iter().zip(models).map(|(asked, model)| {
        let setting = Setting { sequence: asked.sequence, ..Setting::ALONE };
        let degrees = legal_contexts(&model.spec, setting, 64);
        let degrees: Vec<String> = degrees.iter().map(u64::to_string).collect();
        format!("{} tokens of {} allow {}", asked.sequence, asked.name, degrees.join(", "))
    });
    let legal: Vec<String> = legal.collect();
    let problem = "is a context-parallel degree that divides no model's sequence";
    Field::new(file, "job.context_parallel").value(&degree.to_string(), problem, &legal.join("; "))
}
