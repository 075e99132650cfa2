"""Which models are told by name: anybody can name one, so the list has an end."""

from __future__ import annotations

MOST_MODELS = 200
OTHER = "other"

Model = tuple[str, str]
"""A provider's slug and a model's id."""
OTHERS: Model = (OTHER, OTHER)


class Listing:
    """The first models that were named; what comes later counts as other."""

    def __init__(self) -> None:
        self._models: set[Model] = set()

    def listed(self, named: Model) -> Model:
        """The labels of a model."""
        if named not in self._models:
            if len(self._models) >= MOST_MODELS:
                return named[0], OTHER
            self._models.add(named)
        return named
