/** A stored session as entries, and how it meets what the page already shows. */

import { textPart, usageOf } from "./answer.js";
import { answerEntry, isLive, note } from "./conversation.js";

/**
 * Read a stored session.
 * @param {Array<object>} messages of `GET /api/agents/{id}/session`
 * @returns {Array<object>} entries; the answers of one turn are one entry, and that of
 *   a turn that goes on is empty: attaching to it tells everything
 */
export function fromSession(messages) {
  const entries = [];
  for (const [index, message] of messages.entries()) {
    const role = message.role.toLowerCase();
    const key = message.turn_id ?? `stored-${message.id ?? index}`;
    if (role === "user") entries.push(...asked(message, key));
    else if (role === "assistant") absorb(entries, message, key);
    else entries.push({ ...note(message.content), id: `note-${key}`, remark: false });
  }
  return entries.map((entry) =>
    entry.role === "assistant" && isLive(entry) ? { ...entry, parts: [] } : entry,
  );
}

/**
 * Put a session that was just read in the place of what is shown.
 * @param {Array<object>} stored the session's entries
 * @param {Array<object>} shown what the page shows now
 * @param {Map<string, object>} before what it showed when the session was asked for, by id
 * @returns {Array<object>} the stored entries, and of those shown what is newer than
 *   they are: an answer that grows, a message on its way, a remark in its old place
 */
export function merge(stored, shown, before) {
  const known = new Map(shown.map((entry) => [entry.id, entry]));
  const ids = new Set(stored.map(({ id }) => id));
  const behind = remarks(shown, ids, before);
  const merged = [...behind.get(null)];
  for (const entry of stored) {
    const old = known.get(entry.id);
    const newest = old && isNewer(old, entry, before) ? old : withThoughts(entry, old);
    merged.push(newest, ...(behind.get(entry.id) ?? []));
  }
  return merged;
}

/**
 * Tell whether the session now knows more than the page: what somebody else asked, or
 * the steps of an earlier try.
 * @param {Array<object>} entries what is shown
 * @param {object | undefined} before the answer before a frame
 * @param {object} answer the same behind it
 * @returns {boolean} whether to read it
 */
export function knowsMore(entries, before, answer) {
  const ended = isLive(before) && !isLive(answer);
  const begun = answer.parts.length > 0 && !before?.parts.length;
  const asked = entries.some(({ role, turn }) => role === "user" && turn === answer.turn);
  return (ended && Boolean(answer.reread)) || (!asked && (begun || ended));
}

/** Thoughts are stored nowhere: those that were heard stay as long as the page does. */
function withThoughts(entry, old) {
  const thoughts = (old?.parts ?? []).filter(({ kind }) => kind === "thought");
  return thoughts.length > 0 ? { ...entry, parts: [...thoughts, ...entry.parts] } : entry;
}

/** What is not stored, by the id of the stored entry that it stands behind. */
function remarks(shown, ids, before) {
  const behind = new Map([[null, []]]);
  const live = new Set(shown.filter(isLive).map(({ turn }) => turn));
  const stays = (entry) =>
    isLive(entry) || live.has(entry.turn ?? undefined) || !before.has(entry.id);
  let anchor = null;
  for (const entry of shown) {
    if (ids.has(entry.id)) anchor = entry.id;
    else if (stays(entry) || (anchor && entry.remark)) {
      behind.set(anchor, [...(behind.get(anchor) ?? []), entry]);
    }
  }
  return behind;
}

function isNewer(old, fresh, before) {
  if (fresh.role === "user") return true;
  const wasLive = !before.has(old.id) || isLive(before.get(old.id));
  return isLive(fresh) && wasLive;
}

function asked(message, key) {
  const { content: text, files = [], turn_id: turn = null } = message;
  const { status = "complete", error = null } = message;
  const said = { id: `user-${key}`, role: "user", text, files, turn, sent: null, pending: false };
  return status === "complete" ? [said] : [said, answerEntry(key, { status, error })];
}

/** Messages without a turn, as older daemons stored them, follow one another. */
function absorb(entries, message, key) {
  const isAnswer = ({ role }) => role === "assistant";
  const index = message.turn_id
    ? entries.findLastIndex((entry) => isAnswer(entry) && entry.turn === key)
    : entries.length - 1;
  const known = entries[index];
  if (known && isAnswer(known)) entries[index] = withMessage(known, message);
  else entries.push(withMessage(answerEntry(key, { status: "complete" }), message));
}

function withMessage(answer, message) {
  const { status = "complete" } = message;
  return {
    ...answer,
    parts: [...answer.parts, ...partsOf(message)],
    status: answer.status === "complete" ? status : answer.status,
    error: answer.error ?? message.error ?? null,
    usage: message.usage ? usageOf(message.usage) : answer.usage,
    model: message.model ?? answer.model,
    finish: message.finish ?? answer.finish,
    citations: message.citations ?? answer.citations,
    at: message.at ?? answer.at,
  };
}

function partsOf(message) {
  const tools = (message.tools ?? []).map((tool, index) => ({
    kind: "tool",
    id: tool.id ?? `stored-${index}`,
    tool: tool.name,
    input: tool.input,
    result: tool.result ?? "",
    isError: Boolean(tool.is_error),
    done: tool.result !== null,
  }));
  return message.content ? [textPart(message.content), ...tools] : tools;
}
