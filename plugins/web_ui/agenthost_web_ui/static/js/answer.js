/** What an answer is made of, and how it grows; pure functions. */

/** @returns {object} a part of an answer */
export function textPart(text) {
  return { kind: "text", text };
}

/** Words that were heard before, as after attaching anew, are left out. */
export function addText(answer, { content, offset }) {
  const points = [...content];
  const known = Math.max(0, answer.offset - (offset - points.length));
  const text = points.slice(known).join("");
  if (text === "") return answer;
  const last = answer.parts.at(-1);
  const parts =
    last?.kind === "text"
      ? answer.parts.with(-1, textPart(last.text + text))
      : [...answer.parts, textPart(text)];
  return { ...answer, parts, offset, status: "running" };
}

export function addTool(answer, { id, tool, input }) {
  if (answer.parts.some((part) => part.kind === "tool" && part.id === id)) {
    return { ...answer, status: "running" };
  }
  const part = { kind: "tool", id, tool, input, result: null, isError: false, done: false };
  return { ...answer, parts: [...answer.parts, part], status: "running" };
}

export function endTool(answer, frame) {
  const index = answer.parts.findLastIndex((part) => part.kind === "tool" && part.id === frame.id);
  if (index < 0) return answer;
  const ended = {
    ...answer.parts[index],
    input: frame.input ?? answer.parts[index].input,
    result: frame.result ?? "",
    isError: Boolean(frame.is_error),
    done: true,
  };
  return { ...answer, parts: answer.parts.with(index, ended), status: "running" };
}

/** The final content wins over what was streamed, unless both say the same. */
export function reconcile(parts, content) {
  const squeeze = (text) => text.replace(/\s+/g, "");
  const texts = parts.filter((part) => part.kind === "text").map((part) => part.text);
  const said = [texts.join(""), texts.at(-1) ?? ""].map(squeeze);
  if (!content || said.includes(squeeze(content))) return parts;
  const kept = parts.at(-1)?.kind === "text" ? parts.slice(0, -1) : parts;
  return [...kept, textPart(content)];
}

/**
 * Read what an answer took.
 * @param {object} counts of a `response` frame, or `usage` of a stored message
 * @returns {{input: number, output: number, steps: number, cost: number | null}}
 */
export function usageOf(counts) {
  return {
    input: counts.input_tokens ?? 0,
    output: counts.output_tokens ?? 0,
    steps: counts.iterations ?? 0,
    cost: counts.cost_usd ?? null,
  };
}
