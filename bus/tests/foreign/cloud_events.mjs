// cloud_events.mjs ADDRESS: what the CloudEvents library for node publishes comes back equal, attribute by attribute.
import assert from 'node:assert/strict'
import {CloudEvent, HTTP} from 'cloudevents'
import {EventSource} from 'eventsource'

const events = `${process.argv[2]}/v1/events`
const everyByte = Uint8Array.from({length: 256}, (_, byte) => byte)

async function publish({headers, body}, status) {
  const answer = await fetch(events, {method: 'POST', headers, body})
  const document = await answer.json()
  assert.equal(answer.status, status, JSON.stringify(document))
  return document
}

function event(id, rest) {
  return new CloudEvent({id: `${id}`, source: '/node', type: 'com.example.test', time: '2026-11-30T12:00:00.123Z', ...rest})
}

const data = {price: 1.5, text: 'hä 🌊\n\u2028', none: null, list: [[], {}, false]}
const full = {subject: 'order/1', dataschema: 'https://example.com/schema#1', comexampleext1: 'value'}
const json = {...full, datacontenttype: 'application/json', data}
const bytes = {...full, datacontenttype: 'application/octet-stream', data: everyByte}
const sent = [
  event(1, json),
  event(2, {...json, subject: 'Straße "1" 100 % €', number: 7, flag: true}),
  event(3, bytes),
  event(4, {...full, datacontenttype: 'text/plain', data: 'hä\r\nline\n'}),
  event(5, {...full, datacontenttype: undefined, data: undefined}),
  event(6, json),
  event(7, bytes),
  event(8, {...full, datacontenttype: 'text/plain; charset=utf-8', data: 'hä\r\nline\n'}),
  event(9, {...json, datacontenttype: 'application/vnd.example+json'}),
  event(10, json),
  event(11, {...full, data}),
]
for (const [at, one] of sent.slice(0, 9).entries()) {
  const message = at < 5 ? HTTP.structured(one) : HTTP.binary(one)
  assert.deepEqual(await publish(message, 201), {sequence: at + 1})
}
assert.deepEqual(await publish(HTTP.structured(sent[0]), 200), {sequence: 1})
const batch = {headers: {'content-type': 'application/cloudevents-batch+json'}, body: `[${sent.slice(9).join(',')}]`}
assert.deepEqual(await publish(batch, 201), {sequences: [10, 11]})
// The library does not percent-encode what it puts into headers; what cannot be read is refused, and not guessed.
const refused = await publish(HTTP.binary(event(12, {...json, subject: 'é 100 %'})), 400)
assert.match(refused.detail, /ce-subject/)

const found = await new Promise((resolve, reject) => {
  const source = new EventSource(`${events}?last_sequence=0`)
  const all = []
  source.addEventListener('error', reject)
  source.addEventListener('com.example.test', message => {
    all.push(message)
    if (all.length < sent.length) return
    source.close()
    resolve(all)
  })
})
const attributes = ({id, source, type, specversion, time, subject, dataschema, datacontenttype, comexampleext1, number, flag}) =>
  ({id, source, type, specversion, time, subject, dataschema, datacontenttype, comexampleext1, number, flag})
const plain = value => (ArrayBuffer.isView(value) ? {bytes: Array.from(value)} : value)
for (const [at, message] of found.entries()) {
  assert.equal(message.lastEventId, `${at + 1}`)
  const parsed = HTTP.toEvent({headers: {'content-type': 'application/cloudevents+json'}, body: message.data})
  assert.ok(parsed.validate())
  const wanted = attributes(sent[at])
  // Its binary mode says so where the event does not.
  if (at >= 5 && at < 9) wanted.datacontenttype ??= 'application/json'
  assert.deepEqual(attributes(parsed), wanted)
  assert.deepEqual(plain(parsed.data), plain(sent[at].data))
}
console.log(`node, cloudevents: ${found.length} events came back as they were`)
