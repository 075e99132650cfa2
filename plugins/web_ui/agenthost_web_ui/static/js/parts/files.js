/** Files of a message: those of a draft, and those that were sent. */

import { html, useEffect, useRef, useState } from "../html.js";
import { Icon } from "./icons.js";

const TAKEN = "image/png,image/jpeg,image/gif,image/webp,application/pdf,text/*,.md,.csv,.json";

/**
 * The button that attaches files; they may be dropped on the page, too.
 * @param {{onFiles: (files: FileList) => void}} props
 * @returns {object} a vnode
 */
export function AttachButton({ onFiles }) {
  const input = useRef(null);
  useDrop(onFiles);
  return html`<button
      type="button"
      class="round attach"
      aria-label="Attach files"
      title="Attach files (or drop, or paste them)"
      onClick=${() => input.current.click()}
    ><${Icon} name="clip" /></button>
    <input
      ref=${input}
      type="file"
      multiple
      hidden
      accept=${TAKEN}
      aria-label="Files to attach"
      onChange=${(event) => {
        onFiles(event.currentTarget.files);
        // The same file may be chosen again.
        event.currentTarget.value = "";
      }}
    />`;
}

/** A file that is dropped anywhere is attached; the browser would leave the page for it. */
function useDrop(onFiles) {
  const take = useRef(onFiles);
  take.current = onFiles;
  useEffect(() => {
    const holdsFiles = (event) => event.dataTransfer?.types.includes("Files");
    const onDragOver = (event) => holdsFiles(event) && event.preventDefault();
    const onDrop = (event) => {
      if (!holdsFiles(event)) return;
      event.preventDefault();
      if (!document.querySelector("dialog[open]")) take.current(event.dataTransfer.files);
    };
    addEventListener("dragover", onDragOver);
    addEventListener("drop", onDrop);
    return () => {
      removeEventListener("dragover", onDragOver);
      removeEventListener("drop", onDrop);
    };
  }, []);
}

/**
 * The files of a draft, each with a button that takes it out.
 * @param {{files: Array<object>, onRemove: (file: object) => void}} props
 * @returns {object | null} a vnode
 */
export function DraftFiles({ files, onRemove }) {
  if (files.length === 0) return null;
  return html`<ul class="files" aria-label="Attached files">
    ${files.map((file) => html`<li
      key=${file.key}
      class=${`file ${file.state}`}
      aria-busy=${file.state === "up" ? "true" : "false"}
    >
      ${file.picture
        ? html`<img src=${file.picture} alt="" />`
        : html`<${Icon} name="page" />`}
      <span class="file-name" title=${file.name}>${file.name}</span>
      ${file.state === "up" && html`<span class="file-state">uploading…</span>`}
      ${file.state === "failed" && html`<span class="file-state" role="alert">${file.problem}</span>`}
      <button
        type="button"
        class="icon-button"
        aria-label=${`Remove ${file.name}`}
        title="Remove"
        onClick=${() => onRemove(file)}
      ><${Icon} name="cross" /></button>
    </li>`)}
  </ul>`;
}

/**
 * The files of a message that was sent.
 * @param {{files: Array<object>, actions: object}} props
 * @returns {object} a vnode
 */
export function SentFiles({ files, actions }) {
  return html`<ul class="files sent" aria-label="Files">
    ${files.map((file) => html`<${SentFile} key=${file.file_id} file=${file} actions=${actions} />`)}
  </ul>`;
}

function SentFile({ file, actions }) {
  const { file_id: id, name, type } = file;
  const shown = type.startsWith("image/");
  const [picture, setPicture] = useState(file.picture ?? null);
  useEffect(() => {
    let here = true;
    if (shown && !file.picture) actions.picture(id).then((url) => here && setPicture(url));
    return () => {
      here = false;
    };
  }, [id]);
  if (picture) return html`<li class="picture"><img src=${picture} alt=${name} title=${name} /></li>`;
  return html`<li class="file">
    <${Icon} name="page" /><span class="file-name" title=${name}>${name}</span>
  </li>`;
}
