// Who listens, and what is kept for them.

import { request } from './api.js';
import { byId, count, element, plural, reconcile, setText, size } from './dom.js';

const dialog = byId('remove');
let doomed = null; // the name that is asked about

/** Shows the subscriptions. */
export function show(subscriptions) {
  reconcile(byId('subscriptions'), subscriptions, ({ id }) => id, make, update);
  byId('no-subscriptions').hidden = subscriptions.length > 0;
}

function make({ name }) {
  const row = element('tr');
  const head = element('th');
  head.scope = 'row';
  row.append(head, ...['state', 'number', 'number', 'number', ''].map((classes) => element('td', classes)));
  if (name === null) return row;
  const button = element('button', 'quiet', '×');
  button.type = 'button';
  button.title = 'Remove';
  button.setAttribute('aria-label', `Remove ${name}`);
  button.addEventListener('click', () => ask(name));
  row.lastElementChild.append(button);
  return row;
}

function update(row, { name, state, since, pointer, lag_events: lag, lag_bytes: bytes, pins, filter }) {
  const [head, stateCell, pointerCell, lagCell, pinsCell] = row.children;
  setText(head, name ?? 'unnamed');
  head.classList.toggle('unnamed', name === null);
  head.title = wants(filter);
  setText(stateCell, state.toLowerCase());
  stateCell.dataset.state = state;
  stateCell.title = since === null ? '' : `since ${since}`;
  setText(pointerCell, count(pointer));
  setText(lagCell, count(lag));
  lagCell.title = `${plural(lag, 'event')}, ${size(bytes)}`;
  setText(pinsCell, pins === null ? '–' : count(pins));
}

function wants({ domains = [], sources = [], types = [] }) {
  const parts = [
    domains.length > 0 ? `domains ${domains.join(', ')}` : '',
    sources.length > 0 ? `sources ${sources.join(', ')}` : '',
    types.length > 0 ? `types ${types.join(', ')}` : '',
  ];
  return `wants ${parts.filter((part) => part !== '').join('; ') || 'everything'}`;
}

function ask(name) {
  doomed = name;
  byId('remove-name').textContent = name;
  setText(byId('remove-problem'), '');
  dialog.showModal();
}

/** Sees to the dialog; calls `onRemoved` when a subscription is gone. */
export function listen(onRemoved) {
  byId('remove-no').addEventListener('click', () => dialog.close());
  byId('remove-yes').addEventListener('click', async () => {
    try {
      await request(`v1/subscriptions/${encodeURIComponent(doomed)}`, { method: 'DELETE' });
    } catch (error) {
      setText(byId('remove-problem'), error.message);
      return;
    }
    dialog.close();
    // The button that had the focus goes with its row.
    byId('subscriptions-title').focus();
    onRemoved();
  });
}
