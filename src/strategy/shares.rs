//! Shares of models that were made before: questions beside each other divide one model in the same
//! ways, whatever devices, links and limits they ask about.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;

use crate::model::Model;
use crate::parallel::Illegal;
use crate::parallel::Setting;
use crate::parallel::Share;
use crate::parallel::shard;
use crate::profile::LayerGraphs;

/// What one device does, with its layers ready to be timed.
#[derive(Clone, Debug)]
pub(super) struct ReadyShare {
    pub share: Arc<Share>,
    pub graphs: Arc<LayerGraphs>,
}

impl ReadyShare {
    pub(super) fn new(share: Share) -> Self {
        Self { graphs: Arc::new(LayerGraphs::new(&share)), share: Arc::new(share) }
    }
}

/// The shares of any number of models, each made when first asked for.
#[derive(Debug, Default)]
pub struct Shares(Mutex<Vec<(Model, Arc<OfModel>)>>);

/// The shares of one model.
#[derive(Debug, Default)]
pub(super) struct OfModel(Mutex<HashMap<Setting, ReadyShare>>);

impl Shares {
    /// Those of one model.
    pub(super) fn of(&self, model: &Model) -> Arc<OfModel> {
        let mut known = locked(&self.0);
        if let Some((_, shares)) = known.iter().find(|(other, _)| other == model) {
            return Arc::clone(shares);
        }
        let shares = Arc::new(OfModel::default());
        known.push((model.clone(), Arc::clone(&shares)));
        shares
    }
}

impl OfModel {
    /// The share of a setting, which belongs to `model`.
    ///
    /// # Errors
    /// That the setting is not legal for the model.
    pub(super) fn get(&self, model: &Model, setting: Setting) -> Result<ReadyShare, Illegal> {
        if let Some(known) = locked(&self.0).get(&setting) {
            return Ok(known.clone());
        }
        // Others need not wait meanwhile; who makes the same makes no other.
        let made = ReadyShare::new(shard(model, setting)?);
        locked(&self.0).insert(setting, made.clone());
        Ok(made)
    }
}

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::families::build;
    use crate::model::spec::examples;

    #[test]
    fn a_share_is_made_once_for_each_model_and_setting() {
        let shares = Shares::default();
        let models: Vec<Model> = examples::all().iter().take(4).map(build).collect();
        let setting = Setting { sequence: 64, ..Setting::ALONE };
        let others = [2, 3].map(|tensor_parallel| Setting { tensor_parallel, ..setting });
        for setting in [setting].into_iter().chain(others) {
            for model in &models {
                let made = shares.of(model).get(model, setting).map(|ready| ready.share);
                let again = shares.of(&model.clone()).get(model, setting).map(|ready| ready.share);
                assert_eq!(made.as_deref(), shard(model, setting).as_ref());
                if let (Ok(made), Ok(again)) = (made, again) {
                    assert!(Arc::ptr_eq(&made, &again), "it is made once");
                }
            }
        }
    }
}
