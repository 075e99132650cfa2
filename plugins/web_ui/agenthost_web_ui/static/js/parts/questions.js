/** What a turn waits for: the question as text, its fields, yes and no. */

import { valuesOf } from "../approvals.js";
import { formatTime, fullText } from "../format.js";
import { html, useEffect, useRef, useState } from "../html.js";

const MOST_ROWS = 6;

/**
 * The open questions of a turn that waits.
 * @param {{turn: string, online: boolean, actions: object}} props
 * @returns {object} a vnode
 */
export function Questions({ turn, online, actions }) {
  const [asked, setAsked] = useState(null);
  const [problem, setProblem] = useState(null);
  const seen = useRef(new Map());
  const mine = useRef(new Set());
  for (const question of asked ?? []) seen.current.set(question.id, question);
  useEffect(() => () => tellOfOthers([...seen.current.values()], mine.current, actions), []);
  useEffect(() => {
    let stale = false;
    const show = (found) => {
      setAsked(found);
      // Nothing is open: the turn goes on, or was ended where nobody tells the page.
      if (found.length === 0) actions.reread();
    };
    actions.questions(turn).then(
      (found) => stale || show(found),
      (error) => stale || setProblem(error.message),
    );
    return () => {
      stale = true;
    };
  }, [turn, online]);
  const answered = (question) => setAsked(asked.filter((each) => each !== question));
  if (problem) {
    return html`<p class="question-state">Waiting for a person's approval. ${problem}</p>`;
  }
  if (!asked?.length) {
    const words = asked ? "Answered; it goes on." : "Waiting for a person's approval.";
    return html`<p class="question-state" role="status">${words}</p>`;
  }
  return asked.map((question) => html`<${Question}
    key=${question.id}
    question=${question}
    online=${online}
    actions=${actions}
    mine=${mine.current}
    onAnswered=${() => answered(question)}
  />`);
}

/** Another surface may have been first; whoever looks at the question is told. */
async function tellOfOthers(asked, mine, actions) {
  const others = asked.filter(({ id }) => !mine.has(id));
  const text = await actions.outcomes(others).catch(() => "");
  if (text) actions.set({ notice: { tone: "told", text } });
}

function Question({ question, online, actions, mine, onAnswered }) {
  const form = useRef(null);
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState(null);
  const [editing, setEditing] = useState(false);
  const decide = async (yes, remember = "once") => {
    const said = new FormData(form.current);
    setBusy(true);
    mine.add(question.id);
    setProblem(null);
    try {
      const texts = question.fields.map((_, place) => said.get(`field-${place}`));
      const values = yes && { values: valuesOf(question.fields, texts), remember };
      if (remember === "pattern") values.pattern = patternOf(question.pattern, said);
      await actions.decide(question, yes, values || { reason: said.get("reason").trim() });
      onAnswered();
    } catch (error) {
      mine.delete(question.id);
      setProblem(error.message);
      setBusy(false);
      // Somebody else may have answered, or it has ended.
      if (error.status === 409) actions.reread();
    }
  };
  // Enter in a field answers nothing: a yes is a button of its own.
  return html`<form
    ref=${form}
    class="question"
    aria-label=${`Question about ${question.tool}`}
    onSubmit=${(event) => event.preventDefault()}
  >
    <p class="question-text"><bdi>${question.text}</bdi></p>
    <${Asked} question=${question} />
    ${question.fields.map((field, place) => html`<${Field}
      key=${place}
      field=${field}
      name=${`field-${place}`}
    />`)}
    <label class="labelled">
      <span>Why not</span>
      <input name="reason" maxlength="1000" autocomplete="off" placeholder="The agent is told, with a no" />
    </label>
    ${editing && html`<${Pattern} pattern=${question.pattern} />`}
    ${problem && html`<p class="dialog-error" role="alert">${problem}</p>`}
    <div class="question-foot">
      <small>No answer until ${formatTime(question.deadline)} is a no.</small>
      <button
        type="button"
        class="secondary"
        disabled=${busy || !online}
        onClick=${() => decide(false)}
      >Deny</button>
      ${question.pattern && html`<${Lasting}
        editing=${editing}
        disabled=${busy || !online}
        onSession=${() => decide(true, "session")}
        onPattern=${() => (editing ? decide(true, "pattern") : setEditing(true))}
      />`}
      <button
        type="button"
        class="primary"
        disabled=${busy || !online}
        onClick=${() => form.current.reportValidity() && decide(true)}
      >Approve once</button>
    </div>
  </form>`;
}

/** A yes that holds for more than its call. */
function Lasting({ editing, disabled, onSession, onPattern }) {
  return html`<button
    type="button"
    class="secondary"
    disabled=${disabled}
    onClick=${onSession}
  >Allow for this session</button>
  <button
    type="button"
    class="secondary"
    disabled=${disabled}
    onClick=${onPattern}
  >${editing ? "Allow this pattern" : "Allow for a pattern…"}</button>`;
}

function Pattern({ pattern }) {
  return html`<fieldset class="question-pattern">
    <legend>Calls that fit are allowed for 30 days; * is anything.</legend>
    ${Object.entries(pattern).map(([name, text], place) => html`<label key=${name} class="labelled">
      <span><code>${name}</code></span>
      <textarea
        name=${`pattern-${place}`}
        rows=${Math.min(text.split("\n").length, MOST_ROWS)}
        spellcheck=${false}
        defaultValue=${text}
      ></textarea>
    </label>`)}
  </fieldset>`;
}

function patternOf(pattern, said) {
  // A form sends line ends as CRLF; the call had what it had.
  const written = (place) => said.get(`pattern-${place}`).replaceAll("\r\n", "\n");
  return Object.fromEntries(Object.keys(pattern).map((name, place) => [name, written(place)]));
}

function Asked({ question }) {
  const { tool, input, url } = question;
  return html`<details open class="question-call">
    <summary><code>${tool}</code></summary>
    <pre tabindex="0">${fullText(input)}</pre>
  </details>
  ${url && html`<p>
    Visit first: <a href=${url} target="_blank" rel="noopener noreferrer">${url}</a>
  </p>`}`;
}

function Field({ field, name }) {
  const { label, about, required } = field;
  return html`<label class="labelled">
    <span><bdi>${label}</bdi>${!required && html` <small>optional</small>`}</span>
    ${field.kind === "option" ? options(field, name) : entry(field, name)}
    ${about && html`<small>${about}</small>`}
  </label>`;
}

function options({ options: all, required, initial }, name) {
  const chosen = all.indexOf(initial);
  return html`<select name=${name} required=${required}>
    <option value="" selected=${chosen < 0}>${required ? "Choose…" : "(none)"}</option>
    ${all.map((value, place) => html`<option
      key=${place}
      value=${String(place)}
      selected=${place === chosen}
    >${wordOf(value)}</option>`)}
  </select>`;
}

function entry({ kind, required, initial, rules }, name) {
  const value = initial === undefined ? "" : String(initial);
  if (kind === "string") {
    return html`<input
      name=${name}
      autocomplete="off"
      required=${required && rules.minLength > 0}
      minlength=${rules.minLength}
      maxlength=${rules.maxLength}
      defaultValue=${value}
    />`;
  }
  return html`<input
    name=${name}
    type="number"
    required=${required}
    step=${kind === "integer" ? "1" : "any"}
    min=${rules.minimum}
    max=${rules.maximum}
    defaultValue=${value}
  />`;
}

function wordOf(value) {
  if (typeof value === "boolean") return value ? "yes" : "no";
  return String(value);
}
