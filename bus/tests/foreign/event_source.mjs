// event_source.mjs STRANDLINE DIRECTORY: an EventSource goes on by itself where its connection was cut, without a repeat or a hole,
// and is told of a gap when it comes too late.
import assert from 'node:assert/strict'
import {spawn} from 'node:child_process'
import {once} from 'node:events'
import net from 'node:net'
import {createInterface} from 'node:readline'
import {EventSource} from 'eventsource'

const [strandline, directory] = process.argv.slice(2)
const children = new Set()
process.on('exit', () => children.forEach(child => child.kill()))
let awaited = 'a server'
process.on('SIGTERM', () => {
  console.log(`node, eventsource: in vain waited for ${awaited}`)
  process.exit(1)
})

async function serve(name, port = 0, ...flags) {
  const child = spawn(strandline, ['serve', `${directory}-${name}`, '--listen', `127.0.0.1:${port}`, ...flags], {stdio: ['ignore', 'pipe', 'inherit']})
  children.add(child)
  const [line] = await once(createInterface(child.stdout), 'line')
  const address = new URL(line.split(' ').at(-1))
  const end = async () => {
    child.kill()
    const [status] = await once(child, 'exit')
    children.delete(child)
    assert.equal(status, 0, 'the server ends well')
  }
  return {port: Number(address.port), events: `${address.origin}/v1/events`, origin: address.origin, end}
}

// Between client and server: each connection ends after so many bytes of the answer; none is let in while it is shut.
class Proxy {
  budgets = []
  isShut = false
  asked = []
  #sockets = new Set()
  #server

  static async to(port) {
    const proxy = new Proxy()
    proxy.#server = net.createServer(client => proxy.#connect(client, port))
    proxy.#server.listen(0, '127.0.0.1')
    await once(proxy.#server, 'listening')
    return proxy
  }

  get events() {
    return `http://127.0.0.1:${this.#server.address().port}/v1/events`
  }

  cut() {
    this.#sockets.forEach(socket => socket.destroy())
  }

  end() {
    this.#server.close()
    this.cut()
  }

  #connect(client, port) {
    client.on('error', () => {})
    if (this.isShut) {
      client.destroy()
      return
    }
    let left = this.budgets.shift() ?? Infinity
    const server = net.connect(port, '127.0.0.1')
    for (const [socket, other] of [[client, server], [server, client]]) {
      this.#sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => {
        this.#sockets.delete(socket)
        other.destroy()
      })
    }
    client.on('data', bytes => {
      this.asked.push(/^last-event-id: (.*)\r$/im.exec(bytes.toString())?.[1])
      server.write(bytes)
    })
    server.on('data', bytes => {
      const part = bytes.subarray(0, left)
      left -= part.length
      client.write(part, () => left > 0 || client.destroy())
    })
  }
}

// What an EventSource hears, in order.
class Heard {
  all = []
  #waiting

  constructor(url) {
    this.source = new EventSource(url)
    for (const type of ['open', 'error', 'order', 'strandline.live', 'strandline.gap', 'strandline.awaiting', 'strandline.shutdown', 'strandline.ended']) {
      this.source.addEventListener(type, message => {
        this.all.push(message)
        this.#waiting?.()
      })
    }
  }

  of(type) {
    return this.all.filter(message => message.type === type)
  }

  get ids() {
    return this.of('order').map(message => Number(message.lastEventId))
  }

  // Waits until so many of a type were heard; gives the last of them.
  async until(type, count) {
    while (this.of(type).length < count) {
      awaited = `${count} of ${type}; heard ${this.all.map(message => `${message.type} ${message.lastEventId ?? ''}`)}`
      await new Promise(resolve => (this.#waiting = resolve))
    }
    return this.of(type)[count - 1]
  }
}

let published = 0
async function publish(server, count, data = 'x') {
  const events = Array.from({length: count}, () => ({specversion: '1.0', id: `${++published}`, source: '/shop', type: 'order', data}))
  const headers = {'content-type': 'application/cloudevents-batch+json'}
  const answer = await fetch(server.events, {method: 'POST', headers, body: JSON.stringify(events)})
  assert.equal(answer.status, 201, await answer.clone().text())
  return (await answer.json()).sequences.at(-1)
}

const upTo = (first, last) => Array.from({length: last - first + 1}, (_, at) => first + at)

// Cut amid a line, amid events and in the head of the answer; then the server is another one at the same address.
async function goesOn() {
  let server = await serve('cut')
  const proxy = await Proxy.to(server.port)
  await publish(server, 50)
  proxy.budgets = [700, 60, 1_501]
  const heard = new Heard(`${proxy.events}?last_sequence=0`)
  await heard.until('order', 50)
  proxy.cut()
  await publish(server, 1)
  await heard.until('order', 51)
  assert.equal(proxy.asked.length, 5)
  assert.deepEqual(proxy.asked.slice(1, 3), Array(2).fill(proxy.asked[1]), 'the second was cut before an event')
  assert.ok(Number(proxy.asked[1]) > 0 && Number(proxy.asked[3]) > Number(proxy.asked[1]), `${proxy.asked}`)
  assert.equal(proxy.asked[4], '50')
  await server.end()
  await heard.until('strandline.shutdown', 1)
  server = await serve('cut', server.port)
  await publish(server, 2)
  await heard.until('order', 53)
  assert.deepEqual(heard.ids, upTo(1, 53))
  assert.deepEqual(heard.of('order').map(message => JSON.parse(message.data).id), upTo(1, 53).map(String))
  assert.equal(heard.of('strandline.gap').length, 0)
  heard.source.close()
  proxy.end()
  await server.end()
}

// More comes while it is away than a stream repeats.
async function isTold() {
  published = 0
  const server = await serve('late')
  const proxy = await Proxy.to(server.port)
  await publish(server, 3)
  const heard = new Heard(`${proxy.events}?last_sequence=0`)
  await heard.until('order', 3)
  proxy.isShut = true
  proxy.cut()
  await publish(server, 1_001)
  proxy.isShut = false
  const gap = await heard.until('strandline.gap', 1)
  const wanted = {from: 4, to: 1_004, count: 1_001, reason: 'too_many', resume_after: 1_004}
  assert.deepEqual([JSON.parse(gap.data), gap.lastEventId], [wanted, ''])
  await publish(server, 1)
  await heard.until('order', 4)
  proxy.cut()
  await publish(server, 1)
  await heard.until('order', 5)
  assert.deepEqual(heard.ids, [1, 2, 3, 1_005, 1_006])
  assert.equal(heard.of('strandline.gap').length, 1)
  heard.source.close()
  proxy.end()
  await server.end()
}

// What it wants is no longer kept.
async function isTooLate() {
  const server = await serve('small', 0, '--max-size', '1M')
  let last
  for (let round = 0; round < 40; round++) last = await publish(server, 1, 'x'.repeat(60_000))
  const heard = new Heard(`${server.events}?last_sequence=1`)
  const gap = JSON.parse((await heard.until('strandline.gap', 1)).data)
  assert.equal(gap.from, 2)
  await heard.until('order', last - gap.resume_after)
  assert.deepEqual(heard.ids, upTo(gap.resume_after + 1, last))
  heard.source.close()
  await server.end()
}

// Live, and cut before its first event: the stream said where it began.
async function beginsWhereItWas() {
  const server = await serve('live')
  await publish(server, 5)
  const proxy = await Proxy.to(server.port)
  const heard = new Heard(proxy.events)
  await heard.until('strandline.live', 1)
  proxy.cut()
  const missed = await publish(server, 1)
  await heard.until('order', 1)
  assert.deepEqual(heard.ids, [missed])
  heard.source.close()
  proxy.end()
  await server.end()
}

// A durable subscription: it goes on where it was cut, and another one behind what was acknowledged.
async function keepsItsPlace() {
  const server = await serve('durable')
  const proxy = await Proxy.to(server.port)
  await publish(server, 3)
  const first = new Heard(`${proxy.events}?subscription=a%20b&last_sequence=0`)
  await first.until('strandline.awaiting', 1)
  proxy.cut()
  await first.until('open', 2)
  await publish(server, 1)
  await first.until('order', 4)
  assert.deepEqual(first.ids, [1, 2, 3, 4])
  const body = JSON.stringify({sequence: 2})
  const answer = await fetch(`${server.origin}/v1/subscriptions/a%20b/ack`, {method: 'POST', body})
  assert.equal(answer.status, 204)
  const second = new Heard(`${server.events}?subscription=a%20b`)
  await first.until('strandline.ended', 1)
  // It would come again, and take the subscription back.
  first.source.close()
  await second.until('order', 2)
  assert.deepEqual(second.ids, [3, 4])
  second.source.close()
  proxy.end()
  await server.end()
}

for (const check of [goesOn, isTold, isTooLate, beginsWhereItWas, keepsItsPlace]) await check()
console.log('node, eventsource: nothing was repeated, and nothing missed unknowingly')
process.exit(0)
