"""Web pages that ask a reader for far more than they weigh, by family."""

from __future__ import annotations

from collections.abc import Mapping

PAGES: Mapping[str, bytes] = {
    "blanks": b"a" + b" " * 490_000 + b"b",
    "blanks and newlines": b"a" + b" \n" * 240_000 + b"b",
    "hard blanks": b"a" + "\u00a0".encode() * 240_000 + b"b",
    "blanks in pre": b"<pre>" + b" \n" * 240_000 + b"</pre>",
    "newlines between tags": b"<p>a</p>" + (b"\n" * 9_000 + b"<b> </b>") * 50,
    "divs in divs": b"<div>" * 80_000 + b"words",
    "a million divs": b"<div>" * 1_500_000 + b"words",
    "divs, closed, many times": (b"<div>" * 490 + b"word " * 900 + b"</div>" * 490)
    * 45,
    "quotes in quotes": b"<blockquote>" * 40_000 + b"words",
    "quotes, closed": (b"<blockquote>" * 400 + b"x\n" + b"</blockquote>" * 400) * 40,
    "lists in lists": b"<ul><li>" * 60_000 + b"words",
    "lists, closed": (b"<ol><li>x" * 300 + b"</ol>" * 300) * 60,
    "tables in tables": b"<table><tr><td>" * 30_000 + b"words",
    "tables, 480 deep": (b"<table><tr><td>" * 480 + b"</table>" * 480) * 20,
    "a wide table": b"<table><tr>" + b"<td colspan=999>x" * 25_000,
    "attributes": b"<a " + b"x " * 240_000 + b">words</a>",
    "one long attribute": b"<a href='" + b"a(" * 240_000 + b"'>words</a>",
    "references": b"&amp;&lt;&copy;" * 30_000,
    "a number without end": b"&#" + b"9" * 480_000 + b";words",
    "unclosed formatting": b"<b><i><u>" * 50_000 + b"words",
    "misnested formatting": b"<a><b><p></a></b>" * 25_000 + b"words",
    "open brackets": b"<" * 2_000_000 + b"words",
    "comments that do not end": b"<!-- " * 400_000 + b"words",
    "headings in headings": b"<h1>" * 100_000 + b"words",
}
"""24 pages of 100 KB to 7.5 MB."""

ENDLESS = PAGES["divs, closed, many times"]
"""It is shallow enough to be tried, and takes many seconds."""

TOO_LARGE = b"<p>words" * 1_200_000
"""Its tree does not fit into the memory of a worker."""

SLOW_CHARSET = b"-" + b"a" * 600_000
"""In the character set ``punycode``, which inserts each letter into the text so far."""
