/** The cards of plugins, in a dialog; a card is data, so nothing of it ever runs. */

import { html, useEffect, useState } from "../html.js";
import { Dialog } from "./dialog.js";

/**
 * The cards.
 * @param {{actions: object, onClose: () => void}} props
 * @returns {object} a vnode
 */
export function Cards({ actions, onClose }) {
  const [cards, setCards] = useState(null);
  useEffect(() => {
    let shown = true;
    actions.readCards().then((read) => shown && setCards(read));
    return () => {
      shown = false;
    };
  }, []);
  return html`<${Dialog}
    title="Cards"
    onClose=${onClose}
    onSubmit=${onClose}
    buttons=${html`<button type="submit" class="secondary" data-first>Close</button>`}
  >
    ${cards === null && html`<p class="quiet" role="status">Reading…</p>`}
    ${cards?.map((card) => html`<${Card} key=${card.name} card=${card} />`)}
  <//>`;
}

function Card({ card }) {
  const { title, problem, text, rows, links } = card;
  return html`<section class="card" aria-label=${title}>
    <h3>${title}</h3>
    ${problem && html`<p class="dialog-error">${problem}</p>`}
    ${text && html`<p>${text}</p>`}
    ${rows?.length > 0 && html`<dl>
      ${rows.map(({ label, value }, place) => html`<div key=${place}>
        <dt>${label}</dt>
        <dd>${value}</dd>
      </div>`)}
    </dl>`}
    ${links?.length > 0 && html`<p class="card-links">
      ${links.map(({ label, url }, place) => html`<a
        key=${place}
        class="secondary"
        href=${url}
        target="_blank"
        rel="noopener noreferrer"
      >${label}</a>`)}
    </p>`}
  </section>`;
}
