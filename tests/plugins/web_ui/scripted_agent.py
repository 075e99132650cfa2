"""What the fake daemon's agents say: a turn is chosen by a word of the message."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

Frame = dict[str, Any]
Turn = Callable[[str, "Signals"], AsyncIterator[Frame]]

RICH = """\
Here is what I found, in **three** parts:

1. The workspace holds *two* files.
2. `notes.md` is the newer one.
3. Nothing else needs attention.

```python
def total(prices: list[float]) -> float:
    return round(sum(prices), 2)
```

| File | Size | Changed |
|:--|--:|:--|
| notes.md | 1.2 kB | today |
| plan.txt | 640 B | yesterday |

> Small steps, then measure.

See [the notes](https://example.org/notes) for more.
"""

TABLE = """\
| Language | Requests/s | Notes |
|:--|--:|:--|
| Python | 100000 | Simple, and quick enough for most of what people build with it |
| JavaScript | 2500000 | Incomprehensibilities abound |

| Year | Population | Neighbourhoods | Representation | Observations |
|--|--|--|--|--|
| 2026 | 100000000 | Kreuzberg-Friedrichshain | Proportional | Unquestionably |
"""

HOSTILE = """\
<script>window.pwned = 1</script>
<img src=x onerror="window.pwned = 2">
<svg onload="window.pwned = 3"><a href="javascript:window.pwned = 4">svg</a></svg>
<p style="position:fixed;inset:0;background:red">styled</p>
<iframe src="https://example.org/frame"></iframe>

[click me](javascript:window.pwned=5) ![pic](https://example.org/pixel.png)
[data](data:text/html,<script>window.pwned=6</script>)

```html"onmouseover="window.pwned=7
<b onclick="window.pwned = 8">code</b>
```
"""


class Signals:
    """How a test and a running turn meet."""

    def __init__(self) -> None:
        self.go_on = asyncio.Event()
        self.stop = asyncio.Event()


async def _words(text: str) -> AsyncIterator[Frame]:
    for word in text.split(" "):
        await asyncio.sleep(0)
        yield {"type": "text_delta", "content": f"{word} "}


async def _echo(content: str, signals: Signals) -> AsyncIterator[Frame]:
    async for frame in _words(f"You said: {content}"):
        yield frame


async def _markdown(content: str, signals: Signals) -> AsyncIterator[Frame]:
    async for frame in _words(RICH):
        yield frame


async def _hostile(content: str, signals: Signals) -> AsyncIterator[Frame]:
    async for frame in _words(HOSTILE):
        yield frame


async def _stepwise(content: str, signals: Signals) -> AsyncIterator[Frame]:
    yield {"type": "text_delta", "content": "first half"}
    await signals.go_on.wait()
    yield {"type": "text_delta", "content": ", second half"}


async def _endless(content: str, signals: Signals) -> AsyncIterator[Frame]:
    yield {"type": "text_delta", "content": "counting one two"}
    await signals.stop.wait()


async def _tools(content: str, signals: Signals) -> AsyncIterator[Frame]:
    yield {"type": "text_delta", "content": "Let me look at the workspace."}
    listing = {"tool": "file_list", "id": "c1"}
    yield {"type": "tool_start", **listing, "input": {"path": "."}}
    yield {"type": "tool_end", **listing, "result": "notes.md\nplan.txt"}
    reading = {"tool": "file_read", "id": "c2"}
    yield {"type": "tool_start", **reading, "input": {"path": "missing.md"}}
    yield {
        "type": "tool_end",
        **reading,
        "result": "file not found: missing.md",
        "is_error": True,
    }
    yield {"type": "text_delta", "content": "There are **two** files."}


async def _breaking(content: str, signals: Signals) -> AsyncIterator[Frame]:
    yield {"type": "text_delta", "content": "half a word"}
    yield {"type": "error", "content": "shutting down", "code": "interrupted"}


async def _table(content: str, signals: Signals) -> AsyncIterator[Frame]:
    yield {"type": "text_delta", "content": TABLE}


async def _failing(content: str, signals: Signals) -> AsyncIterator[Frame]:
    yield {"type": "error", "content": "openai: the model is overloaded"}


async def _thoughtful(content: str, signals: Signals) -> AsyncIterator[Frame]:
    yield {"type": "thinking", "content": "They ask for "}
    yield {"type": "thinking", "content": "<b>a sum</b>."}
    yield {"type": "text_delta", "content": "It is"}
    yield {"type": "response", "content": "It is", "iterations": 1, "finish": "length"}


CITED = [
    {"url": "https://a.example/x", "title": "<b>A</b> page"},
    {"url": "http://b.example/", "title": ""},
    {"url": "javascript:alert(1)", "title": "not a page"},
]


async def _citing(content: str, signals: Signals) -> AsyncIterator[Frame]:
    yield {"type": "text_delta", "content": "So [1]"}
    yield {"type": "response", "content": "So [1]", "iterations": 1, "citations": CITED}


TURNS: dict[str, Turn] = {
    "ponder": _thoughtful,
    "cite": _citing,
    "markdown": _markdown,
    "hostile": _hostile,
    "stepwise": _stepwise,
    "endless": _endless,
    "tools": _tools,
    "fail": _failing,
    "break": _breaking,
    "table": _table,
}


def turn_for(content: str, signals: Signals, tries: int) -> AsyncIterator[Frame]:
    """The frames between ``thinking`` and the end; what is tried again goes well."""
    scripts = TURNS if tries == 1 else {}
    turn = next((scripts[word] for word in scripts if word in content), _echo)
    return turn(content, signals)
