"""Secrets that a call or a line takes at its place: keys of ciphers, cookies, lines of .pgpass.

A pickle that is shown as bytes holds it behind its name, with a code and a length between.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ipymemory.secret_names import Name, harmless, judge, odd, secret
from ipymemory.secret_places import Place, Span, string_at
from ipymemory.secret_tokens import Mark

_KEYED = re.compile(
    r"(?:fernet\(|hmac\.new\(|aes\.new\(|jwt\.(?:en|de)code\([^\n,\"']{1,80},)"
    r"\s{0,20}(?:key\s?=\s?)?(?=[rb]?[\"'])",
    re.I,
)
_COOKIE = re.compile(
    r"cookies?(?:\.set\(\s{0,9}[\"'][^\"'\n]{1,80}[\"'],|\[[\"'][^\"'\n]{1,80}[\"']\]\s?=(?!=)"
    r"|\(\{[^}\n]{0,200}[\"']value[\"']:|\s?=\s?dict\((?:[^()\n]{0,200},\s?)?\w{1,40}\s?=)"
    r"\s{0,9}(?=[\"'])",
    re.I,
)
_JAR = re.compile(
    r"(?:#HttpOnly_)?[\w.:-]{1,100}\t(?:TRUE|FALSE)\t/[^\t\n]{0,100}\t(?:TRUE|FALSE)\t\d{1,20}"
    r"\t(?P<name>[^\t\n]{1,100})\t(?P<value>[^\s]{1,4000})"
)
_LOGIN = re.compile(r"sess|sid\b|auth|token|jwt|remember|csrf|xsrf|login", re.I)
_PICKLED = re.compile(
    r"\\x94(?:\\x8c(?:\\x[0-9a-f]{2}|\\[tnr]|[^\\])|X(?:\\x[0-9a-f]{2}|\\[tnr]|[^\\]){4})"
    r"(?P<value>[^\\\n]{1,400})\\x94"
)
_PGPASS = re.compile(
    r"^(?:[\w.-]{1,100}|\*):(?:\d{2,5}|\*):[^\s:]{1,100}:[^\s:]{1,100}:(?P<value>[^\s:]+)[ \t]*$",
    re.M,
)


def keyed(text: str, at: int) -> Iterator[Mark]:
    """Find the key that ``Fernet("…")``, ``hmac.new(b"…", …)`` or ``jwt.encode(x, "…")`` takes."""
    call = _KEYED.match(text, at)
    literal = string_at(text, call.end()) if call else None
    if literal is not None and not harmless(text[slice(*literal.span)]):
        yield Mark("key", *literal.span, named=True)


def crumbs(text: str, at: int) -> Iterator[Mark]:
    """Find the cookie in ``cookies.set("session", "…")`` and ``cookies["session"] = "…"``."""
    call = _COOKIE.match(text, at)
    literal = string_at(text, call.end()) if call else None
    if literal is not None and secret(Name("token", strong=False), text[slice(*literal.span)]):
        yield Mark("cookie", *literal.span, named=True)


def crumb_line(text: str, at: int) -> Iterator[Mark]:
    """Find the cookie in a line of the cookie files of Netscape, curl and wget."""
    start = text.rfind("\n", max(0, at - 300), at) + 1
    line = _JAR.match(text, start if start or at < 300 else at, at + 4400)
    if line is None:
        return
    value, judged = line["value"], judge(line["name"])
    likely = (judged and judged.strong) or _LOGIN.search(line["name"])
    if len(value) >= 4 and (likely or odd(value, 8)) and not harmless(value):
        yield Mark("cookie", *line.span("value"), named=True)


def pickled(place: Place, name: Name) -> Iterator[Span]:
    """Yield the text behind the name at `place` in a pickle that was printed as bytes."""
    follows = _PICKLED.match(place.text, place.end)
    if follows and (name.strong or odd(follows["value"], 8)) and not harmless(follows["value"]):
        yield follows.span("value")


def pgpass(text: str, at: int) -> Iterator[Mark]:
    """Find the password in a line of .pgpass: ``host:5432:database:user:password``."""
    start = text.rfind("\n", max(0, at - 300), at) + 1
    line = _PGPASS.match(text, start if start or at < 300 else at, at + 600)
    if line is not None and not harmless(line["value"]) and not line["value"].isdigit():
        yield Mark("password", *line.span("value"), named=True)
