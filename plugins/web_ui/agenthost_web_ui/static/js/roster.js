/** The agents: list, create, delete, and what the create dialog offers. */

import { complaint, isPassing } from "./api.js";
import { groupModels } from "./catalogue.js";
import { writeManifest } from "./manifest.js";

const RETRY_MS = 3_000;

/**
 * Make the controller of the agent list.
 * @param {{store: object, api: object, session: object, onReached: () => void}} parts
 *   `onReached` is called when the daemon has let the page in
 * @returns {object} `start`, `refresh`, `create`, `remove`, `offers`, `useKey`
 */
export function createRoster({ store, api, session, onReached }) {
  let retry = 0;

  async function start() {
    addEventListener("focus", () => store.get().selected || refresh());
    await refresh();
  }

  async function refresh() {
    clearTimeout(retry);
    try {
      const agents = await api.get("/api/agents");
      if (!store.get().agents) onReached();
      store.set({ agents, unreachable: false, keyWanted: null });
      choose(agents);
    } catch (error) {
      if (!isPassing(error)) return store.set(complaint(error));
      store.set({ unreachable: true });
      retry = setTimeout(refresh, RETRY_MS);
    }
  }

  function choose(agents) {
    const { selected, drawer } = store.get();
    if (selected) return;
    const wanted = decodeURIComponent(location.hash.slice(1));
    const agent = agents.find(({ id }) => id === wanted) ?? agents[0];
    if (!agent) return;
    session.select(agent.id);
    // Whoever has opened the list meanwhile looks at it still.
    store.set({ drawer });
  }

  async function create(draft) {
    const { agent_id: id, name, warnings } = await api.post("/api/agents", {
      manifest_toml: writeManifest(draft),
    });
    store.set({ agents: await api.get("/api/agents"), dialog: null, notice: null });
    session.select(id);
    if (warnings?.length) store.set({ notice: { tone: "warning", text: told(name, warnings) } });
  }

  async function remove(id) {
    await api.remove(`/api/agents/${encodeURIComponent(id)}`);
    store.set(({ agents }) => ({
      agents: agents.filter((agent) => agent.id !== id),
      dialog: null,
    }));
    if (store.get().selected !== id) return;
    session.leave();
    choose(store.get().agents);
  }

  /** What a new agent may be given; models and providers are optional. */
  async function offers() {
    const [tools, status, models, providers] = await Promise.all([
      api.get("/api/tools"),
      api.get("/api/status").catch(() => null),
      api.get("/api/models").catch(() => ({ models: [] })),
      api.get("/api/providers").catch(() => ({ providers: [] })),
    ]);
    const about = new Map((tools.definitions ?? []).map((tool) => [tool.name, tool.description]));
    return {
      tools: tools.tools.map((name) => ({ name, about: about.get(name) ?? "" })),
      models: groupModels(models.models ?? [], providers.providers ?? []),
      standard: status && `${status.default_provider} / ${status.default_model}`,
    };
  }

  async function useKey(key) {
    api.setKey(key);
    const { selected } = store.get();
    await refresh();
    if (selected && !store.get().keyWanted) session.select(selected);
  }

  return { start, refresh, create, remove, offers, useKey };
}

function told(name, warnings) {
  const sentences = warnings.map((text) => (/[.!?]$/.test(text) ? text : `${text}.`));
  return [`${name} was created.`, ...sentences].join(" ");
}
