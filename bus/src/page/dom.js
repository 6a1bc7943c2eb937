// Small things that every part of the page needs of the document. What comes from outside is only ever set as text.

export const byId = (id) => document.getElementById(id);

/** An element with classes and text. */
export function element(name, classes = '', text = '') {
  const made = document.createElement(name);
  if (classes !== '') made.className = classes;
  if (text !== '') made.textContent = text;
  return made;
}

/** Sets a text only where it differs, so that nothing is read aloud twice and no selection is lost. */
export function setText(target, text) {
  if (target.textContent !== text) target.textContent = text;
}

/** Makes the children of a parent what `items` says, keeping those that are there: focus stays where it is. */
export function reconcile(parent, items, key, make, update) {
  const wanted = new Map(items.map((item) => [String(key(item)), item]));
  // First, so that those behind are not moved, which would take the focus from them.
  for (const child of [...parent.children]) if (!wanted.has(child.dataset.key)) child.remove();
  const there = new Map([...parent.children].map((child) => [child.dataset.key, child]));
  let at = parent.firstElementChild;
  for (const [name, item] of wanted) {
    const child = there.get(name) ?? make(item);
    child.dataset.key = name;
    if (child === at) at = at.nextElementSibling;
    else parent.insertBefore(child, at);
    update(child, item);
  }
}

const COUNT = new Intl.NumberFormat('en');
const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];

export const count = (number) => COUNT.format(number);

export function size(bytes) {
  let unit = 0;
  let number = bytes;
  for (; number >= 1024 && unit < UNITS.length - 1; unit += 1) number /= 1024;
  return `${number >= 100 || unit === 0 ? Math.round(number) : number.toFixed(1)} ${UNITS[unit]}`;
}

/** A few words for a number of something. */
export const plural = (number, one, many = `${one}s`) => `${count(number)} ${number === 1 ? one : many}`;
