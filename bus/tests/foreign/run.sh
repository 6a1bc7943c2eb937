#!/usr/bin/env bash
# Talks to servers as clients do that know nothing of this project: curl, and the libraries for CloudEvents and EventSource of
# Python and node. They are installed in a temporary directory. What cannot be had is skipped, and a line says so.
#
# run.sh [STRANDLINE_BINARY]     without one, the release build
set -euo pipefail
strandline=${1:+$(realpath "$1")}
cd "$(dirname "$0")/../../.."
here=bus/tests/foreign
if [ -z "$strandline" ]; then
  cargo build --release --locked -q -p strandline-cli
  strandline=$(realpath "${CARGO_TARGET_DIR:-target}/release/strandline")
fi

work=$(mktemp -d)
servers=()
stop_servers() {
  for pid in "${servers[@]}"; do kill "$pid" 2>/dev/null || true; done
  for pid in "${servers[@]}"; do wait "$pid" || echo "a server ended with status $?"; done
  servers=()
}
clean_up() {
  local status=$?
  stop_servers >/dev/null
  [ "$status" = 0 ] || cat "$work/servers.txt" 2>/dev/null || true
  rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 1' INT TERM

# serve DIRECTORY [FLAG...]: starts a server, and sets `address`.
serve() {
  local directory=$1
  shift
  mkfifo "$work/told"
  "$strandline" serve "$work/$directory" --listen 127.0.0.1:0 "$@" >"$work/told" 2>>"$work/servers.txt" &
  servers+=($!)
  read -r _ _ address <"$work/told" || { echo "$strandline did not start to serve"; exit 1; }
  rm "$work/told"
}

skip() { printf '%s: skipped, %s\n' "$1" "$2"; }

run_curl() {
  command -v curl >/dev/null || { skip curl 'it is not installed'; return; }
  printf '0123456789abcdef\n' >"$work/token"
  serve guarded --token-file "$work/token"
  local guarded=$address
  serve small --max-connections 1
  local small=$address
  serve curl
  timeout --foreground 60 bash "$here/curl.sh" "$address" "$guarded" "$(cat "$work/token")" "$small"
}

run_python() {
  command -v python3 >/dev/null || { skip Python 'it is not installed'; return; }
  if ! { python3 -m venv "$work/python" && timeout 30 "$work/python/bin/pip" install -q --no-cache-dir --retries 0 \
    --timeout 10 --disable-pip-version-check cloudevents==2.2.0; } >"$work/installed.txt" 2>&1; then
    skip Python "cloudevents 2.2.0 cannot be installed: $(grep -m 1 -i error "$work/installed.txt" || echo 'it takes too long')"
    return
  fi
  serve python
  timeout --foreground 60 "$work/python/bin/python" -B "$here/cloud_events.py" "$address"
}

run_node() {
  if ! command -v node >/dev/null || ! command -v npm >/dev/null; then
    skip node 'node or npm is not installed'
    return
  fi
  local version
  version=$(node -p 'process.versions.node')
  if [ "${version%%.*}" -lt 20 ]; then
    skip node "eventsource 4.1.1 needs node 20, this is $version"
    return
  fi
  mkdir "$work/node"
  if ! timeout 30 npm install --prefix "$work/node" --cache "$work/npm" --ignore-scripts --no-audit --no-fund \
    --no-update-notifier --fetch-retries 0 --fetch-timeout 10000 eventsource@4.1.1 cloudevents@10.0.0 \
    >"$work/installed.txt" 2>&1; then
    skip node "eventsource 4.1.1 and cloudevents 10.0.0 cannot be installed: $(grep -m 1 -i error "$work/installed.txt" || echo 'it takes too long')"
    return
  fi
  # Modules are looked for beside the script.
  cp "$here"/*.mjs "$work/node"
  serve node
  timeout --foreground 60 node "$work/node/cloud_events.mjs" "$address"
  timeout --foreground 60 node "$work/node/event_source.mjs" "$strandline" "$work/followed"
}

run_curl
run_python
run_node
stop_servers >"$work/ended.txt"
! grep . "$work/ended.txt"
