"""Text of other people made safe and short enough for one line of Markdown.

Sources, outputs and prose are untrusted: a cell may print a header, a fence, a picture that loads
from somewhere, or characters that turn the line around. Nothing that goes through here can begin
a line, a header, a fence, a link, a picture or an HTML tag of its own.
"""

from __future__ import annotations

import re
from functools import lru_cache

_CONTROL = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ud800-\udfff]"
)
_IMAGE = re.compile(r"!\[([^\]\n]{0,200})\]\([^)\n]{0,2000}\)")
_LINK = re.compile(r"\[([^\]\n]{1,300})\]\([^)\n]{0,2000}\)")
_REFERENCE = re.compile(r"\]\s*(?=[(\[:])")
_TAG = re.compile(r"</?[A-Za-z][^<>\n]{0,500}>|<!--.{0,2000}?-->")
_SPAN = re.compile(r"(?<!`)`([^`\n]{1,200})`(?!`)")
_LEFT_OUT = re.compile(
    r"(?i)^\W*(?:the |all )?(?:rest|remain|other|existing|previous|unchanged|same|omitted|snip"
    r"|no changes|as before)"
)
_LEADING = re.compile(r"^[\W_]+")


def clean(text: str) -> str:
    """Return `text` on one line: without control characters, white space collapsed."""
    if not text.isascii() or not text.isprintable():
        text = _CONTROL.sub(" ", text)
    return " ".join(text.split())


def shorten(text: str, limit: int) -> str:
    """Return `text`, or its beginning with ``…``, at most `limit` characters.

    The cut is before a word where there is one near: half a number would be another number.
    """
    if len(text) <= limit:
        return text
    head = text[: limit - 1]
    if text[limit - 1].isalnum():
        short = re.sub(r"[\w.]*$", "", head)
        head = short if len(short) > limit // 2 else head
    return head.rstrip() + "…"


@lru_cache(maxsize=8000)
def code(text: str, limit: int = 120) -> str:
    """Return `text` as a code span of at most `limit` characters within; empty for nothing."""
    flat = shorten(clean(text).replace("`", "'"), limit)
    return f"`{flat}`" if flat else ""


def spans(texts: tuple[str, ...], most: int, limit: int = 60) -> str:
    """Return the first `most` of `texts` as code spans in a row; ``…`` stands for the rest."""
    shown = ", ".join(span for text in texts[:most] if (span := code(text, limit)))
    return shown + ", …" if len(texts) > most else shown


def words(text: str, limit: int = 240) -> str:
    """Return prose on one line of at most `limit` characters, its own Markdown disarmed.

    Code spans stay; pictures, links and tags leave their text behind.
    """
    text = text[: 8 * limit]
    text = _LINK.sub(r"\1", _IMAGE.sub(r"\1", _TAG.sub(" ", text)))
    text = clean(text).replace("**", "")
    kept: list[str] = []
    at = 0
    for span in _SPAN.finditer(text):
        kept += [_plain(text[at : span.start()]), span.group()]
        at = span.end()
    kept.append(_plain(text[at:]))
    short = shorten("".join(kept), limit)
    return short + "`" if short.count("`") % 2 else short


@lru_cache(maxsize=8000)
def quote(text: str, limit: int = 240) -> str:
    """Return prose as a quotation; empty for nothing."""
    inner = words(text, limit).strip()
    return f'"{inner}"' if inner else ""


def quotes(texts: tuple[str, ...], most: int, limit: int) -> str:
    """Return the first `most` of `texts` as quotations in a row; ``…`` stands for the rest."""
    shown = ", ".join(each for text in texts[:most] if (each := quote(text, limit)))
    return shown + ", …" if len(texts) > most else shown


def plain(text: str, limit: int = 60) -> str:
    """Return a word or two that stand in a line by themselves: a type, a shape, a version."""
    return shorten(_plain(clean(text)), limit)


def title(text: str) -> str:
    """Return prose as a line that stands alone, with nothing before its first word."""
    line = _LEADING.sub("", words(text, 120)).strip()
    return line.replace("`", "") if line.count("`") % 2 else line


def block(rows: tuple[str, ...], most: int = 12) -> str:
    """Return rows as an indented code block below a bullet: no fence that text could close.

    A row of nothing but dots, or one that says that something is left out, becomes ``⋮``: in the
    notes such a line would read as if the notes themselves had left it out.
    """
    shown: list[str] = []
    for row in rows if len(rows) <= most else rows[: most - 2]:
        text = _CONTROL.sub(" ", row.expandtabs(8)).replace("`", "'").rstrip()
        shown.append("⋮" if _LEFT_OUT.search(text) or not text.strip(" .…_-") else text)
    if len(rows) > most:
        shown.append("⋮")
    return "\n\n" + "\n".join("      " + shorten(row, 110) for row in shown)


def _plain(text: str) -> str:
    text = _REFERENCE.sub("] ", text.replace("`", "'").replace('"', "'"))
    return text.replace("<", "‹")
