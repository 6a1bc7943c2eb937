// What happens each second, as small charts.

import { byId, setText } from './dom.js';
import { added, buckets, quantile, rate, samples, value } from './metrics.js';

const POINTS = 60;
const WIDTH = 240;
const HEIGHT = 48;

/** One line over the last looks; null is a gap in it. */
class Chart {
  #points = [];

  constructor(id, words) {
    this.path = byId(`${id}-line`);
    this.figure = byId(`${id}-figure`);
    this.words = words;
  }

  push(point) {
    this.#points = [...this.#points, point].slice(-POINTS);
    const most = Math.max(...this.#points.map((point) => point ?? 0));
    this.path.setAttribute('d', line(this.#points, most));
    setText(this.figure, this.words(point, most));
  }
}

function line(points, most) {
  const step = WIDTH / (POINTS - 1);
  const start = WIDTH - (points.length - 1) * step;
  let pen = 'M';
  let path = '';
  points.forEach((point, at) => {
    if (point === null) {
      pen = 'M';
      return;
    }
    const y = HEIGHT - 2 - (most > 0 ? (point / most) * (HEIGHT - 4) : 0);
    const x = start + at * step;
    // A point without neighbours is a short stroke.
    path += pen === 'M' ? `M${(x - 1).toFixed(1)} ${y.toFixed(1)}h1` : `L${x.toFixed(1)} ${y.toFixed(1)}`;
    pen = 'L';
  });
  return path;
}

const perSecond = (number) => (number >= 100 ? Math.round(number).toLocaleString('en') : number.toFixed(1));
const rateWords = (now, most) => (now === null ? '–' : `${perSecond(now)}/s, at most ${perSecond(most)}/s`);

function duration(seconds) {
  const ms = seconds * 1_000;
  return ms < 1 ? `${Math.round(ms * 1_000)} µs` : `${ms < 100 ? ms.toFixed(1) : Math.round(ms)} ms`;
}

function syncWords(now, most) {
  const words = now === null ? 'no syncs' : `99 % within ${duration(now)}`;
  return most > 0 ? `${words}, at most ${duration(most)}` : words;
}

export class Rates {
  #published = new Chart('published', rateWords);
  #delivered = new Chart('delivered', rateWords);
  #sync = new Chart('sync', syncWords);
  #before = null;

  /** Takes a look. `metrics` is the server's text, or null if there is none. */
  show(journal, metrics) {
    const all = metrics === null ? [] : samples(metrics);
    const now = {
      at: performance.now(),
      // Also what is published in the server's process, and not by a request.
      published: journal.next,
      delivered: value(all, 'strandline_events_delivered_total'),
      syncs: buckets(all, 'strandline_sync_seconds'),
    };
    byId('delivered').hidden = now.delivered === null;
    byId('sync').hidden = now.syncs.length === 0;
    if (this.#before !== null) this.#push(this.#before, now);
    this.#before = now;
  }

  #push(before, now) {
    const seconds = (now.at - before.at) / 1_000;
    this.#published.push(rate(before.published, now.published, seconds));
    this.#delivered.push(rate(before.delivered, now.delivered, seconds));
    const counts = added(before.syncs, now.syncs);
    this.#sync.push(counts === null ? null : quantile(counts, 0.99));
  }
}
