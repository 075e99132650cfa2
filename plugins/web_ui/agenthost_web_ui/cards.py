"""The cards that plugins offer to the page."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agenthost import Answer, Call, Card, Host, RouteGroup
from typing_extensions import TypedDict

routes = RouteGroup("web_ui.cards")

# The page sends its key there: no host, no scheme, nothing that could become one.
_PATH = re.compile(r"(/[A-Za-z0-9_.~-]+)+")


class CardItem(TypedDict):
    """A card; ``path`` tells its contents."""

    name: str
    title: str
    path: str


class CardList(TypedDict):
    """``GET /api/cards``."""

    cards: list[CardItem]


@routes.get("/api/cards", scope="system:read", cost=1, answer=CardList)
async def list_cards(call: Call) -> Answer:
    """List the cards of healthy plugins by title."""
    cards = sorted(_shown(call.host), key=lambda card: (card.title, card.name))
    return {
        "cards": [
            {"name": card.name, "title": card.title, "path": card.path}
            for card in cards
        ]
    }


def _shown(host: Host) -> Iterator[Card]:
    for key, card in host.registry.offered(Card):
        if not _PATH.fullmatch(card.path):
            host.plugins.fail(
                key, f"card {card.name!r}: its path must be a plain one, as /api/stock"
            )
        if host.plugins.healthy(key):
            yield card
