"""Settings of any model: the file, the environment over it, and what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from agenthost_toml.environment import Keys
from agenthost_toml.problems import shape_of
from agenthost_toml.settings import Settings, read_settings
from agenthost_toml.source import LARGEST, SettingsError, read_source
from agenthost_toml.types import Names, Table


class Oven(Table):
    degrees: int = 180
    fan: bool = False


class Bakery(Table):
    town: str = "Ulm"
    breads: Names = ()
    oven: Oven = Oven()


KEYS = Keys(
    shape_of(Bakery) or {},
    prefix="BAKERY_",
    aliases={"city": "town"},
    reserved=frozenset({"BAKERY_HOME"}),
)


def read(home: Path, text: str = "", **environ: str) -> Settings:
    file = home / "bakery.toml"
    file.write_text(text, encoding="utf-8")
    return read_settings(KEYS, read_source(file), environ)


def test_a_missing_file_says_nothing(tmp_path: Path) -> None:
    settings = read_settings(KEYS, read_source(tmp_path / "bakery.toml"), {})
    assert (settings.checked(Bakery), settings.warnings) == (Bakery(), ())


def test_the_environment_stands_over_the_file(tmp_path: Path) -> None:
    bakery = read(
        tmp_path,
        'city = "Bonn"\n[oven]\ndegrees = 200\nfan = true',
        BAKERY_OVEN__DEGREES="220",
        BAKERY_BREADS="rye, spelt",
        BAKERY_HOME="/elsewhere",
        OTHER_TOWN="Kiel",
    ).checked(Bakery)
    assert bakery.town == "Bonn"
    assert bakery.breads == ("rye", "spelt")
    assert bakery.oven == Oven(degrees=220, fan=True)


def test_given_values_take_the_place_of_what_is_said(tmp_path: Path) -> None:
    assert read(tmp_path, 'town = "Bonn"').checked(Bakery, town="Kiel").town == "Kiel"


@pytest.mark.parametrize(
    ("text", "variables", "said"),
    [
        (
            "[oven]\ndegrees = 'hot'",
            {},
            (
                "bakery.toml line 2: oven.degrees: must be a whole number, such as "
                "500, without quotes; it is text"
            ),
        ),
        (
            "\ncity = 3",
            {},
            (
                'bakery.toml line 2: city: must be text in quotes, such as "name"; '
                "it is a whole number"
            ),
        ),
        (
            "[oven]\nfan = true",
            {"BAKERY_OVEN__FAN": "maybe"},
            (
                "BAKERY_OVEN__FAN: oven.fan: must be true or false, without quotes; "
                "it is text"
            ),
        ),
    ],
)
def test_a_wrong_value_is_named_where_it_was_said(
    tmp_path: Path, text: str, variables: dict[str, str], said: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        read(tmp_path, text, **variables).checked(Bakery)
    assert str(caught.value) == said


@pytest.mark.parametrize(
    ("text", "variables", "said"),
    [
        (
            "twon = 'x'",
            {},
            "bakery.toml line 1: twon: unknown key, ignored; did you mean 'town'?",
        ),
        (
            "[oven]\ntown = 'x'",
            {},
            (
                "bakery.toml line 2: oven.town: unknown key, ignored; "
                "town belongs above the first [table]"
            ),
        ),
        (
            "",
            {"BAKERY_OVN": "1"},
            "BAKERY_OVN: names no configuration key; did you mean 'oven'?",
        ),
        (
            "",
            {"BAKERY_OVEN": '{"fam": true}'},
            "BAKERY_OVEN: oven.fam: unknown key, ignored; did you mean 'fan'?",
        ),
        (
            "",
            {"BAKERY_OVEN": "hot", "BAKERY_OVEN__FAN": "on"},
            "BAKERY_OVEN__FAN: ignored, a variable above it is no table",
        ),
    ],
)
def test_what_is_not_understood_is_a_warning(
    tmp_path: Path, text: str, variables: dict[str, str], said: str
) -> None:
    assert read(tmp_path, text, **variables).warnings == (said,)


def test_a_key_and_its_alias_are_one_too_many(tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as caught:
        read(tmp_path, "town = 'a'\ncity = 'b'")
    assert str(caught.value) == (
        "bakery.toml line 2: city: is the same as town; remove one of them"
    )


def test_a_key_is_found_under_any_of_its_names(tmp_path: Path) -> None:
    town = ("town",)
    assert read(tmp_path, "\ncity = 'a'").where(town) == "bakery.toml line 2"
    assert read(tmp_path, "town = 'a'").where(town) == "bakery.toml line 1"
    assert read(tmp_path, "town = 'a'", BAKERY_TOWN="b").where(town) == "BAKERY_TOWN"
    assert read(tmp_path, "[oven]").where(("oven", "fan")) is None


def test_bad_toml_is_named_with_line_column_and_key(tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as caught:
        read(tmp_path, "\ntown =")
    assert str(caught.value) == (
        "bakery.toml line 2, column 7: town: Invalid value, but the text ends here; "
        "correct the TOML there"
    )


def test_a_file_over_the_limit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="larger than 1 MiB"):
        read(tmp_path, "#" * (LARGEST + 1))
