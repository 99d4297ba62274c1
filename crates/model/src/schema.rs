//! What the JSON Schema of a plan says otherwise than its types.

use schemars::Schema;
use serde_json::{Value, json};

/// The JSON Schema of a type, written where the type is used.
macro_rules! inline_schema {
    ($Type:ident, $schema:tt) => {
        impl schemars::JsonSchema for $Type {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($Type).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!($schema)
            }
        }
    };
}

pub(crate) use inline_schema;

/// Has `key` demanded of a table whose type has an empty text where it is left out, so that the
/// message about that can say which table it is.
pub(crate) fn demand(schema: &mut Schema, key: &str) {
    schema.insert("required".to_owned(), json!([key]));
    let value = schema.pointer_mut(&format!("/properties/{key}"));
    if let Some(value) = value.and_then(Value::as_object_mut) {
        value.remove("default");
    }
}
