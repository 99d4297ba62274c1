//! Runs other programs in the repository's root, finds folders (the repository, the cache and the
//! build output), and prints. xtask's commands print nowhere else.

use std::env;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// Beginnings of the variables by which Cargo tells a program about its own package.
const OF_OUR_PACKAGE: [&str; 2] = ["CARGO_PKG_", "CARGO_MANIFEST_"];

/// Returns a command for the Cargo that runs this program, in the environment that it would have if
/// a person called it. The variables of [`OF_OUR_PACKAGE`] are removed, because build scripts of
/// dependencies look at them: with them, dependencies would be rebuilt whenever a person's call
/// follows a call from here, and the reverse.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments);
    for (name, _) in std::env::vars_os() {
        if OF_OUR_PACKAGE.iter().any(|beginning| name.to_string_lossy().starts_with(beginning)) {
            command.env_remove(name);
        }
    }
    command
}

/// Runs `command` without input in the repository's root. Its output goes where the output of this
/// program goes. An error names its command line.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let line = command_line(command);
    let status = command.current_dir(root()).stdin(Stdio::null()).status();
    let status = status.with_context(|| format!("`{line}` cannot be run"))?;
    if !status.success() {
        bail!("`{line}` failed ({status})");
    }
    Ok(())
}

/// Runs `command` like [`run`], but returns what it prints on its standard output.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let line = command_line(command);
    let command = command.current_dir(root()).stdin(Stdio::null()).stderr(Stdio::inherit());
    let output = command.output().with_context(|| format!("`{line}` cannot be run"))?;
    if !output.status.success() {
        bail!("`{line}` failed ({})", output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("`{line}` printed no text"))
}

/// Runs `command` like [`run`], and shows at once what it prints on its standard output. It returns
/// that output, and whether the command succeeded.
pub(crate) fn shown_and_kept(command: &mut Command) -> Result<(bool, String)> {
    let line = command_line(command);
    let command = command.current_dir(root()).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("`{line}` cannot be run"))?;
    let (mut kept, mut part) = (Vec::new(), [0; 8192]);
    if let Some(mut output) = child.stdout.take() {
        loop {
            let length = output.read(&mut part).with_context(|| format!("`{line}` cannot be read"))?;
            if length == 0 {
                break;
            }
            kept.extend_from_slice(&part[..length]);
            let mut stdout = std::io::stdout();
            stdout.write_all(&part[..length])?;
            stdout.flush()?;
        }
    }
    Ok((child.wait()?.success(), String::from_utf8_lossy(&kept).into_owned()))
}

/// Returns the command line as a person would type it, with the program's name without its folder.
fn command_line(command: &Command) -> String {
    let program = std::path::Path::new(command.get_program()).file_name().unwrap_or_default();
    let words = std::iter::once(program).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// Builds dbdyno in release, and returns its path.
pub(crate) fn built_dbdyno() -> Result<PathBuf> {
    run(&mut cargo(&["build", "--locked", "--release", "--package", "dbdyno", "--features", "full"]))?;
    Ok(target().join("release/dbdyno"))
}

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the root")
}

/// Returns `$XDG_CACHE_HOME/dbdyno`, otherwise `~/.cache/dbdyno`. It holds files that can be made
/// again, which would take a while.
pub(crate) fn cache() -> PathBuf {
    let folder = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = folder("XDG_CACHE_HOME").or_else(|| folder("HOME").map(|home| home.join(".cache")));
    cache.unwrap_or_else(|| root().join("target/cache")).join("dbdyno")
}

/// Returns the folder of Cargo's build output.
pub(crate) fn target() -> PathBuf {
    let named = env::var_os("CARGO_TARGET_DIR").filter(|value| !value.is_empty());
    root().join(named.map_or_else(|| PathBuf::from("target"), PathBuf::from))
}

/// Load average of a minute below which figures are measured.
const QUIET: f64 = 0.3;
/// Longest wait for a quiet machine. The load of a build is gone after about four minutes.
const LONGEST_WAIT: Duration = Duration::from_secs(600);

/// Waits until nothing else runs on the machine, and returns the load average of the last minute.
pub(crate) fn wait_until_quiet() -> Result<f64> {
    let begun = Instant::now();
    loop {
        let text = std::fs::read_to_string("/proc/loadavg").context("cannot read the load average")?;
        let load: f64 = text.split(' ').next().unwrap_or_default().parse().context("no load average")?;
        if load < QUIET {
            return Ok(load);
        }
        if begun.elapsed() > LONGEST_WAIT {
            bail!(
                "the load average of the last minute is still {load}, and figures are measured below {QUIET}: stop what else runs, and try again"
            );
        }
        std::thread::sleep(Duration::from_secs(5));
    }
}

/// Prints a result on the standard output.
#[expect(clippy::print_stdout, reason = "this is where the commands speak")]
pub(crate) fn out(text: &str) {
    println!("{text}");
}

/// Prints what a person should know meanwhile, on the standard error.
#[expect(clippy::print_stderr, reason = "this is where the commands speak")]
pub(crate) fn note(text: &str) {
    eprintln!("{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_names_the_command_line() {
        let error = run(Command::new("/bin/sh").args(["-c", "exit 3"])).unwrap_err();
        assert_eq!(error.to_string(), "`sh -c exit 3` failed (exit status: 3)");
        let error = output(&mut Command::new("/no/such-program")).unwrap_err();
        assert_eq!(error.to_string(), "`such-program` cannot be run");
    }

    /// Cargo sets these variables for tests too, so there is something to remove.
    #[test]
    fn an_inner_cargo_gets_no_variables_of_our_package() {
        let inner = cargo(&["--version"]);
        let removed: Vec<_> =
            inner.get_envs().filter(|(_, value)| value.is_none()).map(|(name, _)| name).collect();
        assert!(removed.contains(&std::ffi::OsStr::new("CARGO_MANIFEST_DIR")), "{removed:?}");
    }

    #[test]
    fn output_is_what_is_printed() {
        assert_eq!(output(Command::new("echo").arg("x")).unwrap(), "x\n");
    }
}
