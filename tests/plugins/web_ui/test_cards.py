"""Cards: what plugins show on the page, drawn as data."""

from __future__ import annotations

import pytest
from agenthost import Answer, Call, Card, RouteGroup
from agenthost.testing import Daemons

from tests.kernel.plugins.entries import module

from .conftest import Watched

STOCK = {
    "text": "Counted this morning.",
    "rows": [
        {"label": "Paper", "value": "3 boxes"},
        {"label": "Staples", "value": 4000},
    ],
    "links": [{"label": "Order more", "url": "https://shop.example/order"}],
}
HOSTILE = {
    "text": "<img src=x onerror='window.pwned = 1'>",
    "rows": [{"label": "<b>a</b>", "value": {"deep": 1}}, None, "text", 5],
    "links": [
        {"label": "run", "url": "javascript:window.pwned = 1"},
        {"label": "data", "url": "data:text/html,x"},
        {"label": "", "url": "https://a.example"},
        {"label": "plain", "url": 5},
        {"label": "own", "url": "/static/icon.svg"},
    ],
}


async def test_register_card_lists_the_cards_by_title(daemons: Daemons) -> None:
    routes = RouteGroup("stock")

    @routes.get("/api/stock/card", scope="system:read")
    async def stock(call: Call) -> Answer:
        return STOCK

    plugin = module(
        register_routes=lambda: [routes],
        register_card=lambda: [
            Card("weather", "Weather", "/api/weather/card"),
            Card("stock", "Stock", "/api/stock/card"),
        ],
    )
    running = await daemons.start(plugins=[plugin])
    listed = (await running.http.get("/api/cards")).json()["cards"]
    assert listed == [
        {"name": "stock", "title": "Stock", "path": "/api/stock/card"},
        {"name": "weather", "title": "Weather", "path": "/api/weather/card"},
    ]
    assert (await running.http.get(listed[0]["path"])).json() == STOCK
    running.daemon.plugins.fail("plugin:made_on_the_spot", "broke")
    assert (await running.http.get("/api/cards")).json() == {"cards": []}


async def test_the_list_of_cards_needs_the_key(daemons: Daemons) -> None:
    running = await daemons.start(config='api_key = "secret"\n')
    assert (await running.http.get("/api/cards")).status_code == 401


@pytest.mark.parametrize(
    "path",
    [
        "//evil.example/x",
        "https://evil.example/x",
        "api/x",
        "/\\evil.example",
        "/a?b=c",
        "",
        "/",
        "/a/",
        "/a/<id>",
        "/%2e",
    ],
)
async def test_a_card_that_would_take_the_key_elsewhere_fails_its_plugin(
    daemons: Daemons, path: str
) -> None:
    plugin = module(register_card=lambda: [Card("x", "X", path)])
    running = await daemons.start(plugins=[plugin])
    assert (await running.http.get("/api/cards")).json() == {"cards": []}
    states = {s.key: s for s in running.daemon.plugins.states()}
    reason = states["plugin:made_on_the_spot"].reason
    assert reason == "card 'x': its path must be a plain one, as /api/stock"


@pytest.mark.conformance
@pytest.mark.browser
def test_without_cards_nothing_is_offered(chat: Watched) -> None:
    button = chat.page.get_by_role("button", name="Cards")
    assert button.count() == 0


@pytest.mark.browser
def test_a_card_shows_text_rows_and_links(watched: Watched) -> None:
    watched.daemon.cards["stock"] = STOCK
    page = watched.open()
    page.get_by_role("button", name="Cards").click()
    card = page.get_by_role("region", name="Stock")
    card.get_by_text("Counted this morning.").wait_for()
    assert card.get_by_role("term").all_inner_texts() == ["Paper", "Staples"]
    assert card.get_by_role("definition").all_inner_texts() == ["3 boxes", "4000"]
    link = card.get_by_role("link", name="Order more")
    assert link.get_attribute("href") == "https://shop.example/order"
    assert link.get_attribute("rel") == "noopener noreferrer"
    page.get_by_role("button", name="Close").click()
    assert page.get_by_role("dialog").count() == 0


@pytest.mark.browser
def test_a_hostile_card_stays_inert(watched: Watched) -> None:
    watched.daemon.cards["hostile"] = HOSTILE
    watched.daemon.cards["lost"] = "no object"
    page = watched.open()
    page.get_by_role("button", name="Cards").click()
    card = page.get_by_role("region", name="Hostile")
    card.get_by_text("<img src=x").wait_for()
    assert card.get_by_role("term").all_inner_texts() == ["<b>a</b>"]
    assert card.get_by_role("link").all_inner_texts() == ["own"]
    assert card.locator("img, b, script, iframe").count() == 0
    assert page.evaluate("() => window.pwned") is None
    page.get_by_role("region", name="Lost").wait_for()


@pytest.mark.conformance
@pytest.mark.browser
def test_a_card_that_cannot_be_read_says_so(watched: Watched) -> None:
    watched.daemon.cards["stock"] = ({"error": "the shelf is closed"}, 503)
    page = watched.open()
    page.get_by_role("button", name="Cards").click()
    card = page.get_by_role("region", name="Stock")
    card.get_by_text("the shelf is closed").wait_for()
    watched.forgive("503")
