#!/usr/bin/env bash
# Changes the core one operator, one condition, one function at a time, and looks whether one of its own tests notices.
#
#   core/mutants.sh [FILE...]     which of the files that .cargo/mutants.toml names (default: all)
#
# Needs cargo-mutants (`cargo install cargo-mutants`). Takes an hour on one core; CARGO_MUTANTS_JOBS=2 tests two at a
# time. The result is summed up, and every survivor explained, in docs/proof.md. Exits with 1 if a survivor is not
# listed in core/mutants.survivors, and with what cargo-mutants says if it came to no result. MUTANTS_OUT is a
# directory for its logs, which are thrown away otherwise.
set -euo pipefail
cd "$(dirname "$0")/.."

out=${MUTANTS_OUT:-}
if [ -z "$out" ]; then
    out=$(mktemp -d)
    trap 'rm -rf "$out"' EXIT
fi
files=()
# Not --file, which would add to the files that the configuration names.
for file in "$@"; do files+=(--re "^${file//./\\.}:"); done
result=0
cargo mutants --package strandline-core --test-package strandline-core --no-shuffle --colors never \
    --output "$out" "${files[@]}" || result=$?
# 2: some were missed; 3: some ran for ever, which a test that hangs notices. Anything else is no result.
case $result in
    0 | 2 | 3) ;;
    *) exit "$result" ;;
esac

# A place moves with every edit; what was changed in which function does not. Two of the same name are two.
name() { sed -E '/^#/d; /^$/d; s/:[0-9]+:[0-9]+: /: /' "$1" | sort; }
for kind in caught timeout unviable missed; do
    printf '%-9s %s\n' "$kind" "$(wc -l <"$out/mutants.out/$kind.txt")"
done
unknown=$(comm -23 <(name "$out/mutants.out/missed.txt") <(name core/mutants.survivors))
if [ -n "$unknown" ]; then
    printf '\nsurvivors that nobody has explained:\n%s\n' "$unknown"
    exit 1
fi
if [ $# -eq 0 ]; then
    gone=$(comm -13 <(name "$out/mutants.out/missed.txt") <(name core/mutants.survivors))
    [ -z "$gone" ] || printf '\nexplained, and noticed by now:\n%s\n' "$gone"
fi
printf '\nevery survivor is explained in docs/proof.md\n'
