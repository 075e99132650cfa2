"""Follow the calls of every turn, and of the agents that it calls."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from agenthost import (
    ALLOW,
    Clock,
    Context,
    Deny,
    HistoryCase,
    Host,
    LoopDetected,
    Message,
    Replace,
    SystemClock,
    ToolCallCase,
    ToolOutput,
    ToolResultCase,
    Verdict,
)

from .canonical import call_key, result_key
from .settings import LOOPS, LoopGuardSection
from .trail import Trail

TREES = 1_024
TURNS = 256
"""A turn that calls more agents than that forgets what the first ones did."""
AGENT_CALL = "agent_call"
NAME = "loop_detected"
MARK = "\n\n[loop guard] "
REMEDY = "do something else, or tell the user what you have found"


class Tree:
    """A turn that nobody waits for, and all the turns that it causes.

    Args:
        turn_id: The one it began with.
        limits: When calls of agents are a loop.
    """

    def __init__(self, turn_id: str, limits: LoopGuardSection) -> None:
        self.turn_id = turn_id
        self.trails: OrderedDict[str, Trail] = OrderedDict()
        self.calls = Trail(limits)
        self.hops = 0
        self._most = limits.max_agent_calls

    def hop(self, key: int, now: float) -> str:
        """Take a call from agent to agent; say why not, if it leads in a circle."""
        if self.hops >= self._most:
            return f"{self.hops} calls of other agents came of one message"
        self.hops += 1
        return self.calls.begins(key, AGENT_CALL, now)


class Loops:
    """The guards, and what they know; two daemons have two of them."""

    def __init__(self) -> None:
        self._limits = LoopGuardSection.model_construct()
        self._clock: Clock = SystemClock()
        self._trees: OrderedDict[str, Tree] = OrderedDict()

    def begin(self, host: Host) -> None:
        """Take the daemon's settings and its clock."""
        self._limits = host.settings(LoopGuardSection)
        self._clock = host.clock

    def called(self, case: ToolCallCase) -> Verdict:
        """Refuse a call of a loop; end a turn that goes on all the same."""
        tree, trail = self._of(case.context)
        now = self._clock.monotonic()
        key = call_key(case.tool, case.arguments)
        if running := trail.together(key):
            problem = trail.refuse(key, f"{running} such calls run already")
            return Deny(f"{problem}; one is enough, as they say the same")
        problem = trail.begins(key, case.tool, now)
        if not problem and case.tool == AGENT_CALL:
            problem = tree.hop(_edge(case.context, key), now)
            if problem:
                trail.refuse(key, problem)
        if not problem:
            return ALLOW
        return Deny(f"{NAME}: {problem}; {REMEDY}", LoopDetected)

    def answered(self, case: ToolResultCase) -> Verdict:
        """Note what came of a call, and warn the model of a loop."""
        tree, trail = self._of(case.context)
        key, result = call_key(case.tool, case.arguments), result_key(case.text)
        if trail.ended(key, result):
            return ALLOW
        if case.tool == AGENT_CALL:
            tree.calls.ended(_edge(case.context, key), result)
        warning = trail.warning(case.tool)
        if not warning:
            return ALLOW
        if trail.hopeless:
            return Deny(f"{NAME}: {warning}", LoopDetected)
        return Replace(f"{case.text}{MARK}{warning}")

    def went_on(self, case: HistoryCase) -> Verdict:
        """Take up a turn that was cut off where it stood: it may be in a loop."""
        if case.spoken:
            _, trail = self._of(case.context, anew=True)
            _replay(trail, case.spoken)
        return ALLOW

    def _of(self, context: Context, *, anew: bool = False) -> tuple[Tree, Trail]:
        """Find, or begin, what is known of a turn and of who caused it."""
        chain, turn_id = context.chain, context.turn_id or ""
        root = chain[0] if chain else turn_id
        tree = self._trees.get(root)
        # A session has one turn at a time: another one of the first is a new tree.
        if tree is None or (len(chain) < 2 and tree.turn_id != turn_id):
            tree = self._trees[root] = Tree(turn_id, self._limits_of(context))
            if len(self._trees) > TREES:
                self._trees.popitem(last=False)
        trail = tree.trails.get(turn_id)
        if trail is None or anew:
            trail = tree.trails[turn_id] = Trail(self._limits_of(context))
            if len(tree.trails) > TURNS:
                tree.trails.popitem(last=False)
        return tree, trail

    def _limits_of(self, context: Context) -> LoopGuardSection:
        if context.agent is None:
            return self._limits
        own = LOOPS.of(context.agent.manifest)
        said = {name: getattr(own, name) for name in own.model_fields_set}
        return self._limits.model_copy(update=said) if said else self._limits


def _edge(context: Context, key: int) -> int:
    return hash((context.agent.id if context.agent else "", key))


def _replay(trail: Trail, spoken: Sequence[Message]) -> None:
    uses = {use.id: use for message in spoken for use in message.tool_uses}
    outputs = (part for m in spoken for part in m.parts if isinstance(part, ToolOutput))
    for output in outputs:
        use = uses.get(output.id)
        if use is None:
            continue
        if f" {NAME}: " in output.text[: len(use.name) + 40]:
            continue
        text = output.text.partition(MARK)[0]
        trail.ended(call_key(use.name, use.arguments), result_key(text))
