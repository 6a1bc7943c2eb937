// What the page makes of the server's metrics. Pure.

const SAMPLE = /^([a-z_]+)(?:\{(.*)\})? (\S+)/i;

/** The samples of a text in the format of Prometheus: a list of `{ name, labels, value }`, the labels as they were written. */
export function samples(text) {
  const found = [];
  for (const line of text.split('\n')) {
    const parts = line.startsWith('#') ? null : SAMPLE.exec(line);
    if (parts !== null) found.push({ name: parts[1], labels: parts[2] ?? '', value: Number(parts[3]) });
  }
  return found;
}

/** The value of a counter or gauge without labels; null if there is none. */
export function value(all, name) {
  return all.find((sample) => sample.name === name && sample.labels === '')?.value ?? null;
}

/** The buckets of a histogram, `{ le, count }`, counted up to each bound. Empty if there is none. */
export function buckets(all, name) {
  const found = [];
  for (const sample of all) {
    const bound = sample.name === `${name}_bucket` ? /le="([^"]*)"/.exec(sample.labels) : null;
    if (bound !== null) found.push({ le: bound[1] === '+Inf' ? Infinity : Number(bound[1]), count: sample.value });
  }
  return found.sort((a, b) => a.le - b.le);
}

/** What was added to a histogram between two looks; null if it began anew in between. */
export function added(before, now) {
  const same = before.length === now.length && before.every((bucket, at) => bucket.le === now[at].le);
  if (!same) return null;
  const counts = now.map(({ le, count }, at) => ({ le, count: count - before[at].count }));
  return counts.some(({ count }) => count < 0) ? null : counts;
}

/**
 * The value that a share of what was counted is at or below, read off between the bounds of its bucket. Null if nothing was
 * counted; the last finite bound if it lies above all of them.
 */
export function quantile(counts, share) {
  const total = counts.at(-1)?.count ?? 0;
  if (total <= 0) return null;
  const rank = share * total;
  let low = 0;
  let below = 0;
  for (const { le, count } of counts) {
    if (count >= rank && count > below) {
      return le === Infinity ? low : low + ((le - low) * (rank - below)) / (count - below);
    }
    low = le === Infinity ? low : le;
    below = count;
  }
  return low;
}

/** What happened each second between two looks at a counter; null if it began anew, or there is no earlier look. */
export function rate(before, now, seconds) {
  if (before === null || now === null || now < before || seconds <= 0) return null;
  return (now - before) / seconds;
}
