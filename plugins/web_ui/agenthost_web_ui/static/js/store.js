/** One observable state object. */

import { useEffect, useState } from "./html.js";

/**
 * Make a store.
 * @template S
 * @param {S} initial the first state
 * @returns {{get: () => S, set: (patch: Partial<S> | ((state: S) => Partial<S>)) => void,
 *   subscribe: (listener: () => void) => () => void}} reader, writer and subscription
 */
export function createStore(initial) {
  let state = initial;
  const listeners = new Set();
  return {
    get: () => state,
    set(patch) {
      state = { ...state, ...(typeof patch === "function" ? patch(state) : patch) };
      for (const listener of listeners) listener();
    },
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

/**
 * Read the store in a component and render again when it changes.
 * @template S
 * @param {{get: () => S, subscribe: (listener: () => void) => () => void}} store
 * @returns {S} the present state
 */
export function useStore(store) {
  const [, bump] = useState(0);
  useEffect(() => store.subscribe(() => bump((count) => count + 1)), [store]);
  return store.get();
}

/**
 * Follow a media query.
 * @param {string} query such as `(max-width: 719px)`
 * @returns {boolean} whether it matches now
 */
export function useMedia(query) {
  const [matches, setMatches] = useState(() => matchMedia(query).matches);
  useEffect(() => {
    const list = matchMedia(query);
    const follow = () => setMatches(list.matches);
    list.addEventListener("change", follow);
    return () => list.removeEventListener("change", follow);
  }, [query]);
  return matches;
}
