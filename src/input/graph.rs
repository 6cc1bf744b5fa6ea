//! Operator graphs that users bring: `phaze schedule --graph`.

use std::collections::BTreeMap;
use std::fmt::Display;

use serde_json::Map;
use serde_json::Value;

use super::InputError;
use super::decimal::Decimal;
use super::decimal::Scale;
use crate::graph::Dag;
use crate::model::op::CoreKind;
use crate::plan::schedule::Cores;
use crate::plan::schedule::Problem;
use crate::plan::schedule::Rule;
use crate::plan::schedule::Task;

/// The most operators that are read.
const MOST_OPERATORS: usize = 1_000_000;

/// The most cores of a kind.
const MOST_CORES: u64 = 1 << 24;

/// All operators one after another must take less than this many ticks.
const LONGEST: u64 = 1 << 62;

/// A graph of a user, ready to be scheduled.
#[derive(Clone, Debug, PartialEq)]
pub struct UserGraph {
    /// What its author calls it.
    pub name: Option<String>,
    /// The question, in ticks.
    pub problem: Problem,
    /// The operators' names, in the order of the problem's tasks.
    pub names: Vec<String>,
    /// For each operator in the order of the file, its task.
    pub order: Vec<usize>,
    /// What a tick is.
    pub scale: Scale,
}

/// Reads one graph, or with `lines` one per line; blank lines are skipped.
pub fn graphs(text: &str, file: &str, lines: bool) -> Result<Vec<UserGraph>, InputError> {
    if !lines {
        return Ok(vec![graph(text, &Place { file: file.into() })?]);
    }
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(at, line)| graph(line, &Place { file: format!("{file}, line {}", at + 1) }))
        .collect()
}

/// Where a graph stands, for errors.
struct Place {
    file: String,
}

fn graph(text: &str, place: &Place) -> Result<UserGraph, InputError> {
    let value = parse(text, place)?;
    let outer = place.object(&value, "the graph")?;
    // A graph may come under a key, with anything else beside it.
    let (name, inner) = match outer.get("graph") {
        Some(inner) => (outer.get("name"), place.object(inner, "`graph`")?),
        None => (outer.get("name"), outer),
    };
    let known = ["tensor_cores", "vector_cores", "operators", "edges", "rule", "name"];
    place.knows(inner, "key", &known)?;
    let cores = Cores {
        tensor: place.n_cores(inner, "tensor_cores")?,
        vector: place.n_cores(inner, "vector_cores")?,
    };
    let operators = place.operators(inner)?;
    let (names, indices) = place.names(&operators, cores)?;
    let edges = place.edges(inner, &indices)?;
    let scale = scale(&operators, &edges, cores);
    let tasks = place.tasks(&operators, scale)?;
    let (tasks, ids) = Dag::from_edges(tasks, &edges).map_err(|cycle| {
        let names = names[cycle.0].as_str();
        place.value(
            "edges",
            format!("… {names} …"),
            "run in a circle",
            "an operator cannot wait for itself",
        )
    })?;
    let order: Vec<usize> = ids.iter().map(|id| id.index()).collect();
    let mut by_task = vec![String::new(); names.len()];
    for (name, &task) in names.into_iter().zip(&order) {
        by_task[task] = name;
    }
    let problem = Problem { tasks, cores, rule: place.rule(inner)? };
    let name = name.and_then(Value::as_str).map(str::to_owned);
    Ok(UserGraph { name, problem, names: by_task, order, scale })
}

/// An operator as it is written.
struct Operator<'a> {
    id: &'a str,
    core: CoreKind,
    alone: Decimal,
    spread: Decimal,
}

impl Operator<'_> {
    fn fastest(&self) -> f64 {
        self.alone.value().min(self.spread.value())
    }
}

/// JSON, with a second look at the numbers that JSON has no word for, so that the error can name
/// the operator instead of a column.
fn parse(text: &str, place: &Place) -> Result<Value, InputError> {
    serde_json::from_str(text).or_else(|error| {
        let mut quoted = text.to_owned();
        for word in ["NaN", "-Infinity", "Infinity", "inf", "nan"] {
            for before in [":", ": "] {
                quoted = quoted.replace(&format!("{before}{word}"), &format!("{before}\"{word}\""));
            }
        }
        serde_json::from_str(&quoted).map_err(|_| InputError::Syntax {
            file: place.file.clone(),
            line: Some(error.line()).filter(|_| !place.file.contains(", line ")),
            message: error.to_string(),
        })
    })
}

/// How long all operators take one after another, each in its faster mode: no schedule need be
/// longer.
fn total(operators: &[Operator]) -> f64 {
    operators.iter().map(Operator::fastest).sum()
}

/// Ticks such that rounding changes the answer by less than 1e-12 of itself.
///
/// No schedule is faster than the longest path or than all operators shared by all cores, each
/// operator in its faster mode; and none is changed by more than half a tick per operator.
fn scale(operators: &[Operator], edges: &[(usize, usize)], cores: Cores) -> Scale {
    let total = total(operators);
    let n_cores = f64::from(cores.tensor) + f64::from(cores.vector) + 1.0;
    let answer = (total / n_cores).max(longest_path(operators, edges));
    // An operator that takes longer alone than all others together never runs alone.
    let numbers = operators.iter().flat_map(|operator| [operator.alone, operator.spread]);
    let numbers = numbers.filter(|number| number.value() <= total);
    Scale::fine_enough(numbers, operators.len(), answer)
}

fn longest_path(operators: &[Operator], edges: &[(usize, usize)]) -> f64 {
    let Ok((graph, ids)) = Dag::from_edges((0..operators.len()).collect(), edges) else {
        return 0.0;
    };
    let mut ends = vec![0.0_f64; operators.len()];
    for id in graph.ids() {
        let start =
            graph.predecessors(id).iter().map(|read| ends[read.index()]).fold(0.0, f64::max);
        ends[id.index()] = start + operators[*graph.node(id)].fastest();
    }
    debug_assert_eq!(ids.len(), ends.len());
    ends.into_iter().fold(0.0, f64::max)
}

impl Place {
    fn value(&self, field: &str, found: impl Display, problem: &str, allowed: &str) -> InputError {
        InputError::Value {
            file: self.file.clone(),
            field: field.to_owned(),
            found: found.to_string(),
            problem: problem.to_owned(),
            allowed: allowed.to_owned(),
        }
    }

    fn missing(&self, field: &str, expected: &str) -> InputError {
        InputError::Missing {
            file: self.file.clone(),
            field: field.to_owned(),
            expected: expected.to_owned(),
        }
    }

    fn unknown(&self, what: &str, found: &str, known: &[&str]) -> InputError {
        InputError::Unknown {
            file: self.file.clone(),
            what: what.to_owned(),
            found: found.to_owned(),
            known: known.iter().map(|&name| name.to_owned()).collect(),
        }
    }

    fn object<'a>(
        &self,
        value: &'a Value,
        what: &str,
    ) -> Result<&'a Map<String, Value>, InputError> {
        value.as_object().ok_or_else(|| InputError::Syntax {
            file: self.file.clone(),
            line: None,
            message: format!("{what} is {}, not an object", brief(value)),
        })
    }

    fn knows(
        &self,
        map: &Map<String, Value>,
        what: &str,
        known: &[&str],
    ) -> Result<(), InputError> {
        let stranger = map.keys().find(|key| !known.contains(&key.as_str()));
        stranger.map_or(Ok(()), |key| Err(self.unknown(what, key, known)))
    }

    fn n_cores(&self, graph: &Map<String, Value>, field: &str) -> Result<u32, InputError> {
        let found =
            graph.get(field).ok_or_else(|| self.missing(field, "give the number of cores"))?;
        let whole = found.as_u64().filter(|&n| n <= MOST_CORES).and_then(|n| u32::try_from(n).ok());
        whole.ok_or_else(|| {
            let allowed = format!("allowed are 0 to {MOST_CORES}");
            self.value(field, brief(found), "is no number of cores", &allowed)
        })
    }

    fn rule(&self, graph: &Map<String, Value>) -> Result<Rule, InputError> {
        let Some(found) = graph.get("rule") else { return Ok(Rule::OwnKind) };
        let rules = [Rule::Alone, Rule::OwnKind];
        let named = found.as_str().and_then(|name| rules.iter().find(|rule| rule.name() == name));
        named.copied().ok_or_else(|| {
            let found = found.as_str().map_or_else(|| brief(found), str::to_owned);
            self.unknown("rule", &found, &rules.map(Rule::name))
        })
    }

    fn list<'a>(
        &self,
        graph: &'a Map<String, Value>,
        field: &str,
    ) -> Result<&'a [Value], InputError> {
        let found = graph.get(field).ok_or_else(|| self.missing(field, "give a list"))?;
        let list = found.as_array().map(Vec::as_slice);
        list.ok_or_else(|| self.value(field, brief(found), "is no list", "give a list"))
    }

    fn operators<'a>(
        &self,
        graph: &'a Map<String, Value>,
    ) -> Result<Vec<Operator<'a>>, InputError> {
        let list = self.list(graph, "operators")?;
        if list.len() > MOST_OPERATORS {
            let allowed = format!("at most {MOST_OPERATORS} are read");
            return Err(self.value(
                "operators",
                format!("[{} of them]", list.len()),
                "is too long",
                &allowed,
            ));
        }
        list.iter().enumerate().map(|(at, operator)| self.operator(at, operator)).collect()
    }

    fn operator<'a>(&self, at: usize, value: &'a Value) -> Result<Operator<'a>, InputError> {
        let field = format!("operators[{at}]");
        let operator = self.object(value, &format!("`{field}`"))?;
        let id = operator
            .get("id")
            .ok_or_else(|| self.missing(&format!("{field}.id"), "give a name"))?;
        let id = id.as_str().ok_or_else(|| {
            self.value(&format!("{field}.id"), brief(id), "is no name", "give a string")
        })?;
        self.knows(
            operator,
            &format!("key of operator `{id}`:"),
            &["id", "core", "alone", "spread"],
        )?;
        let core = self.core(operator, id)?;
        let alone = match (operator.get("alone"), core) {
            (None, CoreKind::None) => None,
            _ => Some(self.time(operator, id, "alone")?),
        };
        let spread = match operator.get("spread") {
            None => alone,
            Some(_) => Some(self.time(operator, id, "spread")?),
        };
        let zero = Decimal::new(&0.into()).expect("zero is a decimal");
        let operator =
            Operator { id, core, alone: alone.unwrap_or(zero), spread: spread.unwrap_or(zero) };
        if core == CoreKind::None && (operator.alone != zero || operator.spread != zero) {
            let allowed = "give 0, or the core that it runs on";
            let problem = "is the time of an operator of core `none`";
            return Err(self.value(
                &format!("{id}.alone"),
                operator.alone.value(),
                problem,
                allowed,
            ));
        }
        Ok(operator)
    }

    fn core(&self, operator: &Map<String, Value>, id: &str) -> Result<CoreKind, InputError> {
        let kinds = [
            ("tensor", CoreKind::Tensor),
            ("vector", CoreKind::Vector),
            ("both", CoreKind::Both),
            ("network", CoreKind::Network),
            ("none", CoreKind::None),
        ];
        let field = format!("{id}.core");
        let found = operator
            .get("core")
            .ok_or_else(|| self.missing(&field, "give tensor, vector, both, network or none"))?;
        let named = found.as_str().and_then(|name| kinds.iter().find(|(kind, _)| *kind == name));
        named.map(|(_, kind)| *kind).ok_or_else(|| {
            let found = found.as_str().map_or_else(|| brief(found), str::to_owned);
            self.unknown(&format!("core of operator `{id}`:"), &found, &kinds.map(|(name, _)| name))
        })
    }

    fn time(
        &self,
        operator: &Map<String, Value>,
        id: &str,
        mode: &str,
    ) -> Result<Decimal, InputError> {
        let field = format!("{id}.{mode}");
        let found = operator
            .get(mode)
            .ok_or_else(|| self.missing(&field, "give its time on one core of its kind"))?;
        let time = found.as_number().and_then(Decimal::new);
        time.ok_or_else(|| {
            self.value(&field, brief(found), "is no time", "give a decimal that is not negative")
        })
    }

    /// The operators' names, and the index of each; cores that they need must be there.
    fn names<'a>(
        &self,
        operators: &[Operator<'a>],
        cores: Cores,
    ) -> Result<(Vec<String>, BTreeMap<&'a str, usize>), InputError> {
        let mut indices = BTreeMap::new();
        for (at, operator) in operators.iter().enumerate() {
            if indices.insert(operator.id, at).is_some() {
                let field = format!("operators[{at}].id");
                return Err(self.value(
                    &field,
                    operator.id,
                    "is taken",
                    "give every operator its own id",
                ));
            }
            let lacks = match operator.core {
                CoreKind::Tensor | CoreKind::Both if cores.tensor == 0 => Some("tensor_cores"),
                CoreKind::Vector | CoreKind::Both if cores.vector == 0 => Some("vector_cores"),
                _ => None,
            };
            if let Some(field) = lacks {
                let problem = format!("leaves operator `{}` without a core", operator.id);
                return Err(self.value(field, 0, &problem, "give at least 1"));
            }
        }
        Ok((operators.iter().map(|operator| operator.id.to_owned()).collect(), indices))
    }

    fn edges(
        &self,
        graph: &Map<String, Value>,
        indices: &BTreeMap<&str, usize>,
    ) -> Result<Vec<(usize, usize)>, InputError> {
        let list = if graph.contains_key("edges") { self.list(graph, "edges")? } else { &[] };
        let end = |at: usize, value: &Value| {
            let found = value.as_str().map_or_else(|| brief(value), str::to_owned);
            let known = value.as_str().and_then(|id| indices.get(id));
            known.copied().ok_or_else(|| {
                let likely: Vec<String> = indices.keys().map(|&id| id.to_owned()).collect();
                let allowed = super::closest(&found, &likely)
                    .map_or("give the id of an operator".into(), |id| {
                        format!("did you mean `{id}`?")
                    });
                self.value(&format!("edges[{at}]"), &found, "is no operator", &allowed)
            })
        };
        let edge = |(at, edge): (usize, &Value)| {
            if let Some([from, to]) = edge.as_array().map(Vec::as_slice) {
                return Ok((end(at, from)?, end(at, to)?));
            }
            let field = format!("edges[{at}]");
            Err(self.value(&field, brief(edge), "is no edge", "give [\"from\", \"to\"]"))
        };
        list.iter().enumerate().map(edge).collect()
    }

    fn tasks(&self, operators: &[Operator], scale: Scale) -> Result<Vec<Task>, InputError> {
        let longest = total(operators);
        let mut total = 0_u64;
        let mut tasks = Vec::with_capacity(operators.len());
        for operator in operators {
            // What is longer than any schedule need be had no say in the ticks, so that it is rounded
            // up: to the nearest, it could become as short as the other mode.
            let rounded = |time: Decimal| {
                if time.value() > longest { scale.ticks_up(time) } else { scale.ticks(time) }
            };
            let (alone, spread) = (rounded(operator.alone), rounded(operator.spread));
            // What is beyond all ticks is beyond all schedules too, if the other mode is not.
            let ticks = |mode: Option<u64>| mode.unwrap_or(LONGEST);
            let task = Task { core: operator.core, alone: ticks(alone), spread: ticks(spread) };
            total = total.saturating_add(task.fastest());
            if total >= LONGEST {
                let field = format!("{}.alone", operator.id);
                let problem = "has too many digits to keep the answer to 1e-12 of itself";
                let allowed = "give all times with fewer digits";
                return Err(self.value(&field, operator.alone.value(), problem, allowed));
            }
            tasks.push(task);
        }
        Ok(tasks)
    }
}

/// A value as an error shows it.
fn brief(value: &Value) -> String {
    match value {
        Value::Array(list) => format!("[{} of them]", list.len()),
        Value::Object(_) => "{…}".into(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRAPH: &str = r#"{"tensor_cores": 8, "vector_cores": 2, "rule": "alone",
        "operators": [{"id": "qkv", "core": "tensor", "alone": 0.52, "spread": 0.08},
                      {"id": "ln1", "core": "vector", "alone": 0.1, "spread": 0.07},
                      {"id": "view", "core": "none"}],
        "edges": [["ln1", "qkv"], ["qkv", "view"]]}"#;

    fn read(text: &str) -> Result<UserGraph, String> {
        let mut found = graphs(text, "g.json", false).map_err(|error| error.to_string())?;
        Ok(found.remove(0))
    }

    fn complaint(from: &str, to: &str) -> String {
        let text = GRAPH.replace(from, to);
        assert_ne!(text, GRAPH, "{from}");
        read(&text).unwrap_err()
    }

    #[test]
    fn a_graph_is_read_in_exact_ticks() {
        let graph = read(GRAPH).unwrap();
        assert_eq!(graph.names, ["ln1", "qkv", "view"]);
        assert_eq!(graph.order, [1, 0, 2]);
        let task = graph.problem.tasks.nodes()[1];
        assert_eq!(task, Task { core: CoreKind::Tensor, alone: 52, spread: 8 });
        assert_eq!(graph.scale.unscaled(52).to_bits(), 0.52_f64.to_bits());
    }

    #[test]
    fn lines_hold_graphs_bare_or_under_a_key() {
        let bare = GRAPH.replace('\n', " ");
        let text = format!("{bare}\n\n{{\"name\": \"x\", \"graph\": {bare}, \"other\": 1}}\n");
        let found = graphs(&text, "g.jsonl", true).unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!(found[1].name.as_deref(), Some("x"));
        assert_eq!(found[0].problem, found[1].problem);
        let broken = graphs(&format!("{bare}\n{{"), "g.jsonl", true).unwrap_err().to_string();
        assert!(broken.starts_with("g.jsonl, line 2: "), "{broken}");
    }

    #[test]
    fn each_mistake_is_named_with_its_place() {
        let cases = [
            ("[\"qkv\", \"view\"]", "[\"qkv\", \"ln1\"]", "run in a circle"),
            (
                "[\"ln1\", \"qkv\"]",
                "[\"ln\", \"qkv\"]",
                "`edges[0] = ln` is no operator; did you mean `ln1`?",
            ),
            ("\"id\": \"ln1\"", "\"id\": \"qkv\"", "`operators[1].id = qkv` is taken"),
            ("0.52", "-0.52", "`qkv.alone = -0.52` is no time"),
            ("0.52", "NaN", "`qkv.alone = \"NaN\"` is no time"),
            ("0.52", "-Infinity", "`qkv.alone = \"-Infinity\"` is no time"),
            ("0.52", "1e999", "number out of range"),
            ("0.52", "\"fast\"", "`qkv.alone = \"fast\"` is no time"),
            ("\"vector_cores\": 2", "\"vector_cores\": 0", "leaves operator `ln1` without a core"),
            ("\"vector_cores\": 2", "\"vector_cores\": 1.5", "is no number of cores"),
            ("\"vector_cores\": 2,", "", "`vector_cores` is missing"),
            ("\"vector_cores\": 2", "\"vectors\": 2", "unknown key `vectors`"),
            ("\"core\": \"vector\"", "\"core\": \"vectro\"", "did you mean `vector`?"),
            ("\"core\": \"none\"", "\"core\": \"none\", \"alone\": 3", "of core `none`"),
            (
                "\"rule\": \"alone\"",
                "\"rule\": \"alne\"",
                "unknown rule `alne` (did you mean `alone`?)",
            ),
            ("\"spread\": 0.08", "\"spred\": 0.08", "did you mean `spread`?"),
            ("[\"qkv\", \"view\"]", "[\"qkv\"]", "`edges[1] = [1 of them]` is no edge"),
        ];
        for (from, to, expected) in cases {
            let found = complaint(from, to);
            assert!(found.contains(expected), "{found}\n{expected}");
            assert!(found.starts_with("g.json: "), "{found}");
        }
        assert!(read("[]").unwrap_err().contains("not an object"));
    }

    #[test]
    fn a_mode_beyond_all_others_is_never_chosen_but_allowed() {
        let graph = read(&GRAPH.replace("0.52", "1e25")).unwrap();
        assert_eq!(graph.problem.tasks.nodes()[1].alone, LONGEST);
        assert_eq!(graph.problem.tasks.nodes()[1].spread, 8);
    }

    #[test]
    fn a_mode_that_takes_no_time_is_told_from_one_that_takes_some() {
        let task = |alone: &str, spread: &str| {
            let text = format!(
                r#"{{"tensor_cores": 2, "vector_cores": 0, "operators":
                [{{"id": "a", "core": "tensor", "alone": {alone}, "spread": {spread}}}]}}"#
            );
            read(&text).unwrap().problem.tasks.nodes()[0]
        };
        let core = CoreKind::Tensor;
        assert_eq!(task("0.005", "0"), Task { core, alone: 1, spread: 0 });
        assert_eq!(task("0", "0.005"), Task { core, alone: 0, spread: 1 });
        assert_eq!(task("1.4", "1"), Task { core, alone: 2, spread: 1 });
        assert_eq!(task("0", "0"), Task { core, alone: 0, spread: 0 });
    }

    #[test]
    fn what_cannot_be_kept_to_the_promised_digits_is_refused() {
        let operator = |i: u32| {
            let time = f64::from(i) / 7.0 + 1.0;
            format!("{{\"id\": \"{i}\", \"core\": \"tensor\", \"alone\": {time}}}")
        };
        let operators: Vec<String> = (0..3000).map(operator).collect();
        let text = format!(
            "{{\"tensor_cores\": 16000000, \"vector_cores\": 0, \"operators\": [{}]}}",
            operators.join(",")
        );
        let found = read(&text).unwrap_err();
        assert!(found.contains("give all times with fewer digits"), "{found}");
    }
}
