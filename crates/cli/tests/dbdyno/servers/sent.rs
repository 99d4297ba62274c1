//! Reads the statements in a server's own log, by session and with their values filled in.

use std::path::{Path, PathBuf};

/// The form in which a statement arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StatementForm {
    /// The statement was sent as text.
    Text,
    /// The statement was prepared earlier and is now executed.
    Executed,
    /// The statement is only prepared.
    Prepared,
}

#[derive(Debug, Clone)]
pub(crate) struct Sent {
    pub(crate) form: StatementForm,
    pub(crate) sql: String,
}

/// One session, from login to logout.
#[derive(Debug, Clone)]
pub(crate) struct Session {
    pub(crate) id: String,
    pub(crate) sent: Vec<Sent>,
}

impl Session {
    /// The statements that were executed, without those that were only prepared.
    pub(crate) fn done(&self) -> impl Iterator<Item = &Sent> {
        self.sent.iter().filter(|sent| sent.form != StatementForm::Prepared)
    }
}

/// All sessions in a MariaDB general log, in the order of their first statement.
pub(crate) fn of_mariadb(log: &str) -> Vec<Session> {
    let mut sessions = Vec::new();
    for line in log.lines() {
        let parsed = line.rsplit_once('\t').and_then(|(head, sql)| {
            let (before, command) = head.rsplit_once(' ')?;
            let id = before.rsplit(['\t', ' ']).next().filter(|id| id.parse::<u64>().is_ok())?;
            let form = match command {
                "Query" => StatementForm::Text,
                "Execute" => StatementForm::Executed,
                "Prepare" => StatementForm::Prepared,
                _ => return None,
            };
            Some((id, Sent { form, sql: sql.to_owned() }))
        });
        match parsed {
            Some((id, sent)) => add(&mut sessions, id, sent),
            // The line continues a statement that has several lines.
            None => assert!(!line.contains("sbtest"), "not understood: {line}"),
        }
    }
    sessions
}

/// All sessions in a PostgreSQL log with `log_statement = all`, in the same order.
pub(crate) fn of_postgres(log: &str) -> Vec<Session> {
    let mut sessions: Vec<Session> = Vec::new();
    for line in log.lines() {
        let id = line.split_once(" [").and_then(|(_, rest)| rest.split_once("] ")).map(|(id, _)| id);
        let execution = line.split_once("LOG:  execute ").and_then(|(_, rest)| rest.split_once(": "));
        let text = line.split_once("LOG:  statement: ");
        let values = line.split_once("DETAIL:  parameters: ");
        match (id, execution, text, values) {
            (Some(id), Some((_, sql)), ..) => {
                add(&mut sessions, id, Sent { form: StatementForm::Executed, sql: sql.to_owned() });
            }
            (Some(id), _, Some((_, sql)), _) => {
                add(&mut sessions, id, Sent { form: StatementForm::Text, sql: sql.to_owned() });
            }
            (Some(id), .., Some((_, values))) => {
                let session = sessions.iter_mut().find(|session| session.id == id);
                let last = session.and_then(|session| session.sent.last_mut()).unwrap();
                last.sql = with_values_filled_in(&last.sql, values);
            }
            _ => assert!(!line.contains("sbtest"), "not understood: {line}"),
        }
    }
    sessions
}

fn add(sessions: &mut Vec<Session>, id: &str, sent: Sent) {
    match sessions.iter_mut().find(|session| session.id == id) {
        Some(session) => session.sent.push(sent),
        None => sessions.push(Session { id: id.to_owned(), sent: vec![sent] }),
    }
}

/// Fills in parameter values: `... id=$1` with `$1 = '5', $2 = 'x'` becomes `... id='5'`.
fn with_values_filled_in(sql: &str, values: &str) -> String {
    let values: Vec<&str> = values.split(", $").map(|value| value.split_once(" = ").unwrap().1).collect();
    let mut parts = sql.split('$');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.find(|c: char| !c.is_ascii_digit()).unwrap_or(part.len());
        let number: usize = part[..digits].parse().unwrap();
        out.push_str(values[number - 1]);
        out.push_str(&part[digits..]);
    }
    out
}

/// The parts of a statement that match a shape's placeholders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fit {
    /// Number of `sbtestN`; 0 where the shape has none.
    pub(crate) table: u32,
    /// Numbers and texts. Texts are without their quotes.
    pub(crate) values: Vec<String>,
}

/// Matches the whole of `sql` against `shape`. In a shape, `?` is a number or a quoted text,
/// `(?*10)` a list of ten, and `sbtestN` any table.
pub(crate) fn fit(shape: &str, sql: &str) -> Option<Fit> {
    let shape = spelt_out(shape);
    let (mut shape, mut rest) = (shape.as_str(), sql);
    let mut fit = Fit { table: 0, values: Vec::new() };
    loop {
        let Some(first) = shape.chars().next() else { return rest.is_empty().then_some(fit) };
        if let Some(after) = shape.strip_prefix("sbtestN") {
            let (digits, left) = number(rest.strip_prefix("sbtest")?)?;
            fit.table = digits.parse().ok()?;
            (shape, rest) = (after, left);
        } else if first == '?' {
            let (value, left) = match rest.strip_prefix('\'') {
                Some(quoted) => quoted.split_once('\'')?,
                None => number(rest)?,
            };
            fit.values.push(value.to_owned());
            (shape, rest) = (&shape[1..], left);
        } else {
            rest = rest.strip_prefix(first)?;
            shape = &shape[first.len_utf8()..];
        }
    }
}

/// Splits leading digits, with their sign, from the rest.
fn number(text: &str) -> Option<(&str, &str)> {
    let sign = usize::from(text.starts_with('-'));
    let digits = text[sign..].bytes().take_while(u8::is_ascii_digit).count();
    (digits > 0).then(|| text.split_at(sign + digits))
}

fn spelt_out(shape: &str) -> String {
    let Some((before, rest)) = shape.split_once("(?*") else { return shape.to_owned() };
    let (count, after) = rest.split_once(')').unwrap();
    format!("{before}({}){after}", vec!["?"; count.parse().unwrap()].join(", "))
}

/// The first file below `folder` that is `wanted`.
pub(crate) fn find(folder: &Path, wanted: &dyn Fn(&Path) -> bool) -> Option<PathBuf> {
    for entry in std::fs::read_dir(folder).ok()?.flatten() {
        let path = entry.path();
        if path.is_dir() {
            if let Some(found) = find(&path, wanted) {
                return Some(found);
            }
        } else if wanted(&path) {
            return Some(path);
        }
    }
    None
}

#[test]
fn shapes_fit_statements_to_the_last_character_or_not_at_all() {
    let values = |shape: &str, sql: &str| fit(shape, sql).map(|fit| (fit.table, fit.values.join(" ")));
    assert_eq!(
        values(
            "UPDATE sbtestN SET c=? WHERE id IN (?*2)",
            "UPDATE sbtest12 SET c='1-2' WHERE id IN (3, '4')"
        ),
        Some((12, "1-2 3 4".to_owned()))
    );
    let of = "SELECT c FROM sbtestN WHERE id IN (?*2)";
    for other in [
        "SELECT c FROM sbtest1 WHERE id IN (3)",
        "SELECT c FROM sbtest1 WHERE id IN (3, 4, 5)",
        "SELECT c FROM sbtest1 WHERE id IN (3, 4) LIMIT 1",
        "SELECT id FROM sbtest1 WHERE id IN (3, 4)",
    ] {
        assert_eq!(fit(of, other), None, "{other}");
    }
    assert_eq!(values("UPDATE sbtestN SET k=k+1 WHERE id=?", "UPDATE sbtest1 SET k=k+2 WHERE id=1"), None);
    assert_eq!(with_values_filled_in("a=$2 AND b=$1", "$1 = '5', $2 = '1-2'"), "a='1-2' AND b='5'");
}
