//! The same jobs for other engines, as examples to be adapted.

use std::fmt::Write as _;
use std::path::Path;

use super::script::Jobs;
use super::script::quoted;

/// An engine that is not Slurm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Engine {
    /// Indexed Jobs of Kubernetes.
    Kubernetes,
    /// GNU parallel on one machine or several.
    Parallel,
}

/// What such an engine would be given.
pub fn example(engine: Engine, jobs: &Jobs) -> String {
    match engine {
        Engine::Kubernetes => kubernetes(jobs),
        Engine::Parallel => parallel(jobs),
    }
}

/// The rounds in turn, each with the name of its job.
fn rounds(jobs: &Jobs) -> Vec<(&'static str, Option<&'static str>)> {
    let mut rounds = if jobs.two_rounds {
        vec![("alone", Some("alone")), ("shards", Some("together"))]
    } else {
        vec![("shards", None)]
    };
    if jobs.near {
        rounds.push(("near", Some("near")));
    }
    rounds
}

fn parallel(jobs: &Jobs) -> String {
    let (folder, shards) = (quoted(&jobs.place.folder), jobs.shards);
    let at_once = jobs.resources.at_once.map_or("100%".into(), |n| n.to_string());
    let mut text = format!(
        "#!/bin/sh\n\
         # The shards of a search with GNU parallel. Repeat it after an interruption: shards that are\n\
         # done are taken as they are, the others go on where they were.\n\
         set -e\n\
         cd {folder}\n"
    );
    for (_, round) in rounds(jobs) {
        let command = jobs.search("{}", round).replace('\'', r#"'"'"'"#);
        let _ = writeln!(
            text,
            "seq {shards} | parallel --jobs {at_once} --retries 5 --halt soon,fail=1 '{command}'"
        );
    }
    text + &jobs.merge() + "\n"
}

fn kubernetes(jobs: &Jobs) -> String {
    let mut text = String::from(
        "# The shards of a search as indexed Jobs of Kubernetes. Adapt the image and the claim of a\n\
         # volume that all pods may write (ReadWriteMany); the paths below are those of this machine.\n\
         # Apply the jobs in turn, each as a file of its own (they are divided by ---) after the one before is\n\
         # complete:\n\
         #   kubectl apply -f FILE; kubectl wait --for=condition=complete --timeout=-1s job/NAME\n",
    );
    for (name, round) in rounds(jobs) {
        let command = jobs.search("$((JOB_COMPLETION_INDEX + 1))", round);
        let at_once = jobs.resources.at_once.unwrap_or(jobs.shards).min(jobs.shards);
        let indexed = format!(
            "  completionMode: Indexed\n  completions: {}\n  parallelism: {at_once}\n  \
             backoffLimitPerIndex: 5\n",
            jobs.shards
        );
        text.push_str(&job(jobs, name, &indexed, &command));
    }
    text.push_str(&job(jobs, "merge", "  backoffLimit: 1\n", &jobs.merge()));
    text
}

fn job(jobs: &Jobs, name: &str, counts: &str, command: &str) -> String {
    let memory = kubernetes_size(&jobs.resources.mem);
    let cpus = jobs.resources.cpus;
    let place = in_yaml(&jobs.place.folder);
    format!(
        "---\n\
         apiVersion: batch/v1\n\
         kind: Job\n\
         metadata:\n  \
           name: phaze-{name}\n\
         spec:\n\
         {counts}\
         # A request that is refused (2) is refused again; what was killed goes on where it was.\n  \
           podFailurePolicy:\n    \
             rules:\n    \
             - action: FailJob\n      \
               onExitCodes: {{operator: In, values: [2]}}\n  \
           template:\n    \
             spec:\n      \
               restartPolicy: Never\n      \
               containers:\n      \
               - name: phaze\n        \
                 image: phaze\n        \
                 workingDir: {place}\n        \
                 command: [sh, -c]\n        \
                 args:\n        \
                 - |\n          \
                   exec {command}\n        \
                 resources:\n          \
                   requests: {{cpu: {cpus}, memory: {memory}}}\n          \
                   limits: {{memory: {memory}}}\n        \
                 volumeMounts:\n        \
                 - {{name: shared, mountPath: {place}}}\n      \
               volumes:\n      \
               - name: shared\n        \
                 persistentVolumeClaim: {{claimName: phaze}}\n"
    )
}

/// A path as YAML reads it, wherever it stands.
fn in_yaml(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', "''"))
}

/// A size of Slurm, in which `2G` are 2 GiB, as Kubernetes writes it.
fn kubernetes_size(size: &str) -> String {
    let number = size.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit = size[number.len()..].chars().next().map(|unit| unit.to_ascii_uppercase());
    // Slurm counts in MiB where nothing else is said.
    match unit {
        Some(unit) => format!("{number}{unit}i"),
        None => format!("{number}Mi"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::script::Place;
    use super::super::script::Resources;
    use super::*;

    fn printed(engine: Engine, two_rounds: bool, near: bool) -> String {
        let resources = Resources {
            partition: None,
            account: None,
            time: None,
            mem: "2G".into(),
            cpus: 1,
            at_once: Some(4),
        };
        let place = Place {
            folder: "/home/me".into(),
            program: "/opt/phaze".into(),
            out: "/home/me/out".into(),
        };
        let request = "request.toml".into();
        let jobs = Jobs { request, shards: 8, two_rounds, near, resources: &resources, place };
        example(engine, &jobs)
    }

    #[test]
    fn kubernetes_gets_one_indexed_job_for_each_round_and_a_merge() {
        let text = printed(Engine::Kubernetes, true, false);
        assert_eq!(text.matches("completionMode: Indexed\n").count(), 2, "{text}");
        assert_eq!(text.matches("\nkind: Job\n").count(), 3, "{text}");
        assert!(text.contains("--shard $((JOB_COMPLETION_INDEX + 1))/8"), "{text}");
        assert!(text.contains("memory: 2Gi"), "{text}");
        assert!(text.contains("workingDir: '/home/me'"), "{text}");
        let sizes = ["2G", "2g", "2GB", "512", "1T"].map(kubernetes_size);
        assert_eq!(sizes, ["2Gi", "2Gi", "2Gi", "512Mi", "1Ti"]);
    }

    #[test]
    fn parallel_runs_every_shard_and_then_the_merge() {
        let text = printed(Engine::Parallel, false, true);
        assert!(text.contains("--round near --after '"), "{text}");
        assert!(text.contains("seq 8 | parallel --jobs 4 "), "{text}");
        assert!(text.trim_end().ends_with("--out '/home/me/out'"), "{text}");
    }
}
