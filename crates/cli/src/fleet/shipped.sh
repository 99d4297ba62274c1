# On a machine that does not see the run's folder: keeps archives by the hash of their content, runs the task of a block with
# them, and hands its records back on standard output.
#
# Arguments: block, name of the task, option for templates or nothing, hashes. The first archive is dbdyno, the second the files
# that the plan names, the others are servers.
set -eu
umask 077
block=$1 name=$2 templates=$3
shift 3
cache=${XDG_CACHE_HOME:-$HOME/.cache}/dbdyno/fleet
mkdir -p "$cache/tasks"
find "$cache" -mindepth 1 -maxdepth 1 ! -name tasks -mtime +30 -exec rm -rf {} +
lacks=lacks
for hash; do
    if [ -d "$cache/$hash" ]; then touch "$cache/$hash"; else lacks="$lacks $hash"; fi
done
echo "$lacks"
while read -r hash bytes && [ "$hash" != run ]; do
    part=$(mktemp -d -p "$cache")
    head -c "$bytes" >"$part/archive"
    echo "$hash  $part/archive" | sha256sum --check --quiet >&2
    mkdir "$part/files"
    tar -x -f "$part/archive" -C "$part/files"
    touch "$part/files"
    # Another task of this machine may have been first.
    mv -T "$part/files" "$cache/$hash" 2>/dev/null || [ -d "$cache/$hash" ]
    rm -rf "$part"
done
# Tasks hold a lock on their folder. What is not locked was left by one that was killed.
exec 8>"$cache/tasks.lock"
flock 8
for left in "$cache"/tasks/*/; do
    if [ -d "$left" ] && flock --nonblock "$left" true; then rm -rf "$left"; fi
done
task=$(mktemp -d -p "$cache/tasks")
exec 9<"$task"
flock 9
exec 8>&-
trap 'rm -rf "$task"' EXIT
mkdir "$task/run" "$task/servers" "$task/out"
head -c "$bytes" | tar -x -C "$task/run"
program=$(echo "$cache/$1"/*) files=$cache/$2
shift 2
for hash; do ln -s "$cache/$hash"/* "$task/servers"; done
status=0
DBDYNO_SERVERS=$task/servers "$program" task ${templates:+"$templates"} --files="$files" "$task/run" "$block" "$task/out" "$name" \
    </dev/null >&2 &
trap 'kill -TERM $!' TERM INT
while kill -0 $! 2>/dev/null; do
    status=0
    wait $! || status=$?
done
if [ -d "$task/out/$name" ]; then tar -c -C "$task/out" --exclude "$name/data" "$name"; fi
exit $status
