#!/usr/bin/env bash
# The real disk, at length: what is too long, or needs too much, for the ordinary tests.
#
#   tests/deep/run.sh           all of it
#   tests/deep/run.sh kills     1,000 kills of a real writer (KILLS, KILLS_SEED)
#   tests/deep/run.sh sessions  200 kills of a session of the exchange, each gone on with (KILLS, KILLS_SEED)
#   tests/deep/run.sh server    100 kills of a server under load (KILLS)
#   tests/deep/run.sh hostile   a server under attack, with 100,000 connects (CONNECTS)
#   tests/deep/run.sh full      file systems of a few mebibytes that are really full; needs root and mount
#   tests/deep/run.sh replay    the replay check of ten million events (REPLAY_EVENTS); needs 2.5 GB of disk
set -euo pipefail
cd "$(dirname "$0")/../.."

tests() {
    cargo test --quiet --release --locked -p strandline-tests --test it -- --nocapture "$@"
}

kills() {
    STRANDLINE_KILLS=${KILLS:-1000} STRANDLINE_KILLS_SEED=${KILLS_SEED:-1} \
        tests real_disk::kills::a_killed_writer_loses_nothing_acknowledged
}

sessions() {
    STRANDLINE_KILLS=${KILLS:-200} STRANDLINE_KILLS_SEED=${KILLS_SEED:-1} \
        cargo test --quiet --release --locked -p strandline-cli --test it -- \
        exchange::a_session_that_is_killed_again_and_again_goes_on_as_if_it_had_not_been
}

server() {
    STRANDLINE_KILLS=${KILLS:-100} \
        cargo test --quiet --release --locked -p strandline-cli --test it -- \
        http::every_event_that_was_answered_reaches_every_durable_subscriber_in_order
}

hostile() {
    STRANDLINE_CONNECTS=${CONNECTS:-100000} \
        cargo test --quiet --release --locked -p strandline-cli --test it -- \
        hostile::a_server_under_attack_stays_small_and_serves_others
}

mounted=''
work=''
clean() {
    [ -z "$mounted" ] || umount "$mounted"
    [ -z "$work" ] || rm -rf "$work"
}
trap clean EXIT

# Mounts a small file system with these options of mount, and fills it.
on_small() {
    local name=$1
    shift
    mkdir -p "$work/mount"
    if ! mount "$@" "$work/mount"; then
        printf 'SKIPPED %s: it cannot be mounted here\n' "$name"
        return
    fi
    mounted=$work/mount
    printf '== %s\n' "$name"
    STRANDLINE_SMALL_DISK=$mounted tests --ignored --exact \
        real_disk::full_disk::a_file_system_that_is_full_is_no_end
    umount "$mounted"
    mounted=''
}

full() {
    if [ "$(id -u)" -ne 0 ]; then
        echo 'SKIPPED small file systems: only root may mount them'
        return
    fi
    work=$(mktemp -d)
    on_small tmpfs -t tmpfs -o size=4m none
    if command -v mkfs.ext4 >/dev/null; then
        truncate -s 8M "$work/image"
        mkfs.ext4 -q -b 1024 "$work/image"
        on_small ext4 -o loop "$work/image"
    else
        echo 'SKIPPED ext4: there is no mkfs.ext4 here'
    fi
}

replay() {
    STRANDLINE_REPLAY_EVENTS=${REPLAY_EVENTS:-10000000} tests --ignored --exact \
        long_session::a_check_of_ten_million_events_takes_no_more_memory_than_one_of_a_million
}

case ${1:-all} in
    kills) kills ;;
    sessions) sessions ;;
    server) server ;;
    hostile) hostile ;;
    full) full ;;
    replay) replay ;;
    all)
        kills
        sessions
        server
        hostile
        full
        replay
        ;;
    *)
        sed -n 's/^# \{0,1\}//p' "$0" >&2
        exit 2
        ;;
esac
