//! Matches Lua's patterns (section 5.4.1 of the reference manual of Lua 5.1) so that a match can be
//! ended. The matcher of Lua's own library may run for hours on a long text, and nothing ends it.
//!
//! `lua/core.lua` uses this matcher only where that may happen.

/// After this many steps each time, the matcher asks the caller whether to continue.
const STEPS: u32 = 1 << 16;
/// These limits are those of Lua's library.
const MOST_CAPTURES: usize = 32;
const MOST_DEPTH: u32 = 200;
const ESCAPE: u8 = b'%';

/// What a pattern has captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Capture {
    /// Text from the first byte to before the second, both counted from 0.
    Text(usize, usize),
    /// The capture of `()`, which is a position in the text, from 0.
    Place(usize),
}

/// Where a pattern matches, from `start` to before `end`, both counted from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Match {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) captures: Vec<Capture>,
}

/// Returns the first match of `pattern` in `text` from byte `from` on. `may_go_on` is called during
/// a long match, and its error says why the match must end.
///
/// # Errors
/// The error says what is wrong with the pattern, in the words of Lua's own library, or why the
/// match was ended.
pub(crate) fn find(
    text: &[u8],
    pattern: &[u8],
    from: usize,
    may_go_on: &mut dyn FnMut() -> Result<(), String>,
) -> Result<Option<Match>, String> {
    let (is_anchored, pattern) = match pattern.strip_prefix(b"^") {
        Some(rest) => (true, rest),
        None => (false, pattern),
    };
    let mut matcher = Matcher { text, pattern, captures: Vec::new(), depth: 0, steps: 0, may_go_on };
    for start in from..=text.len() {
        matcher.captures.clear();
        if let Some(end) = matcher.matches(start, 0)? {
            let captures = matcher.captures.iter().map(OpenCapture::closed).collect::<Result<_, _>>()?;
            return Ok(Some(Match { start, end, captures }));
        }
        if is_anchored {
            break;
        }
    }
    Ok(None)
}

/// A capture while it is matched.
#[derive(Debug, Clone, Copy)]
struct OpenCapture {
    from: usize,
    to: End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Unknown,
    At(usize),
    Place,
}

impl OpenCapture {
    fn closed(&self) -> Result<Capture, String> {
        match self.to {
            End::At(to) => Ok(Capture::Text(self.from, to)),
            End::Place => Ok(Capture::Place(self.from)),
            End::Unknown => Err("unfinished capture".to_owned()),
        }
    }
}

struct Matcher<'a> {
    text: &'a [u8],
    pattern: &'a [u8],
    captures: Vec<OpenCapture>,
    depth: u32,
    steps: u32,
    may_go_on: &'a mut dyn FnMut() -> Result<(), String>,
}

/// Where a match ends, or `None` where there is none.
type Found = Result<Option<usize>, String>;

impl Matcher<'_> {
    fn step(&mut self) -> Result<(), String> {
        self.steps += 1;
        if self.steps.is_multiple_of(STEPS) { (self.may_go_on)() } else { Ok(()) }
    }

    /// Matches the pattern from `p` on with the text from `s` on.
    fn matches(&mut self, s: usize, p: usize) -> Found {
        self.depth += 1;
        if self.depth > MOST_DEPTH {
            return Err("pattern too complex".to_owned());
        }
        let found = self.matched(s, p);
        self.depth -= 1;
        found
    }

    fn matched(&mut self, mut s: usize, mut p: usize) -> Found {
        loop {
            self.step()?;
            let next = self.pattern.get(p + 1).copied();
            match self.pattern.get(p) {
                None => return Ok(Some(s)),
                Some(b'(') if next == Some(b')') => return self.captured(s, p + 2, End::Place),
                Some(b'(') => return self.captured(s, p + 1, End::Unknown),
                Some(b')') => return self.end_capture(s, p + 1),
                Some(b'$') if next.is_none() => return Ok((s == self.text.len()).then_some(s)),
                Some(&ESCAPE) if next == Some(b'b') => match self.balanced(s, p + 2)? {
                    Some(end) => (s, p) = (end, p + 4),
                    None => return Ok(None),
                },
                Some(&ESCAPE) if next == Some(b'f') => match self.frontier(s, p + 2)? {
                    Some(end) => p = end,
                    None => return Ok(None),
                },
                Some(&ESCAPE) if next.is_some_and(|character| character.is_ascii_digit()) => {
                    match self.repeated(s, next.unwrap_or(b'0'))? {
                        Some(end) => (s, p) = (end, p + 2),
                        None => return Ok(None),
                    }
                }
                Some(_) => {
                    let end = self.class_end(p)?;
                    match self.pattern.get(end) {
                        Some(b'?') => {
                            if self.is_single(s, p, end)
                                && let Some(found) = self.matches(s + 1, end + 1)?
                            {
                                return Ok(Some(found));
                            }
                            p = end + 1;
                        }
                        Some(b'*') => return self.max(s, p, end, 0),
                        Some(b'+') => return self.max(s, p, end, 1),
                        Some(b'-') => return self.fewest(s, p, end),
                        _ if self.is_single(s, p, end) => (s, p) = (s + 1, end),
                        _ => return Ok(None),
                    }
                }
            }
        }
    }

    /// Tries as many repetitions as there are, then fewer, but at least `min`.
    fn max(&mut self, s: usize, p: usize, end: usize, min: usize) -> Found {
        let mut count = 0;
        while self.is_single(s + count, p, end) {
            self.step()?;
            count += 1;
        }
        loop {
            if count < min {
                return Ok(None);
            }
            if let Some(found) = self.matches(s + count, end + 1)? {
                return Ok(Some(found));
            }
            if count == 0 {
                return Ok(None);
            }
            count -= 1;
        }
    }

    fn fewest(&mut self, mut s: usize, p: usize, end: usize) -> Found {
        loop {
            if let Some(found) = self.matches(s, end + 1)? {
                return Ok(Some(found));
            }
            if !self.is_single(s, p, end) {
                return Ok(None);
            }
            s += 1;
        }
    }

    fn captured(&mut self, s: usize, p: usize, to: End) -> Found {
        if self.captures.len() >= MOST_CAPTURES {
            return Err("too many captures".to_owned());
        }
        let level = self.captures.len();
        self.captures.push(OpenCapture { from: s, to });
        let found = self.matches(s, p)?;
        if found.is_none() {
            self.captures.truncate(level);
        }
        Ok(found)
    }

    fn end_capture(&mut self, s: usize, p: usize) -> Found {
        let open = self.captures.iter().rposition(|capture| capture.to == End::Unknown);
        let level = open.ok_or("invalid pattern capture")?;
        self.captures[level].to = End::At(s);
        let found = self.matches(s, p)?;
        if found.is_none() {
            self.captures[level].to = End::Unknown;
        }
        Ok(found)
    }

    /// Matches `%1` and similar items, which mean the text of the capture with this number.
    fn repeated(&self, s: usize, digit: u8) -> Found {
        let level = usize::from(digit).checked_sub(usize::from(b'1'));
        let capture = level.and_then(|level| self.captures.get(level));
        match capture {
            Some(OpenCapture { from, to: End::At(to) }) => {
                let caught = &self.text[*from..*to];
                Ok(self.text[s..].starts_with(caught).then_some(s + caught.len()))
            }
            // The capture of a position has no text that could be repeated.
            Some(OpenCapture { to: End::Place, .. }) => Ok(None),
            _ => Err("invalid capture index".to_owned()),
        }
    }

    /// Matches `%bxy`. Its two characters are at `p`.
    fn balanced(&mut self, s: usize, p: usize) -> Found {
        let (Some(open), Some(close)) = (self.pattern.get(p).copied(), self.pattern.get(p + 1).copied())
        else {
            return Err("unbalanced pattern".to_owned());
        };
        if self.text.get(s) != Some(&open) {
            return Ok(None);
        }
        let mut depth = 1;
        for at in s + 1..self.text.len() {
            self.step()?;
            let character = self.text[at];
            if character == close {
                depth -= 1;
                if depth == 0 {
                    return Ok(Some(at + 1));
                }
            } else if character == open {
                depth += 1;
            }
        }
        Ok(None)
    }

    /// Matches `%f[set]`, whose set is at `p`. The result is where the pattern continues, and not a
    /// position in the text.
    fn frontier(&mut self, s: usize, p: usize) -> Found {
        if self.pattern.get(p) != Some(&b'[') {
            return Err("missing '[' after '%f' in pattern".to_owned());
        }
        let end = self.class_end(p)?;
        let before = if s == 0 { 0 } else { self.text[s - 1] };
        let after = self.text.get(s).copied().unwrap_or(0);
        Ok((!self.is_in_set(before, p, end - 1) && self.is_in_set(after, p, end - 1)).then_some(end))
    }

    /// Returns where the single class that begins at `p` ends.
    fn class_end(&self, p: usize) -> Result<usize, String> {
        let missing = || "malformed pattern (missing ']')".to_owned();
        match self.pattern[p] {
            ESCAPE if p + 1 >= self.pattern.len() => Err("malformed pattern (ends with '%')".to_owned()),
            ESCAPE => Ok(p + 2),
            b'[' => {
                let mut at = p + 1;
                if self.pattern.get(at) == Some(&b'^') {
                    at += 1;
                }
                // The first character belongs to the set, even if it is a bracket.
                loop {
                    let character = *self.pattern.get(at).ok_or_else(missing)?;
                    at += if character == ESCAPE { 2 } else { 1 };
                    if *self.pattern.get(at).ok_or_else(missing)? == b']' {
                        return Ok(at + 1);
                    }
                }
            }
            _ => Ok(p + 1),
        }
    }

    /// Returns whether the byte at `s` is in the single class between `p` and `end`.
    fn is_single(&self, s: usize, p: usize, end: usize) -> bool {
        let Some(&byte) = self.text.get(s) else { return false };
        match self.pattern[p] {
            b'.' => true,
            ESCAPE => is_of_class(byte, self.pattern[p + 1]),
            b'[' => self.is_in_set(byte, p, end - 1),
            own => own == byte,
        }
    }

    /// Returns whether a byte is in the set whose brackets are at `p` and `end`.
    fn is_in_set(&self, byte: u8, p: usize, end: usize) -> bool {
        let is_negated = self.pattern.get(p + 1) == Some(&b'^');
        let mut at = p + 1 + usize::from(is_negated);
        while at < end {
            let character = self.pattern[at];
            let (is_in, length) = if character == ESCAPE {
                (is_of_class(byte, self.pattern[at + 1]), 2)
            } else if self.pattern[at + 1] == b'-' && at + 2 < end {
                ((character..=self.pattern[at + 2]).contains(&byte), 3)
            } else {
                (character == byte, 1)
            };
            if is_in {
                return !is_negated;
            }
            at += length;
        }
        is_negated
    }
}

/// Returns whether a byte is in `%a` and similar classes. A capital letter means all bytes outside
/// its class, and any other character means itself.
fn is_of_class(byte: u8, class: u8) -> bool {
    let is_in = match class.to_ascii_lowercase() {
        b'a' => byte.is_ascii_alphabetic(),
        b'c' => byte.is_ascii_control(),
        b'd' => byte.is_ascii_digit(),
        b'g' => byte.is_ascii_graphic(),
        b'l' => byte.is_ascii_lowercase(),
        b'p' => byte.is_ascii_punctuation(),
        b's' => byte.is_ascii_whitespace() || byte == 0x0b,
        b'u' => byte.is_ascii_uppercase(),
        b'w' => byte.is_ascii_alphanumeric(),
        b'x' => byte.is_ascii_hexdigit(),
        b'z' => byte == 0,
        _ => return class == byte,
    };
    is_in != class.is_ascii_uppercase()
}

#[cfg(test)]
mod tests {
    use mlua::{Lua, MultiValue, Value};

    use super::*;
    use crate::Philox;

    fn found(text: &str, pattern: &str) -> Result<Option<Match>, String> {
        find(text.as_bytes(), pattern.as_bytes(), 0, &mut || Ok(()))
    }

    /// Returns the result as `string.find` gives it: positions from 1, then captures, or the error.
    fn words(text: &[u8], found: Result<Option<Match>, String>) -> String {
        let Match { start, end, captures } = match found {
            Ok(Some(found)) => found,
            Ok(None) => return "nil".to_owned(),
            Err(error) => return error,
        };
        let capture = |capture: &Capture| match *capture {
            Capture::Text(from, to) => format!("{:?}", String::from_utf8_lossy(&text[from..to])),
            Capture::Place(place) => (place + 1).to_string(),
        };
        let places = [(start + 1).to_string(), end.to_string()];
        places.into_iter().chain(captures.iter().map(capture)).collect::<Vec<_>>().join(" ")
    }

    /// Returns the result of the library itself.
    fn library_words(lua: &Lua, text: &[u8], pattern: &[u8]) -> String {
        let find: mlua::Function = lua.load("return string.find").eval().unwrap();
        let arguments = (lua.create_string(text).unwrap(), lua.create_string(pattern).unwrap());
        let value = |value: &Value| match value {
            Value::Nil => "nil".to_owned(),
            Value::String(text) => format!("{:?}", text.to_string_lossy()),
            Value::Integer(number) => number.to_string(),
            other => other.as_f64().map_or_else(String::new, |number| number.to_string()),
        };
        match find.call::<MultiValue>(arguments) {
            Ok(values) => values.iter().map(value).collect::<Vec<_>>().join(" "),
            Err(error) => {
                let text = error.to_string();
                let text = text.lines().next().unwrap_or_default();
                text.rsplit_once(": ").map_or(text, |(_, last)| last).to_owned()
            }
        }
    }

    #[test]
    fn classes_quantifiers_captures_and_anchors_are_those_of_the_manual() {
        let of = |text: &str, pattern| words(text.as_bytes(), found(text, pattern));
        assert_eq!(of("key = value", "^(%w+)%s*=%s*(%w+)$"), r#"1 11 "key" "value""#);
        assert_eq!(of("THE (quick) fox", "%((%a+)%)"), r#"5 11 "quick""#);
        assert_eq!(of("f(a(b)c)d", "%b()"), "2 8");
        assert_eq!(of("THE (quick) fox", "%f[%a]%a+%f[%A]"), "1 3");
        assert_eq!(of("say 'hi' and \"ho\"", "(['\"])(.-)%1"), r#"5 8 "'" "hi""#);
        assert_eq!(of("abc", "()b()"), "2 2 2 3");
        assert_eq!(of("a-b]c", "[]%-]+"), "2 2");
        assert_eq!(of("abc", "[^"), "malformed pattern (missing ']')");
        assert_eq!(of("abc", "(b"), "unfinished capture");
    }

    #[test]
    fn a_match_that_takes_long_can_be_ended() {
        let text = "a".repeat(100_000);
        let mut asked = 0;
        let ended = find(text.as_bytes(), b".-.-.-.-.-b", 0, &mut || {
            asked += 1;
            if asked < 100 { Ok(()) } else { Err("the step is over".to_owned()) }
        });
        assert_eq!((ended, asked), (Err("the step is over".to_owned()), 100));
    }

    /// Returns `count` of `parts`, chosen at random.
    fn drawn(draws: &Philox, address: u32, count: u32, parts: &[&str]) -> String {
        let part = |at| parts[draws.at(address, u64::from(at), 0)[0] as usize % parts.len()];
        (0..count).map(part).collect()
    }

    #[test]
    fn it_finds_what_the_library_of_lua_finds() {
        const SIGNS: [&str; 9] = ["a", "b", "a", "b", "(", ")", ".", " ", "1"];
        const PARTS: [&str; 24] = [
            "a", "b", ".", "%a", "%d", "%s", "%w", "%b()", "%f[a]", "%.", "%(", "%1", "[ab]", "[^a]",
            "[%d-]", "(", ")", "()", "-", "*", "+", "?", "$", "^",
        ];
        let (lua, draws) = (Lua::new(), Philox::new(7, 0));
        for case in 0..5_000 {
            let text = drawn(&draws, 3 * case, case % 13, &SIGNS);
            let pattern = drawn(&draws, 3 * case + 1, 1 + case % 7, &PARTS);
            // The library searches directly for a text without special characters.
            if !pattern.contains(['^', '$', '*', '+', '?', '.', '(', '[', '%', '-']) {
                continue;
            }
            let own = words(text.as_bytes(), found(&text, &pattern));
            let library = library_words(&lua, text.as_bytes(), pattern.as_bytes());
            assert_eq!(own, library, "{pattern:?} in {text:?}");
        }
    }
}
