//! The scripts themselves: text, and nothing else.

use std::path::Path;
use std::path::PathBuf;

use clap::Args as ClapArgs;

use crate::Refusal;
use phaze::store::files;

/// The script that hands all jobs to sbatch.
pub const SUBMIT: &str = "submit.sh";

/// How often a task is started again after it was killed.
const RESTARTS: u32 = 5;

/// What is asked of the cluster for each task.
#[derive(ClapArgs, Clone, Debug)]
#[command(next_help_heading = "Resources of a task")]
pub struct Resources {
    /// The partition of the cluster [default: the cluster's]
    #[arg(long, value_name = "NAME")]
    pub partition: Option<String>,
    /// The account that is charged [default: the cluster's]
    #[arg(long, value_name = "NAME")]
    pub account: Option<String>,
    /// The longest that a task may take, as 4:00:00 [default: the cluster's]; tasks that are
    /// submitted again go on where they were
    #[arg(long, value_name = "TIME")]
    pub time: Option<String>,
    /// Memory of a task
    #[arg(long, value_name = "SIZE", default_value = "2G")]
    pub mem: String,
    /// Cores of a task
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub cpus: u32,
    /// How many tasks run at the same time at the most [default: as many as the cluster lets]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub at_once: Option<u32>,
}

impl Resources {
    /// Whether every word can stand in a line of a script.
    pub fn validate(&self) -> Result<(), Refusal> {
        let words = [
            ("--partition", self.partition.as_deref()),
            ("--account", self.account.as_deref()),
            ("--time", self.time.as_deref()),
            ("--mem", Some(self.mem.as_str())),
        ];
        let plain = |c: char| c.is_alphanumeric() || "-_.,:+@".contains(c);
        for (option, word) in words {
            if let Some(word) = word.filter(|word| word.is_empty() || !word.chars().all(plain)) {
                return Err(Refusal::Options(format!(
                    "{option}: `{word}` cannot stand in a script; letters, digits and -_.,:+@ can"
                )));
            }
        }
        let digits = self.mem.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let unit = self.mem[digits.len()..].to_ascii_uppercase();
        let known = ["", "K", "M", "G", "T", "KB", "MB", "GB", "TB"].contains(&unit.as_str());
        if !known || !digits.parse::<u64>().is_ok_and(|number| number > 0) {
            return Err(Refusal::Options(format!(
                "--mem: `{}` is no size; give a whole number with K, M, G or T, as 2G",
                self.mem
            )));
        }
        Ok(())
    }

    /// The head of a script, for an array of `tasks` where there are several.
    fn head(&self, name: &str, tasks: Option<u32>, place: &Place) -> String {
        let mut lines = vec!["#!/bin/sh".to_owned()];
        let mut ask = |line: String| lines.push(format!("#SBATCH --{line}"));
        ask(format!("job-name=phaze-{name}"));
        if let Some(tasks) = tasks {
            let most = self.at_once.map(|most| format!("%{most}")).unwrap_or_default();
            ask(format!("array=1-{tasks}{most}"));
        }
        let named =
            [("partition", &self.partition), ("account", &self.account), ("time", &self.time)];
        for (key, value) in named {
            if let Some(value) = value {
                ask(format!("{key}={value}"));
            }
        }
        ask(format!("cpus-per-task={}", self.cpus));
        ask(format!("mem={}", self.mem));
        // After a lost node or a preemption Slurm starts the task again; its log goes on.
        ask("requeue".into());
        ask("open-mode=append".into());
        let number = if tasks.is_some() { "-%a" } else { "" };
        let log = place.out.join("log").display().to_string().replace('%', "%%");
        ask(format!("output=\"{log}/{name}{number}.log\""));
        lines.join("\n") + "\n"
    }
}

/// Where the jobs run, which program they start, and where they write; all absolute.
#[derive(Clone, Debug)]
pub struct Place {
    pub folder: PathBuf,
    pub program: PathBuf,
    pub out: PathBuf,
}

impl Place {
    /// This folder and this program.
    pub fn here(out: &Path) -> Result<Self, Refusal> {
        let unknown = |what: &str, reason: &dyn ToString| {
            Refusal::Options(format!("{what} is not known: {}", reason.to_string()))
        };
        let folder = std::env::current_dir().map_err(|e| unknown("the current folder", &e))?;
        let program = std::env::current_exe().map_err(|e| unknown("this program's place", &e))?;
        let place = Self { out: folder.join(out), folder, program };
        for path in [&place.folder, &place.program, &place.out] {
            let text = path.to_str();
            if text.is_none_or(|text| text.contains(['"', '\\']) || text.contains(char::is_control))
            {
                return Err(Refusal::Options(format!(
                    "{}: this path cannot stand in a script",
                    files::name(path)
                )));
            }
        }
        Ok(place)
    }

    /// The program, as a shell reads it.
    pub fn program(&self) -> String {
        quoted(&self.program)
    }

    /// A folder or file among the results, as a shell reads it.
    pub fn of(&self, name: &str) -> String {
        quoted(&self.out.join(name))
    }
}

/// A path as a shell reads it.
pub fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// All jobs of a search in parts.
pub struct Jobs<'a> {
    pub request: PathBuf,
    pub shards: u32,
    /// Whether each model is searched alone first.
    pub two_rounds: bool,
    /// Whether chips nearly as good are searched last.
    pub near: bool,
    pub resources: &'a Resources,
    pub place: Place,
}

impl Jobs<'_> {
    /// Every script with its name.
    pub fn scripts(&self) -> Vec<(&'static str, String)> {
        let mut scripts = Vec::new();
        let mut chain = Vec::new();
        let mut array = |name: &'static str, step: &'static str, round| {
            let command = self.search("\"$SLURM_ARRAY_TASK_ID\"", round);
            scripts
                .push((name, array_job(self.resources, step, self.shards, &self.place, &command)));
            chain.push(name);
        };
        if self.two_rounds {
            array("alone.sbatch", "alone", Some("alone"));
            array("shards.sbatch", "shards", Some("together"));
        } else {
            array("shards.sbatch", "shards", None);
        }
        if self.near {
            array("near.sbatch", "near", Some("near"));
        }
        let merge = single_job(self.resources, "merge", &self.place, &self.merge());
        scripts.push(("merge.sbatch", merge));
        chain.push("merge.sbatch");
        scripts.push((SUBMIT, submit_in_turn(&self.place, &chain)));
        scripts
    }

    /// The command of one shard; `number` is what a shell makes its number of.
    pub fn search(&self, number: &str, round: Option<&str>) -> String {
        let Self { place, shards, .. } = self;
        let (folder, round) = match round {
            None => ("shards", String::new()),
            Some("alone") => ("alone", " --round alone".into()),
            Some("near") => ("near", format!(" --round near --after {}", self.before())),
            Some(_) => {
                let first = place.of("alone");
                ("shards", format!(" --round together --after {first}/*/"))
            }
        };
        format!(
            "{} search {} --shard {number}/{shards}{round} --resume --threads {} --share {} --out {}/{number}",
            place.program(),
            quoted(&place.folder.join(&self.request)),
            self.resources.cpus,
            place.of("share"),
            place.of(folder),
        )
    }

    /// The directories of all shards but those of chips nearly as good.
    fn before(&self) -> String {
        let first =
            if self.two_rounds { format!("{}/*/ ", self.place.of("alone")) } else { String::new() };
        format!("{first}{}/*/", self.place.of("shards"))
    }

    /// The command that joins all shards.
    pub fn merge(&self) -> String {
        let Self { place, .. } = self;
        let near = if self.near { format!(" {}/*/", place.of("near")) } else { String::new() };
        format!(
            "{} merge {}{near} --threads {} --out {}",
            place.program(),
            self.before(),
            self.resources.cpus,
            quoted(&place.out)
        )
    }
}

/// An array job of which every task runs the same command, with its number in
/// `SLURM_ARRAY_TASK_ID`; a task that is killed is started again.
pub fn array_job(
    resources: &Resources,
    name: &str,
    tasks: u32,
    place: &Place,
    command: &str,
) -> String {
    let head = resources.head(name, Some(tasks), place);
    let folder = quoted(&place.folder);
    format!(
        "{head}\
         # Written by `phaze slurm`. A task that is started again goes on where it was.\n\
         cd {folder} || exit 2\n\
         {command}\n{}",
        begins_again("${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID}")
    )
}

/// The end of a script: its status, after it was put into the queue again where it was killed.
fn begins_again(job: &str) -> String {
    format!(
        "status=$?\n\
         # Killed outright, as where memory runs out: begin again, a few times at the most.\n\
         if [ \"$status\" -eq 137 ] && [ \"${{SLURM_RESTART_COUNT:-0}}\" -lt {RESTARTS} ]; then\n    \
         scontrol requeue \"{job}\" && sleep 60\n\
         fi\n\
         exit \"$status\"\n"
    )
}

/// A job of one command, which ends with its status.
pub fn single_job(resources: &Resources, name: &str, place: &Place, command: &str) -> String {
    let head = resources.head(name, None, place);
    let folder = quoted(&place.folder);
    format!(
        "{head}# Written by `phaze slurm`.\ncd {folder} || exit 2\n{command}\n{}",
        begins_again("$SLURM_JOB_ID")
    )
}

/// The script that submits jobs, each after the one before has succeeded.
pub fn submit_in_turn(place: &Place, names: &[&str]) -> String {
    let mut text = String::from(
        "#!/bin/sh\n\
         # Written by `phaze slurm`: each job waits until the one before has succeeded. Where one is refused, those\n\
         # before it are taken back.\n\
         set -e\n\
         submitted=\n\
         taken_back() {\n    \
             status=$?\n    \
             if [ \"$status\" -ne 0 ] && [ -n \"$submitted\" ]; then\n        \
                 echo \"taken back:$submitted\" >&2\n        \
                 scancel $submitted\n    \
             fi\n    \
             exit \"$status\"\n\
         }\n\
         trap taken_back EXIT\n",
    );
    for (at, name) in names.iter().enumerate() {
        let script = place.of(name);
        let after =
            if at == 0 { "" } else { "--dependency=\"afterok:$job\" --kill-on-invalid-dep=yes " };
        // A cluster among several adds its name after a semicolon.
        let line = format!(
            "job=$(sbatch --parsable {after}{script})\njob=${{job%%;*}}\nsubmitted=\"$submitted $job\"\necho \"{name}: job $job\"\n"
        );
        text.push_str(&line);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resources() -> Resources {
        Resources {
            partition: Some("cpu".into()),
            account: None,
            time: Some("4:00:00".into()),
            mem: "2G".into(),
            cpus: 2,
            at_once: Some(8),
        }
    }

    fn jobs(resources: &Resources, two_rounds: bool, near: bool) -> Vec<(&'static str, String)> {
        let place = Place {
            folder: "/home/it's me".into(),
            program: "/opt/phaze".into(),
            out: "/home/it's me/results/100%".into(),
        };
        let request = "request.toml".into();
        Jobs { request, shards: 64, two_rounds, near, resources, place }.scripts()
    }

    #[test]
    fn one_model_is_one_array_and_a_merge_that_waits_for_it() {
        let resources = resources();
        let scripts = jobs(&resources, false, false);
        let names: Vec<&str> = scripts.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["shards.sbatch", "merge.sbatch", "submit.sh"]);
        let array = &scripts[0].1;
        for expected in [
            "#SBATCH --array=1-64%8\n",
            "#SBATCH --partition=cpu\n",
            "#SBATCH --time=4:00:00\n",
            "#SBATCH --output=\"/home/it's me/results/100%%/log/shards-%a.log\"\n",
            "cd '/home/it'\\''s me' || exit 2\n",
            "--shard \"$SLURM_ARRAY_TASK_ID\"/64 --resume --threads 2",
            "exit \"$status\"\n",
        ] {
            assert!(array.contains(expected), "{expected}\n{array}");
        }
        assert!(!array.contains("--account") && !array.contains("--round"));
        let submit = &scripts[2].1;
        assert_eq!(submit.matches("sbatch --parsable").count(), 2, "{submit}");
        assert_eq!(submit.matches("afterok").count(), 1, "{submit}");
    }

    #[test]
    fn several_models_are_two_arrays() {
        let resources = resources();
        let scripts = jobs(&resources, true, false);
        let names: Vec<&str> = scripts.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["alone.sbatch", "shards.sbatch", "merge.sbatch", "submit.sh"]);
        assert!(scripts[0].1.contains(" --round alone --resume"));
        assert!(
            scripts[1]
                .1
                .contains(" --round together --after '/home/it'\\''s me/results/100%/alone'/*/ ")
        );
        assert!(scripts[2].1.contains("/alone'/*/ '"), "{}", scripts[2].1);
        assert_eq!(scripts[3].1.matches("afterok").count(), 2);
    }

    #[test]
    fn chips_nearly_as_good_are_a_further_array() {
        let resources = resources();
        let scripts = jobs(&resources, true, true);
        let names: Vec<&str> = scripts.iter().map(|(name, _)| *name).collect();
        let expected =
            ["alone.sbatch", "shards.sbatch", "near.sbatch", "merge.sbatch", "submit.sh"];
        assert_eq!(names, expected);
        assert!(scripts[2].1.contains(" --round near --after '"), "{}", scripts[2].1);
        assert!(scripts[2].1.contains("/alone'/*/ '"), "{}", scripts[2].1);
        assert!(scripts[3].1.contains("/near'/*/ --threads"), "{}", scripts[3].1);
        assert_eq!(scripts[4].1.matches("afterok").count(), 3);
    }

    #[test]
    fn a_word_that_would_steer_a_script_is_refused() {
        for word in ["", "a b", "x\n#SBATCH --uid=0", "a;b", "$(id)"] {
            let resources = Resources { partition: Some(word.into()), ..resources() };
            assert!(resources.validate().is_err(), "{word:?}");
        }
        assert!(resources().validate().is_ok());
    }
}
