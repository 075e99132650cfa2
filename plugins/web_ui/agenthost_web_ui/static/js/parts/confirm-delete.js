/** Ask before an agent is deleted. */

import { html, useState } from "../html.js";
import { Dialog } from "./dialog.js";

/**
 * The question.
 * @param {{agent: object, actions: object, onClose: () => void}} props
 * @returns {object} a vnode
 */
export function ConfirmDelete({ agent, actions, onClose }) {
  const [problem, setProblem] = useState(null);
  const submit = () => actions.remove(agent.id).catch((error) => setProblem(error.message));
  const buttons = html`
    <button type="button" class="secondary" data-first onClick=${onClose}>Keep</button>
    <button type="submit" class="danger">Delete</button>
  `;
  return html`<${Dialog}
    title=${`Delete ${agent.name}?`}
    role="alertdialog"
    onClose=${onClose}
    onSubmit=${submit}
    buttons=${buttons}
    problem=${problem}
  >
    <p class="quiet">The agent stops and leaves the list. This cannot be undone here.</p>
  <//>`;
}
