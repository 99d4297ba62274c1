//! Tests scripts that are wrong, do not end, take too much memory, or reach for files and programs.
//! Each ends with an error that says why.

use dbdyno_loadgen::{ConnectionTask, Notes};
use dbdyno_record::ErrorClass;
use dbdyno_workloads::Workload;

use super::{Given, desk, mistake, plan, script, stock};

/// Returns the failure, if any, of each of `count` events of a script.
pub(crate) fn failures(given: &Given, count: u64) -> Vec<Option<(ErrorClass, String)>> {
    let desk = desk(&given.options);
    let (_, factory) = desk.workload.tasks(0).into_iter().next().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut task = factory();
        if let Err(failure) = task.open().await {
            return vec![Some((failure.class, failure.message))];
        }
        let mut all = Vec::new();
        for number in 0..count {
            task.prepare(number, &mut Notes::default()).await.unwrap();
            all.push(task.perform(number).await.err().map(|failure| (failure.class, failure.message)));
        }
        task.close().await;
        all
    })
}

fn first(text: &str) -> (ErrorClass, String) {
    failures(&script(text), 1).remove(0).expect("it must fail")
}

#[test]
fn a_mistake_is_named_with_its_line_before_anything_runs() {
    let said = mistake(&script("function event()\n  local x = = 1\nend\n"));
    assert!(said.contains("own.lua:2:") && said.contains("unexpected symbol"), "{said}");
    let said = mistake(&script("local x = nil + 1\nfunction event() end\n"));
    assert!(said.contains("own.lua:1:") && said.contains("arithmetic"), "{said}");
    // The position is that of the key `script` in the plan, although the script's message looks
    // like that of a wrong option.
    let said = mistake(&script("error('option a is b, but must be c')"));
    assert!(said.starts_with("p.toml:6:10: ") && said.contains("option a is b"), "{said}");
    let said = mistake(&script("x = 1"));
    assert!(said.contains("has no command run"), "{said}");
    let said = plan(&stock("no_such_script", "")).unwrap_err();
    assert!(said.contains("no_such_script") && said.contains("/usr/share/sysbench"), "{said}");
}

#[test]
#[ignore = "in cargo xtask test --all: sysbench's own scripts"]
fn a_mistake_in_the_options_of_a_script_from_sysbench_is_named() {
    let said = plan(&stock("oltp_read_only", "table_sizes = 5")).unwrap_err();
    assert!(said.contains("no option table_sizes"), "{said}");
    let said = plan(&stock("oltp_read_only", "tables = \"many\"")).unwrap_err();
    assert!(said.contains("tables is many, but must be a number"), "{said}");
}

#[test]
fn an_error_fails_only_its_event_and_names_its_line() {
    let text = "local n = 0\nlocal function deep() error('seventh') end\n\
                function event() n = n + 1 if n == 2 then deep() end end\n";
    let all = failures(&script(text), 3);
    assert_eq!((all[0].clone(), all[2].clone()), (None, None));
    let (class, said) = all[1].clone().unwrap();
    assert_eq!(class, ErrorClass::Refused);
    assert!(said.contains("own.lua:2: seventh") && said.contains("own.lua:3"), "{said}");
}

#[test]
fn an_endless_loop_ends_even_where_its_errors_are_caught() {
    let limited = |text: &str| {
        let mut given = script(text);
        given.options.push_str("time = \"1s\"\ntime_cap = 1.0\n");
        failures(&given, 1).remove(0).unwrap()
    };
    for text in [
        "function event() while true do end end",
        "function event() while true do pcall(function() while true do end end) end end",
        "function thread_init() repeat until false end function event() end",
        "function event() return string.find(string.rep('a', 3000000), '.-.-.-.-.-b') end",
        "function event() return (('a'):rep(3000000):gsub('.-.-.-b', '')) end",
    ] {
        let (class, said) = limited(text);
        assert_eq!(class, ErrorClass::Fatal, "{said}");
        assert!(said.contains("without a statement: look for an endless loop"), "{said}");
    }
}

#[test]
fn lua_features_that_could_crash_the_process_are_off() {
    for (text, wanted) in [
        ("function event() return string.dump(event) end", "field 'dump' (a nil value)"),
        ("function event() newproxy(true) end", "global 'newproxy' (a nil value)"),
        ("function event() assert(loadstring('\\27LJ\\2')) end", "attempt to load chunk with wrong mode"),
        ("function event() assert(load('\\27LJ\\2', 'x', 'b')) end", "attempt to load chunk with wrong mode"),
        (
            "function event() local n = 0 assert(load(function() n = n + 1 return n == 1 and '\\27LJ\\2' or nil end)) end",
            "attempt to load chunk with wrong mode",
        ),
    ] {
        let (_, said) = failures(&script(text), 1).remove(0).unwrap();
        assert!(said.contains(wanted), "{text}: {said}");
    }
    let text = "function event() assert(loadstring('return 7')() == 7 and load('return x', 'n', 't', { x = 8 })() == 8) end";
    assert_eq!(failures(&script(text), 1), [None]);
}

#[test]
fn patterns_that_the_host_matches_give_what_the_library_gives() {
    // The text is so long that the host matches the patterns, and not Lua's library.
    let text = "
local long = ('key = value, (a(b)c); '):rep(400)
function event()
   local n = 0
   for key, value in long:gmatch('(%w+)%s*=%s*(%w+)') do
      assert(key == 'key' and value == 'value')
      n = n + 1
   end
   assert(n == 400)
   assert(select(2, long:gsub('%s-=%s-', '')) == 400)
   assert(long:gsub('(%w+) = (%w+)', '%2=%1', 1):sub(1, 9) == 'value=key')
   assert(long:gsub('%w+', { key = 'K', value = false }):sub(1, 9) == 'K = value')
   assert(long:gsub('(%w+)( *)', function(word, space) return #word .. space end):sub(1, 5) == '3 = 5')
   assert(long:gsub('x*', '-'):sub(1, 6) == '-k-e-y')
   assert(long:match('^(.-)%s*,') == 'key = value')
   assert(long:match('%b()', 5) == '(a(b)c)')
   local first, last, caught = long:find('(%a+)%s-;', -3)
   assert(first == nil)
   first, last = long:find('c); ', -21, true)
   assert(first == #long - 3 and last == #long)
   assert(not pcall(string.find, long, '(a.-'))
end
";
    assert_eq!(failures(&script(text), 1), [None]);
}

#[test]
fn a_state_that_takes_too_much_memory_ends() {
    let limited = |text: &str| {
        let mut given = script(text);
        given.options.push_str("memory_mb = 8\n");
        failures(&given, 1).remove(0).unwrap().1
    };
    let said = limited("all = {} function event() while true do all[#all + 1] = { 'x' .. #all } end end");
    assert!(said.contains("memory_mb = 8"), "{said}");
    for at_once in [
        "function event() return ('x'):rep(100 * 1024 * 1024) end",
        "function event() local t = 'x' for i = 1, 30 do t = t .. t end end",
        "function event() return table.concat({ ('x'):rep(3e6), ('y'):rep(3e6), ('z'):rep(3e6) }) end",
    ] {
        let said = limited(at_once);
        assert!(said.contains("memory_mb = 8") && said.contains("not enough memory"), "{said}");
    }
}

#[test]
fn programs_and_files_outside_the_scripts_folder_are_off() {
    for (call, wanted) in [
        ("os.execute('true')", "os.execute is off"),
        ("io.popen('true')", "io.popen is off"),
        ("os.remove('x')", "os.remove is off"),
        ("assert(io.open('/etc/passwd'))", "outside the script's folder"),
        ("assert(io.open('new.txt', 'w'))", "writes no files"),
        ("dofile('/etc/passwd')", "outside the script's folder"),
        (
            "require('ffi').cdef('int system(const char *);') require('ffi').C.system('true')",
            "ffi.C.system is not offered",
        ),
        ("require('no_such_module')", "module 'no_such_module' not found"),
        ("package.path = '/etc/?' require('passwd')", "outside the script's folder"),
    ] {
        let (_, said) = first(&format!("function event() {call} end"));
        assert!(said.contains(wanted), "{call}: {said}");
    }
    let allowed = script("function event() assert(io.open('/etc/passwd')):close() end");
    let allowed = Given { options: format!("{}allow = [\"files\"]\n", allowed.options), ..allowed };
    assert_eq!(failures(&allowed, 1), [None]);
}

#[test]
fn a_script_reads_its_own_folder() {
    let given = script(
        "local m = require('helper') function event() assert(m.seven == 7 and dofile('data.lua') == 8) end",
    );
    std::fs::write(given.folder.path().join("helper.lua"), "return { seven = 7 }").unwrap();
    std::fs::write(given.folder.path().join("data.lua"), "return 8").unwrap();
    assert_eq!(failures(&given, 2), [None, None]);
}

/// Lines of a script are removed, repeated, swapped and cut. Each script must end, with an error or
/// without one.
#[test]
fn mutated_scripts_neither_crash_nor_hang() {
    let read = |name: &str| std::fs::read_to_string(format!("/usr/share/sysbench/{name}.lua")).unwrap();
    let run = read("oltp_read_write").replace("require(\"oltp_common\")", "").replace("#!", "--");
    let text = read("oltp_common") + &run;
    let stream = dbdyno_workloads::Philox::new(24, 1);
    let (mut bad, mut failed) = (0, 0);
    for number in 0..200 {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        for index in 0..1 + number as u32 % 3 {
            let [which, at, other, what] = stream.at(1, number, index);
            let (at, other) = (at as usize % lines.len(), other as usize % lines.len());
            match which % 4 {
                0 => drop(lines.remove(at)),
                1 => lines.insert(at, lines[other].clone()),
                2 => lines.swap(at, other),
                _ => {
                    let line: Vec<char> = lines[at].chars().collect();
                    let cut = what as usize % (line.len() + 1);
                    lines[at] = line[..cut].iter().collect();
                }
            }
        }
        let mut given = script(&lines.join("\n"));
        given.options.push_str("time = \"1s\"\ntime_cap = 1.0\n");
        if plan(&given.options).is_err() {
            bad += 1;
            continue;
        }
        failed += usize::from(failures(&given, 2).iter().any(Option::is_some));
    }
    assert!(bad > 20 && failed > 3 && bad + failed < 200, "{bad} {failed}");
}
