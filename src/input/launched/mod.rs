//! Reads the run of a user's own: the flags of a Megatron script, a Megatron-Bridge recipe, a
//! torchtitan configuration or a `MaxText` file, as far as they are literal.
//!
//! In: the text of such a file. Out: an [`OwnRun`], every part that is literal; what is computed is
//! named, so that its user can be asked for it. Nothing is run.

mod literals;
mod maxtext;
mod megatron;
mod mixture;
mod torchtitan;

use std::path::Path;

use literals::Literals;

use super::InputError;
use super::numbers::Field;
use crate::launch::Target;
use crate::model::Attention;
use crate::model::Precision;
use crate::plan::GivenStrategy;

/// A run as its file says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnRun {
    /// What starts it.
    pub target: Target,
    /// Its strategy, as far as it is literal.
    pub strategy: GivenStrategy,
    /// Its devices, where the file says so.
    pub devices: Option<u64>,
    /// Tokens in a sequence.
    pub sequence: Option<u64>,
    /// Sequences in a batch.
    pub global_batch: Option<u64>,
    /// Batches to train for.
    pub steps: Option<u64>,
    /// In which numbers matmuls compute.
    pub precision: Precision,
    /// What attention leaves behind, where the file says so.
    pub attention: Option<Attention>,
    /// The model: a built-in name, or a configuration of its numbers.
    pub model: Option<OwnModel>,
    /// What is computed in the file and therefore not known: what it is, and the option that gives
    /// it.
    pub computed: Vec<Computed>,
    /// What of the run cannot be said here, a sentence each.
    pub remarks: Vec<String>,
}

/// The model of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnModel {
    /// A built-in one.
    Named(&'static str),
    /// A configuration of its numbers.
    Config(String),
}

/// A value that a file computes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Computed {
    /// Its name in the file.
    pub name: String,
    /// What stands there.
    pub found: String,
}

/// Reads the run in a file of this name.
///
/// # Errors
/// That no framework has such files, or what of it makes no sense.
pub fn read(text: &str, file: &str) -> Result<OwnRun, InputError> {
    let suffix = Path::new(file).extension().and_then(|suffix| suffix.to_str());
    match suffix {
        Some("sh" | "bash" | "sbatch" | "slurm") => {
            megatron::read(&Literals::of_script(text), Target::Megatron, file)
        }
        Some("py") if text.contains("ParallelismConfig") => {
            torchtitan::read(&Literals::of_python(text), text, file)
        }
        Some("py") => megatron::read(&Literals::of_python(text), Target::Bridge, file),
        Some("yml" | "yaml") => maxtext::read(&Literals::of_yaml(text), file),
        _ => Err(Field::new(file, "from").value(
            file,
            "is no file that starts a run",
            "give a script (.sh), a recipe (.py) or a configuration (.yml)",
        )),
    }
}

/// What is read from literals, and what they lack.
struct Reading<'a> {
    literals: &'a Literals,
    file: &'a str,
    computed: Vec<Computed>,
}

impl<'a> Reading<'a> {
    fn new(literals: &'a Literals, file: &'a str) -> Self {
        Self { literals, file, computed: Vec::new() }
    }

    /// The first value under a name, where it is literal.
    fn word(&mut self, name: &str) -> Option<&'a str> {
        let values = self.literals.get(name)?;
        let value = values.first()?;
        if literals::is_computed(value) {
            self.computed.push(Computed { name: name.to_owned(), found: value.clone() });
            return None;
        }
        Some(value)
    }

    /// A whole number under a name.
    fn number(&mut self, name: &str) -> Result<Option<u64>, InputError> {
        let Some(word) = self.word(name) else { return Ok(None) };
        let plain = word.replace('_', "");
        let number = plain.parse::<u64>().or_else(|_| {
            // Some write whole numbers with a point.
            plain.strip_suffix(".0").unwrap_or("").parse::<u64>()
        });
        let field = Field::new(self.file, name);
        number.map(Some).map_err(|_| field.value(word, "is no whole number", "give one"))
    }

    /// Whether a switch is there.
    fn has(&self, name: &str) -> bool {
        self.literals.get(name).is_some_and(|values| {
            values.first().is_none_or(|value| value != "false" && value != "False")
        })
    }
}

/// A configuration of a decoder by its numbers, as Hugging Face writes it.
fn config(fields: &[(&str, serde_json::Value)]) -> String {
    let object: serde_json::Map<String, serde_json::Value> =
        fields.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    serde_json::Value::Object(object).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::GivenCut;
    use crate::plan::GivenRecompute;

    const SCRIPT: &str = r"
#!/bin/bash
# --tensor-model-parallel-size 99 in a comment
TP=8
PP=${PP:-4}
MODEL_ARGS=(
    --num-layers 80 --hidden-size 8192 --ffn-hidden-size 28672
    --num-attention-heads 64 --group-query-attention --num-query-groups 8
    --swiglu --normalization RMSNorm --position-embedding-type rope
    --untie-embeddings-and-output-weights --disable-bias-linear
    --seq-length 8192 --max-position-embeddings 8192 --vocab-size 128256
)
torchrun --nproc_per_node 8 --nnodes $NNODES pretrain_gpt.py ${MODEL_ARGS[@]} \
    --tensor-model-parallel-size $TP --sequence-parallel \
    --pipeline-model-parallel-size=${PP} --num-layers-per-virtual-pipeline-stage 5 \
    --micro-batch-size 1 --global-batch-size $((16 * 8)) \
    --use-distributed-optimizer --recompute-granularity selective --bf16 --fp8-format hybrid
";

    #[test]
    fn a_script_is_read_as_far_as_it_is_literal() {
        let run = read(SCRIPT, "run.sh").unwrap();
        assert_eq!(run.target, Target::Megatron);
        let given = GivenStrategy {
            tensor: Some(8),
            sequence_parallel: Some(true),
            context: Some(1),
            pipeline: Some(4),
            chunks: Some(4),
            micro_batch: Some(1),
            zero: Some(1),
            recompute: Some(GivenRecompute::SELECTIVE),
            cut: Some(GivenCut::Even),
            ..GivenStrategy::default()
        };
        assert_eq!(run.strategy, given);
        assert_eq!((run.sequence, run.global_batch, run.devices), (Some(8192), None, None));
        assert_eq!(run.precision, Precision::Fp8);
        let names: Vec<&str> = run.computed.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["nnodes", "global-batch-size"]);
        let Some(OwnModel::Config(text)) = run.model else { panic!("{:?}", run.model) };
        let model = crate::input::source::model_text("run.sh", &text).unwrap();
        assert_eq!(model.parameters(), 70_553_706_496);
    }

    #[test]
    fn a_configuration_of_torchtitan_names_its_model() {
        let text = "from torchtitan.models.llama3.config_registry import llama3_70b\n\
                    config = llama3_70b()\nconfig.parallelism = ParallelismConfig(\n    \
                    data_parallel_shard_degree=32,\n    tensor_parallel_degree=8,\n    \
                    enable_sequence_parallel=True,\n)\n";
        let run = read(text, "plan.py").unwrap();
        assert_eq!(run.target, Target::Torchtitan);
        assert_eq!(run.model, Some(OwnModel::Named("llama3-70b")));
        assert_eq!(run.strategy.tensor, Some(8));
        assert_eq!((run.strategy.zero, run.strategy.data), (Some(3), Some(32)));
        assert_eq!(run.devices, Some(256));
    }

    #[test]
    fn a_file_of_maxtext_has_its_degrees_in_two_levels() {
        let text = "base_config: base.yml\nici_tensor_parallelism: 8\ndcn_fsdp_parallelism: 4\n\
                    per_device_batch_size: 0.125\nmax_target_length: 4096\nremat_policy: full\n\
                    base_emb_dim: 4096\nbase_num_decoder_layers: 32\nbase_mlp_dim: 14336\n\
                    base_num_query_heads: 32\nbase_num_kv_heads: 8\nhead_dim: 128\nvocab_size: 128256\n";
        let run = read(text, "my.yml").unwrap();
        assert_eq!(run.target, Target::Maxtext);
        assert_eq!(run.strategy.tensor, Some(8));
        assert_eq!((run.strategy.data, run.strategy.zero), (Some(4), Some(3)));
        assert_eq!(run.strategy.recompute, Some(GivenRecompute::Full));
        assert_eq!((run.strategy.micro_batch, run.global_batch), (Some(1), Some(4)));
        assert!(matches!(run.model, Some(OwnModel::Config(_))));
    }

    #[test]
    fn other_files_are_refused() {
        let error = read("", "run.txt").unwrap_err().to_string();
        assert!(error.contains("give a script (.sh)"), "{error}");
        assert!(read("--tensor-model-parallel-size x", "run.sh").is_err());
    }
}
