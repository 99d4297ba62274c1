//! What one query costs the client: point selects from N sessions on one thread, against a server that already runs.
//!
//! `cargo run --release -p dbdyno-drivers --example mysql_cost -- SOCKET USER SESSIONS SECONDS [text]` makes its own
//! table in its own database and drops both at the end.

use std::cell::Cell;
use std::io::Write;
use std::time::{Duration, Instant};

use dbdyno_drivers::mysql::{MysqlSession, Options};
use dbdyno_drivers::{DbError, Param, Session};

/// Rows of the table; small enough to stay in any buffer pool.
const ROWS: i64 = 10_000;

const DATABASE: &str = "dbdyno_mysql_cost";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, socket, user, sessions, seconds, rest @ ..] = arguments.as_slice() else {
        return Err("usage: mysql_cost SOCKET USER SESSIONS SECONDS [text]".into());
    };
    let text = rest.first().is_some_and(|word| word == "text");
    let sessions: u64 = sessions.parse()?;
    let limit = Duration::from_secs(seconds.parse()?);
    let options = Options::socket(socket, user);
    let mut root = MysqlSession::connect(&options).await?;
    prepare(&mut root).await?;
    let queries = Cell::new(0_u64);
    let spent = cpu_time()?;
    let begin = Instant::now();
    let local = tokio::task::LocalSet::new();
    let queries = std::rc::Rc::new(queries);
    for client in 0..sessions {
        let options = options.clone().with_database(DATABASE);
        let queries = queries.clone();
        local.spawn_local(async move {
            let outcome = select(&options, client, begin, limit, text, &queries).await;
            outcome.expect("the selects go through")
        });
    }
    local.await;
    let wall = begin.elapsed().as_secs_f64();
    let cpu = (cpu_time()? - spent).as_secs_f64();
    let count = queries.get() as f64;
    writeln!(
        std::io::stdout(),
        "{sessions} sessions, {}: {:.0} queries/s, client CPU {:.2} us a query",
        if text { "text" } else { "prepared" },
        count / wall,
        cpu * 1e6 / count
    )?;
    root.query(format!("DROP DATABASE {DATABASE}").as_bytes()).await?;
    Ok(())
}

async fn prepare(root: &mut MysqlSession) -> Result<(), DbError> {
    root.query(format!("CREATE DATABASE {DATABASE}").as_bytes()).await?;
    root.query(format!("USE {DATABASE}").as_bytes()).await?;
    root.query(b"CREATE TABLE t (id bigint primary key, k int, c char(120))").await?;
    let values: Vec<String> = (0..ROWS).map(|id| format!("({id}, {id}, REPEAT('x', 119))")).collect();
    root.query(format!("INSERT INTO t VALUES {}", values.join(", ")).as_bytes()).await?;
    Ok(())
}

async fn select(
    options: &Options,
    client: u64,
    begin: Instant,
    limit: Duration,
    text: bool,
    queries: &Cell<u64>,
) -> Result<(), DbError> {
    let mut session = MysqlSession::connect(options).await?;
    let statement = session.prepare("SELECT c FROM t WHERE id = ?").await?;
    let mut state = client + 1;
    let mut sql = Vec::with_capacity(64);
    while begin.elapsed() < limit {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let id = (state >> 33) as i64 % ROWS;
        let answer = if text {
            sql.clear();
            write!(sql, "SELECT c FROM t WHERE id = {id}").expect("memory takes all writes");
            session.query(&sql).await?
        } else {
            session.execute(statement, &[Param::Int(id)]).await?
        };
        assert_eq!(answer.rows, 1);
        queries.set(queries.get() + 1);
    }
    session.close().await;
    Ok(())
}

/// CPU time of this process, user and kernel, from the scheduler's own nanosecond counter.
fn cpu_time() -> std::io::Result<Duration> {
    let text = std::fs::read_to_string("/proc/self/schedstat")?;
    let nanoseconds = text.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0);
    Ok(Duration::from_nanos(nanoseconds))
}
