"""The direct messages: ``chat.bsky.convo``, of an account's host or behind it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from aiohttp import web

from .shared import Handler, Object, Refusal, signs, stamp, tid

CREATED = "chat.bsky.convo.defs#logCreateMessage"


class Chat:
    """The conversations.

    Args:
        people: The handle of each account, by DID.
        changed: Is called when something has been said.

    Attributes:
        messages: The messages of each conversation, oldest first.
        reactions: The message and the emoji of each.
        odd: What stands in the log that should not.
        allowed: Whether the app password may read them.
    """

    def __init__(self, people: dict[str, str], changed: Callable[[], object]) -> None:
        self.convos: dict[str, list[str]] = {}
        self.messages: dict[str, list[Object]] = {}
        self.logs: dict[str, list[Object]] = {}
        self.reactions: list[tuple[str, str]] = []
        self.allowed = True
        self.odd: list[Any] = []
        self._people = people
        self._told = changed
        self.methods: Mapping[str, tuple[str, Handler]] = {
            "chat.bsky.convo.getLog": ("GET", self._get_log),
            "chat.bsky.convo.listConvos": ("GET", self._list_convos),
            "chat.bsky.convo.getConvo": ("GET", self._get_convo),
            "chat.bsky.convo.getConvoForMembers": ("GET", self._for_members),
            "chat.bsky.convo.getMessages": ("GET", self._get_messages),
            "chat.bsky.convo.sendMessage": ("POST", self._send),
            "chat.bsky.convo.addReaction": ("POST", self._react),
        }

    def convo(self, members: list[str]) -> str:
        """Find the conversation of these people, or make it; give its id."""
        for convo, known in self.convos.items():
            if set(known) == set(members):
                return convo
        convo = tid()
        self.convos[convo], self.messages[convo] = members, []
        return convo

    def write(self, convo: str, did: str, given: Object) -> Object:
        """Let somebody write a message to a conversation."""
        text = given["text"]
        if len(text.encode()) > 10_000 or signs(text) > 1_000:
            raise Refusal("InvalidRequest", "message/text is too long")
        message = {
            "$type": "chat.bsky.convo.defs#messageView",
            "id": tid(),
            "rev": tid(),
            "text": text,
            "sender": {"did": did},
            "sentAt": stamp(),
        }
        message |= {key: given[key] for key in ("facets", "embed") if key in given}
        if answered := given.get("replyTo"):
            known = {each["id"]: each for each in self.messages[convo]}
            message["replyTo"] = known[answered["messageId"]]
        self.messages[convo].append(message)
        self.log(convo, message)
        return message

    def log(self, convo: str, message: Object) -> None:
        """Put a message into the log of everybody who is there."""
        members = self.convos[convo]
        entry = {
            "$type": "chat.bsky.convo.defs#logCreateMessage",
            "rev": tid(),
            "convoId": convo,
            "message": message,
            "relatedProfiles": [self._profile(each) for each in members],
        }
        for each in members:
            self.logs.setdefault(each, []).append(entry)
        self._told()

    def _get_log(self, request: web.Request, did: str, _: Object) -> Object:
        since = request.query.get("cursor", "")
        rows = [each for each in self.logs.get(did, ()) if each["rev"] > since][:50]
        after = rows[-1]["rev"] if rows else since
        return {"cursor": after, "logs": [*self.odd, *rows]}

    def _list_convos(self, _: web.Request, did: str, __: Object) -> Object:
        mine = [each for each, members in self.convos.items() if did in members]
        views = [self._view(each, did) for each in mine]
        views.sort(key=lambda view: str(view["rev"]), reverse=True)
        return {"convos": views[:1]}

    def _view(self, convo: str, did: str) -> Object:
        entries = [
            each["rev"] for each in self.logs.get(did, ()) if each["convoId"] == convo
        ]
        return {
            "id": convo,
            "rev": entries[-1] if entries else convo,
            "members": [self._profile(each) for each in self.convos[convo]],
            "muted": False,
            "status": "accepted",
            "unreadCount": 0,
        }

    def _get_convo(self, request: web.Request, did: str, _: Object) -> Object:
        convo = request.query["convoId"]
        if did not in self.convos.get(convo, ()):
            raise Refusal("InvalidRequest", "Convo not found")
        return {"convo": self._view(convo, did)}

    def _for_members(self, request: web.Request, did: str, _: Object) -> Object:
        members = [did, *request.query.getall("members")]
        if not set(members) <= set(self._people):
            raise Refusal("InvalidRequest", "Could not find all members")
        return {"convo": self._view(self.convo(members), did)}

    def _get_messages(self, request: web.Request, _: str, __: Object) -> Object:
        return {"messages": self.messages[request.query["convoId"]][::-1][:100]}

    def _send(self, _: web.Request, did: str, given: Object) -> Object:
        if did not in self.convos.get(given["convoId"], ()):
            raise Refusal("InvalidRequest", "Convo not found")
        return self.write(given["convoId"], did, given["message"])

    def _react(self, _: web.Request, did: str, given: Object) -> Object:  # noqa: ARG002
        if signs(given["value"]) != 1:
            raise Refusal("ReactionInvalidValue", "one emoji")
        self.reactions.append((given["messageId"], given["value"]))
        self._told()
        return {"message": {}}

    def _profile(self, did: str) -> Object:
        return {"did": did, "handle": self._people[did]}
