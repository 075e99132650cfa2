"""How much a model is to think, in the vendors' words."""

from __future__ import annotations

from agenthost import InvalidInput

EFFORTS = {
    "low": 4_096,
    "medium": 16_384,
    "high": 32_768,
    "xhigh": 49_152,
    "max": 65_536,
}
"""Tokens of thinking, where the model is to choose how many; in Anthropic's words."""
REASONING = {"none": 0, "minimal": 1_024, **EFFORTS}
"""The same in OpenAI's."""


def budget_of(effort: object, field: str) -> int | None:
    """Tell how many tokens may be thought; None where nothing is said.

    Raises:
        InvalidInput: The word is not known.
    """
    if effort is None:
        return None
    if not isinstance(effort, str) or effort not in REASONING:
        raise InvalidInput(field, f"must be one of {', '.join(REASONING)}")
    return REASONING[effort]
