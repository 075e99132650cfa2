"""Keep secrets in memory of their own and wipe it; keep the process out of dumps.

What the vault holds is in :class:`SecretBytes`. The process makes itself one that no
other of the same user may read or trace, and that leaves no core. What CPython cannot
wipe, and what the environment holds, `docs/secrets.md` tells.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress

from agenthost import ConfigSection, Host, SecuritySystem, ServiceSpec, hookimpl
from agenthost_toml.types import Table
from agenthost_values.secret_bytes import SecretBytes
from pydantic import Field

CANARY = b"canary-of-the-self-test"
GET_DUMPABLE, SET_DUMPABLE = 3, 4
UNLOCKED = (
    "secret_zeroization: secrets cannot be locked in memory, so that they may be "
    "written to swap; raise the limit of locked memory (ulimit -l) or encrypt the swap"
)
UNSEALED = (
    "secret_zeroization: this system has no way to forbid that other processes of the "
    "same user read this one's memory"
)
DEBUGGABLE = "[secret_zeroization] debuggable is true, so the process can be read"


class SecretsSection(Table):
    """``[secret_zeroization]``: who may look into the process."""

    debuggable: bool = Field(
        default=False,
        description="Lets debuggers, profilers and measurements of the same user read "
        "the daemon's memory, with all of its keys.",
    )


def seal() -> bool:
    """Let nobody of the same user read this process, and leave no core behind.

    Returns:
        Whether the system knows how; it holds until the process ends.
    """
    import ctypes
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        return bool(ctypes.CDLL(None).prctl(SET_DUMPABLE, 0, 0, 0, 0) == 0)
    except (AttributeError, OSError):
        return False


def is_open() -> bool:
    """Tell whether others of the same user may read this process."""
    import ctypes

    return bool(ctypes.CDLL(None).prctl(GET_DUMPABLE, 0, 0, 0, 0))


class Proof:
    """The proof for one daemon: of secrets, and of the process once that is sealed."""

    def __init__(self) -> None:
        self._sealed = False
        self._why_off = ""

    def begin(self, *, sealed: bool, debuggable: bool) -> None:
        """Take how the process is meant to be from now on."""
        self._sealed = sealed
        self._why_off = DEBUGGABLE if debuggable else ""

    def off(self) -> str:
        """Tell why nothing keeps the process closed, "" while it is."""
        return self._why_off

    def self_test(self) -> None:
        """Keep a secret and wipe it, and see the process sealed where it was.

        Raises:
            RuntimeError: A secret was seen, or the process can be read again.
        """
        self_test()
        if self._sealed and is_open():
            raise RuntimeError("the process was sealed and can be read again")


async def start(host: Host) -> None:
    """Seal the process, unless it is to be debugged."""
    if not SecretBytes(CANARY).locked:
        host.warnings.append(UNLOCKED)
    debuggable = host.settings(SecretsSection).debuggable
    sealed = not debuggable and seal()
    if debuggable:
        host.warnings.append(
            f"security: secret_zeroization is not active: {DEBUGGABLE}"
        )
    elif not sealed:
        host.warnings.append(UNSEALED)
    for proof in _of(host):
        proof.begin(sealed=sealed, debuggable=debuggable)


def _of(host: Host) -> Iterator[Proof]:
    for _, system in host.registry.offered(SecuritySystem):
        owner = getattr(system.self_test, "__self__", None)
        if isinstance(owner, Proof):
            yield owner


async def stop(_: Host) -> None:
    """It stays sealed."""


def self_test() -> None:
    """Keep a secret, see it shown nowhere, and see it gone when it is wiped.

    Raises:
        RuntimeError: It was seen, or is there still.
    """
    source = bytearray(CANARY)
    secret = SecretBytes(source)
    if any(source):
        raise RuntimeError("what a secret was made of is there still")
    if secret.data() != CANARY:
        raise RuntimeError("a secret is not what was kept")
    if "canary" in f"{secret!r}{secret}":
        raise RuntimeError("a secret shows itself")
    with suppress(TypeError):
        # What copy and pickle ask; to import them would hold up the start.
        secret.__reduce_ex__(4)
        raise RuntimeError("a secret was copied")
    secret.wipe()
    with suppress(ValueError):
        secret.data()
        raise RuntimeError("a secret was not wiped")


@hookimpl
def register_config() -> Iterable[ConfigSection]:
    """Read who may look into the process."""
    yield ConfigSection("secret_zeroization", SecretsSection)


@hookimpl
def register_service() -> Iterable[ServiceSpec]:
    """Seal the process when the daemon starts."""
    yield ServiceSpec("secret_zeroization", start, stop)


@hookimpl
def security_system() -> SecuritySystem:
    """Offer the zeroization of secrets."""
    proof = Proof()
    return SecuritySystem("secret_zeroization", {}, proof.self_test, off=proof.off)
