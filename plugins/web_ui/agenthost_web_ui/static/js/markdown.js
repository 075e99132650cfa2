/**
 * Markdown of a model, made safe to show: raw HTML is shown as text, what marked
 * writes is sanitised, and nothing in it can load or run anything.
 */

import DOMPurify from "../vendor/dompurify/purify.mjs";
import { Marked } from "../vendor/marked/marked.mjs";

const TAGS = [
  "a", "blockquote", "br", "code", "del", "em", "h1", "h2", "h3", "h4", "h5", "h6",
  "hr", "li", "ol", "p", "pre", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul",
];
const ATTRIBUTES = ["align", "class", "href", "rel", "start", "target", "title"];

const markdown = new Marked({
  gfm: true,
  breaks: true,
  renderer: {
    html: ({ text }) => escape(text),
    image: ({ href, text }) => link(href, text || href),
    checkbox: ({ checked }) => (checked ? "☑ " : "☐ "),
    link({ href, tokens }) {
      return link(href, null, this.parser.parseInline(tokens));
    },
  },
});

/**
 * Render Markdown.
 * @param {string} text what the model wrote
 * @returns {string} HTML that is safe to insert
 */
export function renderMarkdown(text) {
  return DOMPurify.sanitize(markdown.parse(text), {
    ALLOWED_TAGS: TAGS,
    ALLOWED_ATTR: ATTRIBUTES,
    ALLOW_DATA_ATTR: false,
    ALLOW_ARIA_ATTR: false,
  });
}

function link(href, text, inner = escape(text)) {
  if (!/^(https?:|mailto:)/i.test(href)) return inner;
  const attributes = 'target="_blank" rel="noopener noreferrer nofollow"';
  return `<a href="${escape(href)}" ${attributes}>${inner}</a>`;
}

function escape(text) {
  const entities = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
  return text.replace(/[&<>"']/g, (char) => entities[char]);
}
