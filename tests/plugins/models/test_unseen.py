"""Media in results reach those who see them; others read their words."""

from __future__ import annotations

from agenthost import ChatRequest, File, Image, Message, Role, Text, ToolOutput
from agenthost_models.unseen import in_words

PICTURE = Image("image/png", "iVBORw0=")
ASKED = Message(Role.USER, (Text("look"), PICTURE))
SEEN = ToolOutput("1", "look", "[image]", media=(PICTURE, File("a", "a/b", "YQ==")))
PLAIN = ToolOutput("2", "look", "words")


def test_words_stay_and_media_of_results_go() -> None:
    request = ChatRequest("m", "", (ASKED, Message(Role.TOOL, (SEEN, PLAIN))))
    asked, told = in_words(request).messages
    assert asked is ASKED
    assert told.parts == (ToolOutput("1", "look", "[image]"), PLAIN)


def test_a_request_without_media_comes_back_as_it_is() -> None:
    request = ChatRequest("m", "", (ASKED, Message(Role.TOOL, (PLAIN,))))
    assert in_words(request) is request
