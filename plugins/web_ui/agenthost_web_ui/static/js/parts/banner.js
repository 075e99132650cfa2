/** What must not be missed: the line is down, or something went wrong. */

import { html } from "../html.js";

/**
 * Say that the server is away; it goes by itself when the line is back.
 * @param {{state: object, actions: object}} props
 * @returns {object | null} a vnode
 */
export function Banner({ state, actions }) {
  const lost = state.link === "lost";
  if (!lost && !state.unreachable) return null;
  const again = lost ? actions.retry : actions.refresh;
  return html`<div class="banner" role="alert">
    <span>Offline. Trying to reach the server…</span>
    <button type="button" class="link" onClick=${() => again()}>Try now</button>
  </div>`;
}

/**
 * Show the last complaint or warning until it is dismissed.
 * @param {{state: object, actions: object}} props
 * @returns {object | null} a vnode
 */
export function Notice({ state, actions }) {
  if (!state.notice) return null;
  const { tone, text } = state.notice;
  return html`<div class=${`banner ${tone}`} role="alert">
    <span>${text}</span>
    <button type="button" class="link" onClick=${() => actions.set({ notice: null })}>Dismiss</button>
  </div>`;
}
