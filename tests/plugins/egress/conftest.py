from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from agenthost import ALLOW, Guard, SecuritySystem
from agenthost.plugins.guards import Guards
from agenthost_egress.client import AiohttpEgress


def allow_all() -> Guards:
    system = SecuritySystem(
        "ssrf_protection",
        {Guard.URL: lambda _: ALLOW, Guard.ADDRESS: lambda _: ALLOW},
        lambda: None,
    )
    return Guards([system])


@pytest.fixture
async def egress() -> AsyncIterator[AiohttpEgress]:
    made = AiohttpEgress(allow_all())
    yield made
    await made.close()
