// The page: what follows the stream, what looks at the rest now and then, and the controls of both.

import { json, request } from './api.js';
import { byId, setText } from './dom.js';
import { EventList } from './events.js';
import { JournalStrip } from './journal.js';
import * as publish from './publish.js';
import { Rates } from './rates.js';
import { EventStream } from './stream.js';
import * as subscriptions from './subscriptions.js';

const LOOK_MS = 2_000;
const STATES = {
  connecting: 'Connecting',
  listening: 'Listening',
  waiting: 'Not connected',
  paused: 'Paused',
  ended: 'Ended',
  refused: 'Refused',
};

const events = new EventList();
const strip = new JournalStrip();
const rates = new Rates();
const stream = new EventStream((message) => events.add(message), showState);

function showState(state, detail) {
  byId('status').dataset.state = state;
  const after = state === 'paused' && stream.after !== null ? `after ${stream.after}` : '';
  setText(byId('status'), [STATES[state], detail || after].filter((part) => part !== '').join(': '));
  setText(byId('pause'), stream.isRunning ? 'Pause' : 'Resume');
}

// The controls of the stream.

const form = byId('wanted');
const lines = (text) => text.split('\n').map((line) => line.trim()).filter((line) => line !== '');

/** The filter as the server takes it. */
function filter() {
  const wanted = new URLSearchParams();
  for (const type of lines(form.elements.type.value)) wanted.append('type', type);
  for (const source of lines(form.elements.source.value)) wanted.append('source', source);
  for (const domain of form.elements.domain.value.split(/[\s,]+/)) if (domain !== '') wanted.append('domain', domain);
  return wanted;
}

/** What gives the event before the first one that is wanted, of a journal. */
function before() {
  switch (form.elements.begin.value) {
    case 'start':
      return ({ first }) => Math.max(first - 1, 0);
    case 'sequence': {
      const sequence = BigInt(form.elements.sequence.value || 1);
      return () => (sequence > 0n ? sequence - 1n : 0n);
    }
    default:
      return ({ next }) => next - 1;
  }
}

function begin() {
  events.clear();
  stream.start(filter(), before());
}

function showBegin() {
  const isSequence = form.elements.begin.value === 'sequence';
  byId('sequence-field').hidden = !isSequence;
  form.elements.sequence.required = isSequence;
}

form.addEventListener('change', showBegin);
form.addEventListener('submit', (event) => {
  event.preventDefault();
  begin();
});
byId('pause').addEventListener('click', () => (stream.isRunning ? stream.pause() : stream.resume()));

// The rest is looked at now and then.

async function metrics() {
  try {
    const response = await request('metrics', { timeoutMs: 10_000 });
    return await response.text();
  } catch {
    return null; // the page does without
  }
}

async function look() {
  try {
    const [journal, listeners, text] = await Promise.all([json('v1/journal'), json('v1/subscriptions'), metrics()]);
    strip.show(journal, listeners.subscriptions);
    subscriptions.show(listeners.subscriptions);
    rates.show(journal, text);
    setText(byId('look-problem'), '');
  } catch (error) {
    setText(byId('look-problem'), `What is below may be old: ${error.message}`);
  }
}

async function keepLooking() {
  for (;;) {
    if (!document.hidden) await look();
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
}

publish.listen();
subscriptions.listen(look);
showBegin();
begin();
keepLooking();
