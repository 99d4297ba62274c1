//! How the load client waits for answers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::named;

named! {
    /// How load threads wait for answers.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    pub enum ClientWait {
        /// Until an answer wakes them: the server pays for the waking.
        Sleep = "sleep",
        /// They ask for answers without a pause.
        Spin = "spin",
    }
}
