"""The markups of chat services: what opens, what closes, what must be escaped.

Sources: https://core.telegram.org/bots/api#html-style,
https://docs.slack.dev/messaging/formatting-message-text,
https://support.discord.com/hc/en-us/articles/210298617,
https://spec.matrix.org/latest/client-server-api/#mroommessage-msgtypes,
https://xmpp.org/extensions/xep-0393.html, https://modern.ircdocs.horse/formatting,
https://spec.commonmark.org.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import escape as html_escape

from .pieces import PRE, Mark, Spot

# What nobody sees, and what keeps a sign from being markup where none can be escaped.
APART = "\u2060"
ADDRESS = re.compile(r"https?://[^\s<>*`|~\[\]()\\]+")
# Controls are IRC's markup, and they and half signs are no XML; none can be seen.
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff\ufffe\uffff]")

Escape = Callable[[str, Spot], str]


def _plain(text: str, spot: Spot) -> str:  # noqa: ARG001
    return CONTROLS.sub("", text)


def _html(text: str, spot: Spot) -> str:
    return html_escape(_plain(text, spot))


def _backslashed(text: str, spot: Spot) -> str:
    text = _plain(text, spot)
    if spot is Spot.CODE or ADDRESS.fullmatch(text):
        return text
    text = re.sub(r"([\\`*_~|<>\[\]&])", r"\\\1", text)
    if spot is Spot.START:
        text = re.sub(r"^([-+#=])|^(\d+)([.)])", _numbered, text)
    return text


def _numbered(found: re.Match[str]) -> str:
    return f"\\{found[1]}" if found[1] else f"{found[2]}\\{found[3]}"


def _commonmark(text: str, spot: Spot) -> str:
    text = _backslashed(text, spot)
    # An address is not escaped, and what looks like an entity in it must be.
    return text if spot is Spot.CODE or "\\" in text else text.replace("&", "&amp;")


def _styled(text: str, spot: Spot) -> str:
    """Escape for markups that have no escape: a sign before keeps them apart."""
    text = _plain(text, spot)
    if spot is Spot.CODE:
        return text
    text = re.sub(r"(?<!\w)([*_~`]+)", rf"{APART}\1", text)
    return APART + text if spot is Spot.START and text.startswith(">") else text


def _slack(text: str, spot: Spot) -> str:
    text = _styled(text, spot)
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _slack_address(address: str) -> str:
    return html_escape(address, quote=False).replace("|", "%7C")


def _in_angles(address: str) -> str:
    return address.replace("<", "%3C").replace(">", "%3E").replace("\\", "%5C")


def _fenced(mark: Mark) -> str:
    return f"{mark.fence}{mark.detail}\n"


@dataclass(frozen=True, slots=True)
class Dialect:
    """A markup.

    Args:
        marks: What opens and closes each kind of mark; what is not there is not shown.
            ``{}`` stands for the address of a link and the language of a code block.
        escape: Makes a text mean itself; told where it stands.
        quote: What stands before each line of a quote, where no mark does it.
        bullet: What stands before an item of a list.
        address: Makes an address fit into the mark of a link.
        any_fence: Whether a fence may be longer than what it holds, so that code with
            back-ticks can be shown.
        line_break: What ends a line outside code blocks.
        languages: Whether a code block may name its language.
    """

    marks: Mapping[str, tuple[str, str]]
    escape: Escape
    quote: str = "> "
    bullet: str = "\u2022 "
    address: Callable[[str], str] = html_escape
    any_fence: bool = False
    line_break: str = "\n"
    languages: bool = True

    def open(self, mark: Mark) -> str:
        """Write what begins a mark."""
        if mark.kind in {PRE, "code"} and self.marks[mark.kind][0] == "":
            return _fenced(mark) if mark.kind == PRE else mark.fence
        start = self.marks[mark.kind][0]
        if mark.kind == PRE and not mark.detail:
            return re.sub(r' class="[^"]*"', "", start)
        return start.replace("{}", self._detail(mark))

    def close(self, mark: Mark) -> str:
        """Write what ends a mark."""
        if mark.kind in {PRE, "code"} and self.marks[mark.kind][1] == "":
            return f"\n{mark.fence}" if mark.kind == PRE else mark.fence[::-1]
        return self.marks[mark.kind][1].replace("{}", self._detail(mark))

    def _detail(self, mark: Mark) -> str:
        return self.address(mark.detail) if mark.kind == "link" else mark.detail


_CODE = {"code": ("", ""), PRE: ("", "")}
_HTML_PRE = ('<pre><code class="language-{}">', "</code></pre>")

DIALECTS: Mapping[str, Dialect] = {
    "plain": Dialect({}, _plain),
    "telegram_html": Dialect(
        {
            "bold": ("<b>", "</b>"),
            "italic": ("<i>", "</i>"),
            "strike": ("<s>", "</s>"),
            "code": ("<code>", "</code>"),
            PRE: _HTML_PRE,
            "quote": ("<blockquote>", "</blockquote>"),
            "link": ('<a href="{}">', "</a>"),
        },
        _html,
        quote="",
    ),
    "html": Dialect(
        {
            "bold": ("<strong>", "</strong>"),
            "italic": ("<em>", "</em>"),
            "strike": ("<del>", "</del>"),
            "code": ("<code>", "</code>"),
            PRE: _HTML_PRE,
            "quote": ("<blockquote>", "</blockquote>"),
            "link": ('<a href="{}">', "</a>"),
        },
        _html,
        quote="",
        line_break="<br/>",
    ),
    "discord": Dialect(
        {
            "bold": ("**", "**"),
            "italic": ("*", "*"),
            "strike": ("~~", "~~"),
            "link": ("[", "](<{}>)"),
            **_CODE,
        },
        _backslashed,
        address=_in_angles,
    ),
    "commonmark": Dialect(
        {
            "bold": ("**", "**"),
            "italic": ("*", "*"),
            "strike": ("~~", "~~"),
            "link": ("[", "](<{}>)"),
            **_CODE,
        },
        _commonmark,
        bullet="- ",
        address=_in_angles,
        any_fence=True,
    ),
    "slack_mrkdwn": Dialect(
        {
            "bold": ("*", "*"),
            "italic": ("_", "_"),
            "strike": ("~", "~"),
            "link": ("<{}|", ">"),
            **_CODE,
        },
        _slack,
        address=_slack_address,
        languages=False,
    ),
    "xmpp": Dialect(
        {"bold": ("*", "*"), "italic": ("_", "_"), "strike": ("~", "~"), **_CODE},
        _styled,
    ),
    "irc": Dialect(
        {
            "bold": ("\x02", "\x02"),
            "italic": ("\x1d", "\x1d"),
            "strike": ("\x1e", "\x1e"),
            "code": ("\x11", "\x11"),
        },
        _plain,
    ),
}
