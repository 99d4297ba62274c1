//! Translates the requests that a script yields, and the replies with which it continues. This is
//! the border between Lua and the sessions.

use dbdyno_db::Param;
use mlua::{IntoLuaMulti, Lua, MultiValue, Value};

/// A request that the API yields. A connection is identified by the number that it got when it was
/// opened.
#[derive(Debug)]
pub(crate) enum ScriptRequest {
    /// Opens a new connection, or opens the connection with this number again.
    Connect(Option<usize>),
    Disconnect(usize),
    /// Sends a text. Its rows are kept for the result of this `generation`, unless the script only
    /// needs their number.
    Query {
        connection: usize,
        sql: mlua::String,
        counts_only: bool,
        generation: i64,
    },
    Prepare(usize, mlua::String),
    /// Executes statement `id` with the parameters that [`ScriptRequest::read`] has written.
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
    /// The event must begin again.
    Restart {
        code: String,
        message: String,
    },
    /// The coroutine has returned.
    Returned,
}

/// What a coroutine yields: the number of its request, and the request's values. Two values of
/// parameters have their own fields, so that most statements allocate no memory.
pub(crate) type Yielded = (Value, Value, Value, Value, Value, Value, MultiValue);

impl ScriptRequest {
    /// Takes what a coroutine has yielded. Parameters of a statement go to `params`.
    pub(crate) fn read(yielded: Yielded, params: &mut Vec<Param>) -> mlua::Result<Self> {
        let (number, first, second, third, fourth, fifth, rest) = yielded;
        if number.is_nil() {
            return Ok(Self::Returned);
        }
        let is_set = |value: &Value| *value == Value::Boolean(true);
        Ok(match number.as_integer().ok_or_else(|| strange("no number"))? {
            1 => Self::Connect(first.as_usize()),
            2 => Self::Disconnect(index(&first)?),
            3 => Self::Query {
                connection: index(&first)?,
                sql: string(second)?,
                counts_only: is_set(&third),
                generation: fourth.as_integer().unwrap_or(0),
            },
            4 => Self::Prepare(index(&first)?, string(second)?),
            5 => {
                let count = third.as_usize().ok_or_else(|| strange("no count"))?;
                let values = [fourth, fifth].into_iter().chain(rest).chain(std::iter::repeat(Value::Nil));
                set_params(params, count, values)?;
                Self::Execute(index(&first)?, id(&second)?)
            }
            6 => Self::Forget(index(&first)?, id(&second)?),
            7 => Self::Sleep(
                first.as_integer().map_or_else(|| first.as_number(), |us| Some(us as f64)).unwrap_or(0.0),
            ),
            8 => Self::Next,
            9 => Self::Ended,
            10 => Self::Failed {
                is_sql: is_set(&first),
                text: string(second)?.to_string_lossy(),
                trace: string(third)?.to_string_lossy(),
            },
            11 => Self::Restart {
                code: string(first)?.to_string_lossy(),
                message: string(second)?.to_string_lossy(),
            },
            _ => return Err(strange("an unknown number")),
        })
    }
}

fn index(value: &Value) -> mlua::Result<usize> {
    value.as_usize().ok_or_else(|| strange("no connection"))
}

fn id(value: &Value) -> mlua::Result<u32> {
    value.as_u32().ok_or_else(|| strange("no statement"))
}

fn string(value: Value) -> mlua::Result<mlua::String> {
    match value {
        Value::String(text) => Ok(text),
        _ => Err(strange("no text")),
    }
}

/// Returns the error for a yield that is not the API's. Only the API may yield to the host, because
/// a script that does so itself would get no reply.
fn strange(what: &str) -> mlua::Error {
    mlua::Error::runtime(format!("coroutine.yield() outside a coroutine of the script's own: {what}"))
}

/// Writes parameters over the previous ones, whose memory is reused.
fn set_params(
    params: &mut Vec<Param>,
    count: usize,
    values: impl Iterator<Item = Value>,
) -> mlua::Result<()> {
    params.resize_with(count.min(usize::from(u16::MAX)), || Param::Null);
    for (param, value) in params.iter_mut().zip(values) {
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

/// What a coroutine gets when it continues.
#[derive(Debug)]
pub(crate) enum Reply {
    Nothing,
    Flag(bool),
    Name(String),
    Number(i64),
    /// The number of a statement or of its rows, then the number of columns.
    Pair(i64, i64),
    Failed(RequestRefusal),
}

/// A failed statement, in sysbench's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestRefusal {
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
            Self::Failed(RequestRefusal { ignorable, errno, state, message }) => {
                let class = if ignorable { "ignorable" } else { "fatal" };
                (Value::Nil, class, errno, state, message).into_lua_multi(lua)
            }
        }
    }
}
