/** Put the page together. */

import { createApi } from "./api.js";
import { html, render } from "./html.js";
import { App } from "./parts/app.js";
import { createRoster } from "./roster.js";
import { createSession } from "./session.js";
import { createStore } from "./store.js";

const store = createStore({
  agents: null,
  selected: null,
  detail: null,
  entries: [],
  loading: false,
  running: false,
  stopping: false,
  link: "idle",
  totals: { input: 0, output: 0, cost: 0 },
  unreachable: false,
  keyWanted: null,
  notice: null,
  dialog: null,
  drawer: false,
});
const api = createApi({ onUnauthorized: (reason) => store.set({ keyWanted: reason }) });
const session = createSession({ store, api });
const roster = createRoster({ store, api, session });
const actions = { ...session, ...roster, set: store.set };

render(html`<${App} store=${store} actions=${actions} />`, document.getElementById("app"));
roster.start();
