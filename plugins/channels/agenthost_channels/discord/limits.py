"""How often Discord lets itself be called, as its answers tell.

Source: https://docs.discord.com/developers/topics/rate-limits.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable
from typing import TypeVar

import httpx

Value = TypeVar("Value")

TOO_MANY = 429
LONGEST_PAUSE = 3600.0
ROUTES = 1_000
GLOBAL = "global"


class Limits:
    """When each route is free again.

    A route is a method and a path whose channel counts; Discord may put several into
    one bucket, which is known once it has answered.

    Args:
        now: Seconds of a clock that never jumps.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._bucket_of: OrderedDict[str, str] = OrderedDict()
        self._free_at: OrderedDict[str, float] = OrderedDict()

    def pause(self, route: str, channel: str = "") -> float:
        """Tell how many seconds a route is not free yet, 0 for one that is."""
        bucket = self._bucket_of.get(route, route)
        spots = (GLOBAL, _spot(bucket, channel))
        return max(0.0, *(self._free_at.get(each, 0.0) - self._now() for each in spots))

    def learn(self, route: str, channel: str, answered: httpx.Response) -> float | None:
        """Read what an answer tells; give the pause that a refusal asks for."""
        headers = answered.headers
        bucket = headers.get("x-ratelimit-bucket", "") or route
        _keep(self._bucket_of, route, bucket)
        if answered.status_code != TOO_MANY:
            if headers.get("x-ratelimit-remaining") == "0":
                after = _seconds(headers.get("x-ratelimit-reset-after", ""))
                self._block(_spot(bucket, channel), after or 0.0)
            return None
        # One that passes before Discord is reached has the header alone.
        after = _seconds(headers.get("retry-after", "")) or 1.0
        everywhere = headers.get("x-ratelimit-scope") == "global"
        everywhere = everywhere or "x-ratelimit-global" in headers
        everywhere = everywhere or "x-ratelimit-scope" not in headers
        self._block(GLOBAL if everywhere else _spot(bucket, channel), after)
        return after

    def _block(self, spot: str, seconds: float) -> None:
        until = max(self._now() + seconds, self._free_at.get(spot, 0.0))
        _keep(self._free_at, spot, until)


def _spot(bucket: str, channel: str) -> str:
    return f"{bucket}:{channel}"


def _seconds(value: str) -> float | None:
    try:
        found = float(value)
    except ValueError:
        return None
    return min(max(found, 0.0), LONGEST_PAUSE) if math.isfinite(found) else None


def _keep(kept: OrderedDict[str, Value], key: str, value: Value) -> None:
    kept[key] = value
    kept.move_to_end(key)
    while len(kept) > ROUTES:
        kept.popitem(last=False)
