//! `cargo xtask dist` builds what users install: static binaries, Debian packages, archives, and
//! checksums.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use clap::{Parser, ValueEnum};

use crate::test;
use crate::workspace::{self, cargo, output, run};

/// Build what users install: for x86_64 and aarch64 a stripped static binary, its symbols and line
/// tables in a file of their own, a Debian package with manual pages and completions of bash, zsh
/// and fish, and an archive of the same; and checksums of all.
///
/// aarch64 is built with a cross compiler. What is missing for that is named before anything is
/// built. cargo-deb, which makes the package, is built when it is missing.
#[derive(Debug, Parser)]
pub(crate) struct DistArgs {
    /// Only this architecture.
    #[arg(long, value_name = "ARCH")]
    arch: Option<Arch>,
    /// Folder for the files.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Also install the x86_64 package in a clean Debian root, and run it there. Needs root and
    /// debootstrap.
    #[arg(long)]
    check: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Arch {
    #[value(name = "x86_64")]
    X86_64,
    #[value(name = "aarch64")]
    Aarch64,
}

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Highest number of bytes in a binary.
const MOST_BYTES: u64 = 25_000_000;

pub(crate) fn go(args: &DistArgs) -> Result<()> {
    let out = args.out.clone().unwrap_or_else(|| workspace::target().join("dist-files"));
    let out = std::path::absolute(out)?;
    let chosen = args.arch.map_or_else(|| Arch::value_variants().to_vec(), |arch| vec![arch]);
    let missing: Vec<String> = chosen.iter().flat_map(|arch| arch.missing()).collect();
    if !missing.is_empty() {
        bail!("missing for this build:\n  {}", missing.join("\n  "));
    }
    fs::create_dir_all(&out)?;
    let cargo_deb = test::cargo_deb()?;
    // The binary for this machine prints the manual pages for all.
    let native = Arch::X86_64.build()?;
    let mut files = Vec::new();
    for arch in chosen {
        let binary = arch.build()?;
        let bytes = fs::metadata(&binary)?.len();
        if bytes > MOST_BYTES {
            bail!("{} has {bytes} bytes, more than {MOST_BYTES}", binary.display());
        }
        texts(&native, &arch.folder().join("texts"))?;
        files.extend(arch.files(&cargo_deb, &binary, &out)?);
        workspace::note(&format!("{}: {:.1} MB", arch.name(), bytes as f64 / 1e6));
    }
    let sums =
        output(Command::new("sh").args(["-c", "cd \"$0\" && sha256sum \"$@\""]).arg(&out).args(&files))?;
    fs::write(out.join("SHA256SUMS"), sums)?;
    for file in &files {
        workspace::note(&out.join(file).display().to_string());
    }
    if !args.check {
        return Ok(());
    }
    let script = workspace::root().join("packaging/clean-root.sh");
    let root = workspace::cache().join("clean-root");
    run(Command::new("bash").arg(script).arg(out.join(Arch::X86_64.deb())).arg(root))
}

/// Writes manual pages and completions, as `binary` prints them, into the folder where the assets
/// of the Debian package are (crates/cli/Cargo.toml).
fn texts(binary: &Path, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    let write = |name: String, words: &[&str]| {
        let path = folder.join(name);
        let text = output(Command::new(binary).args(words))?;
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
    };
    write("dbdyno.1".to_owned(), &["man"])?;
    for command in commands(&output(Command::new(binary).arg("--help"))?) {
        write(format!("dbdyno-{command}.1"), &["man", &command])?;
    }
    for shell in ["bash", "zsh", "fish"] {
        write(format!("dbdyno.{shell}"), &["completions", shell])?;
    }
    run(Command::new("sh").args(["-c", "gzip --force --best --no-name \"$0\"/*.1"]).arg(folder))
}

/// Returns the names below `Commands:`.
fn commands(help: &str) -> Vec<String> {
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let names = lines.take_while(|line| !line.is_empty()).filter_map(|line| {
        let rest = line.strip_prefix("  ").filter(|rest| !rest.starts_with(' '))?;
        Some(rest.split(' ').next()?.to_owned())
    });
    names.filter(|name| name != "help").collect()
}

impl Arch {
    fn name(self) -> &'static str {
        if self == Self::X86_64 { "x86_64" } else { "aarch64" }
    }

    fn triple(self) -> String {
        format!("{}-unknown-linux-gnu", self.name())
    }

    /// Returns the name of a program, such as `gcc`, in the toolchain for this architecture.
    fn tool(self, name: &str) -> String {
        if self == Self::X86_64 { name.to_owned() } else { format!("aarch64-linux-gnu-{name}") }
    }

    fn deb(self) -> String {
        format!("dbdyno_{VERSION}_{}.deb", if self == Self::X86_64 { "amd64" } else { "arm64" })
    }

    /// Returns the folder of its build output.
    fn folder(self) -> PathBuf {
        workspace::target().join(self.triple()).join("dist")
    }

    /// Lists what is missing for the build, each with the command that gets it.
    fn missing(self) -> Vec<String> {
        let mut missing = Vec::new();
        // This is the rustc that cargo uses.
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let triple = self.triple();
        let folder = output(Command::new(rustc).args(["--print", "target-libdir", "--target", &triple]));
        if !folder.is_ok_and(|folder| Path::new(folder.trim()).is_dir()) {
            missing.push(format!("Rust's library for {triple}: rustup target add {triple}"));
        }
        let cross = if self == Self::X86_64 { ["", ""] } else { ["-aarch64-linux-gnu", "-arm64-cross"] };
        let packages = format!("gcc{} libc6-dev{}", cross[0], cross[1]);
        let tools = ["gcc", "objcopy"].map(|name| (self.tool(name), packages.as_str()));
        for (program, packages) in tools.into_iter().chain([("dpkg-deb".to_owned(), "dpkg")]) {
            if Command::new(&program).arg("--version").stdin(Stdio::null()).output().is_err() {
                missing.push(format!("{program}: apt-get install {packages}"));
            }
        }
        missing
    }

    /// Builds the static binary, and returns its path without symbols. The symbols are next to it,
    /// where gdb and perf find them by the name that is noted in the binary.
    fn build(self) -> Result<PathBuf> {
        let triple = self.triple();
        let mut command =
            cargo(&["build", "--locked", "--profile", "dist", "--package", "dbdyno", "--features", "full"]);
        let variable = triple.replace('-', "_");
        // The binary includes glibc, so it runs on any Linux, whatever libraries are installed. It
        // has a fixed address, so it needs no relocations.
        let flags = "-C target-feature=+crt-static -C relocation-model=static";
        command.env(format!("CARGO_TARGET_{}_RUSTFLAGS", variable.to_uppercase()), flags);
        command.env(format!("CARGO_TARGET_{}_LINKER", variable.to_uppercase()), self.tool("gcc"));
        command.env(format!("CC_{variable}"), self.tool("gcc"));
        run(command.args(["--target", &triple]))?;
        let folder = self.folder();
        let (whole, stripped) = (folder.join("dbdyno"), folder.join("dbdyno.stripped"));
        let symbols = folder.join(self.symbols());
        let keep = ["--only-keep-debug", "--compress-debug-sections"];
        run(Command::new(self.tool("objcopy")).args(keep).args([&whole, &symbols]))?;
        let link = format!("--add-gnu-debuglink={}", symbols.display());
        run(Command::new(self.tool("objcopy")).args(["--strip-all", &link]).args([&whole, &stripped]))?;
        Ok(stripped)
    }

    /// Returns the name of the file with symbols and line tables.
    fn symbols(self) -> String {
        format!("dbdyno-{VERSION}-{}.debug", self.name())
    }

    /// Makes the files for users in `out`, and returns their names: the program, its symbols, the
    /// Debian package, and an archive of the same files for other systems.
    fn files(self, cargo_deb: &Path, binary: &Path, out: &Path) -> Result<[String; 4]> {
        let (program, deb) = (format!("dbdyno-{VERSION}-{}", self.name()), self.deb());
        let archive = format!("{program}.tar.gz");
        fs::copy(binary, out.join(&program))?;
        fs::copy(self.folder().join(self.symbols()), out.join(self.symbols()))?;
        let options = ["--no-build", "--no-strip", "--package", "dbdyno", "--profile", "dist", "--target"];
        run(Command::new(cargo_deb).args(options).arg(self.triple()).arg("--output").arg(out.join(&deb)))?;
        let line = "cd \"$0\" && dpkg-deb --fsys-tarfile \"$1\" | gzip -n > \"$2\"";
        run(Command::new("sh").args(["-c", line]).arg(out).args([&deb, &archive]))?;
        Ok([program, self.symbols(), deb, archive])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read_from_the_help() {
        let help = "Usage: x\n\nCommands:\n  run           Run a plan\n  known-answer  Serve\n                tools\n  help          Print\n\nOptions:\n  -q";
        assert_eq!(commands(help), ["run", "known-answer"]);
    }
}
