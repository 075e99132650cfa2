"""Our posts: records of our own repository, each with a key made of the message's."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace
from typing import Any

from agenthost import AgentHostError

from ..contract import Fate, Line, Outbound, OutFile, Sent
from ..transports.calls import as_sent
from .client import Answer, Client
from .mapping import POST, Us, list_in, object_in, text_in
from .posts import MOST_BYTES, POST_TYPE, record, record_key

REMEMBERED = 1_000
Reference = dict[str, str]


class Feed:
    """What one account says in public."""

    def __init__(self, client: Client, line: Line) -> None:
        self._client = client
        self._line = line
        self._last: OrderedDict[tuple[str, str], str] = OrderedDict()

    async def send(self, message: Outbound, us: Us) -> Sent:
        """Post an answer, or what begins a thread."""
        if reason := _refused(message):
            return _never(reason)
        reply = await self._reply(message)
        if isinstance(reply, Sent):
            return reply
        pictures = []
        for file in message.files:
            picture = await self._upload(file)
            if isinstance(picture, Sent):
                return picture
            pictures.append(picture)
        given = {
            "repo": us.did,
            "collection": POST_TYPE,
            "rkey": record_key(message.key),
            "record": record(_words(message), self._line.clock.time(), reply, pictures),
        }
        answer = await self._client.said("com.atproto.repo.createRecord", given)
        if isinstance(answer, Sent):
            # A record that is there already makes hosts fail: whoever looks finds it.
            return answer
        return self._there(message, text_in(answer.body, "uri"))

    def _there(self, message: Outbound, uri: str) -> Sent:
        self._last[message.place.thread, message.reply_to] = uri
        while len(self._last) > REMEMBERED:
            self._last.popitem(last=False)
        return Sent(Fate.DELIVERED, uri)

    async def _reply(
        self, message: Outbound
    ) -> tuple[Reference, Reference] | Sent | None:
        """Say what is answered: what continues an answer follows its last post."""
        root = message.place.thread
        if not root:
            return None
        before = self._last.get((root, message.reply_to), "")
        answered = message.reply_to if POST.fullmatch(message.reply_to) else root
        parent = before or answered
        answer = await self._client.asked(
            "app.bsky.feed.getPosts", {"uris": [*dict.fromkeys((root, parent))]}, {}
        )
        if not answer.ok:
            return replace(answer.as_failure(), fate=Fate.NOT_SENT)
        posts = list_in(answer.body, "posts")
        found = {
            text_in(post, "uri"): {
                "uri": text_in(post, "uri"),
                "cid": text_in(post, "cid"),
            }
            for post in posts
        }
        # What we have just said may not be listed yet: its own repository has it.
        if before and before not in found and (mine := await self._mine(before)):
            found[before] = mine
        if root not in found or parent not in found:
            return _never("the post that is answered is there no more")
        return found[root], found[parent]

    async def _mine(self, uri: str) -> Reference | None:
        parts = POST.fullmatch(uri)
        if parts is None:
            return None
        answer = await self._record(parts[1], parts[2])
        cid = text_in(answer.body, "cid")
        return {"uri": uri, "cid": cid} if answer.ok and cid else None

    async def _record(self, repo: str, key: str) -> Answer:
        query = {"repo": repo, "collection": POST_TYPE, "rkey": key}
        return await self._client.asked("com.atproto.repo.getRecord", query, {})

    async def _upload(self, file: OutFile) -> dict[str, Any] | Sent:
        """Hand in a picture, which nobody sees before a post has it."""
        try:
            answer = await self._client.call(
                "POST",
                "com.atproto.repo.uploadBlob",
                {"content-type": file.media_type},
                content=file.data,
            )
        except AgentHostError as error:
            return Sent(Fate.NOT_SENT, reason=as_sent(error).reason)
        blob = object_in(answer.body, "blob")
        if not answer.ok or not blob:
            return replace(answer.as_failure(), fate=Fate.NOT_SENT)
        return {"alt": file.name, "image": blob}

    async def reconcile(self, message: Outbound, us: Us) -> Sent:
        """Look for the record by its key."""
        answer = await self._record(us.did, record_key(message.key))
        if answer.ok:
            return self._there(message, text_in(answer.body, "uri"))
        if answer.error == "RecordNotFound":
            # The key is the same when it is sent again, so it is never there twice.
            return Sent(Fate.NOT_SENT, reason="Bluesky has not taken it")
        return Sent(Fate.UNKNOWN, reason=answer.reason)


def _words(message: Outbound) -> str:
    return message.plain or message.text


def _refused(message: Outbound) -> str:
    """Say why no post can be this message; "" where one can."""
    thread = message.place.thread
    if thread and not POST.fullmatch(thread):
        return (
            "a thread is named by its first post: at://did:.../app.bsky.feed.post/..."
        )
    if message.reaction:
        return "posts have no such thing"
    if len(_words(message).encode()) > MOST_BYTES:
        return f"a post has at most {MOST_BYTES} bytes"
    others = [each.name for each in message.files if not _is_picture(each)]
    return f"Bluesky takes pictures alone, and {others[0]} is none" if others else ""


def _is_picture(file: OutFile) -> bool:
    return file.media_type.startswith("image/")


def _never(reason: str) -> Sent:
    return Sent(Fate.NOT_SENT, reason=reason, final=True)
