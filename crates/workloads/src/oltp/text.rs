//! Statements as text. A template is cut at its parameters, and the parameters are written between the
//! pieces.

use dbdyno_db::Param;

/// A statement's text without its parameters.
#[derive(Debug, Clone)]
pub(crate) struct Template {
    pieces: Vec<String>,
}

impl Template {
    /// Returns a statement with parameters written as `?`. It holds no other question mark.
    pub(crate) fn new(sql: &str) -> Self {
        Self { pieces: sql.split('?').map(str::to_owned).collect() }
    }

    /// Writes the statement with `params` into `out`. Texts are digits and hyphens, so that nothing
    /// needs an escape.
    pub(crate) fn write(&self, params: &[Param], out: &mut Vec<u8>) {
        out.clear();
        for (index, piece) in self.pieces.iter().enumerate() {
            out.extend_from_slice(piece.as_bytes());
            match params.get(index) {
                Some(Param::Int(number)) => {
                    out.extend_from_slice(itoa::Buffer::new().format(*number).as_bytes());
                }
                Some(Param::Text(text)) => {
                    out.push(b'\'');
                    out.extend_from_slice(text);
                    out.push(b'\'');
                }
                Some(Param::Null) => out.extend_from_slice(b"NULL"),
                None => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_stand_where_the_marks_were() {
        let mut out = b"old".to_vec();
        let params = [Param::Text(b"12-3".to_vec()), Param::Int(-7)];
        Template::new("UPDATE t SET c=? WHERE id=?").write(&params, &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), "UPDATE t SET c='12-3' WHERE id=-7");
        let mut out = Vec::new();
        Template::new("COMMIT").write(&[], &mut out);
        assert_eq!(out, b"COMMIT");
    }
}
