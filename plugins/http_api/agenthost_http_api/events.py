"""What is told of the keys of providers; the subject is the provider's slug."""

from __future__ import annotations

from agenthost import Event


class ProviderKeysChanged(Event):
    """So many keys of it are kept from now on.

    They are no rows: what is recorded of it is written before they are.
    """

    keys: int
