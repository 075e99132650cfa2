/** One open conversation: its history, its line to the agent, its turns. */

import { complaint } from "./api.js";
import { takeAside } from "./asides.js";
import { createBatches } from "./batches.js";
import {
  answerOf, applyFrame, isBusy, isLive, readAfterwards, runAgain, stopAll, userEntry,
} from "./conversation.js";
import { tooLong } from "./drafts.js";
import { addCounts } from "./format.js";
import { knowsMore } from "./history.js";
import { SessionReader } from "./session-reader.js";
import { AgentSocket } from "./socket.js";

const STOP_PATIENCE_MS = 5_000;
const NOT_ARRIVED = "The connection broke before this message arrived; send it again.";

/** What the page shows of an agent, from `open` to `close`; turns go on without it. */
export class OpenConversation {
  #id;
  #path;
  #store;
  #drafts;
  #api;
  #onAgents;
  #onGone;
  #socket;
  #closed = false;
  #dropped = false;
  #patience = 0;
  #batches = createBatches((frame) => this.#take(frame));
  #reader;
  #followed = new Set();
  #announced = new Set();

  /**
   * @param {object} options
   * @param {string} options.id the agent's
   * @param {object} options.store the state, of which `FRESH` in session.js is ours
   * @param {object} options.drafts gets back what could not be sent
   * @param {object} options.api
   * @param {(agents: Array<object>) => void} options.onAgents hears which agents there are
   * @param {() => void} options.onGone hears that the agent does not exist any more
   */
  constructor({ id, store, drafts, api, onAgents, onGone }) {
    this.#id = id;
    this.#path = `/api/agents/${encodeURIComponent(id)}`;
    this.#store = store;
    this.#drafts = drafts;
    this.#api = api;
    this.#onAgents = onAgents;
    this.#onGone = onGone;
    this.#reader = new SessionReader({
      fetch: async () => (await api.get(`${this.#path}/session`)).messages,
      entries: () => this.#entries,
      onRead: (entries, lost) => this.#onRead(entries, lost),
      onFailed: (error) => this.#complain(error, { loading: false }),
    });
    this.#socket = new AgentSocket({
      prepare: () => this.#prepare(),
      onFrame: this.#batches.push,
      onState: (state, error) => this.#follow(state, error),
    });
  }

  /** Look away: the daemon goes on with what it does. */
  close() {
    this.#closed = true;
    this.#socket.close();
    this.#batches.drop();
    clearTimeout(this.#patience);
  }

  /** Read the session again: something of it may have ended that nobody tells of. */
  reread() {
    return this.#reader.read();
  }

  /** Dial at once instead of waiting. */
  retry() {
    this.#socket.retryNow();
  }

  /**
   * Send what the person typed.
   * @param {string} text
   * @param {Array<object>} files uploaded ones that it names
   * @returns {boolean} whether it went out; otherwise the draft stays
   */
  send(text, files = []) {
    if (text.trim() === "/stop") return this.stop();
    const problem = tooLong(text);
    if (problem) this.#drafts.write(this.#id, text, problem);
    if (problem || this.#store.get().loading) return false;
    const sent = crypto.getRandomValues(new Uint32Array(2)).join("-");
    const message = { type: "message", content: text, id: sent, thinking: true };
    if (files.length > 0) message.files = files.map(({ file_id }) => file_id);
    if (!this.#socket.send(message)) return false;
    this.#show([...this.#entries, userEntry(text, sent, files)], { notice: null });
    return true;
  }

  /**
   * Run a turn again that failed or was interrupted.
   * @param {string} turn its id
   */
  resume(turn) {
    if (!this.#ask("resume", turn)) return;
    this.#show(runAgain(this.#entries, turn));
  }

  /**
   * Stop the running turn; should no answer come, the page says so by itself.
   * @returns {boolean} true: the command is dealt with
   */
  stop() {
    const { running, stopping } = this.#store.get();
    if (running && !stopping) this.#askToStop();
    return true;
  }

  async #askToStop() {
    this.#store.set({ stopping: true });
    this.#patience = setTimeout(
      () => this.#show(stopAll(this.#entries), { stopping: false }),
      STOP_PATIENCE_MS,
    );
    try {
      await this.#api.post(`${this.#path}/stop`);
    } catch (error) {
      clearTimeout(this.#patience);
      this.#complain(error, { stopping: false });
    }
  }

  get #entries() {
    return this.#store.get().entries;
  }

  #show(entries, more = {}) {
    this.#store.set({ entries, running: entries.some(isBusy), ...more });
  }

  /** After a lost line, ask over HTTP first: a refused upgrade does not say why. */
  async #prepare() {
    if (this.#dropped) await this.#api.get(this.#path);
    return this.#api.socketUrl(`${this.#path}/ws`);
  }

  #onRead(entries, lost) {
    if (this.#closed) return;
    for (const entry of lost) this.#drafts.giveBack(this.#id, entry, NOT_ARRIVED);
    this.#show(entries, { loading: false });
    this.#attachAll();
  }

  #complain(error, more = {}) {
    if (!this.#closed) this.#store.set({ ...more, ...complaint(error) });
  }

  #attachAll() {
    for (const { role, turn, ...entry } of this.#entries) {
      if (role === "assistant" && isLive(entry)) this.#attach(turn, entry.offset);
    }
    for (const turn of this.#announced) {
      if (!answerOf(this.#entries, turn)) this.#attach(turn, 0);
    }
    this.#announced.clear();
  }

  #attach(turn, offset) {
    if (!turn || this.#followed.has(turn)) return;
    if (this.#ask("attach", turn, { offset })) this.#followed.add(turn);
  }

  #ask(type, turn, more = {}) {
    return this.#socket.send({ type, turn_id: turn, id: turn, thinking: true, ...more });
  }

  #follow(state, error) {
    if (state === "open") {
      this.#dropped = false;
      this.#store.set({ link: "open" });
      return;
    }
    this.#dropped = true;
    this.#batches.flush();
    this.#followed.clear();
    this.#reader.lineBroke();
    this.#store.set({ link: error ? "refused" : "lost", stopping: false });
    if (error?.status === 404) this.#onGone();
    else if (this.#store.get().loading) this.#reader.read();
  }

  #take(frame) {
    switch (frame.type) {
      case "connected":
        // Following comes before reading, so that no turn begins unseen between them.
        this.#socket.send({ type: "follow" });
        return this.#reader.read();
      case "agents_updated":
        return this.#onAgents(frame.agents);
      case "turn_started":
        return this.#started(frame.turn_id);
      case "missed":
        return this.#show(readAfterwards(this.#entries, frame.turn_id));
      default:
        return this.#said(frame);
    }
  }

  #started(turn) {
    this.#announced.add(turn);
    this.#followed.delete(turn);
    return this.#reader.read();
  }

  /** What is said about a turn; a refusal to join one names it by the frame's id. */
  #said(frame) {
    if (frame.turn_id) this.#ofTurn(frame, frame.turn_id);
    else if (answerOf(this.#entries, frame.id)) this.#ofTurn(frame, frame.id);
    else if (frame.type === "response" || frame.type === "error") this.#aside(frame);
  }

  #ofTurn(frame, turn) {
    const before = answerOf(this.#entries, turn);
    this.#followed.add(turn);
    this.#show(applyFrame(this.#entries, { ...frame, turn_id: turn }));
    const answer = answerOf(this.#entries, turn);
    if (!answer) return;
    if (!isLive(answer) && (!before || isLive(before))) this.#ended(frame, answer);
    if (knowsMore(this.#entries, before, answer)) this.#reader.read();
  }

  #ended(frame, answer) {
    clearTimeout(this.#patience);
    const { totals } = this.#store.get();
    const counts = answer.status === "complete" ? addCounts(totals, frame) : totals;
    this.#store.set({ stopping: false, totals: counts });
  }

  #aside(frame) {
    takeAside(frame, {
      entries: () => this.#entries,
      show: (entries) => this.#closed || this.#show(entries),
      read: () => this.#reader.read(),
      giveBack: (entry, problem) => this.#drafts.giveBack(this.#id, entry, problem),
    });
  }
}
