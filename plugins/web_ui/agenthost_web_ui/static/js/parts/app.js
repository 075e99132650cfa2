/** The frame: agents at the side, the conversation, whatever asks for attention. */

import { html, useEffect } from "../html.js";
import { useMedia, useStore } from "../store.js";
import { Agents } from "./agents.js";
import { Banner, Notice } from "./banner.js";
import { Cards } from "./cards.js";
import { Chat } from "./chat.js";
import { ConfirmDelete } from "./confirm-delete.js";
import { CreateAgent } from "./create-agent.js";
import { KeyDialog } from "./key-dialog.js";
import { NoAgents, Welcome } from "./empty.js";

/**
 * The page.
 * @param {{store: object, actions: object}} props
 * @returns {object} a vnode
 */
export function App({ store, actions }) {
  const state = useStore(store);
  const narrow = useMedia("(max-width: 719px)");
  useEscape(store, actions);
  const close = () => actions.set({ dialog: null });
  return html`
    <div class="app">
      <${Agents} state=${state} actions=${actions} hidden=${narrow && !state.drawer} />
      ${narrow && state.drawer && html`<div
        class="backdrop"
        onClick=${() => actions.set({ drawer: false })}
      />`}
      <main class="main" inert=${narrow && state.drawer}>
        <${Banner} state=${state} actions=${actions} />
        <${Notice} state=${state} actions=${actions} />
        ${pane(state, actions)}
      </main>
    </div>
    ${state.keyWanted && html`<${KeyDialog} reason=${state.keyWanted} actions=${actions} />`}
    ${state.dialog?.kind === "create" && html`<${CreateAgent} actions=${actions} onClose=${close} />`}
    ${state.dialog?.kind === "cards" && html`<${Cards} actions=${actions} onClose=${close} />`}
    ${state.dialog?.kind === "delete" && html`<${ConfirmDelete}
      agent=${state.dialog.agent}
      actions=${actions}
      onClose=${close}
    />`}
  `;
}

function pane(state, actions) {
  const agent = state.agents?.find(({ id }) => id === state.selected);
  if (agent) return html`<${Chat} key=${agent.id} agent=${agent} state=${state} actions=${actions} />`;
  if (state.agents?.length === 0) return html`<${NoAgents} actions=${actions} />`;
  return html`<${Welcome} state=${state} actions=${actions} />`;
}

function useEscape(store, actions) {
  useEffect(() => {
    const onKey = (event) => {
      if (event.key !== "Escape" || event.defaultPrevented) return;
      if (document.querySelector("dialog[open]")) return;
      if (store.get().drawer) actions.set({ drawer: false });
      else actions.stop();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, [store]);
}
