/** The template tag of every component: htm bound to preact. */

import htm from "../vendor/htm/htm.mjs";
import { h } from "../vendor/preact/preact.mjs";

export { render } from "../vendor/preact/preact.mjs";
export {
  useEffect,
  useId,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
} from "../vendor/preact/hooks.mjs";

export const html = htm.bind(h);
