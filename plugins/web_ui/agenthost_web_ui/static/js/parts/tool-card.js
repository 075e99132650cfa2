/** A tool call: one line, opened for input and result. */

import { briefInput, fullText } from "../format.js";
import { html } from "../html.js";
import { Icon } from "./icons.js";

const STANDS_IN = "Waiting for a person's approval";

/**
 * The card of a tool call.
 * @param {{part: object, ended: boolean, waits: boolean}} props `ended` when the turn is
 *   over, `waits` while it waits for a person
 * @returns {object} a vnode
 */
export function ToolCard({ part, ended, waits }) {
  const state = stateOf(part, ended, waits);
  return html`<details class=${`tool ${state.kind}`}>
    <summary>
      <span class="tool-icon"><${Icon} name="tool" /></span>
      <span class="tool-name">${part.tool}</span>
      <span class="tool-brief">${briefInput(part.input)}</span>
      <span class="tool-state">${state.words}</span>
      <span class="tool-chevron"><${Icon} name="chevron" /></span>
    </summary>
    <div class="tool-body">
      <h3>Input</h3>
      <pre tabindex="0">${fullText(part.input ?? {})}</pre>
      ${part.done && html`<h3>${part.isError ? "Error" : "Result"}</h3>
        <pre tabindex="0">${fullText(part.result) || "(empty)"}</pre>`}
    </div>
  </details>`;
}

function stateOf(part, ended, waits) {
  // Until it goes on, words stand in for the result; they alone tell it from one.
  if (waits && String(part.result ?? "").startsWith(STANDS_IN)) {
    return { kind: "waits", words: "waiting" };
  }
  if (part.done) {
    return part.isError ? { kind: "failed", words: "failed" } : { kind: "done", words: "done" };
  }
  return ended ? { kind: "cut", words: "not finished" } : { kind: "busy", words: "running" };
}
