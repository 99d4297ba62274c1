//! Has the functions that serve a script at once, without waiting for the database: draws, rows
//! that have arrived, output and files. It also enforces the limits of time and memory.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dbdyno_db::KeySource;
use mlua::{
    ChunkMode, Function, HookTriggers, IntoLua, IntoLuaMulti, Lua, LuaOptions, MultiValue, StdLib, Table,
    Value, VmState,
};

use super::SysbenchSetup;
use super::draws::Draw;
use super::files::SysbenchScript;
use super::pattern::{self, Capture};
use crate::oltp::options::Distribution;
use crate::sysbench::machine::ApiPart;

/// The time limit is checked after this many instructions.
const INSTRUCTIONS: u32 = 10_000;

/// Rows of a text query. Each query over a connection has a generation of its own, and a result
/// reads only rows of its generation.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    pub(crate) generation: i64,
    pub(crate) rows: VecDeque<Vec<Option<String>>>,
}

/// What the Lua state of one script shares with dbdyno, which hosts it.
pub(crate) struct ScriptHost {
    pub(crate) setup: Arc<SysbenchSetup>,
    pub(crate) script: SysbenchScript,
    pub(crate) tid: u32,
    pub(crate) command: Option<String>,
    pub(crate) draws: RefCell<Draw>,
    /// Rows by connection.
    pub(crate) rows: RefCell<Vec<Rows>>,
    /// Counters that a script raises itself: other, read, write, error, reconnect.
    pub(crate) counters: [Cell<u64>; 5],
    /// When the script last continued.
    pub(crate) resumed: Cell<Instant>,
    /// The longest time between two statements.
    pub(crate) limit: Duration,
    /// The message about the limit that the script has exceeded.
    pub(crate) over: RefCell<Option<String>>,
}

impl ScriptHost {
    /// Returns a state with the API and the script's own chunk, and the functions of the API.
    /// LuaJIT compiles nothing unless its library `jit` is opened, and it is not, because compiled
    /// loops could not be ended.
    pub(crate) fn loaded(self: &Rc<Self>) -> mlua::Result<(Lua, Table)> {
        let lua = Lua::new_with(StdLib::STRING, LuaOptions::default())?;
        let api: Table = ApiPart::Core.function(&lua)?.call(self.table(&lua)?)?;
        self.watch(&lua)?;
        let name = self.script.path.file_name().map(|name| name.to_string_lossy().into_owned());
        self.compiled(&lua, &self.script.text, &name.unwrap_or_default())?.call::<()>(())?;
        Ok((lua, api))
    }

    /// Returns the table of host functions and values that each part of the API takes.
    fn table(self: &Rc<Self>, lua: &Lua) -> mlua::Result<Table> {
        let own = Rc::clone(self);
        made_when_asked(lua, move |lua, name| own.value(lua, name))
    }

    fn value(self: &Rc<Self>, lua: &Lua, name: &str) -> mlua::Result<Value> {
        let own = Rc::clone(self);
        match name {
            "tid" => self.tid.into_lua(lua),
            "command" => self.command.clone().into_lua(lua),
            "script_path" => self.script.path.display().to_string().into_lua(lua),
            "path" => self.script.search_path().into_lua(lua),
            "driver" => driver_name(&self.setup).into_lua(lua),
            "text_only" => self.setup.is_text_only().into_lua(lua),
            "reads_rows" => self.script.text.contains("fetch_row").into_lua(lua),
            "allows_os" => self.setup.options.allows_os().into_lua(lua),
            "rand" => made_when_asked(lua, move |lua, name| own.draw(lua, name)).map(Value::Table),
            "string" => self.draw(lua, name),
            _ => self.function(lua, name).map(|function| function.map_or(Value::Nil, Value::Function)),
        }
    }

    /// Returns a function of `sysbench.rand`.
    fn draw(self: &Rc<Self>, lua: &Lua, name: &str) -> mlua::Result<Value> {
        let own = Rc::clone(self);
        let of_range = |draw: fn(&mut Draw, i64, i64) -> i64| {
            let own = Rc::clone(self);
            lua.create_function(move |_, (low, high): (f64, f64)| {
                Ok(draw(&mut own.draws.borrow_mut(), low as i64, high as i64))
            })
        };
        let function = match name {
            "default" => of_range(Draw::default),
            "uniform" => of_range(Draw::uniform),
            "gaussian" => of_range(|draws, low, high| draws.of(Distribution::Gaussian, low, high)),
            "special" => of_range(|draws, low, high| draws.of(Distribution::Special, low, high)),
            "pareto" => of_range(|draws, low, high| draws.of(Distribution::Pareto, low, high)),
            "zipfian" => of_range(|draws, low, high| draws.of(Distribution::Zipfian, low, high)),
            "unique" => lua.create_function(move |_, ()| Ok(own.setup.next_unique())),
            "uniform_double" => lua.create_function(move |_, ()| Ok(own.draws.borrow_mut().fraction())),
            "uniform_uint64" => {
                lua.create_function(move |_, ()| Ok(own.draws.borrow_mut().uniform(0, (1 << 53) - 1)))
            }
            "string" => lua.create_function(move |lua, template: mlua::String| {
                let mut draws = own.draws.borrow_mut();
                lua.create_string(draws.text(&template.as_bytes()))
            }),
            "varstring" => lua.create_function(move |lua, (min, max): (f64, f64)| {
                let max = max.clamp(0.0, own.setup.memory_bytes() as f64);
                let mut draws = own.draws.borrow_mut();
                lua.create_string(draws.any_text(min.max(0.0) as i64, max as i64))
            }),
            _ => return Ok(Value::Nil),
        };
        function.map(Value::Function)
    }

    /// Returns a function of the host itself.
    fn function(self: &Rc<Self>, lua: &Lua, name: &str) -> mlua::Result<Option<Function>> {
        let own = Rc::clone(self);
        let function = match name {
            "part" => lua.create_function(move |lua, (name, api): (String, Table)| {
                let part = match &*name {
                    "reports" => ApiPart::Reports,
                    "patterns" => ApiPart::Patterns,
                    _ => ApiPart::Rare,
                };
                own.add(lua, part, &api)
            }),
            "global" => lua.create_function(move |lua, (name, api): (Value, Table)| match name {
                Value::String(name) => own.global(lua, &name.to_string_lossy(), &api),
                _ => Ok(Value::Nil),
            }),
            "chunk" => {
                lua.create_function(move |lua, (name, path): (String, String)| own.chunk(lua, &name, &path))
            }
            "may_open" => lua.create_function(move |_, (path, mode): (String, String)| {
                let answer = own.script.may_open(Path::new(&path), &mode);
                Ok((answer.is_ok(), answer.err()))
            }),
            "write" => lua.create_function(move |_, text: mlua::String| {
                own.setup.printed.add(&text.to_string_lossy());
                Ok(())
            }),
            "row" => lua.create_function(move |lua, (connection, generation): (usize, i64)| {
                own.row(lua, connection, generation)
            }),
            "find" => lua.create_function(move |lua, asked: (mlua::String, mlua::String, usize, bool)| {
                own.found(lua, asked)
            }),
            "count" => lua.create_function(move |_, (counter, by): (usize, f64)| {
                if let Some(counter) = own.counters.get(counter) {
                    counter.set(counter.get().saturating_add(by as u64));
                }
                Ok(())
            }),
            "counted" => lua
                .create_function(move |_, counter: usize| Ok(own.counters.get(counter).map_or(0, Cell::get))),
            "is_over" => lua.create_function(move |_, ()| Ok(own.over.borrow().is_some())),
            "traceback" => lua.create_function(|lua, ()| lua.traceback(None, 1)),
            _ => return Ok(None),
        };
        function.map(Some)
    }

    fn add(self: &Rc<Self>, lua: &Lua, part: ApiPart, api: &Table) -> mlua::Result<()> {
        part.function(lua)?.call((self.table(lua)?, api))
    }

    /// Returns a global that is made when a script first asks for it. Most states need few of them.
    fn global(self: &Rc<Self>, lua: &Lua, name: &str, api: &Table) -> mlua::Result<Value> {
        /// Names from before version 1.0 have these prefixes.
        const OLD: [&str; 3] = ["db_", "sb_", "DB_ERROR_"];
        let globals = lua.globals();
        match name {
            "table" => lua.load_std_libs(StdLib::TABLE)?,
            "bit" => lua.load_std_libs(StdLib::BIT)?,
            "math" => {
                lua.load_std_libs(StdLib::MATH)?;
                self.add_draws(lua, &globals.raw_get("math")?)?;
            }
            "io" | "os" | "print" | "debug" | "jit" => {
                lua.load_std_libs(StdLib::IO | StdLib::OS)?;
                self.add(lua, ApiPart::System, api)?;
            }
            "require" | "package" | "dofile" | "loadfile" | "module" => {
                self.add(lua, ApiPart::Modules, api)?
            }
            "ffi" => self.add(lua, ApiPart::Ffi, api)?,
            _ if (["thread_id", "test"].contains(&name)
                || OLD.iter().any(|start| name.starts_with(start)))
                && globals.raw_get::<Value>("sb_rand")?.is_nil() =>
            {
                self.add(lua, ApiPart::Legacy, api)?;
            }
            _ => return Ok(Value::Nil),
        }
        globals.raw_get(name)
    }

    /// Adds random functions that give the same draws for each variant, whatever the script seeds.
    fn add_draws(self: &Rc<Self>, lua: &Lua, math: &Table) -> mlua::Result<()> {
        let own = Rc::clone(self);
        let random = move |_: &Lua, (low, high): (Option<f64>, Option<f64>)| {
            let mut draws = own.draws.borrow_mut();
            Ok(match (low, high) {
                (None, _) => draws.fraction(),
                (Some(high), None) => draws.uniform(1, high as i64) as f64,
                (Some(low), Some(high)) => draws.uniform(low as i64, high as i64) as f64,
            })
        };
        math.raw_set("random", lua.create_function(random)?)?;
        math.raw_set("randomseed", lua.create_function(|_, _: MultiValue| Ok(()))?)
    }

    /// Returns a file of the script as a function, and where it was found. Otherwise the result
    /// says why there is none, and whether the file has a syntax error.
    fn chunk(
        self: &Rc<Self>,
        lua: &Lua,
        name: &str,
        path: &str,
    ) -> mlua::Result<(Option<Function>, String, bool)> {
        match self.script.module(name, path) {
            Err(places) => Ok((None, places, false)),
            Ok((text, path)) => {
                let path = path.display().to_string();
                match self.compiled(lua, &text, &path) {
                    Ok(function) => Ok((Some(function), path, false)),
                    Err(mlua::Error::SyntaxError { message, .. }) => Ok((None, message, true)),
                    Err(error) => Err(error),
                }
            }
        }
    }

    /// Returns a text of the script as a function. If the text reads the table of globals itself,
    /// all globals are made first.
    fn compiled(self: &Rc<Self>, lua: &Lua, text: &str, name: &str) -> mlua::Result<Function> {
        const SOME_OF_EACH: [&str; 7] = ["table", "bit", "math", "io", "require", "ffi", "sb_rand"];
        if names_globals(text) {
            for name in SOME_OF_EACH {
                lua.globals().get::<Value>(name)?;
            }
        }
        lua.load(text).set_name(format!("@{name}")).set_mode(ChunkMode::Text).into_function()
    }

    /// Does what `string.find` does. The start position is within the text or right after it.
    fn found(
        &self,
        lua: &Lua,
        (text, pattern, from, is_plain): (mlua::String, mlua::String, usize, bool),
    ) -> mlua::Result<MultiValue> {
        let (text, pattern) = (text.as_bytes(), pattern.as_bytes());
        let from = from.saturating_sub(1);
        if is_plain {
            let found = memchr::memmem::find(&text[from..], &pattern).map(|at| from + at + 1);
            return match found {
                Some(first) => (first, first + pattern.len() - 1).into_lua_multi(lua),
                None => Value::Nil.into_lua_multi(lua),
            };
        }
        let mut may_go_on = || self.passed().map_or(Ok(()), Err);
        let found = pattern::find(&text, &pattern, from, &mut may_go_on).map_err(mlua::Error::runtime)?;
        let Some(found) = found else { return Value::Nil.into_lua_multi(lua) };
        let mut values = vec![(found.start + 1).into_lua(lua)?, found.end.into_lua(lua)?];
        for capture in found.captures {
            values.push(match capture {
                Capture::Text(from, to) => Value::String(lua.create_string(&text[from..to])?),
                Capture::Place(place) => (place + 1).into_lua(lua)?,
            });
        }
        Ok(MultiValue::from_vec(values))
    }

    /// Returns the next row of a result, unless another statement of its connection has replaced
    /// the result.
    fn row(&self, lua: &Lua, connection: usize, generation: i64) -> mlua::Result<Option<Table>> {
        let mut rows = self.rows.borrow_mut();
        let own = rows.get_mut(connection).filter(|rows| rows.generation == generation);
        let Some(row) = own.and_then(|rows| rows.rows.pop_front()) else { return Ok(None) };
        let table = lua.create_table_with_capacity(row.len(), 0)?;
        for (place, cell) in (1..).zip(row) {
            let value = cell.map_or(Ok(Value::Nil), |text| lua.create_string(text).map(Value::String))?;
            table.raw_set(place, value)?;
        }
        Ok(Some(table))
    }

    /// Sets the limits. A script that runs for too long without a statement is ended, and a script
    /// that takes too much memory gets no more.
    fn watch(self: &Rc<Self>, lua: &Lua) -> mlua::Result<()> {
        lua.set_memory_limit(self.setup.memory_bytes())?;
        let own = Rc::clone(self);
        let triggers = HookTriggers::new().every_nth_instruction(INSTRUCTIONS);
        lua.set_global_hook(triggers, move |_, _| match own.passed() {
            None => Ok(VmState::Continue),
            Some(text) => Err(mlua::Error::runtime(text)),
        })
    }

    /// Returns the message about the limit that the script has exceeded. Once there is a message,
    /// it stays.
    fn passed(&self) -> Option<String> {
        let mut over = self.over.borrow_mut();
        let stretch = self.resumed.get().elapsed();
        if over.is_none() && dbdyno_loadgen::is_stopping_here() {
            *over = Some("the step was over before its event".to_owned());
        }
        if over.is_none() && stretch > self.limit {
            let seconds = stretch.as_secs();
            *over =
                Some(format!("the script ran for {seconds} s without a statement: look for an endless loop"));
        }
        over.clone()
    }

    /// Notes that the script was refused memory. The script must end, because its behaviour without
    /// that memory is undefined.
    pub(crate) fn is_full(&self) {
        let megabytes = self.setup.options.memory_mb;
        *self.over.borrow_mut() = Some(format!("the script's state takes more than memory_mb = {megabytes}"));
    }
}

/// Returns whether a script uses the table of globals directly.
fn names_globals(text: &str) -> bool {
    let mut words = text.split(|character: char| !character.is_ascii_alphanumeric() && character != '_');
    words.any(|word| matches!(word, "_G" | "getfenv" | "setfenv"))
}

/// Returns a table whose values are made when they are first asked for.
fn made_when_asked(
    lua: &Lua,
    make: impl Fn(&Lua, &str) -> mlua::Result<Value> + 'static,
) -> mlua::Result<Table> {
    let index = move |lua: &Lua, (own, name): (Table, mlua::String)| {
        let value = make(lua, &name.to_str()?)?;
        own.raw_set(name, &value)?;
        Ok(value)
    };
    let (table, with) = (lua.create_table()?, lua.create_table()?);
    with.raw_set("__index", lua.create_function(index)?)?;
    table.set_metatable(Some(with))?;
    Ok(table)
}

/// Returns the name of sysbench's driver whose statements the database takes. A database whose keys
/// come from sequences, or from the table itself, takes those for PostgreSQL.
pub(crate) fn driver_name(setup: &SysbenchSetup) -> &'static str {
    match setup.context.database_server.capabilities.key_source {
        KeySource::TableCounter => "mysql",
        KeySource::Sequence | KeySource::Table => "pgsql",
    }
}
