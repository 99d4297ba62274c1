//! Reads DER, the encoding of keys and certificates. Every value has a tag, a length and contents.

/// The contents of the DER element with the type `tag` at the front of `der`, and the bytes after
/// it.
pub(crate) fn element(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&found, rest) = der.split_first()?;
    let (&short, rest) = rest.split_first()?;
    let (length, rest) = if short & 0x80 == 0 {
        (usize::from(short), rest)
    } else {
        let count = usize::from(short & 0x7f);
        if !(1..=4).contains(&count) || rest.len() < count {
            return None;
        }
        let (digits, rest) = rest.split_at(count);
        (digits.iter().fold(0, |value, &digit| value << 8 | usize::from(digit)), rest)
    };
    (found == tag && length <= rest.len()).then(|| rest.split_at(length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_element_is_taken_only_whole_and_of_its_kind() {
        assert_eq!(element(b"\x30\x02abrest", 0x30), Some((&b"ab"[..], &b"rest"[..])));
        let long = [&[0x30, 0x82, 0x01, 0x00][..], &[7; 256]].concat();
        assert_eq!(element(&long, 0x30).map(|(contents, rest)| (contents.len(), rest.len())), Some((256, 0)));
        for broken in [
            &b""[..],
            b"\x30",
            b"\x30\x03ab",
            b"\x31\x02ab",
            b"\x30\x80ab",
            b"\x30\x85\0\0\0\0\0",
            b"\x30\x84\xff\xff\xff\xffa",
        ] {
            assert_eq!(element(broken, 0x30), None, "{broken:?}");
        }
    }
}
