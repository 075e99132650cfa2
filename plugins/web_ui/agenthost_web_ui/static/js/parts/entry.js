/** One entry of a conversation. */

import { formatUsage } from "../format.js";
import { html, useMemo } from "../html.js";
import { Markdown } from "./markdown.js";
import { ToolCard } from "./tool-card.js";

const ENDINGS = {
  stopped: "Stopped.",
  interrupted: "The connection was lost during this answer.",
};

/**
 * An entry; drawn again only when it changed.
 * @param {{entry: object}} props
 * @returns {object} a vnode
 */
export function Entry({ entry }) {
  return useMemo(() => draw(entry), [entry]);
}

function draw(entry) {
  if (entry.role === "user") {
    return html`<article class="entry user" aria-label="You"><p>${entry.text}</p></article>`;
  }
  if (entry.role === "note") {
    return html`<div class=${`entry note ${entry.tone}`} role=${entry.tone === "error" ? "alert" : "note"}>
      <${Markdown} text=${entry.text} settled=${true} />
    </div>`;
  }
  return html`<${Answer} entry=${entry} />`;
}

function Answer({ entry }) {
  const running = entry.status === "running";
  const last = entry.parts.length - 1;
  const idle = running && (last < 0 || (entry.parts[last].kind === "tool" && entry.parts[last].done));
  return html`<article class="entry answer" aria-label="Agent">
    ${entry.parts.map((part, index) =>
      part.kind === "text"
        ? html`<${Markdown} key=${index} text=${part.text} settled=${!running || index < last} />`
        : html`<${ToolCard} key=${index} part=${part} ended=${!running} />`,
    )}
    ${idle && html`<p class="waiting"><span class="pulse" aria-hidden="true"></span>Thinking…</p>`}
    ${ENDINGS[entry.status] && html`<p class="ending">${ENDINGS[entry.status]}</p>`}
    ${entry.usage && html`<p class="usage">${formatUsage(entry.usage)}</p>`}
  </article>`;
}
