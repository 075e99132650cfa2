"""A server that wants a token, and who gives it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from ..authority import Authority
from .guarded import Guarded


@pytest.fixture
async def authority() -> AsyncIterator[Authority]:
    """An authorization server."""
    async with Authority().running() as running:
        yield running


@pytest.fixture
async def server(authority: Authority) -> AsyncIterator[Guarded]:
    """A server that takes its tokens, and no others."""
    async with Guarded(authority).running() as running:
        authority.resources = {running.url}
        yield running
