/** What a model thought: one line, opened to be read. */

import { html } from "../html.js";
import { Icon } from "./icons.js";

/**
 * The folded block of a thought; it looks as a tool call does.
 * @param {{text: string}} props
 * @returns {object} a vnode
 */
export function Thought({ text }) {
  return html`<details class="tool thought">
    <summary>
      <span class="tool-name">Thoughts</span>
      <span class="tool-brief">${text.slice(0, 200)}</span>
      <span class="tool-chevron"><${Icon} name="chevron" /></span>
    </summary>
    <div class="tool-body"><pre tabindex="0">${text}</pre></div>
  </details>`;
}
