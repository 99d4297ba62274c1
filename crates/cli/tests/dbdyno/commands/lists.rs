//! Tests of `dbdyno plan` and `dbdyno list`.

use crate::commands::{TWO_VARIANTS, plan};
use crate::support::Desk;

#[test]
fn a_plan_is_explained_without_running_it() {
    let desk = Desk::new();
    desk.write("p.toml", &plan(TWO_VARIANTS, "read_write_time = \"10s\"\nclients = 2"));
    let ended = desk.dbdyno(&["plan", "p.toml", "--blocks", "2"]);
    ended.expect_ok();
    assert!(!desk.path("runs").exists(), "a plan was run or prepared");
    let (cells, settings) = ended.out.split_once("\nConfiguration differences").unwrap();
    assert!(settings.contains("• pitfall: SQLite syncs nothing (rollback, wal)."), "{settings}");
    insta::assert_snapshot!(cells, @r"
    plan test: 2 variants x 2 blocks
      rollback  SQLite, embedded (base)
      wal       SQLite, embedded

    order of cells
      block 1  rollback, wal
      block 2  rollback, wal

    insert-benchmark on rollback, wal, once each: about 21 s
    step     what                                         about
    ───────────────────────────────────────────────────────────
    prepare  server and tables                            0.2 s
    l.i0     4,000 rows                                   0.1 s
    l.x      3 indexes on 4,000 rows                      0.0 s
    l.i1     800 rows in, as many out                     0.4 s
    l.i2     200 rows in, as many out                     0.2 s
    settle   cleanup and pause after l.i2                 0.0 s
    qr100    10s at 100 inserts and deletes/s per client   10 s
    qp100    10s at 100 inserts and deletes/s per client   10 s
    verify   6 checks of 4,000 rows                       0.0 s

    time: about 84 s in all (steps with a fixed length and pauses are exact, the rest is an estimate)
    disk: about 18 MB at most
    client: sleeps while waiting for answers: the database runs in the load threads

    power: what 2 blocks detect in 80 % of runs (noise of this host unknown: assumed noise)
    noise  detects  as the only one of 6  same within  margin  blocks for twice the margin
    ──────────────────────────────────────────────────────────────────────────────────────
    0.5 %    5.9 %                  41 %        3.2 %   2.0 %                            3
    1.0 %     12 %                  99 %        6.5 %   2.0 %                            3
    2.0 %     26 %                >100 %         13 %   2.0 %                            5
    5.0 %     76 %                >100 %         36 %   2.0 %                           15
    noise: standard deviation of a block's ratio. detects: true difference that gets the verdict faster
    or slower, beyond the margin; as the only one: if all other comparisons are equal. same within:
    margin within which two equal variants get the verdict same.
    To measure the noise: dbdyno run PLAN --aa --blocks 5; it is kept for the next plan.
    ");
}

#[test]
fn the_time_of_a_plan_names_its_budget() {
    let desk = Desk::new();
    desk.write("p.toml", &plan(TWO_VARIANTS, "read_write_time = \"10s\""));
    let time = |budget: &str| {
        let mut command = desk.command(&["plan", "p.toml", "--set", "blocks=3", "--set", budget]);
        let ended = desk.ended(command.env("COLUMNS", "1000"));
        let line = ended.expect_ok().out.lines().find(|line| line.starts_with("time: ")).map(str::to_owned);
        line.unwrap()
    };
    insta::assert_snapshot!(time("budget=10m"), @"time: about 2 min for the plan's blocks (steps with a fixed length and pauses are exact, the rest is an estimate), then further ones of what is undecided, up to the budget of 10m");
    insta::assert_snapshot!(time("budget=1m"), @"time: about 2 min in all (steps with a fixed length and pauses are exact, the rest is an estimate)");
}

#[test]
fn a_plan_with_its_defaults_reads_back_as_the_same_plan() {
    let desk = Desk::new();
    desk.write("p.toml", &plan(TWO_VARIANTS, ""));
    let resolved = desk.dbdyno(&["plan", "p.toml", "--resolved"]);
    resolved.expect_ok();
    desk.write("resolved.toml", &resolved.out);
    assert_eq!(desk.dbdyno(&["plan", "resolved.toml", "--resolved"]).out, resolved.out);
    assert_eq!(desk.dbdyno(&["plan", "resolved.toml"]).out, desk.dbdyno(&["plan", "p.toml"]).out);
}

#[test]
fn the_schema_is_one_json_document() {
    let ended = Desk::new().dbdyno(&["plan", "--schema"]);
    let schema: serde_json::Value = serde_json::from_str(&ended.expect_ok().out).unwrap();
    assert!(schema["properties"]["variant"].is_object(), "{schema}");
}

#[test]
fn workloads_are_listed() {
    let out = Desk::new().dbdyno(&["list", "workloads"]).expect_ok().out.clone();
    insta::assert_snapshot!(out, @r"
      insert-benchmark  ten steps: load in key order, build indexes, random writes with deletes, then
                        range and point queries with concurrent writes at fixed rates
      microbenchmarks   27 small tests on sbtest tables in the order of the published reports, the 42
                        steps of 2024 or the 32 of 2025: read tests run before the writes and again
                        after them
      oltp              the classic tests on sbtest tables: point selects, read-only and read-write
                        transactions, single writes, over sweeps of connections and rates
      sysbench          scripts of sysbench, unchanged: its oltp_*.lua, sysbench-tpcc, and your own
      pgbench           scripts of pgbench: tpcb-like, simple-update, select-only, and your own
      dbt3              22 analytical queries on eight tables at any scale factor, one by one, as a
                        power test or in streams; derived from TPC-H, not comparable with published
                        TPC-H results

    steps with every test and part, other options at their defaults
      insert-benchmark              l.i0 l.x l.i1 l.i2 qr100 qp100 qr500 qp500 qr1000 qp1000
      microbenchmarks, sequence 42  load index point-query.warm point-query.pre
                                    random-points.pre_range=10 random-points.pre_range=100
                                    random-points.pre_range=1000 read-only.pre_range=10
                                    read-only.pre_range=100 read-only.pre_range=10000
                                    points-covered-pk.pre points-notcovered-pk.pre points-covered-si.pre
                                    points-notcovered-si.pre range-covered-pk.pre
                                    range-notcovered-pk.pre range-covered-si.pre range-notcovered-si.pre
                                    update-inlist update-index update-nonindex update-one update-zipf
                                    write-only read-write_range=10 read-write_range=100
                                    read-only_range=10 read-only_range=100 read-only_range=10000
                                    point-query random-points_range=10 random-points_range=100
                                    random-points_range=1000 hot-points points-covered-pk
                                    points-notcovered-pk points-covered-si points-notcovered-si
                                    range-covered-pk range-notcovered-pk range-covered-si
                                    range-notcovered-si scan delete insert
      microbenchmarks, sequence 32  load index point-query.warm scan.warmpre point-query.pre
                                    range-notcovered-si.pre update-inlist update-index update-nonindex
                                    update-one update-zipf write-only read-write_range=10
                                    read-write_range=100 scan.warm scan read-only_range=10
                                    read-only_range=100 read-only_range=10000 read-only-simple
                                    read-only-sum read-only-order read-only-distinct read-only-count
                                    point-query random-points_range=10 random-points_range=100
                                    random-points_range=1000 hot-points points-covered-pk
                                    points-notcovered-pk range-covered-pk range-notcovered-pk
                                    points-covered-si.warm points-covered-si points-notcovered-si
                                    range-covered-si range-notcovered-si delete insert
      oltp                          load index point-select.c1 read-only.c1 read-write.c1 write-only.c1
                                    update-index.c1 update-non-index.c1 insert.c1 delete.c1
      sysbench                      prepare oltp_read_write.c1
      pgbench                       load tpcb-like.c1
      dbt3                          load index statistics q1 q2 q3 q4 q5 q6 q7 q8 q9 q10 q11 q12 q13 q14
                                    q15 q16 q17 q18 q19 q20 q21 q22 power throughput

    each step with its statements, parameters and pitfalls: dbdyno list workloads NAME
    those that a plan runs: dbdyno plan
    ");
}

#[test]
fn each_step_of_a_workload_is_listed_with_its_statements_parameters_and_purpose() {
    let desk = Desk::new();
    let text = desk.dbdyno(&["list", "workloads", "microbenchmarks"]).expect_ok().out.clone();
    let summary = |name: &str| {
        let start = text.find(&format!("\n{name}")).unwrap_or_else(|| panic!("no {name} in {text}"));
        text[start + 1..].split("\n\n").next().unwrap().to_owned()
    };
    insta::assert_snapshot!(summary("update-inlist"), @r"
    update-inlist (published as update-inlist_range=100)
      for         several rows changed by one statement, without touching the secondary index
      sends       update, prepared
                  UPDATE sbtestN SET c=? WHERE id IN (?, ... 10 values)
      parameters  a new c, and update_inlist_ids (10) uniform ids
      rate        updates/s
      pitfall     its published name says range=100, but the original's script does not get that option
                  and uses its default of 10
      groups      2021: write-heavy; 2024: writes; 2025: writes
    ");
    insta::assert_snapshot!(summary("read-write_range=10\n"), @r"
    read-write_range=10
      for         the whole classic transaction: ten points, four ranges of 10 or 100 rows, two updates,
                  a delete, an insert
      sends       transaction, prepared
                  BEGIN
                  10 x SELECT c FROM sbtestN WHERE id=?
                  SELECT c FROM sbtestN WHERE id BETWEEN ? AND ?
                  SELECT SUM(k) FROM sbtestN WHERE id BETWEEN ? AND ?
                  SELECT c FROM sbtestN WHERE id BETWEEN ? AND ? ORDER BY c
                  SELECT DISTINCT c FROM sbtestN WHERE id BETWEEN ? AND ? ORDER BY c
                  UPDATE sbtestN SET k=k+1 WHERE id=?
                  UPDATE sbtestN SET c=? WHERE id=?
                  DELETE FROM sbtestN WHERE id=?
                  INSERT INTO sbtestN (id, k, c, pad) VALUES (?, ?, ?, ?)
                  COMMIT
      parameters  each statement draws its table and id; DELETE and INSERT share both, so that the row
                  comes back
      rate        transactions/s
      pitfall     published QPS is 20 times the transactions/s here
      groups      2021: write-heavy; 2024: writes; 2025: writes
    ");
    let text = desk.dbdyno(&["list", "workloads", "insert-benchmark"]).expect_ok().out.clone();
    insta::assert_snapshot!(text.split("\n\n").nth(5).unwrap(), @r"
    qr100
      for         short range queries on covering indexes with concurrent writes at a fixed rate: read
                  throughput, and whether the write rate is kept
      sends       insert, text
                  INSERT INTO piN (dateandtime,cashregisterid,customerid,productid,price,data) VALUES
                  (?,?,?,?,?,?), ... 50 rows
      sends       delete, text
                  DELETE FROM piN WHERE transactionid >= ? ORDER BY transactionid ASC LIMIT 50
      sends       query, text
                  SELECT productid, customerid, price FROM piN FORCE INDEX (piN_marketsegment) WHERE
                  productid >= ? ORDER BY productid, customerid, price LIMIT 10
                  SELECT cashregisterid, customerid, price FROM piN FORCE INDEX (piN_registersegment)
                  WHERE cashregisterid > ? ORDER BY cashregisterid, customerid, price LIMIT 10
                  SELECT price, dateandtime, customerid FROM piN FORCE INDEX (piN_pdc) WHERE price >= ?
                  ORDER BY price, dateandtime, customerid LIMIT 10
      parameters  queries: a start drawn uniformly over the column's values. Inserts as in l.i1, and
                  deletes of as many of the oldest rows, at the rate in the step's name for each client
      rate        queries/s
    ");
}

#[test]
fn steps_are_listed_for_programs_too() {
    let desk = Desk::new();
    let lists = |args: &[&str]| -> serde_json::Value {
        let out = desk.dbdyno(&[&["list", "workloads", "--json"], args].concat()).expect_ok().out.clone();
        serde_json::from_str(&out).unwrap()
    };
    let all = lists(&[]);
    let counts: Vec<(&str, usize)> = all
        .as_array()
        .unwrap()
        .iter()
        .map(|list| (list["workload"].as_str().unwrap(), list["steps"].as_array().unwrap().len()))
        .collect();
    assert_eq!(
        counts,
        [
            ("insert-benchmark", 10),
            ("microbenchmarks", 45),
            ("microbenchmarks", 40),
            ("oltp", 10),
            ("sysbench", 2),
            ("pgbench", 2),
            ("dbt3", 27)
        ]
    );
    let oltp = lists(&["oltp"]);
    assert_eq!(oltp.as_array().unwrap().len(), 1);
    assert_eq!(oltp[0]["steps"][2]["operations"][0]["statements"][0], "SELECT c FROM sbtestN WHERE id=?");
}

#[test]
fn an_unknown_workload_is_refused_with_the_known_ones() {
    let desk = Desk::new();
    let refusal = |args: &[&str]| desk.refusal(&desk.dbdyno(args));
    insta::assert_snapshot!(refusal(&["list", "workloads", "tpcc"]), @r#"exit 2: error: there is no workload "tpcc"; its name must be one of: insert-benchmark, microbenchmarks, oltp, sysbench, pgbench, dbt3"#);
    insta::assert_snapshot!(refusal(&["list", "drivers", "sqlite"]), @"exit 2: error: a name goes with `dbdyno list workloads` only; leave it out");
}

#[test]
fn drivers_are_listed() {
    insta::assert_snapshot!(Desk::new().dbdyno(&["list", "drivers"]).expect_ok().out, @"
      sqlite    SQLite, embedded; no server needed
      mysql     MySQL 5.5 to 9.7, MariaDB 10.1 to 11.8, Percona Server, over unix socket or TCP
      postgres  PostgreSQL 9.6 to 19, over unix socket or TCP
      null      answers at once; shows what dbdyno itself costs
    ");
}

#[test]
fn every_column_of_the_reports_is_listed() {
    let desk = Desk::new();
    let text = desk.ended(desk.command(&["list", "metrics"]).env("COLUMNS", "1000")).expect_ok().out.clone();
    for metric in dbdyno_analyse::MetricGroup::ALL.iter().flat_map(|group| group.metrics) {
        let (name, unit) = (metric.name, metric.unit);
        let line = text.lines().find(|line| line.starts_with(&format!("  {name} ")));
        let line = line.unwrap_or_else(|| panic!("no {name} in\n{text}"));
        assert!(line.contains(unit), "{line}");
    }
}

#[test]
fn drivers_metrics_servers_and_runs_are_listed_for_programs_too() {
    let desk = Desk::new();
    let listed = |what: &str| -> serde_json::Value {
        let mut command = desk.command(&["list", what, "--json"]);
        let ended = desk.ended(command.env("DBDYNO_SERVERS", desk.path("none")));
        serde_json::from_str(&ended.expect_ok().out).unwrap()
    };
    assert_eq!(listed("drivers")["drivers"][0]["name"], "sqlite");
    let metrics = listed("metrics");
    let groups = dbdyno_analyse::MetricGroup::ALL.iter().map(|group| group.metrics.len());
    let count = groups.sum::<usize>() + dbdyno_analyse::HostCheck::METRICS.len();
    assert_eq!((&metrics["schema"], metrics["metrics"].as_array().unwrap().len()), (&1.into(), count));
    assert_eq!(
        (&metrics["metrics"][0]["table"], &metrics["metrics"][0]["unit"]),
        (&"metrics".into(), &"rows/s".into())
    );
    assert_eq!(listed("servers")["servers"].as_array().unwrap().len(), 0);
    assert_eq!(listed("runs"), serde_json::json!({ "schema": 1, "runs": [] }));
    let variant = "[[variant]]\nname = \"only\"\nserver = \"sqlite\"\n";
    desk.write("p.toml", &crate::commands::short_plan(variant));
    desk.dbdyno(&["run", "p.toml"]).expect_ok();
    std::fs::create_dir_all(desk.path("runs/0-broken")).unwrap();
    desk.write("runs/0-broken/manifest.json", "{");
    let runs = listed("runs")["runs"].clone();
    let (run, broken) = (&runs[0], &runs[1]);
    assert_eq!([&run["name"], &run["state"], &run["variants"][0]], ["test", "completed", "only"]);
    assert_eq!((&run["cells_completed"], &run["cells_planned"]), (&1.into(), &1.into()));
    assert!(broken["error"].as_str().unwrap().contains("manifest.json"), "{broken}");
}

#[test]
fn a_folder_without_runs_says_so() {
    let desk = Desk::new();
    assert_eq!(desk.dbdyno(&["list", "runs"]).expect_ok().out, "no runs in runs\n");
}

#[test]
fn a_folder_without_servers_says_how_to_get_some() {
    let desk = Desk::new();
    let mut command = desk.command(&["list", "servers"]);
    let ended = desk.ended(command.env("DBDYNO_SERVERS", desk.path("none")).env("COLUMNS", "1000"));
    assert_eq!(
        desk.golden(&ended.expect_ok().out),
        "no servers in FOLDER/none; `dbdyno servers list` shows available servers\n"
    );
}
