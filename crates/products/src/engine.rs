//! Storage engines: which one a variant names, and their names for people.

use dbdyno_model::Variant;

/// The engine that a variant names for its tables, in lower case. All families whose tables have
/// engines use the same option name.
pub fn engine_of(variant: &Variant) -> Option<String> {
    variant.options.get("engine")?.as_str().map(str::to_lowercase)
}

/// An engine's name for people, however a plan or a server spells it: `rocksdb` is MyRocks.
pub fn engine_name(word: &str) -> String {
    let name = match word.to_ascii_lowercase().as_str() {
        "innodb" => "InnoDB",
        "rocksdb" => "MyRocks",
        "myisam" => "MyISAM",
        "aria" => "Aria",
        "memory" => "MEMORY",
        _ => word,
    };
    name.to_owned()
}
