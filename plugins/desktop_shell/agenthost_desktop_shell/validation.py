"""Validation: from a document to capabilities, or to everything wrong with it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from .checks import Findings, Spot, TooManyFindings
from .findings import CapabilityError, Finding, Json, Path
from .identifiers import parse_identifier
from .model import Capability, Entry
from .positions import json_lines, nearest_line, toml_lines
from .reading import Document, check_value
from .shell_scope import SHELL, check_entry
from .tables import Tables, UnknownIdentifier
from .terms import PLATFORMS, Mode


@dataclass(frozen=True, slots=True)
class Report:
    """What validation found.

    ``errors`` make the document invalid in the mode asked for; ``strict_errors`` are
    what only strict validation refuses (in strict mode they are among ``errors``);
    ``warnings`` are unknown identifiers of capabilities for other platforms.
    """

    capabilities: tuple[Capability, ...] = ()
    errors: tuple[Finding, ...] = ()
    strict_errors: tuple[Finding, ...] = ()
    warnings: tuple[Finding, ...] = ()

    @property
    def valid(self) -> bool:
        """Whether the document can be used."""
        return not self.errors

    def checked(self) -> tuple[Capability, ...]:
        """The capabilities of a valid document.

        Raises:
            CapabilityError: The document is invalid.
        """
        if self.errors:
            raise CapabilityError(self.errors)
        return self.capabilities


def validate(
    document: Document | Json,
    tables: Tables,
    mode: Mode = Mode.STRICT,
    host: str | None = None,
) -> Report:
    """Check a document in any of the three forms.

    ``host`` is the platform that the tables were made on: they need not have what a
    capability names for other platforms only. None takes them for complete.
    """
    if not isinstance(document, Document):
        document = Document(document)
    findings = Findings(host=host)
    capabilities: list[Capability] = []
    try:
        check_value(document.value, document.name)
        capabilities.extend(_capabilities(document, tables, findings))
        findings.errors.extend(duplicates(capabilities))
    except TooManyFindings:
        pass
    except CapabilityError as error:
        findings.errors.extend(error.findings)
    place = _placing(document, findings)
    errors, strict = (
        tuple(map(place, findings.errors)),
        tuple(map(place, findings.strict)),
    )
    if mode is Mode.STRICT:
        errors, strict = (*errors, *strict), ()
    return Report(
        tuple(capabilities), errors, strict, tuple(map(place, findings.warnings))
    )


def duplicates(capabilities: Iterable[Capability]) -> Iterator[Finding]:
    """Yield a finding for each capability whose identifier is already taken."""
    taken: dict[str, str] = {}
    for capability in capabilities:
        name = capability.identifier
        if name in taken:
            where = f" in {taken[name]}" if taken[name] else ""
            yield Finding(
                f"a capability {name!r} already exists{where}; rename one of them",
                capability=name,
                field="identifier",
                value=name,
                file=capability.file,
            )
        taken.setdefault(name, capability.file)


def _capabilities(
    document: Document, tables: Tables, findings: Findings
) -> Iterator[Capability]:
    for spot in _forms(Spot(findings, document.value)):
        found = _capability(spot, tables)
        if found is not None:
            yield replace(found, file=document.name)


def _forms(top: Spot) -> Iterator[Spot]:
    if isinstance(top.value, list):
        yield from top.items()
    elif top.has("capabilities"):
        yield from top.at("capabilities").items()
    elif isinstance(top.value, Mapping):
        yield top
    else:
        top.fail(
            "must be a capability, an array of them, or an object with 'capabilities'"
        )


def _capability(spot: Spot, tables: Tables) -> Capability | None:
    if not isinstance(spot.value, Mapping):
        spot.fail("must be a capability object")
        return None
    name = spot.value.get("identifier")
    owner = name if isinstance(name, str) else ""
    spot = Spot(spot.findings, spot.value, spot.path, (), owner)
    for required in ("identifier", "permissions"):
        if not spot.has(required):
            spot.fail(f"has no {required!r}, which every capability needs")
    if spot.has("identifier"):
        spot.at("identifier").text()
    platforms = tuple(_platforms(spot))
    restricted = spot.at("platforms").value is not None
    spot.findings.platforms = platforms if restricted else None
    return Capability(
        identifier=owner,
        description=_description(spot),
        local=spot.at("local").flag(default=True) if spot.has("local") else True,
        remote=tuple(_remote(spot)),
        windows=tuple(_labels(spot, "windows")),
        webviews=tuple(_labels(spot, "webviews")),
        permissions=tuple(_permissions(spot, tables)),
        platforms=platforms if restricted else None,
    )


def _description(spot: Spot) -> str:
    return (spot.at("description").text() or "") if spot.has("description") else ""


def _remote(spot: Spot) -> Iterator[str]:
    remote = spot.at("remote")
    if remote.value is None:
        return
    if not isinstance(remote.value, Mapping):
        remote.fail("must be null or an object with 'urls'")
    elif not remote.has("urls"):
        remote.fail("has no 'urls'; list URL patterns")
    else:
        for item in remote.at("urls").items():
            if (pattern := item.url()) is not None:
                yield pattern


def _labels(spot: Spot, key: str) -> Iterator[str]:
    if spot.has(key):
        for item in spot.at(key).items():
            if (glob := item.label()) is not None:
                yield glob


def _platforms(spot: Spot) -> Iterator[str]:
    for item in spot.at("platforms").items(nullable=True):
        if item.value in PLATFORMS:
            yield str(item.value)
        else:
            item.fail(f"must be one of {', '.join(PLATFORMS)}, exactly so written")


def _permissions(spot: Spot, tables: Tables) -> Iterator[Entry]:
    seen: set[str] = set()
    entries = spot.at("permissions")
    if not spot.has("permissions"):
        return
    for place, value in enumerate(entries.array()):
        key = _equality(value)
        if key not in seen and key in tables.identifiers:
            yield Entry(key)
        elif (entry := _entry(entries.at(place), tables)) is not None:
            yield entry
        if key in seen:
            entries.at(place).fail("stands twice; leave one out", strict_only=True)
        seen.add(key)


def _equality(value: Json) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(_canonical(value), sort_keys=True)


def _canonical(value: Json) -> Json:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {key: _canonical(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_canonical(inner) for inner in value]
    return value


def _entry(item: Spot, tables: Tables) -> Entry | None:
    if isinstance(item.value, str):
        return Entry(item.value) if _known(item, tables) else None
    if not isinstance(item.value, Mapping):
        item.fail("must be an identifier or an object with 'identifier'")
        return None
    if not item.has("identifier"):
        item.fail("has no 'identifier'; name a permission")
        return None
    spot = item.at("identifier")
    name = spot.text()
    if name is None or not _known(spot, tables):
        return None
    for side in ("allow", "deny"):
        for value in item.at(side).items(nullable=True):
            if parse_identifier(name).module == SHELL:
                check_entry(value)
    return Entry(name, _values(item, "allow"), _values(item, "deny"))


def _values(item: Spot, side: str) -> tuple[Json, ...] | None:
    value = item.at(side).value
    return tuple(value) if isinstance(value, list) else None


def _known(spot: Spot, tables: Tables) -> bool:
    name = str(spot.value)
    if name in tables.identifiers:
        return True
    try:
        parse_identifier(name)
        tables.expand(name)
    except UnknownIdentifier as error:
        spot.doubt(str(error))
        return False
    except ValueError as error:
        spot.fail(str(error))
        return False
    return True


def _placing(document: Document, findings: Findings) -> Callable[[Finding], Finding]:
    found = (*findings.errors, *findings.strict, *findings.warnings)
    lines = lines_of(document, [finding.path for finding in found])

    def place(finding: Finding) -> Finding:
        line = finding.line or nearest_line(lines, finding.path)
        return replace(finding, file=document.name, line=line)

    return place


def lines_of(document: Document, paths: list[Path]) -> dict[Path, int]:
    """Find on which lines of a document's text these paths of its value lead to."""
    if not document.text or not paths:
        return {}
    skipped = len(document.at)
    whole = [(*document.at, *path) for path in paths]
    find = toml_lines if document.toml else json_lines
    return {
        path[skipped:]: line
        for path, line in find(document.text, whole).items()
        if path[:skipped] == document.at
    }
