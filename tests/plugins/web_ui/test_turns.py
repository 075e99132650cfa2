"""A turn belongs to its session: pages come, leave, watch together and try again."""

from __future__ import annotations

import pytest

from .conftest import Watched
from .fake_turns import FakeAgent

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from playwright.sync_api import Locator, Page, expect

pytestmark = [pytest.mark.browser, pytest.mark.conformance]
INTERRUPTED = "This answer was interrupted."
USAGE = "1,204 in · 86 out · $0.00312"


def answer(page: Page) -> Locator:
    return page.get_by_label("Agent", exact=True)


def agent_of(chat: Watched) -> FakeAgent:
    return next(iter(chat.daemon.agents.values()))


def attached(chat: Watched) -> list[int]:
    """The offsets from which pages asked for a turn."""
    return [f["offset"] for f in chat.daemon.heard if f["type"] == "attach"]


def another_tab(chat: Watched) -> Page:
    tab = chat.page.context.new_page()
    tab.goto(chat.page.url)
    tab.get_by_placeholder("Message ").fill("a draft is sent only over an open line")
    expect(tab.get_by_role("button", name="Send")).to_be_enabled()
    return tab


def test_an_answer_goes_on_while_another_agent_is_looked_at(chat: Watched) -> None:
    chat.daemon.spawn('name = "other"')
    page = chat.open()
    chat.say("stepwise")
    expect(answer(page)).to_have_text("first half")
    page.get_by_role("button", name="other").click()
    expect(page.get_by_role("heading", name="Talk to other")).to_be_visible()
    page.get_by_role("navigation").get_by_role("button", name="assistant").click()
    expect(answer(page)).to_have_text("first half")
    chat.daemon.from_test(agent_of(chat).signals.go_on.set)
    expect(answer(page)).to_contain_text("first half, second half")
    expect(page.get_by_text("1,290 tokens")).to_be_visible()
    expect(page.get_by_label("You")).to_have_count(1)


def test_a_reload_joins_the_running_answer(chat: Watched) -> None:
    chat.say("stepwise")
    expect(answer(chat.page)).to_have_text("first half")
    chat.page.reload()
    expect(answer(chat.page)).to_have_text("first half")
    expect(chat.page.get_by_role("button", name="Stop")).to_be_visible()
    chat.daemon.from_test(agent_of(chat).signals.go_on.set)
    expect(answer(chat.page)).to_contain_text("first half, second half")
    expect(chat.page.get_by_role("button", name="Send")).to_be_visible()


def test_a_broken_line_goes_on_where_it_broke(chat: Watched) -> None:
    chat.say("stepwise")
    expect(answer(chat.page)).to_have_text("first half")
    # Down, or the line is back by itself before the banner was looked for.
    chat.daemon.down = True
    chat.daemon.from_test(chat.daemon.hang_up)
    banner = chat.page.get_by_role("alert").filter(has_text="Offline")
    expect(banner).to_be_visible()
    expect(answer(chat.page)).to_have_text("first half")
    chat.daemon.down = False
    expect(banner).to_be_hidden()
    expect(chat.page.get_by_role("button", name="Stop")).to_be_visible()
    chat.daemon.from_test(agent_of(chat).signals.go_on.set)
    expect(answer(chat.page)).to_contain_text("first half, second half")
    expect(chat.page.get_by_label("You")).to_have_count(1)
    assert attached(chat) == [len("first half")]
    chat.forgive("503", "WebSocket")


def test_what_was_missed_is_there_at_the_end(chat: Watched) -> None:
    chat.say("stepwise")
    expect(answer(chat.page)).to_have_text("first half")
    (turn,) = agent_of(chat).turns
    call = {"tool": "calculate", "id": "c1"}

    def miss() -> None:
        turn.publish({"type": "tool_start", **call, "input": {}})
        watchers, turn.watchers = turn.watchers, {}
        turn.publish({"type": "tool_end", **call, "result": "42"})
        turn.publish({"type": "text_delta", "content": " 🦊 lost"})
        turn.watchers = watchers
        for outbox in watchers:
            outbox.put_nowait({"type": "missed", "events": 2, "turn_id": turn.id})

    chat.daemon.from_test(miss)
    expect(chat.page.locator("summary")).to_contain_text("running")
    chat.daemon.from_test(agent_of(chat).signals.go_on.set)
    expect(answer(chat.page)).to_contain_text("first half 🦊 lost, second half")
    expect(chat.page.locator("summary")).to_contain_text("done")


def test_a_frame_of_a_kind_yet_unknown_is_passed_over(chat: Watched) -> None:
    def start() -> None:
        turn = agent_of(chat).start("go")
        for outbox in agent_of(chat).followers:
            outbox.put_nowait({"type": "novelty", "turn_id": turn.id})

    chat.daemon.from_test(start)
    expect(answer(chat.page)).to_contain_text("You said: go")


def test_a_turn_that_cannot_be_joined_says_so(chat: Watched) -> None:
    agent = agent_of(chat)
    ghost = agent.past("go", "", "running")
    agent.hidden.add(ghost.id)
    page = chat.open()
    expect(answer(page)).to_contain_text("no such turn")
    expect(page.get_by_role("button", name="Send")).to_be_visible()


def test_a_second_tab_sees_what_the_first_one_does(chat: Watched) -> None:
    tab = another_tab(chat)
    chat.say("stepwise")
    expect(tab.get_by_label("You")).to_have_text("stepwise")
    expect(answer(tab)).to_have_text("first half")
    chat.daemon.from_test(agent_of(chat).signals.go_on.set)
    for page in (chat.page, tab):
        expect(answer(page)).to_contain_text("first half, second half")
        expect(page.get_by_label("You")).to_have_count(1)
        expect(page.get_by_role("button", name="Send")).to_be_visible()


def test_a_turn_of_the_api_appears_even_before_it_is_stored(chat: Watched) -> None:
    agent = agent_of(chat)
    chat.page.get_by_role("button", name="What can you do?").wait_for()

    def start() -> None:
        agent.start("stepwise by the API").stored = False

    def finish() -> None:
        agent.turns[0].stored = True
        agent.signals.go_on.set()

    chat.daemon.from_test(start)
    expect(answer(chat.page)).to_have_text("first half")
    chat.daemon.from_test(finish)
    expect(answer(chat.page)).to_contain_text("second half")
    expect(chat.page.get_by_role("article")).to_have_count(2)
    expect(chat.page.get_by_role("article").first).to_have_text("stepwise by the API")


def test_a_stop_elsewhere_is_seen_here(chat: Watched) -> None:
    chat.say("endless")
    expect(answer(chat.page)).to_have_text("counting one two")
    chat.daemon.from_test(agent_of(chat).signals.stop.set)
    expect(answer(chat.page)).to_contain_text("counting one two")
    expect(chat.page.get_by_text("Stopped.")).to_be_visible()
    expect(chat.page.get_by_role("button", name="Send")).to_be_visible()
    expect(chat.page.get_by_role("button", name="Try again")).to_have_count(0)


@pytest.mark.parametrize("reloaded", [False, True], ids=["live", "reloaded"])
def test_a_failed_turn_says_why_and_can_be_tried_again(
    chat: Watched, reloaded: bool
) -> None:
    chat.say("fail once")
    reason = chat.page.get_by_text("openai: the model is overloaded")
    expect(reason).to_be_visible()
    if reloaded:
        chat.page.reload()
        expect(reason).to_be_visible()
    chat.page.get_by_role("button", name="Try again").click()
    expect(answer(chat.page)).to_contain_text("You said: fail once")
    expect(reason).to_have_count(0)
    expect(chat.page.get_by_label("You")).to_have_count(1)
    expect(chat.page.get_by_role("button", name="Try again")).to_have_count(0)


@pytest.mark.parametrize("reloaded", [False, True], ids=["live", "reloaded"])
def test_an_interrupted_turn_keeps_its_words_and_can_be_tried_again(
    chat: Watched, reloaded: bool
) -> None:
    chat.say("break off")
    if reloaded:
        expect(chat.page.get_by_text(INTERRUPTED)).to_be_visible()
        chat.page.reload()
    expect(answer(chat.page)).to_contain_text(f"half a word {INTERRUPTED}")
    chat.page.get_by_role("button", name="Try again").click()
    expect(answer(chat.page)).to_contain_text("You said: break off")
    expect(chat.page.get_by_text("half a word")).to_have_count(0)


def test_a_refused_second_try_keeps_the_words_of_the_first(chat: Watched) -> None:
    agent_of(chat).past("go", "half a word", "interrupted")
    page = chat.open()
    expect(page.get_by_text("half a word")).to_be_visible()
    agent_of(chat).refusal = "the agent is suspended"
    page.get_by_role("button", name="Try again").click()
    expect(answer(page)).to_contain_text("half a word the agent is suspended")
    expect(page.get_by_role("button", name="Try again")).to_be_enabled()


def test_a_second_try_is_seen_by_another_tab(chat: Watched) -> None:
    chat.say("fail once")
    tab = another_tab(chat)
    expect(tab.get_by_text("the model is overloaded")).to_be_visible()
    chat.page.get_by_role("button", name="Try again").click()
    expect(answer(tab)).to_contain_text("You said: fail once")
    expect(tab.get_by_text("the model is overloaded")).to_have_count(0)


def test_a_stopped_turn_says_so_after_a_reload(chat: Watched) -> None:
    agent_of(chat).past("count", "one two", "stopped")
    page = chat.open()
    expect(answer(page)).to_have_text("one two Stopped.")
    expect(page.get_by_role("button", name="Try again")).to_have_count(0)


def test_an_old_answer_still_tells_its_cost_model_and_time(chat: Watched) -> None:
    chat.say("hello")
    expect(answer(chat.page)).to_contain_text("You said: hello")
    chat.page.reload()
    usage = chat.page.get_by_text(USAGE)
    expect(usage).to_be_visible()
    expect(usage).to_have_attribute("title", "offline/offline-1 · 2 Jan 2026, 03:04")


def test_a_remark_stays_in_its_place_when_somebody_else_speaks(chat: Watched) -> None:
    chat.say("hello")
    expect(answer(chat.page)).to_contain_text("You said: hello")
    chat.say("/usage")
    expect(chat.page.get_by_text("Done: /usage")).to_be_visible()
    chat.daemon.from_test(lambda: agent_of(chat).start("from elsewhere"))
    expect(answer(chat.page).last).to_contain_text("You said: from elsewhere")
    said = chat.page.get_by_role("log").get_by_label("You")
    expect(said).to_have_text(["hello", "/usage", "from elsewhere"])
    expect(chat.page.get_by_text("Done: /usage")).to_have_count(1)


def test_a_person_who_reads_is_left_alone_when_others_speak(chat: Watched) -> None:
    agent_of(chat).past("first", "line\n\n" * 100)
    page = chat.open()
    expect(page.get_by_label("You")).to_have_count(1)
    page.locator(".scroll").hover()
    page.mouse.wheel(0, -100_000)
    expect(page.get_by_role("button", name="Go to the latest")).to_be_visible()
    chat.daemon.from_test(lambda: agent_of(chat).start("from elsewhere"))
    expect(page.get_by_text("You said: from elsewhere")).to_be_attached()
    expect(page.get_by_text("first", exact=True)).to_be_in_viewport()


def test_thoughts_are_folded_and_a_cut_answer_is_marked(chat: Watched) -> None:
    chat.say("ponder")
    thought = answer(chat.page).get_by_role("group")
    expect(thought).to_contain_text("They ask for <b>a sum</b>.")
    expect(thought).not_to_have_attribute("open", "")
    mark = answer(chat.page).get_by_text("Cut off at the length limit.")
    expect(mark).to_be_visible()
    sent = [f for f in chat.daemon.heard if f["type"] == "message"]
    assert [frame["thinking"] for frame in sent] == [True]
    chat.page.reload()
    expect(mark).to_be_visible()
