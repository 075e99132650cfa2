"""The settings keep every promise of their port; its contract finds who breaks one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from agenthost import ConfigError, Plugins
from agenthost.testing import OpenSettings, SettingsContract
from agenthost_settings import open_settings

from tests.kernel.testing.ports.finding import finds, names_in, names_of


class TestTheSettings(SettingsContract):
    """``config.toml`` and the environment."""

    @pytest.fixture
    def opened(self) -> OpenSettings:
        return open_settings


class Told:
    """Settings that say something else."""

    def __init__(self, settings: Any) -> None:
        self.warnings: tuple[str, ...] = settings.warnings
        self.settings = settings

    def __call__(self, model: Any) -> Any:
        return self.settings(model)


class GivesDefaults(Told):
    def __call__(self, model: Any) -> Any:
        self.settings(model)
        return model()


class GivesTables(Told):
    def __call__(self, model: Any) -> Any:
        return self.settings(model).model_dump()


class NeedsSections(Told):
    def __init__(self, settings: Any) -> None:
        super().__init__(settings)
        self.warnings = self.warnings or ("there is no section",)


class MakesUp(Told):
    def __call__(self, model: Any) -> Any:
        try:
            return self.settings(model)
        except Exception:  # noqa: BLE001 - it is broken
            return model.model_construct()


class SaysNothing(Told):
    def __init__(self, settings: Any) -> None:
        super().__init__(settings)
        self.warnings = ()


class ShowsValues(Told):
    def __init__(self, settings: Any) -> None:
        super().__init__(settings)
        self.warnings = (*self.warnings, f"unknown: {settings.said.table}")


Open = Callable[[Any, Plugins, Any], Awaitable[Any]]


def telling(kind: type[Told]) -> Open:
    async def opened(said: Any, plugins: Plugins, sections: Any) -> Any:
        return kind(await open_settings(said, plugins, sections))

    return opened


async def file_alone(said: Any, plugins: Plugins, sections: Any) -> Any:
    return await open_settings(replace(said, environ={}), plugins, sections)


async def first_fault_alone(said: Any, plugins: Plugins, sections: Any) -> Any:
    try:
        return await open_settings(said, plugins, sections)
    except ConfigError as error:
        raise ConfigError(str(error).partition("\n")[0]) from None


async def with_values(said: Any, plugins: Plugins, sections: Any) -> Any:
    try:
        return await open_settings(said, plugins, sections)
    except ConfigError as error:
        raise ConfigError(f"{error} {said.table}") from None


async def in_python(said: Any, plugins: Plugins, sections: Any) -> Any:
    try:
        return await open_settings(said, plugins, sections)
    except ConfigError as error:
        raise ValueError(str(error).replace("\n", " ")) from None


async def first_comes_last(said: Any, plugins: Plugins, sections: Any) -> Any:
    return await open_settings(said, plugins, sections[::-1])


async def stops_for_anything(said: Any, plugins: Plugins, sections: Any) -> Any:
    found = await open_settings(said, plugins, sections)
    if any(state.status == "failed" for state in plugins.states()):
        raise ConfigError("a plugin has failed")
    return found


def once_for_all() -> Open:
    kept: list[Any] = []

    async def opened(said: Any, plugins: Plugins, sections: Any) -> Any:
        kept.append(await open_settings(said, plugins, sections))
        return kept[0]

    return opened


HERE = TestTheSettings()
BREACHES: tuple[tuple[Open, Any], ...] = (
    (telling(GivesDefaults), HERE.test_a_plugin_reads_what_its_section_says),
    (telling(GivesTables), HERE.test_a_plugin_reads_what_its_section_says),
    (telling(NeedsSections), HERE.test_a_section_that_says_nothing_has_its_defaults),
    (file_alone, HERE.test_the_environment_stands_above_the_file),
    (telling(MakesUp), HERE.test_a_model_that_nobody_registered_is_refused),
    (first_fault_alone, HERE.test_every_wrong_value_is_named_at_once),
    (with_values, HERE.test_every_wrong_value_is_named_at_once),
    (in_python, HERE.test_a_section_that_is_no_table_is_told),
    (telling(SaysNothing), HERE.test_what_was_not_understood_is_a_warning),
    (telling(ShowsValues), HERE.test_secrets_are_not_shown),
    (first_comes_last, HERE.test_the_first_has_a_section_and_the_second_fails),
    (stops_for_anything, HERE.test_a_model_that_breaks_fails_its_plugin_alone),
    (once_for_all(), HERE.test_two_daemons_share_nothing),
)


@pytest.mark.breaches
@pytest.mark.parametrize(("broken", "test"), BREACHES)
async def test_broken_settings_are_found(broken: Open, test: Any) -> None:
    await finds(test, broken)


def test_every_test_of_the_contract_can_fail() -> None:
    assert names_in(breach[1] for breach in BREACHES) == names_of(SettingsContract)
