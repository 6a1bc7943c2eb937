// The text/event-stream format, as the HTML standard parses it. Pure: bytes in, messages out.

const LINE_END = /\r\n|\r|\n/g;

export class SseParser {
  #decoder = new TextDecoder(); // keeps half a character, and drops a byte order mark
  #line = ''; // the beginning of a line whose end has not come
  #endedWithCr = false; // then a line feed that comes first belongs to it
  #id = null;
  #type = '';
  #data = '';

  /** What the server says about coming again, in milliseconds; null where it says nothing. */
  retry = null;

  /**
   * Takes the next bytes, wherever they were cut. Gives the messages that are complete with them, each `{ id, type, data }`;
   * `id` is null where the message itself has none, which tells a notice from an event.
   */
  push(bytes) {
    const messages = [];
    let text = this.#decoder.decode(bytes, { stream: true });
    if (text === '') return messages;
    if (this.#endedWithCr && text[0] === '\n') text = text.slice(1);
    let from = 0;
    for (const end of text.matchAll(LINE_END)) {
      this.#takeLine(this.#line + text.slice(from, end.index), messages);
      this.#line = '';
      from = end.index + end[0].length;
    }
    this.#line += text.slice(from);
    this.#endedWithCr = text.endsWith('\r');
    return messages;
  }

  #takeLine(line, messages) {
    if (line === '') {
      this.#dispatch(messages);
      return;
    }
    const colon = line.indexOf(':');
    if (colon === 0) return; // a comment
    const name = colon < 0 ? line : line.slice(0, colon);
    let value = colon < 0 ? '' : line.slice(colon + 1);
    if (value[0] === ' ') value = value.slice(1);
    this.#takeField(name, value);
  }

  #takeField(name, value) {
    if (name === 'data') this.#data += `${value}\n`;
    else if (name === 'event') this.#type = value;
    else if (name === 'id' && !value.includes('\0')) this.#id = value;
    else if (name === 'retry' && /^[0-9]+$/.test(value)) this.retry = Number(value);
  }

  #dispatch(messages) {
    if (this.#data !== '') {
      messages.push({ id: this.#id, type: this.#type || 'message', data: this.#data.slice(0, -1) });
    }
    this.#id = null;
    this.#type = '';
    this.#data = '';
  }
}
