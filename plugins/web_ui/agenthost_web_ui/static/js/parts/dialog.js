/**
 * A modal dialog: the browser keeps the focus inside. A second Escape closes any dialog,
 * whatever its cancel event says, so one that must stay is opened again.
 */

import { html, useEffect, useId, useRef } from "../html.js";

/**
 * A modal dialog, open as long as it is drawn. Its contents scroll between the title and
 * the buttons, which always stand below them.
 * @param {{title: string, buttons: object, problem?: string | null, onClose?: () => void,
 *   onSubmit: () => void, role?: string, children: object}} props without `onClose` it
 *   cannot be dismissed; `problem` says what went wrong
 * @returns {object} a vnode
 */
export function Dialog({ title, buttons, problem, onClose, onSubmit, role, children }) {
  const box = useRef(null);
  const heading = useId();
  useEffect(() => {
    const opener = document.activeElement;
    box.current.showModal();
    box.current.querySelector("[data-first]")?.focus();
    return () => opener?.isConnected && opener.focus();
  }, []);
  return html`<dialog
    ref=${box}
    class="dialog"
    role=${role}
    aria-labelledby=${heading}
    onCancel=${(event) => onClose || event.preventDefault()}
    onClose=${() => (onClose ? onClose() : box.current?.showModal())}
  >
    <form
      onSubmit=${(event) => {
        event.preventDefault();
        onSubmit();
      }}
    >
      <h2 id=${heading}>${title}</h2>
      <div class="dialog-body">${children}</div>
      <footer class="dialog-foot">
        ${problem && html`<p class="dialog-error" role="alert">${problem}</p>`}
        <div class="dialog-actions">${buttons}</div>
      </footer>
    </form>
  </dialog>`;
}
