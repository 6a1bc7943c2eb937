#!/usr/bin/env bash
# Plants each bug of planted.tsv in a copy of the workspace, and looks whether the check that must catch it does.
#
#   sim/planted/run.sh [NAME...]      all bugs, or those named
#
# Prints a table; exits with 1 if a bug is not caught, or is caught by another check than the table names.
# SEEDS (300) bounds the smoke runs, FULL_SEEDS (40) the full runs that follow where smoke finds nothing, eight times as many over the
# network.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(git -C "$here" rev-parse --show-toplevel)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CARGO_TARGET_DIR=${PLANTED_TARGET_DIR:-$work/target}
# A patched copy is built once and run for seconds: whole-program optimisation does not pay.
export CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16

copy=$work/copy
mkdir "$copy"
# As changed now: in a target directory that an earlier run has left, cargo would take what that planted for built from this.
git -C "$root" ls-files -z | (cd "$root" && xargs -0 tar -c) | tar -x -m -C "$copy"

# Runs the explorer over a bounded number of seeds; sets caught_by and after.
explore() {
    local out=$work/out err=$work/err workload=${1:-} full=${FULL_SEEDS:-40}
    # A run over the network is one run, and not as many as it has steps.
    if [ "$workload" = --network ]; then full=$((full * 8)); fi
    for run in "smoke $workload --seeds 0..${SEEDS:-300} --smoke" "full $workload --seeds 0..$full"; do
        read -r kind arguments <<<"$run"
        # shellcheck disable=SC2086
        if ! timeout 900 "$CARGO_TARGET_DIR/release/strandline-sim" $arguments --no-shrink >"$out" 2>"$err"; then
            caught_by=$(sed -n 's/^violation of //p' "$out" | head -n 1)
            local seed crashes
            seed=$(sed -n 's/.*--seed \([0-9]*\).*/\1/p' "$out" | head -n 1)
            crashes=$(sed -n 's/^[0-9]* steps, \([0-9]*\) crashes.*/\1/p' "$err" | tail -n 1)
            after="$kind seed $seed${crashes:+, $crashes crashes before}"
            [ -n "$caught_by" ] || caught_by="(the run ended without a violation)"
            return
        fi
    done
}

# Runs one test of a package, which must fail; sets caught_by and after.
run_test() {
    local package=$1 name=$2 out=$work/out
    if timeout 600 cargo test --quiet --release --manifest-path "$copy/Cargo.toml" -p "$package" -- "$name" >"$out" 2>&1; then
        return
    fi
    if grep -q "^test result: FAILED\|test result: FAILED" "$out"; then
        caught_by=test
        after=$name
    else
        caught_by="(the tests do not build)"
        tail -n 20 "$out" >&2
    fi
}

# Runs scenarios of threads under the model checker, of which one must fail; sets caught_by and after.
run_threads() {
    local name=$1 out=$work/out
    if THREADS_TARGET_DIR=$CARGO_TARGET_DIR/threads timeout 900 bash "$copy/io/threads.sh" "$name" >"$out" 2>&1; then
        return
    fi
    # A deadlock, or an assertion: the first one that failed.
    if grep -q "^test result: FAILED\|panicked at\|^deadlock!" "$out"; then
        caught_by=threads
        after=$(sed -n "s/^thread '\(thread_tests::[^']*\)'.*/\1/p" "$out" | head -n 1)
    else
        caught_by="(the scenarios do not build)"
        tail -n 20 "$out" >&2
    fi
}

missed=0
printf '| %s | %s | %s | %s |\n' bug 'caught by' after seconds
printf '|---|---|---|---|\n'
while IFS=$'\t' read -r name catcher checks _; do
    case $name in '#'* | '') continue ;; esac
    if [ $# -gt 0 ] && [[ " $* " != *" $name "* ]]; then continue; fi
    started=$SECONDS
    caught_by='' after='-'
    (cd "$copy" && git apply "$here/$name.patch")
    if [[ $catcher =~ ^(sim|bus|session|network)$ ]]; then
        if cargo build --quiet --release --manifest-path "$copy/Cargo.toml" -p strandline-sim --features network 2>"$work/build"; then
            if [ "$catcher" = sim ]; then explore; else explore "--$catcher"; fi
        else
            caught_by="(does not build)"
            tail -n 20 "$work/build" >&2
        fi
    elif [[ $catcher == threads:* ]]; then
        run_threads "${catcher#threads:}"
    else
        IFS=: read -r _ package test <<<"$catcher"
        run_test "$package" "$test"
    fi
    (cd "$copy" && git apply --reverse "$here/$name.patch")
    case ",$checks," in
        *",$caught_by,"*) verdict=$caught_by ;;
        *)
            verdict="NOT CAUGHT as planned: ${caught_by:-nothing found}"
            missed=$((missed + 1))
            ;;
    esac
    printf '| `%s` | %s | %s | %s |\n' "$name" "$verdict" "$after" $((SECONDS - started))
done <"$here/planted.tsv"
[ "$missed" -eq 0 ]
