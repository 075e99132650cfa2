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
  return html`<div class="markdown" ref=${box} dangerouslySetInnerHTML=${safe}></div>`;
}

function addCopy(block) {
  if (block.parentElement.classList.contains("code")) return;
  const frame = document.createElement("div");
  frame.className = "code";
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.addEventListener("click", () => copy(block, button));
  block.tabIndex = 0;
  block.replaceWith(frame);
  frame.append(block, button);
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
