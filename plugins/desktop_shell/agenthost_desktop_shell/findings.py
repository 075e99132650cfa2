"""What is wrong with a capability file, told so that it can be mended."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

Json = None | bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"]
Path = tuple[str | int, ...]

SHOWN_CHARACTERS = 120
TOLD = 5


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem: where it is, what stands there, what is wrong and the remedy.

    ``field`` is relative to the capability (``permissions[2].allow[0].cmd``); ``path``
    leads there from the top of the document; ``line`` is known for files only; ``rule``
    is the lint that found it, "" for what is invalid.
    """

    message: str
    capability: str = ""
    field: str = ""
    value: Json = None
    path: Path = ()
    file: str = ""
    line: int | None = None
    rule: str = ""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        owner = f"capability {self.capability!r}" if self.capability else ""
        where = ", ".join(part for part in (owner, self.field) if part)
        return ": ".join(part for part in (place, where, self.message) if part)

    def under(self, rule: str) -> Finding:
        """The same finding, told as one of a rule."""
        return replace(self, rule=rule)

    def as_json(self) -> dict[str, Json]:
        """The finding as the HTTP interface shows it."""
        shown: dict[str, Json] = {
            "capability": self.capability,
            "field": self.field,
            "value": self.value,
            "message": self.message,
        }
        if self.file:
            shown["file"] = self.file
            shown["line"] = self.line
        return shown


class CapabilityError(Exception):
    """A capability file or permission table cannot be used; ``findings`` say why."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.findings = tuple(findings)
        told = "; ".join(str(finding) for finding in self.findings[:TOLD])
        more = len(self.findings) - TOLD
        rest = f"; and {more} more" if more > 0 else ""
        self.message = told + rest
        super().__init__(self.message)


def shorten(value: Json) -> Json:
    """Cut a value down to what an error message can carry."""
    if isinstance(value, str):
        cut = value[:SHOWN_CHARACTERS] + ("…" if len(value) > SHOWN_CHARACTERS else "")
        return cut.encode("utf-8", "replace").decode()
    if isinstance(value, Mapping):
        return f"an object with {len(value)} keys"
    if isinstance(value, Sequence):
        return f"an array of {len(value)} items"
    return value


def is_unicode(text: str) -> bool:
    """Whether a text is whole: JSON may hold half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
