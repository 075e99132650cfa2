/** The message field: sends, stops, and offers the chat commands. */

import { matchingCommands } from "../commands.js";
import { formatTotals } from "../format.js";
import { html, useEffect, useId, useLayoutEffect, useRef, useState } from "../html.js";
import { useStore } from "../store.js";
import { AttachButton, DraftFiles } from "./files.js";
import { Icon } from "./icons.js";

const TALLEST_PX = 220;

/**
 * The message field of an agent.
 * @param {{agent: object, state: object, actions: object}} props
 * @returns {object} a vnode
 */
export function Composer({ agent, state, actions }) {
  useStore(actions.drafts.store);
  const { text: draft, problem, files } = actions.drafts.of(agent.id);
  const setDraft = (text) => actions.drafts.write(agent.id, text);
  const field = useField(draft);
  const menu = useCommandMenu(draft, setDraft, state.commands);
  const open = menu.commands.length > 0;
  const online = state.link === "open";
  const whole = files.every((file) => file.state === "ready");
  const something = (draft.trim() || files.length > 0) && whole;
  const submit = () => {
    const command = draft.trim() === "/stop";
    if (!something || (state.running && !command)) return;
    if (actions.send(draft.trim(), files)) actions.drafts.sent(agent.id);
  };
  const onFiles = (chosen) => actions.attach(agent.id, chosen);
  const onPaste = (event) => {
    const pasted = event.clipboardData.files;
    if (pasted.length === 0) return;
    event.preventDefault();
    onFiles(pasted);
  };
  const onKeyDown = (event) => {
    if (event.isComposing || menu.onKeyDown(event)) return;
    if (event.key !== "Enter" || event.shiftKey) return;
    event.preventDefault();
    submit();
  };
  return html`<form
    class="composer"
    onSubmit=${(event) => {
      event.preventDefault();
      submit();
    }}
  >
    <${CommandList} menu=${menu} />
    ${problem && html`<p class="problem" role="alert">${problem}</p>`}
    <${DraftFiles} files=${files} onRemove=${(file) => actions.detach(agent.id, file)} />
    <div class="field">
      <${AttachButton} onFiles=${onFiles} />
      <textarea
        ref=${field}
        rows="1"
        value=${draft}
        placeholder=${`Message ${agent.name}`}
        aria-label=${`Message ${agent.name}`}
        aria-haspopup="listbox"
        aria-controls=${open ? menu.id : undefined}
        aria-activedescendant=${open ? `${menu.id}-${menu.index}` : undefined}
        aria-autocomplete="list"
        autocomplete="off"
        onInput=${(event) => setDraft(event.currentTarget.value)}
        onKeyDown=${onKeyDown}
        onPaste=${onPaste}
      ></textarea>
      ${state.running && online ? html`<${StopButton} state=${state} actions=${actions} />` : html`<button
        type="submit"
        class="round"
        aria-label="Send"
        title="Send"
        disabled=${!something || state.loading || !online}
      ><${Icon} name="send" /></button>`}
    </div>
    <${Foot} state=${state} />
  </form>`;
}

function StopButton({ state, actions }) {
  return html`<button
    type="button"
    class="round stop"
    aria-label="Stop"
    title="Stop (Escape)"
    disabled=${state.stopping}
    onClick=${() => actions.stop()}
  ><span class="square"></span></button>`;
}

function Foot({ state }) {
  const { totals, running, stopping } = state;
  const hint = running
    ? html`<kbd>Esc</kbd> stops`
    : html`<kbd>Enter</kbd> sends, <kbd>Shift</kbd>+<kbd>Enter</kbd> new line, <kbd>/</kbd> commands`;
  return html`<div class="composer-foot">
    <span class="keys">${stopping ? "Stopping…" : hint}</span>
    ${totals.input + totals.output > 0 && html`<span title="Since this page was opened">
      ${formatTotals(totals)}
    </span>`}
  </div>`;
}

/** Grow with the text, and take the focus where a keyboard is likely. */
function useField(draft) {
  const field = useRef(null);
  useLayoutEffect(() => {
    const { style } = field.current;
    style.height = "auto";
    style.height = `${Math.min(field.current.scrollHeight, TALLEST_PX)}px`;
  }, [draft]);
  useEffect(() => {
    if (matchMedia("(hover: hover)").matches) field.current.focus();
  }, []);
  return field;
}

function useCommandMenu(draft, setDraft, known) {
  const id = useId();
  const [index, setIndex] = useState(0);
  const [shut, setShut] = useState("");
  const commands = shut === draft ? [] : matchingCommands(draft, known);
  useEffect(() => setIndex(0), [draft]);
  const pick = (command) => {
    const text = command.argument ? `${command.name} ` : command.name;
    setDraft(text);
    setShut(text);
  };
  const onKeyDown = (event) => {
    if (commands.length === 0) return false;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const exact = commands.some(({ name }) => name === draft);
    if (step) setIndex((index + step + commands.length) % commands.length);
    else if (event.key === "Escape") setShut(draft);
    else if (event.key === "Tab" || (event.key === "Enter" && !exact)) pick(commands[index]);
    else return false;
    event.preventDefault();
    return true;
  };
  return { id, commands, index, pick, onKeyDown };
}

function CommandList({ menu }) {
  if (menu.commands.length === 0) return null;
  return html`<ul class="commands" id=${menu.id} role="listbox" aria-label="Commands">
    ${menu.commands.map((command, index) => html`<li
      key=${command.name}
      id=${`${menu.id}-${index}`}
      role="option"
      aria-selected=${index === menu.index ? "true" : "false"}
      onMouseDown=${(event) => {
        event.preventDefault();
        menu.pick(command);
      }}
    >
      <code>${command.name} ${command.argument}</code><span>${command.help}</span>
    </li>`)}
  </ul>`;
}
