"""Find the plugin whose code made trouble, by the files of a stack."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import FrameType, TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agenthost import Plugins

Places = Mapping[str, str]
"""Files, and folders with a slash at the end, to plugins' keys."""

MOST_FRAMES = 20
DRIVER = "plugin:cli"


def places_of(plugins: Plugins) -> dict[str, str]:
    """Tell where the code of each imported plugin is.

    A package of others with one plugin in it is that plugin's as a whole. Our own
    package is left out: it drives the loop, so it is in every stack.
    """
    states = [state for state in plugins.states() if state.key != DRIVER]
    names = {state.key: str(getattr(state.entry, "module", "")) for state in states}
    tops = Counter(name.partition(".")[0] for name in names.values())
    places: dict[str, str] = {}
    for state in states:
        name = names[state.key]
        top = name.partition(".")[0]
        if tops[top] == 1 and not state.first_party:
            places |= dict.fromkeys(_place(top), state.key)
        places |= dict.fromkeys(_place(name), state.key)
    return places


def _place(module: str) -> Iterator[str]:
    file = getattr(sys.modules.get(module), "__file__", None)
    if file:
        path = Path(file)
        yield f"{path.parent}/" if path.name == "__init__.py" else str(path)


def owner(places: Places, files: Iterable[str]) -> str | None:
    """Name the plugin of the first file that is a plugin's; innermost come first."""
    for file in files:
        own = [place for place in places if _within(file, place)]
        if own:
            return places[max(own, key=len)]
    return None


def _within(file: str, place: str) -> bool:
    return file.startswith(place) if place.endswith("/") else file == place


def frames_of(innermost: FrameType | None) -> list[FrameType]:
    """Give the frames of a stack, innermost first."""
    frames = []
    while innermost is not None:
        frames.append(innermost)
        innermost = innermost.f_back
    return frames


def frames_of_traceback(trace: TracebackType | None) -> list[FrameType]:
    """Give the frames an exception passed, innermost first."""
    frames: list[FrameType] = []
    while trace is not None:
        frames.insert(0, trace.tb_frame)
        trace = trace.tb_next
    return frames


def files_of(frames: Iterable[FrameType]) -> list[str]:
    """Name the source file of each frame."""
    return [frame.f_code.co_filename for frame in frames]


def shown(frame: FrameType) -> str:
    """Name the function and the line of a frame, without a path."""
    module = frame.f_globals.get("__name__", "?")
    return f"{module}.{frame.f_code.co_qualname} line {frame.f_lineno}"
