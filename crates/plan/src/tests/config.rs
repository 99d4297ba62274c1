//! Tests of a variant's `config` as plans write it.

use dbdyno_model::{Config, ConfigPart, Variant};

use crate::Plan;
use crate::fake::parse;

fn plan(server: &str, config: &str) -> Result<Plan, String> {
    let text =
        format!("name = \"p\"\n[[variant]]\nname = \"a\"\n{server}\nconfig = {config}\n[workload.fake]\n");
    parse(&text, "p.toml").map_err(|error| error.to_string())
}

#[test]
fn a_config_is_a_file_a_table_or_a_list_and_survives_being_written_down() {
    for config in [
        "\"c.toml\"",
        "{ redo = \"1 GiB\", where_possible = { purge_threads = 4 } }",
        "[\"c.toml\", { jit = false }]",
    ] {
        let plan = plan("server = \"mysql-8.0.31\"", config).unwrap();
        let text = toml::to_string(&plan).unwrap();
        assert_eq!(parse(&text, "own output").unwrap(), plan);
        let json = serde_json::to_string(&plan.variants).unwrap();
        assert_eq!(serde_json::from_str::<Vec<Variant>>(&json).unwrap(), plan.variants);
    }
    let plan = plan("server = \"mysql-8.0.31\"", "[\"c.toml\", { jit = false }]").unwrap();
    let parts = plan.variants[0].config.as_ref().map(Config::parts).unwrap();
    assert!(matches!(parts, [ConfigPart::File(_), ConfigPart::Intents(_)]), "{parts:?}");
}

#[test]
fn a_wrong_config_is_refused_with_a_message_that_names_the_right_forms() {
    let message = plan("server = \"mysql-8.0.31\"", "3").unwrap_err();
    insta::assert_snapshot!(message, @r#"p.toml:5:10: config is the path of a config file, a table of intents such as { buffer_pool = "1 GiB" }, or a list of these"#);
    let message = plan("address = \"mysql://u@h/d\"", "\"c.toml\"").unwrap_err();
    insta::assert_snapshot!(message, @"p.toml:5:10: variant `a` has config, which is only for a server that dbdyno starts (server or basedir) and for sqlite");
}
