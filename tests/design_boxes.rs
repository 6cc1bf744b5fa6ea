//! The published space searched over boxes: the same answers as by the list of all designs, and boxes that
//! `certify` believes, but not when they lie.

use phaze::SearchAnswer;
use phaze::certify;
use phaze::certify::Tables;
use phaze::certify::deep;
use phaze::input::request::RequestFile;
use phaze::input::request::judged_by;
use phaze::input::saved::cells;
use serde_json::Value;

/// A grid with designs that are too small, too large, and cannot be built.
const SMALL: &str = "hbm_gib = [32, 64]\ntensor_cores = [1, 16, 56, 64, 256]\nwidth = [32, 64, 128]\n\
                     depth = [64, 100, 128]\nvector_cores = [1, 2, 16, 128]\nglb_mib = [8, 32, 128]\n";
const JOB: &str = "[job]\ndevices = 64\nmicro_batches = [4]\ntensor_parallel = [1, 2]\n";

fn request(model: &str, space: &str, search: &str) -> RequestFile {
    let entry = |name| format!("[[model]]\nname = \"{name}\"\nsequence = 512\n");
    let models = model.split('+').map(entry).collect::<Vec<_>>().concat();
    let text = format!("{models}{JOB}[space]\nname = \"published\"\n{space}[search]\n{search}");
    RequestFile::read(&text, "test").unwrap()
}

fn boxed(request: &RequestFile) -> SearchAnswer {
    let found = phaze::search(request).unwrap();
    assert!(found.boxes.is_some());
    found
}

fn listed(request: &RequestFile) -> SearchAnswer {
    let mut request = request.clone();
    request.search.table = Some(true);
    let found = phaze::search(&request).unwrap();
    assert!(found.boxes.is_none());
    found
}

/// What is told of an answer, but for the rows of designs.
fn told(answer: &SearchAnswer) -> Value {
    fn without_rows(value: &mut Value) {
        match value {
            Value::Object(keys) => {
                keys.remove("index");
                keys.values_mut().for_each(without_rows);
            }
            Value::Array(items) => items.iter_mut().for_each(without_rows),
            _ => {}
        }
    }
    let mut told = serde_json::to_value(&answer.outcome).unwrap();
    without_rows(&mut told);
    told
}

#[test]
fn boxes_and_the_list_give_the_same_answer() {
    let cases = [
        ("bert-large", SMALL.to_owned(), ""),
        ("bert-large", format!("{SMALL}max_area_mm2 = 100\nmin_area_fraction = 0.9\n"), "top = 5\n"),
        ("bert-large", format!("{SMALL}vector_width = [16, 256]\n"), "objective = \"throughput-per-area\"\n"),
        ("llama2-7b", format!("{SMALL}glb_bytes_per_cycle = [512, 4096]\n"), "top = 3\n"),
        ("bert-large", SMALL.replace("[1, 16, 56, 64, 256]", "[1, 64]"), "objective = \"energy-per-token\"\n"),
        ("bert-large", SMALL.replace("[1, 16, 56, 64, 256]", "[16, 64]"), "power_cap_w = 150.0\n"),
        ("bert-large+llama2-7b", SMALL.to_owned(), "combine = \"min-regret\"\n"),
        // One point, which is as good as itself.
        ("bert-large", "hbm_gib = 32\ntensor_cores = 8\nwidth = 128\ndepth = 128\nvector_cores = 2\nglb_mib = 32\n".into(), ""),
        // Designs that no operator of a small model tells apart: ties.
        ("bert-large", "hbm_gib = [32, 64]\ntensor_cores = [1, 2]\nwidth = [2, 4]\ndepth = [2, 4]\n\
           vector_cores = [1024, 2048, 4096]\nglb_mib = [64, 128]\nmin_area_fraction = 0\n".into(), "top = 4\n"),
    ];
    for (model, space, search) in cases {
        let request = request(model, &space, search);
        let (by_boxes, by_list) = (boxed(&request), listed(&request));
        let [boxes, list] = [&by_boxes, &by_list].map(told);
        for key in ["models", "winner", "best_by_hbm", "baselines", "limited_by", "sensitivities"] {
            assert_eq!(boxes[key], list[key], "{model}: {key} of\n{space}{search}");
        }
        let top = usize::try_from(request.search.top.unwrap_or(1)).unwrap();
        let best = |answer: &Value| -> Vec<Value> {
            answer["top"]["entries"].as_array().unwrap().iter().take(top).cloned().collect()
        };
        assert_eq!(best(&boxes), best(&list), "{model}: the best of\n{space}{search}");
        for (boxes, list) in by_boxes.outcome.proof.by_hbm.iter().zip(&by_list.outcome.proof.by_hbm)
        {
            let count = |row: &phaze::search::ProofByHbm| {
                row.evaluated + row.pruned + row.beaten + row.infeasible + row.open
            };
            assert_eq!(count(boxes), count(list));
            assert!((boxes.best_value, boxes.gap) == (list.best_value, list.gap));
        }
        assert_eq!(by_boxes.outcome.proof.designs, by_list.outcome.proof.designs);
        assert!(by_boxes.designs.lines().count() <= by_list.designs.lines().count());
        let verified = phaze::check(&by_boxes).unwrap();
        let verified = verified.unwrap_or_else(|lie| panic!("{model}: {lie}\n{space}{search}"));
        assert!(verified.boxes > 0 && verified.plans > 0);
        phaze::check(&by_list).unwrap().unwrap_or_else(|lie| panic!("{model}: {lie}"));
    }
}

#[test]
fn where_nothing_fits_boxes_say_so() {
    let mut request = request("gpt3-175b", SMALL, "");
    request.job.devices = Some(1);
    let (by_boxes, by_list) = (boxed(&request), listed(&request));
    assert_eq!(by_boxes.outcome.infeasible_reason, by_list.outcome.infeasible_reason);
    assert!(by_boxes.outcome.winner.is_none() && by_boxes.outcome.infeasible_reason.is_some());
    assert_eq!(by_boxes.outcome.proof.statement, by_list.outcome.proof.statement);
    phaze::check(&by_boxes).unwrap().unwrap();
}

/// Which command rejects an answer, and why.
#[derive(Debug, PartialEq, Eq)]
enum Rejected {
    Check(String),
    Deep(String),
}

fn rejected(answer: &SearchAnswer) -> Option<Rejected> {
    let (question, models) = judged_by(answer.outcome.request.clone(), "test").unwrap();
    let designs = cells("designs.csv", &answer.designs).unwrap();
    let boxes = cells("boxes.csv", answer.boxes.as_deref().unwrap()).unwrap();
    let tables = Tables { designs: &designs, boxes: &boxes };
    let judged = question
        .listing(&designs)
        .and_then(|question| Ok((certify::check(&question, &answer.outcome, tables)?, question)));
    let (judged, question) = match judged {
        Ok(judged) => judged,
        Err(lie) => return Some(Rejected::Check(lie.to_string())),
    };
    let read = |text: &str| cells("designs.csv", text).unwrap();
    let solved = deep::solve(&question, models, &answer.outcome, &judged, &(), read);
    let solved = match solved {
        Ok(solved) => solved,
        Err(lie) => return Some(Rejected::Deep(lie.to_string())),
    };
    let compared = solved.compare(&answer.outcome, &designs);
    compared.err().map(|lie| Rejected::Deep(lie.to_string()))
}

/// The lines of boxes.csv with a lie in them.
type Lie = fn(&mut Vec<Vec<String>>);

fn first(rows: &[Vec<String>], why: &str) -> usize {
    rows.iter().position(|row| row[1] == why).unwrap_or_else(|| panic!("no box is {why}"))
}

fn with(answer: &SearchAnswer, lie: Lie) -> SearchAnswer {
    let mut rows = cells("boxes.csv", answer.boxes.as_deref().unwrap()).unwrap();
    let honest = rows.clone();
    lie(&mut rows);
    assert_ne!(honest, rows, "a lie changes something");
    let text: String = rows.iter().map(|row| row.join(",") + "\n").collect();
    SearchAnswer { boxes: Some(text), ..answer.clone() }
}

fn times(cell: &mut String, part: f64) {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "values of a test")]
    let value = (cell.parse::<u128>().unwrap() as f64 * part) as u128;
    *cell = value.to_string();
}

#[test]
fn boxes_that_lie_are_rejected() {
    let lies: [(&str, &str, Lie); 18] = [
        ("a missing box", "no box holds", |rows| drop(rows.pop())),
        ("a box told twice", "several boxes hold", |rows| rows.push(rows[1].clone())),
        ("a box of another size of memory", "no box holds", |rows| {
            rows[1][0] = "objective with 48 GiB".into();
        }),
        ("a box beside all claims", "no claim", |rows| {
            rows.push(rows[1].clone());
            rows.last_mut().unwrap()[0] = "objective with 48 GiB".into();
        }),
        ("a bound that is better than it is", "value", |rows| {
            let at = first(rows, "bound");
            times(&mut rows[at][2], 0.99);
        }),
        ("a bound that is worse than it is", "value", |rows| {
            let at = first(rows, "bound");
            times(&mut rows[at][2], 1.01);
        }),
        ("a bound with another area", "tie", |rows| {
            let at = first(rows, "bound");
            times(&mut rows[at][3], 1.01);
        }),
        ("a bound that stands somewhere", "place", |rows| {
            let at = first(rows, "bound");
            rows[at][4] = "7".into();
        }),
        ("a box within the limit called too large", "over_budget", |rows| {
            let at = first(rows, "bound");
            rows[at][1] = "over_budget".into();
            rows[at][2..5].fill(String::new());
        }),
        ("a box that is too large called bounded", "over_budget", |rows| {
            let bound = rows[first(rows, "bound")].clone();
            let at = first(rows, "over_budget");
            rows[at][1..5].clone_from_slice(&bound[1..5]);
        }),
        ("a box on which something fits called empty", "nothing_fits", |rows| {
            let at = first(rows, "bound");
            rows[at][1] = "nothing_fits".into();
            rows[at][2..5].fill(String::new());
        }),
        ("a design on which something fits called empty", "possible", |rows| {
            let at = first(rows, "beaten");
            rows[at][1] = "nothing".into();
            rows[at][2..5].fill(String::new());
        }),
        ("a box closed by a corner", "no reason", |rows| {
            let at = first(rows, "bound");
            rows[at][1] = "corner".into();
        }),
        ("the winner called beaten", "", |rows| {
            let at = first(rows, "evaluated");
            rows[at][1] = "beaten".into();
        }),
        ("a better value of an evaluated design", "value", |rows| {
            let at = first(rows, "evaluated");
            times(&mut rows[at][2], 0.9);
        }),
        ("a box that is left open", "nothing stopped", |rows| {
            let at = first(rows, "bound");
            rows[at][1] = "open".into();
        }),
        ("another reason", "no reason", |rows| rows[1][1] = "because".into()),
        ("another heading", "heading", |rows| rows[0][5] = "cores_from".into()),
    ];
    let space = format!("{SMALL}max_area_mm2 = 150\n");
    let answer = boxed(&request("bert-large", &space, ""));
    assert_eq!(rejected(&answer), None, "an honest answer is refused");
    for (lie, reason, tell) in lies {
        match rejected(&with(&answer, tell)) {
            Some(Rejected::Check(why)) => assert!(why.contains(reason), "{lie}: {why}"),
            other => panic!("{lie}: {other:?}"),
        }
    }
}

#[test]
fn tables_that_do_not_agree_with_boxes_are_rejected() {
    let answer = boxed(&request("bert-large", SMALL, ""));
    let rows = cells("designs.csv", &answer.designs).unwrap();
    let winner = answer.outcome.winner.as_ref().unwrap().design.index.unwrap();
    // Cells with a comma are quoted.
    let text = |rows: &[Vec<String>]| -> String {
        let quoted = |cell: &String| {
            if cell.contains(',') { format!("\"{cell}\"") } else { cell.clone() }
        };
        rows.iter().map(|row| row.iter().map(quoted).collect::<Vec<_>>().join(",") + "\n").collect()
    };
    let tell = |rows: &[Vec<String>]| {
        let designs = text(rows);
        rejected(&SearchAnswer { designs, ..answer.clone() })
    };
    assert_eq!(tell(&rows), None);
    let mut without = rows.clone();
    without.remove(1 + winner);
    assert!(matches!(tell(&without), Some(Rejected::Check(_))), "the winner's row is missing");
    let mut twice = rows.clone();
    twice.insert(1, rows[1].clone());
    assert!(matches!(tell(&twice), Some(Rejected::Check(_))), "a row is told twice");
    let mut other = rows.clone();
    other[1][1] = "3".into();
    assert!(matches!(tell(&other), Some(Rejected::Check(_))), "a design of another space");
    // Another winner: all that is evaluated in the table is believed only if boxes say so.
    let mut swapped = answer.clone();
    swapped.outcome.winner = swapped.outcome.top.entries.last().cloned();
    assert!(matches!(rejected(&swapped), Some(Rejected::Check(_))), "another winner");
    let mut counted = answer.clone();
    counted.outcome.proof.by_hbm[0].pruned += 1;
    assert!(matches!(rejected(&counted), Some(Rejected::Check(_))), "another number of designs");
}

#[test]
fn what_a_model_alone_is_worth_is_found_out_by_the_solvers() {
    let space = SMALL.replace("[1, 16, 56, 64, 256]", "[16, 64]");
    let answer = boxed(&request("bert-large+llama2-7b", &space, ""));
    assert_eq!(rejected(&answer), None, "an honest answer is refused");
    let of_model = |row: &Vec<String>| row[0].starts_with("model 1") && row[1] == "evaluated";
    let value = |row: &Vec<String>| row[2].parse::<u128>().unwrap();
    let mut rows = cells("boxes.csv", answer.boxes.as_deref().unwrap()).unwrap();
    let best = rows.iter().filter(|row| of_model(row)).map(value).min().unwrap();
    // Nothing else is said of a design that is not the best for a model alone.
    let worse = rows.iter_mut().find(|row| of_model(row) && value(row) > best).unwrap();
    times(&mut worse[2], 1.001);
    let lie = |rows: &[Vec<String>]| {
        let text: String = rows.iter().map(|row| row.join(",") + "\n").collect();
        rejected(&SearchAnswer { boxes: Some(text), ..answer.clone() })
    };
    assert!(matches!(lie(&rows), Some(Rejected::Deep(_))), "{:?}", lie(&rows));
    // The best itself is what ratios are taken to.
    let at = rows.iter().position(|row| of_model(row) && value(row) == best).unwrap();
    times(&mut rows[at][2], 0.9);
    assert!(matches!(lie(&rows), Some(Rejected::Check(_))), "{:?}", lie(&rows));
}
