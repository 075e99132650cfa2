/**
 * A modal dialog: the browser keeps the focus inside. A second Escape closes any dialog,
 * whatever its cancel event says, so one that must stay is opened again.
 */

import { html, useEffect, useId, useRef } from "../html.js";

/**
 * A modal dialog, open as long as it is drawn.
 * @param {{title: string, onClose?: () => void, onSubmit: () => void, role?: string,
 *   children: object}} props without `onClose` it cannot be dismissed
 * @returns {object} a vnode
 */
export function Dialog({ title, onClose, onSubmit, role, children }) {
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
      ${children}
    </form>
  </dialog>`;
}

/**
 * What went wrong in a dialog.
 * @param {{text: string | null}} props
 * @returns {object | null} a vnode
 */
export function DialogError({ text }) {
  return text ? html`<p class="dialog-error" role="alert">${text}</p>` : null;
}
