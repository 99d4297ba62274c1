//! Opens the pages of real runs in a browser, and reads their Parquet files with DuckDB. `cargo
//! xtask test` installs Chromium, DuckDB's Python package and the npm packages that this needs.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::support::Desk;

/// Returns a plan with two factors (four variants), two concurrency levels of one test (a sweep)
/// and two blocks (confidence intervals).
fn plan() -> String {
    let variant = |name: &str, journal: &str, sync: &str| {
        format!(
            "[[variant]]\nname = \"{name}\"\nserver = \"sqlite\"\n\
             options.pragmas = {{ journal_mode = \"{journal}\", synchronous = \"{sync}\" }}\n\
             factors = {{ journal = \"{journal}\", sync = \"{sync}\" }}\n"
        )
    };
    let variants = [
        variant("rollback-sync", "delete", "full"),
        variant("rollback-nosync", "delete", "off"),
        variant("wal-sync", "wal", "full"),
        variant("wal-nosync-with-a-name-that-is-long", "wal", "off"),
    ];
    format!(
        "name = \"page\"\nblocks = 2\n{}\n[workload.oltp]\nsettle_wait = \"0s\"\ntables = 1\ntable_size = 1000\n\
         tests = [\"read-write\"]\nconnections = [1, 2]\ntime = \"2s\"\n",
        variants.concat()
    )
}

const SHORT: &str = "name = \"nightly\"\n[[variant]]\nname = \"only\"\nserver = \"sqlite\"\n\
    [workload.oltp]\nsettle_wait = \"0s\"\ntables = 1\ntable_size = 500\ntests = [\"point-select\"]\n\
    connections = [1]\ntime = \"1s\"\n";

/// Every kind of chart that these runs can have.
const KINDS: &str = "blocks,cost,history,interaction,percentiles,ratios,seconds,sweep";

#[test]
#[ignore = "in cargo xtask test --all: a browser, DuckDB"]
fn pages_of_real_runs_hold_in_a_browser_and_their_parquet_files_in_duckdb() {
    let desk = Desk::new();
    desk.write("page.toml", &plan());
    desk.write("short.toml", SHORT);
    let mut running =
        desk.command(&["run", "page.toml"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    live(&desk);
    assert!(running.wait().unwrap().success());
    let run = desk.run_dir();
    duckdb_reads(&desk, &run);
    for _ in 0..2 {
        // Names of run directories hold whole seconds, so each run needs a second of its own.
        std::thread::sleep(std::time::Duration::from_millis(1_100));
        desk.dbdyno(&["run", "short.toml"]).expect_ok();
    }
    let ended = desk.dbdyno(&["report", "runs"]);
    ended.expect_ok();
    assert_eq!(ended.out, "index: runs/index.html\n");
    let page = desk.path("published.html");
    let published = ["report", run.to_str().unwrap(), "--style", "published", "--output", "published.html"];
    desk.dbdyno(&published).expect_ok();
    assert!(std::fs::read_to_string(&page).unwrap().contains("href=\"published-details.html\""));
    assert!(desk.path("published-details.html").exists());
    served(&desk);
    browser_accepts(&[
        run.join("report.html"),
        page,
        desk.path("runs/history-nightly.html"),
        desk.path("runs/index.html"),
    ]);
}

fn page_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../report/page")
}

fn browser_accepts(pages: &[PathBuf]) {
    let pages: Vec<&str> = pages.iter().map(|page| page.to_str().unwrap()).collect();
    browser("browser.mjs", &pages);
    for script in ["colours.mjs", "range.mjs", "ratio.mjs", "score.mjs", "sweep.mjs"] {
        browser(script, &[]);
    }
}

/// Runs a test script of the page's folder. Its first argument is the folder for screenshots, and
/// `arguments` follow.
fn browser(script: &str, arguments: &[&str]) {
    let screenshots = Path::new(env!("CARGO_TARGET_TMPDIR")).join("screenshots");
    std::fs::create_dir_all(&screenshots).unwrap();
    assert!(page_folder().join("node_modules/playwright-core").exists(), "run `cargo xtask page` first");
    let mut command = Command::new("node");
    command.arg(page_folder().join("test").join(script)).arg(&screenshots).args(arguments);
    let ended = command.env("KINDS", KINDS).stdin(Stdio::null()).output().expect("node is installed");
    let (out, err) = (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    assert!(ended.status.success(), "{out}\n{err}\nscreenshots: {}", screenshots.display());
}

/// Python program that queries the Parquet files for figures of the whole run.
const QUERIES: &str = r#"
import duckdb, json, sys
folder = sys.argv[1]
rows = lambda sql: duckdb.sql(sql.replace("FOLDER", folder)).fetchall()
print(json.dumps({
    "rates": rows("SELECT step, variant, value FROM 'FOLDER/observations.parquet' WHERE metric = 'rate' AND block IS NULL ORDER BY ALL"),
    "blocks": rows("SELECT count(DISTINCT block), bool_and(valid) FROM 'FOLDER/observations.parquet' WHERE metric = 'rate' AND block IS NOT NULL"),
    "seconds": rows("SELECT step, variant, block, kind, avg(rate) FROM 'FOLDER/seconds.parquet' GROUP BY ALL"),
    "operations": rows("SELECT o.step, o.variant, o.value, sum(h.count) FROM 'FOLDER/observations.parquet' o JOIN 'FOLDER/histograms.parquet' h USING (step, variant) WHERE h.clock = 'response' AND o.metric = 'response_count' AND o.block IS NULL GROUP BY ALL"),
    "device": rows("SELECT count(*) FROM 'FOLDER/device_seconds.parquet' WHERE written_kib_per_second >= 0") if sys.argv[2] == "1" else None,
}))
"#;

fn duckdb_reads(desk: &Desk, run: &Path) {
    let run_name = run.to_str().unwrap();
    desk.dbdyno(&["report", run_name, "--format", "parquet", "--output", "parquet"]).expect_ok();
    let has_device = desk.path("parquet/device_seconds.parquet").exists();
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let cache =
        std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or(home.map(|home| home.join(".cache")));
    let mut command = Command::new("python3");
    command.env("PYTHONPATH", cache.unwrap().join("dbdyno/tools/python"));
    command.args(["-c", QUERIES]).arg(desk.path("parquet")).arg(if has_device { "1" } else { "0" });
    let ended = command.output().expect("python3 is installed");
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    let found: serde_json::Value = serde_json::from_slice(&ended.stdout).unwrap();
    let findings = crate::support::findings(run);
    let mut expected: Vec<(String, String, f64)> = Vec::new();
    for step in &findings.workloads[0].steps {
        for variant in &step.variants {
            expected.push((step.name.clone(), variant.variant.clone(), variant.rate.unwrap()));
        }
    }
    expected.sort_by(|one, other| (&one.0, &one.1).cmp(&(&other.0, &other.1)));
    let rates = found["rates"].as_array().unwrap();
    assert_eq!(rates.len(), expected.len());
    for (row, (step, variant, rate)) in rates.iter().zip(&expected) {
        assert_eq!((row[0].as_str().unwrap(), row[1].as_str().unwrap()), (step.as_str(), variant.as_str()));
        // The numbers travel as JSON with 17 digits, and the JSON parser may be off by one in the
        // last digit.
        assert!((row[2].as_f64().unwrap() / rate - 1.0).abs() < 1e-12, "{row} instead of {rate}");
    }
    assert_eq!(found["blocks"], serde_json::json!([[2, true]]));
    assert!(found["seconds"].as_array().unwrap().len() >= 2 * 4 * 2, "{}", found["seconds"]);
    for row in found["operations"].as_array().unwrap() {
        assert_eq!(row[2].as_f64(), row[3].as_f64(), "histograms hold each operation once: {row}");
    }
}

/// Checks the pages of `dbdyno serve` while a run goes on.
fn live(desk: &Desk) {
    desk.run_dir();
    let (mut server, address) = serve(desk);
    browser("live.mjs", &[&format!("http://{address}/")]);
    server.kill().unwrap();
    server.wait().unwrap();
}

fn serve(desk: &Desk) -> (Child, String) {
    let mut server = desk.command(&["serve", "runs", "--port", "0"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(server.stdout.take().unwrap()), &mut line)
        .unwrap();
    let address = line.split("http://").nth(1).and_then(|rest| rest.split('/').next()).unwrap().to_owned();
    (server, address)
}

/// Checks that `dbdyno serve` sends the index and the pages, refuses names of other machines, and
/// serves no file outside the folder.
fn served(desk: &Desk) {
    let (mut server, address) = serve(desk);
    let get = |path: &str, host: &str| {
        let mut stream = TcpStream::connect(&address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    };
    let index = get("/", &address);
    assert!(
        index.starts_with("HTTP/1.1 200 OK\r\n") && index.contains("history-nightly.html"),
        "{index:.200}"
    );
    let mut links = index.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next());
    let page = links.find(|link| link.ends_with("/report.html")).expect("the index links its runs");
    assert!(get(&format!("/{page}"), &address).contains("<figure class=\"chart\""));
    assert!(get("/history-nightly.html", &address).contains("dbdyno history: nightly"));
    for path in ["/../page.toml", "/nothing", "//etc/passwd", "/../runs/report.html"] {
        assert!(get(path, &address).starts_with("HTTP/1.1 404 "), "{path}");
    }
    assert!(get("/", "example.com:80").starts_with("HTTP/1.1 403 "));
    server.kill().unwrap();
    server.wait().unwrap();
}
