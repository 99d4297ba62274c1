//! Builds the message that executes a prepared statement (`COM_STMT_EXECUTE`).

use super::packet::put_text;
use crate::Param;

/// `COM_STMT_EXECUTE`.
const EXECUTE: u8 = 0x17;

/// `MYSQL_TYPE_LONGLONG`, signed.
const LONGLONG: u8 = 0x08;

/// `MYSQL_TYPE_VAR_STRING`.
const VAR_STRING: u8 = 0xfd;

/// `MYSQL_TYPE_NULL`.
const NULL: u8 = 0x06;

/// What a session keeps about a statement that it prepared.
#[derive(Debug)]
pub(super) struct MysqlStatement {
    /// The server's number for the statement.
    pub(super) server_id: u32,
    pub(super) params: u16,
    /// The parameter types that were last sent to the server, one byte per parameter. It is empty
    /// when the server knows none.
    pub(super) types: Vec<u8>,
    pub(super) excerpt: String,
}

impl MysqlStatement {
    /// Appends the message that executes the statement with `params`, whose number the caller has
    /// checked. The types are sent only when the server does not know them from the previous
    /// execution.
    pub(super) fn put(&mut self, out: &mut Vec<u8>, params: &[Param]) {
        out.push(EXECUTE);
        out.extend_from_slice(&self.server_id.to_le_bytes());
        out.extend_from_slice(&[0, 1, 0, 0, 0]); // no cursor, one iteration
        if params.is_empty() {
            return;
        }
        let nulls = out.len();
        out.resize(nulls + params.len().div_ceil(8), 0);
        for (index, _) in params.iter().enumerate().filter(|(_, param)| **param == Param::Null) {
            out[nulls + index / 8] |= 1 << (index % 8);
        }
        if self.knows_types_of(params) {
            out.push(0);
        } else {
            self.types.clear();
            self.types.extend(params.iter().map(type_of));
            out.push(1);
            out.extend(self.types.iter().flat_map(|&kind| [kind, 0]));
        }
        for param in params {
            match param {
                Param::Int(value) => out.extend_from_slice(&value.to_le_bytes()),
                Param::Text(text) => put_text(out, text),
                Param::Null => {}
            }
        }
    }

    fn knows_types_of(&self, params: &[Param]) -> bool {
        self.types.len() == params.len()
            && self.types.iter().zip(params).all(|(&kind, param)| kind == type_of(param))
    }
}

fn type_of(param: &Param) -> u8 {
    match param {
        Param::Int(_) => LONGLONG,
        Param::Text(_) => VAR_STRING,
        Param::Null => NULL,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn built(prepared: &mut MysqlStatement, params: &[Param]) -> Vec<u8> {
        let mut out = Vec::new();
        prepared.put(&mut out, params);
        out
    }

    fn prepared(params: u16) -> MysqlStatement {
        MysqlStatement { server_id: 5, params, types: Vec::new(), excerpt: String::new() }
    }

    #[test]
    fn types_go_with_the_first_execution_and_after_a_change_only() {
        let mut statement = prepared(2);
        let numbers = [Param::Int(-1), Param::Int(2)];
        let head = b"\x17\x05\0\0\0\0\x01\0\0\0\0";
        let minus_one_and_two = [[0xff; 8], [2, 0, 0, 0, 0, 0, 0, 0]].concat();
        let with_types = [&head[..], b"\x01\x08\0\x08\0", &minus_one_and_two].concat();
        let without = [&head[..], b"\0", &minus_one_and_two].concat();
        assert_eq!(built(&mut statement, &numbers), with_types);
        assert_eq!(built(&mut statement, &numbers), without);
        let mixed = [Param::Text(b"ab".to_vec()), Param::Int(2)];
        let text = [&head[..], b"\x01\xfd\0\x08\0\x02ab\x02\0\0\0\0\0\0\0"].concat();
        assert_eq!(built(&mut statement, &mixed), text);
        assert_eq!(built(&mut statement, &numbers), with_types);
    }

    #[test]
    fn a_null_has_its_bit_and_no_bytes() {
        let params = [Param::Int(7), Param::Null];
        let message = b"\x17\x05\0\0\0\0\x01\0\0\0\x02\x01\x08\0\x06\0\x07\0\0\0\0\0\0\0";
        assert_eq!(built(&mut prepared(2), &params), message);
    }

    #[test]
    fn no_parameters_means_no_null_bits_and_no_types() {
        assert_eq!(built(&mut prepared(0), &[]), b"\x17\x05\0\0\0\0\x01\0\0\0");
    }

    #[test]
    fn null_bits_are_rounded_up_to_bytes() {
        for (count, bytes) in [(1, 1), (8, 1), (9, 2), (600, 75)] {
            let params = vec![Param::Int(0); count];
            let length = built(&mut prepared(count as u16), &params).len();
            assert_eq!(length, 10 + bytes + 1 + 2 * count + 8 * count, "{count}");
        }
    }
}
