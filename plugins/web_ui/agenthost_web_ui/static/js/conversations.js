/** The conversations of an agent, as the daemon keeps them. */

const MOST = 100;

/**
 * Make the controller of the list of conversations.
 * @param {{store: object, api: object, session: object}} parts
 * @returns {object} `conversations`, `changeConversation`, `beginConversation`, `goOnIn`
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

  return { conversations, changeConversation, beginConversation, goOnIn };
}
