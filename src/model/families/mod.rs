//! Families of models, one file each: how their layers are written.
//!
//! A family is one function, `build`, from the numbers of a [`Spec`] to a [`Model`]. To add one,
//! write its file, list it in [`build`] and in [`Family`], and teach `input` to read its
//! configuration; no other room changes.

mod bert;
mod blocks;
mod decoder;
mod gpt;
mod gpt_neox;
mod latent;
mod llama;
mod mixture;
mod next_token;
mod opt;
mod t5;
mod vit;

use super::Model;
use super::spec::Family;
use super::spec::Spec;

/// The model of these numbers.
pub fn build(spec: &Spec) -> Model {
    match spec.family {
        Family::Bert | Family::MegatronBert => bert::build(spec),
        Family::Gpt => gpt::build(spec),
        Family::Opt => opt::build(spec),
        Family::Llama => llama::build(spec),
        Family::GptNeox => gpt_neox::build(spec),
        Family::T5 => t5::build(spec),
        Family::Vit => vit::build(spec),
        Family::Decoder => decoder::build(spec),
    }
}
