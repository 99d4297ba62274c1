//! Wraps a document into an HTML page: style, script and charts are in one file that needs no
//! network.

pub(crate) mod charts;

use crate::document::html::{data_block, escaped};

/// The page with this title and body. `data` is what its script knows about the page. A content
/// security policy forbids anything from outside.
pub(crate) fn page(title: &str, body: &str, data: &serde_json::Value) -> String {
    [
        include_str!("head.html"),
        "<title>",
        &escaped(title),
        "</title>\n<style>\n",
        include_str!("page.css"),
        "</style>\n</head>\n<body>\n",
        body,
        &data_block("page-data", data),
        "<script>\n",
        include_str!("../../page/page.js"),
        "</script>\n</body>\n</html>\n",
    ]
    .concat()
}
