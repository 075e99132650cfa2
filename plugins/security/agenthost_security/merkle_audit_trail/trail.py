"""The trail of a daemon: entries in the commits of their causes, heads behind."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from agenthost import (
    ALLOW,
    AgentHostError,
    Deny,
    Event,
    Host,
    Keep,
    PluginError,
    Row,
    Unavailable,
    Verdict,
    timestamp,
)

from . import heads as signed
from .canonical import Entry, Facts, entries_after
from .checking import Broken, Chain, Walk
from .heads import Head
from .kept import facts_of
from .proof import prove
from .signing import SigningKey, load_key, public_in
from .tree import TILE, Tree, leaf_hash

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from .tables import End

log = logging.getLogger(__name__)

PLUGIN = "security:merkle_audit_trail"
KEY_FILE = "audit.key"
HEADS_FILE = "audit.heads"
APART = 1.0
"""Seconds that an entry waits for its head at the longest."""
TOGETHER = 256
"""Entries that wait for a head at the most."""
ROUNDS = 5
"""So often an entry is looked for whose commit takes longer."""
NEWEST = 1_000
PATIENCE = 20.0
BEGIN_AFTER = 1.0

COLUMNS = (
    "id, node, number, timestamp, event_type, agent_id, actor, details, prev_hash, "
    "hash, canonical"
)
_NEW = (
    f"SELECT {COLUMNS} FROM audit_entries WHERE node = :node AND number > :number "  # nosec B608 # noqa: S608 - constant
    f"ORDER BY number LIMIT {TOGETHER}"
)
NEXT = f"SELECT {COLUMNS} FROM audit_entries WHERE id > :after ORDER BY id LIMIT :limit"  # nosec B608 # noqa: S608 - constant
_AT = "SELECT id, hash FROM audit_entries WHERE node = :node AND number = :number"
LAST = "SELECT id FROM audit_entries ORDER BY id DESC LIMIT 1"
_TILES = "SELECT tile, hash FROM audit_tiles WHERE node = :node ORDER BY tile"
_LEAVES = (
    "SELECT canonical FROM audit_entries WHERE node = :node AND number > :after "
    "AND number <= :until ORDER BY number"
)
MARK = "SELECT heads, digest FROM audit_marks WHERE node = :node"
_STILL = Deny("nothing is done before the audit trail is open; try again soon")


class Trail:
    """Keeps an entry of every event that is recorded, and signs heads over them.

    Attributes:
        head: The last head that was signed; None before the first.
        tree: The tree under it, once it was needed.
        signing: Held while heads are signed, or the tree has to stand still.
        node: Whose chain the entries of this daemon are in.
        recording: Whether what happens is recorded.
        verifying: The walk that is under way, or was the last.
    """

    def __init__(self) -> None:
        self.head: Head | None = None
        self.tree: Tree | None = None
        self.signing = asyncio.Lock()
        self.recording = False
        self.node = ""
        self._host: Host | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._key: SigningKey | None = None
        self._making = asyncio.Lock()
        self._end: End | None = None
        # What the transaction at hand has to tell, and whose it is.
        self._facts: list[Facts] = []
        self._written_by: Connection | None = None
        # It imports SQLAlchemy, which a start can do without.
        self._tables: Any = None
        self._chain = Chain()
        self._tiles_kept = 0
        self._trouble = ""
        self._recorded = 0
        self._rounds = 0
        self._due = asyncio.Event()
        self._full = asyncio.Event()
        self._begin = asyncio.Event()
        self._ended = False
        self._signer: asyncio.Task[None] | None = None
        self.verifying: asyncio.Task[dict[str, Any]] | None = None

    @property
    def host(self) -> Host:
        """The daemon whose trail it is.

        Raises:
            Unavailable: It is not up yet.
        """
        if self._host is None:
            raise Unavailable("the audit trail is not open yet")
        return self._host

    @property
    def appended(self) -> int:
        """The id of the entry that was flushed last, in the writer's thread."""
        return self._end[0] if self._end else 0

    def may_happen(self, case: object) -> Verdict:
        """Allow what will be recorded."""
        del case
        return ALLOW if self.recording else _STILL

    async def start(self, host: Host) -> None:
        """Compare heads and database; from now on record.

        Raises:
            PluginError: One of them is not what it was.
        """
        self._host, self._loop = host, asyncio.get_running_loop()
        self.node = host.config.node
        try:
            self.head = signed.last_of(host.data_dir / HEADS_FILE)
            await self._compare_ends()
        except (ValueError, Broken) as error:
            raise PluginError(f"the audit trail is broken: {error}") from error
        host.events.record(self._record)
        self.recording = True
        self._signer = asyncio.create_task(self._sign_when_due())

    async def stop(self) -> None:
        """Walk no further, and sign what is left."""
        if self.verifying is not None:
            self.verifying.cancel()
        if self._signer is not None:
            # It is not cut off between file and database.
            self._ended = True
            self._due.set()
            self._full.set()
            self._begin.set()
            await asyncio.gather(self._signer, return_exceptions=True)
        if self._host is not None and self._host.plugins.healthy(PLUGIN):
            await self.sign()

    async def sign(self) -> Head | None:
        """Sign a head over all entries there are now; give the last one.

        Who asks may leave: what was begun is ended.

        Raises:
            AgentHostError: The trail is broken, or the disk takes nothing.
        """
        signing = asyncio.create_task(self._sign())
        signing.add_done_callback(lambda task: task.cancelled() or task.exception())
        return await asyncio.shield(signing)

    async def _sign(self) -> Head | None:
        async with self.signing:
            try:
                return await self._signed()
            except Broken as error:
                told = f"the audit trail is broken at entry {error.break_at}: {error}"
                self.host.plugins.fail(PLUGIN, told)
                raise PluginError(told) from error
            except OSError as error:
                self._trouble = f"heads cannot be written ({error.strerror})"
                raise Unavailable(self._trouble) from error

    async def key(self) -> SigningKey:
        """Give the key, made where there is none."""
        # Two that make it at once would make two.
        async with self._making:
            if self._key is None:
                path = self.host.home / KEY_FILE
                self._key = await asyncio.to_thread(load_key, path)
        return self._key

    def self_test(self) -> None:
        """Show that tampering is found; of a trail that is open, compare its end.

        Raises:
            AgentHostError: It was not, or something was tampered with.
        """
        prove()
        if self.recording and self._loop is not None:
            comparing = asyncio.run_coroutine_threadsafe(self.compare(), self._loop)
            comparing.result(PATIENCE)

    async def compare(self) -> None:
        """Compare key, heads and the newest entries with each other.

        Raises:
            AgentHostError: They do not fit.
        """
        if self._trouble:
            await self.sign()
        head, path = await self.sign(), self.host.data_dir / HEADS_FILE
        key = await asyncio.to_thread(load_key, self.host.home / KEY_FILE)
        if key.public != (await self.key()).public:
            raise PluginError("audit.key was exchanged; put the right one back")
        store = self.host.store
        last = await store.first(LAST)
        after = max(0, last["id"] - NEWEST) if last else 0
        rows = await store.read(NEXT, {"after": after, "limit": 2 * NEWEST})
        try:
            if await asyncio.to_thread(signed.last_of, path) != head:
                raise Broken(0, "audit.heads is not what was written")  # noqa: TRY301
            await self._compare_ends()
            await asyncio.to_thread(_walk, head, after, rows)
        except (ValueError, Broken) as error:
            raise PluginError(f"the audit trail is broken: {error}") from error
        if head and not signed.is_signed(head, key.public):
            raise PluginError("the last head was not signed with audit.key")

    def _record(self, event: Event) -> Keep:
        self._recorded += 1
        self._rounds = ROUNDS
        self._due.set()
        if self._recorded >= TOGETHER:
            self._full.set()
        return partial(self._append, facts=facts_of(event))

    def _append(self, connection: Connection, facts: Facts) -> None:
        """Have an entry written in this transaction, in the writer's thread."""
        if self._written_by is not connection:
            self._watch(connection)
        self._facts.append(facts)

    def _watch(self, connection: Connection) -> None:
        """Write what a transaction has to tell at once, when it is committed.

        All that happened together is one statement then.
        """
        from sqlalchemy import event

        self._written_by, self._facts = connection, []
        event.listen(connection, "begin", self._forget)
        event.listen(connection, "commit", self._flush_first)

    def _forget(self, _: Connection) -> None:
        # What is left is that of a transaction that was rolled back.
        self._facts = []

    def _flush_first(self, connection: Connection) -> None:
        try:
            self.flush(connection)
        except BaseException:
            # For SQLAlchemy the transaction has ended, for the database it has not.
            connection.engine.dialect.do_rollback(connection.connection)
            raise

    def flush(self, connection: Connection) -> None:
        """Put the entries of this transaction behind the last one.

        Raises:
            Unavailable: They find no place; the transaction is to be rolled back.
        """
        facts, self._facts = self._facts, []
        if not facts:
            return
        if self._tables is None:
            self._tables = import_module(".tables", __package__)
        tables, node = self._tables, self.node
        for _ in range(2):
            end: End = self._end or tables.end_of(connection, node)
            entries = entries_after((end[0], end[2], end[3]), node, facts)
            if tables.put(connection, end, entries):
                last = entries[-1]
                self._end = (last[0], last[9], last[2], last[9])
                return
            # It was rolled back, or another node has written.
            self._end = None
        raise Unavailable("the audit trail takes no entry now; try again")

    async def _sign_when_due(self) -> None:
        if public_in(self.host.home / KEY_FILE) is None:
            # The first answers need not wait until a key is made.
            await _within(BEGIN_AFTER, self._begin)
            await self.key()
        while not self._ended:
            await self._due.wait()
            self._due.clear()
            await _within(APART, self._full)
            try:
                await self._sign()
            except AgentHostError as error:
                log.warning("no head was signed: %s", error.message)
            if self._recorded and self._rounds:
                self._rounds -= 1
                self._due.set()

    async def _signed(self) -> Head | None:
        tree = self.tree if self.tree is not None else await self._grown()
        before = tree.size
        # Until all is on disk the tree counts for nothing: it is grown again from what
        # was signed, were this cut off.
        self.tree = None
        self._full.clear()
        new = await self._made(tree)
        if new:
            path = self.host.data_dir / HEADS_FILE
            await asyncio.to_thread(signed.append, path, new)
            self.head = new[-1]
            self._recorded = max(0, self._recorded - (tree.size - before))
        self.tree = tree
        # Who was killed between file and database left tiles that are kept now.
        unkept = range(self._tiles_kept, len(tree.tiles))
        if new or unkept:
            await self._mark([(n, tree.tiles[n].hex()) for n in unkept])
            self._tiles_kept = len(tree.tiles)
        self._trouble = ""
        return self.head

    async def _made(self, tree: Tree) -> list[dict[str, Any]]:
        """Make heads over what was appended, and take it into the tree."""
        new: list[dict[str, Any]] = []
        key = await self.key()
        while rows := await self._rows_behind(tree.size):
            grown = await asyncio.to_thread(self._extend, tree, rows)
            last = new[-1] if new else self.head
            facts = {
                "number": 1 + (last["number"] if last else 0),
                "node": self.node,
                "at": timestamp(self.host.clock.time()),
                "before": signed.digest_of(last),
            }
            new.append(await asyncio.to_thread(signed.made, key, facts | grown))
        return new

    async def _mark(self, tiles: list[tuple[int, str]]) -> None:
        from .tables import keep_heads

        assert self.head is not None  # noqa: S101 - it was signed just now
        mark = (self.head["number"], signed.digest_of(self.head))
        keeping = partial(keep_heads, node=self.node, mark=mark, new=tiles)
        await self.host.store.write(keeping)

    async def _rows_behind(self, number: int) -> Sequence[Row]:
        return await self.host.store.read(_NEW, {"node": self.node, "number": number})

    def _extend(self, tree: Tree, rows: Sequence[Row]) -> dict[str, Any]:
        """Take entries into the tree; nothing is signed that does not follow."""
        for row in rows:
            entry: Entry = tuple(row)
            self._chain.take(entry)
            tree.push(leaf_hash(entry[10]))
        self._chain.end()
        return {
            "size": tree.size,
            "root": tree.root.hex(),
            "last_id": self._chain.id,
            "last_hash": self._chain.hash,
        }

    async def _grown(self) -> Tree:
        """Grow the tree again up to the last head, from its tiles.

        Raises:
            Broken: It is not the one that was signed.
        """
        head, store, node = self.head, self.host.store, self.node
        if head is not None and head["node"] != node:
            path = self.host.data_dir / HEADS_FILE
            known = await asyncio.to_thread(lambda: list(signed.read(path)))
            head = next((h for h in reversed(known) if h["node"] == node), None)
        size = head["size"] if head else 0
        rows = await store.read(_TILES, {"node": node})
        # Behind a gap none counts: those are hashed anew, and kept.
        whole = [row["hash"] for n, row in enumerate(rows) if row["tile"] == n]
        tiles = [bytes.fromhex(each) for each in whole[: size // TILE]]
        self._tiles_kept = len(tiles)
        between = {"node": node, "after": len(tiles) * TILE, "until": size}
        leaves = await store.read(_LEAVES, between)
        hashes = [leaf_hash(row["canonical"]) for row in leaves]
        tree = await asyncio.to_thread(Tree, tiles, hashes)
        self._chain = Chain()
        if head is not None:
            if tree.size != size or tree.root.hex() != head["root"]:
                raise Broken(head["last_id"], "the tree is not the one that was signed")
            self._chain = Chain(size, head["last_id"], head["last_hash"])
        self.tree = tree
        return tree

    def _new_home(self) -> bool:
        """Tell whether a node came back to a database on a server without its home."""
        url = self.host.config.storage.url
        elsewhere = url is not None and not url.reveal().startswith("sqlite")
        if not elsewhere or public_in(self.host.home / KEY_FILE) is not None:
            return False
        told = "audit: the heads of this node were in another home; they begin anew"
        self.host.warnings.append(told)
        log.warning("%s", told)
        return True

    async def _compare_ends(self) -> None:
        """Compare the last head with key, entry and mark.

        Raises:
            Broken: They do not fit.
        """
        head, host = self.head, self.host
        mark = await host.store.first(MARK, {"node": self.node})
        if head is None:
            if mark is not None and not self._new_home():
                raise Broken(1, "audit.heads is gone")
            return
        if public_in(host.home / KEY_FILE) != head["key"]:
            raise Broken(head["last_id"], "audit.key is not the one that signed heads")
        at = {"node": head["node"], "number": head["size"]}
        row = await host.store.first(_AT, at)
        if row is None or tuple(row) != (head["last_id"], head["last_hash"]):
            told = f"entry {head['last_id']}, which was signed, is not there"
            raise Broken(head["last_id"], told)
        if mark is not None and (
            mark["heads"] > head["number"]
            or (
                mark["heads"] == head["number"]
                and mark["digest"] != signed.digest_of(head)
            )
        ):
            raise Broken(head["last_id"], "audit.heads lacks heads that were signed")


async def _within(seconds: float, event: asyncio.Event) -> None:
    """Wait for an event, but not for longer."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()


def _walk(head: Head | None, after: int, rows: Sequence[Row]) -> None:
    covered = [head] if head and head["last_id"] > after else []
    walk = Walk(covered, after)
    walk.feed(rows)
    walk.end()
