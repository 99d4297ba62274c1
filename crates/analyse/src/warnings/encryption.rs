//! Warning where the connections of the variants were not encrypted in the same way.

use std::collections::{BTreeMap, BTreeSet};

use dbdyno_record::{CellEvent, ConnectionClass, Run};

use crate::model::{Code, Warning};
use crate::servers::servers;
use crate::window::Hosting;

const PLAINTEXT: &str = "in plaintext";

/// How the connections of `variant` were encrypted: `TLSv1.3 TLS_AES_256_GCM_SHA384`, with the
/// classes of connections where they differ. `None` where TLS was not asked for.
pub(crate) fn encryption(run: &Run, variant: &str) -> Option<String> {
    let mut classes: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for connection in connections(run, variant) {
        classes.entry(name(connection)).or_default().insert(&connection.class);
    }
    match classes.len() {
        0 => None,
        1 => classes.into_keys().next(),
        _ => {
            let with_classes = classes.into_iter().map(|(name, classes)| {
                format!("{name} ({})", classes.into_iter().collect::<Vec<_>>().join(", "))
            });
            Some(with_classes.collect::<Vec<_>>().join(" and "))
        }
    }
}

/// A warning, because encryption that differs between variants is a part of every difference
/// between them.
pub(crate) fn warning(run: &Run) -> Option<Warning> {
    // A variant that never had a connection was not encrypted in any way.
    let compared = run.manifest.variants.iter().filter(|variant| {
        matches!(Hosting::of(variant), Hosting::Process | Hosting::External)
            && servers(run, &variant.name).next().is_some()
    });
    let reported: Vec<(&str, String)> = compared
        .map(|variant| {
            let found = encryption(run, &variant.name).unwrap_or_else(|| PLAINTEXT.to_owned());
            (variant.name.as_str(), found)
        })
        .collect();
    let (_, first) = reported.first()?;
    if reported.iter().all(|(_, other)| other == first) {
        return None;
    }
    let each: Vec<String> = reported.iter().map(|(variant, found)| format!("{variant}: {found}")).collect();
    Some(Warning::new(Code::Encryption).with("connections", each.join("; ")))
}

fn connections<'a>(run: &'a Run, variant: &str) -> impl Iterator<Item = &'a ConnectionClass> {
    let cells = run.cells.iter().filter(move |cell| cell.id.variant == variant);
    cells.flat_map(|cell| &cell.events).flat_map(|event| match event {
        CellEvent::Ended { connections, .. } => connections.as_slice(),
        _ => &[],
    })
}

fn name(connection: &ConnectionClass) -> String {
    match (&connection.tls_version, &connection.cipher) {
        (Some(version), Some(cipher)) => format!("{version} {cipher}"),
        (Some(version), None) => version.clone(),
        (None, _) => PLAINTEXT.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use dbdyno_record::CellRecord;
    use insta::assert_snapshot;

    use super::*;
    use crate::fixtures::{cell, run, shown};

    const AES: Option<(&str, &str)> = Some(("TLSv1.3", "TLS_AES_256_GCM_SHA384"));
    const CHACHA: Option<(&str, &str)> = Some(("TLSv1.3", "TLS_CHACHA20_POLY1305_SHA256"));

    fn connected(variant: &str, classes: &[(&str, Option<(&str, &str)>)]) -> CellRecord {
        let mut cell = cell(1, variant, Vec::new());
        let Some(CellEvent::Ended { connections, .. }) = cell.events.last_mut() else { panic!("no end") };
        connections.extend(classes.iter().map(|(class, agreed)| ConnectionClass {
            class: (*class).to_owned(),
            connections: 2,
            tls_version: agreed.map(|(version, _)| version.to_owned()),
            cipher: agreed.map(|(_, cipher)| cipher.to_owned()),
        }));
        cell
    }

    #[test]
    fn what_all_connections_agreed_on_is_one_name_and_what_differs_is_reported_by_class() {
        let cells = vec![
            connected("a", &[("insert", AES), ("query", AES)]),
            connected("b", &[("insert", AES), ("delete", AES), ("status", None)]),
            cell(1, "c", Vec::new()),
        ];
        let run = run(&["a", "b", "c"], 1, cells);
        assert_snapshot!(encryption(&run, "a").unwrap(), @"TLSv1.3 TLS_AES_256_GCM_SHA384");
        assert_snapshot!(encryption(&run, "b").unwrap(), @"TLSv1.3 TLS_AES_256_GCM_SHA384 (delete, insert) and in plaintext (status)");
        assert_eq!(encryption(&run, "c"), None);
    }

    #[test]
    fn variants_that_were_not_encrypted_alike_are_reported() {
        let cells = vec![
            connected("a", &[("insert", AES)]),
            connected("b", &[("insert", CHACHA)]),
            cell(1, "c", Vec::new()),
        ];
        let mut unreached = cell(1, "e", Vec::new());
        unreached.events.remove(1);
        let mut run = run(&["a", "b", "c", "d", "e"], 1, [cells, vec![unreached]].concat());
        assert_snapshot!(shown(&warning(&run).unwrap()), @"encryption connections: a: TLSv1.3 TLS_AES_256_GCM_SHA384; b: TLSv1.3 TLS_CHACHA20_POLY1305_SHA256; c: in plaintext");
        run.cells.remove(1);
        run.manifest.variants[2].embedded = true;
        assert_eq!(warning(&run), None, "neither a file nor what never ran is compared");
    }
}
