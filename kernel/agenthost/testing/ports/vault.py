"""What every backend of the port VAULT promises, as tests to inherit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import pytest

from ...errors import InvalidInput
from ...ports.vault import Vault
from ...secrets import Secret
from ..steps import check_steps

OpenVault = Callable[[], Vault]
CANARY = "sk-canary"
VALUES = (
    "x",
    " spaced ",
    "gsk-ключ \U0001f511",
    "two\nlines\n",
    '{"a": "b"}',
    "k" * 99_999,
)
AT_ONCE = 20


def revealed(vault: Vault) -> Mapping[str, str]:
    """Give all that a vault keeps, by name."""
    found = {name: vault.get(name) for name in vault.names()}
    return {name: secret.reveal() for name, secret in found.items() if secret}


class VaultContract:
    """A vault keeps every promise of the port.

    A subclass overrides the fixture ``opened``: a function that opens the vault. What
    it opens the second time is what a next process finds.

    Example:
        ::

            class TestKeyring(VaultContract):
                @pytest.fixture
                def opened(self, tmp_path: Path) -> OpenVault:
                    return partial(open_keyring, tmp_path, {})
    """

    @pytest.fixture
    def opened(self) -> OpenVault:
        """What opens the vault."""
        pytest.fail("override the fixture `opened` with what opens the vault")

    async def test_a_secret_comes_back_as_it_was_given(self, opened: OpenVault) -> None:
        """Spaces, lines and letters of any kind are the secret's own."""
        vault, given = opened(), {f"key {n}": value for n, value in enumerate(VALUES)}
        await vault.change(given)
        assert revealed(vault) == given

    async def test_a_secret_is_handed_out_hidden(self, opened: OpenVault) -> None:
        """It is a Secret, and the vault itself shows none."""
        vault = opened()
        await vault.change({"openai": CANARY})
        assert isinstance(vault.get("openai"), Secret)
        assert CANARY not in repr(vault)

    def test_a_new_vault_is_empty(self, opened: OpenVault) -> None:
        """Asking for what was never kept gives None."""
        vault = opened()
        assert vault.names() == []
        assert vault.get("openai") is None

    async def test_the_names_are_sorted(self, opened: OpenVault) -> None:
        """In whatever order they came."""
        vault = opened()
        for name in ("groq", "anthropic", "openai", "cohere"):
            await vault.change({name: "x"})
        assert vault.names() == ["anthropic", "cohere", "groq", "openai"]

    async def test_a_list_of_names_is_the_callers_own(self, opened: OpenVault) -> None:
        """Changing it changes no vault."""
        vault = opened()
        await vault.change({"openai": "x"})
        vault.names().clear()
        assert vault.names() == ["openai"]

    async def test_a_newer_value_takes_the_place(self, opened: OpenVault) -> None:
        """The other secrets stay."""
        vault = opened()
        await vault.change({"groq": "1", "openai": "2"})
        await vault.change({"openai": "3"})
        assert revealed(vault) == {"groq": "1", "openai": "3"}

    async def test_none_forgets_a_secret(self, opened: OpenVault) -> None:
        """Forgetting it again, or what was never kept, is fine."""
        vault = opened()
        await vault.change({"groq": "1", "openai": "2"})
        for _ in range(2):
            await vault.change({"groq": None, "nobody": None})
        assert vault.get("groq") is None
        assert revealed(vault) == revealed(opened()) == {"openai": "2"}

    async def test_what_was_kept_is_there_for_the_next_process(
        self, opened: OpenVault
    ) -> None:
        """A change is on disk when it returns."""
        given = {"groq": "gsk-ключ", "openai": CANARY}
        await opened().change(given)
        assert revealed(opened()) == given

    @pytest.mark.parametrize("wrong", [{"": CANARY}, {"empty": ""}])
    async def test_a_change_with_something_empty_changes_nothing(
        self, opened: OpenVault, wrong: Mapping[str, str]
    ) -> None:
        """InvalidInput names the field and no secret; the rest is not kept either."""
        vault = opened()
        await vault.change({"openai": "1"})
        before = vault.revision
        with pytest.raises(InvalidInput) as refused:
            await vault.change({"openai": "2", "groq": CANARY, **wrong})
        assert CANARY not in str(refused.value)
        assert revealed(vault) == revealed(opened()) == {"openai": "1"}
        assert vault.revision == before

    async def test_every_change_raises_the_revision(self, opened: OpenVault) -> None:
        """A new secret, another value and one that is forgotten; reading does not."""
        vault = opened()
        changes: tuple[Mapping[str, str | None], ...] = (
            {"openai": "1"},
            {"openai": "2"},
            {"openai": None},
        )
        for change in changes:
            before = vault.revision
            await vault.change(change)
            raised = vault.revision
            revealed(vault)
            assert before < raised == vault.revision

    async def test_changes_at_once_lose_nothing(self, opened: OpenVault) -> None:
        """One is made after another, each on what the one before left."""
        vault = opened()
        given = {f"key {n}": str(n) for n in range(AT_ONCE)}
        async with asyncio.timeout(60):
            await asyncio.gather(*(vault.change({n: v}) for n, v in given.items()))
        assert revealed(vault) == revealed(opened()) == given

    async def test_a_cancelled_change_happens_wholly_or_not_at_all(
        self, opened: OpenVault
    ) -> None:
        """The next change waits for it, and finds the vault in order."""
        vault = opened()
        given = {f"key {n}": str(n) for n in range(AT_ONCE)}
        change = asyncio.ensure_future(vault.change(given))
        await asyncio.sleep(0)
        change.cancel()
        await asyncio.wait({change}, timeout=60)
        await vault.change({"next": "x"})
        found = dict(revealed(opened()))
        assert found.pop("next") == "x"
        assert found in ({}, given)
        assert revealed(vault) == revealed(opened())

    async def test_it_leaves_the_loop_free(self, opened: OpenVault) -> None:
        """Reads are answered from memory, and a change is written off the loop."""
        vault = opened()

        async def read() -> None:
            vault.get("openai")
            vault.names()

        def change() -> Coroutine[Any, Any, None]:
            return vault.change({"openai": "x" * 1_000, "groq": None})

        await check_steps("reading the vault", read)
        await check_steps("changing the vault", change)
