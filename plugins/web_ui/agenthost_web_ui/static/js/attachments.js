/** Files of a message: handed to the agent before it is sent, fetched to be shown. */

import { isPassing } from "./api.js";

/** What the daemon takes of one file, and of one message. */
export const LARGEST_BYTES = 10 * 1024 * 1024;
export const MOST_FILES = 10;

const MOST_PICTURES = 100;
const UPLOAD_MS = 120_000;

/**
 * Make the controller of files. A file of a draft is `{key, name, type, picture, state,
 * file_id, problem}`: `state` is `up`, `ready` or `failed`, `picture` a data URL.
 * @param {{store: object, drafts: object, api: object}} parts
 * @returns {object} `attach`, `detach`, `picture`
 */
export function createAttachments({ store, drafts, api }) {
  const pictures = new Map();
  let last = 0;

  /** Hand files to an agent; those that fail say so where they stand. */
  function attach(agent, files) {
    const room = MOST_FILES - drafts.of(agent).files.length;
    const taken = [...files].slice(0, room);
    if (files.length > room) {
      const { text } = drafts.of(agent);
      drafts.write(agent, text, `A message takes at most ${MOST_FILES} files.`);
    }
    for (const file of taken) take(agent, file);
  }

  async function take(agent, file) {
    const key = `file-${(last += 1)}`;
    const { name, type } = file;
    const change = (patch) => drafts.changeFile(agent, key, patch);
    drafts.addFile(agent, { key, name, type, picture: null, state: "up" });
    if (file.size > LARGEST_BYTES) {
      change({ state: "failed", problem: "is over 10 MiB" });
      return;
    }
    if (type.startsWith("image/")) dataUrl(file).then((picture) => change({ picture }), () => {});
    try {
      const { file_id, ...known } = await api.upload(place(agent), file, UPLOAD_MS);
      change({ file_id, type: known.type, name: known.name, state: "ready" });
    } catch (error) {
      change({ state: "failed", problem: error.message.replace(/^file: /, "") });
    }
  }

  /** Take a file out of a draft; no message names it, so it is deleted. */
  function detach(agent, file) {
    drafts.dropFile(agent, file.key);
    if (file.file_id && !file.sent) api.remove(`${place(agent)}/${file.file_id}`).catch(() => {});
  }

  /** Fetch a picture of the open conversation; null when it has been deleted. */
  function picture(id) {
    if (!pictures.has(id)) pictures.set(id, fetched(store.get().selected, id));
    if (pictures.size > MOST_PICTURES) pictures.delete(pictures.keys().next().value);
    return pictures.get(id);
  }

  async function fetched(agent, id) {
    try {
      return await dataUrl(await api.blob(`${place(agent)}/${id}`));
    } catch (error) {
      if (isPassing(error)) pictures.delete(id);
      return null;
    }
  }

  return { attach, detach, picture };
}

function place(agent) {
  return `/api/agents/${encodeURIComponent(agent)}/files`;
}

function dataUrl(blob) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result);
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(blob);
  });
}
