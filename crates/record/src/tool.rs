//! The build of dbdyno that wrote a file.

use serde::{Deserialize, Serialize};

/// Which build of dbdyno made the run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolInfo {
    pub version: String,
    /// Commit from which the binary was built, or `unknown`.
    pub commit: String,
    /// `release` or `debug`. Figures from a debug build are not worth comparing.
    pub build: String,
}
