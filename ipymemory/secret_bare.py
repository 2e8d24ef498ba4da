"""Values without quotes: of dotenv files, INI, YAML, shells, headers, query strings, code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from ipymemory.secret_below import goes_on
from ipymemory.secret_beside import BESIDE_USER, header
from ipymemory.secret_names import Name, harmless, judge, odd, secret
from ipymemory.secret_places import WINDOW, Place, Span, line_end

_BARE = re.compile(r"[^\s\"'`,;&<>|]+")
_QUERY = re.compile(r"[^\s\"'`&;#<>\\]+")
_SETS = re.compile(
    r"[\s\-+*>|#!%$\\]*+(?:(?:export|set|setx|declare|typeset|ENV|ARG|env|set_env|-x|-gx|-e|--env"
    r"|Environment=|config:set|\$?env:)\s*+)*+[\"'{]?"
)
_CODE = re.compile(
    r"[(\[{<$%*&@|\\]|[fFrRbBuU]{1,2}[\"']|lambda\b|await\b|not\b|new\b|[A-Za-z_][\w.]{0,80}[(\[]"
)
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
_CAMEL = re.compile(r"_*[A-Z][a-z]+[A-Z]")
_SET = re.compile(r"[ \t]--set(?:-string|-literal)?[ =][\"']?[^\s\"']{0,200}$")
"""What helm is told to set, from which a value's comma parts the next."""
_COMMENT = re.compile(r"[ \t](?:#|//).*")


def bare(place: Place, name: Name, at: int) -> Iterator[Span]:
    """Judge a value without quotes."""
    text = place.text
    stop = line_end(text, at, min(len(text), at + WINDOW))
    if name.rule in ("authorization", "cookie"):
        yield from header(place, name, at, stop)
        return
    if place.previous in ("?", "&") and place.op == "=":
        value = place.take(_QUERY, at, stop)
        looks = name.rule != "key" and odd(value, 8) and not harmless(value)
        if looks or secret(name, value):
            yield place.whole(_QUERY, at, value)
        return
    line = place.reading.line(place.start)
    alone = not place.close and _SETS.fullmatch(text, *line) is not None
    if alone and place.tight and place.word.isupper():
        name = replace(name, strong=True)  # of the environment: `TOKEN=x`
    if alone and place.op in ("=", ":"):
        value = _line(place, name, at, stop)
        if value and _is_secret(place, name, value):
            yield at, at + len(value)
            if not place.reading.code:
                yield from goes_on(place, name, line_end(text, at, stop))
        return
    value = place.take(_BARE, at, stop)
    while value and (value[-1] in ":." or (value[-1] in ")]}" and not _balanced(value))):
        value = value[:-1]
    variable = value.isidentifier() and not odd(value)
    if variable and name.rule == "password" and name.strong and place.op in (":", "=>", "="):
        follows = text[at + len(value) : at + len(value) + 1]
        told = place.subscript or BESIDE_USER.search(place.reading.before(place.start))
        variable = not told or follows not in ("", "\n", ",", ";", ")", ".", "}")
    if variable and place.op == "=" and _SET.search(place.reading.before(place.start)):
        variable = False
    follows = text[at + len(value) : at + len(value) + 1]
    if variable and (not place.tight or follows in tuple("),]}")):
        return
    if value and _is_secret(place, name, value):
        yield place.whole(_BARE, at, value)


def _line(place: Place, name: Name, at: int, stop: int) -> str:
    """Return the value on a line that holds nothing but name and value, empty if there is none.

    So lines of dotenv, INI and YAML files look, and the output of ``env``.
    """
    text = place.text
    enclosed = place.previous if place.previous in ("'", '"') else ""
    if enclosed:
        closing = text.find(enclosed, at, stop)
        stop = closing if closing >= 0 else stop
    value = _COMMENT.sub("", text[at:stop]).rstrip()
    listed = value.endswith(",")
    value = value.rstrip(",;")
    words = value.split()
    shell = place.reading.code or text[place.reading.line(place.start)[0]] == "!"
    if len(words) > 1 and not (place.tight and not shell and name.rule == "password"):
        listed = words[0].endswith(",")
        value = words[0].rstrip(",;")
        if place.op == ":" and not odd(value):
            return ""
    if value.isidentifier() and not odd(value):
        attribute = place.previous == "." and not place.tight
        typed = place.op == ":" and (enclosed == '"' or _CAMEL.match(value))
        if listed or attribute or typed:
            return ""
        if place.op == "=" and not place.tight and name.rule != "password":
            return ""
    return value


def _is_secret(place: Place, name: Name, value: str) -> bool:
    """Judge a `value` that stands without quotes, and so may be code or a number."""
    if value.isdigit():
        return name.rule == "password" and name.strong and place.tight and len(value) >= 4
    if _CODE.match(value) and not (value[0] in "$%*&@" and odd(value, 8) and "{" not in value):
        return False
    if _DOTTED.fullmatch(value) and (not odd(value) or judge(value.rpartition(".")[2])):
        return False
    if value.isidentifier() and judge(value) is not None:
        return False
    return secret(name, value)


def _balanced(value: str) -> bool:
    return all(value.count(a) >= value.count(b) for a, b in ("()", "[]", "{}"))
