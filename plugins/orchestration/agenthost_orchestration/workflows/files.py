"""Workflows as files of the home: read at the start and when somebody says so."""

from __future__ import annotations

import asyncio
import logging
import os
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

if TYPE_CHECKING:
    from .definition import Draft, Origin, Workflow
    from .folder import Found
    from .shapes import FilesLoaded
    from .workflows import Workflows

FOLDER = "workflows"
SUFFIX = ".toml"
MOST_FILES = 1_000
SECONDS = 30.0
"""How long the disk may take for one of them."""
OF_FILES = "SELECT id, name, file, digest FROM workflows WHERE file <> ''"

_log = logging.getLogger(__name__)


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

    async def load(self, context: Context) -> FilesLoaded:
        """Make and change what files say that are new or another than before.

        No file stops it: what is wrong with one is told in the health's detail.
        """
        async with self._one:
            loaded = await self._loaded(context)
        warnings = self._host.warnings
        warnings[:] = [each for each in warnings if each not in self._told]
        self._told = loaded["problems"]
        warnings += self._told
        for each in (*loaded["problems"], *loaded["warnings"]):
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

    async def _loaded(self, context: Context) -> FilesLoaded:
        known = {row["file"]: row for row in await self._host.store.read(OF_FILES)}
        load = _Load(self._workflows, context, known)
        try:
            names = await self._names()
            for name in names[:MOST_FILES]:
                await load.take(await self._read(name))
        except OSError as error:
            # A time-out is one too.
            reason = error.strerror or "it is silent"
            load.tell(f": the folder cannot be read: {reason}")
            return load.loaded
        for name in names[MOST_FILES:]:
            load.tell(f"/{name} is not read: {MOST_FILES} files are the most")
        load.miss({*names})
        return load.loaded

    async def _names(self) -> list[str]:
        async with asyncio.timeout(SECONDS):
            return await asyncio.to_thread(names_in, self._folder)

    async def _read(self, name: str) -> Found:
        from .folder import read_in

        async with asyncio.timeout(SECONDS):
            return await asyncio.to_thread(read_in, self._folder, name)


class _Load:
    """One look at the files: what came of each, by its name.

    ``problems`` say what could not be used, ``warnings`` what was, and is probably not
    as meant.
    """

    def __init__(
        self, workflows: Workflows, context: Context, known: Mapping[str, Row]
    ) -> None:
        self.loaded: FilesLoaded = {
            "added": [],
            "changed": [],
            "unchanged": [],
            "gone": [],
            "problems": [],
            "warnings": [],
        }
        self._workflows = workflows
        self._context = context
        self._known = known

    async def take(self, found: Found) -> None:
        """Do what a file says."""
        known = self._known.get(found.name)
        if found.problem:
            self.tell(f"/{found.name} {found.problem}")
        elif known is None:
            await self._use(found, None)
        elif known["digest"] != found.digest:
            await self._use(found, known["id"])
        else:
            self.loaded["unchanged"].append(found.name)

    def miss(self, there: set[str]) -> None:
        """Tell of files that a workflow is from and that are there no more."""
        for name in sorted(self._known.keys() - there):
            row = self._known[name]
            self.loaded["gone"].append(name)
            self.tell(
                f"/{name} has gone; its workflow {row['name']} ({row['id']}) stays "
                "until it is deleted"
            )

    def tell(self, problem: str) -> None:
        """Tell what is wrong with the folder, or with what is in it."""
        self.loaded["problems"].append(f"{FOLDER}{problem}")

    async def _use(self, found: Found, workflow_id: str | None) -> None:
        from .definition import Origin
        from .documents import Unfit, read_document

        try:
            read = await asyncio.to_thread(read_document, found.name, found.data)
        except Unfit as error:
            for line in error.lines:
                self.tell(f"/{line}")
            return
        self.loaded["warnings"] += [f"{FOLDER}/{each}" for each in read.warnings]
        origin = Origin(found.name, found.digest)
        try:
            if await self._replaced(workflow_id, read.draft, origin):
                self.loaded["changed"].append(found.name)
            else:
                await self._workflows.add(self._context, read.draft, origin)
                self.loaded["added"].append(found.name)
        except AgentHostError as error:
            self.tell(f"/{found.name}: {error.message}")

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


def names_in(folder: Path) -> list[str]:
    """Name the TOML files of a folder; there need not be one.

    Raises:
        OSError: The folder cannot be read.
    """
    if not folder.is_dir():
        return []
    return sorted(name for name in os.listdir(folder) if _is_meant(name))


def _is_meant(name: str) -> bool:
    # What is hidden is an editor's, what is not text has no place in a row.
    return name.endswith(SUFFIX) and not name.startswith(".") and name.isprintable()
