#!/usr/bin/env bash
# Changes the core one operator, one condition, one function at a time, and looks whether one of its own tests notices.
#
#   core/mutants.sh [FILE...]     the files under test (default: those of .cargo/mutants.toml)
#
# Needs cargo-mutants (`cargo install cargo-mutants`). Takes an hour on one core. The result is summed up, and every
# survivor explained, in docs/proof.md. Exits with 1 if a survivor is not listed in core/mutants.survivors.
set -euo pipefail
cd "$(dirname "$0")/.."

out=${MUTANTS_OUT:-$(mktemp -d)}
files=()
for file in "$@"; do files+=(--file "$file"); done
cargo mutants --package strandline-core --test-package strandline-core --no-shuffle --colors never \
    --output "$out" "${files[@]}" || true

# A place moves with every edit; what was changed in which function does not.
name() { sed -E 's/:[0-9]+:[0-9]+: /: /' "$@" | sort -u; }
survivors=$(name "$out/mutants.out/missed.txt")
unknown=$(comm -23 <(printf '%s\n' "$survivors" | sed '/^$/d') <(sed '/^#/d; /^$/d' core/mutants.survivors | sort -u))
if [ -n "$unknown" ]; then
    printf '\nsurvivors that nobody has explained:\n%s\n' "$unknown"
    exit 1
fi
printf '\nevery survivor is explained in docs/proof.md\n'
