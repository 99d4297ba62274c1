//! Which ladder of connections a step belongs to.

use crate::model::StepFindings;

/// A step of a test that ran with several numbers of connections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rung {
    /// The steps' common name: of `read-only.c16` it is `read-only`, of `read-only.c16.r500` it is
    /// `read-only.r500`.
    pub(crate) test: String,
    pub(crate) connections: u32,
}

impl Rung {
    /// `None` for a step that does not have its number of connections in its name.
    pub(crate) fn of(step: &StepFindings) -> Option<Self> {
        let connections = step.connections;
        Some(Self { test: test(&step.name, connections)?, connections })
    }
}

fn test(name: &str, connections: u32) -> Option<String> {
    let number = format!("c{connections}");
    let mut parts: Vec<&str> = name.split('.').collect();
    let at = parts.iter().rposition(|part| *part == number)?;
    parts.remove(at);
    Some(parts.join("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_connections_may_stand_anywhere_in_the_name() {
        let of = |name| test(name, 16);
        assert_eq!(of("read-only.c16").as_deref(), Some("read-only"));
        assert_eq!(of("read-only.c16.r500").as_deref(), Some("read-only.r500"));
        assert_eq!([of("read-only"), of("read-only.c1"), of("read-only.c160")], [None, None, None]);
    }
}
