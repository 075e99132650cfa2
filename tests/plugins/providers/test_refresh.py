"""``agenthost models refresh`` reads public price files, or says what is wrong."""

from __future__ import annotations

import fnmatch
import json
import tomllib
from collections.abc import Iterable
from datetime import date
from importlib.resources import files
from pathlib import Path
from typing import Any

import agenthost_providers
import pytest
from agenthost import InvalidInput
from agenthost_providers import register_command
from agenthost_providers.prices import read_prices
from agenthost_providers.refresh import models
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

OWN = Path(str(files(agenthost_providers))) / "facts" / "models.json"
LITELLM = {
    "sample_spec": {"input_cost_per_token": 0},
    "gpt-5.5": {
        "input_cost_per_token": 4.9e-06,
        "output_cost_per_token": 3.1e-05,
        "cache_read_input_token_cost": 5e-07,
        "input_cost_per_token_above_272k_tokens": 1.1e-05,
        "output_cost_per_token_above_272k_tokens": 4.6e-05,
        "deprecation_date": "2027-08-01",
        "litellm_provider": "openai",
        "mode": "chat",
    },
    "dall-e-3": {"mode": "image_generation", "output_cost_per_image": 0.04},
}
GENAI = [
    {
        "id": "anthropic",
        "models": [
            {
                "id": "claude-fable-5-2",
                "prices": {
                    "input_mtok": {
                        "base": 9,
                        "tiers": [{"start": 200000, "price": 18}],
                    },
                    "output_mtok": 45,
                    "cache_read_mtok": 0.9,
                    "cache_write_mtok": 11.25,
                },
            }
        ],
    },
    {
        "id": "openrouter",
        "models": [
            {
                "id": "openai/gpt-4o",
                "prices": [
                    {"prices": {"input_mtok": 2.4, "output_mtok": 9.9}},
                    {
                        "constraint": {"start_time": "01:00"},
                        "prices": {"input_mtok": 1, "output_mtok": 1},
                    },
                ],
            },
            {"id": "free", "prices": {}},
        ],
    },
]


def refresh(tmp_path: Path, prices: Any, *more: str) -> tuple[Result, Path]:
    source, output = tmp_path / "prices.json", tmp_path / "models.json"
    source.write_text(prices if isinstance(prices, str) else json.dumps(prices))
    arguments = ["refresh", "--prices", str(source), "--output", str(output), *more]
    return CliRunner().invoke(models, arguments), output


def row(path: Path, name: str) -> dict[str, Any]:
    rows = json.loads(path.read_text())["models"]
    (found,) = [entry for entry in rows if entry["id"] == name]
    return dict(found)


def test_register_command_offers_models() -> None:
    (spec,) = register_command()
    assert spec.command.name == "models"


def test_litellms_table_is_read(tmp_path: Path) -> None:
    result, output = refresh(tmp_path, LITELLM)
    assert result.exit_code == 0, result.output
    assert "gpt-5.5: input_cost_per_1m" in result.output
    assert "1 of 203 models changed; 202 are not in the file" in result.output
    found = row(output, "gpt-5.5")
    assert (found["input_cost_per_1m"], found["output_cost_per_1m"]) == (4.9, 31.0)
    assert found["long_context"] == {
        "above_input_tokens": 272_000,
        "input_cost_per_1m": 11.0,
        "output_cost_per_1m": 46.0,
        "cached_input_cost_per_1m": 1.0,
    }
    assert found["status"] == "deprecating"
    assert found["deprecation_date"] == "2027-08-01"


def test_the_list_of_genai_prices_is_read(tmp_path: Path) -> None:
    result, output = refresh(tmp_path, GENAI)
    assert result.exit_code == 0, result.output
    fable = row(output, "claude-fable-5-2")
    assert (fable["input_cost_per_1m"], fable["cached_input_cost_per_1m"]) == (9.0, 0.9)
    assert fable["long_context"]["input_cost_per_1m"] == 18.0
    assert "cache_write_cost_per_1m" not in fable
    assert row(output, "openrouter/openai/gpt-4o")["input_cost_per_1m"] == 2.4


def test_only_what_changed_differs(tmp_path: Path) -> None:
    _, output = refresh(tmp_path, LITELLM)
    before = OWN.read_text(encoding="utf-8").splitlines()
    after = output.read_text(encoding="utf-8").splitlines()
    assert len(before) == len(after)
    changed = [new for old, new in zip(before, after, strict=True) if old != new]
    assert len(changed) == 6


def test_prices_of_today_change_nothing(tmp_path: Path) -> None:
    known = json.loads(OWN.read_text(encoding="utf-8"))["models"]
    same = {
        f"{entry['source'].partition(':')[2]}": {
            "input_cost_per_token": f"{entry['input_cost_per_1m']}e-6",
            "output_cost_per_token": f"{entry['output_cost_per_1m']}e-6",
        }
        for entry in known
        if entry["source"].startswith("litellm")
    }
    result, output = refresh(tmp_path, same)
    assert result.output.splitlines()[-1].startswith("0 of 203 models changed")
    assert output.read_text() == OWN.read_text(encoding="utf-8")


BAD: Iterable[tuple[Any, str]] = [
    ("{", "prices: is not JSON"),
    ("[" * 100_000, "prices: is not JSON"),
    ("7", "prices: is no table"),
    ({}, "prices: holds no price"),
    ([], "prices: holds no price"),
    ({"gpt-5.5": 7}, "gpt-5.5: is no table"),
    (
        {"gpt-5.5": {"input_cost_per_token": "x", "output_cost_per_token": 1}},
        "gpt-5.5.input_cost_per_token: is no number: 'x'",
    ),
    (
        {"gpt-5.5": {"input_cost_per_token": 1e-6, "output_cost_per_token": -1}},
        "gpt-5.5.output_cost_per_token: is no price",
    ),
    (
        {"gpt-5.5": {"input_cost_per_token": 4.9, "output_cost_per_token": 31}},
        "gpt-5.5: costs more than 10,000 dollars",
    ),
    (
        {"nobody": {"input_cost_per_token": 1e-6, "output_cost_per_token": 1e-6}},
        "names no model of the catalogue",
    ),
    ([{"models": []}], "prices[0].id: is missing"),
    ([{"id": "openai", "models": 7}], "openai.models: is not a list"),
    ([{"id": "openai", "models": [7]}], "openai.models[0]: is no table"),
]


@pytest.mark.parametrize(("prices", "says"), BAD)
def test_a_wrong_file_names_the_place(tmp_path: Path, prices: Any, says: str) -> None:
    result, output = refresh(tmp_path, prices)
    assert result.exit_code == 1
    assert says in result.output
    assert result.output.startswith("Error: prices.json: ")
    assert not output.exists()


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "prices.json"
    source.write_bytes(b"\xff\xfe\0")
    result = CliRunner().invoke(models, ["refresh", "--prices", str(source)])
    assert result.exit_code == 1
    assert "prices.json" in result.output


def changed(tmp_path: Path, name: str, **told: Any) -> dict[str, Any]:
    """Refresh with a file that has one model, at the price it has here."""
    known = row(OWN, name)
    prices = {
        "input_cost_per_token": f"{known['input_cost_per_1m']}e-6",
        "output_cost_per_token": f"{known['output_cost_per_1m']}e-6",
    }
    source = known["source"].partition(":")[2]
    result, output = refresh(tmp_path, {source: {**prices, **told}})
    assert result.exit_code == 0, result.output
    after = row(output, name)
    return {key: after[key] for key in after if after[key] != known.get(key)}


@pytest.mark.parametrize(
    ("name", "told", "expected"),
    [
        ("gpt-4o", {"supports_reasoning": True}, {"supports_thinking": True}),
        ("gpt-5.5", {"supports_reasoning": "yes"}, {}),
        (
            "gpt-5.5",
            {"supports_none_reasoning_effort": False},
            {"efforts": "low medium high xhigh", "thinking_off": "low"},
        ),
        (
            "gpt-5.5",
            {"reasoning_effort_levels": ["none", "high"]},
            {"efforts": "none high"},
        ),
        ("gpt-5.2", {"mode": "responses"}, {"api": "responses"}),
        (
            "gemini-3-flash-preview",
            {"supports_sampling_params": False},
            {"sampling": False},
        ),
        ("gemma-4-31b-it", {"supports_pdf_input": True}, {"documents": True}),
        (
            "claude-opus-5-5",
            {"supports_native_structured_output": False},
            {"structured": False},
        ),
        ("gemma-4-31b-it", {"supports_native_structured_output": True}, {}),
        ("gemma-4-31b-it", {"supports_prompt_caching": True}, {"caches": "automatic"}),
        ("claude-sonnet-5-5", {"thinking_always_on": True}, {}),
        (
            "gpt-5.5",
            {"cache_creation_input_token_cost": "6.25e-6"},
            {"cache_write_cost_per_1m": 6.25},
        ),
        ("claude-opus-5", {"cache_creation_input_token_cost": "6.25e-6"}, {}),
        ("deepseek-flash", {"cache_creation_input_token_cost": 0}, {}),
    ],
)
def test_abilities_are_taken_with_the_prices(
    tmp_path: Path, name: str, told: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert changed(tmp_path, name, **told) == expected


def test_every_change_is_shown_with_what_was_before(tmp_path: Path) -> None:
    result, _ = refresh(tmp_path, LITELLM)
    assert "input_cost_per_1m 5.0 -> 4.9" in result.output
    assert 'status "active" -> "deprecating"' in result.output


FREE = {"gpt-5.5": {"input_cost_per_token": 0, "output_cost_per_token": 3e-05}}


def test_a_price_that_falls_to_zero_needs_a_flag(tmp_path: Path) -> None:
    result, output = refresh(tmp_path, FREE)
    assert result.exit_code == 1
    assert "gpt-5.5: input_cost_per_1m falls from 5.0 to 0" in result.output
    assert "--allow-free" in result.output
    assert not output.exists()
    allowed, output = refresh(tmp_path, FREE, "--allow-free")
    assert allowed.exit_code == 0
    assert row(output, "gpt-5.5")["input_cost_per_1m"] == 0


def test_what_a_row_knows_better_is_kept(tmp_path: Path) -> None:
    name = "command-a-plus-05-2026"
    free = {"input_cost_per_token": 0, "output_cost_per_token": 0}
    result, output = refresh(tmp_path, {name: free})
    assert result.exit_code == 0
    assert row(output, name) == row(OWN, name)


def test_exceptions_name_their_source_and_day() -> None:
    table = tomllib.loads(OWN.with_name("exceptions.toml").read_text("utf-8"))
    ids = [entry["id"] for entry in json.loads(OWN.read_text("utf-8"))["models"]]
    for each in table["exceptions"]:
        assert each["why"]
        assert each["source"]
        assert isinstance(each["date"], date)
        for model in each["models"]:
            assert fnmatch.filter(ids, model), model


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 3) | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(
                [
                    "id",
                    "models",
                    "prices",
                    "input_mtok",
                    "output_mtok",
                    "tiers",
                    "start",
                    "input_cost_per_token",
                    "output_cost_per_token",
                    "input_cost_per_token_above_1k_tokens",
                    "reasoning_effort_levels",
                    "supports_none_reasoning_effort",
                    "supports_reasoning",
                ]
            ),
            inner,
        )
    ),
)


@given(JSON)
def test_no_json_breaks_the_reader(value: Any) -> None:
    try:
        found = read_prices(json.dumps(value))
    except InvalidInput:
        return
    assert all(cost >= 0 for price in found.values() for cost in price.costs.values())
