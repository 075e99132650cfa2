/** The open conversation: its history, its line to the agent, its turn. */

import { complaint } from "./api.js";
import { applyFrame, fromSession, note, settle, userEntry } from "./conversation.js";
import { AgentSocket } from "./socket.js";

const BATCH_MS = 40;
const STOP_PATIENCE_MS = 5_000;

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
 * @param {{store: object, api: object}} parts
 * @returns {object} `select`, `leave`, `send`, `stop`, `retry`
 */
export function createSession({ store, api }) {
  let socket = null;
  let queue = [];
  let batch = 0;
  let patience = 0;
  let dropped = false;

  const path = (id, tail = "") => `/api/agents/${encodeURIComponent(id)}${tail}`;
  const current = (id) => store.get().selected === id;
  const add = (entry) => store.set(({ entries }) => ({ entries: [...entries, entry] }));

  function select(id) {
    leave();
    history.replaceState(null, "", `#${id}`);
    store.set({ ...FRESH, selected: id, link: "connecting", drawer: false });
    load(id);
    socket = new AgentSocket({
      prepare: () => prepare(id),
      onFrame: receive,
      onState: (state, error) => follow(id, state, error),
    });
  }

  function leave() {
    socket?.close();
    socket = null;
    clearTimeout(batch);
    clearTimeout(patience);
    queue = [];
    batch = 0;
    dropped = false;
    history.replaceState(null, "", location.pathname);
    store.set({ ...FRESH, selected: null });
  }

  /** After a lost line, ask over HTTP first: a refused upgrade does not say why. */
  async function prepare(id) {
    if (dropped) await api.get(path(id));
    return api.socketUrl(path(id, "/ws"));
  }

  async function load(id, extra = []) {
    store.set({ loading: true });
    try {
      const [stored, detail] = await Promise.all([
        api.get(path(id, "/session")),
        api.get(path(id)),
      ]);
      if (!current(id)) return;
      store.set({ entries: [...fromSession(stored.messages), ...extra], detail, loading: false });
    } catch (error) {
      if (current(id)) store.set({ loading: false, ...complaint(error) });
    }
  }

  function follow(id, state, error) {
    if (state === "open") {
      store.set({ link: "open" });
      if (dropped) load(id);
      dropped = false;
      return;
    }
    dropped = true;
    flush();
    store.set(({ entries }) => ({
      link: error ? "refused" : "lost",
      running: false,
      stopping: false,
      entries: settle(entries, "interrupted"),
    }));
    if (error?.status === 404) gone();
  }

  function gone() {
    leave();
    store.set({ notice: "That agent no longer exists." });
  }

  function receive(frame) {
    if (frame.type === "agents_updated") {
      store.set(({ agents }) => ({ agents: mergeAgents(agents, frame.agents) }));
      if (!frame.agents.some(({ id }) => current(id))) gone();
      return;
    }
    queue.push(frame);
    if (frame.type === "text_delta") batch ||= setTimeout(flush, BATCH_MS);
    else flush();
  }

  function flush() {
    clearTimeout(batch);
    batch = 0;
    const frames = queue;
    queue = [];
    for (const frame of frames) take(frame);
  }

  function take(frame) {
    const { stopping, entries, selected } = store.get();
    const ends = frame.type === "response" || frame.type === "error";
    if (ends && stopping) return ended({ entries: settle(entries, "stopped") });
    const next = { entries: applyFrame(entries, frame) };
    if (!ends) return store.set(next);
    if (frame.type === "response") next.totals = withCounts(store.get().totals, frame);
    ended(next);
    const command = entries.at(-1)?.role === "user" ? entries.at(-1).text : "";
    if (/^\/(new|compact)\b/.test(command)) load(selected, [note(frame.content)]);
  }

  function ended(patch) {
    clearTimeout(patience);
    store.set({ ...patch, running: false, stopping: false });
  }

  function send(text) {
    if (text.trim() === "/stop") return stop();
    if (store.get().loading || !socket?.send({ type: "message", content: text })) return false;
    add(userEntry(text));
    store.set({ running: true, notice: null });
    return true;
  }

  async function stop() {
    const { running, stopping, selected } = store.get();
    if (!running || stopping) return true;
    store.set({ stopping: true });
    patience = setTimeout(() => {
      ended({ entries: settle(store.get().entries, "stopped") });
    }, STOP_PATIENCE_MS);
    try {
      await api.post(path(selected, "/stop"));
    } catch (error) {
      clearTimeout(patience);
      store.set({ stopping: false, ...complaint(error) });
    }
    return true;
  }

  return { select, leave, send, stop, retry: () => socket?.retryNow() };
}

/** Keep what only the full list tells when a shorter one arrives. */
function mergeAgents(known, fresh) {
  const byId = new Map((known ?? []).map((agent) => [agent.id, agent]));
  return fresh.map((agent) => ({ ...byId.get(agent.id), ...agent }));
}

function withCounts(totals, frame) {
  return {
    input: totals.input + (frame.input_tokens ?? 0),
    output: totals.output + (frame.output_tokens ?? 0),
    cost: totals.cost + (frame.cost_usd ?? 0),
  };
}
