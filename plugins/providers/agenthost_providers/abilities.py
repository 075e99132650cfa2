"""What litellm's table says that a model can do, beside what a row says."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any

EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
# litellm's field, ours. It marks some models only, so silence says nothing.
FLAGS = {
    "supports_reasoning": "supports_thinking",
    "thinking_always_on": "always_thinks",
    "supports_sampling_params": "sampling",
    "supports_function_calling": "supports_tools",
    "supports_vision": "supports_vision",
    "supports_pdf_input": "documents",
    "supports_native_structured_output": "structured",
}


@dataclass(frozen=True, slots=True)
class Abilities:
    """What a file tells of one model; what it does not tell is not there.

    ``efforts`` says of a word whether the model takes it, ``responses`` whether it is
    served at no other endpoint.
    """

    flags: Mapping[str, bool] = field(default_factory=dict)
    efforts: Mapping[str, bool] = field(default_factory=dict)
    responses: bool = False
    caches: bool = False


def read_abilities(row: Mapping[str, Any]) -> Abilities:
    """Read litellm's fields of one model; of another type, they tell nothing."""
    told = {ours: row.get(theirs) for theirs, ours in FLAGS.items()}
    given = row.get("reasoning_effort_levels")
    listed = given if isinstance(given, list) else []
    words = {word: word in listed for word in EFFORTS} if listed else _marked(row)
    words |= dict.fromkeys(
        _beyond(row.get("bedrock_output_config_effort_ceiling")), False
    )
    return Abilities(
        {name: value for name, value in told.items() if isinstance(value, bool)},
        words,
        row.get("mode") == "responses",
        row.get("supports_prompt_caching") is True,
    )


def _marked(row: Mapping[str, Any]) -> dict[str, bool]:
    found = {word: row.get(f"supports_{word}_reasoning_effort") for word in EFFORTS}
    return {word: value for word, value in found.items() if isinstance(value, bool)}


def _beyond(ceiling: Any) -> Iterable[str]:
    return EFFORTS[EFFORTS.index(ceiling) + 1 :] if ceiling in EFFORTS else ()


def contradictions(told: Abilities, row: Mapping[str, Any]) -> Iterator[str]:
    """Name the fields in which a row says otherwise than the file."""
    for name, value in told.flags.items():
        if bool(row.get(name)) is not value and _is_said(name, row):
            yield name
    efforts = str(row.get("efforts", "")).split()
    if efforts and any(
        (word in efforts) is not has for word, has in told.efforts.items()
    ):
        yield "efforts"
    off = row.get("thinking_off")
    if off in EFFORTS and told.efforts.get(off) is False:
        yield "thinking_off"
    if told.responses and row.get("api") != "responses" and row["provider"] == "openai":
        yield "api"
    if told.caches and not row.get("caches"):
        yield "caches"


def apply_abilities(told: Abilities, row: MutableMapping[str, Any]) -> None:
    """Let a row say what the file says."""
    wrong = set(contradictions(told, row))
    for name in wrong & told.flags.keys():
        row[name] = told.flags[name]
    if "efforts" in wrong:
        efforts = str(row["efforts"]).split()
        kept = [w for w in EFFORTS if told.efforts.get(w, w in efforts)]
        row["efforts"] = " ".join(kept)
    if "thinking_off" in wrong:
        # What cannot be switched off thinks as little as it can.
        row["thinking_off"] = str(row["efforts"]).split()[0]
    if "api" in wrong:
        row["api"] = "responses"
    if "caches" in wrong:
        row["caches"] = "automatic"


def _is_said(name: str, row: Mapping[str, Any]) -> bool:
    # What a row is silent of is left to its provider's quirks, or to its dialect.
    return name not in {"sampling", "structured"} or row.get(name) is not None
