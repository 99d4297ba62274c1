//! What a script asks for when it yields, and what it gets: the border between Lua and the sessions.

use dbdyno_drivers::Param;
use mlua::{IntoLuaMulti, Lua, MultiValue, Value};

/// What a yield of the prelude asks for. A connection is named by the number that it got when it was opened.
#[derive(Debug)]
pub(crate) enum Asked {
    /// A new connection, or one again under its number.
    Connect(Option<usize>),
    Disconnect(usize),
    /// A text; its rows are kept for the result `generation` unless they only count.
    Query {
        connection: usize,
        sql: mlua::String,
        counts_only: bool,
        generation: i64,
    },
    Prepare(usize, mlua::String),
    /// Statement `id` with the parameters that were left in the caller's buffer.
    Execute(usize, u32),
    Forget(usize, u32),
    Sleep(f64),
    /// The event is over.
    Next,
    /// The script wants no more events.
    Ended,
    Failed {
        is_sql: bool,
        text: String,
        trace: String,
    },
    /// The event is to begin again.
    Restart {
        code: String,
        message: String,
    },
    /// The coroutine has returned.
    Returned,
}

impl Asked {
    /// Takes what a coroutine has yielded; parameters of a statement go to `params`.
    pub(crate) fn read(values: MultiValue, params: &mut Vec<Param>) -> mlua::Result<Self> {
        let mut values = Values(values);
        let Some(number) = values.0.pop_front() else { return Ok(Self::Returned) };
        let number = number.as_integer().ok_or_else(|| strange("no number"))?;
        Ok(match number {
            1 => Self::Connect(values.0.pop_front().and_then(|value| value.as_usize())),
            2 => Self::Disconnect(values.index()?),
            3 => Self::Query {
                connection: values.index()?,
                sql: values.string()?,
                counts_only: values.0.pop_front().is_some_and(|value| value == Value::Boolean(true)),
                generation: values.0.pop_front().and_then(|value| value.as_integer()).unwrap_or(0),
            },
            4 => Self::Prepare(values.index()?, values.string()?),
            5 => {
                let (connection, id) = (values.index()?, values.id()?);
                set_params(params, values.0)?;
                Self::Execute(connection, id)
            }
            6 => Self::Forget(values.index()?, values.id()?),
            7 => Self::Sleep(values.0.pop_front().and_then(|value| value.as_number()).unwrap_or(0.0)),
            8 => Self::Next,
            9 => Self::Ended,
            10 => Self::Failed {
                is_sql: values.0.pop_front().is_some_and(|value| value == Value::Boolean(true)),
                text: values.string()?.to_string_lossy(),
                trace: values.string()?.to_string_lossy(),
            },
            11 => Self::Restart {
                code: values.string()?.to_string_lossy(),
                message: values.string()?.to_string_lossy(),
            },
            _ => return Err(strange("an unknown number")),
        })
    }
}

/// Values of a yield, taken from the front.
struct Values(MultiValue);

impl Values {
    fn index(&mut self) -> mlua::Result<usize> {
        self.0.pop_front().and_then(|value| value.as_usize()).ok_or_else(|| strange("no connection"))
    }

    fn id(&mut self) -> mlua::Result<u32> {
        self.0.pop_front().and_then(|value| value.as_u32()).ok_or_else(|| strange("no statement"))
    }

    fn string(&mut self) -> mlua::Result<mlua::String> {
        match self.0.pop_front() {
            Some(Value::String(text)) => Ok(text),
            _ => Err(strange("no text")),
        }
    }
}

/// Only the prelude yields to the host; a script that does so itself has no one to answer.
fn strange(what: &str) -> mlua::Error {
    mlua::Error::runtime(format!("coroutine.yield() outside a coroutine of the script's own: {what}"))
}

/// Parameters in the memory of those before them.
fn set_params(params: &mut Vec<Param>, values: MultiValue) -> mlua::Result<()> {
    params.truncate(values.len());
    for (index, value) in values.into_iter().enumerate() {
        if index == params.len() {
            params.push(Param::Null);
        }
        let param = &mut params[index];
        match value {
            Value::Nil => *param = Param::Null,
            Value::Integer(number) => *param = Param::Int(number),
            Value::Number(number) if number.fract() == 0.0 && number.abs() < 9.2e18 => {
                *param = Param::Int(number as i64);
            }
            Value::Number(number) => {
                param.set_text(|text| text.extend_from_slice(number.to_string().as_bytes()))
            }
            Value::String(given) => param.set_text(|text| text.extend_from_slice(&given.as_bytes())),
            other => return Err(strange(other.type_name())),
        }
    }
    Ok(())
}

/// What a coroutine gets when it goes on.
#[derive(Debug)]
pub(crate) enum Reply {
    Nothing,
    Flag(bool),
    Name(String),
    Number(i64),
    /// Number of a statement or of rows, and of columns.
    Pair(i64, i64),
    Failed(Refusal),
}

/// A failed statement, in sysbench's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) ignorable: bool,
    pub(crate) errno: i64,
    pub(crate) state: String,
    pub(crate) message: String,
}

impl IntoLuaMulti for Reply {
    fn into_lua_multi(self, lua: &Lua) -> mlua::Result<MultiValue> {
        match self {
            Self::Nothing => Ok(MultiValue::new()),
            Self::Flag(flag) => flag.into_lua_multi(lua),
            Self::Name(name) => name.into_lua_multi(lua),
            Self::Number(number) => number.into_lua_multi(lua),
            Self::Pair(first, second) => (first, second).into_lua_multi(lua),
            Self::Failed(Refusal { ignorable, errno, state, message }) => {
                let class = if ignorable { "ignorable" } else { "fatal" };
                (Value::Nil, class, errno, state, message).into_lua_multi(lua)
            }
        }
    }
}
