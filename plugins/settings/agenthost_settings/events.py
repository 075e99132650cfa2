"""What is told of the configuration; the subject is the node that it is of."""

from __future__ import annotations

from agenthost import Event


class ConfigurationChanged(Event):
    """File or environment say something else than at the last start.

    ``keys`` are those that were added, changed or taken away; no value is told.
    """

    keys: list[str]
