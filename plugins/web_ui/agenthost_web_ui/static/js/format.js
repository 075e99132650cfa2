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
 * Write the sum of this visit.
 * @param {{input: number, output: number, cost: number}} totals
 * @returns {string} such as `1,290 tokens · $0.0031`
 */
export function formatTotals({ input, output, cost }) {
  return `${whole.format(input + output)} tokens · ${formatCost(cost)}`;
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
