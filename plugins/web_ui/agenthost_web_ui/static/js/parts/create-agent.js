/** Create an agent: name, description, instructions, model, tools. */

import { html, useEffect, useState } from "../html.js";
import { DEFAULT_TOOLS } from "../manifest.js";
import { Dialog } from "./dialog.js";

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
  const buttons = html`
    <button type="button" class="secondary" onClick=${onClose}>Cancel</button>
    <button type="submit" class="primary" disabled=${busy || !offers}>Create</button>
  `;
  return html`<${Dialog}
    title="New agent"
    onClose=${onClose}
    onSubmit=${submit}
    buttons=${buttons}
    problem=${problem}
  >
    <${Words} draft=${draft} change=${change} />
    <${ModelChoice} offers=${offers} chosen=${draft.model} change=${change} />
    <${ToolChoice} offers=${offers} chosen=${draft.tools} change=${change} />
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

function ModelChoice({ offers, chosen, change }) {
  if (!offers?.models.length) return null;
  const choose = (event) => {
    const { selectedOptions } = event.currentTarget;
    const { provider, id } = selectedOptions[0].dataset;
    change({ model: id ? { provider, id } : null });
  };
  const group = offers.models.find(({ provider }) => provider === chosen?.provider);
  return html`<label class="labelled">
    <span>Model</span>
    <select onChange=${choose}>
      <option>${offers.standard ? `Default (${offers.standard})` : "Default"}</option>
      ${offers.models.map((group) => html`<${ModelGroup} key=${group.provider} group=${group} />`)}
    </select>
    ${group?.usable === false && html`<small>${missingKey(group)}</small>`}
  </label>`;
}

function ModelGroup({ group }) {
  const { provider, label, usable, models } = group;
  return html`<optgroup label=${usable ? label : `${label} (no API key)`}>
    ${models.map((model) => html`<option
      key=${model.id}
      data-provider=${provider}
      data-id=${model.id}
    >${model.label}</option>`)}
  </optgroup>`;
}

function missingKey({ label, variable }) {
  const remedy = variable ? ` Set ${variable} where the daemon runs.` : "";
  return `The daemon has no API key for ${label}; until it has, the agent cannot answer.${remedy}`;
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
    <p class="help">${helpOn(offers?.tools ?? [])}</p>
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
  </fieldset>`;
}

const HELP = [
  { tools: ["web_fetch", "web_search"], words: "Web tools get network access." },
  { tools: ["shell_exec"], words: "shell_exec runs commands on the daemon's machine." },
];

/** What to know before a box is ticked, of the tools that there are. */
function helpOn(tools) {
  const names = tools.map(({ name }) => name);
  const fitting = HELP.filter((row) => row.tools.some((name) => names.includes(name)));
  const sentences = ["The agent can do nothing but what is ticked."];
  return [...sentences, ...fitting.map(({ words }) => words)].join(" ");
}
