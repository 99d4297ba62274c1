#!/bin/sh
# Runs compare.toml and writes comment.md and junit.xml. Ends with status 1 if `patched` is slower than `base`.
set -eu
dbdyno --quiet run compare.toml
dbdyno compare latest:base :patched --format md --output comment.md --fail-on never
dbdyno compare latest:base :patched --format junit --output junit.xml --fail-on never
dbdyno compare latest:base :patched --gate rate,p99
