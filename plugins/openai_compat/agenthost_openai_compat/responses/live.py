"""Stored responses that are under way: kept in the commit of their turns' end."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from agenthost import (
    CutShort,
    Finish,
    Host,
    Keep,
    Turn,
    TurnEnded,
    TurnState,
    Usage,
)

from .draft import Draft, Ending, answered, broken_off, id_of
from .rows import columns_of

WAITING = TurnState.WAITING.value


class Live:
    """Hears how turns end, as long as there is one whose response is to be kept.

    Args:
        host: The daemon.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self._drafts: dict[str, Draft] = {}
        self._deaf: list[Callable[[], None]] = []

    def begin(self, draft: Draft) -> None:
        """Keep it when its turn ends; called before that has run."""
        if not self._drafts:
            events, turns = self._host.events, self._host.turns
            self._deaf = [
                events.record(self._recorded, TurnEnded),
                events.subscribe(self._over, TurnEnded),
                turns.listen(self._goes_on),
            ]
        self._drafts[draft.turn.id] = draft

    def leave(self, draft: Draft) -> None:
        """Hear of it no more."""
        if self._drafts.get(draft.turn.id) is not draft:
            return
        del self._drafts[draft.turn.id]
        if not self._drafts:
            for each in self._deaf:
                each()

    def _goes_on(self, turn: Turn) -> None:
        # One that has waited for a person is another object from then on.
        if (draft := self._drafts.get(turn.id)) is not None:
            draft.turn = turn

    def _over(self, event: TurnEnded) -> None:
        draft = self._drafts.get(event.turn_id)
        if draft is not None and event.state != WAITING:
            draft.over.set()

    def _recorded(self, event: TurnEnded) -> Keep | None:
        draft = self._drafts.get(event.turn_id)
        ending = None if draft is None else _ending(draft, event)
        if draft is None or draft.row is None or ending is None:
            return None
        draft.ending = ending
        # Whoever writes is imported by now: what is stored was looked for before.
        from .writes import end, put

        labels = draft.turn.context.labels
        row, known = columns_of(ending, labels), id_of(event.turn_id)
        if draft.row["background"]:
            return partial(_ended, end, known, row)
        return partial(put, row={**draft.row, **row, "id": known})


def _ended(
    end: Callable[..., bool], known: str, row: dict[str, object], connection: object
) -> None:
    end(connection, known, row)


def _ending(draft: Draft, event: TurnEnded) -> Ending | None:
    """Tell what came of it; None where it goes on, or only its error will say."""
    usage = Usage(
        event.input_tokens,
        event.output_tokens,
        event.cached_tokens,
        event.cache_write_tokens,
        event.reasoning_tokens,
    )
    if event.state == TurnState.DONE.value:
        finish = Finish(event.finish) if event.finish else None
        return answered(draft, finish, usage, event.at)
    status = ""
    if event.state == TurnState.CANCELLED.value:
        status = "cancelled"
    elif event.error == CutShort.code:
        status = "incomplete"
    if not status:
        return None
    return broken_off(draft, status, event.text, usage, event.at)
