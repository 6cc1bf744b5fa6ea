//! Reads a strategy, or a part of one, as `--strategy` holds it: `t=8,sp,p=8,v=3,zero=1`.

use super::InputError;
use super::numbers::Field;
use crate::model::Module;
use crate::parallel::ContextKind;
use crate::parallel::Order;
use crate::plan::GivenCut;
use crate::plan::GivenRecompute;
use crate::plan::GivenStrategy;
use crate::plan::Job;
use crate::plan::UnknownRecompute;

/// What a word of a strategy is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    Tensor,
    SequenceParallel,
    NotSequenceParallel,
    Context,
    Expert,
    ExpertTensor,
    Pipeline,
    Chunks,
    Group,
    Data,
    MicroBatch,
    Zero,
    Shards,
    FullySharded,
    Order,
    Recompute,
    Cut,
}

/// Every word, by the names that frameworks and papers have for it.
const WORDS: [(&str, Word); 26] = [
    ("t", Word::Tensor),
    ("tp", Word::Tensor),
    ("sp", Word::SequenceParallel),
    ("no-sp", Word::NotSequenceParallel),
    ("c", Word::Context),
    ("cp", Word::Context),
    ("e", Word::Expert),
    ("ep", Word::Expert),
    ("x", Word::ExpertTensor),
    ("etp", Word::ExpertTensor),
    ("p", Word::Pipeline),
    ("pp", Word::Pipeline),
    ("v", Word::Chunks),
    ("vp", Word::Chunks),
    ("g", Word::Group),
    ("d", Word::Data),
    ("dp", Word::Data),
    ("b", Word::MicroBatch),
    ("mbs", Word::MicroBatch),
    ("zero", Word::Zero),
    ("z", Word::Zero),
    ("shard", Word::Shards),
    ("fsdp", Word::FullySharded),
    ("order", Word::Order),
    ("recompute", Word::Recompute),
    ("cut", Word::Cut),
];

/// The strategy that `text` gives; `file` is what errors refer to.
///
/// # Errors
/// The first word that is not known, given twice or holds what it may not, or that makes no sense
/// beside the others.
pub fn read(text: &str, file: &str) -> Result<GivenStrategy, InputError> {
    let mut given = GivenStrategy::default();
    for part in text.split(',').map(str::trim) {
        let (name, value) = match part.split_once('=') {
            Some((name, value)) => (name.trim(), Some(value.trim())),
            None => (part, None),
        };
        if name.is_empty() {
            let words = "give words such as t=8,sp,p=4,zero=1, with a comma between them";
            return Err(Field::new(file, "strategy").missing(words));
        }
        let known = WORDS.iter().find(|(known, _)| *known == name);
        let (_, word) = known.ok_or_else(|| unknown(file, "word of a strategy", name, &names()))?;
        Part { file, name, value }.read(*word, &mut given)?;
    }
    check(&given, file)?;
    Ok(given)
}

/// Whether the parts of a strategy make sense beside each other, whoever wrote them.
///
/// # Errors
/// The first part that does not.
pub fn check(given: &GivenStrategy, file: &str) -> Result<(), InputError> {
    let field = |name: &str| Field::new(file, name);
    for (name, number) in [
        ("t", given.tensor),
        ("c", given.context),
        ("e", given.expert),
        ("x", given.expert_tensor),
        ("p", given.pipeline),
        ("v", given.chunks),
        ("g", given.group),
        ("d", given.data),
        ("b", given.micro_batch),
        ("shard", given.shards),
    ] {
        number.map_or(Ok(0), |number| field(name).whole(number, 1, Job::LARGEST_COUNT))?;
    }
    given.zero.map_or(Ok(0), |zero| field("zero").whole(zero, 0, 3))?;
    if given.context_kind.is_some() && given.context.is_none() {
        return Err(field("c").missing("a kind of context parallelism needs its degree"));
    }
    if let (Some(chunks @ 2..), Some(1)) = (given.chunks, given.pipeline) {
        let problem = "gives several chunks to a pipeline of one rank";
        return Err(field("v").value(&chunks.to_string(), problem, "give p=2 or more, or v=1"));
    }
    if let (Some(group), None | Some(1)) = (given.group, given.chunks) {
        let problem = "groups micro-batches for chunks that there are not";
        return Err(field("g").value(&group.to_string(), problem, "give v=2 or more, or no g"));
    }
    if let (Some(shards @ 2..), Some(0)) = (given.shards, given.zero) {
        let problem = "has several replicas share what zero=0 does not share";
        let allowed = "give zero=1 or more, or no shard";
        return Err(field("shard").value(&shards.to_string(), problem, allowed));
    }
    if let (Some(shards), Some(data), Some(context)) = (given.shards, given.data, given.context)
        && !(u128::from(data) * u128::from(context)).is_multiple_of(shards.into())
    {
        let problem = format!("does not divide the {data} x {context} replicas");
        let allowed = "give a divisor of d times c";
        return Err(field("shard").value(&shards.to_string(), &problem, allowed));
    }
    Ok(())
}

fn names() -> Vec<String> {
    WORDS.iter().map(|(name, _)| (*name).to_owned()).collect()
}

fn unknown(file: &str, what: &str, found: &str, known: &[String]) -> InputError {
    let (what, found) = (what.to_owned(), found.to_owned());
    InputError::Unknown { file: file.to_owned(), what, found, known: known.to_vec() }
}

/// One part of a strategy: a word, with or without a value.
struct Part<'a> {
    file: &'a str,
    name: &'a str,
    value: Option<&'a str>,
}

impl Part<'_> {
    fn read(&self, word: Word, given: &mut GivenStrategy) -> Result<(), InputError> {
        match word {
            Word::Tensor => self.put(&mut given.tensor, self.degree()?),
            Word::SequenceParallel => self.put(&mut given.sequence_parallel, self.scattered()?),
            Word::NotSequenceParallel => {
                self.alone()?;
                self.put(&mut given.sequence_parallel, false)
            }
            Word::Context => self.context(given),
            Word::Expert => self.put(&mut given.expert, self.degree()?),
            Word::ExpertTensor => self.put(&mut given.expert_tensor, self.degree()?),
            Word::Pipeline => self.put(&mut given.pipeline, self.degree()?),
            Word::Chunks => self.put(&mut given.chunks, self.degree()?),
            Word::Group => self.put(&mut given.group, self.degree()?),
            Word::Data => self.put(&mut given.data, self.degree()?),
            Word::MicroBatch => self.put(&mut given.micro_batch, self.degree()?),
            Word::Zero => {
                let stage = self.number(self.needed("a stage from 0 to 3")?)?;
                self.put(&mut given.zero, self.field().whole(stage, 0, 3)?)
            }
            Word::Shards => self.put(&mut given.shards, self.degree()?),
            Word::FullySharded => {
                let shards = self.degree()?;
                self.put(&mut given.zero, 3)?;
                self.put(&mut given.shards, shards)
            }
            Word::Order => self.put(&mut given.order, self.order()?),
            Word::Recompute => self.put(&mut given.recompute, self.recompute()?),
            Word::Cut => match self.needed("even")? {
                "even" => self.put(&mut given.cut, GivenCut::Even),
                other => Err(unknown(self.file, "cut", other, &["even".to_owned()])),
            },
        }
    }

    fn field(&self) -> Field {
        Field::new(self.file, self.name)
    }

    fn put<T>(&self, slot: &mut Option<T>, value: T) -> Result<(), InputError> {
        if slot.replace(value).is_none() {
            return Ok(());
        }
        let found = self.value.unwrap_or("yes");
        Err(self.field().value(found, "says again what was said", "say it once"))
    }

    fn needed(&self, what: &str) -> Result<&str, InputError> {
        let found = self.value.filter(|value| !value.is_empty());
        found.ok_or_else(|| self.field().missing(&format!("give {}={what}", self.name)))
    }

    fn alone(&self) -> Result<(), InputError> {
        match self.value {
            None => Ok(()),
            Some(value) => {
                let allowed = format!("write {} alone", self.name);
                Err(self.field().value(value, "gives a value to a word that has none", &allowed))
            }
        }
    }

    fn number(&self, text: &str) -> Result<u64, InputError> {
        let allowed = format!("give a whole number, such as {}=2", self.name);
        text.parse().map_err(|_| self.field().value(text, "is no whole number", &allowed))
    }

    fn degree(&self) -> Result<u64, InputError> {
        let number = self.number(self.needed("a whole number")?)?;
        self.field().whole(number, 1, Job::LARGEST_COUNT)
    }

    fn scattered(&self) -> Result<bool, InputError> {
        match self.value {
            None | Some("true") => Ok(true),
            Some("false") => Ok(false),
            Some(other) => {
                let allowed = "write sp, sp=true, sp=false or no-sp";
                Err(self.field().value(other, "is neither true nor false", allowed))
            }
        }
    }

    fn context(&self, given: &mut GivenStrategy) -> Result<(), InputError> {
        let text = self.needed("a whole number, with :ring, :gather or :ulysses or without")?;
        let (degree, kind) = match text.split_once(':') {
            Some((degree, kind)) => (degree.trim(), Some(kind.trim())),
            None => (text, None),
        };
        let degree = self.field().whole(self.number(degree)?, 1, Job::LARGEST_COUNT)?;
        self.put(&mut given.context, degree)?;
        if let Some(kind) = kind {
            let known = ContextKind::ALL.map(|kind| kind.name().to_owned());
            let missing = || unknown(self.file, "kind of context parallelism", kind, &known);
            given.context_kind = Some(ContextKind::named(kind).ok_or_else(missing)?);
        }
        Ok(())
    }

    fn order(&self) -> Result<Order, InputError> {
        let order = self.needed("the axes, the inner one first, such as tp-cp-dp-pp")?;
        let known = Order::ALL.map(|known| known.to_string());
        order.parse().map_err(|_| unknown(self.file, "order", order, &known))
    }

    fn recompute(&self) -> Result<GivenRecompute, InputError> {
        let modules = Module::ALL.map(|module| module.name().to_owned());
        let words = GivenRecompute::WORDS.map(String::from);
        let text = self.needed("none, selective, full, full:K, stage or modules joined by +")?;
        text.parse().map_err(|error| match error {
            UnknownRecompute::Layers { found } => {
                let problem = "is no number of layers";
                let allowed = "give a whole number of at least 1, such as recompute=full:2";
                self.field().value(&format!("full:{found}"), problem, allowed)
            }
            UnknownRecompute::Word { found } => {
                let known = [&words[..], &["full:K".to_owned()], &modules].concat();
                unknown(self.file, "choice of recompute", &found, &known)
            }
            UnknownRecompute::Twice { found } => {
                let problem = format!("names {found} twice");
                self.field().value(text, &problem, "name it once")
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ok(text: &str) -> GivenStrategy {
        read(text, "--strategy").unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn every_spelling_is_read_and_written_in_one() {
        let all = "t=8,sp,c=2:ring,p=8,v=3,g=8,d=8,b=1,zero=1,shard=16,order=tp-cp-pp-dp,\
                   recompute=selective,cut=even";
        assert_eq!(ok(all).to_string(), all);
        for (text, canonical) in [
            ("tp=8, cp=2 , pp=8,vp=3,dp=8,mbs=1,z=1", "t=8,c=2,p=8,v=3,d=8,b=1,zero=1"),
            ("sp=true", "sp"),
            ("sp=false", "no-sp"),
            ("no-sp", "no-sp"),
            ("c=4:gather", "c=4:gather"),
            ("cp=4:ulysses", "c=4:ulysses"),
            ("fsdp=32,t=8", "t=8,zero=3,shard=32"),
            ("recompute=none", "recompute=none"),
            ("recompute=full", "recompute=full"),
            ("recompute=full:3", "recompute=full:3"),
            ("recompute=stage", "recompute=stage"),
            ("recompute=core_attn", "recompute=selective"),
            ("recompute=mlp+core_attn", "recompute=core_attn+mlp"),
            ("zero=0", "zero=0"),
            // The three degrees of earlier releases.
            ("t=4, p=32, d=8", "t=4,p=32,d=8"),
        ] {
            let given = ok(text);
            assert_eq!(given.to_string(), canonical);
            assert_eq!(ok(canonical), given, "{text}");
        }
    }

    #[test]
    fn all_combinations_of_parts_survive_being_written() {
        let parts = [
            ["", "t=2", "t=8"],
            ["", "sp", "no-sp"],
            ["", "c=2", "c=4:gather"],
            ["", "p=4,v=2,g=4", "p=8"],
            ["", "d=4,zero=1", "zero=3,shard=2"],
            ["", "recompute=mlp+layernorm", "recompute=full:2"],
            ["", "order=tp-dp-cp-pp", "cut=even"],
        ];
        for nth in 1..3_usize.pow(7) {
            let chosen = parts.iter().enumerate();
            let chosen =
                chosen.map(|(at, part)| part[nth / 3_usize.pow(u32::try_from(at).unwrap()) % 3]);
            let text: Vec<&str> = chosen.filter(|part| !part.is_empty()).collect();
            let given = ok(&text.join(","));
            assert_eq!(ok(&given.to_string()), given);
        }
    }

    #[test]
    fn what_makes_no_sense_is_said_with_what_would() {
        for (text, said) in [
            ("", "`strategy` is missing; give words such as t=8"),
            ("t=8,", "give words such as"),
            ("t=8,t=4", "`t = 4` says again what was said"),
            ("t=8,tp=8", "`tp = 8` says again"),
            ("sp,no-sp", "says again"),
            ("fsdp=8,zero=1", "`zero = 1` says again"),
            ("q=3", "unknown word of a strategy `q`; known are t, tp, sp"),
            ("recomptue=full", "did you mean `recompute`?"),
            ("ordre=tp-cp-dp-pp", "did you mean `order`?"),
            ("t=0", "`t = 0` is out of range; allowed are 1 to 4294967296"),
            ("p=-1", "`p = -1` is no whole number; give a whole number, such as p=2"),
            ("d=2.5", "is no whole number"),
            ("d=99999999999999999999", "is no whole number"),
            ("d=4294967297", "is out of range"),
            ("t", "`t` is missing; give t=a whole number"),
            ("t=", "`t` is missing"),
            ("zero=4", "`zero = 4` is out of range; allowed are 0 to 3"),
            ("sp=maybe", "is neither true nor false; write sp"),
            ("no-sp=true", "gives a value to a word that has none"),
            ("c=2:rign", "did you mean `ring`?"),
            ("order=cp-tp-dp-pp", "unknown order `cp-tp-dp-pp`"),
            ("order=tp-cp-dpp-p", "did you mean `tp-cp-dp-pp`?"),
            ("recompute=fulll", "did you mean `full`?"),
            ("recompute=core_atn", "did you mean `core_attn`?"),
            ("recompute=full:0", "`recompute = full:0` is no number of layers"),
            ("recompute=mlp+mlp", "names mlp twice"),
            ("cut=evn", "unknown cut `evn`"),
            ("v=3,p=1", "gives several chunks to a pipeline of one rank; give p=2 or more"),
            ("g=8", "`g = 8` groups micro-batches for chunks that there are not"),
            ("g=8,v=1,p=4", "give v=2 or more"),
            ("zero=0,shard=4", "zero=0 does not share"),
            ("d=8,c=1,shard=3", "does not divide the 8 x 1 replicas"),
        ] {
            let error = read(text, "--strategy").map(|given| given.to_string());
            let error = error.expect_err(text).to_string();
            assert!(error.starts_with("--strategy: "), "{error}");
            assert!(error.contains(said), "{text}: {error} should say {said}");
        }
    }

    #[test]
    fn a_strategy_of_a_file_is_judged_like_one_of_an_option() {
        let none = GivenStrategy::default();
        let kind = Some(ContextKind::Ring);
        for bad in [
            GivenStrategy { tensor: Some(0), ..none.clone() },
            GivenStrategy { zero: Some(4), ..none.clone() },
            GivenStrategy { context_kind: kind, ..none.clone() },
        ] {
            assert!(check(&bad, "plan.json").is_err(), "{bad}");
        }
        assert_eq!(check(&none, "plan.json"), Ok(()));
        assert!(serde_json::from_str::<GivenStrategy>(r#"{"order": "pp"}"#).is_err());
        assert!(serde_json::from_str::<GivenStrategy>(r#"{"order": "tp-cp-pp-dp"}"#).is_ok());
    }
}
