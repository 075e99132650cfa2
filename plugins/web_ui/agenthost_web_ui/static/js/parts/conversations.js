/** The conversations of an agent: find one, go on in it, rename it, put it away. */

import { formatTime } from "../format.js";
import { html, useEffect, useRef, useState } from "../html.js";
import { Dialog } from "./dialog.js";
import { Icon } from "./icons.js";

const TYPING_MS = 250;

/**
 * The list, as a dialog.
 * @param {{agent: object, busy: boolean, actions: object, onClose: () => void}} props
 *   `busy` while the agent answers: going elsewhere would stop it
 * @returns {object} a vnode
 */
export function Conversations({ agent, busy, actions, onClose }) {
  const [query, setQuery] = useState("");
  const [rows, setRows] = useState(null);
  const [problem, setProblem] = useState(null);
  const [asked, setAsked] = useState(0);
  useEffect(() => {
    let stale = false;
    const look = () =>
      actions
        .conversations(agent.id, query)
        .then((found) => stale || setRows(found))
        .catch((error) => stale || setProblem(error.message));
    const typing = setTimeout(look, query ? TYPING_MS : 0);
    return () => {
      stale = true;
      clearTimeout(typing);
    };
  }, [agent.id, query, asked]);
  const attempt = (promise) =>
    promise.then(() => setProblem(null)).catch((error) => setProblem(error.message));
  const change = (id, changes) =>
    attempt(actions.changeConversation(id, changes).then(() => setAsked(asked + 1)));
  const buttons = html`
    <button type="button" class="secondary" onClick=${onClose}>Close</button>
    <button type="submit" class="primary" disabled=${busy}>New conversation</button>
  `;
  return html`<${Dialog}
    title=${`Conversations with ${agent.name}`}
    onClose=${onClose}
    onSubmit=${() => attempt(actions.beginConversation(agent.id))}
    buttons=${buttons}
    problem=${problem ?? (busy ? "The agent is answering; stop it first to go elsewhere." : null)}
  >
    <input
      type="search"
      data-first
      aria-label="Search conversations"
      placeholder="Search titles and messages"
      maxlength="200"
      value=${query}
      onInput=${(event) => setQuery(event.target.value)}
      onKeyDown=${(event) => event.key === "Enter" && event.preventDefault()}
    />
    <ul class="conversations">
      ${rows?.map((row) => html`<${Row}
        key=${row.id}
        row=${row}
        busy=${busy}
        onGoOn=${() => attempt(actions.goOnIn(agent.id, row.id))}
        onChange=${(changes) => change(row.id, changes)}
      />`)}
      ${rows?.length === 0 && html`<li class="quiet">Nothing found.</li>`}
    </ul>
  <//>`;
}

function Row({ row, busy, onGoOn, onChange }) {
  const [naming, setNaming] = useState(false);
  const title = row.title || "Untitled";
  if (naming) {
    const done = (title) => {
      setNaming(false);
      if (title?.trim() && title !== row.title) onChange({ title });
    };
    return html`<li class="conversation"><${NameField} title=${row.title} onDone=${done} /></li>`;
  }
  return html`<li class="conversation">
    <button
      type="button"
      class="conversation-open"
      aria-current=${row.current ? "true" : undefined}
      disabled=${busy && !row.current}
      onClick=${onGoOn}
    >
      <span class="conversation-title"><bdi>${title}</bdi></span>
      <span class="quiet">${aboutOf(row)}</span>
    </button>
    <button
      type="button"
      class="icon-button"
      aria-label=${`Rename ${title}`}
      title="Rename"
      onClick=${() => setNaming(true)}
    ><${Icon} name="pencil" /></button>
    ${!row.current && html`<button
      type="button"
      class="icon-button"
      aria-label=${`${row.archived ? "Take out of the archive" : "Archive"}: ${title}`}
      title=${row.archived ? "Take out of the archive" : "Archive"}
      onClick=${() => onChange({ archived: !row.archived })}
    ><${Icon} name=${row.archived ? "takeOut" : "archive"} /></button>`}
  </li>`;
}

function NameField({ title, onDone }) {
  const field = useRef(null);
  const told = useRef(false);
  useEffect(() => field.current.select(), []);
  const tell = (words) => {
    // Leaving the page, the field loses the focus too.
    if (!told.current) onDone(words);
    told.current = true;
  };
  const onKeyDown = (event) => {
    if (event.key !== "Enter" && event.key !== "Escape") return;
    // The dialog is not sent by this Enter, and not closed by this Escape.
    event.preventDefault();
    event.stopPropagation();
    tell(event.key === "Enter" ? event.target.value : null);
  };
  return html`<input
    ref=${field}
    aria-label="Title"
    maxlength="200"
    value=${title}
    onKeyDown=${onKeyDown}
    onBlur=${(event) => tell(event.target.value)}
  />`;
}

function aboutOf({ current, archived, message_count: count, updated_at: at }) {
  const words = [formatTime(at), count === 1 ? "1 message" : `${count} messages`];
  if (current) words.push("open now");
  if (archived) words.push("archived");
  return words.join(" · ");
}
