/** Which conversation is open. */

import { complaint } from "./api.js";
import { OpenConversation } from "./open-conversation.js";

/** The state of a conversation that was just opened. */
export const FRESH = {
  entries: [],
  detail: null,
  loading: false,
  running: false,
  stopping: false,
  link: "idle",
  totals: { input: 0, output: 0, cost: 0 },
};

/**
 * Make the controller of the open conversation.
 * @param {{store: object, drafts: object, api: object}} parts
 * @returns {object} `select`, `leave`, `send`, `stop`, `resume`, `reread`,
 *   `retry`
 */
export function createSession({ store, drafts, api }) {
  let open = null;

  function select(id, first = "") {
    leave();
    history.replaceState(null, "", `#${id}`);
    store.set({ ...FRESH, selected: id, loading: true, link: "connecting", drawer: false });
    const parts = { id, store, drafts, api, first };
    open = new OpenConversation({ ...parts, onAgents: listed, onGone: gone });
    describe(id);
  }

  async function describe(id) {
    const tell = (patch) => store.get().selected === id && store.set(patch);
    try {
      tell({ detail: await api.get(`/api/agents/${encodeURIComponent(id)}`) });
    } catch (error) {
      tell(complaint(error));
    }
  }

  function leave() {
    open?.close();
    open = null;
    history.replaceState(null, "", location.pathname);
    store.set({ ...FRESH, selected: null });
  }

  function listed(fresh) {
    store.set(({ agents }) => ({ agents: mergeAgents(agents, fresh) }));
    if (!fresh.some(({ id }) => id === store.get().selected)) gone();
  }

  function gone() {
    leave();
    store.set({ notice: { tone: "error", text: "That agent no longer exists." } });
  }

  return {
    select,
    leave,
    send: (text) => open?.send(text) ?? false,
    stop: () => open?.stop(),
    resume: (turn) => open?.resume(turn),
    reread: () => open?.reread(),
    retry: () => open?.retry(),
  };
}

/** Keep what only the full list tells when a shorter one arrives. */
function mergeAgents(known, fresh) {
  const byId = new Map((known ?? []).map((agent) => [agent.id, agent]));
  return fresh.map((agent) => ({ ...byId.get(agent.id), ...agent }));
}
