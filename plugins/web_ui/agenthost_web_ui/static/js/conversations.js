/** The conversations of an agent, as the daemon keeps them. */

import { complaint } from "./api.js";

const MOST = 100;

/**
 * Make the controller of the list of conversations.
 * @param {{store: object, api: object, session: object}} parts
 * @returns {object} `conversations`, `changeConversation`, `beginConversation`, `goOnIn`,
 *   `sayAnew`
 */
export function createConversations({ store, api, session }) {
  async function conversations(agent, query) {
    const wanted = new URLSearchParams({ agent, order: "newest", limit: MOST, q: query });
    return (await api.get(`/api/sessions?${wanted}`)).sessions;
  }

  const changeConversation = (id, changes) => api.patch(`/api/sessions/${id}`, changes);

  async function beginConversation(agent) {
    const path = `/api/agents/${encodeURIComponent(agent)}/sessions`;
    await goOnIn(agent, (await api.post(path)).id);
  }

  async function goOnIn(agent, id) {
    await api.post(`/api/sessions/${id}/activate`);
    store.set({ dialog: null });
    session.select(agent);
  }

  /** Begin a conversation with what stands before a turn, and say something else there. */
  async function sayAnew(turn, text, files) {
    const agent = store.get().selected;
    // Nothing else is begun here meanwhile, the same least of all.
    store.set({ loading: true });
    try {
      await api.post(`/api/sessions/${await forkedBefore(agent, turn)}/activate`);
    } catch (error) {
      store.set({ loading: false, ...complaint(error) });
      return;
    }
    if (store.get().selected === agent) session.openWith(agent, text, files);
  }

  async function forkedBefore(agent, turn) {
    const path = `/api/agents/${encodeURIComponent(agent)}/session`;
    const { session_id: id, messages } = await api.get(path);
    const said = messages.find((each) => each.role === "User" && each.turn_id === turn);
    if (!said) throw new Error("This message is no longer part of the conversation.");
    return (await api.post(`/api/sessions/${id}/fork`, { at_message: said.id })).id;
  }

  return { conversations, changeConversation, beginConversation, goOnIn, sayAnew };
}
