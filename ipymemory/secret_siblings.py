"""Values that stand beside the name of their field: ``name: DB_PASSWORD`` and then ``value: x``.

So Kubernetes, AWS and Java's properties have it, in YAML, JSON and XML, and so do lists of
definitions and bold labels in HTML and Markdown. A secret's manifest of Kubernetes is read as a
whole: there each value is secret, whatever it is called.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ipymemory.secret_names import Name, harmless, secret
from ipymemory.secret_places import WINDOW, Place, Span, string_at
from ipymemory.secret_tokens import Mark

_NAMED = re.compile(
    r"(?:name|key|id|variable|field)\\?[\"']?\s{0,9}(?:[:=]|=>)\s{0,9}\\?[\"']?[\w./-]*$", re.I
)
_VALUE = re.compile(
    r"\\?[\"']?,?(?:\s|\\n){0,80}-?\s?\\?[\"']?\w{0,20}(?:value|content|data|default)\\?[\"']?"
    r"\s{0,9}(?:[:=]|=>)[ \t]{0,9}",
    re.I,
)
_BARE = re.compile(r"[^\s\"'<>,;}\]]+")

_INLINE = r"(?:b|i|u|em|strong|code|span|label|kbd|tt|font|small|samp|mark|p|a)"
_KEYS = r"(?:dt|key|name|td|th|label|string|property|parameter-name|n)"
_VALUES = r"(?:dd|string|value|td|data|input|param-value|v|code|span)"
_TAG = r"[^<>]{0,200}>"
_TAGGED = re.compile(
    rf"\s?[:=]?\s?</(?:{_INLINE}>(?:\s|</?{_INLINE}\b{_TAG}){{0,9}}[:=](?:\s|</?{_INLINE}\b{_TAG}){{0,9}}"
    rf"|{_KEYS}>\s{{0,80}}<{_VALUES}\b{_TAG}(?:<{_INLINE}\b{_TAG}){{0,3}})",
    re.I,
)
_LABEL = re.compile(rf"[:=]\s?</{_INLINE}>(?:\s|&nbsp;|</?{_INLINE}\b{_TAG}){{0,9}}", re.I)
_STARRED = re.compile(r"(?:\*\*|__|`)[ \t]?[:=]|[:=](?:\*\*|__)")
_ATTRIBUTES = re.compile(r"\s[^<>]{0,200}>")
_CDATA = "<![CDATA["
_TAG_OPEN = re.compile(
    r"<(?:[\w-]{1,40}:)?$|<\w[^<>]{0,200}\b(?:name|key|id)=[\"']?[\w.-]{0,80}$", re.I
)
_SETTING = re.compile(r"[\"'][^<>]{0,200}>(?:\s{0,80}<value>)?", re.I)
_CONTENT = re.compile(r"[\"'][^<>]{0,200}?\b(?:value|content)=(?=[\"'])", re.I)


def sibling(place: Place, name: Name) -> Iterator[Span]:
    """Yield the value of the field whose name stands at `place` as a value itself."""
    text = place.text
    value = _VALUE.match(text, place.end)
    if value is None or not _NAMED.search(place.reading.before(place.start)):
        return
    at = value.end()
    literal = string_at(text, at)
    if literal is not None:
        start, end = literal.span
    else:
        found = place.take(_BARE, at, at + WINDOW)
        start, end = place.whole(_BARE, at, found)
    if end > start and secret(name, text[start:end], quoted=literal is not None):
        yield start, end


def tagged(place: Place, name: Name) -> Iterator[Span]:
    """Yield what stands in the element, or behind the label, that `place` names."""
    text, end = place.text, place.end
    begin = _TAG_OPEN.search(text, max(0, place.start - 240), place.start)
    follows = None
    if begin is not None:
        if text[end : end + 1] == ">":
            at: int | None = end + 1
        elif text[end : end + 1] in ("'", '"'):
            content = _CONTENT.match(text, end)
            literal = string_at(text, content.end()) if content else None
            if literal is not None and secret(name, text[slice(*literal.span)], quoted=True):
                yield literal.span
                return
            follows = _SETTING.match(text, end)
            at = follows.end() if follows else None
        else:
            follows = _ATTRIBUTES.match(text, end)
            at = follows.end() if follows else None
    else:
        follows = _TAGGED.match(text, end) or _LABEL.match(text, end)
        at = follows.end() if follows else None
    if at is None:
        return
    if text.startswith(_CDATA, at):
        at += len(_CDATA)
        stop = text.find("]]>", at, at + WINDOW)
    else:
        stop = text.find("<", at, at + WINDOW)
    line = text.find("\n", at, at + WINDOW)
    if stop < 0 and begin is not None:
        return  # `<user>:<password>@host` is no element
    if stop < 0 or (0 <= line < stop and begin is None):
        stop = line if line >= 0 else min(len(text), at + WINDOW)
    while at < stop and text[at].isspace():
        at += 1
    value = text[at:stop].rstrip()
    if value and secret(name, value, quoted=begin is not None):
        yield at, at + len(value)


def starred(place: Place, name: Name) -> Iterator[Span]:
    """Yield what follows a name in Markdown's bold or code: ``**password**: x``."""
    text = place.text
    mark = _STARRED.match(text, place.end)
    if mark is None:
        return
    at = mark.end()
    while text[at : at + 1] in tuple(" \t`*_"):
        at += 1
    value = place.take(_BARE, at, at + WINDOW).rstrip("`*_")
    follows = text[at + len(value) : at + len(value) + 9].strip(" `*_.|")
    if value and secret(name, value) and follows[:1] in ("", "\n", ",", ";"):
        yield at, at + len(value)


_KIND = re.compile(r"kind\\?[\"']?\s{0,9}:\s{0,9}\\?[\"']?secret\b(?!:)", re.I)
_MANIFEST = re.compile(r"(?m)^(?P<at>[ \t]*)(?:string)?data:[ \t]*$", re.I)
_ENTRY = re.compile(
    r"\n(?P<in>[ \t]+)[\w.-]+:[ \t]*(?P<q>[\"']?)(?P<value>[^\s\"'|>][^\n\"']*)(?P=q)"
)
_JSON = re.compile(r"[\"'](?:string)?data[\"']\s{0,20}:\s{0,20}\{(?P<held>[^{}]{0,4000})\}", re.I)
_HELD = re.compile(r":\s{0,20}[\"'](?P<value>[^\"'\n]+)[\"']")


def manifest(text: str, at: int) -> Iterator[Mark]:
    """Find the values of a Kubernetes secret whose ``kind: Secret`` stands at `at`."""
    if _KIND.match(text, at) is None:
        return
    low, high = max(0, at - 1500), min(len(text), at + 2500)
    for edge in ("\n---", "\nkind:", '"kind"'):
        before, after = text.rfind(edge, low, at - 1), text.find(edge, at + 6, high)
        low, high = max(low, before), after if after >= 0 else high
    for data in _MANIFEST.finditer(text, low, high):
        place = data.end()
        while (entry := _ENTRY.match(text, place, high)) and len(entry["in"]) > len(data["at"]):
            place = entry.end()
            if not harmless(entry["value"]):
                yield Mark("secret", *entry.span("value"), named=True)
    for data in _JSON.finditer(text, low, high):
        for value in _HELD.finditer(text, *data.span("held")):
            if not harmless(value["value"]):
                yield Mark("secret", *value.span("value"), named=True)
