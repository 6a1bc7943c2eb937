#!/usr/bin/env bash
# The threads of the journal, of the event bus and of sessions under the model checker shuttle: thousands of interleavings
# of each scenario in io/src/thread_tests, on a disk in memory that fails, fills up and panics.
#
#   io/threads.sh [TEST...]     all of them, or those whose names begin so: failures, session::closing, ...
#
# STRANDLINE_THREADS_SEED (24301) takes other interleavings; STRANDLINE_THREADS_TIMES (1) takes more of them.
# It builds in a directory of its own, target/threads, since the locks are not those of any other build.
set -euo pipefail
cd "$(dirname "$0")/.."

export CARGO_TARGET_DIR=${THREADS_TARGET_DIR:-target/threads}
export RUSTFLAGS="--cfg strandline_shuttle ${RUSTFLAGS:-}"
tests=("$@")
[ $# -gt 0 ] || tests=("")
exec cargo test --quiet --locked -p strandline --lib -- "${tests[@]/#/thread_tests::}" --nocapture
