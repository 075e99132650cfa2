/** A WebSocket that comes back: back-off, keep-alive, one owner. */

import { ApiError } from "./api.js";

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 15_000;
const PING_MS = 15_000;
const SILENCE_MS = 40_000;

/** The line to one agent. */
export class AgentSocket {
  #prepare;
  #onFrame;
  #onState;
  #socket = null;
  #attempts = 0;
  #retry = 0;
  #pulse = 0;
  #heard = 0;
  #closed = false;

  /**
   * @param {object} options
   * @param {() => Promise<string>} options.prepare answers the address to dial, anew
   *   for each attempt; an ApiError from it ends the line
   * @param {(frame: object) => void} options.onFrame gets each server message
   * @param {(state: "open" | "lost", error?: Error) => void} options.onState hears of
   *   the line; `lost` with an ApiError means that no further attempt follows
   */
  constructor({ prepare, onFrame, onState }) {
    this.#prepare = prepare;
    this.#onFrame = onFrame;
    this.#onState = onState;
    this.retryNow = this.retryNow.bind(this);
    addEventListener("online", this.retryNow);
    this.#dial();
  }

  /**
   * Send a message.
   * @param {object} message JSON to send
   * @returns {boolean} false when the line is down
   */
  send(message) {
    if (this.#socket?.readyState !== WebSocket.OPEN) return false;
    this.#socket.send(JSON.stringify(message));
    return true;
  }

  /** Try at once instead of waiting for the back-off. */
  retryNow() {
    if (!this.#retry) return;
    clearTimeout(this.#retry);
    this.#retry = 0;
    this.#dial();
  }

  /** End the line for good. */
  close() {
    this.#closed = true;
    clearTimeout(this.#retry);
    clearInterval(this.#pulse);
    removeEventListener("online", this.retryNow);
    // Closing one that is still connecting is an error to the browser; it ends when open.
    if (this.#socket?.readyState !== WebSocket.CONNECTING) this.#socket?.close();
  }

  async #dial() {
    let address;
    try {
      address = await this.#prepare();
    } catch (error) {
      if (!this.#closed) this.#lost(error);
      return;
    }
    if (this.#closed) return;
    const socket = new WebSocket(address);
    this.#socket = socket;
    socket.onopen = () => (this.#closed ? socket.close() : this.#opened());
    socket.onmessage = (event) => this.#received(event.data);
    socket.onclose = () => {
      if (!this.#closed && this.#socket === socket) this.#lost();
    };
  }

  #opened() {
    this.#attempts = 0;
    this.#heard = Date.now();
    this.#pulse = setInterval(() => this.#beat(), PING_MS);
    this.#onState("open");
  }

  #beat() {
    if (Date.now() - this.#heard > SILENCE_MS) this.#socket?.close();
    else this.send({ type: "ping" });
  }

  #received(text) {
    this.#heard = Date.now();
    if (!this.#closed) this.#onFrame(JSON.parse(text));
  }

  #lost(error) {
    clearInterval(this.#pulse);
    this.#socket = null;
    const final = error instanceof ApiError && [401, 403, 404].includes(error.status);
    this.#onState("lost", final ? error : undefined);
    if (final) return;
    const wait = Math.min(FIRST_WAIT_MS * 2 ** this.#attempts, LONGEST_WAIT_MS);
    this.#attempts += 1;
    this.#retry = setTimeout(this.retryNow, wait * (0.75 + Math.random() / 2));
  }
}
