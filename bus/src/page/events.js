// The list of events, newest on top, with what the stream says beside them.

import { byId, count, element, plural, setText } from './dom.js';
import { indented, members, string } from './json.js';

const ROWS_MAX = 200;
const CHARACTERS_MAX = 16 << 20; // of all rows: an event can have 16 MiB
const SHOWN_MAX = 256 << 10; // of one event's data

const REASONS = {
  too_many: 'more were missed than a replay delivers',
  expired: 'they are no longer kept',
  beyond_the_end: 'the journal ends before what was seen: it was emptied, or restored from a copy',
};

export class EventList {
  #list = byId('events');
  #waiting = []; // newest last; at most what the list can hold, since a hidden page draws nothing
  #characters = 0;
  #seen = 0;
  #frame = null;

  add(message) {
    const at = new Date();
    this.#waiting.push({ message, at });
    if (this.#waiting.length > ROWS_MAX) this.#waiting.shift();
    if (message.id !== null) this.#seen += 1;
    this.#frame ??= requestAnimationFrame(() => this.#draw());
  }

  clear() {
    this.#waiting = [];
    this.#characters = 0;
    this.#seen = 0;
    this.#list.replaceChildren();
    this.#drawCount();
  }

  #draw() {
    this.#frame = null;
    const rows = this.#waiting.map(({ message, at }) => row(message, at));
    for (const { message } of this.#waiting) this.#characters += message.data.length;
    this.#waiting = [];
    this.#list.prepend(...rows.reverse());
    this.#drop();
    this.#drawCount();
  }

  /** Drops the oldest rows that are too many, but never the newest. */
  #drop() {
    const list = this.#list;
    const isTooLong = () => list.childElementCount > ROWS_MAX || this.#characters > CHARACTERS_MAX;
    while (list.childElementCount > 1 && isTooLong()) {
      this.#characters -= Number(list.lastElementChild.dataset.characters);
      list.lastElementChild.remove();
    }
  }

  #drawCount() {
    const shown = this.#list.querySelectorAll('.event').length;
    byId('no-events').hidden = this.#list.childElementCount > 0;
    setText(byId('event-count'), this.#seen === 0 ? '' : `${count(shown)} of ${plural(this.#seen, 'event')} seen`);
  }
}

function row(message, at) {
  // An event that calls itself a notice has a number, which no notice has.
  const made = message.id === null ? noticeRow(message, at) : eventRow(message, at);
  made.dataset.characters = message.data.length;
  return made;
}

function eventRow(message, at) {
  const event = members(message.data);
  const made = element('li', 'event');
  const details = element('details');
  const summary = element('summary');
  summary.append(
    element('span', 'seq', message.id),
    time(string(event.get('time')), at),
    element('span', 'type', string(event.get('type')) ?? message.type),
    element('span', 'source', string(event.get('source')) ?? ''),
    element('span', 'preview', preview(event)),
  );
  details.append(summary);
  // Only what is opened is laid out.
  details.addEventListener('toggle', () => {
    if (details.open && details.childElementCount === 1) details.append(...content(message.data, event));
  });
  made.append(details);
  return made;
}

function preview(event) {
  const data = event.get('data');
  if (data !== undefined) return data.slice(0, 160).replace(/\s+/g, ' ');
  const bytes = string(event.get('data_base64'));
  if (bytes === null) return 'no data';
  const padding = bytes.endsWith('==') ? 2 : Number(bytes.endsWith('='));
  return plural((bytes.length / 4) * 3 - padding, 'byte of data', 'bytes of data');
}

function content(text, event) {
  const data = event.get('data') ?? event.get('data_base64');
  const list = element('dl', 'attributes');
  for (const [name, value] of event) {
    if (name !== 'data' && name !== 'data_base64') {
      list.append(element('dt', '', name), element('dd', '', (string(value) ?? value).slice(0, 4096)));
    }
  }
  // What is no JSON object is shown as it came.
  const shown = event.size === 0 ? text : data === undefined ? '' : indented(data.slice(0, SHOWN_MAX));
  const parts = [list];
  if (shown !== '') parts.unshift(element('pre', 'data', shown.slice(0, SHOWN_MAX * 2)));
  const left = (data ?? text).length - SHOWN_MAX;
  if (left > 0) parts.push(element('p', 'hint', `${plural(left, 'more character')} not shown`));
  return parts;
}

/** The event's own time; where it has none, when it came. */
function time(own, at) {
  const parsed = own === null ? at : new Date(own);
  const isTime = !Number.isNaN(parsed.getTime());
  const made = element('time', own === null ? 'time arrived' : 'time', isTime ? clock(parsed) : '?');
  if (isTime) made.dateTime = parsed.toISOString();
  made.title = own ?? `came ${at.toISOString()}; it has no time of its own`;
  return made;
}

function clock(date) {
  const two = (number) => String(number).padStart(2, '0');
  const millis = String(date.getMilliseconds()).padStart(3, '0');
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}.${millis}`;
}

function noticeRow(message, at) {
  const made = element('li', 'notice');
  made.classList.toggle('gap', message.type === 'strandline.gap');
  const [title, text] = notice(message);
  made.append(element('strong', '', title), time(null, at), element('span', '', text));
  return made;
}

/** What a notice is called, and what it means. */
function notice({ type, data }) {
  switch (type) {
    case 'strandline.gap':
      return ['Gap', gap(JSON.parse(data))];
    case 'strandline.awaiting':
      return ['Awaiting', `nothing more until ${JSON.parse(data).sequence} is acknowledged`];
    case 'strandline.ended':
      return ['Ended', 'another connection has the subscription now, or it was removed'];
    case 'strandline.shutdown':
      return ['Shutdown', 'the server ends, or its journal stopped'];
    default:
      return [type, data];
  }
}

function gap({ from, to, count: wanted, reason, resume_after: resumeAfter }) {
  const which = to < from ? 'nothing is left to deliver' : `events ${count(from)} to ${count(to)} are not delivered`;
  const many = wanted === null ? '' : `, ${plural(wanted, 'event')} that match`;
  return `${which}${many}: ${REASONS[reason] ?? reason}. It goes on after ${count(resumeAfter)}.`;
}
