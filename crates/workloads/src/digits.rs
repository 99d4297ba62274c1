//! Writes short texts of varying length into a buffer without a branch on the length. For random
//! rows the processor mispredicts such branches, which costs more than the digits themselves.

/// Appends the first `keep` of `bytes`. It makes a copy of fixed size, then cuts off the rest.
pub(crate) fn push_part<const N: usize>(out: &mut Vec<u8>, bytes: &[u8; N], keep: usize) {
    let length = out.len();
    out.extend_from_slice(bytes);
    out.truncate(length + keep);
}

pub(crate) fn push_decimal(out: &mut Vec<u8>, value: u32) {
    if value > 99_999_999 {
        out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
        return;
    }
    let digits = eight_digits(value);
    // The lowest byte is the first digit. The last digit is kept even if it is 0.
    let leading_zeros = ((digits | 1 << 56).trailing_zeros() / 8) as usize;
    let text = (digits + 0x3030_3030_3030_3030) >> (8 * leading_zeros);
    push_part(out, &text.to_le_bytes(), 8 - leading_zeros);
}

/// Returns the eight decimal digits of a number below 10^8, one per byte (0 to 9, not characters),
/// with the first in the lowest byte. The code splits the number in halves three times: into 4 + 4
/// digits, into 2 + 2 + 2 + 2, and into single digits. Each time it splits all parts of the word at
/// once. It divides by a multiplication and a shift (10,486 / 2^20 = 1/100 for numbers below
/// 10,000; 103 / 2^10 = 1/10 below 100).
pub(crate) fn eight_digits(value: u32) -> u64 {
    let fours = u64::from(value / 10_000) | u64::from(value % 10_000) << 32;
    let hundreds = ((fours * 10_486) >> 20) & 0x0000_007f_0000_007f;
    let twos = hundreds | (fours - 100 * hundreds) << 16;
    let tens = ((twos * 103) >> 10) & 0x000f_000f_000f_000f;
    tens | (twos - 10 * tens) << 8
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: u32) -> String {
        let mut out = b"x".to_vec();
        push_decimal(&mut out, value);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn numbers_are_written_as_the_standard_library_writes_them() {
        let around_powers = (0..=9).flat_map(|power| {
            let power = 10_u32.pow(power);
            [power - 1, power, power + 1]
        });
        for value in (0..200_000).chain((0..u32::MAX).step_by(99_991)).chain(around_powers).chain([u32::MAX])
        {
            assert_eq!(text(value), format!("x{value}"));
        }
    }

    #[test]
    fn a_part_is_appended_and_nothing_else_changes() {
        let mut out = b"ab".to_vec();
        push_part(&mut out, b"cdef", 3);
        push_part(&mut out, b"zzz", 0);
        assert_eq!(out, b"abcde");
    }
}
