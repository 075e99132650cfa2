"""Write docs/supported.md: what each provider can do, and which tests show it.

What a provider can do is read from its facts and its rows; who has judged its wire from
the tests that are marked for it: ``@pytest.mark.judge("groq")``. ``--check`` writes
nothing and fails when the page is stale; with or without it, a provider without a
contract and a test that is named but does not exist fail.
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path

from agenthost import ModelFacts
from agenthost.testing.installed import provider_of

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "supported.md"
TESTS = ROOT / "tests"
CONTRACT = TESTS / "plugins/providers/test_contract.py"
PROMISES = ROOT / "kernel/agenthost/testing/provider_requests.py"
OUTSIDE = "conformance/test_aimock.py"
HEAD = """# What each provider can do

**None of it was ever tried against a vendor's live service**: no test has a key. What
the table says is read from the data files that calls are made from, and each column
names the tests that show it, on simulated services that speak as the vendors document.
Where a vendor has a client of its own, the client judges: our requests are equal to
its, and it reads our simulated answers. `aimock` is a scripted model server of others.

Numbers are of the models in the catalogue. *Thinking* counts those that can be told how
much to think, of those that think. *Proves* says whether `POST
/api/providers/{name}/test` can prove a key without a chat.
"""
SHOWN = {
    "Speaks": (
        "plugins/providers/test_catalogue.py",
        "test_every_row_can_be_spoken_to",
    ),
    "Key": ("plugins/providers/test_catalogue.py", "test_keys_and_addresses_are_known"),
    "Proves": (
        "plugins/providers/test_catalogue.py",
        "test_a_provider_has_a_probe_and_a_key",
    ),
    "Models": (
        "plugins/providers/test_catalogue.py",
        "test_a_provider_carries_its_own_models",
    ),
    "Tools": ("ProviderContract", "test_tools_are_offered_whole"),
    "Images": (
        "plugins/providers/test_catalogue.py",
        "test_a_row_sees_what_its_dialect_sends",
    ),
    "Thinking": (
        "plugins/providers/test_refusals.py",
        "test_a_model_that_thinks_is_told_so_or_its_row_says_why",
    ),
    "Caches": (
        "plugins/dialects/test_caching.py",
        "test_a_long_tool_loop_costs_what_it_has_to",
    ),
    "Prices": ("conformance/test_prices.py", "test_no_row_contradicts_the_table"),
}
LET_OFF = """Each provider has a class in `plugins/providers/test_contract.py` that
inherits `agenthost.testing.providers.ProviderContract`; what one cannot promise is a
strict expected failure there, with its reason.
"""
COLUMNS = (*[each for each in SHOWN if each != "Prices"], "Judged by", "Let off")


def main() -> int:
    """Write the page, or with ``--check`` compare it."""
    lacking = list(lacks())
    for lack in lacking:
        print(lack)
    text = page()
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(text, encoding="utf-8")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text:
        lacking.append("stale")
        print(f"{PAGE.name} is stale; run: .venv/bin/python tools/provider_docs.py")
    return 1 if lacking else 0


@cache
def slugs() -> list[str]:
    """Name the providers, but for the built-in one, which is no service."""
    names = {entry.name for entry in entry_points(group="agenthost.providers")}
    return sorted(names - {"offline"})


def lacks() -> Iterator[str]:
    """Name what the page would claim without a test."""
    for slug in slugs():
        if slug not in exemptions():
            yield f"{slug}: give it a class of the contract in {CONTRACT.name}"
    for slug in sorted({*judges()} - {*slugs()}):
        yield f"{slug}: a test is marked as its judge, but there is no such provider"
    for column, (place, name) in SHOWN.items():
        path = PROMISES if place == "ProviderContract" else TESTS / place
        if name not in {each.name for each in _functions(path)}:
            yield f"{column}: there is no {name} in {place}"


@cache
def judges() -> Mapping[str, list[str]]:
    """Find by provider the files whose tests are marked as its judges."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    marked = (p for p in TESTS.rglob("test_*.py") if "mark.judge(" in p.read_text())
    # To parse them all takes a second; most have no mark.
    for path in sorted(marked):
        name = str(path.relative_to(TESTS))
        for each in _functions(path):
            for slug in _marked(each):
                if name not in found[slug]:
                    found[slug].append(name)
    return dict(found)


@cache
def exemptions() -> Mapping[str, list[str]]:
    """Find by provider the promises that its class of the contract is let off."""
    found: dict[str, list[str]] = {}
    for node in _tree(CONTRACT).body:
        if isinstance(node, ast.ClassDef):
            made = dict(_assigned(node))
            slug = str(ast.literal_eval(made["provider"]))
            excused = [name for name in made if name.startswith("test_")]
            found.setdefault(slug, []).extend(excused)
    return found


def _assigned(node: ast.ClassDef) -> Iterator[tuple[str, ast.expr]]:
    for each in node.body:
        match each:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                yield name, value


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def _marked(node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    for decorator in node.decorator_list:
        match decorator:
            case ast.Call(func=ast.Attribute(attr="judge"), args=arguments):
                yield from (ast.literal_eval(argument) for argument in arguments)


def page() -> str:
    """Render the whole page."""
    rows = [_row(slug) for slug in slugs()]
    head = f"| Provider | {' | '.join(COLUMNS)} |\n{'|---' * (len(COLUMNS) + 1)}|\n"
    shown = [f"- {name}: `{place}::{test}`" for name, (place, test) in SHOWN.items()]
    parts = [HEAD, head + "\n".join(rows) + "\n", "## What shows it\n", *shown]
    excused = [
        f"- {slug}: {', '.join(f'`{name}`' for name in names)}"
        for slug, names in sorted(exemptions().items())
        if names
    ]
    tail = ["", "## What a provider is let off\n", LET_OFF, *excused]
    return "\n".join([*parts, *tail]) + "\n"


def _row(slug: str) -> str:
    spec = provider_of(slug)
    facts, models = spec.facts, spec.facts.models
    spoken = {row.dialect or spec.spoken_to(row.upstream_id).name for row in models}
    thinkers = [row for row in models if row.supports_thinking]
    told = sum(row.thinking not in {"", "none"} for row in thinkers)
    cells = (
        f"`{slug}`",
        ", ".join(f"`{each}`" for each in sorted(spoken)),
        f"`{facts.env_var}`" if facts.key_required else "none needed",
        "yes" if facts.probe and facts.probe.proves_key else "no",
        str(len(models)),
        str(sum(row.supports_tools for row in models)),
        str(sum(row.supports_vision for row in models)),
        f"{told} of {len(thinkers)}" if thinkers else "0",
        ", ".join(sorted(_caches(models))) or "unknown",
        ", ".join(_short(name) for name in judges().get(slug, ())) or "contract only",
        str(len(exemptions().get(slug, ()))),
    )
    return f"| {' | '.join(cells)} |"


def _caches(models: tuple[ModelFacts, ...]) -> set[str]:
    kinds = ("automatic", "marks")
    return {kind for row in models for kind in kinds if kind in row.caches}


def _short(name: str) -> str:
    return "aimock" if name == OUTSIDE else f"`{Path(name).stem}`"


if __name__ == "__main__":
    sys.exit(main())
