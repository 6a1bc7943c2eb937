// The form that publishes an event.

import { Refused, request } from './api.js';
import { byId, count } from './dom.js';

const form = byId('publish');
const outcome = byId('publish-outcome');

/** The event as JSON; the data stays as it was written, with all its digits. */
function cloudEvent(id, data) {
  const attributes = {
    specversion: '1.0',
    id,
    source: form.elements.source.value,
    type: form.elements.type.value,
    time: new Date().toISOString(),
  };
  if (data === '') return JSON.stringify(attributes);
  const head = JSON.stringify({ ...attributes, datacontenttype: 'application/json' });
  return `${head.slice(0, -1)},"data":${data}}`;
}

function newId() {
  // `randomUUID` is only there where the page came over TLS or from this machine.
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** What is wrong with the data; empty if nothing is. */
function problemOf(data) {
  if (data === '') return '';
  try {
    JSON.parse(data);
    return '';
  } catch (error) {
    return `The data is no JSON: ${error.message}`;
  }
}

function say(text, isProblem) {
  outcome.textContent = text;
  outcome.classList.toggle('problem', isProblem);
}

async function publish(id, data) {
  const headers = { 'Content-Type': 'application/cloudevents+json' };
  const response = await request('v1/events', { method: 'POST', headers, body: cloudEvent(id, data) });
  const { sequence } = await response.json();
  const words = response.status === 201 ? 'Published as' : 'It was published before, as';
  say(`${words} ${count(sequence)}.`, false);
}

async function submit(event) {
  event.preventDefault();
  const { data, id } = form.elements;
  const text = data.value.trim();
  const problem = problemOf(text);
  data.setAttribute('aria-invalid', String(problem !== ''));
  if (problem !== '') {
    say(problem, true);
    data.focus();
    return;
  }
  const button = byId('publish-button');
  if (button.getAttribute('aria-disabled') === 'true') return;
  button.setAttribute('aria-disabled', 'true'); // and not `disabled`, which would lose the focus
  say('Publishing …', false);
  const chosen = id.value || newId();
  try {
    await publish(chosen, text);
    if (id.dataset.made === chosen) id.value = '';
  } catch (error) {
    const isKnown = error instanceof Refused && !error.isTransient;
    // Whether it was published is not known: sent again with the same id it is not published twice.
    if (!isKnown) id.dataset.made = id.value = chosen;
    say(isKnown ? error.message : `${error.message}. Its id is kept: publish again, and it is there once.`, true);
  } finally {
    button.setAttribute('aria-disabled', 'false');
  }
}

export function listen() {
  form.addEventListener('submit', submit);
}
