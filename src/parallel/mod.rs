//! How work is divided: which degrees are legal, what one device then holds and must exchange.
//!
//! In: a [`Model`](crate::model::Model) and a [`Setting`]. Out: one device's [`Share`], with the
//! exchanges among devices as operators of its graphs; the [`modes()`] of repeating work in which its
//! layers can be trained; what replicas hold and exchange ([`zero`]); which devices form a group
//! ([`Order`]); and which plans a training framework accepts ([`frameworks`]).
//!
//! Not here: how long an exchange takes (see `hardware`), and how layers are cut into stages
//! (see `placement`).

mod context;
mod expert;
pub mod frameworks;
mod modes;
mod order;
#[cfg(test)]
mod properties;
mod replicas;
mod shard;
mod share;
mod tensor;
mod width;
mod working;
pub mod zero;

pub use context::ContextKind;
pub use modes::LayerMode;
pub use modes::Mode;
pub use modes::Repeats;
pub use modes::modes;
pub use order::Grid;
pub use order::Order;
pub use order::UnknownOrder;
pub use replicas::Parameters;
pub use replicas::ReplicaSharding;
pub use shard::shard;
pub use share::LayerShare;
pub use share::Setting;
pub use share::Share;
pub use share::Tied;
pub use share::even_copies;
pub use width::Illegal;
pub use width::check as is_legal;
pub use width::legal_contexts;
pub use width::legal_expert_degrees;
pub use width::legal_widths;
pub use working::transient;
