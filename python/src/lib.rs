//! `import phaze`: the library's verbs for Python.
//!
//! A door: keywords come in as JSON, facts go out as the same bytes that the command line writes; the
//! package `phaze` beside makes objects of them. [`run`] keeps Ctrl-C and other threads alive, [`table`]
//! hands over designs as Arrow. Not here: anything that answers (see `phaze::ask`).

mod many;
mod run;
mod runs;
mod saved;
mod table;
mod verbs;
mod words;

use pyo3::exceptions::PyOSError;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use phaze::ask::Refusal;

/// Bad input is a `ValueError` with the message of the command line, its options spelled as keywords;
/// what cannot be written an `OSError`.
fn refused(refusal: Refusal) -> PyErr {
    let message = words::as_keywords(&refusal.to_string());
    match refusal {
        Refusal::Unwritable { .. } => PyOSError::new_err(message),
        Refusal::Input(_) | Refusal::Options(_) => PyValueError::new_err(message),
    }
}

#[pymodule]
fn _phaze(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<table::DesignTable>()?;
    module.add_class::<verbs::RawSearch>()?;
    module.add_function(wrap_pyfunction!(verbs::search, module)?)?;
    module.add_function(wrap_pyfunction!(verbs::search_keys, module)?)?;
    module.add_function(wrap_pyfunction!(verbs::place, module)?)?;
    module.add_function(wrap_pyfunction!(verbs::place_profile, module)?)?;
    module.add_function(wrap_pyfunction!(runs::plan, module)?)?;
    module.add_function(wrap_pyfunction!(runs::launch, module)?)?;
    module.add_function(wrap_pyfunction!(runs::check_run, module)?)?;
    module.add_function(wrap_pyfunction!(runs::chakra, module)?)?;
    module.add_function(wrap_pyfunction!(many::sweep, module)?)?;
    module.add_function(wrap_pyfunction!(many::shard, module)?)?;
    module.add_function(wrap_pyfunction!(many::merge, module)?)?;
    module.add_function(wrap_pyfunction!(verbs::inspect, module)?)?;
    module.add_function(wrap_pyfunction!(verbs::export, module)?)?;
    module.add_function(wrap_pyfunction!(verbs::estimate, module)?)?;
    module.add_function(wrap_pyfunction!(verbs::schedule, module)?)?;
    module.add_function(wrap_pyfunction!(verbs::validate, module)?)?;
    module.add_function(wrap_pyfunction!(verbs::calibrate, module)?)?;
    module.add_function(wrap_pyfunction!(verbs::models, module)?)?;
    module.add_function(wrap_pyfunction!(verbs::designs, module)?)?;
    module.add_function(wrap_pyfunction!(verbs::design_names, module)?)?;
    module.add_function(wrap_pyfunction!(saved::table, module)?)?;
    module.add_function(wrap_pyfunction!(saved::load, module)?)?;
    module.add_function(wrap_pyfunction!(saved::save, module)?)?;
    module.add_function(wrap_pyfunction!(saved::check_outcome, module)?)?;
    module.add_function(wrap_pyfunction!(saved::check_plan, module)?)?;
    module.add_function(wrap_pyfunction!(saved::outcome_page, module)?)?;
    module.add_function(wrap_pyfunction!(saved::comparison_page, module)?)?;
    module.add_function(wrap_pyfunction!(saved::outcome_text, module)?)?;
    module.add_function(wrap_pyfunction!(saved::plan_page, module)?)?;
    module.add_function(wrap_pyfunction!(saved::plan_text, module)?)?;
    module.add_function(wrap_pyfunction!(saved::plan_value, module)?)?;
    module.add_function(wrap_pyfunction!(saved::timeline, module)?)?;
    Ok(())
}
