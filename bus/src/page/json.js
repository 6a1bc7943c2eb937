// JSON as it was written: numbers keep their digits, which a parsed value would not. Pure.

const SPACE = /\s*/y;
const SIGN = /[{}[\],:]/y;
const WORD = /[^\s"{}[\],:]+/y; // a number, true, false, null

function* tokens(text) {
  let at = end(SPACE, text, 0);
  while (at < text.length) {
    const after = text[at] === '"' ? endOfString(text, at) : end(SIGN, text, at) || end(WORD, text, at);
    if (after <= at) return;
    yield { text: text.slice(at, after), at };
    at = end(SPACE, text, after);
  }
}

/** Where a match at this place ends; 0 if there is none. */
function end(pattern, text, at) {
  pattern.lastIndex = at;
  return pattern.test(text) ? pattern.lastIndex : 0;
}

// Not by a regular expression: one that goes back over megabytes runs out of stack.
function endOfString(text, from) {
  for (let quote = text.indexOf('"', from + 1); quote >= 0; quote = text.indexOf('"', quote + 1)) {
    let first = quote;
    while (text[first - 1] === '\\') first -= 1;
    if ((quote - first) % 2 === 0) return quote + 1;
  }
  return 0;
}

/** The members of a JSON object by name, each as the text of its value. An empty map if it is no object. */
export function members(text) {
  const found = new Map();
  let depth = 0;
  let name = null;
  let from = -1; // where the value begins
  for (const token of tokens(text)) {
    const closes = token.text === '}' || token.text === ']';
    if (depth === 0 && token.text !== '{') return found;
    if (depth === 1 && (closes || token.text === ',')) {
      if (name !== null && from >= 0) found.set(name, text.slice(from, token.at).trimEnd());
      name = null;
      from = -1;
    } else if (depth === 1 && name === null) {
      name = string(token.text);
    } else if (depth === 1 && from < 0 && token.text !== ':') {
      from = token.at;
    }
    if (closes) depth -= 1;
    else if (token.text === '{' || token.text === '[') depth += 1;
    if (depth === 0) break;
  }
  return found;
}

/** What a JSON string says; null if the text is something else. */
export function string(text) {
  if (text === undefined || text[0] !== '"') return null;
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** JSON with a line for each member and element. */
export function indented(text) {
  let out = '';
  let depth = 0;
  let before = '';
  const newLine = () => `\n${'  '.repeat(Math.min(depth, 40))}`;
  for (const { text: token } of tokens(text)) {
    const closes = token === '}' || token === ']';
    const opened = before === '{' || before === '[';
    if (closes) depth -= 1;
    if (closes ? !opened : opened) out += newLine();
    out += token;
    if (token === ',') out += newLine();
    if (token === ':') out += ' ';
    if (token === '{' || token === '[') depth += 1;
    before = token;
  }
  return out;
}
