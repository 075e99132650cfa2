"""Documents made for tests: the least that each kind of reader takes for one."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from xml.sax.saxutils import escape

W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
S = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
A = "http://schemas.openxmlformats.org/drawingml/2006/main"


def archive(files: Mapping[str, str | bytes]) -> bytes:
    """Pack files."""
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, data in files.items():
            packed.writestr(name, data)
    return whole.getvalue()


def docx(*paragraphs: str) -> bytes:
    """A text."""
    said = "".join(f"<w:p><w:r><w:t>{escape(p)}</w:t></w:r></w:p>" for p in paragraphs)
    body = f'<w:document xmlns:w="{W}"><w:body>{said}</w:body></w:document>'
    return archive({"[Content_Types].xml": "", "word/document.xml": body})


def pptx(*slides: str) -> bytes:
    """Slides."""
    slide = f'<p xmlns:a="{A}"><a:p><a:t>{{}}</a:t></a:p></p>'
    return archive(
        {
            f"ppt/slides/slide{number}.xml": slide.format(escape(text))
            for number, text in enumerate(slides, 1)
        }
    )


def xlsx() -> bytes:
    """A sheet with a word that is shared and a number."""
    shared = f'<sst xmlns="{S}"><si><t>bees</t></si><si><t>wasps</t></si></sst>'
    cells = '<c t="s"><v>1</v></c><c><v>42</v></c><c t="s"><v>77</v></c>'
    sheet = f'<worksheet xmlns="{S}"><row>{cells}</row></worksheet>'
    files = {"xl/sharedStrings.xml": shared, "xl/worksheets/sheet1.xml": sheet}
    return archive(files)


def pdf(*pages: str) -> bytes:
    """Pages with a line each."""
    from pypdf import PdfWriter
    from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

    writer = PdfWriter()
    font = DictionaryObject(
        {
            NameObject("/Type"): NameObject("/Font"),
            NameObject("/Subtype"): NameObject("/Type1"),
            NameObject("/BaseFont"): NameObject("/Helvetica"),
        }
    )
    for text in pages:
        page = writer.add_blank_page(200, 200)
        fonts = DictionaryObject({NameObject("/F1"): font})
        named = DictionaryObject({NameObject("/Font"): fonts})
        page[NameObject("/Resources")] = named
        stream = DecodedStreamObject()
        stream.set_data(f"BT /F1 12 Tf 10 100 Td ({text}) Tj ET".encode())
        page[NameObject("/Contents")] = stream
    whole = io.BytesIO()
    writer.write(whole)
    return whole.getvalue()
