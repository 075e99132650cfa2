/** One conversation: its head, its entries, its message field. */

import { isLive } from "../conversation.js";
import { html, useLayoutEffect, useRef, useState } from "../html.js";
import { Composer } from "./composer.js";
import { Fresh, MenuButton } from "./empty.js";
import { Entry, Waiting } from "./entry.js";
import { Icon } from "./icons.js";

const NEAR_PX = 80;

/**
 * The conversation with an agent.
 * @param {{agent: object, state: object, actions: object}} props
 * @returns {object} a vnode
 */
export function Chat({ agent, state, actions }) {
  const { entries, running, loading } = state;
  const scroll = useStickyScroll(entries);
  useLayoutEffect(() => {
    document.title = `${agent.name} · agenthost`;
  }, [agent.name]);
  const fresh = !loading && entries.length === 0;
  const online = state.link === "open";
  const idle = online && !loading && !entries.some(isLive);
  const waiting = running && entries.at(-1)?.role === "user";
  return html`
    <${Head} agent=${agent} actions=${actions} />
    <div class="scroll" ref=${scroll.box} onScroll=${scroll.onScroll} tabindex="-1">
      ${fresh && html`<${Fresh} agent=${agent} state=${state} onPick=${(text) => actions.send(text)} />`}
      <div
        class="column"
        role="log"
        aria-label=${`Conversation with ${agent.name}`}
        aria-busy=${running ? "true" : "false"}
      >
        ${entries.map((entry) => html`<${Entry}
          key=${entry.id}
          entry=${entry}
          online=${online}
          idle=${idle && entry.role === "user"}
          actions=${actions}
        />`)}
        ${waiting && html`<${Waiting} />`}
      </div>
    </div>
    ${scroll.away && html`<button
      type="button"
      class="to-end"
      aria-label="Go to the latest message"
      onClick=${scroll.toEnd}
    ><${Icon} name="down" /></button>`}
    <${Composer} agent=${agent} state=${state} actions=${actions} />
  `;
}

function Head({ agent, actions }) {
  return html`<header class="chat-head">
    <${MenuButton} actions=${actions} />
    <div class="chat-title">
      <h2>${agent.name}</h2>
      <p>${agent.model_provider} / ${agent.model_name}</p>
    </div>
    <button
      type="button"
      class="icon-button"
      aria-label=${`Conversations with ${agent.name}`}
      title="Conversations"
      onClick=${() => actions.set({ dialog: { kind: "conversations", agent } })}
    ><${Icon} name="chat" /></button>
    <button
      type="button"
      class="icon-button"
      aria-label=${`Delete ${agent.name}`}
      title="Delete this agent"
      onClick=${() => actions.set({ dialog: { kind: "delete", agent } })}
    ><${Icon} name="trash" /></button>
  </header>`;
}

/** Stay at the end while the person is there; never pull them back from reading. */
function useStickyScroll(entries) {
  const box = useRef(null);
  const stuck = useRef(true);
  const top = useRef(0);
  const [away, setAway] = useState(false);
  const said = entries.findLast((entry) => entry.sent)?.sent;
  const toEnd = () => {
    stuck.current = true;
    box.current.scrollTop = box.current.scrollHeight;
    setAway(false);
  };
  // Only what this person says takes them to the end; others may talk while they read.
  useLayoutEffect(toEnd, [said]);
  useLayoutEffect(() => {
    const follow = new ResizeObserver(() => stuck.current && toEnd());
    for (const part of [box.current, box.current.lastElementChild]) follow.observe(part);
    return () => follow.disconnect();
  }, []);
  const onScroll = () => {
    const { scrollHeight, scrollTop, clientHeight } = box.current;
    const near = scrollHeight - scrollTop - clientHeight < NEAR_PX;
    // Words may arrive between our own scrolling and this call: only the way up leaves.
    stuck.current = near || (stuck.current && scrollTop >= top.current);
    top.current = scrollTop;
    setAway(!stuck.current);
  };
  return { box, away, onScroll, toEnd };
}
