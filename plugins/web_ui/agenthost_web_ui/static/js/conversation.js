/**
 * What was said, as a list of entries; pure functions that answer a new list.
 *
 * An entry is `{id, role: "user", text}`, `{id, role: "note", tone, text}` or
 * `{id, role: "assistant", parts, status, usage}`, where a part is
 * `{kind: "text", text}` or `{kind: "tool", id, tool, input, result, isError, done}`.
 */

let lastId = 0;
const nextId = () => `entry-${(lastId += 1)}`;

/**
 * Read a stored session.
 * @param {Array<object>} messages of `GET /api/agents/{id}/session`
 * @returns {Array<object>} entries; consecutive answers are one entry
 */
export function fromSession(messages) {
  const entries = [];
  for (const message of messages) {
    const role = message.role.toLowerCase();
    if (role === "user") entries.push(userEntry(message.content));
    else if (role === "assistant") absorb(entries, partsOf(message));
    else entries.push(note(message.content));
  }
  return entries;
}

/**
 * A message of the person.
 * @param {string} text what was typed
 * @returns {object} an entry
 */
export function userEntry(text) {
  return { id: nextId(), role: "user", text };
}

/**
 * A remark of the page or the daemon.
 * @param {string} text Markdown
 * @param {"info" | "error"} tone
 * @returns {object} an entry
 */
export function note(text, tone = "info") {
  return { id: nextId(), role: "note", tone, text };
}

/**
 * Take in one server frame.
 * @param {Array<object>} entries
 * @param {object} frame a WebSocket message
 * @returns {Array<object>} the entries with it
 */
export function applyFrame(entries, frame) {
  switch (frame.type) {
    case "thinking":
      return withAnswer(entries, (answer) => answer);
    case "text_delta":
      return withAnswer(entries, (answer) => addText(answer, frame.content));
    case "tool_start":
      return withAnswer(entries, (answer) => addTool(answer, frame));
    case "tool_end":
      return withAnswer(entries, (answer) => endTool(answer, frame));
    case "response":
      return isCommand(entries) ? commandAnswer(entries, frame) : finish(entries, frame);
    case "error":
      return [...settle(entries, "failed"), note(frame.content, "error")];
    default:
      return entries;
  }
}

/**
 * End the running answer, if there is one.
 * @param {Array<object>} entries
 * @param {"done" | "stopped" | "interrupted" | "failed"} status how it ended
 * @returns {Array<object>} entries without a running one; an empty answer is dropped
 *   unless it was stopped or interrupted
 */
export function settle(entries, status) {
  const answer = entries.at(-1);
  if (answer?.role !== "assistant" || answer.status !== "running") return entries;
  const before = entries.slice(0, -1);
  if (status === "failed" && answer.parts.length === 0) return before;
  return [...before, { ...answer, status }];
}

function isCommand(entries) {
  const said = entries.findLast((entry) => entry.role === "user");
  return Boolean(said?.text.startsWith("/")) && entries.indexOf(said) >= entries.length - 2;
}

function commandAnswer(entries, frame) {
  const open = entries.at(-1).role === "assistant";
  return [...(open ? entries.slice(0, -1) : entries), note(frame.content)];
}

function withAnswer(entries, change) {
  const last = entries.at(-1);
  if (last?.role === "assistant" && last.status === "running") {
    return [...entries.slice(0, -1), change(last)];
  }
  return [...entries, change(answerEntry([], "running"))];
}

function answerEntry(parts, status) {
  return { id: nextId(), role: "assistant", parts, status, usage: null };
}

function addText(answer, text) {
  const last = answer.parts.at(-1);
  if (last?.kind !== "text") return { ...answer, parts: [...answer.parts, textPart(text)] };
  return { ...answer, parts: [...answer.parts.slice(0, -1), textPart(last.text + text)] };
}

function addTool(answer, { id, tool, input }) {
  const part = { kind: "tool", id, tool, input, result: null, isError: false, done: false };
  return { ...answer, parts: [...answer.parts, part] };
}

function endTool(answer, frame) {
  const index = answer.parts.findLastIndex(
    (part) => part.kind === "tool" && !part.done && (part.id === frame.id || part.id == null),
  );
  if (index < 0) return answer;
  const ended = {
    ...answer.parts[index],
    input: frame.input ?? answer.parts[index].input,
    result: frame.result ?? "",
    isError: Boolean(frame.is_error),
    done: true,
  };
  return { ...answer, parts: answer.parts.with(index, ended) };
}

function finish(entries, frame) {
  const running = withAnswer(entries, (answer) => answer);
  const answer = running.at(-1);
  const parts = reconcile(answer.parts, frame.content ?? "");
  return [
    ...running.slice(0, -1),
    { ...answer, parts, status: "done", usage: usageOf(frame) },
  ];
}

/** The final content wins over what was streamed, unless both say the same. */
function reconcile(parts, content) {
  const squeeze = (text) => text.replace(/\s+/g, "");
  const texts = parts.filter((part) => part.kind === "text").map((part) => part.text);
  const said = [texts.join(""), texts.at(-1) ?? ""].map(squeeze);
  if (!content || said.includes(squeeze(content))) return parts;
  const kept = parts.at(-1)?.kind === "text" ? parts.slice(0, -1) : parts;
  return [...kept, textPart(content)];
}

function usageOf(frame) {
  return {
    input: frame.input_tokens ?? 0,
    output: frame.output_tokens ?? 0,
    steps: frame.iterations ?? 0,
    cost: frame.cost_usd ?? null,
  };
}

function textPart(text) {
  return { kind: "text", text };
}

function partsOf(message) {
  const tools = (message.tools ?? []).map((tool, index) => ({
    kind: "tool",
    id: tool.id ?? `stored-${index}`,
    tool: tool.name,
    input: tool.input,
    result: tool.result ?? "",
    isError: Boolean(tool.is_error),
    done: true,
  }));
  return message.content ? [textPart(message.content), ...tools] : tools;
}

function absorb(entries, parts) {
  const last = entries.at(-1);
  if (last?.role === "assistant") last.parts.push(...parts);
  else entries.push(answerEntry(parts, "done"));
}
