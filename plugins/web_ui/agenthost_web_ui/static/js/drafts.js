/** What stands in the message field of each agent, and why it could not be sent. */

import { createStore } from "./store.js";

/** The most that a message may hold; the daemon refuses more. */
export const LONGEST_BYTES = 65_536;

const EMPTY = { text: "", problem: null };
const whole = new Intl.NumberFormat("en");

/**
 * Make the drafts: a store of their own, so that typing draws the field alone.
 * @returns {object} `store` of `{text, problem}` by agent, `of`, `write`, `giveBack`
 */
export function createDrafts() {
  const store = createStore({});
  const of = (agent) => store.get()[agent] ?? EMPTY;

  /** Put back what was not taken, before what has been typed since. */
  function giveBack(agent, text, problem) {
    const texts = [text, of(agent).text].filter(Boolean);
    store.set({ [agent]: { text: texts.join("\n\n"), problem } });
  }

  return {
    store,
    of,
    write: (agent, text, problem = null) => store.set({ [agent]: { text, problem } }),
    giveBack,
  };
}

/**
 * Say why a text is too long to be sent.
 * @param {string} text a message
 * @returns {string | null} null when it is not
 */
export function tooLong(text) {
  const bytes = new TextEncoder().encode(text).length;
  if (bytes <= LONGEST_BYTES) return null;
  return (
    `This message has ${whole.format(bytes)} bytes; at most ${whole.format(LONGEST_BYTES)} ` +
    "can be sent at once. Shorten it, or send it in parts."
  );
}
