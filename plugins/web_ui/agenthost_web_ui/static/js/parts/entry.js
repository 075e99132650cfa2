/** One entry of a conversation. */

import { isLive } from "../conversation.js";
import { formatTime, formatUsage } from "../format.js";
import { html, useMemo } from "../html.js";
import { Markdown } from "./markdown.js";
import { Thought } from "./thought.js";
import { ToolCard } from "./tool-card.js";

const ENDINGS = {
  stopped: "Stopped.",
  interrupted: "This answer was interrupted.",
};

const MARKS = {
  length: "Cut off at the length limit.",
  content_filter: "Ended by the provider's content rules.",
};

/**
 * An entry; drawn again only when it changed.
 * @param {{entry: object, online: boolean, onAgain: (turn: string) => void}} props
 *   `onAgain` runs a turn again that broke off
 * @returns {object} a vnode
 */
export function Entry({ entry, online, onAgain }) {
  return useMemo(() => draw(entry, online, onAgain), [entry, online, onAgain]);
}

function draw(entry, online, onAgain) {
  if (entry.role === "user") {
    return html`<article class="entry user" aria-label="You"><p>${entry.text}</p></article>`;
  }
  if (entry.role === "note") {
    return html`<div class=${`entry note ${entry.tone}`} role=${entry.tone === "error" ? "alert" : "note"}>
      <${Markdown} text=${entry.text} settled=${true} />
    </div>`;
  }
  const again = () => onAgain(entry.turn);
  return html`<${Answer} entry=${entry} online=${online} onAgain=${again} />`;
}

function Answer({ entry, online, onAgain }) {
  const running = isLive(entry);
  const last = entry.parts.length - 1;
  const idle = running && isIdle(entry.parts[last]);
  return html`<article class="entry answer" aria-label="Agent">
    ${entry.parts.map((part, index) => drawPart(part, index, running, index < last))}
    ${idle && html`<${Waiting} words=${entry.status === "waiting" ? "Waiting…" : "Thinking…"} />`}
    ${MARKS[entry.finish] && html`<p class="mark">${MARKS[entry.finish]}</p>`}
    <${Ending} entry=${entry} online=${online} onAgain=${onAgain} />
    ${entry.usage && html`<p class="usage" title=${origin(entry)}>${formatUsage(entry.usage)}</p>`}
  </article>`;
}

function isIdle(last) {
  return last === undefined || last.kind === "thought" || (last.kind === "tool" && last.done);
}

function drawPart(part, index, running, followed) {
  if (part.kind === "thought") return html`<${Thought} key=${index} text=${part.text} />`;
  if (part.kind === "tool") return html`<${ToolCard} key=${index} part=${part} ended=${!running} />`;
  return html`<${Markdown} key=${index} text=${part.text} settled=${!running || followed} />`;
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
