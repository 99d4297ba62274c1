//! Parses the expressions of `\set` and `\if`, and computes their values.

use crate::pgbench::random::{self, PgbenchDraws};
use crate::pgbench::variables::Value;
use crate::pgbench::variables::{Names, Variables, is_name_character, name_length};

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Expression {
    Constant(Value),
    /// A variable by its index among all variables.
    Variable(usize),
    Call(Function, Vec<Expression>),
    /// Operators from left to right. The first operand of each is the value of all before it, so
    /// that a sum of any length is not nested.
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
    /// Its arguments are the conditions, each with its value, then the value of ELSE.
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

/// The functions that a script calls by name, and how many arguments each takes. Where a function
/// takes a seed, the highest number includes it.
const NAMED: [(&str, Function, std::ops::RangeInclusive<usize>); 21] = [
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
    /// Returns an expression that applies an operator to `self` and the operand `right`.
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

/// Returns the value of AND or OR. The second operand is computed only if the first one is not
/// equal to `decides`.
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

/// Returns the value of `function` for the arguments `given`. It is NULL if one of them is NULL.
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

fn random(
    function: Function,
    (a, b, c): (Value, Value, Value),
    draws: &mut PgbenchDraws,
) -> Result<Value, String> {
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

/// The deepest nesting of brackets and operators. A deeper one might overflow the stack of a load
/// thread.
const DEEPEST: u32 = 200;

/// One more than the highest whole number. A script may only write it with a minus sign.
const BEYOND: u64 = 1 << 63;

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Number(u64),
    Double(f64),
    Variable(String),
    Word(String),
    Sign(&'static str),
}

/// How tightly operators bind, from the loosest to the tightest.
const OR: u8 = 1;
const AND: u8 = 2;
const NOT: u8 = 3;
const IS: u8 = 4;
const COMPARE: u8 = 5;
const BITS: u8 = 6;
const SUM: u8 = 7;
const PRODUCT: u8 = 8;
const UNARY: u8 = 9;

/// Operators that follow an operand: how tightly each binds, its function, and whether it swaps its
/// operands. For `is`, `isnull` and `notnull` only how tightly they bind counts. Longer
/// operators come first, because the first one that fits is taken.
const OPERATORS: [(&str, u8, Function, bool); 22] = [
    ("or", OR, Function::Or, false),
    ("and", AND, Function::And, false),
    ("<=", COMPARE, Function::LessOrEqual, false),
    (">=", COMPARE, Function::LessOrEqual, true),
    ("<>", COMPARE, Function::Unequal, false),
    ("!=", COMPARE, Function::Unequal, false),
    ("<<", BITS, Function::ShiftLeft, false),
    (">>", BITS, Function::ShiftRight, false),
    ("<", COMPARE, Function::Less, false),
    (">", COMPARE, Function::Less, true),
    ("=", COMPARE, Function::Equal, false),
    ("+", SUM, Function::Add, false),
    ("-", SUM, Function::Subtract, false),
    ("*", PRODUCT, Function::Multiply, false),
    ("/", PRODUCT, Function::Divide, false),
    ("%", PRODUCT, Function::Modulo, false),
    ("&", BITS, Function::BitAnd, false),
    ("|", BITS, Function::BitOr, false),
    ("#", BITS, Function::BitXor, false),
    ("is", IS, Function::Is, false),
    ("isnull", IS, Function::Is, false),
    ("notnull", IS, Function::Is, false),
];
/// Symbols that are not in [`OPERATORS`].
const OTHER_SIGNS: [&str; 4] = ["(", ")", ",", "~"];

/// Parses all of `text`. Variables get indexes into `names`.
pub(crate) fn expression(text: &str, names: &mut Names) -> Result<Expression, String> {
    let tokens = tokens(text)?;
    let mut parser = Parser { tokens, at: 0, depth: 0, names };
    let expression = parser.operators(OR)?;
    match parser.tokens.get(parser.at) {
        None => Ok(expression),
        Some(token) => Err(unexpected(Some(token))),
    }
}

fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let second = rest[first.len_utf8()..].chars().next();
        let (token, length) = if first == ':' && name_length(&rest[1..]) > 0 {
            let length = 1 + name_length(&rest[1..]);
            (Token::Variable(rest[1..length].to_owned()), length)
        } else if first.is_ascii_digit()
            || first == '.' && second.is_some_and(|character| character.is_ascii_digit())
        {
            number(rest)?
        } else if is_name_character(first) {
            let length = name_length(rest);
            (Token::Word(rest[..length].to_ascii_lowercase()), length)
        } else {
            let mut signs = OPERATORS.iter().map(|operator| operator.0).chain(OTHER_SIGNS);
            let sign = signs.find(|sign| rest.starts_with(sign));
            let sign = sign.ok_or_else(|| format!("unexpected character \"{first}\""))?;
            (Token::Sign(sign), sign.len())
        };
        tokens.push(token);
        rest = rest[length..].trim_start();
    }
    Ok(tokens)
}

/// Parses a number: `12`, `1.5`, `.5`, `1e-3`.
fn number(text: &str) -> Result<(Token, usize), String> {
    let digits = |text: &str| text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    let mut length = digits(text);
    let whole = length;
    if text[length..].starts_with('.') {
        length += 1 + digits(&text[length + 1..]);
    }
    if text[length..].starts_with(['e', 'E']) {
        let signed = usize::from(text[length + 1..].starts_with(['+', '-']));
        let exponent = digits(&text[length + 1 + signed..]);
        if exponent > 0 {
            length += 1 + signed + exponent;
        }
    }
    let token = if length == whole {
        let number = text[..whole].parse().ok().filter(|number| *number <= BEYOND);
        Token::Number(number.ok_or("bigint constant overflow")?)
    } else {
        Token::Double(text[..length].parse().map_err(|_| "double constant overflow")?)
    };
    Ok((token, length))
}

struct Parser<'a> {
    tokens: Vec<Token>,
    at: usize,
    depth: u32,
    names: &'a mut Names,
}

impl Parser<'_> {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    /// Returns the symbol or word that comes next.
    fn next_text(&self) -> Option<&str> {
        match self.peek()? {
            Token::Sign(sign) => Some(sign),
            Token::Word(word) => Some(word),
            Token::Number(_) | Token::Double(_) | Token::Variable(_) => None,
        }
    }

    /// Takes the next token if it is this symbol or word. Returns whether it took a token.
    fn takes(&mut self, text: &str) -> bool {
        let is_next = self.next_text() == Some(text);
        self.at += usize::from(is_next);
        is_next
    }

    fn expects(&mut self, text: &str) -> Result<(), String> {
        if self.takes(text) { Ok(()) } else { Err(unexpected(self.peek())) }
    }

    /// Parses operands joined by operators that bind at least as tightly as `lowest`.
    fn operators(&mut self, lowest: u8) -> Result<Expression, String> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(format!("more than {DEEPEST} expressions within each other"));
        }
        let mut left = self.operand()?;
        // Comparisons and IS cannot be chained: `a < b < c` is an error.
        let mut highest = UNARY;
        while let Some((operator, precedence, function, swaps)) =
            self.operator().filter(|(_, precedence, ..)| (lowest..=highest).contains(precedence))
        {
            self.at += 1;
            left = if precedence == IS {
                self.is(left, operator)?
            } else {
                let right = self.operators(precedence + 1)?;
                if swaps { Expression::Call(function, vec![right, left]) } else { left.then(function, right) }
            };
            if matches!(precedence, IS | COMPARE) {
                highest = precedence - 1;
            }
        }
        self.depth -= 1;
        Ok(left)
    }

    /// Returns the row of the operator that comes next.
    fn operator(&self) -> Option<(&'static str, u8, Function, bool)> {
        let next = self.next_text()?;
        OPERATORS.into_iter().find(|(operator, ..)| *operator == next)
    }

    /// Parses what follows `operator`. After `IS` this is `[NOT]`, then `NULL`, `TRUE` or `FALSE`.
    /// After `ISNULL` and `NOTNULL` there is nothing.
    fn is(&mut self, left: Expression, operator: &str) -> Result<Expression, String> {
        let (negated, value) = match operator {
            "isnull" => (false, Value::Null),
            "notnull" => (true, Value::Null),
            _ => {
                let negated = self.takes("not");
                let value = match self.peek() {
                    Some(Token::Word(word)) => constant(word),
                    _ => None,
                };
                let value = value.ok_or_else(|| unexpected(self.peek()))?;
                self.at += 1;
                (negated, value)
            }
        };
        let function = if negated { Function::IsNot } else { Function::Is };
        Ok(left.then(function, Expression::Constant(value)))
    }

    fn operand(&mut self) -> Result<Expression, String> {
        let Some(token) = self.peek().cloned() else { return Err(unexpected(None)) };
        self.at += 1;
        match token {
            Token::Number(number) => match i64::try_from(number) {
                Ok(number) => Ok(Expression::Constant(Value::Int(number))),
                Err(_) => Err("bigint constant overflow".to_owned()),
            },
            Token::Double(number) => Ok(Expression::Constant(Value::Double(number))),
            Token::Variable(name) => Ok(Expression::Variable(self.names.index(&name))),
            Token::Sign("(") => {
                let inner = self.operators(OR)?;
                self.expects(")").map(|()| inner)
            }
            Token::Sign("+") => self.operators(UNARY),
            Token::Sign("-") if self.peek() == Some(&Token::Number(BEYOND)) => {
                self.at += 1;
                Ok(Expression::Constant(Value::Int(i64::MIN)))
            }
            Token::Sign("-") => {
                let right = self.operators(UNARY)?;
                Ok(Expression::Call(Function::Subtract, vec![Expression::Constant(Value::Int(0)), right]))
            }
            Token::Sign("~") => {
                let right = self.operators(UNARY)?;
                Ok(Expression::Call(Function::BitXor, vec![Expression::Constant(Value::Int(-1)), right]))
            }
            Token::Word(word) => self.word(&word),
            Token::Sign(_) => Err(unexpected(Some(&token))),
        }
    }

    fn word(&mut self, word: &str) -> Result<Expression, String> {
        if let Some(value) = constant(word) {
            return Ok(Expression::Constant(value));
        }
        match word {
            "not" => Ok(Expression::Call(Function::Not, vec![self.operators(NOT)?])),
            "case" => self.case(),
            word => self.call(word),
        }
    }

    fn case(&mut self) -> Result<Expression, String> {
        let mut arguments = Vec::new();
        while self.takes("when") {
            arguments.push(self.operators(OR)?);
            self.expects("then")?;
            arguments.push(self.operators(OR)?);
        }
        if arguments.is_empty() {
            return Err(unexpected(self.peek()));
        }
        arguments.push(if self.takes("else") {
            self.operators(OR)?
        } else {
            Expression::Constant(Value::Null)
        });
        self.expects("end").map(|()| Expression::Call(Function::Case, arguments))
    }

    fn call(&mut self, name: &str) -> Result<Expression, String> {
        self.expects("(")?;
        let known = NAMED.iter().find(|(own, ..)| *own == name);
        let (_, function, numbers) = known.ok_or_else(|| {
            let names = NAMED.iter().map(|(own, ..)| *own).collect::<Vec<_>>().join(", ");
            format!("unexpected function name \"{name}\"; there are {names}")
        })?;
        let mut arguments = Vec::new();
        while !self.takes(")") {
            if !arguments.is_empty() {
                self.expects(",")?;
            }
            arguments.push(self.operators(OR)?);
        }
        if !numbers.contains(&arguments.len()) {
            return Err(format!("unexpected number of arguments of {name}: {}", arguments.len()));
        }
        let has_seed = matches!(function, Function::Fnv1a | Function::Murmur2 | Function::Permute);
        if has_seed && arguments.len() < *numbers.end() {
            arguments.push(Expression::Variable(self.names.index("default_seed")));
        }
        Ok(Expression::Call(*function, arguments))
    }
}

fn constant(word: &str) -> Option<Value> {
    match word {
        "null" => Some(Value::Null),
        "true" => Some(Value::Bool(true)),
        "false" => Some(Value::Bool(false)),
        _ => None,
    }
}

fn unexpected(token: Option<&Token>) -> String {
    let text = match token {
        None => return "syntax error at the end of the expression".to_owned(),
        Some(Token::Number(number)) => number.to_string(),
        Some(Token::Double(number)) => number.to_string(),
        Some(Token::Variable(name)) => format!(":{name}"),
        Some(Token::Word(word)) => word.clone(),
        Some(Token::Sign(sign)) => (*sign).to_owned(),
    };
    format!("syntax error at \"{text}\"")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::Philox;
    use crate::pgbench::random::PgbenchDraws;
    use crate::pgbench::variables::Variables;

    fn shown(text: &str) -> String {
        let mut names = Names::default();
        let found = expression(text, &mut names).and_then(|expression| {
            let mut variables = Variables::new(Arc::new(names.clone()));
            variables.set_text("x", "7");
            variables.set_text("t", "true");
            variables.set_text("bad", "abc");
            variables.set_text("default_seed", "5432");
            expression.value(&variables, &mut PgbenchDraws::new(Philox::new(1, 1)))
        });
        match found {
            Ok(value) => {
                let mut out = Vec::new();
                value.write(&mut out);
                String::from_utf8(out).unwrap()
            }
            Err(problem) => format!("error: {problem}"),
        }
    }

    /// The file has expressions with the values that Debian's pgbench computes for them. The test
    /// `servers/pgbench.rs` of the command line compares them with pgbench itself.
    #[test]
    fn expressions_have_the_values_of_the_original() {
        for line in include_str!("expressions.txt").lines() {
            let (text, value) = line.split_once(" => ").unwrap();
            assert_eq!(shown(text), value, "{text}");
        }
    }

    /// The test runs on the stack of a load thread.
    #[test]
    fn an_expression_may_have_any_length() {
        let many = |first: &str, more: &str| format!("{first}{}", more.repeat(100_000));
        for (text, value) in [
            (many("1", " + 1"), "100001"),
            (many("1", " - 2 * :x"), "-1399999"),
            (many("true", " and 1 < 2"), "true"),
            (many("false", " or false"), "false"),
            (many("1", " + 1 >= 2 and 1") + " >= 0", "true"),
            (format!("greatest(1{})", ", 2".repeat(100_000)), "2"),
            (format!("case {} end", "when false then 1 ".repeat(100_000)), "NULL"),
        ] {
            let found = std::thread::Builder::new().stack_size(2 << 20).spawn(move || shown(&text));
            assert_eq!(found.unwrap().join().unwrap(), value);
        }
    }

    #[test]
    fn mistakes_are_named() {
        for (text, problem) in [
            ("1 +", "error: syntax error at the end of the expression"),
            ("1 2", "error: syntax error at \"2\""),
            ("1 < 2 < 3", "error: syntax error at \"<\""),
            ("nix(1)", "error: unexpected function name \"nix\"; there are abs"),
            ("abs(1, 2)", "error: unexpected number of arguments of abs: 2"),
            ("9223372036854775808", "error: bigint constant overflow"),
            ("9223372036854775807 + 1", "error: bigint add out of range"),
            ("(-9223372036854775808) / -1", "error: bigint div out of range"),
            ("1 / 0", "error: division by zero"),
            (":y", "error: undefined variable \"y\""),
            (":bad + 1", "error: malformed variable \"bad\" value: \"abc\""),
            ("not 1", "error: cannot coerce int to boolean"),
            ("permute(1, 0)", "error: permute size parameter must be greater than zero"),
            ("case end", "error: syntax error at \"end\""),
            ("1 $ 2", "error: unexpected character \"$\""),
        ] {
            assert!(shown(text).starts_with(problem), "{text}: {}", shown(text));
        }
        assert!(shown(&"(".repeat(100_000)).contains("more than 200"));
        assert!(shown(&"-".repeat(100_000)).contains("more than 200"));
        assert!(shown(&"not ".repeat(100_000)).contains("more than 200"));
        assert!(shown(&"abs(".repeat(100_000)).contains("more than 200"));
        assert!(shown(&"case when ".repeat(100_000)).contains("more than 200"));
    }
}
