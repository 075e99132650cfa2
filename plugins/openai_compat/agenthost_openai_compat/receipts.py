"""Receipts of answers, where a request asks for one."""

from __future__ import annotations

from agenthost import Backend, Call, ReceiptsBackend, Unavailable

HEADER = "x-receipt"
TOLD = {"X-Receipt": "1 asks for a signed receipt of the answer, unless it is streamed"}


def receipts_for(call: Call) -> ReceiptsBackend | None:
    """Find what gives the receipt that a request asks for, before its turn is started.

    Raises:
        Unavailable: No plugin gives any.
    """
    if call.headers.get(HEADER) != "1":
        return None
    for _, backend in call.host.registry.offered(Backend):
        if isinstance(backend, ReceiptsBackend):
            return backend
    raise Unavailable("X-Receipt: no plugin gives receipts; leave the header out")
