//! What a script's state can have done at once, without a wait: draws, rows that are there, output, files, limits.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dbdyno_drivers::KeySource;
use mlua::{HookTriggers, Lua, Table, Value, VmState};

use super::Setup;
use super::draws::Draw;
use super::files::Script;

/// After so many instructions the limit of time is looked at.
const INSTRUCTIONS: u32 = 10_000;

/// Rows of a text query, for the result of one generation.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    pub(crate) generation: i64,
    pub(crate) rows: VecDeque<Vec<Option<String>>>,
}

/// What one state shares with its host.
pub(crate) struct Host {
    pub(crate) setup: Arc<Setup>,
    pub(crate) script: Script,
    pub(crate) tid: u32,
    pub(crate) command: Option<String>,
    pub(crate) draws: RefCell<Draw>,
    /// By connection.
    pub(crate) rows: RefCell<Vec<Rows>>,
    /// Counters that a script raises itself: other, read, write, error, reconnect.
    pub(crate) counters: [Cell<u64>; 5],
    /// When the script went on for the last time.
    pub(crate) resumed: Cell<Instant>,
    /// The longest time between two statements.
    pub(crate) limit: Duration,
    /// The limit that the script has passed.
    pub(crate) over: RefCell<Option<String>>,
}

impl Host {
    /// The table that the prelude takes.
    pub(crate) fn table(self: &Rc<Self>, lua: &Lua) -> mlua::Result<Table> {
        let host = lua.create_table()?;
        let options = &self.setup.options;
        host.set("tid", self.tid)?;
        host.set("command", self.command.clone())?;
        host.set("script_path", self.script.path.display().to_string())?;
        host.set("argv", lua.create_table()?)?;
        host.set("path", self.script.search_path())?;
        host.set("driver", driver_name(&self.setup))?;
        host.set("text_only", self.setup.is_text_only())?;
        host.set("allows_os", options.allows_os())?;
        self.add_draws(lua, &host)?;
        self.add_files(lua, &host)?;
        self.add_rest(lua, &host)?;
        Ok(host)
    }

    fn add_draws(self: &Rc<Self>, lua: &Lua, host: &Table) -> mlua::Result<()> {
        type OfRange = fn(&mut Draw, i64, i64) -> i64;
        let ranges: [(&str, OfRange); 6] = [
            ("default", Draw::default),
            ("uniform", Draw::uniform),
            ("gaussian", Draw::gaussian),
            ("special", Draw::special),
            ("pareto", Draw::pareto),
            ("zipfian", Draw::zipfian),
        ];
        for (name, draw) in ranges {
            let own = Rc::clone(self);
            let function = move |_: &Lua, (low, high): (f64, f64)| {
                Ok(draw(&mut own.draws.borrow_mut(), low as i64, high as i64))
            };
            host.set(name, lua.create_function(function)?)?;
        }
        let own = Rc::clone(self);
        host.set("unique", lua.create_function(move |_, ()| Ok(own.setup.next_unique()))?)?;
        let own = Rc::clone(self);
        host.set("fraction", lua.create_function(move |_, ()| Ok(own.draws.borrow_mut().fraction()))?)?;
        let own = Rc::clone(self);
        let bits = move |_: &Lua, ()| Ok(own.draws.borrow_mut().uniform(0, (1 << 53) - 1));
        host.set("bits", lua.create_function(bits)?)?;
        let own = Rc::clone(self);
        let string = move |lua: &Lua, template: mlua::String| {
            let mut draws = own.draws.borrow_mut();
            lua.create_string(draws.text(&template.as_bytes()))
        };
        host.set("string", lua.create_function(string)?)?;
        let own = Rc::clone(self);
        let varstring = move |lua: &Lua, (least, most): (f64, f64)| {
            let most = most.clamp(0.0, own.setup.memory_bytes() as f64);
            let mut draws = own.draws.borrow_mut();
            lua.create_string(draws.any_text(least.max(0.0) as i64, most as i64))
        };
        host.set("varstring", lua.create_function(varstring)?)
    }

    fn add_files(self: &Rc<Self>, lua: &Lua, host: &Table) -> mlua::Result<()> {
        let own = Rc::clone(self);
        let module = move |_: &Lua, (name, path): (String, String)| {
            Ok(match own.script.module(&name, &path) {
                Ok((text, path)) => (Some(text.to_string()), path.display().to_string()),
                Err(places) => (None, places),
            })
        };
        host.set("module", lua.create_function(module)?)?;
        let own = Rc::clone(self);
        let may_open = move |_: &Lua, (path, mode): (String, String)| {
            let answer = own.script.may_open(Path::new(&path), &mode);
            Ok((answer.is_ok(), answer.err()))
        };
        host.set("may_open", lua.create_function(may_open)?)?;
        let own = Rc::clone(self);
        let write = move |_: &Lua, text: mlua::String| {
            own.setup.said.add(&text.to_string_lossy());
            Ok(())
        };
        host.set("write", lua.create_function(write)?)
    }

    fn add_rest(self: &Rc<Self>, lua: &Lua, host: &Table) -> mlua::Result<()> {
        let own = Rc::clone(self);
        let row =
            move |lua: &Lua, (connection, generation): (usize, i64)| own.row(lua, connection, generation);
        host.set("row", lua.create_function(row)?)?;
        let own = Rc::clone(self);
        let count = move |_: &Lua, (counter, by): (usize, f64)| {
            if let Some(counter) = own.counters.get(counter) {
                counter.set(counter.get().saturating_add(by as u64));
            }
            Ok(())
        };
        host.set("count", lua.create_function(count)?)?;
        let own = Rc::clone(self);
        let counted = move |_: &Lua, counter: usize| Ok(own.counters.get(counter).map_or(0, Cell::get));
        host.set("counted", lua.create_function(counted)?)?;
        let own = Rc::clone(self);
        host.set("is_over", lua.create_function(move |_, ()| Ok(own.over.borrow().is_some()))?)?;
        host.set("traceback", lua.create_function(|lua, ()| lua.traceback(None, 1))?)
    }

    /// The next row of a result, unless another statement of its connection has taken its place.
    fn row(&self, lua: &Lua, connection: usize, generation: i64) -> mlua::Result<Option<Table>> {
        let mut rows = self.rows.borrow_mut();
        let own = rows.get_mut(connection).filter(|rows| rows.generation == generation);
        let Some(row) = own.and_then(|rows| rows.rows.pop_front()) else { return Ok(None) };
        let table = lua.create_table_with_capacity(row.len(), 0)?;
        for (place, cell) in (1..).zip(row) {
            table.raw_set(
                place,
                cell.map_or(Ok(Value::Nil), |text| lua.create_string(text).map(Value::String))?,
            )?;
        }
        Ok(Some(table))
    }

    /// Ends a script that goes on for too long without a statement; one that takes too much memory gets no more.
    pub(crate) fn watch(self: &Rc<Self>, lua: &Lua) -> mlua::Result<()> {
        lua.set_memory_limit(self.setup.memory_bytes())?;
        let own = Rc::clone(self);
        let triggers = HookTriggers::new().every_nth_instruction(INSTRUCTIONS);
        lua.set_global_hook(triggers, move |_, _| match own.passed() {
            None => Ok(VmState::Continue),
            Some(text) => Err(mlua::Error::runtime(text)),
        })
    }

    /// The limit that the script has passed; it is never under it again.
    fn passed(&self) -> Option<String> {
        let mut over = self.over.borrow_mut();
        let stretch = self.resumed.get().elapsed();
        if over.is_none() && stretch > self.limit {
            let seconds = stretch.as_secs();
            *over =
                Some(format!("the script ran for {seconds} s without a statement: look for an endless loop"));
        }
        over.clone()
    }

    /// The script was refused memory: what it would do without it is not known.
    pub(crate) fn is_full(&self) {
        let megabytes = self.setup.options.memory_mb;
        *self.over.borrow_mut() = Some(format!("the script's state takes more than memory_mb = {megabytes}"));
    }
}

/// What sysbench calls a database that takes such statements: one whose keys come from sequences, or lie in the table itself,
/// is addressed as PostgreSQL is.
pub(crate) fn driver_name(setup: &Setup) -> &'static str {
    match setup.context.endpoint.capabilities.key_source {
        KeySource::TableCounter => "mysql",
        KeySource::Sequence | KeySource::Table => "pgsql",
    }
}
