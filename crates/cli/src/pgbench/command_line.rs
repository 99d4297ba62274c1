//! Reads pgbench's command line: short and long options in any order, and a database.

use std::collections::BTreeMap;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    Flag,
    Value,
    /// The option takes a value and may come several times, or it is one of the scripts.
    Script,
    /// The option stands for one of pgbench's own scripts, at its place among the others.
    Builtin(&'static str),
    /// The option changes nothing.
    Ignored,
    /// The option would make other tables, so it is refused.
    Refused,
}

const OPTIONS: [(char, &str, Use); 47] = [
    ('i', "initialize", Use::Flag),
    ('I', "init-steps", Use::Value),
    ('F', "fillfactor", Use::Value),
    ('n', "no-vacuum", Use::Flag),
    ('q', "quiet", Use::Ignored),
    ('s', "scale", Use::Value),
    (' ', "foreign-keys", Use::Flag),
    (' ', "index-tablespace", Use::Refused),
    (' ', "partition-method", Use::Value),
    (' ', "partitions", Use::Value),
    (' ', "tablespace", Use::Refused),
    (' ', "unlogged-tables", Use::Flag),
    ('b', "builtin", Use::Script),
    ('f', "file", Use::Script),
    ('N', "skip-some-updates", Use::Builtin("simple-update")),
    ('S', "select-only", Use::Builtin("select-only")),
    ('c', "client", Use::Value),
    ('C', "connect", Use::Flag),
    ('D', "define", Use::Script),
    ('j', "jobs", Use::Value),
    ('l', "log", Use::Flag),
    ('L', "latency-limit", Use::Value),
    ('M', "protocol", Use::Value),
    ('P', "progress", Use::Value),
    ('r', "report-per-command", Use::Flag),
    (' ', "report-latencies", Use::Flag),
    ('R', "rate", Use::Value),
    ('t', "transactions", Use::Value),
    ('T', "time", Use::Value),
    ('v', "vacuum-all", Use::Flag),
    (' ', "aggregate-interval", Use::Value),
    (' ', "exit-on-abort", Use::Flag),
    (' ', "failures-detailed", Use::Flag),
    (' ', "log-prefix", Use::Value),
    (' ', "max-tries", Use::Value),
    (' ', "progress-timestamp", Use::Flag),
    (' ', "random-seed", Use::Value),
    (' ', "sampling-rate", Use::Value),
    (' ', "show-script", Use::Value),
    (' ', "verbose-errors", Use::Flag),
    ('d', "debug", Use::Ignored),
    (' ', "dbname", Use::Value),
    ('h', "host", Use::Value),
    ('p', "port", Use::Value),
    ('U', "username", Use::Value),
    ('V', "version", Use::Flag),
    ('?', "help", Use::Flag),
];

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct CommandLine {
    options: BTreeMap<&'static str, String>,
    /// Options that may come several times: name and value, in their order.
    pub(super) repeated: Vec<(&'static str, String)>,
    pub(super) database: Option<String>,
    pub(super) ignored: Vec<&'static str>,
}

pub(super) fn read(arguments: &[String]) -> Result<CommandLine, String> {
    let mut read = CommandLine::default();
    let mut words = arguments.iter().map(String::as_str);
    while let Some(word) = words.next() {
        if let Some(long) = word.strip_prefix("--").filter(|long| !long.is_empty()) {
            let (name, value) =
                long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
            let found = OPTIONS.iter().find(|(_, own, _)| *own == name);
            let (_, name, of) = found.ok_or_else(|| format!("--{name} is no option of pgbench"))?;
            read.take(name, *of, || value.or_else(|| words.next()))?;
        } else if let Some(short) = word.strip_prefix('-').filter(|short| !short.is_empty()) {
            read.cluster(short, &mut words)?;
        } else if read.database.replace(word.to_owned()).is_some() {
            return Err(format!("{word} is one word too many: [OPTION]... [DBNAME]"));
        }
    }
    Ok(read)
}

impl CommandLine {
    /// Reads the letters after one `-`. When a letter takes a value, the rest of the word is its
    /// value.
    fn cluster<'a>(
        &mut self,
        short: &'a str,
        words: &mut impl Iterator<Item = &'a str>,
    ) -> Result<(), String> {
        let mut rest = short;
        while let Some(letter) = rest.chars().next() {
            rest = &rest[letter.len_utf8()..];
            let found = OPTIONS.iter().find(|(own, ..)| *own == letter && letter != ' ');
            let (_, name, of) = found.ok_or_else(|| format!("-{letter} is no option of pgbench"))?;
            let takes = matches!(of, Use::Value | Use::Script);
            let own = (takes && !rest.is_empty()).then_some(rest);
            self.take(name, *of, || own.or_else(|| words.next()))?;
            if takes {
                return Ok(());
            }
        }
        Ok(())
    }

    fn take<'a>(
        &mut self,
        name: &'static str,
        of: Use,
        value: impl FnOnce() -> Option<&'a str>,
    ) -> Result<(), String> {
        let missing = || format!("--{name} takes a value");
        match of {
            Use::Flag => drop(self.options.insert(name, String::new())),
            Use::Value => drop(self.options.insert(name, value().ok_or_else(missing)?.to_owned())),
            Use::Script => self.repeated.push((name, value().ok_or_else(missing)?.to_owned())),
            Use::Builtin(script) => self.repeated.push(("builtin", script.to_owned())),
            Use::Ignored => self.ignored.push(name),
            Use::Refused => {
                return Err(format!("--{name} is not there: dbdyno makes no such tables; leave it out"));
            }
        }
        Ok(())
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.options.contains_key(name)
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.options.get(name).map(String::as_str)
    }

    pub(super) fn number<T: std::str::FromStr>(&self, name: &str) -> Result<Option<T>, String> {
        let Some(text) = self.text(name) else { return Ok(None) };
        text.parse().map(Some).map_err(|_| format!("--{name} is {text}, but must be a number"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Result<CommandLine, String> {
        read(&line.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn short_and_long_options_are_read_as_pgbench_reads_them() {
        let line =
            of("-nr -c16 --jobs=2 -T 60 -f a.sql@9 -Dx=1 -S --file b.sql -q --max-tries 3 bench").unwrap();
        assert!(line.has("no-vacuum") && line.has("report-per-command") && !line.has("connect"));
        assert_eq!((line.number("client"), line.number("time")), (Ok(Some(16_u32)), Ok(Some(60_u64))));
        assert_eq!(line.number("max-tries"), Ok(Some(3_u32)));
        let repeated: Vec<(&str, &str)> =
            line.repeated.iter().map(|(name, value)| (*name, value.as_str())).collect();
        assert_eq!(
            repeated,
            [("file", "a.sql@9"), ("define", "x=1"), ("builtin", "select-only"), ("file", "b.sql")]
        );
        assert_eq!((line.database.as_deref(), line.ignored), (Some("bench"), vec!["quiet"]));
    }

    #[test]
    fn the_long_form_of_every_option_says_what_its_letter_says() {
        for (letter, name, used) in OPTIONS.into_iter().filter(|(letter, ..)| *letter != ' ') {
            let value = if matches!(used, Use::Value | Use::Script) { " tpcb-like" } else { "" };
            let short = of(&format!("-{letter}{value}"));
            assert!(short.is_ok(), "-{letter}: {short:?}");
            assert_eq!(short, of(&format!("--{name}{value}")), "-{letter} --{name}");
            assert_eq!(short, of(&format!("--{name}{}", value.replace(' ', "="))), "-{letter} --{name}=");
        }
        let read = of("--builtin=select-only").unwrap();
        assert_eq!(read.repeated, [("builtin", "select-only".to_owned())]);
    }

    #[test]
    fn words_without_a_place_are_named() {
        assert_eq!(of("-Z").unwrap_err(), "-Z is no option of pgbench");
        assert_eq!(of("--nix=1").unwrap_err(), "--nix is no option of pgbench");
        assert_eq!(of("-c").unwrap_err(), "--client takes a value");
        assert_eq!(of("a b").unwrap_err(), "b is one word too many: [OPTION]... [DBNAME]");
        assert!(of("--tablespace=x").unwrap_err().contains("--tablespace is not there"));
        assert_eq!(
            of("-c x").unwrap().number::<u32>("client").unwrap_err(),
            "--client is x, but must be a number"
        );
    }
}
