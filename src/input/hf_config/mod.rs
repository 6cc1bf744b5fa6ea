//! Hugging Face `config.json`, as downloaded, and our built-in models in the same form.
//!
//! Sizes must be given; what a family's own code fills in when a field is absent (no grouping of
//! heads, four times the hidden size in the MLP of GPT-2 …) is filled in likewise. Fields that
//! change nothing that is counted are ignored; those that would, and are not understood, are
//! refused. Two fields are ours, under Megatron's names: `make_vocab_size_divisible_by` pads the
//! vocabulary on a single device too, and `mtp_num_layers` trains a layer that tells the token after
//! the next.

mod decoders;
mod encoders;
mod experts;
mod gemma;
mod layers;
mod readers;
mod wrapped;

use serde_json::Value;

use self::readers::READERS;
use self::readers::REFUSED;
use self::wrapped::unwrapped;
use super::InputError;
use super::fields::Fields;
use super::next_tokens;
use crate::model::Layer;
use crate::model::Model;
use crate::model::families;
use crate::model::spec::Family;
use crate::model::spec::Spec;

/// The longest text that is read: a thousand times what a configuration needs.
pub const LONGEST: u64 = 1 << 20;

/// The model that `text`, known to its author as `file`, describes.
pub fn read(file: &str, text: &str) -> Result<Model, InputError> {
    let value: Value = serde_json::from_str(text).map_err(|error| InputError::Syntax {
        file: file.into(),
        line: Some(error.line()),
        message: without_place(&error.to_string()),
    })?;
    let (inner, left_out) = unwrapped(file, value)?;
    let fields = Fields::of(file, &inner)?;
    let model_type = fields.text("model_type", "the family, such as \"llama\"")?;
    if let Some((_, reason)) = REFUSED.iter().find(|(name, _)| *name == model_type) {
        return Err(fields.wrong("model_type", "cannot be trained here", reason));
    }
    let reader = READERS.iter().find(|(name, _)| *name == model_type);
    let Some((_, reader)) = reader else {
        return Err(InputError::Unknown {
            file: file.into(),
            what: "model_type".into(),
            found: model_type.chars().take(60).collect(),
            known: READERS.iter().map(|(name, _)| (*name).to_owned()).collect(),
        });
    };
    let spec = reader(&fields)?;
    refuse_what_would_change_the_graph(&fields, &spec)?;
    let left_out = left_out.or(spec.left_out.clone());
    let spec = Spec { left_out, next_tokens: layers_of_next_tokens(&fields, &spec)?, ..spec };
    let model = families::build(&spec);
    let sizes = spec.sizes(1, 1);
    let countable =
        |(kind, layer): (usize, &Layer)| layer.within_limits(&sizes, model.occurrences(kind));
    if model.kinds.iter().enumerate().all(countable) {
        Ok(model)
    } else {
        let message = "a model with these sizes has more than 2^58 parameters".into();
        Err(InputError::Syntax { file: file.into(), line: None, message })
    }
}

/// Layers that are trained to tell the token after the next: as many as Megatron's field asks for,
/// whatever the published model was trained with.
fn layers_of_next_tokens(fields: &Fields, spec: &Spec) -> Result<u64, InputError> {
    let field = "mtp_num_layers";
    if fields.optional(field).is_some_and(|count| count.as_u64() == Some(0)) {
        return Ok(0);
    }
    let Some(count) = fields.bounded(field, next_tokens::MOST)? else { return Ok(0) };
    if spec.can_tell_next_tokens() {
        return Ok(count);
    }
    let problem = "asks for a layer that tells the token after the next";
    Err(fields.wrong(field, problem, next_tokens::ALLOWED))
}

/// A parser's complaint without the place at its end, which is told apart.
fn without_place(message: &str) -> String {
    message.split(" at line ").next().unwrap_or(message).to_owned()
}

/// Fields of other architectures, whose layers hold what we do not write.
fn refuse_what_would_change_the_graph(fields: &Fields, spec: &Spec) -> Result<(), InputError> {
    let names = ["num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"];
    for experts in names.into_iter().filter(|_| spec.experts.is_none()) {
        if fields.bounded(experts, u64::MAX).is_ok_and(|n| n.is_none_or(|n| n == 1)) {
            continue;
        }
        return Err(fields.wrong(experts, "asks for a mixture of experts", "only 1 is understood"));
    }
    let attends = spec.family == Family::T5;
    for unknown in ["is_encoder_decoder", "add_cross_attention"] {
        if fields.flag(unknown, false)? && !attends {
            let problem = "asks for attention to another model's tokens";
            return Err(fields.wrong(unknown, problem, "only false is understood"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Attention;
    use crate::model::Optimizer;
    use crate::model::Reach;
    use crate::parallel::Setting;
    use crate::report;
    use crate::report::inspect::Inspection;
    use crate::units::Bytes;
    use proptest::prelude::*;
    use serde_json::json;

    fn parameters(config: &Value) -> u64 {
        read("config.json", &config.to_string()).unwrap().parameters()
    }

    fn llama() -> Value {
        json!({
            "model_type": "llama", "hidden_size": 4096, "intermediate_size": 11008,
            "num_hidden_layers": 32, "num_attention_heads": 32, "vocab_size": 32000,
            "max_position_embeddings": 4096, "hidden_act": "silu",
            "rope_scaling": {"type": "linear", "factor": 2.0}, "torch_dtype": "float16"
        })
    }

    #[test]
    fn published_configurations_have_their_published_parameters() {
        let gpt2 = json!({
            "model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "n_ctx": 1024,
            "n_positions": 1024, "vocab_size": 50257, "activation_function": "gelu_new"
        });
        assert_eq!(parameters(&gpt2), 124_439_808);
        let bert_base = json!({
            "model_type": "bert", "hidden_size": 768, "intermediate_size": 3072,
            "num_hidden_layers": 12, "num_attention_heads": 12, "vocab_size": 30522,
            "max_position_embeddings": 512, "type_vocab_size": 2, "hidden_act": "gelu",
            "position_embedding_type": "absolute"
        });
        assert_eq!(parameters(&bert_base), 109_482_240);
        let opt = json!({
            "model_type": "opt", "hidden_size": 2048, "ffn_dim": 8192, "num_hidden_layers": 24,
            "num_attention_heads": 32, "max_position_embeddings": 2048, "vocab_size": 50272,
            "word_embed_proj_dim": 2048, "do_layer_norm_before": true, "dropout": 0.1,
            "activation_function": "relu", "attention_dropout": 0.0
        });
        assert_eq!(parameters(&opt), 1_315_758_080);
        let neox = json!({
            "model_type": "gpt_neox", "hidden_size": 6144, "intermediate_size": 24576,
            "num_hidden_layers": 44, "num_attention_heads": 64, "vocab_size": 50432,
            "max_position_embeddings": 2048, "hidden_act": "gelu_fast", "rotary_pct": 0.25,
            "use_parallel_residual": true, "tie_word_embeddings": false
        });
        assert_eq!(parameters(&neox), 20_554_567_680);
    }

    #[test]
    fn relatives_of_llama_have_their_published_parameters() {
        let with = |changes: Value| {
            let mut config = llama();
            let fields = config.as_object_mut().unwrap();
            fields.extend(changes.as_object().unwrap().clone());
            parameters(&config)
        };
        assert_eq!(with(json!({})), 6_738_415_616);
        let qwen2_half = json!({
            "model_type": "qwen2", "hidden_size": 896, "intermediate_size": 4864,
            "num_hidden_layers": 24, "num_attention_heads": 14, "num_key_value_heads": 2,
            "vocab_size": 151_936, "tie_word_embeddings": true, "use_sliding_window": false
        });
        assert_eq!(with(qwen2_half), 494_032_768);
        let qwen3_small = json!({
            "model_type": "qwen3", "hidden_size": 1024, "intermediate_size": 3072,
            "num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 8,
            "head_dim": 128, "vocab_size": 151_936, "tie_word_embeddings": true
        });
        assert_eq!(with(qwen3_small), 596_049_920);
        let llama_1b = json!({
            "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16,
            "num_key_value_heads": 8, "head_dim": 64, "vocab_size": 128_256,
            "tie_word_embeddings": true
        });
        assert_eq!(with(llama_1b), 1_235_814_400);
    }

    #[test]
    fn a_wrong_field_is_named_with_what_would_do() {
        let refusals = [
            (
                json!({"num_attention_heads": 33}),
                "`num_attention_heads = 33` does not divide `hidden_size = 4096`; try 32, or give `head_dim`",
            ),
            (
                json!({"num_key_value_heads": 5}),
                "`num_key_value_heads = 5` does not divide `num_attention_heads = 32`; try 4",
            ),
            (
                json!({"vocab_size": 0}),
                "`vocab_size = 0` is out of range; allowed are 1 to 16777216",
            ),
            (
                json!({"vocab_size": -1}),
                "`vocab_size = -1` is out of range; allowed are 1 to 16777216",
            ),
            (
                json!({"vocab_size": 3.5}),
                "`vocab_size = 3.5` is not a whole number; allowed are 1 to 16777216",
            ),
            (
                json!({"vocab_size": "many"}),
                "`vocab_size = \"many\"` is not a whole number; allowed are 1 to 16777216",
            ),
            (
                json!({"vocab_size": null}),
                "`vocab_size` is missing; it holds the number of tokens that there are, a whole number",
            ),
            (
                json!({"num_hidden_layers": 100_001}),
                "`num_hidden_layers = 100001` is out of range; allowed are 1 to 100000",
            ),
            (
                json!({"num_local_experts": 8}),
                "`num_local_experts = 8` asks for a mixture of experts; only 1 is understood",
            ),
            (
                json!({"attention_dropout": 1.5}),
                "`attention_dropout = 1.5` is not a fraction; allowed are 0 to 1",
            ),
            (
                json!({"tie_word_embeddings": 1}),
                "`tie_word_embeddings = 1` is neither true nor false; allowed are true and false",
            ),
            (
                json!({"model_type": "mamba2"}),
                "`model_type = \"mamba2\"` cannot be trained here; state-space layers are not modelled",
            ),
            (
                json!({"model_type": "qwen3", "layer_types": ["linear_attention"], "num_hidden_layers": 1}),
                "`layer_types = [\"linear_attention\"]` names a kind of layer that is not modelled; allowed is a list with \"full_attention\", \"sliding_attention\" or \"chunked_attention\" for each layer",
            ),
            (
                json!({"is_encoder_decoder": true}),
                "`is_encoder_decoder = true` asks for attention to another model's tokens; only false is understood",
            ),
        ];
        for (changes, message) in refusals {
            let mut config = llama();
            config.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
            let refused = read("config.json", &config.to_string()).unwrap_err();
            assert_eq!(refused.to_string(), format!("config.json: {message}"));
        }
    }

    #[test]
    fn an_unknown_family_is_answered_with_those_that_are_read() {
        let config = json!({"model_type": "lama"});
        let refused = read("config.json", &config.to_string()).unwrap_err().to_string();
        let start = "config.json: unknown model_type `lama` (did you mean `llama`?); known are ";
        let known = refused.strip_prefix(start).expect("it says what was found");
        let names: Vec<&str> = known.split(", ").collect();
        assert!(READERS.iter().map(|(name, _)| *name).eq(names));
        let both = |name: &str| REFUSED.iter().any(|(refused, _)| *refused == name);
        assert!(!READERS.iter().any(|(name, _)| both(name)), "no family is read and refused");
    }

    #[test]
    fn of_a_model_that_sees_the_text_part_is_read() {
        let mut text = llama();
        text.as_object_mut().unwrap().remove("tie_word_embeddings");
        for (around, left_out) in [
            (json!({"vision_config": {}}), "the vision part"),
            (json!({"vision_config": {}, "audio_config": {}}), "the vision and audio part"),
            (json!({}), "all but the text model"),
        ] {
            let mut config = around;
            config["model_type"] = json!("llava");
            config["text_config"] = text.clone();
            let model = read("config.json", &config.to_string()).unwrap();
            assert_eq!(model.parameters(), 6_738_415_616);
            assert_eq!(model.spec.left_out.as_deref(), Some(left_out));
        }
        let nothing = json!({"model_type": "llava", "text_config": 3});
        let refused = read("config.json", &nothing.to_string()).unwrap_err().to_string();
        assert_eq!(refused, "config.json: `text_config` is not a JSON object");
    }

    #[test]
    fn every_needed_field_is_asked_for() {
        for field in [
            "model_type",
            "hidden_size",
            "intermediate_size",
            "num_hidden_layers",
            "num_attention_heads",
            "vocab_size",
            "max_position_embeddings",
            "hidden_act",
        ] {
            let mut config = llama();
            config.as_object_mut().unwrap().remove(field);
            let refused = read("config.json", &config.to_string()).unwrap_err().to_string();
            assert!(
                refused.starts_with(&format!("config.json: `{field}` is missing")),
                "{refused}"
            );
        }
    }

    #[test]
    fn sizes_that_no_integer_counts_are_refused() {
        let mut config = llama();
        let largest = 1 << 24;
        for field in ["hidden_size", "intermediate_size", "vocab_size", "head_dim"] {
            config[field] = json!(largest);
        }
        config["num_attention_heads"] = json!(1 << 16);
        config["num_hidden_layers"] = json!(100_000);
        let refused = read("config.json", &config.to_string()).unwrap_err();
        assert!(refused.to_string().contains("more than 2^58 parameters"), "{refused}");
    }

    #[test]
    fn a_window_is_recorded_only_where_it_is_used() {
        let windows = |model_type: &str, used: bool| {
            let mut config = llama();
            config["model_type"] = json!(model_type);
            config["sliding_window"] = json!(4096);
            config["use_sliding_window"] = json!(used);
            let spec = read("config.json", &config.to_string()).unwrap().spec;
            spec.reaches().collect::<Vec<_>>()
        };
        let (all, limited) = ((32, Reach::All), (32, Reach::Window(4096)));
        assert_eq!(windows("mistral", false), [limited]);
        assert_eq!(windows("qwen2", false), [all]);
        assert_eq!(windows("qwen2", true), [limited]);
        assert_eq!(windows("llama", true), [all]);
    }

    /// Whatever is read is inspected or refused, on one device and on several.
    fn inspect(model: &Model) {
        for tensor_parallel in [1, 2, 16] {
            let setting = Setting {
                micro_batch: 3,
                sequence: model.spec.max_sequence,
                tensor_parallel,
                sequence_parallel: tensor_parallel == 2,
                attention: Attention::Recomputed,
                element: Bytes(2),
                ..Setting::ALONE
            };
            if let Ok(seen) = Inspection::new(model, setting, Optimizer::AdamMixed) {
                let mut out = Vec::new();
                report::inspect::text(&seen, &mut out).unwrap();
                report::inspect::json(&seen, &mut out).unwrap();
                assert!(!out.is_empty());
            }
        }
    }

    proptest! {
        #[test]
        fn mutated_text_never_panics(
            which in 0..crate::input::model_names().len(),
            cuts in proptest::collection::vec((0_usize..100, 0_usize..10, ".{0,6}"), 1..4),
        ) {
            let name = &crate::input::model_names()[which];
            let spec = crate::input::model(name).unwrap();
            prop_assert!(spec.parameters() > 0);
            let mut text = crate::input::builtin::text(name).unwrap().to_owned();
            for (start, length, inserted) in cuts {
                let at = |percent: usize| {
                    let place = text.len() * percent.min(100) / 100;
                    (0..=place).rev().find(|&i| text.is_char_boundary(i)).unwrap()
                };
                let (start, end) = (at(start), at(start + length));
                text.replace_range(start..end, &inserted);
            }
            // Refused or read, and what is read can be counted and divided.
            if let Ok(model) = read("config.json", &text) {
                inspect(&model);
            }
        }

        #[test]
        fn any_value_in_any_field_never_panics(
            which in 0..crate::input::model_names().len(),
            field in 0_usize..12,
            value in prop_oneof![
                any::<i64>().prop_map(Value::from),
                (0_i64..1 << 25).prop_map(Value::from),
                any::<f64>().prop_map(Value::from),
                any::<bool>().prop_map(Value::from),
                ".{0,8}".prop_map(Value::from),
                Just(Value::Null),
                Just(json!([])),
                Just(json!({"a": 1})),
            ],
        ) {
            let name = &crate::input::model_names()[which];
            let text = crate::input::builtin::text(name).unwrap();
            let mut config: Value = serde_json::from_str(text).unwrap();
            let fields = config.as_object_mut().unwrap();
            let key = fields.keys().nth(field % fields.len()).unwrap().clone();
            fields.insert(key, value);
            if let Ok(model) = read("config.json", &config.to_string()) {
                inspect(&model);
            }
        }
    }
}
