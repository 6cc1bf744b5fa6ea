//! What is not of the space, trained as the request asks.

use crate::estimate::EstimateTable;
use crate::hardware::Accelerator;
use crate::hardware::Physics;
use crate::model::Precision;
use crate::search::setup::terms;
use crate::strategy::Planner;
use crate::strategy::Standing;
use crate::strategy::Terms;
use crate::strategy::Training;
use crate::strategy::result::ModelResult;

use super::setup::ChipSetup;

/// The best way to train every model of a request on an accelerator that goes by `name`, in its own
/// physics and on its own network, in these numbers; `None` where one of them does not fit.
pub fn trained_beside(
    setup: &ChipSetup,
    (name, chip, physics): (&str, &Accelerator, &Physics),
    precision: Precision,
) -> Option<Vec<(Standing, ModelResult)>> {
    let terms = Terms { design: name.to_owned(), ..terms(&setup.request, physics, precision) };
    let table = EstimateTable::new(terms.options);
    let asked = setup.request.models.iter().zip(&setup.models);
    let each = asked.map(|(asked, model)| {
        let training = Training::new(&asked.name, model.clone(), asked.sequence, &terms).ok()?;
        let planner = Planner { terms: &terms, training: &training, table: &table };
        let best = planner.best_on(chip)?;
        Some((best.chosen.standing, planner.result(chip, &best)))
    });
    each.collect()
}
