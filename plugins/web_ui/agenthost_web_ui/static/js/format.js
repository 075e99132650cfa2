/** Numbers and small texts as people read them. */

const whole = new Intl.NumberFormat("en");

/**
 * Write a cost.
 * @param {number | null} usd
 * @returns {string} with enough digits to see small sums; empty when unknown
 */
export function formatCost(usd) {
  if (usd === null || usd === undefined) return "";
  if (usd === 0) return "$0";
  return usd < 0.01 ? `$${usd.toFixed(5).replace(/0+$/, "")}` : `$${usd.toFixed(2)}`;
}

/**
 * Write what an answer took.
 * @param {{input: number, output: number, steps: number, cost: number | null}} usage
 * @returns {string} such as `1,204 in · 86 out · $0.0031`
 */
export function formatUsage({ input, output, steps, cost }) {
  const words = [`${whole.format(input)} in`, `${whole.format(output)} out`];
  if (steps > 1) words.push(`${steps} steps`);
  if (cost !== null) words.push(formatCost(cost));
  return words.join(" · ");
}

/**
 * Write a moment in this place's time.
 * @param {string | null} at ISO 8601
 * @returns {string} such as `22 Nov 2026, 14:03`; empty when unknown
 */
export function formatTime(at) {
  if (!at) return "";
  const style = { dateStyle: "medium", timeStyle: "short", hourCycle: "h23" };
  return new Intl.DateTimeFormat("en-GB", style).format(new Date(at));
}

/**
 * Write the sum of this visit.
 * @param {{input: number, output: number, cost: number}} totals
 * @returns {string} such as `1,290 tokens · $0.0031`
 */
export function formatTotals({ input, output, cost }) {
  return `${whole.format(input + output)} tokens · ${formatCost(cost)}`;
}

/**
 * Add what an answer took to the sum of this visit.
 * @param {{input: number, output: number, cost: number}} totals
 * @param {object} frame a `response`
 * @returns {{input: number, output: number, cost: number}} the new sum
 */
export function addCounts(totals, frame) {
  return {
    input: totals.input + (frame.input_tokens ?? 0),
    output: totals.output + (frame.output_tokens ?? 0),
    cost: totals.cost + (frame.cost_usd ?? 0),
  };
}

/**
 * Shorten a tool's input to one line.
 * @param {unknown} input JSON
 * @returns {string} the values, or the text itself
 */
export function briefInput(input) {
  if (input === null || input === undefined) return "";
  if (typeof input !== "object") return String(input);
  const words = Object.values(input).map((value) =>
    typeof value === "object" ? JSON.stringify(value) : String(value),
  );
  return words.join(" · ").replace(/\s+/g, " ").slice(0, 160);
}

/**
 * Show JSON or text in full.
 * @param {unknown} value
 * @returns {string} indented JSON, or the text as it is
 */
export function fullText(value) {
  return typeof value === "string" ? value : (JSON.stringify(value, null, 2) ?? "");
}
