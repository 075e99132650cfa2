/** The few drawings of the page; decorative, so hidden from assistive technology. */

import { html } from "../html.js";

const PATHS = {
  plus: ["M12 5v14", "M5 12h14"],
  send: ["M12 19V5", "M6 11l6-6 6 6"],
  menu: ["M4 7h16", "M4 12h16", "M4 17h16"],
  trash: ["M5 7h14", "M10 7V5h4v2", "M7 7l1 12h8l1-12", "M10 11v5", "M14 11v5"],
  sun: [
    "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8z",
    "M12 2.5v2", "M12 19.5v2", "M2.5 12h2", "M19.5 12h2",
    "M5.3 5.3l1.4 1.4", "M17.3 17.3l1.4 1.4",
    "M5.3 18.7l1.4-1.4", "M17.3 6.7l1.4-1.4",
  ],
  moon: ["M20 14.500A8 8 0 0 1 9.5 4a8 8 0 1 0 10.5 10.5z"],
  tool: ["M14.5 6.5a4 4 0 0 0-5.2 5.200L4 17l3 3 5.3-5.3a4 4 0 0 0 5.2-5.200L15 12l-3-3z"],
  chevron: ["M9 6l6 6-6 6"],
  down: ["M12 5v14", "M6 13l6 6 6-6"],
  again: ["M19 12a7 7 0 1 1-2.2-5.100", "M19.500 3.500V8H15"],
  pencil: ["M5 19l1-4L16 5l3 3L9 18z", "M14 7l3 3"],
  archive: ["M4 5h16v4H4z", "M6 9v10h12V9", "M10 13h4"],
  takeOut: ["M5 13v6h14v-6", "M12 16V5", "M8 9l4-4 4 4"],
  cards: ["M4 5h16v14H4z", "M4 10h16", "M8 14h5"],
  clip: ["M18 11l-6.500 6.500a3.900 3.900 0 0 1-5.500-5.500L13 5a2.600 2.600 0 0 1 3.700 3.700L9.800 15.600a1.300 1.300 0 0 1-1.900-1.900L14 7.700"],
  page: ["M7 4h7l4 4v12H7z", "M14 4v4h4"],
  cross: ["M7 7l10 10", "M17 7L7 17"],
  chat: ["M5 5h14v11H11l-4 3.500V16H5z"],
};

/**
 * An icon.
 * @param {{name: keyof typeof PATHS}} props
 * @returns {object} a vnode
 */
export function Icon({ name }) {
  return html`<svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
    ${PATHS[name].map((path) => html`<path d=${path} />`)}
  </svg>`;
}
