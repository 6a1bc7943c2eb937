#!/usr/bin/env bash
# curl.sh ADDRESS GUARDED_ADDRESS TOKEN SMALL_ADDRESS: what curl publishes, follows and is refused. The second server asks for the token;
# the third has room for one connection.
set -euo pipefail
address=$1 guarded=$2 token=$3 small=$4
events=$address/v1/events
work=$(mktemp -d)
listener=
trap 'kill $listener 2>/dev/null || true; rm -rf "$work"' EXIT
checks=0

same() { # WHAT FOUND WANTED
  checks=$((checks + 1))
  [ "$2" = "$3" ] && return
  printf 'curl: %s\nfound  %s\nwanted %s\n' "$1" "$2" "$3"
  exit 1
}

# answers WANTED CURL_ARGUMENT...: the status, and the body.
answers() {
  local wanted=$1
  shift
  same "$*" "$(curl -sS --max-time 20 -w ' %{http_code}' "$@")" "$wanted"
}

# refuses STATUS WORDS CURL_ARGUMENT...: a problem that says something like this.
refuses() {
  local status=$1 words=$2
  shift 2
  local found
  found=$(curl -sS --max-time 20 -o "$work/answer" -w '%{http_code} %{content_type}' "$@")
  same "$*" "$found" "$status application/problem+json"
  grep -qF "\"status\":$status," "$work/answer" && grep -qF -- "$words" "$work/answer" && return
  printf 'curl: %s\nfound  %s\nwanted %s in it\n' "$*" "$(cat "$work/answer")" "$words"
  exit 1
}

# listen CURL_ARGUMENT...: opens a stream; `frames COUNT` reads of it, `hang_up` closes it.
listen() {
  exec 3< <(exec curl -sSN --max-time 20 "$@")
  listener=$!
}
frames() {
  local left=$1 line
  while [ "$left" -gt 0 ] && IFS= read -r line <&3; do
    printf '%s\n' "$line"
    [ -n "$line" ] || left=$((left - 1))
  done
}
hang_up() {
  kill "$listener" 2>/dev/null || true
  wait "$listener" || true
  exec 3<&-
}

structured='Content-Type: application/cloudevents+json'
batched='Content-Type: application/cloudevents-batch+json'
plain='Content-Type: application/json'
binary=(-H 'ce-specversion: 1.0' -H 'ce-source: /shop' -H 'ce-type: order.paid')
first='{"specversion":"1.0","id":"1","source":"/shop","type":"order.placed","data":{"price":1.50}}'
second='{"specversion":"1.0","id":"2","source":"/shop","type":"order.placed","data_base64":"AP8="}'
third='{"specversion":"1.0","id":"3","source":"/shop","type":"order.placed"}'

# Published, in each way.
answers '{"sequence":1} 201' "$events" -H "$structured" -d "$first"
answers '{"sequence":1} 200' "$events" -H "$structured; charset=utf-8" -d "$first"
answers '{"sequences":[1,2,3]} 201' "$events" -H "$batched" -d "[$first,$second,$third]"
answers '{"sequence":4} 201' "$events" "${binary[@]}" -H 'ce-id: 4' -H 'ce-subject: "100%25"' -H 'Content-Type: text/plain' -d 'paid'
answers '{"sequence":5} 201' "$events?type=note&source=%2Fdesk" -H "$plain" -d '[1, 2.50]'

# Followed, from where the client says.
listen "$events" -H 'Last-Event-ID: 1'
wanted="retry: 1000

id: 2
event: order.placed
data: $second

id: 3
event: order.placed
data: $third

id: 4
event: order.paid
data: {\"specversion\":\"1.0\",\"source\":\"/shop\",\"type\":\"order.paid\",\"id\":\"4\",\"subject\":\"100%\",\"datacontenttype\":\"text/plain\",\"data\":\"paid\"}

id: 5
event: note"
same 'a stream' "$(frames 4; for _ in 1 2; do read -r line <&3; echo "$line"; done)" "$wanted"
IFS= read -r line <&3
same 'plain JSON' "${line//\"time\":\"*Z\",/}" 'data: {"specversion":"1.0","id":"5","source":"/desk","type":"note","datacontenttype":"application/json","data":[1, 2.50]}'
hang_up
listen "$events?last_sequence=0" -H 'Last-Event-ID: 4'
same 'the header goes before the query' "$(frames 2 | grep '^id')" 'id: 5'
hang_up
listen "$events?last_sequence=0&type=order.placed"
same 'a filter' "$(frames 4 | grep '^id' | tr '\n' ' ')" 'id: 1 id: 2 id: 3 '
hang_up
listen "$events"
frames 1 >/dev/null
same 'where a live stream begins' "$(frames 1)" 'id: 5
event: strandline.live
data: {"last_sequence":5}'
answers '{"sequence":6} 201' "$events" "${binary[@]}" -H 'ce-id: 6' -H 'Content-Type:' -d ''
same 'a live stream' "$(frames 1)" 'id: 6
event: order.paid
data: {"specversion":"1.0","source":"/shop","type":"order.paid","id":"6"}'
hang_up

# A durable subscription.
listen "$events?subscription=billing&last_sequence=3"
same 'a durable subscription' "$(frames 5 | tail -n 3)" 'event: strandline.awaiting
data: {"sequence":6}'
answers ' 204' "$address/v1/subscriptions/billing/ack" -d '{"sequence":5}'
refuses 409 'up to 6' "$address/v1/subscriptions/billing/ack" -d '{"sequence":7}'
answers ' 204' "$address/v1/subscriptions/billing" -X DELETE
same 'its end' "$(frames 1)" 'event: strandline.ended
data: {"reason":"taken_over_or_removed"}'
hang_up
refuses 404 billing "$address/v1/subscriptions/billing" -X DELETE

# Refused, each in its way.
refuses 400 'not what JSON allows' "$events" -H "$structured" -d '{"specversion":"1.0"'
refuses 400 'no CloudEvent' "$events" -H "$structured" -d '{}'
refuses 400 'no CloudEvent' "$events" -H "$structured" -d '{"specversion":"0.3","id":"1","source":"s","type":"t"}'
refuses 400 'RFC 3339' "$events" -H "$structured" -d '{"specversion":"1.0","id":"9","source":"s","type":"t","time":"2026-11-30T12:00:00+01:00[Europe/Berlin]"}'
refuses 400 'event 1 of the batch' "$events" -H "$batched" -d "[{\"specversion\":\"1.0\",\"id\":\"9\",\"source\":\"s\",\"type\":\"t\"},7]"
refuses 400 'percent-encoded' "$events" "${binary[@]}" -H 'ce-id: 50%' -d ''
refuses 400 'as the body' "$events" "${binary[@]}" -H 'ce-id: 9' -H 'ce-data: 1' -d ''
refuses 400 '`source` is missing' "$events?type=note" -H "$plain" -d 1
refuses 400 'no sequence number' "$events" -H 'Last-Event-ID: six'
refuses 400 'no parameter `from`' "$events?from=1"
refuses 401 token "$guarded/v1/events?last_sequence=0"
refuses 401 token "$guarded/v1/events" -H "$structured" -d "$first" -H 'Authorization: Bearer 0123456789abcdee'
answers '{"sequence":1} 201' "$guarded/v1/events" -H "$structured" -d "$first" -H "Authorization: Bearer $token"
refuses 403 'another origin' "$events" -H 'Origin: http://shop.example' -H "$structured" -d "$first"
refuses 404 /v1/event "$address/v1/event"
refuses 405 PUT "$events" -X PUT -d "$first"
refuses 415 'events are not taken as' "$events" -d "$first"
refuses 421 localhost "$events" -H 'Host: shop.example'
head -c 18000000 /dev/zero >"$work/long"
# With a length, without one, and without asking first.
refuses 413 17825792 "$events" -H "$structured" --data-binary "@$work/long"
refuses 413 17825792 "$events" -H "$structured" -H 'Transfer-Encoding: chunked' --data-binary "@$work/long"
refuses 413 17825792 "$events" -H "$structured" -H 'Expect:' --data-binary "@$work/long"
for _ in {1..200}; do echo 'X: y'; done >"$work/headers"
answers ' 431' "$events" -H "@$work/headers"
listen "$small/v1/events"
frames 1 >/dev/null
refuses 503 'too many connections' "$small/healthz"
hang_up

# Nothing that was refused is there, and an event of 4 MiB goes in and out.
{ printf '{"specversion":"1.0","id":"long","source":"/shop","type":"t","data":"'; head -c 4194304 /dev/zero | tr '\0' x; printf '"}'; } >"$work/event"
answers '{"sequence":7} 201' "$events" -H "$structured" --data-binary "@$work/event"
listen "$events" -H 'Last-Event-ID: 6'
frames 2 | sed -n 's/^data: //p' | tr -d '\n' >"$work/found"
hang_up
cmp "$work/event" "$work/found"
printf 'curl: %s checks\n' "$checks"
