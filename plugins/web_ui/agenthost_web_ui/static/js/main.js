/** Put the page together. */

import { createApi } from "./api.js";
import { createApprovals } from "./approvals.js";
import { createAttachments } from "./attachments.js";
import { createConversations } from "./conversations.js";
import { createDrafts } from "./drafts.js";
import { html, render } from "./html.js";
import { createOffers } from "./offers.js";
import { App } from "./parts/app.js";
import { createRoster } from "./roster.js";
import { createSession, FRESH } from "./session.js";
import { createStore } from "./store.js";

const store = createStore({
  ...FRESH,
  agents: null,
  selected: null,
  unreachable: false,
  keyWanted: null,
  notice: null,
  dialog: null,
  drawer: false,
  commands: [],
  cards: [],
});
const api = createApi({ onUnauthorized: (reason) => store.set({ keyWanted: reason }) });
const drafts = createDrafts();
const session = createSession({ store, drafts, api });
const offers = createOffers({ store, api });
const roster = createRoster({ store, api, session, onReached: offers.readOffers });
const approvals = createApprovals({ api });
const attachments = createAttachments({ store, drafts, api });
const conversations = createConversations({ store, api, session });
const actions = {
  ...session,
  ...roster,
  ...offers,
  ...conversations,
  ...approvals,
  ...attachments,
  drafts,
  set: store.set,
};

render(html`<${App} store=${store} actions=${actions} />`, document.getElementById("app"));
roster.start();
