//! Tests the Lua API. Most tests run a script that asserts the results of its calls.

use super::bad::failures;
use super::{desk, script};
use crate::desk::text;

/// Runs one event, which has the open connection `con`. The event must not fail.
fn holds(event: &str) {
    holds_with("", event);
}

fn holds_with(more: &str, event: &str) {
    let given = script(&format!(
        "function thread_init() con = sysbench.sql.driver():connect() end\n{more}\nfunction event(tid)\n{event}\nend\n"
    ));
    assert_eq!(failures(&given, 1), [None], "{event}");
}

#[test]
fn names_and_constants() {
    holds(
        "assert(sysbench.tid == 0 and tid == 0 and thread_id == 0)
         assert(sysbench.cmdline.command == 'run' and sysbench.cmdline.script_path:match('own.lua$'))
         assert(sysbench.sql.driver():name() == 'mysql' and sysbench.sql.driver('mysql'))
         assert(not pcall(sysbench.sql.driver, 'pgsql'))
         assert(sysbench.sql.error.NONE == 0 and sysbench.sql.error.IGNORABLE ~= sysbench.sql.error.FATAL)
         assert(sysbench.error.RESTART_EVENT ~= sysbench.error.NONE)
         assert(sysbench.version and sysbench.version_string:match('^sysbench'))
         for _, name in ipairs({ 'TINYINT', 'INT', 'BIGINT', 'DOUBLE', 'CHAR', 'VARCHAR', 'DATETIME' }) do
            assert(sysbench.sql.type[name], name)
         end",
    );
}

#[test]
fn options_have_their_types_and_defaults() {
    let text = "sysbench.cmdline.options = {
           size = { 'a number', 10 }, flag = { 'a flag', false }, name = { 'a text', 'x' }, list = { 'a list', { 'a' } },
           bytes = { 'a size', 1, sysbench.cmdline.ARG_SIZE }, none = { 'no default' },
           even = { 'checked', 2, sysbench.cmdline.ARG_INT, function(n) assert(n % 2 == 0, 'odd') return n end } }
        function event()
           local o = sysbench.opt
           assert(o.size == 12 and o.flag == true and o.name == 'y' and #o.list == 2 and o.list[2] == 'c')
           assert(o.bytes == 2048 and o.none == nil and o.even == 4)
           assert(o.threads == 1 and o.time == 10 and o.rand_type == 'uniform' and o.db_driver == 'mysql')
           assert(size == 12, 'old scripts read options as globals')
        end";
    let mut given = script(text);
    given.options.push_str(
        "options = { size = 12, flag = \"on\", name = \"y\", list = \"b,c\", bytes = \"2K\", even = 4 }\n",
    );
    assert_eq!(failures(&given, 1), [None]);
    given.options = given.options.replace("even = 4", "even = 5");
    let said = super::mistake(&given);
    assert!(said.contains("even is 5") && said.contains("odd"), "{said}");
}

#[test]
fn draws_are_in_their_ranges() {
    holds(
        "for _, name in ipairs({ 'default', 'uniform', 'gaussian', 'special', 'pareto', 'zipfian' }) do
            for i = 1, 200 do
               local n = sysbench.rand[name](5, 9)
               assert(n >= 5 and n <= 9 and n == math.floor(n), name)
            end
         end
         local u = sysbench.rand.uniform_double()
         assert(u >= 0 and u < 1)
         assert(sysbench.rand.unique() ~= sysbench.rand.unique())
         assert(sysbench.rand.string('##-@@x'):match('^%d%d%-%l%lx$'))
         local v = sysbench.rand.varstring(3, 5)
         assert(#v >= 3 and #v <= 5)
         assert(sb_rand(1, 2) <= 2 and sb_rand_uniform(3, 3) == 3 and #sb_rand_str('####') == 4)
         assert(sb_rand_uniq() ~= sb_rand_uniq() and sb_rnd() >= 0)
         math.randomseed(os.time())
         assert(math.random() < 1 and math.random(3) <= 3 and math.random(4, 5) >= 4)",
    );
}

#[test]
fn a_query_gives_rows_and_a_row() {
    let given = script(
        "function thread_init() con = sysbench.sql.driver():connect() end
         function event()
            local rs = con:query('SELECT 7')
            assert(rs.nrows == 1 and rs.nfields == 1)
            local row = rs:fetch_row()
            assert(row[1] == '7' and rs:fetch_row() == nil)
            rs:free()
            assert(con:query_row('SELECT 7') == '7')
            assert(con:query_row('SELECT 8') == nil)
            local first = con:query('SELECT 7')
            con:query('SELECT 7')
            assert(first:fetch_row() == nil, 'the next query frees the result before')
            assert(con:query('DELETE FROM t WHERE id=1') == nil)
            assert(con:more_results() == false and con:next_result() == nil)
         end",
    );
    let mut desk = desk(&given.options);
    desk.journal.answer("SELECT 7", 7);
    let sent = desk.operations("own.c1", 0, 1).remove(0);
    assert_eq!(
        sent,
        ["SELECT 7", "SELECT 7", "SELECT 8", "SELECT 7", "SELECT 7", "DELETE FROM t WHERE id=1"]
    );
}

#[test]
fn a_statement_that_changes_rows_has_no_result_and_using_one_fails_only_that_event() {
    let given = script(
        "n = 0
         function thread_init() con = sysbench.sql.driver():connect() end
         function event()
            n = n + 1
            local rs = con:query('UPDATE t SET a = 1')
            if n == 1 then return rs.nrows > 0 end
            assert(rs == nil)
         end",
    );
    let all = failures(&given, 3);
    let (class, said) = all[0].clone().unwrap();
    assert_eq!(class, dbdyno_record::ErrorClass::Refused);
    assert!(said.contains("own.lua:6: attempt to index local 'rs' (a nil value)"), "{said}");
    assert_eq!(all[1..], [None, None]);
}

#[test]
fn old_functions_take_options_that_are_texts() {
    let mut given = script(
        "function event()
            assert(type(oltp_table_size) == 'string')
            for _, rand in ipairs({ sb_rand, sb_rand_uniform, sb_rand_gaussian, sb_rand_special, sb_rand_pareto }) do
               local value = rand(1, oltp_table_size)
               assert(value >= 1 and value <= 1000)
            end
         end",
    );
    given.options.push_str("options = { oltp_table_size = 1000 }\n");
    assert_eq!(failures(&given, 1), [None]);
}

/// A script that divides its tables over connections as sysbench's `oltp_common.lua` does.
const PARALLEL: &str = "
sysbench.cmdline.options = { tables = { 'tables', 1 } }
local function create()
   local con = sysbench.sql.driver():connect()
   for i = sysbench.tid % sysbench.opt.threads + 1, sysbench.opt.tables, sysbench.opt.threads do
      con:query('CREATE TABLE sbtest' .. i .. ' (id INTEGER)')
   end
end
sysbench.cmdline.commands = { prepare = { create, sysbench.cmdline.PARALLEL_COMMAND } }
function event() end
";

#[test]
fn a_parallel_command_makes_each_table_once_with_few_and_with_many_connections() {
    for (connections, tables) in [(1, 200), (4, 10), (16, 3), (3, 3)] {
        let given = script(PARALLEL);
        let options = given.options.replace("\"run\"", "\"prepare\", \"run\"");
        let more = format!("options = {{ tables = {tables} }}\nprepare_connections = {connections}\n");
        let mut desk = desk(&(options + &more));
        desk.run("prepare");
        let sent = desk.journal.take();
        let mut made: Vec<u32> = sent
            .iter()
            .filter_map(|request| {
                text(request).strip_prefix("CREATE TABLE sbtest")?.split(' ').next()?.parse().ok()
            })
            .collect();
        made.sort_unstable();
        assert_eq!(made, (1..=tables).collect::<Vec<u32>>(), "{connections} connections");
    }
}

#[test]
fn a_text_parameter_keeps_nothing_of_a_longer_value_before_it() {
    let text = "function thread_init()
          con = sysbench.sql.driver():connect()
          local t = sysbench.sql.type
          stmt = con:prepare('INSERT INTO t VALUES (?, ?)')
          a, b = stmt:bind_create(t.CHAR, 8), stmt:bind_create(t.VARCHAR, 120)
          stmt:bind_param(a, b)
       end
       function event()
          for _, value in ipairs({ 'abcd', '12345678', '', 'ab' }) do a:set(value) b:set(value) stmt:execute() end
       end";
    let wanted =
        ["abcd", "12345678", "", "ab"].map(|value| format!("INSERT INTO t VALUES ('{value}', '{value}')"));
    for mode in ["auto", "disable"] {
        let given = script(text);
        let sent =
            desk(&format!("{}db_ps_mode = \"{mode}\"\n", given.options)).operations("own.c1", 0, 1).remove(0);
        assert_eq!(sent, wanted, "{mode}");
    }
}

const BOUND: &str = "function thread_init()
      con = sysbench.sql.driver():connect()
      local t = sysbench.sql.type
      stmt = con:prepare('INSERT INTO t VALUES (?, ?, ?, ?)')
      a, b = stmt:bind_create(t.BIGINT), stmt:bind_create(t.VARCHAR, 4)
      c, d = stmt:bind_create(t.DOUBLE), stmt:bind_create(t.CHAR, 10)
      stmt:bind_param(a, b, c, d)
      assert(not pcall(stmt.bind_create, stmt, t.DATETIME) and not pcall(stmt.bind_create, stmt, t.CHAR))
   end
   function event()
      a:set(12.9) b:set(\"it's long\") c:set(0.5) d:set_rand_str('ab')
      assert(stmt:execute() == nil)
      a:set(-3.9) b:set(nil) c:set(2) d:set(17)
      stmt:execute()
   end
   function thread_done() stmt:close() con:disconnect() end";

#[test]
fn parameters_have_their_types() {
    let sent = desk(&script(BOUND).options).operations("own.c1", 0, 1).remove(0);
    assert_eq!(
        sent,
        ["INSERT INTO t VALUES (12, 'it's', '0.5', 'ab')", "INSERT INTO t VALUES (-3, NULL, 2, '17')"]
    );
    let as_text = format!("{}db_ps_mode = \"disable\"\n", script(BOUND).options);
    assert!(super::plan(&as_text).is_err(), "the folder is gone with its script");
    let given = script(BOUND);
    let sent =
        desk(&format!("{}db_ps_mode = \"disable\"\n", given.options)).operations("own.c1", 0, 1).remove(0);
    assert_eq!(
        sent,
        ["INSERT INTO t VALUES (12, 'it''s', 0.5, 'ab')", "INSERT INTO t VALUES (-3, NULL, 2, '17')"]
    );
}

#[test]
fn an_event_ends_its_thread_with_a_value_and_begins_again_with_an_error_code() {
    let text = "n = 0
        function event() n = n + 1 if n == 3 then return 0 end end";
    let mut desk = desk(&format!("{}events = 100\n", script_path(text)));
    let (end, _) = desk.run("own.c1");
    assert_eq!((end.tasks[0].done, end.tasks[0].complete), (3, true));
    let text = "n = 0
        function sysbench.hooks.before_restart_event(e) hooked = e.sql_errno end
        function event()
           n = n + 1
           if n == 1 then error({ errcode = sysbench.error.RESTART_EVENT, sql_errno = 1213 }) end
           assert(n == 2 and hooked == 1213)
        end";
    let mut desk = super::desk(&format!("{}events = 1\n", script_path(text)));
    let (end, _) = desk.run("own.c1");
    assert_eq!((end.tasks[0].done, end.tasks[0].retries), (1, 1));
}

/// Returns the options of a script whose folder is not deleted.
fn script_path(text: &str) -> String {
    let given = script(text);
    let options = given.options.clone();
    let _ = given.folder.keep();
    options
}

#[test]
fn a_script_may_have_a_loop_of_its_own() {
    let text = "local ffi = require('ffi')
        ffi.cdef('bool sb_more_events(int);')
        function thread_init() con = sysbench.sql.driver():connect() end
        function thread_run(tid)
           while ffi.C.sb_more_events(tid) do
              ffi.C.sb_event_start(tid)
              con:query('DELETE FROM t')
              ffi.C.sb_counter_inc(tid, ffi.C.SB_CNT_ERROR)
              ffi.C.sb_event_stop(tid)
           end
        end";
    let mut desk = desk(&format!("{}events = 5\n", script_path(text)));
    let (end, _) = desk.run("own.c1");
    assert_eq!((end.tasks[0].done, desk.journal.take().len()), (5, 5));
}

#[test]
fn scripts_of_version_0_5_run() {
    let text = "pathtest = string.match(test, '(.*/)')
        function set_vars() oltp_table_size = tonumber(oltp_table_size) or 10000 end
        function thread_init(thread_id) set_vars() end
        function event(thread_id)
           rs = db_query('SELECT c FROM sbtest1 WHERE id=' .. sb_rand_uniform(oltp_table_size, oltp_table_size))
           db_bulk_insert_init('INSERT INTO t VALUES')
           db_bulk_insert_next('(1)')
           db_bulk_insert_next('(2)')
           db_bulk_insert_done()
           stmt = db_prepare('DELETE FROM t WHERE id=?')
           params = { 5 }
           db_bind_param(stmt, params)
           rs = db_execute(stmt)
           params[1][1] = 6
           db_execute(stmt)
           db_close(stmt)
           if db_driver ~= 'mysql' then error('driver') end
        end";
    let mut desk = desk(&format!("{}options = {{ oltp_table_size = 77 }}\n", script_path(text)));
    let sent = desk.operations("own.c1", 0, 1).remove(0);
    let wanted = [
        "SELECT c FROM sbtest1 WHERE id=77",
        "INSERT INTO t VALUES(1),(2)",
        "DELETE FROM t WHERE id=5",
        "DELETE FROM t WHERE id=6",
    ];
    assert_eq!(sent, wanted);
}

#[test]
fn connections_are_closed_and_opened_again() {
    let text = "function event()
           local con = sysbench.sql.driver():connect()
           local stmt = con:prepare('DELETE FROM t')
           stmt:execute()
           con:reconnect()
           assert(not pcall(stmt.execute, stmt))
           con:query('DELETE FROM u')
           con:disconnect()
           assert(not pcall(con.query, con, 'DELETE FROM v'))
        end";
    let sent = desk(&script_path(text)).operations("own.c1", 0, 2);
    assert_eq!(sent, [["DELETE FROM t", "DELETE FROM u"], ["DELETE FROM t", "DELETE FROM u"]]);
}

#[test]
fn histograms_and_reports_print() {
    holds(
        "local h = sysbench.histogram.new(100, 0.1, 10)
         h:update(1) h:update(1) h:update(100)
         h:print()
         assert(not pcall(sysbench.histogram.new, 1, 1, 1))
         local stat = { time_total = 1, time_interval = 1, threads_running = 1, events = 2, reads = 3, writes = 4, other = 5,
                        errors = 0, reconnects = 0, latency_pct = 0.001 }
         sysbench.report_default(stat) sysbench.report_csv(stat) sysbench.report_json(stat)",
    );
}

#[test]
fn a_script_sleeps_as_long_as_it_asks() {
    let began = std::time::Instant::now();
    holds("local C = require('ffi').C assert(C.usleep(20000) == 0 and C.usleep(20000.5) == 0)");
    assert!(began.elapsed() >= std::time::Duration::from_millis(40));
}

#[test]
fn libraries_and_old_functions_are_found_by_every_kind_of_look_up() {
    holds_with(
        "local seen = {} for name in pairs(_G) do seen[name] = true end
         assert(seen.math and seen.table and seen.io and seen.require and seen.db_query)
         setmetatable(_G, { __index = function(_, name) error('undeclared ' .. name) end })",
        "assert(math.floor(2.5) == 2 and table.concat({ 1, 2 }) == '12' and bit.band(6, 3) == 2 and os.time() > 0)",
    );
    holds(
        "assert(require('math') == math and require('ffi') == ffi and debug.traceback('x'):match('^x'))
         jit.on() jit.off()
         assert(jit.status() == false and math.max(1, 2) == 2 and table.maxn({ 5 }) == 1)
         package.preload.own = function(name) return { name = name } end
         assert(require('own').name == 'own' and require('own') == package.loaded.own)
         module('late', package.seeall)
         assert(_NAME == 'late' and os and sysbench)",
    );
}
