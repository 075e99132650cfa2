"""What turns call: two hundred that go round in circles, two hundred that get on.

A trace is made of steps; each is a call with what comes of it, and how long the agent
waited before. Those of loops never end. Some begin with honest work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from random import Random
from typing import Any

TOOLS = ("file_read", "file_list", "web_fetch", "kv_get", "calculate", "shell_exec")


@dataclass(frozen=True)
class Step:
    """A call of a trace; ``agent`` and ``turn`` say whose it is."""

    tool: str
    arguments: Mapping[str, Any]
    result: str
    seconds: float = 1.0
    agent: str = "a"
    turn: str = "root"


@dataclass(frozen=True)
class Loop:
    """A trace that never ends: honest work at first, then a round that repeats."""

    steps: Callable[[], Iterator[Step]]
    before: int
    period: int


Trace = Sequence[Step]
Volatile = Callable[[int], tuple[dict[str, Any], str]]


@dataclass
class Noise:
    """What makes each call and each result of a loop look new."""

    random: Random
    on: bool = True
    clock: int = 1_700_000_000

    def __post_init__(self) -> None:
        self.kind = self.random.randrange(3)

    def arguments(self, number: int) -> dict[str, Any]:
        """Fields that always differ, of one kind in a loop."""
        nonce = f"{self.random.getrandbits(128):032x}"
        kinds: tuple[dict[str, Any], ...] = (
            {"timestamp": self.clock + number},
            {"nonce": nonce, "request_id": nonce[:12]},
            {"idempotency_key": nonce, "attempt": number},
        )
        return kinds[self.kind] if self.on else {}

    def words(self, number: int) -> str:
        """Words that always differ, of one kind in a loop."""
        kinds = (
            f" (took {self.random.randint(1, 900)} ms)",
            f" at 2026-03-0{1 + number % 9}T10:{number % 60:02}:07Z",
            f" [request {self.random.getrandbits(64):016x}]",
        )
        return kinds[self.kind] if self.on else ""


def work(random: Random, steps: int) -> list[Step]:
    """Honest calls, none like another."""
    return [
        Step(
            random.choice(TOOLS), {"path": f"w{n}/{random.random()}"}, f"content of {n}"
        )
        for n in range(steps)
    ]


def round_of(random: Random, period: int, noise: Noise, said: str) -> Loop:
    """Calls that repeat with a period, each with the same result but for the noise."""
    calls = [(random.choice(TOOLS), {"path": f"{said}{n}"}) for n in range(period)]
    before = work(random, random.randint(0, 10))

    def steps() -> Iterator[Step]:
        yield from before
        for number in count():
            tool, arguments = calls[number % period]
            given = {**arguments, **noise.arguments(number)}
            words = f"{said} {number % period}{noise.words(number)}"
            yield Step(tool, given, words, random.random() * 3)

    return Loop(steps, len(before), period)


def drifting(random: Random) -> Loop:
    """A search that is worded anew each time and never finds anything."""

    def steps() -> Iterator[Step]:
        for number in count():
            yield Step("web_search", {"query": f"answer {number}"}, "No results.")

    del random
    return Loop(steps, 0, 1)


def among_agents(random: Random, period: int) -> Loop:
    """Agents that ask one another the same; each is asked in a turn of its own."""
    names = [f"agent{n}" for n in range(period)]
    before = work(random, random.randint(0, 5))

    def steps() -> Iterator[Step]:
        yield from before
        for number in count():
            callee = names[number % period]
            caller = names[(number - 1) % period] if number else "a"
            asked = {"agent_id": callee, "message": "Please find out and tell me."}
            turn = "root" if caller == "a" else f"turn{number}"
            yield Step("agent_call", asked, "Ask the next one.", 2.0, caller, turn)

    return Loop(steps, len(before), period)


def loops() -> list[Loop]:
    """Two hundred loops: of every period up to 16, bare and in disguise."""
    made: list[Loop] = []
    for seed in range(200):
        random = Random(seed)
        noise = Noise(random, on=bool(seed % 3))
        kind = seed % 20
        if kind < 5:
            made.append(round_of(random, 1, noise, "same"))
        elif kind < 8:
            made.append(round_of(random, 2, noise, "ping"))
        elif kind < 11:
            made.append(round_of(random, random.randint(3, 5), noise, "round"))
        elif kind < 14:
            made.append(round_of(random, random.randint(6, 16), noise, "long"))
        elif kind < 16:
            made.append(round_of(random, 1, noise, "Error: connection refused"))
        elif kind < 19:
            made.append(among_agents(random, random.randint(1, 4)))
        else:
            made.append(
                drifting(random) if seed < 180 else round_of(random, 2, noise, "x")
            )
    return made


def honest() -> list[Trace]:
    """Two hundred turns that get on, however often they call the same."""
    kinds = (
        coding,
        paging,
        polling,
        patient_polling,
        retrying,
        storing,
        researching,
        delegating,
        checking_again,
        watching_a_log,
    )
    return [kinds[seed % len(kinds)](Random(1_000 + seed)) for seed in range(200)]


def coding(random: Random) -> Trace:
    """Read, edit, test, until the tests pass; the same failure may come up thrice."""
    steps = [Step("file_list", {"path": "."}, "a.py b.py test_a.py")]
    files = [f"{name}.py" for name in "abc"]
    contents = dict.fromkeys(files, 0)
    for edit in range(random.randint(4, 14)):
        file = random.choice(files)
        steps.append(Step("file_read", {"path": file}, f"{file} v{contents[file]}"))
        contents[file] += 1
        steps.append(Step("file_write", {"path": file, "text": f"v{edit}"}, "written"))
        failed = max(0, 5 - edit // random.randint(1, 3))
        steps.append(Step("shell_exec", {"command": "pytest"}, f"{failed} failed"))
    return steps


def paging(random: Random) -> Trace:
    """Page by page, by number or by cursor."""
    pages = random.randint(10, 40)
    if random.random() < 0.5:
        return [
            Step("http_get", {"url": f"https://a.example/items?page={n}"}, f"items {n}")
            for n in range(pages)
        ]
    marks = [f"{random.getrandbits(64):016x}" for _ in range(pages)]
    return [Step("items", {"cursor": mark}, f"items of {mark}") for mark in marks]


def polling(random: Random) -> Trace:
    """Ask for a job's status every second or so, for a while."""
    started = [Step("job_start", {"name": "build"}, "job 7 started")]
    waits = random.randint(3, 12)
    asked = [Step("job_status", {"id": 7}, "pending", 1.0) for _ in range(waits)]
    return [*started, *asked, Step("job_status", {"id": 7}, "done")]


def patient_polling(random: Random) -> Trace:
    """Ask for it far longer, and wait between as one should."""
    waits = random.randint(20, 60)
    asked = [Step("job_status", {"id": 7}, "running", 65.0) for _ in range(waits)]
    return [*asked, Step("job_status", {"id": 7}, "done")]


def retrying(random: Random) -> Trace:
    """Try again after an error, up to three times, then get on."""
    steps: list[Step] = []
    for number in range(random.randint(1, 5)):
        url = {"url": f"https://a.example/{number}"}
        failures = random.randint(0, 3)
        steps += [Step("web_fetch", url, "failed: 503", 2.0) for _ in range(failures)]
        steps.append(Step("web_fetch", url, f"page {number}"))
    return steps


def storing(random: Random) -> Trace:
    """Write many things, each answered alike."""
    return [
        Step("kv_set", {"key": f"k{n}", "value": random.random()}, "stored")
        for n in range(random.randint(10, 50))
    ]


def researching(random: Random) -> Trace:
    """Search with other words, find nothing mostly, read what there is, look again."""
    steps: list[Step] = []
    for number in range(random.randint(5, 20)):
        found = f"result {number}" if random.random() < 0.5 else "No results."
        steps.append(Step("web_search", {"query": f"words {number}"}, found))
        if found != "No results." and random.random() < 0.7:
            page = f"https://a.example/{number}"
            steps.append(Step("web_fetch", {"url": page}, f"page {number}"))
    return steps


def delegating(random: Random) -> Trace:
    """Ask several agents in rounds, each time something else."""
    steps: list[Step] = []
    for number in range(random.randint(2, 8)):
        for name in ("writer", "critic", "tester"):
            asked = {"agent_id": name, "message": f"Draft {number}, please."}
            steps.append(Step("agent_call", asked, f"{name} says {number}", 5.0))
    return steps


def checking_again(random: Random) -> Trace:
    """Do some work and look at all of it again at the end; nothing has changed."""
    steps = work(random, random.randint(6, 20))
    return [*steps, *random.sample(steps, random.randint(2, 5))]


def watching_a_log(random: Random) -> Trace:
    """Read the same log many times, which is longer each time; and tell the time."""
    steps: list[Step] = []
    for number in range(random.randint(5, 25)):
        steps.append(Step("file_read", {"path": "a.log"}, f"{number} lines, all well"))
        if number % 8 == 0:
            steps.append(Step("system_time", {}, f"2026-03-01T10:{number:02}:00Z"))
    return steps
