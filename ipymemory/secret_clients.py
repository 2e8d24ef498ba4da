"""Secrets that a client takes at its place: ``Github("…")``, ``Session("id", "…")``, ``connect``.

The name of such a call only says that one of its texts may be a key, so that only what looks like
one counts: long, and letters and digits mixed; or what stands where a driver's password does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ipymemory.secret_names import harmless, hexadecimal, odd, scrambled
from ipymemory.secret_places import Place, Span, string_at
from ipymemory.secret_tokens import Mark

KEYED_CALLS = re.compile(
    r"(?:\w+_)?(?:access_?|auth_?|api_?|app_?|bearer_?)?(?:tokens?|keys?)"
    r"|\w*(?:ApiKey|APIKey|Token|AuthKey)"
    r"|\w*Credentials?|\w*(?:OAuth|Auth)\d?(?:User)?Handler"
)
"""Calls whose name says that they take a key or a token."""

_CALL = re.compile(r"[\w.]{1,40}\(\s*")
_NO_PASSWORD = re.compile(r"[./:\\=]|\d{4}")
_ARGUMENT = re.compile(r"\s{0,40},\s{0,40}")
_VALUE = re.compile(r"[^()\n]{0,200}?\bvalue\s?=\s?(?=[\"'])")
_OTHER = re.compile(r"(?:\w{1,40}\s?=\s?)?[\w.]{1,60}|\w{1,40}\s?=\s?")
_DRIVER = re.compile(r"(?:pymysql|MySQLdb|mysql\.connector|mariadb|psycopg2?)\.$")
_AS_USER = re.compile(r"[\w$#.-]{1,60}/(?P<value>[^\s@/\"']{3,})@")
_ASKED = re.compile(r"pass(?:word|phrase|code)[^\n]{0,30}\)[;\s]{1,40}[\w.]{1,40}\.$", re.I)
_FILE = re.compile(r"[/\\]|\.\w{2,4}$")
_LEAST = 20


def keys(place: Place) -> Iterator[Span]:
    """Yield the texts of the call whose name stands at `place` that look like keys."""
    for start, end in _texts(place.text, place.after):
        if _is_key(place.text[start:end], place.word):
            yield start, end


def _is_key(value: str, word: str) -> bool:
    if len(value) < _LEAST or " " in value or harmless(value) or _FILE.search(value):
        return False
    if hexadecimal(value):
        return "redential" in word or "from_key" in word or "Handler" in word
    return scrambled(value)


def clients(text: str, at: int) -> Iterator[Mark]:
    """Find the keys in ``boto3.Session("id", "key")``, ``Github("key")``, ``login("key")``."""
    call = _CALL.match(text, at)
    for start, end in _texts(text, call.end()) if call else ():
        if _is_key(text[start:end], ""):
            yield Mark("key", start, end, named=True)


def held_by(place: Place) -> list[Span]:
    """Return what ``Password(value="…")`` holds, as a widget shows itself."""
    value = _VALUE.match(place.text, place.after)
    literal = string_at(place.text, value.end()) if value else None
    return [literal.span] if literal else []


def logged_in(text: str, at: int) -> Iterator[Mark]:
    """Find the last text of ``server.login("bob", "password")``, or the key of ``login("key")``."""
    call = _CALL.match(text, at)
    if call is not None and text.startswith("(", at + len("login")):
        yield from _last(text, call)
        yield from clients(text, at)


def signed_in(text: str, at: int) -> Iterator[Mark]:
    """Find the last text of ``client.sign_in("bob", "password")``."""
    call = _CALL.match(text, at)
    if call is not None:
        yield from _last(text, call)


def connected(text: str, at: int) -> Iterator[Mark]:
    """Find the password in a call of ``connect``.

    The last text of ``connect(user, "pa55!word")`` if it is no word, host or number, what a
    driver takes third, and what stands in ``connect("user/password@host")``.
    """
    call = _CALL.match(text, at)
    if call is None:
        return
    for mark in _last(text, call):
        value = text[mark.start : mark.end]
        if odd(value) and not _NO_PASSWORD.search(value):
            yield mark
    texts = list(_texts(text, call.end()))
    if len(texts) > 2 and _DRIVER.search(text, max(0, at - 20), at):
        third = texts[2]
        if not harmless(text[slice(*third)], quoted=True):
            yield Mark("password", *third, named=True)
    for start, end in texts[:1]:
        user = _AS_USER.match(text, start, end)
        if user is not None:
            yield Mark("password", *user.span("value"), named=True)


def typed(text: str, at: int) -> Iterator[Mark]:
    """Find what is sent to a program that has just asked for a password."""
    literal = string_at(text, text.find("(", at) + 1)
    if literal is not None and _ASKED.search(text, max(0, at - 100), at):
        yield Mark("password", *literal.span, named=True)


def decrypted(text: str, at: int) -> Iterator[Mark]:
    """Find the password in ``PdfReader(path).decrypt("password")``."""
    literal = string_at(text, text.find("(", at) + 1)
    if literal is None or text[literal.after : literal.after + 1] != ")":
        return
    value = text[slice(*literal.span)]
    if len(value) <= 60 and " " not in value and not harmless(value) and not _FILE.search(value):
        yield Mark("password", *literal.span, named=True)


def stored(text: str, at: int) -> Iterator[Mark]:
    """Find what ``secrets.put(…, string_value="…")`` stores."""
    value = re.compile(r"string_value\s?=\s?(?=[\"'])").search(text, at, at + 300)
    literal = string_at(text, value.end()) if value else None
    if literal is not None and odd(text[slice(*literal.span)]):
        yield Mark("secret", *literal.span, named=True)


def _last(text: str, call: re.Match[str]) -> Iterator[Mark]:
    """Yield the last text of `call`, if another argument stands before it."""
    at = call.start()
    stop = text.find(")", at, at + 300)
    last = text.rfind(",", call.end(), max(stop, call.end()))
    if last < 0:
        return
    found = re.compile(r",\s*").match(text, last)
    string = string_at(text, found.end() if found else last + 1)
    if string is None or text[string.after : stop].strip():
        return
    if not harmless(text[string.start : string.end]):
        yield Mark("password", *string.span, named=True)


def _texts(text: str, at: int) -> Iterator[Span]:
    """Yield the texts among the arguments without names of a call, whose first begins at `at`."""
    stop = min(len(text), at + 400)
    while at < stop and text[at].isspace():
        at += 1
    while at < stop:
        literal = string_at(text, at)
        if literal is not None:
            yield literal.span
            at = literal.after
        else:
            other = _OTHER.match(text, at, stop)
            if other is None:
                return
            at = other.end()
            value = string_at(text, at) if text[at - 1 : at] in ("=", " ") else None
            at = value.after if value else at
        comma = _ARGUMENT.match(text, at)
        if comma is None:
            return
        at = comma.end()
