//! The models that come with phaze.

use super::InputError;
use super::hf_config;
use crate::model::Model;

/// Lists the files of `inputs/models` by their names.
macro_rules! models {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!("../../inputs/models/", $name, ".json")))),*]
    };
}

/// All of them: what users call them, and the text of their file.
const MODELS: [(&str, &str); 47] = models![
    "bert-large",
    "megatron-bert",
    "gpt2-xl",
    "megatron-gpt2-2.5b",
    "megatron-gpt2-8.3b",
    "opt-350m",
    "llama2-7b",
    "llama2-13b",
    "llama2-70b",
    "llama3-8b",
    "llama3-70b",
    "llama3-70b-12-layers",
    "llama3-405b",
    "llama3.2-3b",
    "mistral-7b",
    "qwen2-7b",
    "phi-4",
    "gemma3-27b",
    "nemotron-8b",
    "nemotron-22b",
    "nemotron-340b",
    "mixtral-8x7b",
    "mixtral-8x22b",
    "qwen3-30b-a3b",
    "qwen3-235b-a22b",
    "deepseek-v3",
    "deepseek-v3-mtp",
    "gpt-oss-120b",
    "llama4-scout",
    "t5-11b",
    "vit-large",
    "gpt3-5b",
    "gpt3-20b",
    "gpt3-175b",
    "megatron-22b",
    "megatron-530b",
    "megatron-1t",
    "gpt-1.7b",
    "gpt-3.6b",
    "gpt-7.5b",
    "gpt-18.4b",
    "gpt-39.1b",
    "gpt-76.1b",
    "gpt-145.6b",
    "gpt-310.1b",
    "gpt-529.6b",
    "gpt-1008.0b",
];

/// What users call them, in the order in which they are listed.
pub fn model_names() -> Vec<String> {
    MODELS.iter().map(|(name, _)| (*name).to_owned()).collect()
}

/// The built-in model of that name.
pub fn model(name: &str) -> Result<Model, InputError> {
    match text(name) {
        Some(text) => hf_config::read(name, text),
        None => Err(InputError::Unknown {
            file: "command line".into(),
            what: "model".into(),
            found: name.into(),
            known: model_names(),
        }),
    }
}

/// The text of a built-in model's file.
pub fn text(name: &str) -> Option<&'static str> {
    MODELS.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}
