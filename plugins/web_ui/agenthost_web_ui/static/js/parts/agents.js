/** The list of agents; a drawer on narrow screens. */

import { html, useEffect, useRef, useState } from "../html.js";
import { currentTheme, onSystemTheme, toggleTheme } from "../theme.js";
import { Icon } from "./icons.js";

/**
 * The side bar.
 * @param {{state: object, actions: object, hidden: boolean}} props `hidden` while the
 *   drawer is shut
 * @returns {object} a vnode
 */
export function Agents({ state, actions, hidden }) {
  const nav = useRef(null);
  useEffect(() => {
    if (state.drawer) nav.current.querySelector("button").focus();
  }, [state.drawer]);
  return html`<nav
    ref=${nav}
    class=${state.drawer ? "agents open" : "agents"}
    inert=${hidden}
    aria-label="Agents"
  >
    <header class="agents-head">
      <h1>Agents</h1>
      <button
        type="button"
        class="icon-button"
        aria-label="New agent"
        title="New agent"
        onClick=${() => actions.set({ dialog: { kind: "create" } })}
      ><${Icon} name="plus" /></button>
    </header>
    <ul class="agent-list">
      ${(state.agents ?? []).map((agent) => html`<${AgentRow}
        key=${agent.id}
        agent=${agent}
        chosen=${agent.id === state.selected}
        answering=${agent.id === state.selected && state.running}
        actions=${actions}
      />`)}
      ${state.agents?.length === 0 && html`<li class="quiet pad">None yet.</li>`}
    </ul>
    <footer class="agents-foot">
      <span>agenthost</span>
      <span class="agents-foot-actions">
        ${state.cards.length > 0 && html`<button
          type="button"
          class="icon-button"
          aria-label="Cards"
          title="Cards"
          onClick=${() => actions.set({ dialog: { kind: "cards" } })}
        ><${Icon} name="cards" /></button>`}
        <${ThemeButton} />
      </span>
    </footer>
  </nav>`;
}

function AgentRow({ agent, chosen, answering, actions }) {
  const condition = conditionOf(agent.state, answering);
  const choose = () => (chosen ? actions.set({ drawer: false }) : actions.select(agent.id));
  return html`<li>
    <button
      type="button"
      class="agent"
      aria-current=${chosen ? "true" : undefined}
      onClick=${choose}
    >
      <span class=${`dot ${condition.toLowerCase()}`} title=${condition} aria-hidden="true"></span>
      <span class="agent-words">
        <span class="agent-name">${agent.name}</span>
        <span class="agent-model">${agent.model_name}</span>
      </span>
      <span class="unseen">${condition}</span>
    </button>
  </li>`;
}

/** The daemon calls an agent Running that could answer; here that is no news. */
function conditionOf(state, answering) {
  if (answering) return "Answering";
  return state === "Running" ? "Ready" : state;
}

function ThemeButton() {
  const [theme, setTheme] = useState(currentTheme);
  useEffect(() => onSystemTheme(() => setTheme(currentTheme())), []);
  const other = theme === "dark" ? "light" : "dark";
  return html`<button
    type="button"
    class="icon-button"
    aria-label=${`Use the ${other} theme`}
    title=${`Use the ${other} theme`}
    onClick=${() => setTheme(toggleTheme())}
  ><${Icon} name=${theme === "dark" ? "sun" : "moon"} /></button>`;
}
