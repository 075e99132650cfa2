"""Whether a test of a contract finds what is broken."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable

import pytest
from agenthost import AgentHostError
from sqlalchemy.exc import SQLAlchemyError

FOUND = (
    AssertionError,
    pytest.fail.Exception,
    AgentHostError,
    LookupError,
    OSError,
    RuntimeError,
    SQLAlchemyError,
    SystemExit,
    ValueError,
)


async def finds(test: Callable[..., object], *given: object) -> None:
    """Demand that the test fails for what it is given."""

    async def tested() -> None:
        answer = test(*given)
        if inspect.isawaitable(answer):
            await answer

    with pytest.raises(FOUND):
        await tested()


def names_of(contract: type) -> set[str]:
    """Name the tests of a contract."""
    return {name for name in dir(contract) if name.startswith("test_")}


def names_in(tests: Iterable[Callable[..., object]]) -> set[str]:
    """Name the tests."""
    return {test.__name__ for test in tests}
