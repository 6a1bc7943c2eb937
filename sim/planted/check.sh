#!/usr/bin/env bash
# Whether every planted bug still applies to the workspace, and is listed. Quick: nothing is built.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(git -C "$here" rev-parse --show-toplevel)
cd "$root"
failed=0
for patch in "$here"/*.patch; do
    name=$(basename "$patch" .patch)
    if ! git apply --check "$patch"; then
        echo "$name does not apply any more: mend sim/planted/$name.patch" >&2
        failed=1
    fi
    if ! grep -q "^$name	" "$here/planted.tsv"; then
        echo "$name is not listed in sim/planted/planted.tsv" >&2
        failed=1
    fi
done
while IFS=$'\t' read -r name _; do
    case $name in '#'* | '') continue ;; esac
    if [ ! -f "$here/$name.patch" ]; then
        echo "sim/planted/planted.tsv lists $name, which has no patch" >&2
        failed=1
    fi
done <"$here/planted.tsv"
exit $failed
