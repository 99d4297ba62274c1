//! Storage engines: which one a variant names, and what engines are called.

use dbdyno_model::Variant;

/// The engine of the tables that a variant names, in small letters, whatever its product: families
/// whose tables have engines call the option so.
pub fn engine_of(variant: &Variant) -> Option<String> {
    variant.options.get("engine")?.as_str().map(str::to_lowercase)
}

/// The name of an engine for people, whatever its spelling in a plan or a server's answer:
/// `rocksdb` is MyRocks.
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
