"""Gauges of other plugins: what their services tell when somebody looks."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

from agenthost import AgentHostError, Host, ServiceSpec, within

Gauge = tuple[str, Mapping[str, str], float]
"""A name, labels of bounded lists (a name always has the same), and the number."""
SECONDS = 2.0
_NAME = re.compile(r"[a-z][a-z0-9_]{0,99}")

_log = logging.getLogger(__name__)


@runtime_checkable
class Gauged(Protocol):
    """A service that a monitor may look at: a ``ServiceSpec`` with this method."""

    async def gauges(self, host: Host) -> Sequence[Gauge]:
        """Tell how it stands now; a name that ends in ``_total`` only grows."""


async def gauges_of(host: Host) -> list[Gauge]:
    """Ask every healthy plugin's services; one that cannot tell is left out."""
    told: list[Gauge] = []
    for key, service in host.registry.offered(ServiceSpec):
        if not isinstance(service, Gauged) or not host.plugins.healthy(key):
            continue
        name = f"the gauges of {key}"
        try:
            with host.plugins.charges.timed(key):
                given = await within(SECONDS, name, service.gauges(host))
                told += [_checked(*each) for each in given]
        except AgentHostError as error:
            _log.warning("%s: %s", name, error.message)
        except Exception as error:  # noqa: BLE001 - a plugin may raise anything
            _log.warning("%s: %s", name, type(error).__name__)
    return told


def _checked(name: str, labels: Mapping[str, str], number: float) -> Gauge:
    """Refuse what would spoil the whole page.

    Raises:
        ValueError: A name is none of a metric.
    """
    if not all(_NAME.fullmatch(each) for each in (name, *labels)):
        raise ValueError(name)
    return name, {key: str(value) for key, value in labels.items()}, float(number)
