/** What agents ask people: read as data, answered with values of the kinds asked for. */

import { addressOf } from "./cards.js";

const pathOf = (id) => `/api/approvals/${encodeURIComponent(id)}`;

/**
 * Make the controller of questions.
 * @param {{api: object}} parts
 * @returns {object} `questions`, `decide`, `outcomes`
 */
export function createApprovals({ api }) {
  /** Read what a turn waits for; the daemon decides who may. */
  async function questions(turn) {
    const wanted = new URLSearchParams({ turn_id: turn, state: "pending" });
    const { approvals } = await api.get(`/api/approvals?${wanted}`);
    const whole = await Promise.all(approvals.map(({ id }) => api.get(pathOf(id))));
    return whole.map(readQuestion);
  }

  /** Say yes with values, or no with a reason, to exactly what was read. */
  function decide({ id, digest }, yes, said) {
    return api.post(`${pathOf(id)}/${yes ? "approve" : "deny"}`, { ...said, digest });
  }

  /** Say what became of questions that were not answered here, and who answered. */
  async function outcomes(asked) {
    const details = await Promise.all(asked.map(({ id }) => api.get(pathOf(id))));
    return details.map(outcomeOf).filter(Boolean).join(" ");
  }

  return { questions, decide, outcomes };
}

/**
 * Read a question.
 * @param {object} detail of `GET /api/approvals/{id}`
 * @returns {object} `{id, digest, text, tool, input, url, deadline, fields, pattern}`;
 *   `pattern` has the text of each argument by name, null where a yes holds for its call
 *   alone; a field is `{name, label, about, kind, options, required, initial, rules}`; of one about money
 *   `input` is the expense
 */
export function readQuestion(detail) {
  const { id, digest, question: text, expense, deadline } = detail;
  const [tool, input] = expense ? ["Money", expense] : [detail.tool, detail.arguments];
  const url = detail.url ? addressOf(detail.url) : null;
  const pattern = detail.exact_pattern;
  return { id, digest, text, tool, input, url, deadline, fields: fieldsOf(detail), pattern };
}

function outcomeOf({ state, question, answered_by: by }) {
  const words = {
    approved: `approved by ${by}`,
    denied: `denied by ${by}`,
    expired: "answered by nobody in time",
  };
  return words[state] && `“${question}” was ${words[state]}.`;
}

function fieldsOf({ schema, choices }) {
  if (choices?.length) {
    const rules = { type: "string", title: "Which?", enum: choices };
    return [fieldOf("choice", rules, true)];
  }
  const required = schema?.required ?? [];
  return Object.entries(schema?.properties ?? {}).map(([name, rules]) =>
    fieldOf(name, rules, required.includes(name)),
  );
}

function fieldOf(name, rules, required) {
  const options = rules.enum ?? (rules.type === "boolean" ? [true, false] : null);
  return {
    name,
    label: String(rules.title ?? name),
    about: String(rules.description ?? ""),
    kind: options ? "option" : rules.type,
    options,
    required,
    initial: rules.default,
    rules,
  };
}

/**
 * Give the values that people filled in; what they left empty is left out.
 * @param {Array<object>} fields
 * @param {Array<string>} texts what stands in each; of an option its place
 * @returns {object} JSON to send
 * @throws {Error} when a number cannot be sent exactly
 */
export function valuesOf(fields, texts) {
  const given = fields
    .map((field, place) => [field, texts[place] ?? ""])
    .filter(([{ kind, required }, text]) => text !== "" || (kind === "string" && required));
  // As entries, since a property may have any name.
  return Object.fromEntries(given.map(([field, text]) => [field.name, valueOf(field, text)]));
}

function valueOf({ kind, options, label }, text) {
  if (kind === "option") return options[Number(text)];
  if (kind === "string") return text;
  const number = Number(text);
  const exact = kind === "integer" ? Number.isSafeInteger(number) : Number.isFinite(number);
  if (!exact) throw new Error(`${label}: this number cannot be sent exactly.`);
  return number;
}
