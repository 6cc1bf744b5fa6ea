//! What a run is counted with where nobody says, each number with its source.

use super::PlanRequest;
use crate::advise::Assumed;
use crate::advise::Economics;
use crate::hardware::technology::Constant;
use crate::input::InputError;
use crate::input::hardware::Hardware;
use crate::input::technology;
use crate::model::Model;

/// Tokens for each parameter that a token visits.
const TOKENS_PER_PARAMETER: u64 = 20;

/// Thousandths of the time in which a run makes progress.
const GOODPUT_PER_MILLE: u64 = 950;

/// The process whose table has the constants of buildings and grids, which all tables share.
const ANY_PROCESS_NM: u64 = 5;

/// What a request is counted with.
pub(super) fn economics(
    request: &PlanRequest,
    model: &Model,
    hardware: &Hardware,
) -> Result<Economics, InputError> {
    let technology = technology::of_process(ANY_PROCESS_NM, "technology", "process_nm")?;
    let constant = |constant: Constant, small: u64| Assumed {
        value: technology.value(constant) / small,
        source: technology.origin(constant).source.clone(),
    };
    let published = &hardware.published;
    let given = |value: Option<u64>| value.map(Assumed::given);
    let power = published.tdp.as_ref().or(published.max_power.as_ref());
    let tokens = model.active_parameters().saturating_mul(TOKENS_PER_PARAMETER);
    Ok(Economics {
        tokens: given(request.tokens).unwrap_or(Assumed {
            value: tokens,
            source: "20 for each parameter that a token visits (Hoffmann et al., 2022)".into(),
        }),
        price: given(request.price).or_else(|| {
            published.rent.as_ref().map(|rent| Assumed {
                value: rent.value.0.saturating_mul(10),
                source: rent.source.clone(),
            })
        }),
        goodput_per_mille: given(request.goodput_per_mille).unwrap_or(Assumed {
            value: GOODPUT_PER_MILLE,
            source: "assumed; Llama 3 405B had more than 90 % (Grattafiori et al., 2024)".into(),
        }),
        watts: given(request.watts).or_else(|| {
            power.map(|power| Assumed { value: power.value.0 / 1000, source: power.source.clone() })
        }),
        host_watts: given(request.host_watts).or_else(|| {
            let host = published.host_power.as_ref();
            host.map(|host| Assumed { value: host.value.0 / 1000, source: host.source.clone() })
        }),
        pue_per_mille: given(request.pue_per_mille).unwrap_or(constant(Constant::Pue, 1)),
        grams_per_kwh: given(request.grams_per_kwh).unwrap_or(constant(Constant::UseGrid, 1000)),
    })
}
