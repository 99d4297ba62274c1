//! Replaces the parts of hand-written pages that programs write. Marks enclose these parts.

const END: &str = "<!-- end -->";

/// Returns the page with `text` between `<!-- part -->` and the next `<!-- end -->`. It is `None`
/// where the page lacks one of them.
pub(crate) fn with_part(page: &str, part: &str, text: &str) -> Option<String> {
    let begin = format!("<!-- {part} -->\n");
    let (before, rest) = page.split_once(&begin)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{begin}\n{}\n\n{END}{after}", text.trim()))
}
