/** One entry of a conversation. */

import { isLive } from "../conversation.js";
import { formatTime, formatUsage } from "../format.js";
import { html, useMemo } from "../html.js";
import { Markdown } from "./markdown.js";
import { Questions } from "./questions.js";
import { Said } from "./said.js";
import { ToolCard } from "./tool-card.js";

const ENDINGS = {
  stopped: "Stopped.",
  interrupted: "This answer was interrupted.",
};

/**
 * An entry; drawn again only when it changed.
 * @param {{entry: object, online: boolean, idle: boolean, actions: object}} props
 *   `idle` while nothing of the conversation goes on
 * @returns {object} a vnode
 */
export function Entry({ entry, online, idle, actions }) {
  return useMemo(() => draw(entry, online, idle, actions), [entry, online, idle, actions]);
}

function draw(entry, online, idle, actions) {
  if (entry.role === "user") {
    return html`<${Said} entry=${entry} idle=${idle} actions=${actions} />`;
  }
  if (entry.role === "note") {
    return html`<div class=${`entry note ${entry.tone}`} role=${entry.tone === "error" ? "alert" : "note"}>
      <${Markdown} text=${entry.text} settled=${true} />
    </div>`;
  }
  return html`<${Answer} entry=${entry} online=${online} actions=${actions} />`;
}

function Answer({ entry, online, actions }) {
  const running = isLive(entry);
  const waits = entry.status === "waiting";
  const last = entry.parts.length - 1;
  const idle = running && (last < 0 || (entry.parts[last].kind === "tool" && entry.parts[last].done));
  return html`<article class="entry answer" aria-label="Agent">
    ${entry.parts.map((part, index) =>
      part.kind === "text"
        ? html`<${Markdown} key=${index} text=${part.text} settled=${!running || index < last} />`
        : html`<${ToolCard} key=${index} part=${part} ended=${!running} waits=${waits} />`,
    )}
    ${idle && !waits && html`<${Waiting} />`}
    ${waits && html`<${Questions} turn=${entry.turn} online=${online} actions=${actions} />`}
    <${Ending} entry=${entry} online=${online} onAgain=${() => actions.resume(entry.turn)} />
    ${entry.usage && html`<p class="usage" title=${origin(entry)}>${formatUsage(entry.usage)}</p>`}
  </article>`;
}

/** How an answer broke off, and the way to go on. */
function Ending({ entry, online, onAgain }) {
  const failed = entry.status === "failed";
  if (!failed && !ENDINGS[entry.status]) return null;
  const words = failed
    ? html`<${Markdown} text=${entry.error ?? "This answer failed."} settled=${true} />`
    : html`<p>${ENDINGS[entry.status]}</p>`;
  return html`<div class=${`ending ${entry.status}`} role=${failed ? "alert" : undefined}>
    ${words}
    ${entry.status !== "stopped" && html`<button
      type="button"
      class="link"
      disabled=${!online}
      onClick=${onAgain}
    >Try again</button>`}
  </div>`;
}

/**
 * Say that words are to come.
 * @param {{words?: string}} props
 * @returns {object} a vnode
 */
export function Waiting({ words = "Thinking…" }) {
  return html`<p class="waiting"><span class="pulse" aria-hidden="true"></span>${words}</p>`;
}

function origin({ model, at }) {
  return [model, formatTime(at)].filter(Boolean).join(" · ") || undefined;
}
