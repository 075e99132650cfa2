"""What a handler wants, found out without asking inspect where that is plain."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial, wraps
from typing import Any

import pytest
from agenthost_front.dispatch import _parameters


def plain(call: Any, name: str, other) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001 - without one
    local = name, other
    assert local


def named(call: Any, *, name: str, body: bytes = b"") -> None: ...


def starred(call: Any, *names: str, **more: int) -> None: ...


def alone(call: Any) -> None: ...


@wraps(plain)
def wrapped(call: Any, one: Any, two: Any) -> None: ...


class Handlers:
    def method(self, call: Any, name: str) -> None: ...

    @classmethod
    def of_class(cls, call: Any, name: str) -> None: ...

    @staticmethod
    def of_none(call: Any, name: str) -> None: ...

    def __call__(self, call: Any, name: str) -> None: ...


HANDLERS = (
    plain,
    named,
    starred,
    alone,
    wrapped,
    partial(plain, other=1),
    Handlers().method,
    Handlers.of_class,
    Handlers.of_none,
    Handlers(),
)


@pytest.mark.parametrize("handler", HANDLERS)
def test_a_handler_wants_what_inspect_says(handler: Callable[..., Any]) -> None:
    _, *wanted = inspect.signature(handler).parameters.values()
    told = _parameters(handler)
    assert list(told.items()) == [(p.name, p.annotation) for p in wanted]
