//! Reads sysbench's command line: `[--name=value ...] script [command]`, in any order.

use std::collections::BTreeMap;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct CommandLine {
    pub(super) script: Option<String>,
    pub(super) command: Option<String>,
    /// sysbench's own options, with `_` in place of `-`.
    pub(super) general: BTreeMap<String, String>,
    pub(super) own: BTreeMap<String, String>,
}

const TAKEN: &str = "
    threads num_threads events max_requests time max_time warmup_time rate
    report_interval percentile histogram forced_shutdown thread_init_timeout
    config_file validate
    rand_type rand_seed rand_spec_iter rand_spec_pct rand_spec_res rand_pareto_h rand_zipfian_exp
    db_driver db_ps_mode
    mysql_host mysql_port mysql_socket mysql_user mysql_password mysql_db mysql_ssl
    mysql_ignore_errors mysql_dry_run
    pgsql_host pgsql_port pgsql_user pgsql_password pgsql_db pgsql_sslmode
    test";

/// Options of sysbench that change nothing here. A message names those that are used.
const IGNORED: &str = "
    luajit_cmd thread_stack_size report_checkpoints verbosity debug
    db_debug mysql_debug mysql_compression mysql_compression_algorithms
    mysql_ssl_key mysql_ssl_cert mysql_ssl_cipher";

fn is_in(options: &str, name: &str) -> bool {
    options.split_whitespace().any(|own| own == name)
}

pub(super) fn read(arguments: &[String]) -> Result<CommandLine, String> {
    let named = |word: &&String| word.starts_with("--config-file=") || word.starts_with("--config_file=");
    let of_file = match arguments.iter().rfind(named).and_then(|word| word.split_once('=')) {
        Some((_, path)) => config_file(path)?,
        None => Vec::new(),
    };
    let mut read = CommandLine::default();
    // The command line replaces what the file says.
    for word in of_file.iter().chain(arguments) {
        let Some(option) = word.strip_prefix("--") else {
            let place = if read.script.is_none() { &mut read.script } else { &mut read.command };
            if place.is_some() {
                return Err(format!("{word} is one word too many: [--name=value ...] script [command]"));
            }
            *place = Some(word.clone());
            continue;
        };
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        let name = name.replace('-', "_");
        let is_general = is_in(TAKEN, &name) || is_in(IGNORED, &name);
        let list = if is_general { &mut read.general } else { &mut read.own };
        list.insert(name, value.to_owned());
    }
    // Before sysbench 1.0 the script was an option.
    if let Some(test) = read.general.remove("test") {
        read.command = read.command.or(read.script.take());
        read.script = Some(test);
    }
    Ok(read)
}

/// Reads the options of a file for `--config-file`. It has one option per line, as on the command
/// line but without dashes.
fn config_file(path: &str) -> Result<Vec<String>, String> {
    /// This is far more than all options need.
    const MOST_BYTES: u64 = 1 << 20;
    let problem = |error: std::io::Error| format!("--config-file: cannot read {path}: {error}");
    let found = std::fs::metadata(path).map_err(problem)?;
    if !found.is_file() || found.len() > MOST_BYTES {
        return Err(format!("--config-file: {path} is no file of options"));
    }
    let text = std::fs::read_to_string(path).map_err(problem)?;
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let option = |line: &str| match line.split_once('=') {
        Some((name, value)) => format!("--{}={}", name.trim().trim_start_matches("--"), value.trim()),
        None => format!("--{}", line.trim_start_matches("--")),
    };
    Ok(lines.map(option).collect())
}

impl CommandLine {
    pub(super) fn ignored(&self) -> Vec<String> {
        let given = self.general.keys().filter(|name| is_in(IGNORED, name));
        given.map(|name| format!("--{}", name.replace('_', "-"))).collect()
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.general.get(name).map(String::as_str)
    }

    /// Returns the first of these options that was given, as a whole number.
    pub(super) fn number(&self, names: &[&str], default: u64) -> Result<u64, String> {
        let Some(name) = names.iter().find(|name| self.general.contains_key(**name)) else {
            return Ok(default);
        };
        let text = self.general[*name].as_str();
        text.parse()
            .map_err(|_| format!("--{} is {text}, but must be a whole number", name.replace('_', "-")))
    }

    pub(super) fn fraction(&self, name: &str, default: f64) -> Result<f64, String> {
        let Some(text) = self.text(name) else { return Ok(default) };
        text.parse().map_err(|_| format!("--{} is {text}, but must be a number", name.replace('_', "-")))
    }

    pub(super) fn flag(&self, name: &str) -> Result<bool, String> {
        match self.text(name) {
            None | Some("off" | "false" | "0") => Ok(false),
            Some("" | "on" | "true" | "1") => Ok(true),
            Some(text) => Err(format!("--{} is {text}, but must be on or off", name.replace('_', "-"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> CommandLine {
        read(&line.split(' ').map(str::to_owned).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn options_stand_anywhere_and_belong_to_sysbench_or_to_the_script() {
        let line = of("oltp_read_only.lua --tables=8 --threads=16 --mysql_socket=/s run --skip-trx --debug");
        assert_eq!(line.script.as_deref(), Some("oltp_read_only.lua"));
        assert_eq!(line.command.as_deref(), Some("run"));
        assert_eq!(
            line.own.into_iter().collect::<Vec<_>>(),
            [("skip_trx".to_owned(), String::new()), ("tables".to_owned(), "8".to_owned())]
        );
        let line = of("--threads=16 --mysql_socket=/s --debug a b");
        assert_eq!((line.number(&["threads"], 1), line.text("mysql_socket")), (Ok(16), Some("/s")));
        assert_eq!(line.ignored(), ["--debug"]);
    }

    #[test]
    fn the_script_was_an_option_once() {
        let line = of("--test=oltp.lua --num-threads=4 run");
        assert_eq!((line.script.as_deref(), line.command.as_deref()), (Some("oltp.lua"), Some("run")));
        assert_eq!(line.number(&["threads", "num_threads"], 1), Ok(4));
        let many = ["a", "b", "c"].map(str::to_owned);
        assert!(read(&many).unwrap_err().contains("c is one word too many"));
    }
}
