"""A policy: checked capabilities, decided by for every platform."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from .decide import Decision, decide
from .findings import CapabilityError, Finding
from .folders import Folders
from .manifests import read_manifests
from .model import Capability
from .reading import read_file
from .resolve import Resolved
from .shell import Programs, ShellDecision, decide_open, decide_shell
from .tables import Tables
from .terms import LOCAL, MANIFESTS, Caller, Mode, ShellCall, host_platform
from .validate import Report, duplicates, validate

EXTENSIONS = frozenset({".json", ".toml"})


class Policy:
    """Capabilities that were checked together, and the tables they speak of."""

    def __init__(self, capabilities: Iterable[Capability], tables: Tables) -> None:
        """Take checked capabilities.

        Raises:
            CapabilityError: Two capabilities have the same identifier.
        """
        self.capabilities = tuple(capabilities)
        self.tables = tables
        self._on: dict[str, tuple[Resolved, Programs]] = {}
        taken = tuple(duplicates(self.capabilities))
        if taken:
            raise CapabilityError(taken)

    def on(self, platform: str) -> Resolved:
        """The policy resolved for a platform; worked out once.

        Raises:
            CapabilityError: The platform is unknown, or there is too much to resolve.
        """
        return self._resolved(platform)[0]

    def decide(
        self,
        command: str,
        window: str,
        webview: str | None = None,
        origin: str = LOCAL,
        platform: str = "",
    ) -> Decision:
        """Decide whether a webview may invoke a command.

        Args:
            command: ``core:window:set-title``; bare for an application command.
            window: The window's label.
            webview: The webview's label; the window's own when left out.
            origin: ``local``, or the URL of the page in the webview.
            platform: The target; this machine's when left out.

        Raises:
            InvalidInput: The platform is unknown, or a label is not Unicode text.
        """
        resolved = self.on(platform or host_platform())
        return decide(resolved, command, Caller(window, webview, origin))

    def decide_shell(
        self, call: ShellCall, caller: Caller, folders: Folders
    ) -> ShellDecision:
        """Decide whether a webview may run a program, on the folders' platform.

        Raises:
            InvalidInput: The platform is unknown, or a label is not Unicode text.
        """
        return decide_shell(self._resolved(folders.platform)[1], call, caller, folders)

    def decide_open(self, path: str, caller: Caller, platform: str) -> ShellDecision:
        """Decide whether a webview may open a link.

        Raises:
            InvalidInput: The platform is unknown, or a label is not Unicode text.
        """
        return decide_open(self.on(platform), path, caller)

    def _resolved(self, platform: str) -> tuple[Resolved, Programs]:
        known = self._on.get(platform)
        if known is None:
            resolved = Resolved(self.capabilities, self.tables, platform)
            known = self._on[platform] = resolved, Programs(resolved)
        return known


def platform_of(triple: str) -> str:
    """The platform of a target triple, such as ``x86_64-apple-darwin``."""
    names = {"darwin": "macOS", "windows": "windows", "android": "android"}
    for part, platform in {**names, "ios": "iOS"}.items():
        if part in triple:
            return platform
    return "linux"


def capability_files(paths: Iterable[Path]) -> list[Path]:
    """List the capability files among files and folders, folders in sorted order.

    A folder that cannot be listed is itself in the list, so that reading it fails.
    """
    found: list[Path] = []
    for path in paths:
        try:
            inside = sorted(path.iterdir())
        except OSError:
            found.append(path)
            continue
        found.extend(p for p in inside if p.suffix in EXTENSIONS and p.is_file())
    return found


def read_report(
    paths: Sequence[Path], tables: Tables, mode: Mode = Mode.STRICT
) -> Report:
    """Read and validate files and folders together."""
    capabilities: list[Capability] = []
    errors: list[Finding] = []
    strict: list[Finding] = []
    for path in capability_files(paths):
        report = _read(path, tables, mode)
        capabilities.extend(report.capabilities)
        errors.extend(report.errors)
        strict.extend(report.strict_errors)
    if not errors:
        errors.extend(duplicates(capabilities))
    return Report(tuple(capabilities), tuple(errors), tuple(strict))


def _read(path: Path, tables: Tables, mode: Mode) -> Report:
    try:
        return validate(read_file(path), tables, mode)
    except CapabilityError as error:
        return Report(errors=error.findings)


def load_tables(folder: Path) -> Tables:
    """Load the built-in tables, and those of a folder's subfolder ``manifests``.

    Raises:
        CapabilityError: A manifest cannot be used.
    """
    return Tables.builtin(*read_manifests(folder / MANIFESTS))


def load_policy(folder: Path, tables: Tables, mode: Mode = Mode.STRICT) -> Policy:
    """Load the capability files of a folder; one that does not exist has none.

    Raises:
        CapabilityError: A file cannot be used.
    """
    paths = [folder] if folder.is_dir() else []
    return Policy(read_report(paths, tables, mode).checked(), tables)
