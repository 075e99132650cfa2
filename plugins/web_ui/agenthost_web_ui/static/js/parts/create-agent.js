/** Create an agent: name, description, instructions, model, tools. */

import { html, useEffect, useState } from "../html.js";
import { DEFAULT_TOOLS } from "../manifest.js";
import { Dialog, DialogError } from "./dialog.js";

const EMPTY = {
  name: "",
  description: "",
  systemPrompt: "You are a helpful assistant. Be brief and exact.",
  tools: [],
  model: null,
};

/**
 * The create dialog.
 * @param {{actions: object, onClose: () => void}} props
 * @returns {object} a vnode
 */
export function CreateAgent({ actions, onClose }) {
  const [draft, setDraft] = useState(EMPTY);
  const [offers, setOffers] = useState(null);
  const [problem, setProblem] = useState(null);
  const [busy, setBusy] = useState(false);
  const change = (patch) => setDraft((known) => ({ ...known, ...patch }));
  useEffect(() => {
    actions.offers().then((found) => {
      setOffers(found);
      const names = found.tools.map(({ name }) => name);
      change({ tools: DEFAULT_TOOLS.filter((name) => names.includes(name)) });
    }, (error) => setProblem(error.message));
  }, []);
  const submit = async () => {
    setBusy(true);
    try {
      await actions.create({ ...draft, name: draft.name.trim() });
    } catch (error) {
      setProblem(error.message);
      setBusy(false);
    }
  };
  return html`<${Dialog} title="New agent" onClose=${onClose} onSubmit=${submit}>
    <${Words} draft=${draft} change=${change} />
    <${ModelChoice} offers=${offers} change=${change} />
    <${ToolChoice} offers=${offers} chosen=${draft.tools} change=${change} />
    <${DialogError} text=${problem} />
    <div class="dialog-actions">
      <button type="button" class="secondary" onClick=${onClose}>Cancel</button>
      <button type="submit" class="primary" disabled=${busy || !offers}>Create</button>
    </div>
  <//>`;
}

function Words({ draft, change }) {
  const follow = (field) => (event) => change({ [field]: event.currentTarget.value });
  return html`
    <label class="labelled">
      <span>Name</span>
      <input
        required
        maxlength="64"
        autocomplete="off"
        spellcheck=${false}
        data-first
        placeholder="assistant"
        value=${draft.name}
        onInput=${follow("name")}
      />
      <small>Letters, digits, dots, dashes and underscores.</small>
    </label>
    <label class="labelled">
      <span>Description</span>
      <input
        autocomplete="off"
        placeholder="What it is for"
        value=${draft.description}
        onInput=${follow("description")}
      />
    </label>
    <label class="labelled">
      <span>System prompt</span>
      <textarea rows="4" value=${draft.systemPrompt} onInput=${follow("systemPrompt")}></textarea>
    </label>
  `;
}

function ModelChoice({ offers, change }) {
  if (!offers?.models.length) return null;
  const groups = Map.groupBy(offers.models, (model) => model.provider);
  const choose = (event) => {
    const chosen = offers.models[Number(event.currentTarget.value)];
    change({ model: chosen ? { provider: chosen.provider, id: chosen.id } : null });
  };
  return html`<label class="labelled">
    <span>Model</span>
    <select onChange=${choose}>
      <option value="-1">${offers.standard ? `Default (${offers.standard})` : "Default"}</option>
      ${[...groups].map(([provider, models]) => html`<optgroup key=${provider} label=${provider}>
        ${models.map((model) => html`<option key=${model.id} value=${offers.models.indexOf(model)}>
          ${model.display_name ?? model.id}
        </option>`)}
      </optgroup>`)}
    </select>
  </label>`;
}

function ToolChoice({ offers, chosen, change }) {
  const toggle = (name) => (event) =>
    change({
      tools: event.currentTarget.checked
        ? [...chosen, name]
        : chosen.filter((other) => other !== name),
    });
  return html`<fieldset class="tools">
    <legend>Tools <small>${chosen.length} allowed</small></legend>
    ${!offers && html`<p class="quiet">Loading…</p>`}
    <div class="tool-grid">
      ${offers?.tools.map(({ name, about }) => html`<label key=${name} title=${about}>
        <input
          type="checkbox"
          checked=${chosen.includes(name)}
          onChange=${toggle(name)}
        />
        <code>${name}</code>
      </label>`)}
    </div>
    <small>
      The agent can do nothing but what is ticked. Web tools get network access;
      the tool <code>shell_exec</code> runs commands on the daemon's machine.
    </small>
  </fieldset>`;
}
