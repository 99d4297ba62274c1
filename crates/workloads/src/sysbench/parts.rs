//! The Lua code of the API, in parts. A state has the parts that its script uses, without line numbers.

use std::sync::OnceLock;

use mlua::{ChunkMode, Function, Lua, LuaOptions, StdLib, Table};

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

/// The texts in the order of [`ApiPart`].
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
    // Lua's own dump leaves line numbers out, but the library's does not.
    let dump: Function = lua.globals().get::<Table>("string")?.get("dump")?;
    let compile = |text: &&str| {
        let chunk = lua.load(*text).set_name(NAME).set_mode(ChunkMode::Text).into_function()?;
        dump.call::<mlua::String>((chunk, true)).map(|code| code.as_bytes().to_vec())
    };
    TEXTS.iter().map(compile).collect()
}
