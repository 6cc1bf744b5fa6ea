//! Graphs of a user's own: a model written layer by layer in named dimensions (docs/model-file.md).
//!
//! The file is what families write: tensors in named dimensions and the steps of the forward pass.
//! Backward pass, what is kept, fusion and division follow by the same rules. What is read is
//! checked first ([`valid`]), so that nothing behind it meets a graph that no family could write.

mod mutations;
mod opaque;
mod valid;

use serde::Deserialize;
use serde::Serialize;

use super::InputError;
use super::json_place::field_at;
use super::numbers::plainly;
use crate::model::Layer;
use crate::model::Model;
use crate::model::spec::Spec;

/// What such a file says that it is.
pub const FORMAT: &str = "phaze-model";
/// The version that is read and written.
pub const VERSION: u64 = 1;

#[derive(Serialize)]
struct Written<'a> {
    format: &'a str,
    version: u64,
    numbers: &'a Spec,
    kinds: &'a [Layer],
    sequence: &'a [usize],
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Read {
    format: String,
    version: u64,
    numbers: Spec,
    kinds: Vec<Layer>,
    sequence: Vec<usize>,
}

/// Whether a text is such a file, or claims to be one.
pub fn is_one(text: &str) -> bool {
    #[derive(Deserialize)]
    struct Head {
        format: String,
    }
    serde_json::from_str::<Head>(text).is_ok_and(|head| head.format == FORMAT)
}

/// A model as such a file.
pub fn text(model: &Model) -> String {
    let file = Written {
        format: FORMAT,
        version: VERSION,
        numbers: &model.spec,
        kinds: &model.kinds,
        sequence: &model.sequence,
    };
    let mut text = serde_json::to_string_pretty(&file).expect("a model has only names and numbers");
    text.push('\n');
    text
}

/// The model that `text`, known to its author as `file`, describes.
pub fn read(file: &str, text: &str) -> Result<Model, InputError> {
    let wrong = |line: Option<usize>, message: String| InputError::Syntax {
        file: file.into(),
        line,
        message,
    };
    let found: Read = serde_json::from_str(text).map_err(|error| {
        let message = error.to_string();
        let message = plainly(message.split(" at line ").next().unwrap_or_default());
        let message = match field_at(text, error.line(), error.column()) {
            field if field.is_empty() => message,
            field => format!("`{field}`: {message}"),
        };
        wrong(Some(error.line()), message)
    })?;
    if found.format != FORMAT {
        return Err(wrong(None, format!("`format` is not \"{FORMAT}\"")));
    }
    if found.version != VERSION {
        let message = format!("`version = {}` is not {VERSION}, which is read here", found.version);
        return Err(wrong(None, message));
    }
    let model = Model { spec: found.numbers, kinds: found.kinds, sequence: found.sequence };
    valid::check(&model).map_err(|problem| wrong(None, problem))?;
    Ok(model)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::families;
    use crate::model::spec::examples;
    use crate::parallel::Setting;
    use crate::parallel::shard;
    use serde_json::Value;
    use serde_json::json;

    fn example(which: usize) -> Value {
        let all = examples::all();
        let model = families::build(&all[which % all.len()]);
        serde_json::from_str(&text(&model)).unwrap()
    }

    #[test]
    fn every_family_and_every_built_in_model_is_read_as_it_was_written() {
        let built_in = crate::input::model_names();
        let built_in = built_in.iter().map(|name| crate::input::model(name).unwrap());
        let examples = examples::all();
        for model in examples.iter().map(families::build).chain(built_in) {
            let text = text(&model);
            assert!(is_one(&text));
            assert_eq!(read("m.json", &text).unwrap(), model, "{}", model.spec.name);
        }
        assert!(!is_one("{\"model_type\": \"llama\"}") && !is_one("[") && !is_one("3"));
    }

    #[test]
    fn what_no_family_could_write_is_refused_by_its_place() {
        let cases: [(&str, Value, &str); 15] = [
            ("/version", json!(2), "`version = 2` is not 1"),
            ("/numbers/kv_heads", json!(3), "`numbers.kv_heads = 3` does not divide the 8 heads"),
            ("/numbers/hidden", json!(0), "`numbers.hidden = 0` is out of range"),
            ("/numbers/layers", json!(4), "`numbers.layers = 4`, and the sequence has 3"),
            ("/sequence/1", json!(7), "`sequence[1] = 7` is no kind of layer"),
            ("/sequence/4", json!(1), "`sequence[4]` is the last layer and hands something on"),
            ("/kinds/1/graph/steps/0/reads", json!([99]), "`kinds[1].graph.steps[0].reads`"),
            ("/kinds/1/graph/steps/0/writes", json!([]), "`kinds[1].graph.steps[0].writes`"),
            (
                "/kinds/1/graph/steps/1/name",
                json!("attention_norm"),
                "`kinds[1].graph.steps[1].name`",
            ),
            (
                "/kinds/1/graph/tensors/0/dims",
                json!(["batch", "batch"]),
                "`kinds[1].graph.tensors[0].dims`",
            ),
            ("/kinds/1/graph/tensors/0/dims", json!(["many"]), "unknown variant `many`"),
            (
                "/kinds/1/graph/tensors/1/dims",
                json!(["mlp", "vocabulary"]),
                "`kinds[1].graph.tensors[1].dims` have two that tensor parallelism divides",
            ),
            ("/kinds/1/graph/steps/0/action", json!("contract"), "`kinds[1].graph.steps[0].reads`"),
            ("/kinds/1/name", json!("embedding"), "`kinds[1].name`"),
            (
                "/kinds/1/graph/tensors/1/dims",
                json!([{"own": 0}]),
                "`kinds[1].graph.tensors[1].dims`",
            ),
        ];
        for (pointer, value, message) in cases {
            let mut file = example(0);
            *file.pointer_mut(pointer).expect(pointer) = value;
            let refused = read("m.json", &file.to_string()).unwrap_err().to_string();
            assert!(refused.contains(message), "{pointer}: {refused}");
        }
    }

    #[test]
    fn a_dimension_of_its_own_is_divided_or_not_as_the_file_says() {
        let mut file = example(2);
        file["numbers"]["own_cut"] = json!([64]);
        file["numbers"]["mlp"] = json!(8);
        let text = file.to_string().replace("\"mlp\"]", "{\"own_cut\":0}]");
        let text = text.replace("\"mlp\",\"hidden\"", "{\"own_cut\":0},\"hidden\"");
        let model = read("m.json", &text).unwrap();
        let share = |tensor_parallel| {
            let setting = Setting { sequence: 64, tensor_parallel, ..Setting::ALONE };
            shard(&model, setting)
        };
        let (one, two) = (share(1).unwrap(), share(2).unwrap());
        let flops = |share: &crate::parallel::Share| {
            let ops = share.kinds[1].forward.nodes().iter();
            ops.filter(|op| op.name.starts_with("mlp")).map(|op| op.flops().0).sum::<u128>()
        };
        assert_eq!(flops(&one), 2 * 64 * 32 * 64 * 3);
        assert_eq!(flops(&two) * 2, flops(&one));
        let mut odd = model.clone();
        odd.spec.own_cut = vec![63];
        let setting = Setting { sequence: 64, tensor_parallel: 2, ..Setting::ALONE };
        let refused = shard(&odd, setting).unwrap_err().to_string();
        assert!(refused.contains("63 elements of a dimension of its own"), "{refused}");
    }
}
