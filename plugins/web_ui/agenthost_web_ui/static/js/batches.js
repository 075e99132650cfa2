/** Frames in order; words are gathered for a moment, so that they are drawn together. */

const BATCH_MS = 40;

/**
 * Make the queue.
 * @param {(frame: object) => void} take gets each frame
 * @returns {{push: (frame: object) => void, flush: () => void, drop: () => void}}
 */
export function createBatches(take) {
  let queue = [];
  let timer = 0;

  function drop() {
    clearTimeout(timer);
    timer = 0;
    queue = [];
  }

  function flush() {
    const frames = queue;
    drop();
    for (const frame of frames) take(frame);
  }

  function push(frame) {
    queue.push(frame);
    const words = frame.type === "text_delta" || (frame.type === "thinking" && frame.content);
    if (words) timer ||= setTimeout(flush, BATCH_MS);
    else flush();
  }

  return { push, flush, drop };
}
