//! Runs the shell steps of the workflows in the CI guide, on two tiny variants.

use std::path::Path;
use std::process::Command;

use crate::support::Desk;

/// The plan has one block, so that no verdict can fail the job by chance.
const PLAN: &str = "name = \"ci\"\n[[variant]]\nname = \"base\"\nserver = \"sqlite\"\n[[variant]]\nname = \"patched\"\nserver = \"sqlite\"\n\
                    [workload.oltp]\ntests = [\"point-select\"]\ntables = 1\ntable_size = 100\ntime = \"1s\"\nwarmup = \"0s\"\n\
                    connections = [1]\nsettle_wait = \"0s\"\n";

fn example(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guides/ci").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the shell lines of a workflow, which follow `run:` on GitHub and are the items of
/// `script:` on GitLab.
fn steps(workflow: &str) -> Vec<&str> {
    let on_github =
        workflow.lines().filter_map(|line| line.trim_start_matches([' ', '-']).strip_prefix("run: "));
    let script = workflow.lines().skip_while(|line| line.trim() != "script:").skip(1);
    let on_gitlab = script.map_while(|line| line.trim().strip_prefix("- "));
    on_github.chain(on_gitlab).collect()
}

fn run(workflow: &str) -> Desk {
    let desk = Desk::new();
    desk.write("compare.toml", PLAN);
    desk.write("build.sh", "#!/bin/sh\nexit 0\n");
    desk.write("compare.sh", &example("compare.sh"));
    let bin = Path::new(env!("CARGO_BIN_EXE_dbdyno")).parent().unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let text = example(workflow);
    let steps = steps(&text);
    assert!(steps.iter().any(|step| step.contains("./compare.sh")), "{steps:?}");
    for step in [&["chmod +x build.sh compare.sh"], steps.as_slice()].concat() {
        let mut shell = Command::new("sh");
        desk.prepare(&mut shell);
        shell.args(["-ec", step]).env("PATH", &path).env("GITHUB_STEP_SUMMARY", desk.path("summary.md"));
        desk.ended(&mut shell).expect_ok();
    }
    desk
}

fn read(desk: &Desk, name: &str) -> String {
    std::fs::read_to_string(desk.path(name)).unwrap()
}

#[test]
fn the_steps_of_both_workflows_write_a_comment_and_test_cases() {
    for workflow in ["github.yml", "gitlab.yml"] {
        let desk = run(workflow);
        let comment = read(&desk, "comment.md");
        assert!(comment.starts_with("### dbdyno compare: patched against base\n"), "{comment}");
        assert!(comment.chars().count() < 60_000);
        let cases = read(&desk, "junit.xml");
        assert!(cases.contains("<testcase classname=\"oltp\" name=\"point-select.c1\">"), "{cases}");
        if workflow == "github.yml" {
            assert_eq!(read(&desk, "summary.md"), comment);
        }
    }
}

#[test]
fn the_plan_of_the_example_is_sound() {
    let desk = Desk::new();
    desk.write("compare.toml", &example("compare.toml"));
    let ended = desk.dbdyno(&["plan", "compare.toml"]);
    // The two builds are not installed.
    ended.expect_code(4);
    assert!(ended.out.starts_with("plan patched-against-base: 2 variants x 5 blocks\n"), "{}", ended.out);
}
