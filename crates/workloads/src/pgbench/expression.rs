//! Expressions of `\set` and `\if`: what they are and what they give.

use super::random::{self, Draws};
use super::value::Value;
use super::variables::Variables;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Expression {
    Constant(Value),
    /// By its index among the variables.
    Variable(usize),
    Call(Function, Vec<Expression>),
}

/// What an expression calls: functions by name, and operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Function {
    And,
    Or,
    Not,
    /// Conditions and their values, and the value of ELSE.
    Case,
    Is,
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Equal,
    Unequal,
    LessOrEqual,
    Less,
    BitAnd,
    BitOr,
    BitXor,
    ShiftLeft,
    ShiftRight,
    Abs,
    Debug,
    Double,
    Exp,
    Fnv1a,
    Greatest,
    Int,
    Least,
    Ln,
    Murmur2,
    Permute,
    Pi,
    Power,
    Random,
    Exponential,
    Gaussian,
    Zipfian,
    Sqrt,
}

/// How many arguments each of the functions that a script calls by name takes; with a seed of its
/// own, one more.
pub(crate) const NAMED: [(&str, Function, std::ops::RangeInclusive<usize>); 21] = [
    ("abs", Function::Abs, 1..=1),
    ("debug", Function::Debug, 1..=1),
    ("double", Function::Double, 1..=1),
    ("exp", Function::Exp, 1..=1),
    ("greatest", Function::Greatest, 1..=usize::MAX),
    ("hash", Function::Murmur2, 1..=2),
    ("hash_fnv1a", Function::Fnv1a, 1..=2),
    ("hash_murmur2", Function::Murmur2, 1..=2),
    ("int", Function::Int, 1..=1),
    ("least", Function::Least, 1..=usize::MAX),
    ("ln", Function::Ln, 1..=1),
    ("mod", Function::Modulo, 2..=2),
    ("permute", Function::Permute, 2..=3),
    ("pi", Function::Pi, 0..=0),
    ("pow", Function::Power, 2..=2),
    ("power", Function::Power, 2..=2),
    ("random", Function::Random, 2..=2),
    ("random_exponential", Function::Exponential, 3..=3),
    ("random_gaussian", Function::Gaussian, 3..=3),
    ("random_zipfian", Function::Zipfian, 3..=3),
    ("sqrt", Function::Sqrt, 1..=1),
];

impl Expression {
    pub(crate) fn value(&self, variables: &Variables, draws: &mut Draws) -> Result<Value, String> {
        match self {
            Self::Constant(value) => Ok(*value),
            Self::Variable(index) => variables.value(*index),
            Self::Call(function, arguments) => match function {
                Function::And => junction(arguments, false, variables, draws),
                Function::Or => junction(arguments, true, variables, draws),
                Function::Case => case(arguments, variables, draws),
                function => strict(*function, arguments, variables, draws),
            },
        }
    }
}

/// AND and OR: the second argument is looked at only if the first is not `decides`.
fn junction(
    arguments: &[Expression],
    decides: bool,
    variables: &Variables,
    draws: &mut Draws,
) -> Result<Value, String> {
    for argument in arguments {
        match argument.value(variables, draws)? {
            Value::Null => return Ok(Value::Null),
            value if value.to_bool()? == decides => return Ok(Value::Bool(decides)),
            _ => {}
        }
    }
    Ok(Value::Bool(!decides))
}

fn case(arguments: &[Expression], variables: &Variables, draws: &mut Draws) -> Result<Value, String> {
    let (pairs, otherwise) = arguments.as_chunks::<2>();
    for [condition, value] in pairs {
        if condition.value(variables, draws)?.is_true() {
            return value.value(variables, draws);
        }
    }
    otherwise.first().map_or(Ok(Value::Null), |value| value.value(variables, draws))
}

/// All arguments are looked at; NULL among them gives NULL.
fn strict(
    function: Function,
    arguments: &[Expression],
    variables: &Variables,
    draws: &mut Draws,
) -> Result<Value, String> {
    let mut first = [Value::Null; 3];
    let mut more = Vec::new();
    for (place, argument) in arguments.iter().enumerate() {
        let value = argument.value(variables, draws)?;
        match first.get_mut(place) {
            Some(own) => *own = value,
            None => more.push(value),
        }
    }
    let [a, b, c] = first;
    let given = &first[..arguments.len().min(3)];
    let has_null = given.iter().chain(&more).any(|value| *value == Value::Null);
    if has_null && !matches!(function, Function::Is | Function::Debug) {
        return Ok(Value::Null);
    }
    use Function as F;
    match function {
        F::Add | F::Subtract | F::Multiply | F::Divide | F::Modulo => arithmetic(function, a, b),
        F::Equal | F::Unequal | F::LessOrEqual | F::Less => comparison(function, a, b),
        F::BitAnd | F::BitOr | F::BitXor | F::ShiftLeft | F::ShiftRight => bits(function, a, b),
        F::Least | F::Greatest => extreme(function, given.iter().chain(&more).copied()),
        F::Random | F::Exponential | F::Gaussian | F::Zipfian => random(function, (a, b, c), draws),
        F::Not => Ok(Value::Bool(!a.to_bool()?)),
        F::Is => Ok(Value::Bool(a == b)),
        F::Debug => Ok(a),
        F::Abs => match a {
            Value::Double(number) => Ok(Value::Double(number.abs())),
            other => Ok(Value::Int(other.to_int()?.wrapping_abs())),
        },
        F::Double => a.to_double().map(Value::Double),
        F::Int => a.to_int().map(Value::Int),
        F::Exp => Ok(Value::Double(a.to_double()?.exp())),
        F::Ln => Ok(Value::Double(a.to_double()?.ln())),
        F::Sqrt => Ok(Value::Double(a.to_double()?.sqrt())),
        F::Pi => Ok(Value::Double(std::f64::consts::PI)),
        F::Power => Ok(Value::Double(a.to_double()?.powf(b.to_double()?))),
        F::Fnv1a => Ok(Value::Int(random::fnv1a(a.to_int()?, b.to_int()?))),
        F::Murmur2 => Ok(Value::Int(random::murmur2(a.to_int()?, b.to_int()?))),
        F::Permute => match b.to_int()? {
            ..=0 => Err("permute size parameter must be greater than zero".to_owned()),
            size => Ok(Value::Int(random::permute(a.to_int()?, size, c.to_int()?))),
        },
        F::And | F::Or | F::Case => Ok(Value::Null),
    }
}

fn are_double(a: Value, b: Value) -> bool {
    matches!(a, Value::Double(_)) || matches!(b, Value::Double(_))
}

fn arithmetic(function: Function, a: Value, b: Value) -> Result<Value, String> {
    use Function as F;
    if are_double(a, b) && function != F::Modulo {
        let (a, b) = (a.to_double()?, b.to_double()?);
        return Ok(Value::Double(match function {
            F::Add => a + b,
            F::Subtract => a - b,
            F::Multiply => a * b,
            _ => a / b,
        }));
    }
    let (a, b) = (a.to_int()?, b.to_int()?);
    let (result, word) = match function {
        F::Add => (a.checked_add(b), "add"),
        F::Subtract => (a.checked_sub(b), "sub"),
        F::Multiply => (a.checked_mul(b), "mul"),
        _ if b == 0 => return Err("division by zero".to_owned()),
        F::Modulo => (Some(a.wrapping_rem(b)), "mod"),
        _ => (a.checked_div(b), "div"),
    };
    result.map(Value::Int).ok_or_else(|| format!("bigint {word} out of range"))
}

fn comparison(function: Function, a: Value, b: Value) -> Result<Value, String> {
    fn holds<T: PartialOrd>(function: Function, a: T, b: T) -> bool {
        match function {
            Function::Equal => a == b,
            Function::Unequal => a != b,
            Function::LessOrEqual => a <= b,
            _ => a < b,
        }
    }
    Ok(Value::Bool(if are_double(a, b) {
        holds(function, a.to_double()?, b.to_double()?)
    } else {
        holds(function, a.to_int()?, b.to_int()?)
    }))
}

fn bits(function: Function, a: Value, b: Value) -> Result<Value, String> {
    use Function as F;
    let (a, b) = (a.to_int()?, b.to_int()?);
    Ok(Value::Int(match function {
        F::BitAnd => a & b,
        F::BitOr => a | b,
        F::BitXor => a ^ b,
        F::ShiftLeft => a.wrapping_shl(b as u32),
        _ => a.wrapping_shr(b as u32),
    }))
}

fn extreme(function: Function, values: impl Iterator<Item = Value> + Clone) -> Result<Value, String> {
    let is_least = function == Function::Least;
    if values.clone().any(|value| matches!(value, Value::Double(_))) {
        let numbers = values.map(Value::to_double).collect::<Result<Vec<_>, _>>()?;
        let better = |a: f64, b: f64| if (b < a) == is_least && a != b { b } else { a };
        return Ok(numbers.into_iter().reduce(better).map_or(Value::Null, Value::Double));
    }
    let numbers = values.map(Value::to_int).collect::<Result<Vec<_>, _>>()?;
    let found = if is_least { numbers.iter().min() } else { numbers.iter().max() };
    Ok(found.map_or(Value::Null, |number| Value::Int(*number)))
}

fn random(function: Function, (a, b, c): (Value, Value, Value), draws: &mut Draws) -> Result<Value, String> {
    let (low, high) = (a.to_int()?, b.to_int()?);
    random::range_problem(low, high)?;
    let drawn = match function {
        Function::Random => Ok(draws.uniform(low, high)),
        Function::Exponential => draws.exponential(low, high, c.to_double()?),
        Function::Gaussian => draws.gaussian(low, high, c.to_double()?),
        _ => draws.zipfian(low, high, c.to_double()?),
    };
    drawn.map(Value::Int)
}
