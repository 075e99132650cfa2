"""The port WORKERS: where work runs that must not hold the event loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, Protocol, TypeVar

from agenthost_chat.chat import Json

T = TypeVar("T")
P = ParamSpec("P")


class Workers(Protocol):
    """Where work runs that must not hold the event loop: threads and processes.

    Both are few and their own: what is stuck here holds up nobody but other tools.
    """

    async def in_thread(
        self, function: Callable[P, T], *arguments: P.args, **options: P.kwargs
    ) -> T:
        """Call a function that blocks, such as one of a workspace.

        A caller that is cancelled stops waiting; the thread ends with the function.

        Raises:
            Unavailable: Every thread is busy, and stayed so.
        """

    async def in_process(self, function: str, document: bytes, **options: Json) -> str:
        """Read a document of strangers where it can be ended: in another process.

        That process sees nothing but the document: no environment, no files that are
        open here. It is killed when it takes too long or too much memory, and when
        the caller is cancelled.

        Args:
            function: ``package.module:function`` of a function of a module, called
                with the document and the options; it returns text. The module and
                what it imports are loaded there alone, before the time runs.
            document: What is to be read.
            **options: JSON values.

        Raises:
            Unreadable: There was no result in time and memory.
            Unavailable: Every process is busy, and stayed so.
        """

    async def close(self) -> None:
        """End the processes, and wait a little for threads."""
