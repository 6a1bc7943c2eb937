#!/usr/bin/env bash
# Fuzzes: fuzz/run.sh [SECONDS] [TARGET...], every target for 60 seconds by default.
# What is found lies in fuzz/artifacts/<target>/; exits with 1 if anything is. With FOUND=folder, the inputs that reach
# something new are kept there, in a folder for each target.
set -uo pipefail
[[ -z "${FOUND:-}" ]] || FOUND=$(realpath -m "$FOUND")
cd "$(dirname "$0")"

seconds=60
if [[ "${1:-}" =~ ^[0-9]+$ ]]; then
    seconds=$1
    shift
fi
targets=("$@")
[[ ${#targets[@]} -gt 0 ]] || mapfile -t targets < <(basename -s .rs fuzz_targets/*.rs)

cargo +nightly fuzz build || exit 1
# A thousand openings in each run: the traces and the quarantine of the allocator would cost most of the time.
export ASAN_OPTIONS="quarantine_size_mb=8:malloc_context_size=2${ASAN_OPTIONS:+:$ASAN_OPTIONS}"
# A run leaves the corpus as it is.
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
found=${FOUND:-$scratch}

table=$(printf '%-15s %10s %8s %7s %7s %8s' target runs runs/s cov ft crashes)
status=0
for target in "${targets[@]}"; do
    log=$scratch/$target.log
    mkdir -p "$found/$target" "artifacts/$target"
    before=$(find "artifacts/$target" -type f | wc -l)
    # One allocation above 32 MiB, or more than 1 GiB in all, is a finding; so are 30 seconds on one input.
    cargo +nightly fuzz run "$target" "$found/$target" "corpus/$target" -- \
        -max_total_time="$seconds" -max_len=4096 -timeout=30 -malloc_limit_mb=32 -rss_limit_mb=1024 \
        -print_final_stats=1 >"$log" 2>&1
    ended=$?
    crashes=$(($(find "artifacts/$target" -type f | wc -l) - before))
    if [[ $ended -ne 0 || $crashes -ne 0 ]]; then
        status=1
        tail -n 60 "$log" >&2
    fi
    # The last line with numbers: "#1234 DONE cov: 1 ft: 2 corp: ...".
    read -r runs cov ft < <(sed -nE 's/^#([0-9]+).* cov: ([0-9]+) ft: ([0-9]+).*/\1 \2 \3/p' "$log" | tail -n 1)
    rate=$(sed -nE 's/^stat::average_exec_per_sec: *([0-9]+)/\1/p' "$log")
    table+=$(printf '\n%-15s %10s %8s %7s %7s %8s' "$target" "${runs:-0}" "${rate:--}" "${cov:--}" "${ft:--}" "$crashes")
    runs='' cov='' ft=''
done
echo "$table"
exit $status
