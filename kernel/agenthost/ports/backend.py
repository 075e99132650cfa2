"""What serves a port: on offer by a plugin, chosen at boot."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import ClassVar, TypeVar, dataclass_transform

from agenthost_toml.suggest import did_you_mean
from agenthost_values.value_class import value_class

from ..errors import ConfigError


@dataclass_transform(frozen_default=True)
@value_class
class Backend:
    """A backend on offer: one of the classes of ``ports/backends.py``.

    Those say more of the same fields; at run time they are no dataclasses of their own,
    which take long to make. ``name`` is what ``[backends]`` chooses it by; of STORE,
    the scheme of its URL.
    """

    port: ClassVar[str] = ""
    name: str
    open: Callable[..., object]


B = TypeVar("B", bound=Backend)


@value_class
class Backends:
    """What serves the ports.

    Args:
        offered: All that healthy plugins offer, in their order.
        chosen: The name of the backend by port, as ``[backends]`` says; elsewhere the
            first one serves.
    """

    offered: tuple[Backend, ...] = ()
    chosen: Mapping[str, str] = field(default_factory=dict)

    def find(self, kind: type[B], name: str | None = None) -> B:
        """Find the backend of a port: by name, the chosen or the first one.

        Raises:
            ConfigError: No healthy plugin serves the port, or none by that name.
        """
        name = name or self.chosen.get(kind.port)
        serving = [each for each in self.offered if isinstance(each, kind)]
        for each in serving:
            if name in {None, each.name}:
                return each
        if name is None:
            wanted, hint = kind.port, ""
        else:
            names = [each.name for each in serving]
            wanted, hint = f"{kind.port} {name!r}", did_you_mean(name, names)
        raise ConfigError(
            f"no plugin serves the port {wanted}; enable one that does{hint}"
        )
