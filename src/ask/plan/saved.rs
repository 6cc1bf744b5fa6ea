//! The directory of a plan: what is written into it, and what `phaze check` asks of it.

use std::sync::atomic::AtomicUsize;

use serde_json::Value;

use super::PlanRequest;
use super::answer::Context;
use super::answer::advice;
use super::answer::curve_of;
use super::answer::room;
use super::beside::next_rows;
use super::beside::what_if_rows;
use crate::advise::Advice;
use crate::advise::Curve;
use crate::advise::Row;
use crate::certify::FalseClaim;
use crate::input::InputError;
use crate::input::place::ready;
use crate::input::source::no_files;
use crate::plan::Plan;
use crate::report::advice as report;
use crate::report::html;

/// The name of the file that holds the plan itself.
pub const PLAN: &str = "plan.json";
/// The name of the file that holds what it means.
pub const ADVICE: &str = "advice.json";
/// The name of its page.
pub const PAGE: &str = "plan.html";

/// The keys of `advice.json` that only a solver can tell again.
pub const SOLVED: [&str; 4] = ["fits", "next", "what_if", "curve"];

/// Every file of a plan with its text.
pub fn files(
    request: &PlanRequest,
    advice: &Advice,
    (next, what_if): (&[Row], &[Row]),
    curve: Option<&Curve>,
) -> Vec<(String, String)> {
    let mut value = report::value(advice, next, what_if);
    value["request"] = serde_json::to_value(request).expect("a request is plain data");
    value["curve"] = curve.map_or(Value::Null, report::curve_value);
    let mut plan = serde_json::to_string_pretty(&advice.plan).expect("a plan is plain data");
    plan.push('\n');
    let mut files = vec![
        (PLAN.to_owned(), plan),
        (PAGE.to_owned(), page(&advice.plan, &value)),
        (ADVICE.to_owned(), format!("{value:#}\n")),
    ];
    for file in advice.launch.iter().flatten() {
        files.push((file.name.to_owned(), file.text.clone()));
    }
    files
}

fn page(plan: &Plan, advice: &Value) -> String {
    let mut page = Vec::new();
    html::write_advice(plan, PLAN, advice, &mut page).expect("memory takes what is written");
    String::from_utf8(page).expect("a page is text")
}

/// Judges what stands beside a plan that holds: every file is what it must be. `file` answers the
/// text of a file of the directory. What only solvers can tell is taken as it stands, or told once
/// more on so many threads as `solvers` says.
///
/// # Errors
/// What cannot be read; the answer itself is a verdict.
pub fn judge(
    plan: &Plan,
    file: &dyn Fn(&str) -> Result<String, InputError>,
    solvers: Option<usize>,
) -> Result<Result<Vec<String>, FalseClaim>, InputError> {
    let claimed: Value = serde_json::from_str(&file(ADVICE)?).map_err(|error| {
        let message = format!("not what a plan means: {error}");
        InputError::Syntax { file: ADVICE.into(), line: Some(error.line()), message }
    })?;
    let request = claimed.get("request").cloned().unwrap_or(Value::Null);
    let request: PlanRequest = match serde_json::from_value(request) {
        Ok(request) => request,
        Err(error) => {
            let found = format!("no request: {error}");
            return Ok(Err(FalseClaim::new("request", "a request", found)));
        }
    };
    let Some(question) = &plan.question else {
        return Ok(Err(FalseClaim::new("question", "none", "a plan that holds its question")));
    };
    if question.model.name != request.model || question.hardware.name != request.hardware {
        let (said, found) = (request.command(), "another model or accelerator in plan.json");
        return Ok(Err(FalseClaim::new("request", said, found)));
    }
    let ready = ready(question.clone(), PLAN)?;
    let found = advice(&request, &ready, plan.clone())?;
    let mut expected = report::value(&found, &[], &[]);
    expected["request"] = serde_json::to_value(&request).expect("a request is plain data");
    let told = match solvers {
        None => claimed.clone(),
        Some(n_threads) => solved(&request, &found, &claimed, n_threads)?,
    };
    for key in SOLVED {
        expected[key] = told.get(key).cloned().unwrap_or(Value::Null);
    }
    if let Some(claim) = first_difference("", &claimed, &expected) {
        return Ok(Err(claim));
    }
    let mut checked = vec![ADVICE.to_owned()];
    let mut files = vec![(PAGE.to_owned(), page(plan, &expected))];
    files.extend(found.launch.iter().flatten().map(|one| (one.name.to_owned(), one.text.clone())));
    for (name, text) in files {
        if file(&name)? != text {
            let found = "not what this plan is written as";
            return Ok(Err(FalseClaim::new(name, "this text", found)));
        }
        checked.push(name);
    }
    Ok(Ok(checked))
}

/// What only solvers can tell, told by them once more.
fn solved(
    request: &PlanRequest,
    advice: &Advice,
    claimed: &Value,
    n_threads: usize,
) -> Result<Value, InputError> {
    let texts: Vec<(String, String)> = advice
        .plan
        .question
        .iter()
        .flat_map(|question| {
            let sources = [&question.model, &question.hardware];
            sources
                .into_iter()
                .filter_map(|source| Some((source.name.clone(), source.text.clone()?)))
        })
        .collect();
    let read = |path: &std::path::Path| {
        let known = texts.iter().find(|(name, _)| std::path::Path::new(name) == path);
        known.map_or_else(|| no_files(path), |(_, text)| Ok(text.clone()))
    };
    let context = Context::new(&read);
    let done = AtomicUsize::new(0);
    let with_room = Advice { room: room(request, &context)?, ..advice.clone() };
    let next = next_rows(request, advice, &context, (n_threads, &done))?;
    let what_if = what_if_rows(request, advice, &context, (n_threads, &done))?;
    let mut value = report::value(&with_room, &next, &what_if);
    let points = claimed["curve"]["points"].as_array();
    value["curve"] = match points {
        None => Value::Null,
        Some(points) => {
            let numbers = points.iter().filter_map(|point| point["devices"].as_u64());
            let numbers: Vec<u64> = numbers.collect();
            report::curve_value(&curve_of(request, &context, &numbers, (n_threads, &done))?)
        }
    };
    Ok(value)
}

/// Where two values first differ.
fn first_difference(path: &str, claimed: &Value, expected: &Value) -> Option<FalseClaim> {
    match (claimed, expected) {
        (Value::Object(one), Value::Object(other)) => {
            let keys: std::collections::BTreeSet<&String> =
                one.keys().chain(other.keys()).collect();
            keys.into_iter().find_map(|key| {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                let of = |map: &serde_json::Map<String, Value>| {
                    map.get(key).cloned().unwrap_or(Value::Null)
                };
                first_difference(&path, &of(one), &of(other))
            })
        }
        (one, other) if one == other => None,
        (one, other) => Some(FalseClaim::new(path, one, other)),
    }
}
