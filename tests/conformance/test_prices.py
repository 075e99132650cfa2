"""Every row of the catalogue beside litellm's public table of models.

The table is taken out of the published wheel, which is neither installed nor imported;
what a row knows better stands in ``facts/exceptions.toml`` with its source and day.
"""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import agenthost_providers
import pytest
from agenthost_providers.catalogue import load_facts
from agenthost_providers.prices import Price, read_prices
from agenthost_providers.refresh import price_of, refreshed

pytestmark = pytest.mark.conformance

VERSION = "1.109.1"
CACHE = Path(__file__).parents[2] / ".cache" / "prices"
TABLE = "litellm/model_prices_and_context_window_backup.json"
LIMITS = 0.1


def fetched(folder: Path) -> bytes:
    """Download the wheel and take the table out of it."""
    wanted = ["--no-deps", "--dest", str(folder), f"litellm=={VERSION}"]
    pip = [sys.executable, "-m", "pip", "download", "--quiet", *wanted]
    try:
        subprocess.run(pip, check=True, capture_output=True, timeout=300)
    except subprocess.SubprocessError as error:
        pytest.skip(f"litellm {VERSION} cannot be downloaded: {error}")
    (wheel,) = folder.glob("litellm-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return archive.read(TABLE)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The text of the table, downloaded once."""
    kept = CACHE / f"litellm-{VERSION}.json"
    if not kept.exists():
        found = fetched(tmp_path_factory.mktemp("wheel"))
        CACHE.mkdir(parents=True, exist_ok=True)
        kept.write_bytes(found)
    return kept.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def prices(table: str) -> dict[str, Price]:
    """The table, read."""
    return read_prices(table)


def catalogue() -> dict[str, Any]:
    own = files(agenthost_providers) / "facts" / "models.json"
    found: dict[str, Any] = json.loads(own.read_text(encoding="utf-8"))
    return found


def test_no_row_contradicts_the_table(prices: Mapping[str, Price]) -> None:
    outcome = refreshed(catalogue(), prices)
    assert outcome.changed == []
    assert len(outcome.unknown) <= 55


@pytest.mark.parametrize(
    ("model", "field", "wrong"),
    [
        ("claude-opus-5-5", "sampling", True),
        ("claude-opus-5-5", "always_thinks", False),
        ("gpt-6-astra", "thinking_off", "none"),
        ("gpt-6-astra", "efforts", "none low medium high xhigh max"),
        ("gpt-5.5-pro", "api", None),
        ("mistral-medium-3.5", "efforts", "low medium high"),
        ("gpt-6-luna", "cache_write_cost_per_1m", 0.1),
        ("groq/openai/gpt-oss-20b", "input_cost_per_1m", 1.0),
        ("gemini-3.8-flash", "sampling", True),
        ("gemini-3.8-flash", "documents", False),
    ],
)
def test_a_wrong_row_is_found(
    prices: Mapping[str, Price], model: str, field: str, wrong: Any
) -> None:
    spoilt = catalogue()
    (row,) = [row for row in spoilt["models"] if row["id"] == model]
    row[field] = wrong
    (told,) = refreshed(spoilt, prices).changed
    assert told.startswith(f"{model}: ")
    assert field in told


def test_limits_are_the_tables(table: str, prices: Mapping[str, Price]) -> None:
    known = json.loads(table)
    for row in catalogue()["models"]:
        found = price_of(row, prices)
        if found is None or row["provider"] == "ollama":
            continue
        entry = known[next(name for name, each in prices.items() if each is found)]
        wanted = entry.get("max_output_tokens")
        if isinstance(wanted, int):
            assert abs(row["max_output"] - wanted) <= LIMITS * wanted, row["id"]


def test_openais_current_models_speak_responses() -> None:
    spoken = {row.id: row.dialect for row in load_facts("openai").models}
    current = [name for name in spoken if name >= "gpt-5.4"]
    assert len(current) >= 12
    assert {spoken[name] for name in current} == {"openai-responses"}
