/** What the person said: shown, edited, asked again. */

import { html, useLayoutEffect, useRef, useState } from "../html.js";
import { SentFiles } from "./files.js";
import { Icon } from "./icons.js";

/**
 * A message of the person. Both ways to say it anew begin another conversation with what
 * stands before it; this one stays in the list.
 * @param {{entry: object, idle: boolean, actions: object}} props `idle` while nothing of
 *   the conversation goes on
 * @returns {object} a vnode
 */
export function Said({ entry, idle, actions }) {
  const [editing, setEditing] = useState(false);
  const stored = entry.turn && !entry.pending && !entry.remark;
  const anew = (text) => actions.sayAnew(entry.turn, text, entry.files);
  if (editing) {
    const onDone = (text) => {
      setEditing(false);
      if (text) anew(text);
    };
    return html`<article class="entry user" aria-label="You">
      <${Editor} text=${entry.text} idle=${idle} onDone=${onDone} />
    </article>`;
  }
  return html`<article class="entry user" aria-label="You">
    ${entry.files?.length > 0 && html`<${SentFiles} files=${entry.files} actions=${actions} />`}
    ${entry.text && html`<p>${entry.text}</p>`}
    ${stored && html`<div class="message-tools">
      <${Tool} name="pencil" words="Edit this message" idle=${idle} onClick=${() => setEditing(true)} />
      <${Tool} name="again" words="Ask again" idle=${idle} onClick=${() => anew(entry.text)} />
    </div>`}
  </article>`;
}

function Tool({ name, words, idle, onClick }) {
  return html`<button
    type="button"
    class="icon-button"
    aria-label=${words}
    title=${words}
    disabled=${!idle}
    onClick=${onClick}
  ><${Icon} name=${name} /></button>`;
}

function Editor({ text, idle, onDone }) {
  const field = useRef(null);
  useLayoutEffect(() => field.current.focus(), []);
  const onKeyDown = (event) => {
    if (event.key !== "Escape") return;
    // It ends the edit, and nothing that runs.
    event.preventDefault();
    onDone(null);
  };
  return html`<form
    class="edit-message"
    onSubmit=${(event) => {
      event.preventDefault();
      onDone(field.current.value.trim());
    }}
  >
    <textarea
      ref=${field}
      rows=${Math.min(10, text.split("\n").length + 1)}
      aria-label="Edit this message"
      required
      defaultValue=${text}
      onKeyDown=${onKeyDown}
    ></textarea>
    <p class="quiet">A new conversation begins here; this one stays in the list.</p>
    <div class="dialog-actions">
      <button type="button" class="secondary" onClick=${() => onDone(null)}>Cancel</button>
      <button type="submit" class="primary" disabled=${!idle}>Send</button>
    </div>
  </form>`;
}
