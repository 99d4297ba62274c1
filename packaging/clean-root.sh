# bash clean-root.sh PACKAGE ROOT: installs the Debian package in a Debian with nothing in it, which
# debootstrap makes in ROOT once, and runs it there. `cargo xtask dist --check` calls it, as root.
set -euo pipefail
package=$1 root=$2

if [ "$(id -u)" != 0 ]; then echo "a clean root takes root to enter; run it as root" >&2; exit 1; fi
if ! [ -e "$root/usr/bin/dpkg" ]; then
    if ! command -v debootstrap >/dev/null; then echo "apt-get install debootstrap" >&2; exit 1; fi
    # The machine's own mirror and release.
    read -r mirror release < <(apt-get indextargets --format '$(REPO_URI) $(CODENAME)' 'Created-By: Packages' |
        grep --invert-match security | cat) || { echo "apt names no mirror; run apt-get update" >&2; exit 1; }
    rm -rf "$root.unfinished"
    mkdir -p "$root.unfinished"
    debootstrap --variant=minbase "$release" "$root.unfinished" "$mirror"
    mv "$root.unfinished" "$root"
fi

in_root() { env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/opt LANG=C.UTF-8 chroot "$root" "$@"; }

cp "$package" "$root/tmp/dbdyno.deb"
rm -rf "$root/opt/runs"
mountpoint --quiet "$root/proc" || mount -t proc proc "$root/proc"
trap 'in_root dpkg --purge dbdyno; umount "$root/proc"' EXIT
in_root dpkg --install /tmp/dbdyno.deb
# Shells read their completions, and a reader of manual pages its page; then the quickstart, for a
# short while, and its report.
in_root bash -euc "
dbdyno --version
bash -n /usr/share/bash-completion/completions/dbdyno
test -s /usr/share/zsh/vendor-completions/_dbdyno && test -s /usr/share/fish/vendor_completions.d/dbdyno.fish
gzip -dc /usr/share/man/man1/dbdyno-run.1.gz | grep -q '^.TH dbdyno-run'
cd /opt
dbdyno run --set workload.insert-benchmark.load_rows=2000 --set workload.insert-benchmark.write_rows=500 \
    --set workload.insert-benchmark.read_write_time=1s --set workload.insert-benchmark.settle_wait=0s
dbdyno report latest --format md --output report.md
grep -q qr100 report.md
echo '127.0.0.1 localhost' > /etc/hosts
dbdyno run --address mysql://root@localhost:1/x --workload oltp 2>&1 | grep 'Connection refused'
dbdyno servers list | grep -q mysql-8
"
