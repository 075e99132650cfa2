"""The page's files, read from the package into memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType

from agenthost_values.value_class import value_class

TYPES: Mapping[str, str] = MappingProxyType(
    {
        "css": "text/css; charset=utf-8",
        "html": "text/html; charset=utf-8",
        "js": "text/javascript; charset=utf-8",
        "mjs": "text/javascript; charset=utf-8",
        "svg": "image/svg+xml",
    }
)
PLAIN = "text/plain; charset=utf-8"


@value_class
class StaticFile:
    """One file as it is served; ``etag`` is strong and quoted."""

    body: bytes
    content_type: str
    etag: str


@cache
def load_files() -> Mapping[str, StaticFile]:
    """Read every file below ``static``, once.

    Returns:
        The files by path relative to ``static``, such as ``js/main.js``.
    """
    root = Path(__file__).with_name("static")
    return MappingProxyType(dict(_walk(root, "")))


def _walk(folder: Path, prefix: str) -> Iterator[tuple[str, StaticFile]]:
    for child in folder.iterdir():
        name = prefix + child.name
        if child.is_dir():
            yield from _walk(child, f"{name}/")
        else:
            yield name, _static_file(name, child.read_bytes())


def _static_file(name: str, body: bytes) -> StaticFile:
    extension = name.rpartition(".")[2]
    etag = f'"{sha256(body).hexdigest()[:32]}"'
    return StaticFile(body, TYPES.get(extension, PLAIN), etag)
