/** Reads the stored session, and settles what the broken line left open. */

import { fromSession, merge } from "./history.js";

/** One reading at a time; a reading that has not begun yet serves all who ask. */
export class SessionReader {
  #fetch;
  #entries;
  #onRead;
  #onFailed;
  #last = Promise.resolve();
  #next = null;
  #unsure = [];

  /**
   * @param {object} options
   * @param {() => Promise<Array<object>>} options.fetch answers the stored messages
   * @param {() => Array<object>} options.entries what is shown now
   * @param {(entries: Array<object>, lost: Array<object>) => void} options.onRead gets
   *   what to show, and the messages that never arrived
   * @param {(error: Error) => void} options.onFailed
   */
  constructor({ fetch, entries, onRead, onFailed }) {
    this.#fetch = fetch;
    this.#entries = entries;
    this.#onRead = onRead;
    this.#onFailed = onFailed;
  }

  /**
   * Read the session as it is from now on.
   * @returns {Promise<void>} fulfilled when it is shown, or could not be read
   */
  read() {
    const begin = () => {
      this.#next = null;
      return this.#readNow();
    };
    this.#next ??= this.#last.then(begin, begin);
    this.#last = this.#next;
    return this.#last;
  }

  /** The line broke: whether messages on their way arrived, the session will tell. */
  lineBroke() {
    this.#unsure = this.#entries().filter(({ pending }) => pending);
  }

  async #readNow() {
    const before = new Map(this.#entries().map((entry) => [entry.id, entry]));
    let messages;
    try {
      messages = await this.#fetch();
    } catch (error) {
      this.#onFailed(error);
      return;
    }
    const unsure = this.#unsure;
    this.#unsure = [];
    const shown = this.#entries().filter((entry) => !unsure.includes(entry));
    const stored = fromSession(messages);
    const lost = unsure.filter((entry) => !arrived(entry, stored, before));
    this.#onRead(merge(stored, shown, before), lost);
  }
}

/** It is stored when its words stand in a message that was not shown before. */
function arrived(entry, stored, before) {
  return stored.some(
    ({ id, role, text }) => role === "user" && text === entry.text && !before.has(id),
  );
}
