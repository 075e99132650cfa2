/**
 * What was said, as a list of entries; pure functions that answer a new list.
 *
 * An entry is one of
 * - `{id, role: "user", text, files, turn, sent, pending}`: `sent` is the id under which
 *   this page sent it, `pending` lasts until the daemon has taken it, or refused it; a
 *   file is `{file_id, name, type}`;
 * - `{id, role: "note", tone, text}`: words outside any turn;
 * - `{id, role: "assistant", turn, parts, status, error, finish, usage, model, at,
 *   offset}`: the answer of a turn. A part is `{kind: "text", text}`, `{kind: "thought",
 *   text}` or `{kind: "tool", id, tool, input, result, isError, done}`; `offset` counts
 *   the code points heard of its text, `finish` is why the model stopped.
 *
 * A `remark` is a command or its answer: shown here, stored nowhere.
 * A status is `running`, `waiting`, `complete`, `stopped`, `interrupted` or `failed`.
 */

import { addText, addTool, endTool, reconcile, usageOf } from "./answer.js";

const ENDINGS = { cancelled: "stopped", interrupted: "interrupted" };

let lastId = 0;
const nextId = () => `entry-${(lastId += 1)}`;

/**
 * Tell whether more is to come of an entry.
 * @param {object | undefined} entry
 * @returns {boolean} true for an answer that goes on, and a message not yet taken
 */
export function isLive(entry) {
  return Boolean(entry?.pending) || ["running", "waiting"].includes(entry?.status);
}

/** Whether the agent works on an entry now; not while its turn waits for a person. */
export function isBusy(entry) {
  return isLive(entry) && entry.status !== "waiting";
}

/**
 * A message of the person.
 * @param {string} text what was typed
 * @param {string} sent the id under which this page sends it
 * @param {Array<object>} files what it names
 * @returns {object} an entry
 */
export function userEntry(text, sent, files = []) {
  return { id: nextId(), role: "user", text, files, turn: null, sent, pending: true };
}

/**
 * A remark of the page or the daemon.
 * @param {string} text Markdown
 * @param {"info" | "error"} tone
 * @returns {object} an entry
 */
export function note(text, tone = "info") {
  return { id: nextId(), role: "note", tone, text, remark: true };
}

/**
 * The answer of a turn.
 * @param {string} turn its id; the same turn always makes an entry of the same id
 * @param {object} known what differs from an answer that has just begun
 * @returns {object} an entry
 */
export function answerEntry(turn, known = {}) {
  return {
    id: `answer-${turn}`,
    role: "assistant",
    turn,
    parts: [],
    status: "running",
    error: null,
    finish: null,
    citations: [],
    usage: null,
    model: null,
    at: null,
    offset: 0,
    ...known,
  };
}

/**
 * Find the answer of a turn.
 * @param {Array<object>} entries
 * @param {string} turn
 * @returns {object | undefined} an entry
 */
export function answerOf(entries, turn) {
  return entries.find((entry) => entry.role === "assistant" && entry.turn === turn);
}

/**
 * Take in one frame about a turn. An answer that has ended stays as it is.
 * @param {Array<object>} entries
 * @param {object} frame a WebSocket message with `turn_id`
 * @returns {Array<object>} the entries with it
 */
export function applyFrame(entries, frame) {
  const known = bind(entries, frame);
  switch (frame.type) {
    case "thinking":
      return change(known, frame.turn_id, (answer) => think(answer, frame));
    case "text_delta":
      return change(known, frame.turn_id, (answer) => addText(answer, frame));
    case "tool_start":
      return change(known, frame.turn_id, (answer) => addTool(answer, frame));
    case "tool_end":
      return change(known, frame.turn_id, (answer) => endTool(answer, frame));
    case "waiting":
      return change(known, frame.turn_id, (answer) => ({ ...answer, status: "waiting" }));
    case "response":
      return change(known, frame.turn_id, (answer) => finish(answer, frame));
    case "error":
      return change(known, frame.turn_id, (answer) => breakOff(answer, frame));
    default:
      return known;
  }
}

/**
 * End the answers that run, as after a stop that nobody confirmed.
 * @param {Array<object>} entries
 * @returns {Array<object>} the entries, none of them busy
 */
export function stopAll(entries) {
  return entries.map((entry) => {
    if (!isBusy(entry)) return entry;
    if (entry.pending) return { ...entry, pending: false };
    return { ...entry, status: "stopped" };
  });
}

/**
 * Run a turn again that failed or was interrupted; its words stand until it has begun.
 * @param {Array<object>} entries
 * @param {string} turn
 * @returns {Array<object>} the entries with its answer running
 */
export function runAgain(entries, turn) {
  return patch(entries, turn, { status: "running", error: null, again: true });
}

/**
 * Note that frames of a turn were missed: once it has ended, the session tells it all.
 * @param {Array<object>} entries
 * @param {string} turn
 * @returns {Array<object>} the entries with its answer marked
 */
export function readAfterwards(entries, turn) {
  return patch(entries, turn, { reread: true });
}

function patch(entries, turn, changes) {
  const answer = answerOf(entries, turn);
  return answer ? entries.with(entries.indexOf(answer), { ...answer, ...changes }) : entries;
}

/** The first frame of a turn tells which of our messages it answers. */
function bind(entries, frame) {
  const index = entries.findIndex((entry) => entry.pending && entry.sent === frame.id);
  if (index < 0) return entries;
  const id = `user-${frame.turn_id}`;
  if (entries.some((entry) => entry.id === id)) return entries.toSpliced(index, 1);
  const bound = { ...entries[index], id, turn: frame.turn_id, pending: false };
  return entries.with(index, bound);
}

function change(entries, turn, work) {
  const index = entries.indexOf(answerOf(entries, turn));
  if (index >= 0) {
    return isLive(entries[index]) ? entries.with(index, work(entries[index])) : entries;
  }
  const asked = entries.findIndex((entry) => entry.role === "user" && entry.turn === turn);
  const place = asked < 0 ? entries.length : asked + 1;
  return entries.toSpliced(place, 0, work(answerEntry(turn)));
}

/** Without words the turn begins to run, or runs again. */
function think(answer, { content }) {
  if (!content) return begin(answer);
  const last = answer.parts.at(-1);
  const parts =
    last?.kind === "thought"
      ? answer.parts.with(-1, { ...last, text: last.text + content })
      : [...answer.parts, { kind: "thought", text: content }];
  return { ...answer, parts, status: "running" };
}

function begin(answer) {
  if (!answer.again) return { ...answer, status: "running" };
  return answerEntry(answer.turn, { reread: true });
}

function finish(answer, frame) {
  const parts = reconcile(answer.parts, frame.content ?? "");
  const { finish = null, citations = [] } = frame;
  return { ...answer, parts, status: "complete", finish, citations, usage: usageOf(frame) };
}

function breakOff(answer, { code, content }) {
  return { ...answer, status: ENDINGS[code] ?? "failed", error: content };
}
