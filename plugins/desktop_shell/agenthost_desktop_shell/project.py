"""An application's folder: its capability files, tables and configuration."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from .app_config import SELECTED, AppConfig, has_config, read_config
from .findings import CapabilityError, Finding
from .framework import ACL_FILE, SCHEMAS, read_tables
from .model import Capability
from .policy import Policy, capability_files, read_documents, read_reports
from .positions import nearest_line
from .reading import MAX_BYTES, Document, read_bytes
from .sources import written
from .tables import Tables
from .terms import MANIFESTS, PLATFORMS, Mode, host_platform
from .validation import Report, lines_of

CAPABILITIES = "capabilities"
SOURCES = "src-tauri"
PERMISSIONS = "permissions"
STANDARD_INPUT = Path("-")
DEPTH = 6


@dataclass(frozen=True)
class Project:
    """What was found and what validation says of it; ``root`` None without an app."""

    root: Path | None
    documents: tuple[Document, ...]
    config: AppConfig
    tables: Tables
    report: Report

    def policy(self, platform: str) -> Policy:
        """The policy of the capabilities that the configuration selects.

        Raises:
            CapabilityError: A file cannot be used.
        """
        return Policy(self.selected(self.report.checked(), platform), self.tables)

    def selected(
        self, capabilities: Iterable[Capability], platform: str
    ) -> tuple[Capability, ...]:
        """Those of the capabilities that count on a platform; all unless some are."""
        wanted = self.config.selected(platform)
        names = {w if isinstance(w, str) else _identifier(w) for w in wanted}
        return tuple(c for c in capabilities if not wanted or c.identifier in names)


def open_project(
    paths: Sequence[Path],
    manifests: Sequence[Path] = (),
    mode: Mode = Mode.STRICT,
    host: str | None = None,
) -> Project:
    """Read an application's folder, or capability files and folders of them.

    Args:
        paths: The folder with ``capabilities/`` or the one above it; or files.
        manifests: Further permission tables, files or folders; they win.
        mode: Strict, or what the reference runtime loads.
        host: The platform the application was built on; this machine's usually.

    Raises:
        CapabilityError: There are no capability files, or a permission table or the
            configuration cannot be used.
    """
    root = next((found for path in paths if (found := root_of(path))), None)
    files = [file for path in paths for file in _files(path)]
    config = read_config(root) if root else AppConfig()
    read = [*_documents(files), *_inline(config)]
    if not read:
        told = ", ".join(map(str, paths))
        problem = f"no capability files in {told}; name the folder that has them"
        raise CapabilityError([Finding(problem)])
    named = {p / MANIFESTS: p for p in (*paths, *_capabilities(root))}
    beside = [folder for folder in named if folder.is_dir()]
    tables = Tables.builtin(*read_tables([*_tables(root), *beside, *manifests]))
    report = read_reports(read, tables, mode, host or host_platform())
    whole = any(path in _wholes(root) for path in paths)
    problems = tuple(_unselected(config, report)) if whole else ()
    documents = tuple(item for item in read if isinstance(item, Document))
    return Project(root, documents, config, tables, _with(report, problems))


def find_projects(path: Path) -> list[Path]:
    """The applications in a folder: itself, or those of a repository below it."""
    if not path.is_dir() or root_of(path) is not None:
        return [path]
    found = []
    for place, folders, _ in os.walk(path):
        here = Path(place)
        depth = len(here.relative_to(path).parts)
        folders[:] = written(folders)
        if has_config(here):
            found.append(here)
        if has_config(here) or depth >= DEPTH:
            folders.clear()
    return sorted(found) or [path]


def root_of(path: Path) -> Path | None:
    """The application's folder that a path is, has or is in."""
    folder = path if path.is_dir() else path.parent
    if _is_root(folder):
        return folder
    if _is_root(folder / SOURCES):
        return folder / SOURCES
    whole = folder.absolute()
    for above in (whole, *whole.parents):
        if above.name == CAPABILITIES:
            found = above.parent
            return found if folder.is_absolute() else Path(os.path.relpath(found))
    return None


def _is_root(folder: Path) -> bool:
    return has_config(folder) or (folder / CAPABILITIES).is_dir()


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    root = root_of(path)
    if root is not None and path in _wholes(root):
        path = root / CAPABILITIES
        if not path.is_dir():
            return []
    return capability_files(path, (SCHEMAS, MANIFESTS))


def _wholes(root: Path | None) -> tuple[Path, ...]:
    """The folders that stand for all of an application."""
    return (root, root.parent) if root else ()


def _documents(files: Iterable[Path]) -> Iterator[Document | CapabilityError]:
    for file in files:
        if file == STANDARD_INPUT:
            content = sys.stdin.buffer.read(MAX_BYTES + 1)
            try:
                yield read_bytes(content, "-")
            except CapabilityError as error:
                yield error
        else:
            yield from read_documents([file])


def _inline(config: AppConfig) -> Iterator[Document]:
    """Yield the capabilities that stand in the configuration itself."""
    if config.document is None:
        return
    seen = []
    for platform in PLATFORMS:
        for place, item in enumerate(config.selected(platform)):
            if not isinstance(item, str) and item not in seen:
                seen.append(item)
                at = (*SELECTED, place)
                yield Document(item, config.document.name, config.document.text, at)


def _unselected(config: AppConfig, report: Report) -> Iterator[Finding]:
    """Yield the names that the configuration selects and no file has."""
    known = {capability.identifier for capability in report.capabilities}
    wanted = {
        w: n
        for p in PLATFORMS
        for n, w in enumerate(config.selected(p))
        if isinstance(w, str)
    }
    if config.document is None or report.errors:
        return
    for name, place in wanted.items():
        if name not in known:
            path = (*SELECTED, place)
            line = nearest_line(lines_of(config.document, [path]), path)
            problem = f"selects the capability {name!r}, which no file has"
            yield Finding(problem, file=config.document.name, line=line, value=name)


def _with(report: Report, errors: tuple[Finding, ...]) -> Report:
    return Report(
        report.capabilities,
        (*report.errors, *errors),
        report.strict_errors,
        report.warnings,
    )


def _tables(root: Path | None) -> Iterator[Path]:
    if root is None:
        return
    built = root / "gen" / SCHEMAS / ACL_FILE
    if built.is_file():
        yield built
    # A folder there that is named like a plugin of the build belongs to that plugin.
    plugins = {m.name for m in read_tables([built])} if built.is_file() else set()
    own = root / PERMISSIONS
    for path in sorted(own.iterdir()) if own.is_dir() else ():
        if path.name not in {*plugins, SCHEMAS}:
            yield path


def _capabilities(root: Path | None) -> list[Path]:
    return [root / CAPABILITIES] if root else []


def _identifier(value: object) -> str:
    return str(value.get("identifier", "")) if isinstance(value, dict) else ""
