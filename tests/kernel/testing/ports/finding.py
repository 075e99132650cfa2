"""Whether a test of a contract finds what is broken."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import pytest
from agenthost import AgentHostError
from sqlalchemy.exc import SQLAlchemyError

FOUND = (
    AssertionError,
    pytest.fail.Exception,
    AgentHostError,
    LookupError,
    RuntimeError,
    SQLAlchemyError,
    SystemExit,
    TimeoutError,
)


async def finds(test: Callable[..., object], *given: object) -> None:
    """Demand that the test fails for what it is given."""

    async def tested() -> None:
        answer = test(*given)
        if inspect.isawaitable(answer):
            await answer

    with pytest.raises(FOUND):
        await tested()
