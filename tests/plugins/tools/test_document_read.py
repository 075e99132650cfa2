"""Documents of the workspace: words of each kind, and what is refused."""

from __future__ import annotations

import zipfile
from xml.parsers.expat import ExpatError

import pytest
from agenthost import AgentHostError, InvalidInput, TooLarge, ToolContext, Unreadable
from agenthost_tools.document_read import LARGEST, DocumentRead, document_read
from agenthost_tools.documents import office

from .conftest import AGENT_ID
from .office_files import archive, docx, pdf, pptx, xlsx

ALL = {"first": 1, "last": 20, "limit": 90_000}
BOMB = (
    '<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]>'
    "<w:p xmlns:w='w'><w:t>&b;</w:t></w:p>"
)


def test_a_text_is_its_paragraphs() -> None:
    found = office.text_of(docx("one & two", "three"), **ALL)
    assert found == "one & two\nthree"
    cut = office.text_of(docx("x" * 200), first=1, last=1, limit=10)
    assert cut.startswith("x" * 10 + "\n[cut after 10")


def test_slides_come_in_their_order_and_as_many_as_asked() -> None:
    slides = pptx(*(f"slide {number}" for number in range(1, 13)))
    found = office.text_of(slides, first=9, last=11, limit=1_000)
    assert found.splitlines()[::3] == ["[9 of 12]", "[10 of 12]", "[11 of 12]"]
    assert "slide 10" in found
    assert "slide 12" not in found
    assert office.text_of(slides, first=90, last=99, limit=1_000) == ""


def test_cells_are_words_and_numbers_and_a_wrong_number_is_nothing() -> None:
    assert office.text_of(xlsx(), **ALL) == "[1 of 1]\nwasps\t42"


def test_what_holds_more_than_it_weighs_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(office, "LARGEST_PART", 1_000)
    with pytest.raises(ValueError, match="more than it weighs"):
        office.text_of(archive({"word/document.xml": b" " * 5_000}), **ALL)
    with pytest.raises(ValueError, match="too large"):
        office.text_of(archive({"word/document.xml": b" " * 2_000}), **ALL)
    monkeypatch.setattr(office, "MOST_FILES", 2)
    with pytest.raises(ValueError, match="too many"):
        office.text_of(archive({str(n): "" for n in range(3)}), **ALL)


@pytest.mark.parametrize(
    "document",
    [
        archive({"word/document.xml": BOMB}),
        archive({"word/document.xml": "<w:p"}),
        archive({"other": "x"}),
        docx("cut")[:40],
        b"PK\x03\x04",
    ],
    # Their bytes have the time in them: workers would collect different tests.
    ids=["bomb", "broken", "other", "cut", "head"],
)
def test_what_is_broken_or_has_a_document_type_is_refused(document: bytes) -> None:
    with pytest.raises((ValueError, zipfile.BadZipFile, ExpatError)):
        office.text_of(document, **ALL)


def written(context: ToolContext, name: str, data: bytes) -> DocumentRead:
    context.host.files.workspace(AGENT_ID).write(name, data)
    return DocumentRead(path=name)


@pytest.mark.conformance
async def test_documents_are_read_in_a_worker_and_marked(context: ToolContext) -> None:
    pytest.importorskip("pypdf")
    call = written(context, "a.pdf", pdf("first page", "second page", "third"))
    told = await document_read(context, call.model_copy(update={"first_page": 2}))
    assert "[page 2 of 3]" in told.text
    assert "second page" in told.text
    assert "first page" not in told.text
    assert told.text.count("untrusted ") == 2
    told = await document_read(context, written(context, "b.docx", docx("hello")))
    assert "hello" in told.text


@pytest.mark.conformance
async def test_hostile_documents_end_in_an_error(context: ToolContext) -> None:
    pytest.importorskip("pypdf")
    hostile = {
        "cut.pdf": pdf("one")[:200],
        "words.pdf": b"%PDF-1.7\n" + b"<<" * 100_000,
        "bomb.docx": archive({"word/document.xml": b" " * 70_000_000}),
        "entities.docx": archive({"word/document.xml": BOMB}),
        "deep.docx": archive({"word/document.xml": b"<a>" * 3_000_000}),
    }
    for name, data in hostile.items():
        call = written(context, name, data)
        with pytest.raises(AgentHostError) as caught:
            await document_read(context, call)
        assert isinstance(caught.value, Unreadable), name
    with pytest.raises(InvalidInput, match="is no PDF"):
        await document_read(context, written(context, "text.pdf", b"words"))
    with pytest.raises(TooLarge):
        await document_read(context, written(context, "big.pdf", b" " * (LARGEST + 1)))
