//! `"auto"` as a time of a plan: the length of steps that gives most information a minute.

use std::path::Path;

use dbdyno_plan::Plan;
use dbdyno_workloads::plans::{self, marked};
use toml::Table;

use crate::exit::ExitError;
use crate::{power, terminal};

const AUTO: &str = "auto";
/// Where nothing is known of the noise.
const USUAL_SECONDS: u64 = 10;

/// The plan of `text` by `parse`, which lays overrides over it: those of the command line, and the
/// times that are chosen here.
pub(crate) fn plan(
    text: &str,
    overrides: &[(String, String)],
    parse: impl Fn(&[(String, String)]) -> Result<Plan, ExitError>,
) -> Result<Plan, ExitError> {
    let keys = keys(text, overrides);
    if keys.is_empty() {
        return parse(overrides);
    }
    let others = overrides.iter().filter(|(key, _)| !keys.contains(key));
    let with = |seconds: u64| -> Vec<(String, String)> {
        let chosen = keys.iter().map(|key| (key.clone(), format!("{seconds}s")));
        others.clone().cloned().chain(chosen).collect()
    };
    let plan = parse(&with(USUAL_SECONDS))?;
    let manifest = crate::manifest::manifest(&plan, &[], Path::new("."))?;
    let (seconds, why) = match power::best_time(&plan, &manifest, USUAL_SECONDS) {
        Some(found) => found,
        None => (USUAL_SECONDS, "the noise of this host is not known yet".to_owned()),
    };
    terminal::note(&format!("{} = \"auto\": {seconds} s; {why}", keys.join(" and ")));
    parse(&with(seconds))
}

/// Dotted paths of the keys that are `auto`.
fn keys(text: &str, overrides: &[(String, String)]) -> Vec<String> {
    let mut all = Vec::new();
    // A text that is no TOML is for the parser to complain of.
    let plan: Table = text.parse().unwrap_or_default();
    let workloads = plan.get("workload").and_then(|workloads| workloads.as_table());
    for (name, workload) in workloads.into_iter().flatten() {
        let options = workload.as_table().into_iter().flatten();
        let auto = options.filter(|(_, value)| value.as_str() == Some(AUTO));
        all.extend(auto.map(|(key, _)| format!("workload.{name}.{key}")));
    }
    all.retain(|path| takes_auto(path));
    for (key, value) in overrides {
        all.retain(|known| known != key);
        if value.trim_matches('"') == AUTO && takes_auto(key) {
            all.push(key.clone());
        }
    }
    all
}

/// Whether the dotted path is that of an option that may be `auto`.
fn takes_auto(path: &str) -> bool {
    let option = path.strip_prefix("workload.").and_then(|path| path.split_once('.'));
    option.is_some_and(|(workload, key)| marked(workload, plans::AUTO).iter().any(|own| own == key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_are_auto_are_found_in_the_plan_and_on_the_command_line() {
        let text = "[workload.oltp]\ntime = \"auto\"\n[workload.microbenchmarks]\nread_time = \"5s\"\n";
        let of = |overrides: &[(&str, &str)]| {
            let overrides: Vec<_> =
                overrides.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
            keys(text, &overrides).join(" ")
        };
        assert_eq!(of(&[]), "workload.oltp.time");
        assert_eq!(of(&[("workload.oltp.time", "3s")]), "");
        let both = "workload.oltp.time workload.microbenchmarks.read_time";
        assert_eq!(of(&[("workload.microbenchmarks.read_time", "auto")]), both);
        assert_eq!(of(&[("name", "auto")]), "workload.oltp.time");
    }
}
