/** One entry of a conversation. */

import { isLive } from "../conversation.js";
import { formatTime, formatUsage } from "../format.js";
import { html, useMemo } from "../html.js";
import { Markdown } from "./markdown.js";
import { Questions } from "./questions.js";
import { Said } from "./said.js";
import { Sources } from "./sources.js";
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
  const idle = running && isIdle(entry.parts[last]);
  return html`<article class="entry answer" aria-label="Agent">
    ${entry.parts.map((part, index) => drawPart(part, index, { running, waits, followed: index < last }))}
    ${idle && !waits && html`<${Waiting} />`}
    ${waits && html`<${Questions} turn=${entry.turn} online=${online} actions=${actions} />`}
    <${Sources} citations=${entry.citations} />
    ${MARKS[entry.finish] && html`<p class="mark">${MARKS[entry.finish]}</p>`}
    <${Ending} entry=${entry} online=${online} onAgain=${() => actions.resume(entry.turn)} />
    ${entry.usage && html`<p class="usage" title=${origin(entry)}>${formatUsage(entry.usage)}</p>`}
  </article>`;
}

function isIdle(last) {
  return last === undefined || last.kind === "thought" || (last.kind === "tool" && last.done);
}

function drawPart(part, index, { running, waits, followed }) {
  if (part.kind === "thought") return html`<${Thought} key=${index} text=${part.text} />`;
  if (part.kind === "tool") {
    return html`<${ToolCard} key=${index} part=${part} ended=${!running} waits=${waits} />`;
  }
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
