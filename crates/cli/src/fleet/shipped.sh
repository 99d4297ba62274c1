# On a machine that lacks files of the run: keeps archives by the hash of their content, runs the task of a block with them, and
# hands its records back on standard output.
#
# Arguments: block, name of the task, option for templates or nothing, hashes. The first archive is dbdyno, the second the files
# that the plan names, the others are servers.
set -eu
fail() {
    echo "error: $1" >&2
    exit 1
}
of_user=$(umask)
umask 077
block=$1 name=$2 templates=$3
shift 3
# Variables are those of the sending host, whose home need not be here.
cache=
for folder in "${XDG_CACHE_HOME-}" "${HOME:+$HOME/.cache}" "/var/tmp/dbdyno-$(id -u)"; do
    if [ -n "$folder" ] && mkdir -p "$folder/dbdyno/fleet/tasks" 2>/dev/null && [ -O "$folder" ]; then
        cache=$folder/dbdyno/fleet
        break
    fi
done
[ -n "$cache" ] || fail "no folder of this user for files: neither ~/.cache nor /var/tmp/dbdyno-$(id -u) can be one"
exec 8>"$cache/tasks.lock"
flock 8
# Tasks hold a lock in their folder. What is not locked was left by one that was killed.
for left in "$cache"/tasks/*/; do
    if [ -d "$left" ] && flock --nonblock "$left/lock" true; then rm -rf "$left"; fi
done
find "$cache" -mindepth 1 -maxdepth 1 ! -name 'tasks*' -mtime +30 -exec rm -rf {} +
task=$(mktemp -d -p "$cache/tasks")
exec 9>"$task/lock"
flock 9
trap 'rm -rf "$task"' EXIT
lacks=lacks
for hash; do
    if [ -d "$cache/$hash" ]; then touch "$cache/$hash"; else lacks="$lacks $hash"; fi
done
exec 8>&-
echo "$lacks"
hash=
while read -r hash bytes && [ "$hash" != run ]; do
    head -c "$bytes" >"$task/archive"
    echo "$hash  $task/archive" | sha256sum --check --quiet >&2 || fail "files have changed on their way, or before: $hash"
    mkdir "$task/files"
    tar -x -f "$task/archive" -C "$task/files" || fail "files cannot be kept in $cache"
    rm "$task/archive"
    touch "$task/files"
    # A machine that fails has all of an archive or none.
    sync -f "$task/files"
    # Another task of this machine may have been first.
    mv -T "$task/files" "$cache/$hash" 2>/dev/null || [ -d "$cache/$hash" ] || fail "files cannot be kept in $cache"
    rm -rf "$task/files"
done
[ "$hash" = run ] || fail "the connection to dbdyno was lost"
mkdir "$task/run" "$task/servers" "$task/out"
head -c "$bytes" | tar -x -C "$task/run"
program=$(echo "$cache/$1"/*) files=$cache/$2
shift 2
for hash; do ln -s "$cache/$hash"/* "$task/servers"; done
umask "$of_user"
status=0
DBDYNO_SERVERS=$task/servers "$program" task ${templates:+"$templates"} --files="$files" "$task/run" "$block" "$task/out" "$name" \
    </dev/null >&2 &
trap 'kill -TERM $!' TERM INT
while kill -0 $! 2>/dev/null; do
    status=0
    wait $! || status=$?
done
if [ -d "$task/out/$name" ]; then
    # The last member says that none lacks.
    touch "$task/out/end"
    tar -c -C "$task/out" --exclude "$name/data" "$name" end
fi
exit $status
