//! The programmed rows in PostgreSQL's formats.

use std::sync::{Arc, OnceLock};

use super::message::{TEXT, put, put_complete, put_ready, put_text};

/// All formats of one answer.
#[derive(Debug)]
pub(crate) struct Answers {
    rows: u32,
    columns: u16,
    bytes: u32,
    /// The description of the columns.
    pub(super) description: Vec<u8>,
    /// Rows and their end, as an execution returns them.
    executed: OnceLock<Arc<[u8]>>,
    /// The whole answer to a query text, outside and inside a transaction.
    simple: [OnceLock<Arc<[u8]>>; 2],
}

impl Answers {
    pub(crate) fn new(rows: u32, columns: u16, bytes: u32) -> Self {
        let mut description = Vec::new();
        put(&mut description, b'T', |body| {
            body.extend_from_slice(&columns.to_be_bytes());
            for number in 1..=columns {
                put_text(body, format!("c{number}").as_bytes());
                body.extend_from_slice(&[0; 6]); // no table, no number in it
                body.extend_from_slice(&TEXT.to_be_bytes());
                body.extend_from_slice(&(-1_i16).to_be_bytes()); // variable length
                body.extend_from_slice(&(-1_i32).to_be_bytes()); // no modifier
                body.extend_from_slice(&[0, 0]); // as text, which for this type is its binary form too
            }
        });
        Self { rows, columns, bytes, description, executed: OnceLock::new(), simple: Default::default() }
    }

    pub(super) fn executed(&self) -> &Arc<[u8]> {
        self.executed.get_or_init(|| {
            let mut out = Vec::new();
            self.put_rows(&mut out);
            out.into()
        })
    }

    pub(super) fn simple(&self, in_transaction: bool) -> &Arc<[u8]> {
        self.simple[usize::from(in_transaction)].get_or_init(|| {
            let mut out = self.description.clone();
            self.put_rows(&mut out);
            put_ready(&mut out, if in_transaction { b'T' } else { b'I' });
            out.into()
        })
    }

    fn put_rows(&self, out: &mut Vec<u8>) {
        let value = crate::value(self.bytes);
        for _ in 0..self.rows {
            put(out, b'D', |body| {
                body.extend_from_slice(&self.columns.to_be_bytes());
                for _ in 0..self.columns {
                    body.extend_from_slice(&self.bytes.to_be_bytes());
                    body.extend_from_slice(&value);
                }
            });
        }
        put_complete(out, format!("SELECT {}", self.rows).as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_the_bytes_of_the_documentation() {
        let answers = Answers::new(1, 1, 2);
        let description =
            b"T\0\0\0\x1b\0\x01c1\0\0\0\0\0\0\0\0\0\0\x19\xff\xff\xff\xff\xff\xff\0\0".as_slice();
        let rows = b"D\0\0\0\x0c\0\x01\0\0\0\x0212C\0\0\0\x0dSELECT 1\0".as_slice();
        assert_eq!(answers.description, description);
        assert_eq!(&answers.executed()[..], rows);
        assert_eq!(&answers.simple(true)[..], [description, rows, b"Z\0\0\0\x05T"].concat());
    }
}
