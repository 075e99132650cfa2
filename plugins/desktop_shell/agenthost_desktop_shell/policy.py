"""A policy: checked capabilities, decided by for every platform."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from .decide import Decision, decide
from .findings import CapabilityError
from .folders import Folders
from .framework import SCHEMAS, read_tables
from .model import Capability
from .reading import Document, read_file
from .resolve import Resolved
from .shell import Programs, ShellDecision, decide_open, decide_shell
from .tables import Tables
from .terms import LOCAL, MANIFESTS, Caller, Mode, ShellCall, host_platform
from .validation import Report, duplicates, validate

EXTENSIONS = frozenset({".json", ".json5", ".toml"})


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
            CapabilityError: The platform is unknown, or a label is not Unicode text.
        """
        resolved = self.on(platform or host_platform())
        return decide(resolved, command, Caller(window, webview, origin))

    def decide_shell(
        self, call: ShellCall, caller: Caller, folders: Folders
    ) -> ShellDecision:
        """Decide whether a webview may run a program, on the folders' platform.

        Raises:
            CapabilityError: The platform is unknown, or a label is not Unicode text.
        """
        return decide_shell(self._resolved(folders.platform)[1], call, caller, folders)

    def decide_open(
        self,
        path: str,
        caller: Caller,
        platform: str,
        opens: bool | str = True,  # noqa: FBT001, FBT002 - the application's setting
    ) -> ShellDecision:
        """Decide whether a webview may open a link; ``opens`` is the app's setting.

        Raises:
            CapabilityError: The platform is unknown, or a label is not Unicode text.
        """
        return decide_open(self.on(platform), path, caller, opens)

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


def capability_files(folder: Path, skip: Collection[str] = (SCHEMAS,)) -> list[Path]:
    """List the capability files in a folder and below, in sorted order.

    Folders named ``schemas`` hold what the framework's build writes, none of them; a
    folder that cannot be listed is itself in the list, so that reading it fails.
    """
    found: list[Path] = []
    try:
        inside = sorted(folder.iterdir())
    except OSError:
        return [folder]
    for path in inside:
        if path.is_dir() and path.name not in skip and not path.is_symlink():
            found.extend(capability_files(path))
        elif path.suffix in EXTENSIONS and path.is_file():
            found.append(path)
    return found


def read_reports(
    documents: Iterable[Document | CapabilityError],
    tables: Tables,
    mode: Mode = Mode.STRICT,
    host: str | None = None,
) -> Report:
    """Validate documents together; one that could not be read counts as an error."""
    reports = [
        Report(errors=document.findings)
        if isinstance(document, CapabilityError)
        else validate(document, tables, mode, host)
        for document in documents
    ]
    capabilities = tuple(c for report in reports for c in report.capabilities)
    errors = tuple(f for report in reports for f in report.errors)
    return Report(
        capabilities,
        errors or tuple(duplicates(capabilities)),
        tuple(f for report in reports for f in report.strict_errors),
        tuple(f for report in reports for f in report.warnings),
    )


def read_documents(
    paths: Iterable[Path], below: Path | None = None
) -> Iterator[Document | CapabilityError]:
    """Read files; findings name them as given, or as they are called below a folder."""
    for path in paths:
        try:
            name = str(path.relative_to(below)) if below else str(path)
            yield read_file(path, name=name)
        except CapabilityError as error:
            yield error


def load_tables(folder: Path) -> Tables:
    """Load the built-in tables, and those of a folder's subfolder ``manifests``.

    Raises:
        CapabilityError: A manifest cannot be used.
    """
    own = folder / MANIFESTS
    return Tables.builtin(*(read_tables([own]) if own.is_dir() else ()))


def load_policy(folder: Path, tables: Tables, mode: Mode = Mode.STRICT) -> Policy:
    """Load the capability files of a folder; one that does not exist has none.

    Raises:
        CapabilityError: A file cannot be used.
    """
    paths = capability_files(folder, (SCHEMAS, MANIFESTS)) if folder.is_dir() else []
    report = read_reports(read_documents(paths, folder), tables, mode)
    return Policy(report.checked(), tables)
