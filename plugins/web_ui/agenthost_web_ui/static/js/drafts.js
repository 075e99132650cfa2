/** What stands in the message field of each agent, and why it could not be sent. */

import { createStore } from "./store.js";

/** The most that a message may hold; the daemon refuses more. */
export const LONGEST_BYTES = 65_536;

const EMPTY = { text: "", problem: null, files: [] };
const whole = new Intl.NumberFormat("en");

/**
 * Make the drafts: a store of their own, so that typing draws the field alone.
 * @returns {object} `store` of `{text, problem, files}` by agent, `of`, `write`, `sent`,
 *   `giveBack`, `addFile`, `changeFile`, `dropFile`
 */
export function createDrafts() {
  const store = createStore({});
  const of = (agent) => store.get()[agent] ?? EMPTY;

  const patch = (agent, changes) => store.set({ [agent]: { ...of(agent), ...changes } });

  /** Put back what was not taken, before what has been typed since. */
  function giveBack(agent, { text, files = [] }, problem) {
    const texts = [text, of(agent).text].filter(Boolean);
    const again = files.map((file) => ({ ...file, key: file.file_id, state: "ready", sent: true }));
    const names = new Set(again.map(({ file_id }) => file_id));
    const others = of(agent).files.filter(({ file_id }) => !names.has(file_id));
    patch(agent, { text: texts.join("\n\n"), problem, files: [...again, ...others] });
  }

  function changeFile(agent, key, changes) {
    const change = (file) => (file.key === key ? { ...file, ...changes } : file);
    patch(agent, { files: of(agent).files.map(change) });
  }

  return {
    store,
    of,
    write: (agent, text, problem = null) => patch(agent, { text, problem }),
    sent: (agent) => patch(agent, EMPTY),
    giveBack,
    addFile: (agent, file) => patch(agent, { files: [...of(agent).files, file] }),
    changeFile,
    dropFile: (agent, key) =>
      patch(agent, { files: of(agent).files.filter((file) => file.key !== key) }),
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
