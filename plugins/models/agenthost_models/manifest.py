"""What budgets read of an agent's manifest."""

from __future__ import annotations

from agenthost import ManifestTable
from agenthost_toml.types import Count, Table
from pydantic import Field

from .types import Money


class Spending(Table):
    """What an agent may spend on models; 0 is unlimited."""

    max_llm_tokens_per_hour: Count = Field(
        0,
        description="Tokens within an hour; 0 is "
        "`budget.default_max_llm_tokens_per_hour`.",
    )
    max_cost_per_hour_usd: Money = Field(
        0.0, description="US dollars within an hour; 0 is unlimited."
    )
    max_cost_per_day_usd: Money = Field(
        0.0, description="US dollars within 24 hours; 0 is unlimited."
    )
    max_cost_per_month_usd: Money = Field(
        0.0, description="US dollars within 30 days; 0 is unlimited."
    )


SPENDING = ManifestTable("resources", Spending)
