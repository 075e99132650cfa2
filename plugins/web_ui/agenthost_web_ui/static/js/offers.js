/** What plugins add to the page: chat commands and cards. */

import { readCard } from "./cards.js";

/**
 * Make the reader of the plugins' offers.
 * @param {{store: object, api: object}} parts
 * @returns {object} `readOffers`, `readCards`
 */
export function createOffers({ store, api }) {
  /** Read which there are; a page without them works as well. */
  async function readOffers() {
    const [{ commands }, { cards }] = await Promise.all([
      api.get("/api/commands").catch(() => ({ commands: [] })),
      api.get("/api/cards").catch(() => ({ cards: [] })),
    ]);
    store.set({ commands, cards });
  }

  /** Read what each card says now; one that fails says so in its place. */
  function readCards() {
    return Promise.all(store.get().cards.map(contentOf));
  }

  async function contentOf({ name, title, path }) {
    try {
      return { name, title, ...readCard(await api.get(path)) };
    } catch (error) {
      return { name, title, problem: error.message };
    }
  }

  return { readOffers, readCards };
}
