//! Base64 as RFC 4648 section 4 has it: the text form of histograms in their log.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Appends `bytes` to `text`, padded with `=`.
pub(crate) fn encode(bytes: &[u8], text: &mut Vec<u8>) {
    for chunk in bytes.chunks(3) {
        let group =
            chunk.iter().enumerate().fold(0u32, |group, (i, &byte)| group | u32::from(byte) << (16 - 8 * i));
        for i in 0..4 {
            let digit = (group >> (18 - 6 * i)) & 0x3f;
            text.push(if i <= chunk.len() { ALPHABET[digit as usize] } else { b'=' });
        }
    }
}

/// What each letter stands for; [`NO_DIGIT`] for one that is not of the alphabet.
const DIGITS: [u8; 256] = {
    let mut digits = [NO_DIGIT; 256];
    let mut digit = 0;
    while digit < ALPHABET.len() {
        digits[ALPHABET[digit] as usize] = digit as u8;
        digit += 1;
    }
    digits
};
/// Above every digit, by a bit of its own.
const NO_DIGIT: u8 = 0x80;

/// The bytes that `text` stands for; `None` when it is no padded base64.
pub(crate) fn decode(text: &[u8]) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let padding = text.iter().rev().take(2).take_while(|&&letter| letter == b'=').count();
    let digits = &text[..text.len() - padding];
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let mut odd = 0;
    for chunk in digits.chunks(4) {
        let mut group = 0u32;
        for (i, &letter) in chunk.iter().enumerate() {
            let digit = DIGITS[usize::from(letter)];
            odd |= digit;
            group |= u32::from(digit & !NO_DIGIT) << (18 - 6 * i);
        }
        let [_, whole @ ..] = group.to_be_bytes();
        bytes.extend_from_slice(&whole[..chunk.len() - 1]);
    }
    (odd & NO_DIGIT == 0).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn encoded(bytes: &[u8]) -> String {
        let mut text = Vec::new();
        encode(bytes, &mut text);
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn the_vectors_of_rfc_4648_come_out() {
        let vectors = ["", "f", "fo", "foo", "foob", "fooba", "foobar"].map(|text| encoded(text.as_bytes()));
        assert_eq!(vectors, ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"]);
    }

    #[test]
    fn text_that_is_not_base64_is_refused() {
        for text in ["Z", "Zg", "Zg=", "Zg=a", "Z===", "====", "Zm9v\n", "Zm 9", "Zm9v Zg=", "Zm-_"] {
            assert_eq!(decode(text.as_bytes()), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_survive(bytes: Vec<u8>) {
            prop_assert_eq!(decode(encoded(&bytes).as_bytes()), Some(bytes));
        }
    }
}
