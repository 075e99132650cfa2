"""Scripted providers that stand behind one router."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Iterable
from dataclasses import dataclass, field
from types import SimpleNamespace

from agenthost import (
    ChatRequest,
    Completion,
    Delta,
    Finish,
    Message,
    ModelCall,
    ModelFacts,
    ProviderError,
    ProviderFacts,
    ProviderFault,
    ProviderSpec,
    Role,
    Text,
    TextChunk,
    Usage,
    hookimpl,
)

USAGE = Usage(10, 5)
ASKED = ChatRequest("", "be brief", (Message(Role.USER, (Text("hello"),)),))


@dataclass(frozen=True)
class Fails:
    """A call that ends with a fault, after these words."""

    fault: ProviderFault
    after: str = ""
    retry_after: float | None = None
    detail: str = "scripted"


@dataclass
class Upstream:
    """A provider that says ``usual`` once its script has run out."""

    slug: str
    script: deque[Fails | str] = field(default_factory=deque)
    usual: Fails | str = "fine"
    usage: Usage = USAGE
    key_required: bool = False
    input_cost: float = 1.0
    output_cost: float = 2.0
    embeddings: tuple[ModelFacts, ...] = ()
    by_key: dict[str, deque[Fails | str]] = field(default_factory=dict)
    keys: list[str | None] = field(default_factory=list)
    requests: list[ChatRequest] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.slug

    @property
    def plugin(self) -> SimpleNamespace:
        @hookimpl
        def register_provider() -> Iterable[ProviderSpec]:
            return [ProviderSpec(self.facts(), self)]

        return SimpleNamespace(__name__=self.slug, register_provider=register_provider)

    def facts(self) -> ProviderFacts:
        model = ModelFacts(
            f"{self.slug}-model",
            self.slug,
            f"{self.slug}-model",
            self.slug,
            input_cost_per_1m=self.input_cost,
            output_cost_per_1m=self.output_cost,
        )
        return ProviderFacts(
            self.slug,
            self.slug,
            "",
            env_var=f"{self.slug.upper()}_KEY",
            key_required=self.key_required,
            models=(model,),
            embeddings=self.embeddings,
        )

    def _scene(self, key: str) -> Fails | str:
        """The next of the key's scenes, the last one again and again; or of all."""
        own = self.by_key.get(key)
        if own:
            return own.popleft() if len(own) > 1 else own[0]
        return self.script.popleft() if self.script else self.usual

    async def stream(self, call: ModelCall) -> AsyncGenerator[Delta, None]:
        self.requests.append(call.request)
        key = call.endpoint.key
        self.keys.append(key.reveal() if key else None)
        scene = self._scene(self.keys[-1] or "")
        words = scene.after if isinstance(scene, Fails) else scene
        if words:
            yield TextChunk(words)
        if isinstance(scene, Fails):
            raise ProviderError(
                scene.fault,
                self.slug,
                scene.detail,
                retry_after=scene.retry_after,
            )
        message = Message(Role.ASSISTANT, (Text(scene),))
        yield Completion(message, Finish.STOP, self.usage)
