/** Markdown in the page, with a copy button at each code block. */

import { html, useEffect, useMemo, useRef } from "../html.js";
import { renderMarkdown } from "../markdown.js";

const THANKS_MS = 1_500;

/**
 * Rendered Markdown.
 * @param {{text: string, settled: boolean}} props `settled` once no more text follows
 * @returns {object} a vnode
 */
export function Markdown({ text, settled }) {
  const box = useRef(null);
  const safe = useMemo(() => ({ __html: renderMarkdown(text) }), [text]);
  useEffect(() => {
    if (settled) for (const block of box.current.querySelectorAll("pre")) addCopy(block);
  }, [safe, settled]);
  const kind = settled ? "markdown" : "markdown live";
  return html`<div class=${kind} ref=${box} dangerouslySetInnerHTML=${safe}></div>`;
}

function addCopy(block) {
  if (block.parentElement.classList.contains("code")) return;
  const language = /language-(\S+)/.exec(block.querySelector("code")?.className ?? "")?.[1];
  const button = element("button", "copy", "Copy");
  button.type = "button";
  button.addEventListener("click", () => copy(block, button));
  const bar = element("div", "code-bar");
  bar.append(element("span", "", language ?? ""), button);
  const frame = element("div", "code");
  block.tabIndex = 0;
  block.replaceWith(frame);
  frame.append(bar, block);
}

function element(name, className, text = "") {
  const made = document.createElement(name);
  made.className = className;
  made.textContent = text;
  return made;
}

async function copy(block, button) {
  const copied = await toClipboard(block).catch(() => false);
  button.textContent = copied ? "Copied" : "Select and copy";
  setTimeout(() => {
    button.textContent = "Copy";
  }, THANKS_MS);
}

/** The clipboard needs a secure page; elsewhere the code is at least selected. */
async function toClipboard(block) {
  if (navigator.clipboard) {
    await navigator.clipboard.writeText(block.textContent);
    return true;
  }
  getSelection().selectAllChildren(block);
  return false;
}
