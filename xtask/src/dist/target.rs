//! An architecture: what its build needs, and the build.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::Result;

use crate::command::{cargo, output, run};
use crate::places;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) arch: &'static str,
    /// Debian's name.
    pub(super) debian: &'static str,
    triple: &'static str,
    /// Programs that compile C and link, and that take a binary apart, and the Debian packages that
    /// bring them.
    compiler: &'static str,
    objcopy: &'static str,
    packages: &'static str,
}

pub(super) const X86_64: Target = Target {
    arch: "x86_64",
    debian: "amd64",
    triple: "x86_64-unknown-linux-gnu",
    compiler: "gcc",
    objcopy: "objcopy",
    packages: "gcc libc6-dev",
};

const AARCH64: Target = Target {
    arch: "aarch64",
    debian: "arm64",
    triple: "aarch64-unknown-linux-gnu",
    compiler: "aarch64-linux-gnu-gcc",
    objcopy: "aarch64-linux-gnu-objcopy",
    packages: "gcc-aarch64-linux-gnu libc6-dev-arm64-cross",
};

pub(super) const ALL: [Target; 2] = [X86_64, AARCH64];

impl Target {
    /// What must be had before it can be built, each with the command that gets it.
    pub(super) fn missing(&self) -> Vec<String> {
        let mut missing = Vec::new();
        // The one that cargo uses.
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let folder = output(Command::new(rustc).args(["--print", "target-libdir", "--target", self.triple]));
        if !folder.is_ok_and(|folder| PathBuf::from(folder.trim()).is_dir()) {
            missing.push(format!("Rust's library for {}: rustup target add {0}", self.triple));
        }
        for (program, packages) in
            [(self.compiler, self.packages), (self.objcopy, self.packages), ("dpkg-deb", "dpkg")]
        {
            let there = Command::new(program).arg("--version").stdin(Stdio::null()).output().is_ok();
            if !there {
                missing.push(format!("{program}: apt-get install {packages}"));
            }
        }
        missing
    }

    /// Builds the static binary, and says where it lies without symbols, and where they do: gdb and
    /// perf find them next to it by the name that it has of them.
    pub(super) fn build(&self) -> Result<[PathBuf; 2]> {
        let mut command = cargo(&[
            "build",
            "--locked",
            "--package",
            "dbdyno",
            "--profile",
            "dist",
            "--target",
            self.triple,
        ]);
        let of_target = self.triple.to_uppercase().replace('-', "_");
        // glibc within the binary: it runs on any Linux, whatever libraries that has. At a fixed
        // address it needs no relocations.
        let flags = "-C target-feature=+crt-static -C relocation-model=static";
        command.env(format!("CARGO_TARGET_{of_target}_RUSTFLAGS"), flags);
        command.env(format!("CARGO_TARGET_{of_target}_LINKER"), self.compiler);
        command.env(format!("CC_{}", self.triple.replace('-', "_")), self.compiler);
        run(&mut command)?;
        let whole = places::target().join(self.triple).join("dist/dbdyno");
        let symbols = whole.with_file_name(self.symbols_name());
        let stripped = whole.with_extension("stripped");
        let keep = ["--only-keep-debug", "--compress-debug-sections"];
        run(Command::new(self.objcopy).args(keep).args([&whole, &symbols]))?;
        let link = format!("--add-gnu-debuglink={}", symbols.display());
        run(Command::new(self.objcopy).args(["--strip-all", &link]).args([&whole, &stripped]))?;
        Ok([stripped, symbols])
    }

    /// Name of the file of symbols and line tables.
    pub(super) fn symbols_name(&self) -> String {
        format!("dbdyno-{}-{}.debug", env!("CARGO_PKG_VERSION"), self.arch)
    }
}
