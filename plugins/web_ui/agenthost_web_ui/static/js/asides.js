/** Frames outside any turn: the answer of a command, a refusal, a complaint. */

import { note } from "./conversation.js";

const CHANGES_THE_SESSION = /^\/(new|compact|undo|pin|unpin)\b/;

/**
 * Take in such a frame.
 * @param {object} frame a `response` or an `error` without a turn
 * @param {object} talk the open conversation
 * @param {() => Array<object>} talk.entries what it shows
 * @param {(entries: Array<object>) => void} talk.show
 * @param {() => Promise<void>} talk.read reads its session
 * @param {(said: object, problem: string) => void} talk.giveBack puts a message that was
 *   refused back into the field
 */
export function takeAside(frame, talk) {
  const asked = talk.entries().find((entry) => isAnswered(entry, frame));
  if (frame.type === "response") {
    commandDone(frame.content, asked, talk);
  } else if (asked) {
    talk.show(talk.entries().filter((entry) => entry !== asked));
    talk.giveBack(asked, frame.content);
  } else {
    talk.show([...talk.entries(), note(frame.content, "error")]);
  }
}

/** A command's answer may come without the id under which the command was sent. */
function isAnswered({ pending, sent, text }, { id }) {
  if (!pending) return false;
  return id === undefined ? text.startsWith("/") : id === sent;
}

async function commandDone(content, asked, talk) {
  const said = { ...asked, pending: false, remark: true };
  talk.show(talk.entries().map((entry) => (entry === asked ? said : entry)));
  if (CHANGES_THE_SESSION.test(asked?.text ?? "")) await talk.read();
  talk.show([...talk.entries(), note(content)]);
}
