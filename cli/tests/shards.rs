//! Spaces that are searched in parts: what is merged is what one search finds, and what does not
//! belong together is refused.

mod command;

use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::process::Output;

use command::phaze;

/// One model: a search of a second.
const ONE: &str = "[[model]]\nname = \"bert-large\"\n[job]\nmicro_batches = [2]\n[space]\n\
                   hbm_gib = [32, 64]\ntensor_cores = [32, 64, 128]\nwidth = [64, 128]\ndepth = 64\n";

/// Two models, of which the best three and the front are wanted.
const TWO: &str = "[[model]]\nname = \"bert-large\"\n[[model]]\nname = \"gpt2-xl\"\nweight = 2\n[job]\n\
                   micro_batches = [2]\ntensor_parallel = [1]\n[search]\ntop = 3\npareto = true\n[space]\n\
                   hbm_gib = [32]\ntensor_cores = [64, 128]\nwidth = [64]\ndepth = 64\nglb_mib = [32, 64]\n";

/// A folder of its own with a request in it.
struct Place(PathBuf);

impl Place {
    fn new(name: &str, request: &str) -> Self {
        let folder =
            std::env::temp_dir().join(format!("phaze-shards-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("request.toml"), request).unwrap();
        Self(folder)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    fn whole(&self) {
        let (request, out) = (self.path("request.toml"), self.path("whole"));
        // Parts of the published space are parts of its list.
        let found = phaze(&["search", &request, "--table", "--out", &out], "");
        assert!(found.status.success(), "{}", said(&found));
    }

    fn shard(&self, shard: &str, out: &str, more: &[&str]) -> Output {
        let (request, out) = (self.path("request.toml"), self.path(out));
        let words = ["search", &request, "--shard", shard, "--out", &out];
        phaze(&[&words[..], more].concat(), "")
    }

    fn merge(&self, shards: &[&str], out: &str) -> Output {
        let shards: Vec<String> = shards.iter().map(|name| self.path(name)).collect();
        let out = self.path(out);
        let mut words = vec!["merge", "--out", &out];
        words.extend(shards.iter().map(String::as_str));
        phaze(&words, "")
    }

    /// The files of a result.
    fn result(&self, name: &str) -> [Vec<u8>; 2] {
        ["outcome.json", "designs.csv"].map(|file| fs::read(self.0.join(name).join(file)).unwrap())
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
fn shards_and_their_merge_are_one_search_to_the_last_byte() {
    let place = Place::new("bytes", ONE);
    place.whole();
    let share = place.path("share");
    for (name, more) in [("deaf", &[][..]), ("hearing", &["--share", &share])] {
        let outs: Vec<String> = (1..=3).map(|number| format!("{name}-{number}")).collect();
        for (number, out) in (1..=3).zip(&outs) {
            done(&place.shard(&format!("{number}/3"), out, more));
            assert!(!place.0.join(out).join("journal.jsonl").exists());
        }
        let shards: Vec<&str> = outs.iter().map(String::as_str).collect();
        done(&place.merge(&shards, name));
        assert!(place.result(name) == place.result("whole"), "{name}: the merged answer differs");
    }
    assert!(fs::read_dir(&share).unwrap().count() == 3, "every shard tells the others");
    let outcome = place.path("hearing/outcome.json");
    done(&phaze(&["check", &outcome], ""));
}

#[test]
fn a_killed_shard_goes_on_and_a_finished_one_is_taken_as_it_is() {
    let place = Place::new("killed", ONE);
    place.whole();
    let mut child = Command::new(env!("CARGO_BIN_EXE_phaze"));
    child.args(["search", &place.path("request.toml"), "--shard", "1/2", "--out"]);
    let mut child = child.arg(place.path("1")).spawn().unwrap();
    while !place.0.join("1/journal.jsonl").exists() && !place.0.join("1/shard.jsonl").exists() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let _ = child.kill();
    child.wait().unwrap();
    if !place.0.join("1/shard.jsonl").exists() {
        refused(&place.merge(&["1"], "all"), "this shard is unfinished");
        refused(&place.shard("1/2", "1", &[]), "--resume goes on with it");
    }
    for _ in 0..2 {
        done(&place.shard("1/2", "1", &["--resume"]));
    }
    refused(&place.shard("1/2", "1", &[]), "is done already");
    refused(&place.shard("2/2", "1", &["--resume"]), "is another shard");
    done(&place.shard("2/2", "2", &[]));
    done(&place.merge(&["1", "2"], "all"));
    assert!(place.result("all") == place.result("whole"), "the merged answer differs");
}

#[test]
fn several_models_are_searched_in_two_rounds() {
    let place = Place::new("rounds", TWO);
    place.whole();
    refused(&place.shard("1/2", "alone-1", &[]), "two rounds");
    refused(&place.shard("1/2", "1", &["--round", "together"]), "--after");
    let alone = ["alone-1", "alone-2"];
    for (shard, out) in [("1/2", alone[0]), ("2/2", alone[1])] {
        done(&place.shard(shard, out, &["--round", "alone"]));
    }
    let [first, second] = alone.map(|name| place.path(name));
    let half = place.shard("1/2", "1", &["--round", "together", "--after", &first]);
    refused(&half, "of 2 shards, 2 is missing");
    for (shard, out) in [("1/2", "1"), ("2/2", "2")] {
        done(&place.shard(shard, out, &["--round", "together", "--after", &first, &second]));
    }
    refused(&place.merge(&["1", "2"], "all"), "shards of --round alone are missing");
    done(&place.merge(&["alone-1", "alone-2", "1", "2"], "all"));
    assert!(place.result("all") == place.result("whole"), "the merged answer differs");
}

#[test]
fn shards_that_do_not_belong_together_are_named() {
    let place = Place::new("odd", ONE);
    for number in 1..=3 {
        done(&place.shard(&format!("{number}/3"), &number.to_string(), &[]));
    }
    refused(&place.merge(&["1", "3"], "all"), "of 3 shards, 2 is missing: search with --shard 2/3");
    refused(&place.merge(&["1", "2", "3", "3"], "all"), "shard 3/3 is given twice");
    refused(&place.merge(&["1", "2", "4"], "all"), "4: cannot be read");
    fs::create_dir(place.0.join("4")).unwrap();
    refused(&place.merge(&["1", "2", "4"], "all"), "no shard was searched into this directory");
    done(&place.shard("3/3", "other", &["--devices", "512"]));
    refused(&place.merge(&["1", "2", "other"], "all"), "other/shard.jsonl: of another request");
    done(&place.shard("3/4", "finer", &[]));
    refused(&place.merge(&["1", "2", "finer"], "all"), "one of 3 parts");
    let file = place.0.join("3/shard.jsonl");
    let intact = fs::read_to_string(&file).unwrap();
    fs::write(&file, &intact[..intact.len() - 7]).unwrap();
    refused(&place.merge(&["1", "2", "3"], "all"), "it is damaged or cut off at line");
    rewrite(&file, &intact, |line| line.replacen("\"program\":\"", "\"program\":\"0", 1));
    refused(&place.merge(&["1", "2", "3"], "all"), "shard 3/3 was made by another build of phaze");
    rewrite(&file, &intact, |line| line.replacen("\"designs\":", "\"designs\":9", 1));
    refused(&place.merge(&["1", "2", "3"], "all"), "designs where its part holds");
    assert!(!place.0.join("all").exists(), "a refused merge writes nothing");
}

#[test]
fn a_shard_that_lies_about_the_best_is_found_out() {
    let place = Place::new("lies", ONE);
    for number in 1..=2 {
        done(&place.shard(&format!("{number}/2"), &number.to_string(), &[]));
    }
    for number in 1..=2 {
        let file = place.0.join(format!("{number}/shard.jsonl"));
        let intact = fs::read_to_string(&file).unwrap();
        // Every way to train is said to take a thousandth.
        rewrite(&file, &intact, |line| match line.split_once("\"time\":") {
            Some((before, after)) if line.contains("chosen") => {
                let digits = after.find(|c: char| !c.is_ascii_digit()).unwrap();
                format!("{before}\"time\":{}{}", &after[..digits - 3], &after[digits..])
            }
            _ => line.to_owned(),
        });
        refused(&place.merge(&["1", "2"], "all"), "is not what is found");
        fs::write(&file, intact).unwrap();
    }
    done(&place.merge(&["1", "2"], "all"));
}

#[test]
fn the_jobs_of_a_cluster_are_written_and_bad_ones_refused() {
    let place = Place::new("jobs", TWO);
    let (request, out) = (place.path("request.toml"), place.path("all"));
    let slurm = |more: &[&str]| {
        let words = ["slurm", &request, "--out", &out, "--shards"];
        phaze(&[&words[..], more].concat(), "")
    };
    for (more, expected) in [
        (&["0"][..], "0"),
        (&["100001"], "100001"),
        (&["4", "--partition", "a b"], "--partition: `a b` cannot stand in a script"),
    ] {
        refused(&slurm(more), expected);
    }
    assert!(!Path::new(&out).exists());
    let printed = slurm(&["4", "--print", "kubernetes"]);
    assert!(String::from_utf8(printed.stdout).unwrap().contains("completionMode: Indexed"));
    done(&slurm(&["4", "--partition", "cpu"]));
    for name in ["alone.sbatch", "shards.sbatch", "merge.sbatch", "submit.sh"] {
        let script = place.path(&format!("all/{name}"));
        let read = Command::new("sh").args(["-n", &script]).status().unwrap();
        assert!(read.success(), "{name} is no script");
    }
    fs::write(&request, "[[model]]\nname = \"gpt2-xl\"\n").unwrap();
    done(&slurm(&["4"]));
    assert!(Path::new(&out).join("near.sbatch").exists(), "chips nearly as good are an array");
    fs::write(&request, "[[model]]\nname = \"gpt5\"\n[space]\nname = \"published\"\n").unwrap();
    refused(&slurm(&["4"]), "unknown model `gpt5`");
}

/// Writes a shard's file with every line changed, behind new checksums.
fn rewrite(file: &Path, intact: &str, change: impl Fn(&str) -> String) {
    let lines = intact.lines().map(|line| {
        let content = change(line.split_once(' ').unwrap().1);
        let sum = content.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
            (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        format!("{sum:016x} {content}\n")
    });
    fs::write(file, lines.collect::<String>()).unwrap();
}

#[test]
#[cfg(unix)]
fn jobs_that_sbatch_takes_only_in_part_are_taken_back() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new("submit", ONE);
    let (request, out) = (place.path("request.toml"), place.path("jobs"));
    done(&phaze(&["slurm", &request, "--shards", "2", "--out", &out], ""));
    let engine = place.0.join("engine");
    fs::create_dir(&engine).unwrap();
    let told = engine.join("told").display().to_string();
    for (name, text) in [
        ("sbatch", format!("echo job >> '{told}'; [ \"$(wc -l < '{told}')\" -lt 2 ] && echo 101")),
        ("scancel", format!("echo \"cancelled $*\" >> '{told}'")),
    ] {
        let program = engine.join(name);
        fs::write(&program, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = format!("{}:{}", engine.display(), std::env::var("PATH").unwrap());
    let script = Path::new(&out).join("submit.sh");
    let ended = Command::new("sh").arg(script).env("PATH", path).output().unwrap();
    assert_eq!(ended.status.code(), Some(1), "{}", said(&ended));
    assert_eq!(fs::read_to_string(&told).unwrap(), "job\njob\ncancelled 101\n");
}
