//! Tests how variants whose settings differ are predicted, refused, declared and reported.

use crate::support::Desk;

fn plan(top: &str) -> String {
    format!(
        "name = \"p\"\n{top}\n[[variant]]\nname = \"a\"\nserver = \"sqlite\"\noptions.pragmas = {{ cache_size = \"-4000\" }}\n\
         [[variant]]\nname = \"b\"\nserver = \"sqlite\"\noptions.pragmas = {{ cache_size = \"-4000\", page_size = \"8192\" }}\n\
         [workload.oltp]\ntests = [\"point-select\"]\ntables = 1\ntable_size = 100\ntime = \"1s\"\nwarmup = \"0s\"\n\
         connections = [1]\nsettle_wait = \"0s\"\n"
    )
}

fn section(text: &str) -> &str {
    let from = text.find("Configuration differences").expect("the section");
    text[from..].trim_end()
}

#[test]
fn a_plan_shows_its_variants_predicted_settings() {
    let desk = Desk::new();
    desk.write("p.toml", &plan(""));
    let ended = desk.dbdyno(&["plan", "p.toml"]);
    ended.expect_ok();
    insta::assert_snapshot!(section(&ended.out), @r#"
    Configuration differences ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━
    • differs: page size: 4 KiB by default (a), 8 KiB (b). Larger pages write more per small change and
      read more per row. InnoDB has 16 KiB, PostgreSQL 8 KiB. Remedy: page_size = "8 KiB" in each
      config, which is PostgreSQL's own.

    Settings by class
    Predicted from what each build answered, and the plan; no server was started. * = server default.
    class      what            a      b  compared
    ─────────────────────────────────────────────
    page-size  page size  4 KiB*  8 KiB   DIFFERS
    The same in all variants: 8 settings.
    "#);
}

#[test]
fn a_plan_that_refuses_differences_names_the_remedy_and_declared_differences_run() {
    let desk = Desk::new();
    desk.write("p.toml", &plan("parity = \"refuse\""));
    let ended = desk.dbdyno(&["run", "p.toml"]);
    ended.expect_code(2);
    insta::assert_snapshot!(desk.refusal(&ended), @r#"
    exit 2: error: the configurations differ, and the plan says parity = "refuse":
      page-size: page size: 4 KiB by default (a), 8 KiB (b); to make it equal: page_size = "8 KiB" in each config, which is PostgreSQL's own
    make them equal, or list intended differences in differs of the plan
    "#);
    assert!(desk.run_dirs().is_empty());

    desk.write("q.toml", &plan("parity = \"refuse\"\ndiffers = [\"page-size\"]"));
    let ended = desk.dbdyno(&["run", "q.toml"]);
    ended.expect_ok();
    assert!(!ended.err.contains("configurations differ"), "{}", ended.err);
    let report = desk.dbdyno(&["report", desk.run_dir().to_str().expect("a path"), "--section", "config"]);
    let meant = "intended: page size: 4 KiB by default (a), 8 KiB (b); listed in differs";
    assert!(report.out.contains(meant), "{}", report.out);
}

#[test]
fn a_run_warns_before_it_begins_and_its_report_says_what_differs() {
    let desk = Desk::new();
    desk.write("p.toml", &plan(""));
    let ended = desk.dbdyno(&["run", "p.toml"]);
    ended.expect_ok();
    let warning = "warning: the configurations will differ: page-size; `dbdyno plan` shows the values";
    assert!(ended.err.contains(warning), "{}", ended.err);
    assert!(ended.out.contains("1 configuration difference: dbdyno report"), "{}", ended.out);
    let run = desk.run_dir();
    let csv = desk.dbdyno(&["report", run.to_str().expect("a path"), "--format", "csv"]);
    let rows: Vec<&str> = csv.out.lines().filter(|line| line.contains(",page-size,")).collect();
    assert!(!rows.is_empty() && rows.iter().all(|row| row.contains(",b,")), "{}", csv.out);
    let base = format!("{}:a", run.display());
    let compared = desk.dbdyno(&["compare", &base, ":b", "--fail-on", "never"]);
    assert!(
        compared.out.contains("Different settings: page size: 4 KiB by default (a), 8 KiB (b)."),
        "{compared:?}"
    );
}

#[test]
fn parity_off_reports_nothing() {
    let desk = Desk::new();
    desk.write("p.toml", &plan("parity = \"off\""));
    let ended = desk.dbdyno(&["run", "p.toml"]);
    ended.expect_ok();
    assert!(!ended.err.contains("differ") && !ended.out.contains("Configuration differences"), "{ended:?}");
}

#[test]
fn an_unknown_class_is_refused_with_the_list_of_classes() {
    let desk = Desk::new();
    desk.write("p.toml", &plan("differs = [\"doublewrite\"]"));
    for command in ["run", "plan"] {
        let ended = desk.dbdyno(&[command, "p.toml"]);
        ended.expect_code(2);
        let said = desk.refusal(&ended);
        let unknown = "differs of the plan names \"doublewrite\", which is no class of settings; classes: engine, commit, binlog,";
        assert!(said.contains(unknown), "{said}");
    }
}
