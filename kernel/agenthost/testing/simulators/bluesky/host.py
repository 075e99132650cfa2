"""Bluesky on a loopback port: a host of accounts, its AppView, its direct messages.

Written from the lexicons of ``com.atproto``, ``app.bsky`` and ``chat.bsky`` and from
https://atproto.com. Behind a real host it is only the two services that the host hands
calls on to: who calls is then told by the service token.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import time
from collections.abc import Callable, Mapping
from typing import Any, Self

from aiohttp import web

from .chat import Chat
from .shared import Handler, Object, Refusal, cid_of, signs, stamp, tid

PASSWORD = "abcd-efgh-ijkl-canary"  # noqa: S105 # nosec B105 # opens nothing
POST = "app.bsky.feed.post"
REPLY_DEPTH = 5
BLOB_BYTES = 1_000_000


class BlueskySimulator:
    """A host with a few accounts.

    Args:
        port: Where it listens; any free port by default.

    Attributes:
        people: The handle of each account, by DID.
        posts: Every post by its address, with ``uri``, ``cid``, ``record``.
        notified: What each account is notified of, oldest first.
        chat: The direct messages.
        blobs: Files by their CID.
        calls: The name of every method that was called.
        odd: What stands among the notifications that should not.
        losing: Whether what is said next is taken, and not answered.
        breaking: How many of the next calls break off before they are read.
        refusing: The status of the next refusal, and the seconds that it asks for.
        logins: How many sessions were made with a password.
    """

    def __init__(self, port: int = 0) -> None:
        self._port = port
        self.people: dict[str, str] = {}
        self.posts: dict[str, Object] = {}
        self.notified: dict[str, list[Object]] = {}
        self.blobs: dict[str, tuple[str, bytes]] = {}
        self.calls: list[str] = []
        self.logins = 0
        self.password = PASSWORD
        self.losing = False
        self.breaking = 0
        self.odd: list[Any] = []
        self.refusing: tuple[int, float] | None = None
        self.url = ""
        self._access: dict[str, str] = {}
        self._refresh: dict[str, str] = {}
        self._expired: set[str] = set()
        self._count = 0
        self._changed = asyncio.Event()
        self.chat = Chat(self.people, self._changed.set)
        self._methods: Mapping[str, tuple[str, Handler]] = {
            **self.chat.methods,
            "com.atproto.server.createSession": ("POST", self._log_in),
            "com.atproto.server.refreshSession": ("POST", self._refreshed),
            "com.atproto.repo.createRecord": ("POST", self._create),
            "com.atproto.repo.uploadBlob": ("POST", self._upload),
            "com.atproto.repo.getRecord": ("GET", self._record),
            "com.atproto.sync.getBlob": ("GET", self._blob),
            "app.bsky.feed.getPosts": ("GET", self._get_posts),
            "app.bsky.notification.listNotifications": ("GET", self._notifications),
        }

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=64 << 20)
        app.router.add_route("*", "/xrpc/{name}", self._answer)
        app.router.add_get("/{did:did:.*}", self._document)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    # What a test does.

    def join(self, handle: str, did: str = "") -> str:
        """Make an account; give its DID."""
        seed = base64.b32encode(hashlib.sha256(handle.encode()).digest())
        did = did or f"did:plc:{seed.decode().lower()[:24]}"
        self.people[did] = handle
        self.notified.setdefault(did, [])
        return did

    def post(self, did: str, text: str, reply: str = "", **more: Any) -> str:
        """Let somebody post, in answer to a post or not; give the address."""
        record: Object = {"$type": POST, "text": text, "createdAt": stamp(), **more}
        if reply:
            parent = self.posts[reply]
            root = parent["record"].get("reply", {}).get("root") or _ref(parent)
            record["reply"] = {"root": root, "parent": _ref(parent)}
        return str(self.index(did, tid(), record)["uri"])

    def mention(self, did: str, whom: str, text: str, reply: str = "") -> str:
        """Let somebody post what begins with the name of an account."""
        name = f"@{self.people[whom]}"
        feature = {"$type": "app.bsky.richtext.facet#mention", "did": whom}
        index = {"byteStart": 0, "byteEnd": len(name.encode())}
        facets = [{"index": index, "features": [feature]}]
        return self.post(did, f"{name} {text}", reply, facets=facets)

    def write(self, did: str, to: str, text: str, **more: Any) -> Object:
        """Let somebody write a direct message."""
        return self.chat.write(self.chat.convo([did, to]), did, {"text": text, **more})

    def index(self, did: str, key: str, record: Object, cid: str = "") -> Object:
        """Learn of a post as an AppView does, and notify whom it concerns."""
        uri = f"at://{did}/{POST}/{key}"
        said = json.dumps(record, sort_keys=True).encode()
        found = {
            "uri": uri,
            "cid": cid or cid_of(said, 0x71),
            "author": self._profile(did),
            "record": record,
            "indexedAt": stamp(),
        }
        self.posts[uri] = found
        for whom, reason in self._concerned(did, record).items():
            self.notified[whom].append({**found, "reason": reason, "isRead": False})
        self._changed.set()
        return found

    def _concerned(self, did: str, record: Object) -> dict[str, str]:
        told: dict[str, str] = {}
        above, depth = record.get("reply", {}).get("parent", {}).get("uri"), 0
        while above in self.posts and depth < REPLY_DEPTH:
            post = self.posts[above]
            told[post["author"]["did"]] = "reply"
            above = post["record"].get("reply", {}).get("parent", {}).get("uri")
            depth += 1
        for facet in record.get("facets") or ():
            for feature in facet["features"]:
                if feature["$type"].endswith("#mention"):
                    told.setdefault(feature["did"], "mention")
        return {w: r for w, r in told.items() if w != did and w in self.people}

    def expire(self) -> None:
        """Let every token of a session end."""
        self._expired |= set(self._access)

    def revoke(self, password: str) -> None:
        """Give the accounts another password; nobody is logged in any more."""
        self.password = password
        self._access.clear()
        self._refresh.clear()

    async def until(self, happened: Callable[[], object]) -> None:
        """Wait until something is so."""
        async with asyncio.timeout(20):
            while not happened():
                self._changed.clear()
                await self._changed.wait()

    # What it answers.

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["name"]
        self.calls.append(name)
        if self.breaking:
            self.breaking -= 1
            self._cut(request)
        try:
            found = await self._handled(request, name)
        except Refusal as error:
            told = {"error": error.name, "message": str(error)}
            return web.json_response(told, status=error.status, headers=error.headers)
        if self.losing and name in SAYING:
            self.losing = False
            self._cut(request)
        if isinstance(found, web.StreamResponse):
            return found
        return web.json_response(found)

    @staticmethod
    def _cut(request: web.Request) -> None:
        if request.transport is not None:
            request.transport.abort()
        raise ConnectionResetError

    async def _handled(self, request: web.Request, name: str) -> Any:
        method, handler = self._methods.get(name, ("", None))
        if handler is None:
            raise Refusal("MethodNotImplemented", "Method Not Implemented", 501)
        if request.method != method:
            raise Refusal("InvalidRequest", f"Incorrect HTTP method, expected {method}")
        given: Object = {}
        if request.content_type == "application/json" and request.can_read_body:
            given = await request.json()
        elif method == "POST":
            given = {"data": await request.read()}
        if name.startswith("com.atproto.server.") or name in OPEN:
            return handler(request, "", given)
        did = self._caller(request)
        self._admit(request, name)
        return handler(request, did, given)

    def _admit(self, request: web.Request, name: str) -> None:
        if self.refusing is not None and name in SAYING:
            (status, seconds), self.refusing = self.refusing, None
            refusal = Refusal("RateLimitExceeded", "Rate Limit Exceeded", status)
            ends = str(int(time.time()) + int(seconds))
            refusal.headers = {"RateLimit-Remaining": "0", "RateLimit-Reset": ends}
            raise refusal
        if name.startswith("chat."):
            if request.headers.get("atproto-proxy", CHAT) != CHAT:
                raise Refusal("InvalidRequest", "could not resolve proxy did")
            if not self.chat.allowed:
                raise Refusal("InvalidToken", "Bad token method")

    def _caller(self, request: web.Request) -> str:
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        if kind != "Bearer":
            raise Refusal("AuthMissing", "Authentication Required", 401)
        if token in self._expired:
            raise Refusal("ExpiredToken", "Token has expired")
        if token in self._access:
            return self._access[token]
        # A service token of a real host, which has looked who it is.
        parts = token.split(".")
        if len(parts) == 3 and "." not in self.password:
            claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=="))
            if claims.get("iss") in self.people:
                return str(claims["iss"])
        raise Refusal("InvalidToken", "Token could not be verified")

    async def _document(self, request: web.Request) -> web.Response:
        did = request.match_info["did"]
        if did not in self.people:
            return web.json_response({"message": "DID not registered"}, status=404)
        return web.json_response(self._did_document(did))

    def _did_document(self, did: str) -> Object:
        kind = "AtprotoPersonalDataServer"
        host = {"id": "#atproto_pds", "type": kind, "serviceEndpoint": self.url}
        return {
            "id": did,
            "alsoKnownAs": [f"at://{self.people[did]}"],
            "service": [host],
        }

    def _log_in(self, _: web.Request, __: str, given: Object) -> Object:
        name = given.get("identifier")
        dids = [did for did, handle in self.people.items() if name in (did, handle)]
        if not dids or given.get("password") != self.password:
            raise Refusal(
                "AuthenticationRequired", "Invalid identifier or password", 401
            )
        self.logins += 1
        return self._session(dids[0])

    def _session(self, did: str) -> Object:
        self._count += 1
        access, refresh = f"access-{self._count}", f"refresh-{self._count}"
        self._access[access] = self._refresh[refresh] = did
        return {
            "accessJwt": access,
            "refreshJwt": refresh,
            "handle": self.people[did],
            "did": did,
            "didDoc": self._did_document(did),
            "active": True,
        }

    def _refreshed(self, request: web.Request, _: str, __: Object) -> Object:
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        if (did := self._refresh.pop(token, "")) == "":
            raise Refusal("ExpiredToken", "Token has been revoked")
        return self._session(did)

    def _create(self, _: web.Request, did: str, given: Object) -> Object:
        key, record = given.get("rkey") or tid(), given["record"]
        if given["repo"] not in (did, self.people[did]):
            raise Refusal("InvalidRequest", "Invalid repo")
        if f"at://{did}/{POST}/{key}" in self.posts:
            raise Refusal("InternalServerError", "Internal Server Error", 500)
        self._check(record)
        made = self.index(did, key, record)
        return {"uri": made["uri"], "cid": made["cid"]}

    def _check(self, record: Object) -> None:
        text = record["text"]
        size = len(text.encode())
        if size > 3000 or signs(text) > 300:
            raise Refusal(
                "InvalidRequest",
                "Invalid app.bsky.feed.post record: Record/text must not be longer "
                "than 300 graphemes",
            )
        for facet in record.get("facets") or ():
            start, end = facet["index"]["byteStart"], facet["index"]["byteEnd"]
            if not 0 <= start < end <= size:
                raise Refusal("InvalidRequest", "a facet lies outside of the text")
            text.encode()[start:end].decode()
        for image in record.get("embed", {}).get("images", ()):
            if image["image"]["ref"]["$link"] not in self.blobs:
                raise Refusal("BlobNotFound", "Could not find blob")

    def _upload(self, request: web.Request, _: str, given: Object) -> Object:
        kind, data = request.content_type, given["data"]
        if len(data) > BLOB_BYTES:
            raise Refusal("BlobTooLarge", "This file is too large")
        cid = cid_of(data)
        self.blobs[cid] = kind, data
        blob = {"$type": "blob", "ref": {"$link": cid}, "mimeType": kind}
        return {"blob": {**blob, "size": len(data)}}

    def _blob(self, request: web.Request, _: str, __: Object) -> web.Response:
        if request.query["cid"] not in self.blobs:
            raise Refusal("BlobNotFound", "Blob not found")
        kind, data = self.blobs[request.query["cid"]]
        return web.Response(body=data, content_type=kind)

    def _record(self, request: web.Request, _: str, __: Object) -> Object:
        q = request.query
        uri = f"at://{q['repo']}/{q['collection']}/{q['rkey']}"
        if uri not in self.posts:
            raise Refusal("RecordNotFound", f"Could not locate record: {uri}")
        post = self.posts[uri]
        return {"uri": uri, "cid": post["cid"], "value": post["record"]}

    def _get_posts(self, request: web.Request, _: str, __: Object) -> Object:
        uris = request.query.getall("uris")
        return {"posts": [self.posts[uri] for uri in uris if uri in self.posts]}

    def _notifications(self, request: web.Request, did: str, _: Object) -> Object:
        reasons = request.query.getall("reasons", [])
        rows = [r for r in self.notified[did] if not reasons or r["reason"] in reasons]
        rows.sort(key=lambda row: str(row["indexedAt"]), reverse=True)
        start = int(request.query.get("cursor", "0"))
        end = start + int(request.query.get("limit", "50"))
        told: Object = {"notifications": [*self.odd, *rows[start:end]]}
        return told | ({"cursor": str(end)} if end < len(rows) else {})

    def _profile(self, did: str) -> Object:
        return {"did": did, "handle": self.people[did], "labels": []}


def _ref(post: Object) -> Object:
    return {"uri": post["uri"], "cid": post["cid"]}


CHAT = "did:web:api.bsky.chat#bsky_chat"
SAYING = {"com.atproto.repo.createRecord", "chat.bsky.convo.sendMessage"}
OPEN = {"com.atproto.sync.getBlob"}
