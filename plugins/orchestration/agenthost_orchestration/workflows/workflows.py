"""The workflows of one daemon: list, find, make, replace and delete them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

from agenthost import Conflict, Context, Host, NotFound, telling

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from .definition import Draft, Listed, Origin, Workflow
    from .events import WorkflowEvent

NAMED_IN_ERRORS = 10


class Workflows:
    """The workflows of a daemon.

    Args:
        host: The daemon; its store is open.
    """

    def __init__(self, host: Host) -> None:
        self._host = host

    async def list(self) -> list[Listed]:
        """Give all workflows, the oldest first."""
        from .rows import LISTED, listed_of

        return [listed_of(row) for row in await self._host.store.read(LISTED)]

    async def get(self, workflow_id: str) -> Workflow:
        """Give a workflow by its id.

        Raises:
            NotFound: There is none.
        """
        from .rows import ONE, workflow_of

        row = await self._host.store.first(ONE, {"id": workflow_id})
        if row is None:
            raise NotFound("workflow", workflow_id)
        return workflow_of(row)

    async def find(self, reference: str) -> Workflow:
        """Give a workflow by its id in any form, or by its exact name.

        Raises:
            NotFound: There is none.
            Conflict: Several have the name; their ids are named.
        """
        from .rows import NAMED, ONE, workflow_of

        store = self._host.store
        known = _as_id(reference)
        if known and (row := await store.first(ONE, {"id": known})) is not None:
            return workflow_of(row)
        found = await store.read(NAMED, {"name": reference})
        if not found:
            raise NotFound("workflow", reference)
        if len(found) > 1:
            ids = ", ".join(row["id"] for row in found[:NAMED_IN_ERRORS])
            raise Conflict(
                f"{len(found)} workflows are named {reference!r}; use an id: {ids}"
            )
        return workflow_of(found[0])

    async def add(
        self, context: Context, draft: Draft, origin: Origin | None = None
    ) -> Workflow:
        """Make a workflow.

        Args:
            context: On whose behalf.
            draft: What it is.
            origin: The file that it is from, if any.

        Raises:
            Conflict: There are too many.
        """
        from .definition import Workflow
        from .events import WorkflowCreated
        from .rows import row_of
        from .tables import add

        file, digest = _named(origin)
        now = self._host.clock.time()
        made = Workflow(
            id=str(uuid4()),
            name=draft.name,
            description=draft.description,
            steps=draft.steps,
            max_cost_micro_usd=draft.max_cost_micro_usd,
            created_at=now,
            updated_at=now,
            owner=context.owner,
            file=file,
            labels=context.labels,
        )
        written = partial(add, row=row_of(made, digest))
        await self._told(context, WorkflowCreated, made, written)
        return made

    async def replace(
        self,
        context: Context,
        workflow: Workflow,
        draft: Draft,
        origin: Origin | None = None,
    ) -> Workflow:
        """Give a workflow another definition; who made it and its id stay.

        Runs that are under way go on with what they began with. Arguments are those of
        :meth:`add`.

        Raises:
            NotFound: It was deleted meanwhile.
        """
        from .events import WorkflowChanged
        from .rows import row_of
        from .tables import replace as put

        file, digest = _named(origin)
        changed = replace(
            workflow,
            name=draft.name,
            description=draft.description,
            steps=draft.steps,
            max_cost_micro_usd=draft.max_cost_micro_usd,
            updated_at=self._host.clock.time(),
            file=file,
            labels=workflow.labels | context.labels,
        )
        written = partial(put, row=row_of(changed, digest))
        await self._told(context, WorkflowChanged, changed, written)
        return changed

    async def delete(self, context: Context, workflow: Workflow) -> None:
        """Delete a workflow; its runs go on, and stay.

        Raises:
            NotFound: It was deleted before.
        """
        from .events import WorkflowDeleted
        from .tables import remove

        gone = partial(remove, workflow_id=workflow.id)
        await self._told(context, WorkflowDeleted, workflow, gone)

    async def _told(
        self,
        context: Context,
        kind: type[WorkflowEvent],
        workflow: Workflow,
        write: Callable[[Connection], None],
    ) -> None:
        """Write, with what is kept of the event in the same commit, and tell of it."""
        facts = workflow.name, len(workflow.steps), workflow.file
        about = workflow.id, self._host.clock.time(), *facts
        with telling(self._host.events, kind, *about, **context.caused) as keep:
            await self._host.store.write(write, *([keep] if keep else []))


def _named(origin: Origin | None) -> tuple[str, str]:
    return ("", "") if origin is None else (origin.file, origin.digest)


def _as_id(reference: str) -> str:
    try:
        return str(UUID(reference))
    except ValueError:
        return ""
