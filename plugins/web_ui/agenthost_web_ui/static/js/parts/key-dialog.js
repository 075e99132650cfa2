/** Ask for the API key. */

import { html, useState } from "../html.js";
import { Dialog } from "./dialog.js";

/**
 * The key dialog; it goes when the daemon accepts the key.
 * @param {{reason: "missing" | "rejected", actions: object}} props
 * @returns {object} a vnode
 */
export function KeyDialog({ reason, actions }) {
  const [key, setKey] = useState("");
  const [busy, setBusy] = useState(false);
  const submit = async () => {
    if (!key.trim()) return;
    setBusy(true);
    await actions.useKey(key.trim());
    setBusy(false);
  };
  const rejected = reason === "rejected" && !busy;
  return html`<${Dialog}
    title="API key"
    onSubmit=${submit}
    buttons=${html`<button type="submit" class="primary" disabled=${busy}>Continue</button>`}
    problem=${rejected ? "The daemon did not accept this key." : null}
  >
    <p class="quiet">
      This daemon is protected. Its key is the <code>api_key</code> of its configuration.
      The page keeps it in this tab only, until you close it.
    </p>
    <label class="labelled">
      <span>Key</span>
      <input
        type="password"
        autocomplete="off"
        spellcheck=${false}
        required
        data-first
        value=${key}
        onInput=${(event) => setKey(event.currentTarget.value)}
      />
    </label>
  <//>`;
}
