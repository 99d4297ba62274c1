//! A page around a document: style, script and charts in one file that needs no network.

mod bars;
mod chart;
pub(crate) mod charts;
mod downsample;
pub(crate) mod history_chart;
mod names;
mod scale;
mod second_charts;
mod svg;
mod sweep_charts;

use crate::document::html::escaped;

/// The page of this title and body. A content security policy forbids anything from outside.
pub(crate) fn page(title: &str, body: &str) -> String {
    [
        include_str!("head.html"),
        "<title>",
        &escaped(title),
        "</title>\n<style>\n",
        include_str!("page.css"),
        "</style>\n</head>\n<body>\n",
        body,
        "<script>\n",
        include_str!("page.js"),
        "</script>\n</body>\n</html>\n",
    ]
    .concat()
}
