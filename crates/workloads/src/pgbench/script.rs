//! Parses scripts of pgbench: SQL up to `;`, and commands that begin with a backslash.

use super::expression::Expression;
use super::variables::{Names, invalid_name, is_name, is_name_character, name_length};
use crate::pgbench::expression::expression;
use crate::pgbench::variables::Value;

/// The error for a COPY whose rows would go over the connection. It begins as pgbench's message
/// does.
pub(crate) const NO_COPY: &str =
    "COPY is not supported in pgbench, aborting; load rows with INSERT, or before the run";

#[derive(Debug, Clone)]
pub(crate) struct ScriptCommand {
    /// Line of its first character, from 1.
    pub(crate) line: u32,
    /// The text as it is in the script.
    pub(crate) text: String,
    pub(crate) action: Action,
}

#[derive(Debug, Clone)]
pub(crate) enum Action {
    Sql(Sql),
    Set(usize, Expression),
    /// Sleeps for this number of units. The second value is the number of microseconds in a unit.
    Sleep(Expression, u64),
    /// Continues at this command unless the condition holds.
    Unless(Expression, usize),
    /// A branch is over, so the script continues at this command.
    Jump(usize),
    StartPipeline,
    EndPipeline,
    SyncPipeline,
    /// Does nothing. It stands for `\else` and `\endif` in the list of commands.
    Nothing,
}

#[derive(Debug, Clone)]
pub(crate) struct Sql {
    /// Literal text, and the variables in between.
    pub(crate) pieces: Vec<Piece>,
    /// Where it is set, the values of its rows become variables.
    pub(crate) keep: Option<Keep>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    Text(String),
    Variable(usize),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Keep {
    pub(crate) prefix: String,
    /// Whether the command is `\aset`, which keeps the rows of each statement in the text that has
    /// rows. With `\gset` only the last statement counts, and it must have one row.
    pub(crate) all: bool,
}

/// Parses the commands of a script in the order in which they run. Variables get indexes into
/// `names`.
pub(crate) fn read(text: &str, names: &mut Names) -> Result<Vec<ScriptCommand>, String> {
    let mut reader = ScriptReader { names, commands: Vec::new(), open: Vec::new(), pipeline: None };
    let (mut rest, mut line) = (text, 1);
    while !rest.is_empty() {
        let (sql, used) = sql(rest);
        let lead = sql.len() - uncommented(&sql).len();
        let first = line + lines(&sql[..lead]);
        reader.sql(uncommented(&sql), first).map_err(|problem| format!("line {first}: {problem}"))?;
        line += lines(&rest[..used]);
        rest = &rest[used..];
        if let Some(after) = rest.strip_prefix('\\') {
            let (command, used) = logical_line(after);
            reader.command(command.trim(), line).map_err(|problem| format!("line {line}: {problem}"))?;
            line += lines(&after[..used]);
            rest = &after[used..];
        }
    }
    reader.end()
}

fn lines(text: &str) -> u32 {
    text.matches('\n').count() as u32
}

/// Returns the text without blanks and whole comments in front.
fn uncommented(text: &str) -> &str {
    let mut rest = text.trim_start();
    while rest.starts_with("--") {
        rest = rest.split_once('\n').map_or("", |(_, rest)| rest).trim_start();
    }
    rest
}

/// Returns the text up to the end of the line. A backslash at the end continues with the next line.
fn logical_line(text: &str) -> (String, usize) {
    let (mut line, mut used) = (String::new(), 0);
    loop {
        let rest = &text[used..];
        let end = rest.find('\n').unwrap_or(rest.len());
        let part = rest[..end].trim_end_matches('\r');
        used += (end + 1).min(rest.len());
        match part.strip_suffix('\\') {
            Some(part) if end < rest.len() => {
                line.push_str(part);
                line.push(' ');
            }
            _ => {
                line.push_str(part);
                return (line, used);
            }
        }
    }
}

/// The part of SQL in which a character is.
#[derive(Debug, Clone, Copy, PartialEq)]
enum LexerState<'a> {
    Plain,
    /// In quotes of this character. The flag says whether a backslash escapes the next character.
    Quoted(char, bool),
    Dollar(&'a str),
    Line,
    Block(u32),
}

/// Steps through SQL, and recognizes quotes, comments and brackets.
struct Lexer<'a> {
    text: &'a str,
    at: usize,
    state: LexerState<'a>,
    /// Number of brackets that are open.
    depth: u32,
}

impl<'a> Lexer<'a> {
    const fn new(text: &'a str) -> Self {
        Self { text, at: 0, state: LexerState::Plain, depth: 0 }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// Takes the next character, or a whole symbol such as `/*`. Returns the text that it
    /// took.
    fn step(&mut self) -> Option<&'a str> {
        let rest = self.rest();
        let character = rest.chars().next()?;
        let length = match self.state {
            LexerState::Plain => self.plain(character),
            LexerState::Quoted(quote, escapes) => {
                if character == quote {
                    self.state = LexerState::Plain;
                }
                let hidden = if character == '\\' && escapes { rest[1..].chars().next() } else { None };
                character.len_utf8() + hidden.map_or(0, char::len_utf8)
            }
            LexerState::Dollar(tag) if rest.starts_with(tag) => self.enters(LexerState::Plain, tag.len()),
            LexerState::Line if character == '\n' => self.enters(LexerState::Plain, 1),
            LexerState::Block(depth) if rest.starts_with("/*") => {
                self.enters(LexerState::Block(depth + 1), 2)
            }
            LexerState::Block(1) if rest.starts_with("*/") => self.enters(LexerState::Plain, 2),
            LexerState::Block(depth) if rest.starts_with("*/") => {
                self.enters(LexerState::Block(depth - 1), 2)
            }
            LexerState::Dollar(_) | LexerState::Line | LexerState::Block(_) => character.len_utf8(),
        };
        self.at += length;
        Some(&rest[..length])
    }

    const fn enters(&mut self, state: LexerState<'a>, length: usize) -> usize {
        self.state = state;
        length
    }

    /// Handles a character outside of quotes and comments. Returns the number of bytes that it
    /// takes.
    fn plain(&mut self, character: char) -> usize {
        let (before, rest) = self.text.split_at(self.at);
        match character {
            '\'' | '"' => {
                self.enters(LexerState::Quoted(character, character == '\'' && begins_escaped(before)), 1)
            }
            '(' => {
                self.depth += 1;
                1
            }
            ')' => {
                self.depth = self.depth.saturating_sub(1);
                1
            }
            '$' => match dollar_tag(before, rest) {
                Some(tag) => self.enters(LexerState::Dollar(tag), tag.len()),
                None => 1,
            },
            '-' if rest.starts_with("--") => self.enters(LexerState::Line, 1),
            '/' if rest.starts_with("/*") => self.enters(LexerState::Block(1), 2),
            _ => character.len_utf8(),
        }
    }
}

/// Returns the statement that `text` begins with, and how much of the text it takes. It goes up to
/// `;`, which belongs to it, or to a backslash, which does not.
fn sql(text: &str) -> (String, usize) {
    let mut lexer = Lexer::new(text);
    let mut out = String::new();
    loop {
        let (rest, is_plain) = (lexer.rest(), lexer.state == LexerState::Plain);
        if is_plain && (rest.starts_with("\\;") || rest.starts_with("\\:")) {
            // After a backslash, `;` does not end the text, which then has several statements.
            out.push_str(&rest[1..2]);
            lexer.at += 2;
            continue;
        }
        if is_plain && rest.starts_with('\\') {
            return (out, lexer.at);
        }
        let ends = is_plain && lexer.depth == 0 && rest.starts_with(';');
        let Some(piece) = lexer.step() else { return (out, text.len()) };
        out.push_str(piece);
        if ends {
            return (out, lexer.at);
        }
    }
}

/// Returns whether `text` contains a COPY whose rows would go over the connection.
fn has_copy_over_connection(text: &str) -> bool {
    let mut lexer = Lexer::new(text);
    let mut plain = String::new();
    while let Some(piece) = lexer.step() {
        let is_plain = lexer.state == LexerState::Plain && lexer.depth == 0;
        plain.push_str(if is_plain { piece } else { " " });
        while lexer.state != LexerState::Plain && lexer.step().is_some() {}
    }
    plain.split(';').any(|statement| {
        let words = statement.split(|character| !is_word(character)).filter(|word| !word.is_empty());
        let words: Vec<String> = words.map(str::to_ascii_lowercase).collect();
        let goes = |[way, end]: [&str; 2]| words.windows(2).any(|pair| pair[0] == way && pair[1] == end);
        words.first().is_some_and(|first| first == "copy")
            && (goes(["to", "stdout"]) || goes(["from", "stdin"]))
    })
}

fn is_word(character: char) -> bool {
    is_name_character(character) || character == '$'
}

/// Returns whether the quote after `before` belongs to an `E` that is a word of its own.
fn begins_escaped(before: &str) -> bool {
    let mut characters = before.chars().rev();
    matches!(characters.next(), Some('e' | 'E')) && !characters.next().is_some_and(is_word)
}

/// Returns `$$` or `$tag$` at the front of `rest`.
fn dollar_tag<'a>(before: &str, rest: &'a str) -> Option<&'a str> {
    if before.chars().next_back().is_some_and(is_word)
        || rest[1..].starts_with(|character: char| character.is_ascii_digit())
    {
        return None;
    }
    let end = 1 + rest[1..].find(|character| character == '$' || !is_name_character(character))?;
    rest[end..].starts_with('$').then(|| &rest[..=end])
}

/// An `\if` whose `\endif` has not come yet.
struct OpenChoice {
    /// Index of the last `\if` or `\elif`, until it is known where the script continues if its
    /// condition is false.
    condition: Option<usize>,
    /// Indexes of the jumps at the ends of branches, which continue after `\endif`.
    ends: Vec<usize>,
}

struct ScriptReader<'a> {
    names: &'a mut Names,
    commands: Vec<ScriptCommand>,
    open: Vec<OpenChoice>,
    /// The line where the open pipeline began.
    pipeline: Option<u32>,
}

impl ScriptReader<'_> {
    fn push(&mut self, line: u32, text: &str, action: Action) {
        self.commands.push(ScriptCommand { line, text: text.to_owned(), action });
    }

    fn sql(&mut self, text: &str, line: u32) -> Result<(), String> {
        if has_copy_over_connection(text) {
            return Err(NO_COPY.to_owned());
        }
        if !text.is_empty() {
            let pieces = pieces(text, self.names);
            self.push(line, text.trim_end(), Action::Sql(Sql { pieces, keep: None }));
        }
        Ok(())
    }

    fn command(&mut self, text: &str, line: u32) -> Result<(), String> {
        let (name, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let rest = rest.trim();
        let shown = format!("\\{text}");
        let alone =
            |action| if rest.is_empty() { Ok(action) } else { Err(format!("\\{name} takes no arguments")) };
        let action = match name.to_ascii_lowercase().as_str() {
            "set" => {
                let (variable, value) =
                    rest.split_once(char::is_whitespace).ok_or("\\set takes a variable and an expression")?;
                check_name(variable)?;
                let value = expression(value, self.names)?;
                Action::Set(self.names.index(variable), value)
            }
            "sleep" => self.sleep(rest)?,
            "if" => {
                self.open.push(OpenChoice { condition: Some(self.commands.len()), ends: Vec::new() });
                Action::Unless(self.condition(name, rest)?, 0)
            }
            "elif" => {
                self.end_branch(name)?;
                let at = self.commands.len();
                let condition = self.condition(name, rest)?;
                if let Some(open) = self.open.last_mut() {
                    open.condition = Some(at);
                }
                Action::Unless(condition, 0)
            }
            "else" => {
                let nothing = alone(Action::Nothing)?;
                self.end_branch(name)?;
                nothing
            }
            "endif" => {
                let nothing = alone(Action::Nothing)?;
                let open = self.open.pop().ok_or("\\endif without matching \\if")?;
                let here = self.commands.len();
                open.condition.into_iter().chain(open.ends).for_each(|from| self.set_target(from, here));
                nothing
            }
            "gset" | "aset" => return self.keep(name, rest),
            "startpipeline" => {
                if self.pipeline.replace(line).is_some() {
                    return Err("\\startpipeline within a pipeline".to_owned());
                }
                alone(Action::StartPipeline)?
            }
            "syncpipeline" if self.pipeline.is_some() => alone(Action::SyncPipeline)?,
            "endpipeline" if self.pipeline.take().is_some() => alone(Action::EndPipeline)?,
            "syncpipeline" | "endpipeline" => return Err(format!("\\{name} without \\startpipeline")),
            "setshell" | "shell" => {
                let why = "a script starts no programs: the time they take is that of the client's machine";
                return Err(format!("\\{name} is refused: {why}"));
            }
            _ => return Err(format!("invalid command \\{name}")),
        };
        self.push(line, &shown, action);
        Ok(())
    }

    fn condition(&mut self, name: &str, text: &str) -> Result<Expression, String> {
        if text.is_empty() {
            return Err(format!("\\{name} takes an expression"));
        }
        expression(text, self.names)
    }

    /// Handles `\elif` or `\else`. At the end of the branch before it, the script continues after
    /// `\endif`. If that branch's condition is false, the script continues after this command.
    fn end_branch(&mut self, name: &str) -> Result<(), String> {
        let at = self.commands.len();
        let open = self.open.last_mut().ok_or_else(|| format!("\\{name} without matching \\if"))?;
        let condition = open.condition.take().ok_or_else(|| format!("\\{name} after \\else"))?;
        open.ends.push(at);
        self.push(0, "", Action::Jump(0));
        self.set_target(condition, at + 1);
        Ok(())
    }

    fn set_target(&mut self, from: usize, to: usize) {
        if let Some(Action::Unless(_, target) | Action::Jump(target)) =
            self.commands.get_mut(from).map(|command| &mut command.action)
        {
            *target = to;
        }
    }

    fn sleep(&mut self, text: &str) -> Result<Action, String> {
        let mut words = text.split_whitespace();
        let amount = words.next().ok_or("\\sleep takes a time")?;
        // The unit may follow the number without a blank.
        let digits = amount
            .find(|character: char| character.is_ascii_alphabetic())
            .filter(|_| !amount.starts_with(':'));
        let (amount, own) = amount.split_at(digits.unwrap_or(amount.len()));
        let unit = if own.is_empty() { words.next().unwrap_or("s") } else { own };
        let unit_us = match unit {
            "us" => 1,
            "ms" => 1_000,
            "s" => 1_000_000,
            other => return Err(format!("unrecognized time unit \"{other}\", must be us, ms or s")),
        };
        if let Some(more) = words.next() {
            return Err(format!("\\sleep takes a time and a unit, not {more}"));
        }
        let amount = match amount.strip_prefix(':') {
            Some(name) => {
                check_name(name)?;
                Expression::Variable(self.names.index(name))
            }
            None => {
                let fixed = amount.parse().map_err(|_| format!("invalid time \"{amount}\" of \\sleep"))?;
                Expression::Constant(Value::Int(fixed))
            }
        };
        Ok(Action::Sleep(amount, unit_us))
    }

    fn keep(&mut self, name: &str, prefix: &str) -> Result<(), String> {
        if self.pipeline.is_some() {
            return Err(format!("\\{name} is not allowed in a pipeline"));
        }
        if !prefix.is_empty() {
            check_name(prefix)?;
        }
        let last = self.commands.last_mut().map(|command| &mut command.action);
        let Some(Action::Sql(sql)) =
            last.filter(|action| matches!(action, Action::Sql(Sql { keep: None, .. })))
        else {
            return Err(format!("\\{name} must follow an SQL command"));
        };
        sql.keep = Some(Keep { prefix: prefix.to_owned(), all: name.eq_ignore_ascii_case("aset") });
        Ok(())
    }

    fn end(self) -> Result<Vec<ScriptCommand>, String> {
        if !self.open.is_empty() {
            return Err("\\if without matching \\endif".to_owned());
        }
        if let Some(line) = self.pipeline {
            return Err(format!("line {line}: \\startpipeline without \\endpipeline"));
        }
        if self.commands.is_empty() {
            return Err("it has no commands".to_owned());
        }
        Ok(self.commands)
    }
}

fn check_name(name: &str) -> Result<(), String> {
    if is_name(name) { Ok(()) } else { Err(invalid_name(name)) }
}

/// Divides a text into literal text and variables, which are written `:name`. `::` is a cast.
fn pieces(text: &str, names: &mut Names) -> Vec<Piece> {
    let (mut pieces, mut literal, mut rest) = (Vec::new(), String::new(), text);
    while let Some(colon) = rest.find(':') {
        literal.push_str(&rest[..colon]);
        let after = &rest[colon + 1..];
        let length = name_length(after);
        if length == 0 {
            let colons = rest[colon..].find(|character| character != ':').unwrap_or(rest.len() - colon);
            literal.push_str(&rest[colon..colon + colons]);
            rest = &rest[colon + colons..];
            continue;
        }
        if !literal.is_empty() {
            pieces.push(Piece::Text(std::mem::take(&mut literal)));
        }
        pieces.push(Piece::Variable(names.index(&after[..length])));
        rest = &after[length..];
    }
    literal.push_str(rest);
    if !literal.is_empty() {
        pieces.push(Piece::Text(literal));
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::super::variables::Variables;
    use super::*;

    fn read(text: &str) -> Result<Vec<String>, String> {
        let mut names = Names::default();
        let commands = super::read(text, &mut names)?;
        let variables = Variables::new(names.into());
        let shown = |command: &ScriptCommand| {
            let action = match &command.action {
                Action::Sql(sql) => {
                    let piece = |piece: &Piece| match piece {
                        Piece::Text(text) => text.clone(),
                        Piece::Variable(index) => format!("<{}>", variables.name(*index)),
                    };
                    let text: String = sql.pieces.iter().map(piece).collect();
                    let keep = sql.keep.as_ref();
                    let keep =
                        keep.map_or(String::new(), |keep| format!(" keep {} {}", keep.prefix, keep.all));
                    format!("{text}{keep}")
                }
                Action::Set(index, _) => format!("set {}", variables.name(*index)),
                Action::Unless(_, to) => format!("unless -> {to}"),
                Action::Jump(to) => format!("jump -> {to}"),
                other => format!("{other:?}"),
            };
            format!("{}: {action}", command.line)
        };
        Ok(commands.iter().map(shown).collect())
    }

    #[test]
    fn statements_end_at_semicolons_outside_of_quotes_brackets_and_comments() {
        let text = "-- a comment\n\\set x 1\nSELECT ';', \";\", E'\\';', $a$;$a$, (1;2) /* ; /* ; */ ; */ -- ;\n;\n SELECT :x::int, ':x', a[1:2], a[:x:_é1];SELECT 1 \\; SELECT 2";
        assert_eq!(
            read(text).unwrap(),
            [
                "2: set x",
                "3: SELECT ';', \";\", E'\\';', $a$;$a$, (1;2) /* ; /* ; */ ; */ -- ;\n;",
                "5: SELECT <x>::int, '<x>', a[1:2], a[<x><_é1>];",
                "5: SELECT 1 ; SELECT 2"
            ]
        );
    }

    #[test]
    fn times_and_casts_are_not_variables() {
        let text = "SELECT TIMESTAMP '2026-11-28 12:34:56', '12:34'::timestamp, ::1, x:::y, :x1";
        let found = "1: SELECT TIMESTAMP '2026-11-28 12:34:56', '12:34'::timestamp, ::1, x:::y, <x1>";
        assert_eq!(read(text).unwrap(), [found]);
    }

    #[test]
    fn a_copy_over_the_connection_is_refused_with_its_line() {
        for copy in [
            "COPY (SELECT 1) TO STDOUT;",
            "copy t (a, b)\n  from /* here */ stdin with (format csv);",
            "SELECT 1 \\; COPY t TO STDOUT",
        ] {
            let text = format!("SELECT 1;\n-- rows\n\n{copy}");
            assert_eq!(read(&text).unwrap_err(), format!("line 4: {NO_COPY}"), "{copy}");
        }
        for other in [
            "COPY t TO '/tmp/stdout';",
            "COPY (SELECT 'to stdout' /* to stdout */) TO '/tmp/x' -- to stdout",
            "SELECT copy, a AS to, stdout FROM stdin;",
            "COPY \"from stdin\" FROM PROGRAM 'cat';",
        ] {
            assert!(read(other).is_ok(), "{other}");
        }
    }

    #[test]
    fn conditions_become_jumps() {
        let text = "\\if :a\nSELECT 1;\n\\elif :b\nSELECT 2;\n\\else\n\\if 0\nSELECT 3;\n\\endif\n\\endif\nSELECT 4;";
        assert_eq!(
            read(text).unwrap(),
            [
                "1: unless -> 3",
                "2: SELECT 1;",
                "0: jump -> 10",
                "3: unless -> 6",
                "4: SELECT 2;",
                "0: jump -> 10",
                "5: Nothing",
                "6: unless -> 9",
                "7: SELECT 3;",
                "8: Nothing",
                "9: Nothing",
                "10: SELECT 4;"
            ]
        );
    }

    #[test]
    fn rows_become_variables_and_a_backslash_continues_a_line() {
        let text = "SELECT 1 AS a \\gset p_\nSELECT 2 AS b;\n\\aset\n\\set x \\\n 1 + \\\n 2\n\\sleep 10 ms\n\\sleep :x us\n\\sleep 3s\n\\startpipeline\nSELECT 3;\n\\syncpipeline\n\\endpipeline";
        assert_eq!(
            read(text).unwrap(),
            [
                "1: SELECT 1 AS a  keep p_ false",
                "2: SELECT 2 AS b; keep  true",
                "4: set x",
                "7: Sleep(Constant(Int(10)), 1000)",
                "8: Sleep(Variable(0), 1)",
                "9: Sleep(Constant(Int(3)), 1000000)",
                "10: StartPipeline",
                "11: SELECT 3;",
                "12: SyncPipeline",
                "13: EndPipeline"
            ]
        );
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        for (text, problem) in [
            ("", "it has no commands"),
            ("\\if 1", "\\if without matching \\endif"),
            ("\\endif", "line 1: \\endif without matching \\if"),
            ("SELECT 1;\n\\else", "line 2: \\else without matching \\if"),
            ("\\if 1\n\\else\n\\elif 1\n\\endif", "line 3: \\elif after \\else"),
            ("\\gset", "line 1: \\gset must follow an SQL command"),
            ("\\set x", "line 1: \\set takes a variable and an expression"),
            (
                "\\set a-b 1",
                "line 1: invalid variable name: \"a-b\"; use letters, digits and _, and a digit not first",
            ),
            (
                "\n\\set 1x 5\nSELECT :1x;",
                "line 2: invalid variable name: \"1x\"; use letters, digits and _, and a digit not first",
            ),
            (
                "\\sleep :1x us",
                "line 1: invalid variable name: \"1x\"; use letters, digits and _, and a digit not first",
            ),
            (
                "SELECT 1 AS a \\gset 1_",
                "line 1: invalid variable name: \"1_\"; use letters, digits and _, and a digit not first",
            ),
            ("\\set x :1x", "line 1: unexpected character \":\""),
            ("\\nix", "line 1: invalid command \\nix"),
            ("\\sleep 1 h", "line 1: unrecognized time unit \"h\", must be us, ms or s"),
            (
                "\n\\shell date",
                "line 2: \\shell is refused: a script starts no programs: the time they take is that of the client's machine",
            ),
            ("\\startpipeline\nSELECT 1", "line 1: \\startpipeline without \\endpipeline"),
            ("\\endpipeline", "line 1: \\endpipeline without \\startpipeline"),
            (
                "\\startpipeline\nSELECT 1 AS a \\gset\n\\endpipeline",
                "line 2: \\gset is not allowed in a pipeline",
            ),
        ] {
            assert_eq!(read(text).unwrap_err(), problem, "{text}");
        }
    }
}
