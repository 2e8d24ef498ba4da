"""Values below the line of their name, and those that a definition of the name holds.

The line that an INI file goes on with, the entries of a YAML list or mapping of passwords, what
pydantic says was put in; and ``default="x"`` in the call that defines an option, ``[default: x]``
in the help that it prints.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from ipymemory.secret_names import Name, harmless, odd, scrambled, secret
from ipymemory.secret_places import WINDOW, Place, Span, string_at

_NEXT = re.compile(r"[ \t]{0,80}\r?\n(?P<in>[ \t]{1,80})")
_ENTRY = re.compile(
    r"(?:-[ \t]+|[\"']?[\w.@-]{1,80}[\"']?:[ \t]+)(?P<q>[\"']?)(?P<value>[^\s\"'{}\[\]|>&*:,]+)"
    r"(?P=q)"
    r"[ \t]*(?=\r?\n|$)"
)
_LINE = re.compile(r"(?P<value>[^\s=:\"'()\[\]{}]+)[ \t]*(?=\r?\n|$)")
_GIVEN = re.compile(r"\n\s[^\n]{0,200}?\binput_value=(?=[\"'])")
_SHOWN = re.compile(r"[^\n]{0,300}?[\[(]default:? (?P<value>[^\s\])]+)[\])]", re.I)
_OPTION = re.compile(
    r"(?P<call>\b(?:Option|Argument)\(\s{0,40}(?:default\s?=\s?)?)(?P<q>[\"'])[^\"'\n]{1,200}(?P=q)"
    r"(?:,\s{0,40}[\"']-\w[\"']){0,3},\s{0,40}[\"']--?$"
)
_NAMES = re.compile(r"\b(?:dest|description|label|placeholder)\s?=\s?[\"']$")
_PARTS = re.compile(
    r"\"(?:[^\"\\\n]|\\.)*+\"|'(?:[^'\\\n]|\\.)*+'|[()]|\b(?:default|value|fallback)\s?=\s?(?=[rbu]?[\"'])"
)


def below(place: Place, name: Name) -> Iterator[Span]:
    """Yield the values on the lines below a name that nothing follows on its own."""
    text, follows = place.text, _NEXT.match(place.text, place.after)
    before = place.reading.before(place.start)
    if follows is None or before.strip(" \t-") or place.close:
        return
    deeper = follows["in"]
    if len(deeper) <= len(before):
        return
    if place.op == "=":
        line = _LINE.match(text, follows.end())
        if line is not None and secret(name, line["value"]):
            yield line.span("value")
        return
    at, stop = follows.end(), min(len(text), follows.end() + WINDOW)
    while name.many and at < stop and place.reading.spend(80):
        entry = _ENTRY.match(text, at, stop)
        if entry is None:
            return
        value = entry["value"]
        looks = scrambled(value) and len(value) >= 12
        if (name.rule == "password" or looks) and secret(name, value):
            yield entry.span("value")
        at = entry.end() + 1
        if not text.startswith(deeper, at):
            return
        at += len(deeper)


def goes_on(place: Place, name: Name, end: int) -> Iterator[Span]:
    """Yield the line with which the value that ends at `end` goes on, as INI and Java have it."""
    text = place.text
    follows = _NEXT.match(text, end)
    if follows is None or len(follows["in"]) <= len(place.reading.before(place.start)):
        return
    line = _LINE.match(text, follows.end())
    if line is None or harmless(line["value"]):
        return
    if text[end - 1] == "\\" or (name.strong and odd(line["value"])):
        yield line.span("value")


def given(place: Place, name: Name) -> Iterator[Span]:
    """Yield what pydantic tells was given for the field whose name stands alone at `place`."""
    told = _GIVEN.match(place.text, place.end)
    literal = string_at(place.text, told.end()) if told else None
    if literal is not None and secret(name, place.text[slice(*literal.span)], quoted=True):
        yield literal.span


def default(place: Place, name: Name) -> Iterator[Span]:
    """Yield the default of the option or field that `place` names in a call, or in a help."""
    text = place.text
    if not place.close:
        shown = _SHOWN.match(text, place.end)
        if shown is not None and _default(name, shown["value"]):
            yield shown.span("value")
        return
    depth = 0
    at = place.end + len(place.close)
    if not place.reading.spend(400):
        return
    for part in _PARTS.finditer(text, at, at + 400):
        if part[0] == "(":
            depth += 1
        elif part[0] == ")":
            depth -= 1
            if depth < 0:
                return
        elif part[0][-1:] not in ("'", '"') and not depth:
            literal = string_at(text, part.end())
            if literal is not None and _default(name, text[slice(*literal.span)]):
                yield literal.span
            return


def defined(place: Place, name: Name) -> Iterator[Span]:
    """Yield the default or value in the call that gives its option or widget the name at `place`.

    ``add_argument("-t", default="x", dest="token")``, ``Text(value="x", description="Token")``
    and ``Option("x", "--password")``, whose name comes last.
    """
    text, low = place.text, max(0, place.start - 300)
    if not place.close and text[place.end : place.end + 2] not in (":'", ':"'):
        return
    before = text[low : place.start]
    option = _OPTION.search(before)
    if option is not None:
        literal = string_at(text, low + option.end("call"))
        if literal is not None and _default(name, text[slice(*literal.span)]):
            yield literal.span
        return
    if not _NAMES.search(before):
        return
    opening = before.rfind("(")
    for part in _PARTS.finditer(text, low + opening + 1, place.start + 300):
        if part[0] in ("(", ")"):
            return
        literal = string_at(text, part.end()) if part[0][-1:] not in ("'", '"') else None
        if literal is not None:
            if _default(name, text[slice(*literal.span)]):
                yield literal.span
            return


def _default(name: Name, value: str) -> bool:
    if name.strong:
        return secret(name, value, quoted=True)
    return odd(value, 8) and secret(replace(name, strong=True), value)
