"""What is wrong with capabilities, as the daemon's callers are told."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from agenthost import InvalidInput


class InvalidCapability(InvalidInput):
    """A capability file or permission table cannot be used."""

    code = "invalid_capability"


@contextmanager
def refusing() -> Iterator[None]:
    """Answer what the capability files refuse as wrong input.

    Raises:
        InvalidCapability: A file, a table or a question about them cannot be used.
    """
    from .findings import CapabilityError

    try:
        yield
    except CapabilityError as error:
        raise InvalidCapability("capabilities", error.message) from error
