"""Workflows as files of the home: read at the start and when somebody says so."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from agenthost import (
    AgentHostError,
    Conflict,
    Context,
    Host,
    NotFound,
    Row,
    Unavailable,
)
from agenthost_values.value_class import value_class

from .folder import Found, found_in

if TYPE_CHECKING:
    from .definition import Draft, Origin, Workflow
    from .workflows import Workflows

FOLDER = "workflows"
SECONDS = 30.0
"""How long the disk may take."""
OF_FILES = "SELECT id, name, file, digest FROM workflows WHERE file <> ''"

_log = logging.getLogger(__name__)


@value_class
class Loaded:
    """What came of the files, each by its name.

    ``gone`` are those that a workflow is from and that are there no more, ``problems``
    what could not be used, ``warnings`` what was, and is probably not as meant.
    """

    added: tuple[str, ...]
    changed: tuple[str, ...]
    unchanged: tuple[str, ...]
    gone: tuple[str, ...]
    problems: tuple[str, ...]
    warnings: tuple[str, ...]


class WorkflowFiles:
    """The files ``<home>/workflows/*.toml`` of a daemon.

    Args:
        host: The daemon; what is wrong with a file is among its warnings.
        workflows: What is made and changed by them.
    """

    def __init__(self, host: Host, workflows: Workflows) -> None:
        self._host = host
        self._workflows = workflows
        self._folder: Path = host.home / FOLDER
        # Two that load at once would make a new file's workflow twice.
        self._one = asyncio.Lock()
        self._told: list[str] = []

    async def load(self, context: Context) -> Loaded:
        """Make and change what files say that are new or another than before.

        No file stops it: what is wrong with one is told in the health's detail.
        """
        async with self._one:
            loaded = await self._loaded(context)
        warnings = self._host.warnings
        warnings[:] = [each for each in warnings if each not in self._told]
        self._told = [*loaded.problems]
        warnings += self._told
        for each in (*loaded.problems, *loaded.warnings):
            _log.warning("%s", each)
        return loaded

    async def check_free(self, workflow: Workflow) -> None:
        """Refuse to change or delete a workflow whose file is there.

        Raises:
            Conflict: The file is, and would bring it again.
        """
        if workflow.file and await self._exists(workflow.file):
            raise Conflict(
                f"{workflow.name} is from the file {FOLDER}/{workflow.file} of the "
                "home; change or remove that file instead, then load the files again"
            )

    async def _exists(self, name: str) -> bool:
        try:
            async with asyncio.timeout(SECONDS):
                return await asyncio.to_thread((self._folder / name).is_file)
        except TimeoutError:
            raise Unavailable(f"the folder {FOLDER} of the home is silent") from None

    async def _loaded(self, context: Context) -> Loaded:
        rows = await self._host.store.read(OF_FILES)
        known = {row["file"]: row for row in rows}
        load = _Load(self._workflows, context, known)
        try:
            async with asyncio.timeout(SECONDS):
                found = await asyncio.to_thread(lambda: list(found_in(self._folder)))
        except OSError as error:
            # A time-out is one too.
            reason = error.strerror or "it is silent"
            load.problems.append(f"{FOLDER}: the folder cannot be read: {reason}")
            return load.done({*known})
        for each in found:
            await load.take(each)
        return load.done({each.name for each in found})


class _Load:
    """One look at the files: what came of each."""

    def __init__(
        self, workflows: Workflows, context: Context, known: Mapping[str, Row]
    ) -> None:
        self._workflows = workflows
        self._context = context
        self._known = known
        self._added: list[str] = []
        self._changed: list[str] = []
        self._unchanged: list[str] = []
        self.problems: list[str] = []
        self._warnings: list[str] = []

    async def take(self, found: Found) -> None:
        """Do what a file says."""
        if found.problem:
            self.problems.append(f"{FOLDER}/{found.name} {found.problem}")
        elif found.name not in self._known:
            await self._use(found, None)
        elif self._known[found.name]["digest"] != found.digest:
            await self._use(found, self._known[found.name]["id"])
        else:
            self._unchanged.append(found.name)

    def done(self, there: set[str]) -> Loaded:
        """Tell what came of all, when these files are there."""
        gone = tuple(name for name in sorted(self._known) if name not in there)
        for name in gone:
            row = self._known[name]
            self.problems.append(
                f"{FOLDER}/{name} has gone; its workflow {row['name']} ({row['id']}) "
                "stays until it is deleted"
            )
        return Loaded(
            tuple(self._added),
            tuple(self._changed),
            tuple(self._unchanged),
            gone,
            tuple(self.problems),
            tuple(self._warnings),
        )

    async def _use(self, found: Found, workflow_id: str | None) -> None:
        from .definition import Origin
        from .documents import Unfit, read_document

        try:
            read = await asyncio.to_thread(read_document, found.name, found.data)
        except Unfit as error:
            self.problems += [f"{FOLDER}/{each}" for each in error.lines]
            return
        self._warnings += [f"{FOLDER}/{each}" for each in read.warnings]
        origin = Origin(found.name, found.digest)
        try:
            if await self._replaced(workflow_id, read.draft, origin):
                self._changed.append(found.name)
            else:
                await self._workflows.add(self._context, read.draft, origin)
                self._added.append(found.name)
        except AgentHostError as error:
            self.problems.append(f"{FOLDER}/{found.name}: {error.message}")

    async def _replaced(
        self, workflow_id: str | None, draft: Draft, origin: Origin
    ) -> bool:
        if workflow_id is None:
            return False
        try:
            workflow = await self._workflows.get(workflow_id)
            await self._workflows.replace(self._context, workflow, draft, origin)
        except NotFound:
            # Somebody deleted it meanwhile, and the file is there: it is a new one.
            return False
        return True
