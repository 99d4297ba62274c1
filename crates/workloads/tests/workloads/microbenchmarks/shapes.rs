//! Tests the statements of each step: their shapes, order, number and protocol.

use dbdyno_workloads::microbenchmarks::options::MicroSequence;
use dbdyno_workloads::options::Protocol;
use dbdyno_workloads::{AnyWorkload, Steps};

use super::{desk, options};

/// Returns the statement with each run of digits as `#`, and each list as its length.
fn shape(sql: &str) -> String {
    let mut out = String::new();
    for character in sql.replace("sbtest1", "T").replace("sbtest2", "T").chars() {
        let character = if character.is_ascii_digit() { '#' } else { character };
        if !(character == '#' && out.ends_with('#')) {
            out.push(character);
        }
    }
    let out = out.replace("#-#-#-#-#-#-#-#-#-#", "C").replace("#-#-#-#-#", "PAD");
    match out.find("IN (") {
        Some(start) => format!("{}IN <{}>", &out[..start], out[start..].matches('#').count()),
        None => out,
    }
}

/// Describes one operation of each step. Each statement is there once, with the number of times
/// that it is sent.
fn all(sequence: MicroSequence) -> String {
    let mut desk = desk(&options(sequence));
    let mut out = String::new();
    for name in desk.workload.steps().into_iter().filter(|name| name != "load" && name != "index") {
        let mut shapes: Vec<(String, usize)> = Vec::new();
        for sql in desk.operations(&name, 0, 1).remove(0) {
            match shapes.iter_mut().find(|found| found.0 == shape(&sql)) {
                Some(found) => found.1 += 1,
                None => shapes.push((shape(&sql), 1)),
            }
        }
        let text = |(sql, times): (String, usize)| if times > 1 { format!("{times} x {sql}") } else { sql };
        let shapes: Vec<String> = shapes.into_iter().map(text).collect();
        out.push_str(&format!("{name}: {}\n", shapes.join("; ")));
    }
    out
}

#[test]
fn every_step_of_the_42_sends_the_originals_statements() {
    insta::assert_snapshot!(all(MicroSequence::FortyTwo), @r"
    point-query.warm: SELECT c FROM T WHERE id=#
    point-query.pre: SELECT c FROM T WHERE id=#
    random-points.pre_range=10: SELECT c FROM T WHERE id IN <10>
    random-points.pre_range=100: SELECT c FROM T WHERE id IN <100>
    random-points.pre_range=1000: SELECT c FROM T WHERE id IN <1000>
    read-only.pre_range=10: BEGIN; 10 x SELECT c FROM T WHERE id=#; SELECT c FROM T WHERE id BETWEEN # AND #; SELECT SUM(k) FROM T WHERE id BETWEEN # AND #; SELECT c FROM T WHERE id BETWEEN # AND # ORDER BY c; SELECT DISTINCT c FROM T WHERE id BETWEEN # AND # ORDER BY c; COMMIT
    read-only.pre_range=100: BEGIN; 10 x SELECT c FROM T WHERE id=#; SELECT c FROM T WHERE id BETWEEN # AND #; SELECT SUM(k) FROM T WHERE id BETWEEN # AND #; SELECT c FROM T WHERE id BETWEEN # AND # ORDER BY c; SELECT DISTINCT c FROM T WHERE id BETWEEN # AND # ORDER BY c; COMMIT
    read-only.pre_range=10000: BEGIN; 10 x SELECT c FROM T WHERE id=#; SELECT c FROM T WHERE id BETWEEN # AND #; SELECT SUM(k) FROM T WHERE id BETWEEN # AND #; SELECT c FROM T WHERE id BETWEEN # AND # ORDER BY c; SELECT DISTINCT c FROM T WHERE id BETWEEN # AND # ORDER BY c; COMMIT
    points-covered-pk.pre: SELECT id FROM T WHERE id IN <100>
    points-notcovered-pk.pre: SELECT id, c FROM T WHERE id IN <100>
    points-covered-si.pre: SELECT k FROM T WHERE k IN <100>
    points-notcovered-si.pre: SELECT k, c FROM T WHERE k IN <100>
    range-covered-pk.pre: SELECT id FROM T WHERE id BETWEEN # AND #
    range-notcovered-pk.pre: SELECT id, c FROM T WHERE id BETWEEN # AND #
    range-covered-si.pre: SELECT k FROM T WHERE k BETWEEN # AND #
    range-notcovered-si.pre: SELECT k, c FROM T WHERE k BETWEEN # AND #
    update-inlist: UPDATE T SET c='C' WHERE id IN <10>
    update-index: UPDATE T SET k=k+# WHERE id=#
    update-nonindex: UPDATE T SET c='C' WHERE id=#
    update-one: UPDATE T SET c='C' WHERE id=#
    update-zipf: UPDATE T SET c='C' WHERE id=#
    write-only: BEGIN; UPDATE T SET k=k+# WHERE id=#; UPDATE T SET c='C' WHERE id=#; DELETE FROM T WHERE id=#; INSERT INTO T (id, k, c, pad) VALUES (#, #, 'C', 'PAD'); COMMIT
    read-write_range=10: BEGIN; 10 x SELECT c FROM T WHERE id=#; SELECT c FROM T WHERE id BETWEEN # AND #; SELECT SUM(k) FROM T WHERE id BETWEEN # AND #; SELECT c FROM T WHERE id BETWEEN # AND # ORDER BY c; SELECT DISTINCT c FROM T WHERE id BETWEEN # AND # ORDER BY c; UPDATE T SET k=k+# WHERE id=#; UPDATE T SET c='C' WHERE id=#; DELETE FROM T WHERE id=#; INSERT INTO T (id, k, c, pad) VALUES (#, #, 'C', 'PAD'); COMMIT
    read-write_range=100: BEGIN; 10 x SELECT c FROM T WHERE id=#; SELECT c FROM T WHERE id BETWEEN # AND #; SELECT SUM(k) FROM T WHERE id BETWEEN # AND #; SELECT c FROM T WHERE id BETWEEN # AND # ORDER BY c; SELECT DISTINCT c FROM T WHERE id BETWEEN # AND # ORDER BY c; UPDATE T SET k=k+# WHERE id=#; UPDATE T SET c='C' WHERE id=#; DELETE FROM T WHERE id=#; INSERT INTO T (id, k, c, pad) VALUES (#, #, 'C', 'PAD'); COMMIT
    read-only_range=10: BEGIN; 10 x SELECT c FROM T WHERE id=#; SELECT c FROM T WHERE id BETWEEN # AND #; SELECT SUM(k) FROM T WHERE id BETWEEN # AND #; SELECT c FROM T WHERE id BETWEEN # AND # ORDER BY c; SELECT DISTINCT c FROM T WHERE id BETWEEN # AND # ORDER BY c; COMMIT
    read-only_range=100: BEGIN; 10 x SELECT c FROM T WHERE id=#; SELECT c FROM T WHERE id BETWEEN # AND #; SELECT SUM(k) FROM T WHERE id BETWEEN # AND #; SELECT c FROM T WHERE id BETWEEN # AND # ORDER BY c; SELECT DISTINCT c FROM T WHERE id BETWEEN # AND # ORDER BY c; COMMIT
    read-only_range=10000: BEGIN; 10 x SELECT c FROM T WHERE id=#; SELECT c FROM T WHERE id BETWEEN # AND #; SELECT SUM(k) FROM T WHERE id BETWEEN # AND #; SELECT c FROM T WHERE id BETWEEN # AND # ORDER BY c; SELECT DISTINCT c FROM T WHERE id BETWEEN # AND # ORDER BY c; COMMIT
    point-query: SELECT c FROM T WHERE id=#
    random-points_range=10: SELECT c FROM T WHERE id IN <10>
    random-points_range=100: SELECT c FROM T WHERE id IN <100>
    random-points_range=1000: SELECT c FROM T WHERE id IN <1000>
    hot-points: SELECT c FROM T WHERE id IN <100>
    points-covered-pk: SELECT id FROM T WHERE id IN <100>
    points-notcovered-pk: SELECT id, c FROM T WHERE id IN <100>
    points-covered-si: SELECT k FROM T WHERE k IN <100>
    points-notcovered-si: SELECT k, c FROM T WHERE k IN <100>
    range-covered-pk: SELECT id FROM T WHERE id BETWEEN # AND #
    range-notcovered-pk: SELECT id, c FROM T WHERE id BETWEEN # AND #
    range-covered-si: SELECT k FROM T WHERE k BETWEEN # AND #
    range-notcovered-si: SELECT k, c FROM T WHERE k BETWEEN # AND #
    scan: SELECT * FROM T WHERE LENGTH(c) < #
    delete: DELETE FROM T WHERE id=#
    insert: INSERT INTO T (id, k, c, pad) VALUES (#, #, 'C', 'PAD')
    ");
}

#[test]
fn every_step_of_the_32_sends_the_originals_statements() {
    insta::assert_snapshot!(all(MicroSequence::ThirtyTwo), @r"
    point-query.warm: SELECT c FROM T WHERE id=#
    scan.warmpre: SELECT * FROM T WHERE LENGTH(c) < #
    point-query.pre: SELECT c FROM T WHERE id=#
    range-notcovered-si.pre: SELECT k, c FROM T WHERE k BETWEEN # AND #
    update-inlist: UPDATE T SET c='C' WHERE id IN <10>
    update-index: UPDATE T SET k=k+# WHERE id=#
    update-nonindex: UPDATE T SET c='C' WHERE id=#
    update-one: UPDATE T SET c='C' WHERE id=#
    update-zipf: UPDATE T SET c='C' WHERE id=#
    write-only: BEGIN; UPDATE T SET k=k+# WHERE id=#; UPDATE T SET c='C' WHERE id=#; DELETE FROM T WHERE id=#; INSERT INTO T (id, k, c, pad) VALUES (#, #, 'C', 'PAD'); COMMIT
    read-write_range=10: BEGIN; 10 x SELECT c FROM T WHERE id=#; SELECT c FROM T WHERE id BETWEEN # AND #; SELECT SUM(k) FROM T WHERE id BETWEEN # AND #; SELECT c FROM T WHERE id BETWEEN # AND # ORDER BY c; SELECT DISTINCT c FROM T WHERE id BETWEEN # AND # ORDER BY c; UPDATE T SET k=k+# WHERE id=#; UPDATE T SET c='C' WHERE id=#; DELETE FROM T WHERE id=#; INSERT INTO T (id, k, c, pad) VALUES (#, #, 'C', 'PAD'); COMMIT
    read-write_range=100: BEGIN; 10 x SELECT c FROM T WHERE id=#; SELECT c FROM T WHERE id BETWEEN # AND #; SELECT SUM(k) FROM T WHERE id BETWEEN # AND #; SELECT c FROM T WHERE id BETWEEN # AND # ORDER BY c; SELECT DISTINCT c FROM T WHERE id BETWEEN # AND # ORDER BY c; UPDATE T SET k=k+# WHERE id=#; UPDATE T SET c='C' WHERE id=#; DELETE FROM T WHERE id=#; INSERT INTO T (id, k, c, pad) VALUES (#, #, 'C', 'PAD'); COMMIT
    scan.warm: SELECT * FROM T WHERE LENGTH(c) < #
    scan: SELECT * FROM T WHERE LENGTH(c) < #
    read-only_range=10: BEGIN; 10 x SELECT c FROM T WHERE id=#; SELECT c FROM T WHERE id BETWEEN # AND #; SELECT SUM(k) FROM T WHERE id BETWEEN # AND #; SELECT c FROM T WHERE id BETWEEN # AND # ORDER BY c; SELECT DISTINCT c FROM T WHERE id BETWEEN # AND # ORDER BY c; COMMIT
    read-only_range=100: BEGIN; 10 x SELECT c FROM T WHERE id=#; SELECT c FROM T WHERE id BETWEEN # AND #; SELECT SUM(k) FROM T WHERE id BETWEEN # AND #; SELECT c FROM T WHERE id BETWEEN # AND # ORDER BY c; SELECT DISTINCT c FROM T WHERE id BETWEEN # AND # ORDER BY c; COMMIT
    read-only_range=10000: BEGIN; 10 x SELECT c FROM T WHERE id=#; SELECT c FROM T WHERE id BETWEEN # AND #; SELECT SUM(k) FROM T WHERE id BETWEEN # AND #; SELECT c FROM T WHERE id BETWEEN # AND # ORDER BY c; SELECT DISTINCT c FROM T WHERE id BETWEEN # AND # ORDER BY c; COMMIT
    read-only-simple: BEGIN; 10 x SELECT c FROM T WHERE id=#; SELECT c FROM T WHERE id BETWEEN # AND #; COMMIT
    read-only-sum: BEGIN; 10 x SELECT c FROM T WHERE id=#; SELECT SUM(k) FROM T WHERE id BETWEEN # AND #; COMMIT
    read-only-order: BEGIN; 10 x SELECT c FROM T WHERE id=#; SELECT c FROM T WHERE id BETWEEN # AND # ORDER BY c; COMMIT
    read-only-distinct: BEGIN; 10 x SELECT c FROM T WHERE id=#; SELECT DISTINCT c FROM T WHERE id BETWEEN # AND # ORDER BY c; COMMIT
    read-only-count: SELECT count(c) FROM T WHERE id BETWEEN # AND #
    point-query: SELECT c FROM T WHERE id=#
    random-points_range=10: SELECT c FROM T WHERE id IN <10>
    random-points_range=100: SELECT c FROM T WHERE id IN <100>
    random-points_range=1000: SELECT c FROM T WHERE id IN <1000>
    hot-points: SELECT c FROM T WHERE id IN <100>
    points-covered-pk: SELECT id FROM T WHERE id IN <100>
    points-notcovered-pk: SELECT id, c FROM T WHERE id IN <100>
    range-covered-pk: SELECT id FROM T WHERE id BETWEEN # AND #
    range-notcovered-pk: SELECT id, c FROM T WHERE id BETWEEN # AND #
    points-covered-si.warm: SELECT k FROM T WHERE k IN <100>
    points-covered-si: SELECT k FROM T WHERE k IN <100>
    points-notcovered-si: SELECT k, c FROM T WHERE k IN <100>
    range-covered-si: SELECT k FROM T WHERE k BETWEEN # AND #
    range-notcovered-si: SELECT k, c FROM T WHERE k BETWEEN # AND #
    delete: DELETE FROM T WHERE id=#
    insert: INSERT INTO T (id, k, c, pad) VALUES (#, #, 'C', 'PAD')
    ");
}

#[test]
fn operations_have_the_originals_numbers_of_statements() {
    for sequence in [MicroSequence::FortyTwo, MicroSequence::ThirtyTwo] {
        let mut desk = desk(&options(sequence));
        for name in desk.workload.steps().into_iter().filter(|name| name != "load" && name != "index") {
            let expected = match name.split(['.', '_']).next().unwrap() {
                "read-only" => 16,
                "read-only-simple" | "read-only-sum" | "read-only-order" | "read-only-distinct" => 13,
                "write-only" => 6,
                "read-write" => 20,
                _ => 1,
            };
            assert_eq!(desk.operations(&name, 0, 1)[0].len(), expected, "{name}");
            let spec = desk.workload.spec(desk.index(&name));
            assert_eq!(spec.kinds[0].statements_per_operation, expected as u32, "{name}");
        }
    }
}

#[test]
fn all_statements_but_inserts_and_scans_are_prepared_by_default() {
    for protocol in [Protocol::Auto, Protocol::Text, Protocol::Prepared] {
        let options = dbdyno_workloads::microbenchmarks::options::MicrobenchmarksOptions {
            protocol,
            ..options(MicroSequence::FortyTwo)
        };
        let desk = desk(&options);
        for name in desk.workload.steps().into_iter().filter(|name| name != "load" && name != "index") {
            let is_text = match protocol {
                Protocol::Auto => name == "insert" || name == "scan",
                Protocol::Text => true,
                Protocol::Prepared => false,
            };
            let spec = desk.workload.spec(desk.index(&name));
            assert_eq!(spec.kinds[0].protocol, if is_text { "text" } else { "prepared" }, "{name}");
        }
    }
}
