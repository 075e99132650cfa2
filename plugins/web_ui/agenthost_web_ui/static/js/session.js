/** Which conversation is open. */

import { complaint } from "./api.js";
import { tooLong } from "./drafts.js";
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
 * @returns {object} `select`, `openWith`, `leave`, `send`, `stop`, `resume`, `reread`,
 *   `retry`
 */
export function createSession({ store, drafts, api }) {
  let open = null;

  function select(id) {
    leave();
    history.replaceState(null, "", `#${id}`);
    store.set({ ...FRESH, selected: id, loading: true, link: "connecting", drawer: false });
    open = new OpenConversation({ id, store, drafts, api, onAgents: listed, onGone: gone });
    describe(id);
  }

  /** Open an agent's conversation and say something there; what fails is a draft. */
  function openWith(id, text, files) {
    select(id);
    const unsubscribe = store.subscribe(() => {
      const { selected, loading } = store.get();
      if (selected === id && loading) return;
      unsubscribe();
      if (selected === id && (open.send(text, files) || tooLong(text))) return;
      drafts.giveBack(id, { text, files }, "This message was not sent; send it again.");
    });
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
    openWith,
    leave,
    send: (text, files) => open?.send(text, files) ?? false,
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
