//! Corrections to a plan's JSON Schema where the types alone would say otherwise.

use schemars::Schema;
use serde_json::{Value, json};

/// Declares a type's JSON Schema and writes it where the type is used.
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

/// Demands `key` in a table's schema. The type itself takes an empty text where the key is left
/// out, so that the message about it can say which table it is.
pub(crate) fn demand(schema: &mut Schema, key: &str) {
    schema.insert("required".to_owned(), json!([key]));
    let value = schema.pointer_mut(&format!("/properties/{key}"));
    if let Some(value) = value.and_then(Value::as_object_mut) {
        value.remove("default");
    }
}
