//! Grids of chips that are searched in parts: what is merged is what one search finds, and what does not belong
//! together, or was not found, is refused.

mod command;

use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::process::Output;

use serde_json::Value;

use command::phaze;

/// A few hundred chips: a search of seconds.
const ONE: &str = "[[model]]\nname = \"bert-large\"\n[job]\ndevices = 8\nglobal_batch = 64\n\
    micro_batches = [2]\n[search]\ntop = 2\n[space]\ntensor_cores = [6, 16, 40]\nwidth = [64, 128]\n\
    depth = 128\nvector_cores = [8, 64]\nvector_width = 128\nglb_mib = [16, 64]\n\
    glb_bytes_per_cycle = [2048, 8192]\nclock = [1.0, 1.6]\nstacks = [1, 3]\nlinks = [50, 1600]\n";

/// Two models.
const TWO: &str = "[[model]]\nname = \"bert-large\"\n[[model]]\nname = \"gpt2-xl\"\nweight = 2\n[job]\n\
    devices = 8\nglobal_batch = 64\nmicro_batches = [1]\ntensor_parallel = [1]\n[space]\n\
    tensor_cores = [16, 40]\nwidth = [64, 128]\ndepth = 128\nvector_cores = 64\nvector_width = 128\n\
    glb_mib = 64\nglb_bytes_per_cycle = 8192\nclock = [1.0, 1.6]\nstacks = [3, 6]\nlinks = [50, 1600]\n";

/// A folder of its own with a request in it.
struct Place(PathBuf);

impl Place {
    fn new(name: &str, request: &str) -> Self {
        let folder =
            std::env::temp_dir().join(format!("phaze-chip-shards-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("request.toml"), request).unwrap();
        Self(folder)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    fn whole(&self) -> Value {
        let found =
            phaze(&["search", &self.path("request.toml"), "--out", &self.path("whole")], "");
        assert!(found.status.success(), "{}", said(&found));
        self.answer("whole")
    }

    fn shard(&self, shard: &str, out: &str, more: &[&str]) -> Output {
        let (request, out) = (self.path("request.toml"), self.path(out));
        let words = ["search", &request, "--shard", shard, "--out", &out];
        phaze(&[&words[..], more].concat(), "")
    }

    /// All shards of a round, into folders of its name.
    fn shards(&self, of: usize, round: &str, more: &[&str]) -> Vec<String> {
        (1..=of)
            .map(|number| {
                let out = format!("{round}-{number}");
                done(&self.shard(&format!("{number}/{of}"), &out, more));
                assert!(!self.0.join(&out).join("journal.jsonl").exists());
                out
            })
            .collect()
    }

    fn merge(&self, shards: &[String], out: &str) -> Output {
        let shards: Vec<String> = shards.iter().map(|name| self.path(name)).collect();
        let out = self.path(out);
        let mut words = vec!["merge", "--force", "--out", &out];
        words.extend(shards.iter().map(String::as_str));
        phaze(&words, "")
    }

    /// An outcome without what says how it was computed.
    fn answer(&self, name: &str) -> Value {
        let text = fs::read_to_string(self.0.join(name).join("outcome.json")).unwrap();
        let mut outcome: Value = serde_json::from_str(&text).unwrap();
        let proof = outcome["proof"].as_object_mut().unwrap();
        for key in ["evaluations", "certificate_entries", "closed", "statement"] {
            assert!(proof.remove(key).is_some(), "{key}");
        }
        for near in outcome["near_winners"].as_array_mut().unwrap() {
            assert!(near.as_object_mut().unwrap().remove("certificate_entries").is_some());
        }
        outcome
    }

    fn check(&self, name: &str, deep: bool) {
        let outcome = self.path(&format!("{name}/outcome.json"));
        let words = if deep { vec!["check", &outcome, "--deep"] } else { vec!["check", &outcome] };
        done(&phaze(&words, ""));
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[track_caller]
fn done(output: &Output) {
    assert_eq!(output.status.code(), Some(0), "{}", said(output));
}

#[track_caller]
fn refused(output: &Output, expected: &str) {
    let message = said(output);
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.contains(expected), "{message}");
}

#[test]
fn shards_and_their_merge_have_the_answer_of_one_search() {
    let place = Place::new("answer", ONE);
    let whole = place.whole();
    let deaf = place.shards(3, "deaf", &[]);
    done(&place.merge(&deaf, "all"));
    assert_eq!(place.answer("all"), whole);
    place.check("all", true);
    // The same where they hear of each other, and where chips nearly as good are a round of their own.
    let share = place.path("share");
    let mut hearing = place.shards(3, "hearing", &["--share", &share]);
    let told = fs::read_dir(&share).unwrap().map(|entry| entry.unwrap().path());
    let told = told.filter(|path| path.extension().is_some_and(|of| of == "json"));
    assert_eq!(told.count(), 3, "every shard tells the others");
    let before: Vec<String> = hearing.iter().map(|name| place.path(name)).collect();
    let mut words = vec!["--share", &share, "--round", "near", "--after"];
    words.extend(before.iter().map(String::as_str));
    hearing.extend(place.shards(2, "near", &words));
    done(&place.merge(&hearing, "near"));
    assert_eq!(place.answer("near"), whole);
    place.check("near", false);
    // More parts than values of what is usually cut, some of them without a chip.
    let request = ["--fix", "tensor_cores=40", "--fix", "width=128"];
    let small: Vec<&str> =
        [&["--fix", "clock=1.6", "--fix", "vector_cores=64"], &request[..]].concat();
    let tiny = place.shards(40, "tiny", &small);
    done(&place.merge(&tiny, "tiny"));
    let file = place.path("request.toml");
    let out = place.path("tiny-whole");
    done(&phaze(&[&["search", &file, "--out", &out][..], &small].concat(), ""));
    assert_eq!(place.answer("tiny"), place.answer("tiny-whole"));
}

#[test]
fn a_killed_shard_of_chips_goes_on() {
    let place = Place::new("killed", ONE);
    let mut child = Command::new(env!("CARGO_BIN_EXE_phaze"));
    child.args(["search", &place.path("request.toml"), "--shard", "1/2", "--out"]);
    let mut child = child.arg(place.path("1")).spawn().unwrap();
    let journal = place.0.join("1/journal.jsonl");
    let has_begun = || fs::read_to_string(&journal).is_ok_and(|text| text.lines().count() > 4);
    while !has_begun() && !place.0.join("1/shard.jsonl").exists() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let _ = child.kill();
    child.wait().unwrap();
    let shards = ["1".to_owned(), "2".to_owned()];
    if !place.0.join("1/shard.jsonl").exists() {
        refused(&place.merge(&shards[..1], "all"), "this shard is unfinished");
        refused(&place.shard("1/2", "1", &[]), "--resume goes on with it");
    }
    for _ in 0..2 {
        done(&place.shard("1/2", "1", &["--resume"]));
    }
    refused(&place.shard("1/2", "1", &[]), "is done already");
    refused(&place.shard("2/2", "1", &["--resume"]), "is another shard");
    done(&place.shard("2/2", "2", &[]));
    done(&place.merge(&shards, "all"));
    assert_eq!(place.answer("all"), place.whole());
}

#[test]
fn several_models_over_chips_are_searched_in_rounds() {
    let place = Place::new("rounds", TWO);
    let whole = place.whole();
    refused(&place.shard("1/2", "1", &[]), "searched in rounds");
    refused(&place.shard("1/2", "1", &["--round", "together"]), "--after");
    let mut all = place.shards(2, "alone", &["--round", "alone"]);
    let before: Vec<String> = all.iter().map(|name| place.path(name)).collect();
    let after = ["--round", "together", "--after"];
    refused(&place.shard("1/2", "1", &[&after[..], &[&before[0]]].concat()), "2 is missing");
    let words = [&after[..], &[&before[0], &before[1]]].concat();
    let together = place.shards(2, "together", &words);
    refused(&place.merge(&together, "all"), "shards of --round alone are missing");
    all.extend(together);
    done(&place.merge(&all, "all"));
    assert_eq!(place.answer("all"), whole);
    place.check("all", false);
}

#[test]
fn shards_of_chips_that_do_not_belong_together_or_lie_are_refused() {
    let place = Place::new("odd", ONE);
    let all = place.shards(2, "part", &[]);
    refused(&place.merge(&all[..1], "all"), "of 2 shards, 2 is missing: search with --shard 2/2");
    let twice = [&all[..], &all[1..]].concat();
    refused(&place.merge(&twice, "all"), "shard 2/2 is given twice");
    done(&place.shard("2/2", "other", &["--tdp", "300"]));
    let other = [all[0].clone(), "other".to_owned()];
    refused(&place.merge(&other, "all"), "shard.jsonl: of another request than");
    refused(&place.shard("1/2", "near", &["--round", "near"]), "--after");
    refused(&place.shard("1/2", "alone", &["--round", "alone"]), "there is one model");
    let file = place.0.join("part-2/shard.jsonl");
    let intact = fs::read_to_string(&file).unwrap();
    fs::write(&file, &intact[..intact.len() - 7]).unwrap();
    refused(&place.merge(&all, "all"), "it is damaged or cut off at line");
    let is_box = |line: &str| line.starts_with("box\t");
    let first_box = content(intact.lines().find(|line| is_box(&content(line))).unwrap());
    let lie = |change: &dyn Fn(&str) -> Option<String>, expected: &str| {
        rewrite(&file, &intact, change);
        refused(&place.merge(&all, "all"), expected);
    };
    let replaced =
        |from: &'static str, to: &'static str| move |line: &str| Some(line.replacen(from, to, 1));
    lie(&replaced("\"program\":\"", "\"program\":\"0"), "was made by another build of phaze");
    lie(&replaced("\"chips\":", "\"chips\":9"), "chips where its part holds");
    lie(&|line| (line != first_box).then(|| line.to_owned()), "boxes");
    // A box that is somebody else's in place of its own, as many as before.
    let others = fs::read_to_string(place.0.join("part-1/shard.jsonl")).unwrap();
    let others = content(others.lines().find(|line| is_box(&content(line))).unwrap());
    lie(
        &|line| Some(if line == first_box { others.clone() } else { line.to_owned() }),
        "its boxes do not tile its part",
    );
    // Boxes that rest on a chip which nobody found.
    let rests = |line: &str| {
        let mut line = line.to_owned();
        for why in ["\"corner\",[", "\"beaten\",[", "\"bound\",["] {
            if let Some((before, after)) = line.split_once(why) {
                let rest = &after[after.find(',').unwrap()..];
                line = format!("{before}{why}1{rest}");
                break;
            }
        }
        Some(line)
    };
    lie(&rests, "rests on a better chip than any shard keeps");
    // Boxes that are closed by what nobody need evaluate.
    for why in ["over_budget", "nothing_fits"] {
        let closed = |line: &str| {
            let Some(rest) = line.strip_prefix("box\t") else { return Some(line.to_owned()) };
            let mut told: Value = serde_json::from_str(rest).unwrap();
            (told[1], told[2]) = (Value::from(why), Value::Null);
            Some(format!("box\t{told}"))
        };
        lie(&closed, "is not closed by what it says");
    }
    let raised = |line: &str| {
        let Some(rest) = line.strip_prefix("box\t") else { return Some(line.to_owned()) };
        let mut told: Value = serde_json::from_str(rest).unwrap();
        if told[1] == "bound" {
            told[2][0] = Value::from(told[2][0].as_u64().unwrap() * 2);
        }
        Some(format!("box\t{told}"))
    };
    assert!(intact.contains("\"bound\""), "no box is closed by a bound");
    lie(&raised, "is not closed by what it says");
    // Every way to train is said to take a tenth, by all who know of it.
    let faster = |line: &str| match line.split_once("\"time\":") {
        Some((before, after)) if line.contains("chosen") => {
            let digits = after.find(|c: char| !c.is_ascii_digit()).unwrap();
            Some(format!("{before}\"time\":{}{}", &after[..digits - 1], &after[digits..]))
        }
        _ => Some(line.to_owned()),
    };
    let first = place.0.join("part-1/shard.jsonl");
    let honest = fs::read_to_string(&first).unwrap();
    rewrite(&first, &honest, &faster);
    lie(&faster, "is not what is found");
    fs::write(&first, &honest).unwrap();
    fs::write(&file, &intact).unwrap();
    assert!(!place.0.join("all").exists(), "a refused merge writes nothing");
    done(&place.merge(&all, "all"));
}

#[test]
fn a_lie_in_the_shared_directory_is_found_by_the_merge() {
    let place = Place::new("share", ONE);
    let share = place.path("share");
    let _ = place.shards(1, "one", &["--share", &share]);
    // What the only one of one part told is told of another, and a thousand times as good.
    let board = place.0.join("share/together-1-of-1.json");
    let told = fs::read_to_string(&board).unwrap();
    let mut told: Value = serde_json::from_str(&told).unwrap();
    let kept = &mut told["walks"]["all models"];
    for chip in kept.as_array_mut().unwrap() {
        chip["value"][0] = Value::from(chip["value"][0].as_u64().unwrap() / 1000);
    }
    fs::write(&board, told.to_string()).unwrap();
    let all = place.shards(2, "two", &["--share", &share]);
    refused(&place.merge(&all, "all"), "is not what is found");
    // What is no chip at all is not listened to.
    told["walks"]["all models"][0]["point"][0] = Value::from(9999);
    told["walks"]["all models"][1]["found"][0]["strategy"]["data_parallel"] = Value::from(0);
    fs::remove_dir_all(&share).unwrap();
    fs::create_dir(&share).unwrap();
    fs::write(&board, told.to_string()).unwrap();
    let all = place.shards(2, "three", &["--share", &share]);
    done(&place.merge(&all, "all"));
}

/// A line behind its checksum.
fn content(line: &str) -> String {
    line.split_once(' ').unwrap().1.to_owned()
}

/// Writes a shard's file with every line changed or left out, behind new checksums.
fn rewrite(file: &Path, intact: &str, change: &dyn Fn(&str) -> Option<String>) {
    let lines = intact.lines().filter_map(|line| {
        let content = change(&content(line))?;
        let sum = content.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
            (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Some(format!("{sum:016x} {content}\n"))
    });
    fs::write(file, lines.collect::<String>()).unwrap();
}
