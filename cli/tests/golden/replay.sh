#!/usr/bin/env bash
# Makes the sessions of exchange.txt with the release build, and replays each: the digest must be the golden one. The tests do
# the same with the debug build.
set -euo pipefail
cd "$(dirname "$0")/../../.."

cargo build --release --locked -q -p strandline-cli
strandline=${CARGO_TARGET_DIR:-target}/release/strandline
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

grep -v '^#' cli/tests/golden/exchange.txt | while read -r seed commands events sha256; do
  "$strandline" exchange run "$work/$seed" --in-turn --seed "$seed" --commands "$commands" >/dev/null
  found=$(TZ=Asia/Kathmandu LC_ALL=tr_TR.UTF-8 "$strandline" replay-check "$work/$seed" --json)
  wanted=$(printf '{"verdict":"same","commands":%s,"events":%s,"sha256":"%s"}' "$commands" "$events" "$sha256")
  if [ "$found" != "$wanted" ]; then
    printf 'seed %s\nfound  %s\nwanted %s\n' "$seed" "$found" "$wanted"
    exit 1
  fi
  printf 'seed %s: %s\n' "$seed" "$sha256"
done
