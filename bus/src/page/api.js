// Requests to the server, with the token where one is asked for.

const KEY = 'strandline-token';
const form = document.getElementById('token');
const field = document.getElementById('token-value');
const problem = document.getElementById('token-problem');

let token = kept();
let asking = null; // settled when a token is given; everybody waits for the same one

function kept() {
  try {
    return sessionStorage.getItem(KEY);
  } catch {
    return null; // storage is off: the token lives as long as the page
  }
}

function keep(given) {
  token = given;
  try {
    sessionStorage.setItem(KEY, given);
  } catch {
    // as above
  }
}

/** An answer that is no success. `isTransient`: trying again may help. */
export class Refused extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
    this.isTransient = status === 408 || status === 429 || status >= 500;
  }
}

/**
 * Asks the server; paths are relative, so that the page can be mounted anywhere. Where a token is needed it waits for one.
 * Throws `Refused` with the server's own words, or whatever `fetch` throws.
 */
export async function request(path, { timeoutMs, ...options } = {}) {
  for (;;) {
    const shown = token;
    const headers = new Headers(options.headers);
    if (shown !== null) headers.set('Authorization', `Bearer ${shown}`);
    // How long somebody looks for a token does not count.
    const signal = timeoutMs === undefined ? options.signal : AbortSignal.timeout(timeoutMs);
    const response = await fetch(path, { ...options, headers, signal, cache: 'no-store' });
    if (response.status === 401) {
      // Somebody else may have been given one meanwhile.
      if (shown === token) await askForToken(shown !== null, options.signal);
    } else if (response.ok) {
      return response;
    } else {
      throw new Refused(response.status, await detail(response));
    }
  }
}

/** The same, as JSON. */
export async function json(path) {
  const response = await request(path, { timeoutMs: 10_000 });
  return response.json();
}

async function detail(response) {
  const text = await response.text();
  try {
    const { detail, title } = JSON.parse(text);
    return String(detail ?? title);
  } catch {
    return text.slice(0, 300) || `the server answered ${response.status}`;
  }
}

function askForToken(wasRefused, signal) {
  if (asking === null) {
    asking = Promise.withResolvers();
    form.hidden = false;
    problem.textContent = wasRefused ? 'The server did not take this token.' : '';
    // Whoever is typing elsewhere goes on.
    if (document.activeElement === document.body) field.focus();
  }
  const aborted = new Promise((_, reject) => {
    signal?.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
  return Promise.race([asking.promise, aborted]);
}

form.addEventListener('submit', (event) => {
  event.preventDefault();
  const given = field.value.trim();
  if (!/^[\x20-\x7e]+$/.test(given)) {
    problem.textContent = 'A token has printable ASCII characters only.';
    return;
  }
  keep(given);
  field.value = '';
  form.hidden = true;
  asking.resolve();
  asking = null;
  document.getElementById('status').focus();
});
