/** The pages that an answer rests on. */

import { html } from "../html.js";

/**
 * A numbered list of links; what is no page of the web is left out.
 * @param {{citations: Array<{url: string, title: string}>}} props
 * @returns {object | null} a vnode
 */
export function Sources({ citations }) {
  const pages = citations.filter(({ url }) => /^https?:/i.test(url));
  if (!pages.length) return null;
  return html`<ol class="sources" aria-label="Sources">
    ${pages.map(
      ({ url, title }) => html`<li key=${url}>
        <a href=${url} target="_blank" rel="noopener noreferrer nofollow">${title || url}</a>
      </li>`,
    )}
  </ol>`;
}
