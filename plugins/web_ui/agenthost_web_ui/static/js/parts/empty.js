/** Empty states: each says what to do next. */

import { html } from "../html.js";
import { Icon } from "./icons.js";

const SUGGESTIONS = [
  { tool: "calculate", text: "calculate (17 + 4) * 2" },
  { tool: "file_list", text: "list files in ." },
  { tool: "kv_set", text: "remember colour is blue" },
  { tool: "system_time", text: "What time is it?" },
];

/**
 * The daemon has no agents.
 * @param {{actions: object}} props
 * @returns {object} a vnode
 */
export function NoAgents({ actions }) {
  return html`<${Bare} actions=${actions}>
    <div class="empty">
      <span class="empty-mark"><${Icon} name="chat" /></span>
      <h2>Create your first agent</h2>
      <p>
        An agent is a model with a name, instructions and the tools you allow it.
        Once it exists you can talk to it here.
      </p>
      <button
        type="button"
        class="primary"
        onClick=${() => actions.set({ dialog: { kind: "create" } })}
      >Create an agent</button>
    </div>
  <//>`;
}

/**
 * Nothing is chosen: still loading, waiting for the key, or after a failure.
 * @param {{state: object, actions: object}} props
 * @returns {object} a vnode
 */
export function Welcome({ state, actions }) {
  const words = state.agents ? "Choose an agent to talk to." : "Connecting…";
  return html`<${Bare} actions=${actions}>
    <div class="empty"><p class="quiet" role="status">${state.keyWanted ? "" : words}</p></div>
  <//>`;
}

/**
 * A conversation that has not begun.
 * @param {{agent: object, state: object, onPick: (text: string) => void}} props
 * @returns {object} a vnode
 */
export function Fresh({ agent, state, onPick }) {
  const { detail, link } = state;
  const tools = detail?.capabilities?.tools ?? [];
  const fitting = SUGGESTIONS.filter(({ tool }) => tools.includes(tool)).slice(0, 3);
  const texts = ["What can you do?", ...fitting.map(({ text }) => text)];
  return html`<div class="empty">
    <h2>Talk to ${agent.name}</h2>
    ${detail?.description && html`<p>${detail.description}</p>`}
    <p class="quiet">Write a message below, or begin with one of these.</p>
    <div class="chips">
      ${texts.map((text) => html`<button
        type="button"
        class="chip"
        key=${text}
        disabled=${link !== "open"}
        onClick=${() => onPick(text)}
      >${text}</button>`)}
    </div>
  </div>`;
}

function Bare({ actions, children }) {
  return html`
    <header class="chat-head only-narrow"><${MenuButton} actions=${actions} /></header>
    <div class="middle">${children}</div>
  `;
}

/**
 * Open the drawer; seen on narrow screens only.
 * @param {{actions: object}} props
 * @returns {object} a vnode
 */
export function MenuButton({ actions }) {
  return html`<button
    type="button"
    class="icon-button only-narrow"
    aria-label="Show agents"
    onClick=${() => actions.set({ drawer: true })}
  ><${Icon} name="menu" /></button>`;
}
