"""The metrics of OpenTelemetry's GenAI conventions, of each model call.

Source: semantic-conventions-genai, docs/gen-ai/gen-ai-metrics.md; the bounds of the
buckets are those it asks for.
"""

from __future__ import annotations

from agenthost import Activity, ChatRequest, Observer, __version__
from opentelemetry.sdk.metrics import MeterProvider

from .attributes import OPERATION, Value, provider, server
from .endings import OK, STOPPED, first_chunk, type_of, word_of
from .listing import OTHERS, Listing, Model
from .outward import Outward

SECONDS = tuple(0.01 * 2**n for n in range(14))
TOKENS = tuple(float(4**n) for n in range(14))
FIRST_SECONDS = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25),
    *(0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0),
)


class Measuring(Observer):
    """Measures model calls for one daemon; the SDK keeps and sends what it is told."""

    def __init__(self, sending: MeterProvider, outward: Outward | None = None) -> None:
        self.outward = outward
        self._sending = sending
        self._listing = Listing()
        meter = sending.get_meter("agenthost", __version__)
        self._duration = meter.create_histogram(
            "gen_ai.client.operation.duration",
            unit="s",
            description="GenAI operation duration.",
            explicit_bucket_boundaries_advisory=SECONDS,
        )
        self._first = meter.create_histogram(
            "gen_ai.client.operation.time_to_first_chunk",
            unit="s",
            description="Time to receive the first chunk.",
            explicit_bucket_boundaries_advisory=FIRST_SECONDS,
        )
        self._tokens = meter.create_histogram(
            "gen_ai.client.token.usage",
            unit="{token}",
            description="Number of input and output tokens used.",
            explicit_bucket_boundaries_advisory=TOKENS,
        )

    def ended(self, activity: Activity) -> None:
        """Measure a model call."""
        if not isinstance(activity.subject, ChatRequest):
            return
        about = self._about(activity)
        self._tell_tokens(activity, about)
        if (seconds := first_chunk(activity)) is not None:
            self._first.record(seconds, about)
        if word_of(activity) not in {OK, STOPPED}:
            about = {**about, "error.type": type_of(activity.error)}
        self._duration.record(activity.seconds, about)

    def close(self) -> None:
        """Send what waits; blocks."""
        self._sending.shutdown()

    def _tell_tokens(self, activity: Activity, about: dict[str, Value]) -> None:
        if activity.spent is None:
            return
        usage = activity.spent.usage
        for kind, tokens in (
            ("input", usage.input_tokens),
            ("output", usage.output_tokens),
        ):
            self._tokens.record(tokens, {**about, "gen_ai.token.type": kind})

    def _about(self, activity: Activity) -> dict[str, Value]:
        asked = activity.target.names if activity.target else OTHERS
        slug, model = self._listing.listed(asked)
        about: dict[str, Value] = {
            OPERATION: "chat",
            "gen_ai.provider.name": provider(slug),
            "gen_ai.request.model": model,
        }
        about.update((name, of) for name, of in server(activity) if of is not None)
        if activity.spent is not None:
            answered: Model = (activity.spent.provider, activity.spent.model)
            about["gen_ai.response.model"] = self._listing.listed(answered)[1]
        return about
