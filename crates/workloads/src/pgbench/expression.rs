//! Expressions of `\set` and `\if`: their parts, and how their values are computed.

use super::random::{self, PgbenchDraws};
use super::value::Value;
use super::variables::Variables;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Expression {
    Constant(Value),
    /// A variable by its index among all variables.
    Variable(usize),
    Call(Function, Vec<Expression>),
    /// Operators from left to right. The first operand of each is what came before it, so that a sum of
    /// any length is not deep.
    Chain(Box<Expression>, Vec<ChainLink>),
}

/// An operator of a chain, with its second operand.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ChainLink {
    function: Function,
    right: Expression,
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
    IsNot,
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

/// How many arguments each of the functions takes that a script calls by name. With a seed of its own a
/// function takes one more.
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
    /// Returns `self`, then an operator with its second operand.
    pub(crate) fn then(self, function: Function, right: Self) -> Self {
        let link = ChainLink { function, right };
        match self {
            Self::Chain(first, mut links) => {
                links.push(link);
                Self::Chain(first, links)
            }
            first => Self::Chain(Box::new(first), vec![link]),
        }
    }

    pub(crate) fn value(&self, variables: &Variables, draws: &mut PgbenchDraws) -> Result<Value, String> {
        match self {
            Self::Constant(value) => Ok(*value),
            Self::Variable(index) => variables.value(*index),
            Self::Call(Function::Case, arguments) => case(arguments, variables, draws),
            Self::Call(function, arguments) => strict(*function, arguments, variables, draws),
            Self::Chain(first, links) => {
                let mut left = first.value(variables, draws)?;
                for ChainLink { function, right } in links {
                    left = match function {
                        Function::And => junction(left, right, false, variables, draws)?,
                        Function::Or => junction(left, right, true, variables, draws)?,
                        function => applied(*function, &[left, right.value(variables, draws)?], draws)?,
                    };
                }
                Ok(left)
            }
        }
    }
}

/// Returns the value of AND or OR. The second operand is computed only if the first is not `decides`.
fn junction(
    left: Value,
    right: &Expression,
    decides: bool,
    variables: &Variables,
    draws: &mut PgbenchDraws,
) -> Result<Value, String> {
    if left == Value::Null || left.to_bool()? == decides {
        return Ok(left);
    }
    match right.value(variables, draws)? {
        Value::Null => Ok(Value::Null),
        right => right.to_bool().map(Value::Bool),
    }
}

fn case(arguments: &[Expression], variables: &Variables, draws: &mut PgbenchDraws) -> Result<Value, String> {
    let (pairs, otherwise) = arguments.as_chunks::<2>();
    for [condition, value] in pairs {
        if condition.value(variables, draws)?.is_true() {
            return value.value(variables, draws);
        }
    }
    otherwise.first().map_or(Ok(Value::Null), |value| value.value(variables, draws))
}

/// Returns the value of a function whose arguments are all computed.
fn strict(
    function: Function,
    arguments: &[Expression],
    variables: &Variables,
    draws: &mut PgbenchDraws,
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
    if more.is_empty() {
        return applied(function, &first[..arguments.len()], draws);
    }
    applied(function, &[&first[..], &more].concat(), draws)
}

/// Returns the value of a function of `given`. It is NULL if one of them is NULL.
fn applied(function: Function, given: &[Value], draws: &mut PgbenchDraws) -> Result<Value, String> {
    use Function as F;
    let has_null = given.contains(&Value::Null);
    if has_null && !matches!(function, F::Is | F::IsNot | F::Debug) {
        return Ok(Value::Null);
    }
    let [a, b, c] = [0, 1, 2].map(|place| given.get(place).copied().unwrap_or(Value::Null));
    match function {
        F::Add | F::Subtract | F::Multiply | F::Divide | F::Modulo => arithmetic(function, a, b),
        F::Equal | F::Unequal | F::LessOrEqual | F::Less => comparison(function, a, b),
        F::BitAnd | F::BitOr | F::BitXor | F::ShiftLeft | F::ShiftRight => bits(function, a, b),
        F::Least | F::Greatest => extreme(function, given.iter().copied()),
        F::Random | F::Exponential | F::Gaussian | F::Zipfian => random(function, (a, b, c), draws),
        F::Not => Ok(Value::Bool(!a.to_bool()?)),
        F::Is => Ok(Value::Bool(a == b)),
        F::IsNot => Ok(Value::Bool(a != b)),
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

fn random(function: Function, (a, b, c): (Value, Value, Value), draws: &mut PgbenchDraws) -> Result<Value, String> {
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
