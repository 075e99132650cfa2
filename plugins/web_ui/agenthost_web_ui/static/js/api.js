/** The daemon's HTTP interface; the key lives in this tab's session storage only. */

const STORED = "agenthost.key";
const TIMEOUT_MS = 30_000;

/** The daemon answered with an error. */
export class ApiError extends Error {
  /**
   * @param {number} status the HTTP status
   * @param {string} message what the daemon said
   */
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** The daemon did not answer at all. */
export class Unreachable extends Error {
  constructor() {
    super("The server cannot be reached.");
  }
}

/**
 * Make the client.
 * @param {{onUnauthorized: (reason: "missing" | "rejected") => void}} options called
 *   when the daemon wants a key, or does not accept the one it got
 * @returns {object} `get`, `post`, `patch`, `remove`, `upload`, `blob`, `setKey`,
 *   `socketUrl`
 */
export function createApi({ onUnauthorized }) {
  async function request(method, path, body) {
    return answerOf(await respond(method, path, body));
  }

  async function respond(method, path, body, patience = TIMEOUT_MS) {
    const key = sessionStorage.getItem(STORED);
    const headers = key ? { Authorization: `Bearer ${key}` } : {};
    const form = body instanceof FormData;
    if (body !== undefined && !form) headers["Content-Type"] = "application/json";
    const sent = body === undefined || form ? body : JSON.stringify(body);
    const response = await reach(path, { method, headers, body: sent }, patience);
    if (response.status === 401) onUnauthorized(key ? "rejected" : "missing");
    return response;
  }

  async function upload(path, file, patience) {
    const form = new FormData();
    form.append("file", file);
    return answerOf(await respond("POST", path, form, patience));
  }

  async function blob(path) {
    const response = await respond("GET", path);
    return response.ok ? response.blob() : answerOf(response);
  }

  async function socketUrl(path) {
    const url = new URL(path, location.href);
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    if (sessionStorage.getItem(STORED)) {
      const { ticket } = await request("POST", "/api/ws-ticket", {});
      url.searchParams.set("ticket", ticket);
    }
    return url.href;
  }

  return {
    get: (path) => request("GET", path),
    post: (path, body = {}) => request("POST", path, body),
    patch: (path, body) => request("PATCH", path, body),
    remove: (path) => request("DELETE", path),
    upload,
    blob,
    setKey: (key) => sessionStorage.setItem(STORED, key),
    socketUrl,
  };
}

/**
 * Tell whether a failure may go by itself, so that trying again makes sense.
 * @param {Error} error
 * @returns {boolean} true when the daemon is away, starting or ending
 */
export function isPassing(error) {
  return error instanceof Unreachable || (error instanceof ApiError && error.status >= 500);
}

/**
 * Turn an error into what the page shows; a missing key has its own dialog.
 * @param {Error} error
 * @returns {{notice?: {tone: "error", text: string}}} a patch of the state
 */
export function complaint(error) {
  if (error instanceof ApiError && error.status === 401) return {};
  return { notice: { tone: "error", text: error.message } };
}

async function reach(path, options, patience) {
  try {
    return await fetch(path, {
      ...options,
      cache: "no-store",
      signal: AbortSignal.timeout(patience),
    });
  } catch {
    throw new Unreachable();
  }
}

async function answerOf(response) {
  const body = await response.json().catch(() => ({}));
  if (response.ok) return body;
  throw new ApiError(response.status, body.error ?? `The server answered ${response.status}.`);
}
