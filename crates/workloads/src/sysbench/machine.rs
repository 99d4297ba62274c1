//! Runs the Lua state of one script, with the script's sessions. It runs until an event is over,
//! and has the database do what the script asks for.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use dbdyno_db::{Answer, KeySource, Param, Statement};
use dbdyno_loadgen::{Failure, StatementDone};
use dbdyno_record::ErrorClass;
use mlua::{ChunkMode, Function, Lua, LuaOptions, StdLib, Table, Thread};

use crate::Philox;
use crate::connection::{Connection, of_script};
use crate::sysbench::SysbenchSetup;
use crate::sysbench::draws::Draw;
use crate::sysbench::files::SysbenchScript;
use crate::sysbench::host::ScriptHost;
use crate::sysbench::options::option_table;
use crate::sysbench::request::{Reply, RequestRefusal, ScriptRequest, Yielded};

/// The garbage of a state is collected when its memory has grown to this, in percent of what was in
/// use after the last collection.
const GARBAGE_PERCENT: i32 = 130;

/// How long an event tries to open a lost connection again, where the plan ignores lost
/// connections.
const REOPEN_TIMEOUT: Duration = Duration::from_secs(1);

/// Kinds of statements, by their index.
pub(crate) const KINDS: [&str; 7] = ["read", "write", "other", "connect", "script", "reconnect", "unchanged"];
const READ: usize = 0;
const WRITE: usize = 1;
const OTHER: usize = 2;
const LOGIN: usize = 3;
const SCRIPT: usize = 4;
/// A lost connection was opened again, because the plan ignores lost connections.
const RECONNECT: usize = 5;
/// A statement that should change rows has changed none. sysbench counts it under `other`.
const UNCHANGED: usize = 6;

/// How an event, or a whole coroutine, has ended.
#[derive(Debug, PartialEq)]
pub(crate) enum EventOutcome {
    /// The event is over, and the coroutine waits for the next one.
    Next,
    /// The script wants no more events.
    Ended,
    /// The event must begin again.
    Restart {
        code: String,
        message: String,
    },
    Failed(Failure),
}

/// The results of statements since the last [`Machine::clear`].
#[derive(Debug, Default)]
pub(crate) struct ScriptTally {
    pub(crate) statements: Vec<StatementDone>,
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
    /// Time in the script itself.
    script: Duration,
}

/// The identity of a state: its connection's number, its command and its stream of draws.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StateIdentity<'a> {
    pub(crate) tid: u32,
    /// The value of `sysbench.opt.threads`.
    pub(crate) threads: u32,
    /// The value of `sysbench.cmdline.command`.
    pub(crate) command: &'a str,
    pub(crate) stream: Philox,
}

/// A statement that was answered.
struct Answered {
    has_rows: bool,
    /// Whether the statement should change rows.
    changes: bool,
    answer: Answer,
}

/// A connection that the script has opened.
struct MachineLink {
    connection: Connection,
    /// The prepared statements. The flag says whether a statement should change rows.
    statements: Vec<(Statement, bool)>,
}

pub(crate) struct Machine {
    pub(crate) lua: Lua,
    /// The functions of the API's parts.
    pub(crate) api: Table,
    pub(crate) host: Rc<ScriptHost>,
    links: Vec<Option<MachineLink>>,
    params: Vec<Param>,
    thread: Option<Thread>,
    tally: ScriptTally,
    /// The failure of the last statement that failed.
    failure: Option<Failure>,
}

impl Machine {
    /// Returns a new state in which the script has been loaded, and its options set.
    pub(crate) fn new(
        setup: &Arc<SysbenchSetup>,
        script: &SysbenchScript,
        identity: StateIdentity<'_>,
    ) -> Result<Self, String> {
        let own = Self::loaded(setup, script, identity)?;
        own.set_options(identity.threads)?;
        // Without this, each of thousands of states would keep what loading has left until its
        // memory has doubled.
        let collect = || own.lua.gc_collect().and_then(|()| own.lua.gc_collect());
        collect().map_err(|error| error_text(&error))?;
        own.lua.gc_set_pause(GARBAGE_PERCENT);
        Ok(own)
    }

    /// Returns a new state in which the script has been loaded. It has no options yet.
    pub(crate) fn loaded(
        setup: &Arc<SysbenchSetup>,
        script: &SysbenchScript,
        identity: StateIdentity<'_>,
    ) -> Result<Self, String> {
        let host = Rc::new(ScriptHost {
            setup: Arc::clone(setup),
            script: script.clone(),
            tid: identity.tid,
            command: (!identity.command.is_empty()).then(|| identity.command.to_owned()),
            draws: RefCell::new(Draw::new(identity.stream, setup.options.distribution())),
            rows: RefCell::default(),
            counters: Default::default(),
            resumed: Cell::new(Instant::now()),
            limit: setup.options.longest_stretch(),
            over: RefCell::default(),
        });
        let (lua, api) = host.loaded().map_err(|error| error_text(&error))?;
        Ok(Self {
            lua,
            api,
            host,
            links: Vec::new(),
            params: Vec::new(),
            thread: None,
            tally: ScriptTally::default(),
            failure: None,
        })
    }

    /// Sets the script's options as the plan says. The error says what is wrong with one of them.
    pub(crate) fn set_options(&self, threads: u32) -> Result<(), String> {
        let set = || -> mlua::Result<Option<String>> {
            let builtin = option_table(&self.lua, &self.host.setup, threads)?;
            let given = self.lua.create_table()?;
            for (name, value) in &self.host.setup.options.options {
                given.set(name.as_str(), plain(&self.lua, value)?)?;
            }
            let (set, _) = self.options_part()?;
            let (name, wrong): (Option<String>, Option<String>) = set.call((builtin, given))?;
            Ok(name.and(wrong))
        };
        match set() {
            Ok(None) => Ok(()),
            Ok(Some(wrong)) => Err(wrong),
            Err(error) => Err(error_text(&error)),
        }
    }

    /// Returns a function that sets options, and one that returns the script's commands and
    /// options.
    pub(crate) fn options_part(&self) -> mlua::Result<(Function, Function)> {
        ApiPart::Options.function(&self.lua)?.call(())
    }

    /// Returns the results of statements since the last [`Machine::clear`], with the script's own
    /// time.
    pub(crate) fn tally(&mut self) -> &mut ScriptTally {
        let ScriptTally { statements, script, .. } = &mut self.tally;
        if !script.is_zero() {
            let took = std::mem::take(script);
            statements.push(StatementDone { index: SCRIPT, name: KINDS[SCRIPT], took: Some(took), rows: 0 });
        }
        &mut self.tally
    }

    /// Resets the counts.
    pub(crate) fn clear(&mut self) {
        self.tally.statements.clear();
        (self.tally.rows, self.tally.bytes, self.tally.script) = (0, 0, Duration::ZERO);
    }

    /// Runs the API's function `name` with `argument` to its end, or to the first event.
    pub(crate) async fn start(&mut self, name: &str, argument: Reply) -> EventOutcome {
        let thread = self.api.get::<Function>(name).and_then(|function| self.lua.create_thread(function));
        match thread {
            Ok(thread) => self.thread = Some(thread),
            Err(error) => return EventOutcome::Failed(of_script(error_text(&error))),
        }
        self.resume(argument).await
    }

    /// Continues after a wait, until the event is over.
    pub(crate) async fn resume(&mut self, mut reply: Reply) -> EventOutcome {
        loop {
            let began = Instant::now();
            self.host.resumed.set(began);
            let Some(thread) = &self.thread else { return EventOutcome::Ended };
            // The frequent replies are passed without taking memory.
            let yielded = match reply {
                Reply::Number(number) => thread.resume::<Yielded>(number),
                Reply::Pair(first, second) => thread.resume((first, second)),
                Reply::Flag(flag) => thread.resume(flag),
                reply => thread.resume(reply),
            };
            let request = yielded.and_then(|values| ScriptRequest::read(values, &mut self.params));
            let sent = Instant::now();
            self.tally.script += sent.duration_since(began);
            reply = match request {
                Err(error) => return EventOutcome::Failed(self.judged(false, error_text(&error))),
                Ok(ScriptRequest::Next) => return EventOutcome::Next,
                Ok(ScriptRequest::Ended | ScriptRequest::Returned) => return EventOutcome::Ended,
                Ok(ScriptRequest::Restart { code, message }) => {
                    return EventOutcome::Restart { code, message };
                }
                Ok(ScriptRequest::Failed { is_sql, text, trace }) => {
                    return EventOutcome::Failed(self.judged(is_sql, with_trace(&text, &trace)));
                }
                Ok(ScriptRequest::Sleep(us)) => {
                    let pause = Duration::try_from_secs_f64(us.max(0.0) / 1e6).unwrap_or_default();
                    tokio::time::sleep(pause).await;
                    Reply::Nothing
                }
                Ok(request) => match self.perform(request, sent).await {
                    Ok(reply) => reply,
                    Err((connection, failure)) => Reply::Failed(self.refused(connection, failure).await),
                },
            };
        }
    }

    /// Returns the failure of the event in which the script raised an error.
    fn judged(&mut self, is_sql: bool, message: String) -> Failure {
        const FULL: &str = "not enough memory";
        if message.contains(FULL) {
            self.host.is_full();
        }
        if let Some(text) = self.host.over.borrow().clone() {
            return of_script(format!("{text}: {message}"));
        }
        match self.failure.take().filter(|_| is_sql) {
            Some(failure) => Failure { message, ..failure },
            None => Failure::new(ErrorClass::Refused, "lua", message),
        }
    }

    /// Has the database do what `request` asks for.
    async fn perform(&mut self, request: ScriptRequest, sent: Instant) -> Result<Reply, (usize, Failure)> {
        match request {
            ScriptRequest::Execute(number, id) => {
                let Some(Some(link)) = self.links.get_mut(number) else { return Err((number, closed())) };
                let Some(&(statement, changes)) = link.statements.get(id as usize) else {
                    return Err((number, closed()));
                };
                let answer = link.connection.execute(statement, &self.params).await;
                let answer = answer.map_err(|failure| (number, failure))?;
                let has_rows = statement.columns > 0;
                self.count(Answered { has_rows, changes, answer }, sent);
                Ok(Reply::Number(if has_rows { answer.rows as i64 } else { -1 }))
            }
            ScriptRequest::Query { connection, sql, counts_only, generation } => {
                let bytes = sql.as_bytes();
                let sql = String::from_utf8_lossy(&bytes);
                let reply = self.query(connection, &sql, counts_only, generation, sent).await;
                reply.map_err(|failure| (connection, failure))
            }
            ScriptRequest::Prepare(number, sql) => {
                let reply = self.prepare(number, &sql.to_string_lossy()).await;
                reply.map_err(|failure| (number, failure))
            }
            ScriptRequest::Connect(number) => {
                let number = number.unwrap_or(self.links.len());
                self.connect(number, sent).await.map_err(|failure| (number, failure))
            }
            ScriptRequest::Disconnect(number) => {
                if let Some(link) = self.links.get_mut(number).and_then(Option::take) {
                    link.connection.close().await;
                }
                Ok(Reply::Nothing)
            }
            ScriptRequest::Forget(number, id) => {
                let Some(Some(link)) = self.links.get_mut(number) else { return Ok(Reply::Nothing) };
                if let Some(&(statement, _)) = link.statements.get(id as usize) {
                    link.connection.forget(statement).await.map_err(|failure| (number, failure))?;
                }
                Ok(Reply::Nothing)
            }
            _ => Ok(Reply::Nothing),
        }
    }

    async fn query(
        &mut self,
        number: usize,
        sql: &str,
        counts_only: bool,
        generation: i64,
        sent: Instant,
    ) -> Result<Reply, Failure> {
        let has_table_keys =
            self.host.setup.context.database_server.capabilities.key_source == KeySource::Table;
        let Some(Some(link)) = self.links.get_mut(number) else { return Err(closed()) };
        let reads = reads(sql);
        if reads && !counts_only {
            let rows = link.connection.rows(sql).await?;
            let bytes = rows.iter().flatten().flatten().map(|cell| cell.len() as u64).sum();
            let (count, columns) = (rows.len() as u64, rows.first().map_or(0, Vec::len) as i64);
            if let Some(kept) = self.host.rows.borrow_mut().get_mut(number) {
                (kept.generation, kept.rows) = (generation, rows.into());
            }
            let answer = Answer { rows: count, bytes, ..Answer::default() };
            self.count(Answered { has_rows: true, changes: false, answer }, sent);
            return Ok(Reply::Pair(count as i64, columns));
        }
        let answer = if has_table_keys {
            link.connection.query(in_table_keys(sql).as_bytes()).await?
        } else {
            link.connection.query(sql.as_bytes()).await?
        };
        let has_rows = reads || (answer.rows > 0 && answer.affected == 0);
        self.count(Answered { has_rows, changes: changes(sql), answer }, sent);
        Ok(Reply::Pair(if has_rows { answer.rows as i64 } else { -1 }, 0))
    }

    async fn prepare(&mut self, number: usize, sql: &str) -> Result<Reply, Failure> {
        /// The code of `ER_UNSUPPORTED_PS`, with which MySQL refuses to prepare a BEGIN.
        const UNSUPPORTED: &str = "1295";
        let Some(Some(link)) = self.links.get_mut(number) else { return Err(closed()) };
        match link.connection.prepare(sql).await {
            Ok(statement) => {
                link.statements.push((statement, changes(sql)));
                Ok(Reply::Pair(link.statements.len() as i64 - 1, statement.columns.into()))
            }
            Err(failure) if failure.code == UNSUPPORTED => Ok(Reply::Pair(-1, 0)),
            Err(failure) => Err(failure),
        }
    }

    async fn connect(&mut self, number: usize, sent: Instant) -> Result<Reply, Failure> {
        self.host.setup.asks.store(true, Ordering::Relaxed);
        let mut connection = Connection::new(&self.host.setup.context.database_server, "event");
        if self.links.len() <= number {
            self.links.resize_with(number + 1, || None);
            self.host.rows.borrow_mut().resize_with(number + 1, Default::default);
        }
        if let Some(link) = self.links[number].take() {
            link.connection.close().await;
        }
        connection.open().await?;
        self.links[number] = Some(MachineLink { connection, statements: Vec::new() });
        self.push(LOGIN, sent, 0);
        Ok(Reply::Number(number as i64))
    }

    /// Returns whether a transaction is open on one of the connections.
    pub(crate) fn in_transaction(&self) -> bool {
        self.links.iter().flatten().any(|link| link.connection.in_transaction())
    }

    fn count(&mut self, Answered { has_rows, changes, answer }: Answered, sent: Instant) {
        let index = match answer.affected {
            _ if has_rows => READ,
            1.. => WRITE,
            0 if changes => UNCHANGED,
            0 => OTHER,
        };
        let rows = if has_rows { answer.rows } else { answer.affected };
        self.tally.rows += rows;
        self.tally.bytes += answer.bytes;
        self.push(index, sent, rows);
    }

    fn push(&mut self, index: usize, sent: Instant, rows: u64) {
        let done = StatementDone { index, name: KINDS[index], took: Some(sent.elapsed()), rows };
        self.tally.statements.push(done);
    }

    /// Returns the answer that the script gets for a failed statement of connection `number`. An
    /// event that begins again does so outside of any transaction, and on a connection that exists.
    async fn refused(&mut self, number: usize, failure: Failure) -> RequestRefusal {
        let is_lost = failure.class == ErrorClass::Lost;
        let ignorable = self.host.setup.ignores(&failure);
        if ignorable && let Some(Some(link)) = self.links.get_mut(number) {
            let began = Instant::now();
            if is_lost {
                link.statements.clear();
                link.connection.leave().await;
                // An event whose connection is still gone begins again, and is counted each time.
                while link.connection.open().await.is_err() && began.elapsed() < REOPEN_TIMEOUT {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                self.push(RECONNECT, began, 0);
            } else if link.connection.query(b"ROLLBACK").await.is_ok() {
                // If the server refuses ROLLBACK, the next statement shows the session's state.
                self.push(OTHER, began, 0);
            }
        }
        let errno = if is_lost { 2013 } else { failure.code.parse().unwrap_or(0) };
        let state = match errno {
            0 => failure.code.clone(),
            1213 => "40001".to_owned(),
            1062 => "23000".to_owned(),
            _ => "HY000".to_owned(),
        };
        let message = failure.message.clone();
        self.failure = Some(failure);
        RequestRefusal { ignorable, errno, state, message }
    }

    pub(crate) async fn close(mut self) {
        self.thread = None;
        for link in self.links.drain(..).flatten() {
            link.connection.close().await;
        }
    }
}

/// Returns a value of a plan as a Lua value.
pub(crate) fn plain(lua: &Lua, value: &serde_json::Value) -> mlua::Result<mlua::Value> {
    use serde_json::Value;
    Ok(match value {
        Value::Bool(flag) => mlua::Value::Boolean(*flag),
        Value::Number(number) => mlua::Value::Number(number.as_f64().unwrap_or(0.0)),
        Value::String(text) => mlua::Value::String(lua.create_string(text)?),
        Value::Array(items) => {
            let items = items.iter().map(|item| plain(lua, item)).collect::<mlua::Result<Vec<_>>>()?;
            mlua::Value::Table(lua.create_sequence_from(items)?)
        }
        Value::Null | Value::Object(_) => mlua::Value::Nil,
    })
}

/// Returns whether a text asks for rows, judged by its first word.
fn reads(sql: &str) -> bool {
    const WORDS: [&str; 14] = [
        "select", "show", "with", "values", "table", "explain", "describe", "desc", "analyze", "check",
        "call", "execute", "fetch", "pragma",
    ];
    let text = sql.trim_start_matches(|character: char| character.is_whitespace() || character == '(');
    let end = text.find(|character: char| !character.is_ascii_alphabetic()).unwrap_or(text.len());
    WORDS.iter().any(|word| text[..end].eq_ignore_ascii_case(word)) || is_within(sql, b"returning")
}

/// Returns whether a text should change rows, judged by its first word.
fn changes(sql: &str) -> bool {
    const WORDS: [&str; 4] = ["insert", "update", "delete", "replace"];
    let text = sql.trim_start();
    let end = text.find(|character: char| !character.is_ascii_alphabetic()).unwrap_or(text.len());
    WORDS.iter().any(|word| text[..end].eq_ignore_ascii_case(word))
}

/// Returns whether `word`, which is in lower case, is in the text in any case.
fn is_within(text: &str, word: &[u8]) -> bool {
    let is_here = |place: &[u8]| place[0] | 32 == word[0] && place.eq_ignore_ascii_case(word);
    text.as_bytes().windows(word.len()).any(is_here)
}

/// Replaces `SERIAL` by `INTEGER`. Where tables give out their own keys, they do so for a whole
/// number that is the primary key, and there is no `SERIAL`.
fn in_table_keys(sql: &str) -> std::borrow::Cow<'_, str> {
    match sql.trim_start().get(..12) {
        Some(start) if start.eq_ignore_ascii_case("CREATE TABLE") => {
            sql.replace(" SERIAL", " INTEGER").into()
        }
        _ => sql.into(),
    }
}

fn closed() -> Failure {
    let message = "the script uses a connection or statement that it has closed";
    Failure::new(ErrorClass::Refused, "lua", message)
}

/// Returns Lua's message about an error, without the parts that only help dbdyno's developers.
pub(crate) fn error_text(error: &mlua::Error) -> String {
    match error {
        mlua::Error::CallbackError { cause, .. } => error_text(cause),
        mlua::Error::RuntimeError(text) => {
            let (text, trace) = text.split_once("\nstack traceback:").unwrap_or((text, ""));
            with_trace(text, trace)
        }
        mlua::Error::SyntaxError { message, .. } => message.clone(),
        other => other.to_string(),
    }
}

/// Returns an error with its call stack in the script, on one line.
fn with_trace(text: &str, trace: &str) -> String {
    let is_of_script =
        |line: &&str| !line.starts_with("[C]") && !line.starts_with("sysbench:") && !line.is_empty();
    let lines = trace.lines().map(str::trim).filter(is_of_script);
    let places: Vec<&str> = lines.skip_while(|line| line.starts_with("stack")).collect();
    let text = text.trim();
    if places.is_empty() { text.to_owned() } else { format!("{text}; called from {}", places.join(", ")) }
}

/// A part of the API, written in Lua. Most parts are loaded only when a script first asks for what
/// they have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ApiPart {
    Core,
    Rare,
    Options,
    Reports,
    Modules,
    System,
    Ffi,
    Legacy,
    Patterns,
}

/// The texts of the parts, in the order of [`ApiPart`].
const TEXTS: [&str; 9] = [
    include_str!("lua/core.lua"),
    include_str!("lua/rare.lua"),
    include_str!("lua/options.lua"),
    include_str!("lua/reports.lua"),
    include_str!("lua/modules.lua"),
    include_str!("lua/system.lua"),
    include_str!("lua/ffi.lua"),
    include_str!("lua/legacy.lua"),
    include_str!("lua/patterns.lua"),
];

/// The name of the parts in error messages.
const NAME: &str = "=sysbench";

impl ApiPart {
    pub(crate) fn function(self, lua: &Lua) -> mlua::Result<Function> {
        static CODE: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
        let code = CODE.get_or_init(|| compiled().expect("the parts are right: tests load each"));
        lua.load(code[self as usize].as_slice()).set_name(NAME).set_mode(ChunkMode::Binary).into_function()
    }
}

fn compiled() -> mlua::Result<Vec<Vec<u8>>> {
    let lua = Lua::new_with(StdLib::STRING, LuaOptions::default())?;
    // `string.dump` leaves line numbers out, but the dump function of the crate `mlua` does not.
    let dump: Function = lua.globals().get::<Table>("string")?.get("dump")?;
    let compile = |text: &&str| {
        let chunk = lua.load(*text).set_name(NAME).set_mode(ChunkMode::Text).into_function()?;
        dump.call::<mlua::String>((chunk, true)).map(|code| code.as_bytes().to_vec())
    };
    TEXTS.iter().map(compile).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_has_the_parts_that_its_script_uses_and_no_others() {
        const ON_REQUEST: [&str; 6] = ["math", "bit", "io", "require", "ffi", "sb_rand"];
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("own.lua");
        std::fs::write(&path, "local half = math.random() / 2\nfunction event() end\n").expect("a file");
        let script = SysbenchScript::find(&path.display().to_string(), false).expect("it is there");
        let setup = SysbenchSetup::without_database(&crate::sysbench::options::SysbenchOptions::default());
        let identity = StateIdentity { tid: 0, threads: 1, command: "run", stream: Philox::new(0, 0) };
        let machine = Machine::new(&setup, &script, identity).expect("a sound script");
        let globals = machine.lua.globals();
        let is_there = |name: &&str| !globals.raw_get::<mlua::Value>(*name).expect("a name").is_nil();
        let there: Vec<&str> = ON_REQUEST.into_iter().filter(is_there).collect();
        assert_eq!(there, ["math"]);
        for name in ON_REQUEST {
            globals.get::<mlua::Value>(name).expect("made when it is asked for");
            assert!(is_there(&name), "{name}");
        }
    }
}
