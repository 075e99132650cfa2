/** What a plugin's card says, read as data: whatever has another form is left out. */

const MOST = 50;
const LONGEST = 2_000;

/**
 * Read the contents of a card.
 * @param {unknown} body what the card's path answered
 * @returns {{text: string, rows: Array<{label: string, value: string}>,
 *   links: Array<{label: string, url: string}>}} its parts
 */
export function readCard(body) {
  const rows = listOf(body?.rows).map(({ label, value }) => ({
    label: words(label),
    value: words(value),
  }));
  const links = listOf(body?.links)
    .map(({ label, url }) => ({ label: words(label), url: addressOf(url) }))
    .filter(({ label, url }) => label && url);
  return { text: words(body?.text), rows, links };
}

function listOf(value) {
  const list = Array.isArray(value) ? value.slice(0, MOST) : [];
  return list.filter((item) => item && typeof item === "object");
}

function words(value) {
  const plain = ["string", "number", "boolean"].includes(typeof value);
  return plain ? String(value).slice(0, LONGEST) : "";
}

/**
 * Read an address: only pages are linked, nothing that runs or opens another program.
 * @param {unknown} value
 * @returns {string | null} null when it is none
 */
export function addressOf(value) {
  if (typeof value !== "string" || !URL.canParse(value, location.href)) return null;
  const url = new URL(value, location.href);
  return ["http:", "https:"].includes(url.protocol) ? url.href : null;
}
