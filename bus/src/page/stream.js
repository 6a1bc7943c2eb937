// Following the stream of events. EventSource cannot show a token, so the page reads the stream itself.

import { Refused, json, request } from './api.js';
import { SseParser } from './sse.js';

const WAIT_MS_MAX = 30_000;
const SILENCE_MS_MAX = 45_000; // three of the server's heartbeats

/**
 * A stream that comes again where it was. Calls `onMessage` for each message, and `onState` with one of
 * `connecting`, `listening`, `waiting`, `paused`, `ended`, `refused`, and a detail.
 */
export class EventStream {
  #onMessage;
  #onState;
  #filter = new URLSearchParams();
  #begin = null;
  #after = null; // the last event that was seen, as the server wrote it; null before it has begun
  #retryMs = 1_000;
  #run = null;

  constructor(onMessage, onState) {
    this.#onMessage = onMessage;
    this.#onState = onState;
  }

  /** The last event that was seen; null before it has begun. */
  get after() {
    return this.#after;
  }

  get isRunning() {
    return this.#run !== null;
  }

  /** Begins anew: what matches the filter, after the event that `begin` makes of the journal as it is then. */
  start(filter, begin) {
    this.#filter = filter;
    this.#begin = begin;
    this.#after = null;
    this.resume();
  }

  /** Goes on after the last event that was seen. */
  resume() {
    this.#run?.abort();
    this.#run = new AbortController();
    this.#follow(this.#run.signal);
  }

  pause() {
    this.#stop('paused', '');
  }

  #stop(state, detail) {
    this.#run?.abort();
    this.#run = null;
    this.#onState(state, detail);
  }

  async #follow(signal) {
    let waitMs = 0;
    while (!signal.aborted) {
      this.#onState('connecting', '');
      let why = 'the connection ended';
      try {
        await this.#read(signal, () => (waitMs = 0));
      } catch (error) {
        if (signal.aborted) return;
        if (error instanceof Refused && !error.isTransient) {
          this.#stop('refused', error.message);
          return;
        }
        why = error.message;
      }
      if (signal.aborted) return;
      waitMs = waitMs === 0 ? this.#retryMs : Math.min(waitMs * 2, WAIT_MS_MAX);
      this.#onState('waiting', `${why}; trying again in ${Math.round(waitMs / 1_000)} s`);
      await wait(waitMs * (0.75 + Math.random() / 4), signal);
    }
  }

  /** One connection, to its end. */
  async #read(outer, onBytes) {
    // What is published between this answer and the stream's beginning is not missed, nor if the first connection breaks.
    const last = this.#after ?? String(this.#begin(await json('v1/journal')));
    outer.throwIfAborted();
    this.#after = last;
    const connection = new AbortController();
    const signal = AbortSignal.any([outer, connection.signal]);
    const headers = { Accept: 'text/event-stream', 'Last-Event-ID': last };
    const response = await request(`v1/events?${this.#filter}`, { headers, signal });
    this.#onState('listening', '');
    const parser = new SseParser();
    const reader = response.body.getReader();
    for (;;) {
      const silence = setTimeout(() => connection.abort(new Error('the server fell silent')), SILENCE_MS_MAX);
      const { done, value } = await reader.read().finally(() => clearTimeout(silence));
      if (done) return;
      onBytes();
      for (const message of parser.push(value)) {
        if (outer.aborted) return;
        this.#take(message);
      }
      this.#retryMs = Math.min(parser.retry ?? this.#retryMs, WAIT_MS_MAX);
    }
  }

  #take(message) {
    if (message.id !== null) this.#after = message.id;
    if (message.type === 'strandline.live') return; // where it begins, and nothing to show
    const notice = message.id === null ? message.type : null;
    // A gap that was told is not told again.
    if (notice === 'strandline.gap') this.#after = String(JSON.parse(message.data).resume_after);
    this.#onMessage(message);
    if (notice === 'strandline.ended') this.#stop('ended', 'another connection has it, or it was removed');
  }
}

function wait(ms, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => resolve(clearTimeout(timer)), { once: true });
  });
}
