//! The programmed rows in MySQL's formats. Each is built when it is first needed.

use std::sync::{Arc, OnceLock};

use super::packet::{AUTOCOMMIT, IN_TRANSACTION, Packets, put_number, put_text};

/// The format of an answer with rows, which depends on the request and the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Form {
    /// Whether the rows are binary, as a prepared statement's execution returns them.
    pub(super) binary: bool,
    pub(super) deprecate_eof: bool,
    pub(super) in_transaction: bool,
}

/// All formats of one answer.
#[derive(Debug)]
pub(crate) struct Answers {
    rows: u32,
    pub(super) columns: u16,
    bytes: u32,
    forms: [OnceLock<Arc<[u8]>>; 8],
}

impl Answers {
    pub(crate) fn new(rows: u32, columns: u16, bytes: u32) -> Self {
        Self { rows, columns, bytes, forms: Default::default() }
    }

    /// The answer's bytes. Its first packet has the number `number`, which is 1 unless the request
    /// took several packets.
    pub(super) fn rows(&self, form: Form, number: u8) -> Arc<[u8]> {
        let index = usize::from(form.binary)
            | usize::from(form.deprecate_eof) << 1
            | usize::from(form.in_transaction) << 2;
        if number != 1 {
            return self.build(form, number).into();
        }
        Arc::clone(self.forms[index].get_or_init(|| self.build(form, 1).into()))
    }

    /// Appends the definitions of all columns.
    pub(super) fn put_columns(&self, packets: &mut Packets<'_>) {
        for number in 1..=self.columns {
            packets.text_column(&format!("c{number}"), self.bytes);
        }
    }

    fn build(&self, form: Form, number: u8) -> Vec<u8> {
        let status = status(form.in_transaction);
        let mut out = Vec::new();
        let mut packets = Packets::new(&mut out, number);
        packets.put(|out| put_number(out, u64::from(self.columns)));
        self.put_columns(&mut packets);
        if !form.deprecate_eof {
            packets.eof(status);
        }
        let value = crate::value(self.bytes);
        for _ in 0..self.rows {
            packets.put(|out| {
                if form.binary {
                    out.push(0);
                    // One bit per column says whether it is NULL. The first two bits are not used.
                    out.resize(out.len() + (usize::from(self.columns) + 9) / 8, 0);
                }
                for _ in 0..self.columns {
                    put_text(out, &value);
                }
            });
        }
        packets.rows_end(status, form.deprecate_eof);
        out
    }
}

/// Status bits in an answer.
pub(super) fn status(in_transaction: bool) -> u16 {
    if in_transaction { AUTOCOMMIT | IN_TRANSACTION } else { AUTOCOMMIT }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_the_bytes_of_the_documentation() {
        let answers = Answers::new(1, 1, 2);
        let new = Form { binary: true, deprecate_eof: true, in_transaction: false };
        let old = Form { binary: false, deprecate_eof: false, in_transaction: true };
        let column = b"\x18\0\0\x02\x03def\0\0\0\x02c1\0\x0c\x2d\0\x08\0\0\0\xfd\0\0\0\0\0";
        let binary: &[&[u8]] =
            &[b"\x01\0\0\x01\x01", column, b"\x05\0\0\x03\0\0\x0212", b"\x07\0\0\x04\xfe\0\0\x02\0\0\0"];
        let text: &[&[u8]] = &[
            b"\x01\0\0\x01\x01",
            column,
            b"\x05\0\0\x03\xfe\0\0\x03\0",
            b"\x03\0\0\x04\x0212",
            b"\x05\0\0\x05\xfe\0\0\x03\0",
        ];
        assert_eq!(&answers.rows(new, 1)[..], binary.concat());
        assert_eq!(&answers.rows(old, 1)[..], text.concat());
        assert_eq!(answers.rows(old, 3)[3], 3, "a request of three packets is answered from number 3 on");
    }
}
