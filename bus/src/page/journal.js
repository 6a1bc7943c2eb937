// The journal as a strip of segments, oldest first.

import { byId, count, element, plural, reconcile, setText, size } from './dom.js';

const BLOCKS_MAX = 120; // of more segments, neighbours share a block
const EXPIRED_MAX = 12;

export class JournalStrip {
  #expired = []; // segments that went while the page was open, oldest first
  #before = [];

  /** Shows a journal, and what the subscriptions pin of it. */
  show(journal, subscriptions) {
    const { segments } = journal;
    this.#noteExpired(journal);
    const pins = subscriptions.map((subscription) => subscription.pins).filter((pin) => pin !== null);
    const pin = pins.length === 0 ? Infinity : Math.min(...pins);
    const kept = segments.map((segment) => ({ ...segment, state: segment.end > pin ? 'pinned' : 'retained' }));
    const gone = this.#expired.map((segment) => ({ ...segment, state: 'expired' }));
    const blocks = [...gone, ...grouped(kept)];
    reconcile(byId('strip'), blocks, key, () => element('span'), drawBlock);
    reconcile(byId('segment-list'), blocks, key, () => element('li'), (item, block) => setText(item, words(block)));
    const events = journal.next - journal.first;
    setText(byId('first'), events === 0 ? '–' : count(journal.first));
    setText(byId('next'), count(journal.next));
    setText(byId('kept'), plural(events, 'event'));
    setText(byId('bytes'), `${size(journal.bytes)} in ${plural(segments.length, 'segment')}`);
    setText(byId('pinned'), pin === Infinity ? 'nothing' : `from ${count(pin)} on`);
    const why = journal.stopped;
    byId('stopped').hidden = why === null;
    setText(byId('stopped'), why === null ? '' : `The journal has stopped: ${why}`);
  }

  #noteExpired({ segments, next }) {
    const first = segments[0]?.first ?? next;
    const isGone = (segment) => segment.first < first; // by where it begins: the last one still grows
    this.#expired = [...this.#expired, ...this.#before].filter(isGone).slice(-EXPIRED_MAX);
    this.#before = segments;
  }
}

const key = (block) => block.first;

/** Neighbours in one state as one block, where there are too many. */
function grouped(segments) {
  const each = Math.ceil(segments.length / BLOCKS_MAX);
  const blocks = [];
  for (const segment of segments) {
    const last = blocks.at(-1);
    if (last !== undefined && last.segments < each && last.state === segment.state) {
      last.end = segment.end;
      last.bytes += segment.bytes;
      last.segments += 1;
    } else {
      blocks.push({ ...segment, segments: 1 });
    }
  }
  return blocks;
}

function drawBlock(block, described) {
  block.className = `block ${described.state}`;
  block.style.flexGrow = Math.max(described.bytes, 1);
  block.title = words(described);
}

function words({ first, end, bytes, state, segments = 1 }) {
  const range = end - 1 === first ? `event ${count(first)}` : `events ${count(first)} to ${count(end - 1)}`;
  const events = end > first ? range : 'no events yet';
  const many = segments > 1 ? `, ${plural(segments, 'segment')}` : '';
  return `${events}, ${size(bytes)}${many}, ${state}`;
}
