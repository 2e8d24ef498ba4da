"""Values that a name gives away: ``password=…``, ``"api_key": "…"``, ``export TOKEN=…``.

Whatever stands between name and value in Python, JSON, YAML, TOML, dotenv files, shells,
headers, connection strings, query strings and tables is understood here and in
`secret_beside`; `secret_names` says what the name and the value mean. Code is no value:
``password = getpass()`` stays whole.

The work is linear: each name that is found is looked at in a window of 4,000 characters that
begins with it, and the windows overlap as the names do; what was masked is not read again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ipymemory.secret_bare import bare
from ipymemory.secret_below import below, default, defined, given
from ipymemory.secret_beside import (
    CALLS,
    argument,
    authorization,
    beside,
    called,
    of_login,
    of_somebody,
    paired,
    unpacked,
    unpacking,
)
from ipymemory.secret_calls import pickled
from ipymemory.secret_clients import KEYED_CALLS, held_by, keys
from ipymemory.secret_columns import Columns
from ipymemory.secret_forms import FIRST
from ipymemory.secret_literals import Folded
from ipymemory.secret_names import SNAKE, STEMS, Name, harmless, judge, odd, secret
from ipymemory.secret_places import (
    BETWEEN,
    NAME,
    WINDOW,
    Place,
    Reading,
    Span,
    line_end,
    string_at,
)
from ipymemory.secret_queries import inserted
from ipymemory.secret_siblings import sibling, starred, tagged
from ipymemory.secret_tokens import Mark

_STEMS = frozenset(stem.encode("ascii") for stem in STEMS)
_FOLLOWS = frozenset("[ \t\"'`\\]:=>|│┃()!+,\n\r<;&┆║*")
"""What may come directly after a name that a value follows."""

_LEAD = re.compile(r"[ \t]{0,80}(?:\\\r?\n[ \t]{0,80})?(?P<open>\()?(?(open)\s{0,80})")
_NEXT_LINE = re.compile(r"[ \t]{0,80}\r?\n[ \t]{0,80}(?=[\"'])")
_ALSO = re.compile(r"[ \t]{0,80}(?:\+[ \t]{0,80})?(?:\\\r?\n[ \t]{0,80})?")
_ALSO_BELOW = re.compile(r"\s{0,80}(?:\+\s{0,80})?(?:\\\r?\n\s{0,80})?")
_FIELD = re.compile(r"\{[^{}\n]{0,200}\}")
_OTHERWISE = re.compile(r"\b(?:or|else)[ \t]{1,20}(?=[rbfuRBFU]{0,2}[\"'])")
_WRAPPED = re.compile(
    r"[\w.]{0,60}(?:(?:(?:\b|_)(?:str|bytes|bytearray|Secret|Field|field|Option|Argument|quote(?:_plus)?"
    r"|b64decode|unhexlify|fromhex)|SecretStr)\([ \t]{0,20}"
    r"|(?:\b|_|[a-z])(?:Field|field|Option|Argument|Column|Input|input|Password|Text|Variable|column)"
    r"\([^()\n\"']{0,80}(?:\(\d{0,4}\)[^()\n\"']{0,80})?(?<![\w])(?:default|value)\s?=\s?)"
    r"(?=[rbuRBU]{0,2}[\"'])"
)
_BLOCK = re.compile(r"[|>][+-]?\d?[ \t]{0,20}\r?\n(?P<indent>[ \t]{1,80})")
_CALL = re.compile(r"[A-Za-z_][\w.]{0,80}[(\[]")
_CRUMB = re.compile(r"[\w.%-]{1,100}=[^\s;{<$%]{4,}")
_HEADED = frozenset(("", ",", "|", "│", "┃"))
_ASSIGNS = frozenset(("<-", "=", ":", ":=", "+=", "=>", "==", "===", "!="))


def named(text: str, folded: Folded, *, code: bool) -> Iterator[Mark]:
    """Yield a mark for every value in `text` whose name says that it is secret.

    `folded` is `text` in lower case. `code` tells that it is a cell of Python, where what stands
    without quotes is an expression.
    """
    ends: dict[int, int] = {}
    for literal in folded.holding(FIRST):
        if literal.word not in _STEMS:
            continue
        lower, stem = folded.text, literal.word
        at = lower.find(stem)
        while at >= 0:
            end = at + len(stem.rstrip(b"="))
            while text[end : end + 1] in NAME:
                end += 1
            if text[end : end + 1] in _FOLLOWS:
                ends.setdefault(end, at)
            at = lower.find(stem, max(end, at + 1))
    if not ends:
        return
    reading = Reading(text, code=code)
    columns = Columns(text)
    done = 0
    for end in sorted(ends):
        at = ends[end]
        between = BETWEEN.match(text, end) if at >= done else None
        if between is None:
            continue
        start = at
        while start and text[start - 1] in NAME and at - start < 100:
            start -= 1
        place = Place(reading, start, end, between)
        name = _judged(place)
        if name is None:
            continue
        if name.rule in ("password", "secret") and not place.op:
            of_somebody(place)
        if name.strong and place.op in _HEADED and not place.flag:
            # Before what may end behind other names: the cells lie below.
            for first, last in columns.under(place, name):
                yield Mark(name.rule, first, last, named=True)
        for mark in _marks(place, name):
            done = max(done, mark.end)
            yield mark


_RENAMED = re.compile(r"\bcolumns ?= ?\{[^}]*$")


def _marks(place: Place, name: Name) -> Iterator[Mark]:
    if (place.subscript and not place.close and place.op != "=>") or _RENAMED.search(
        place.reading.before(place.start)
    ):
        return
    if name.rule in ("cookie", "authorization") and len(place.op) > 3:
        # `Cookie: a=b` looks like an annotated variable.
        place.after -= len(place.op) - 1
        place.op = ":"
    found: Iterator[Span]
    if near := _near(place, name):
        found = iter(near)
    elif (
        (place.flag or (place.close and name.strong) or place.op == "(")
        and (held := list(default(place, name)))
    ) or (held := list(defined(place, name))):
        found = iter(held)
    elif place.flag and place.op in ("", "=", ",", ":"):
        found = argument(place, name)
    elif place.op in ("=", ",", ")") and not place.close and (targets := unpacking(place)):
        found = unpacked(place, name, targets)
    elif place.op in _ASSIGNS or place.op[-1:] == "=":
        found = _assigned(place, name)
    elif place.op in (",", ")") and (rows := list(inserted(place, name))):
        found = iter(rows)
    elif place.op == ",":
        found = paired(place, name)
    elif place.op == ">":
        found = tagged(place, name)
    elif place.op == "(":
        shown = place.word.startswith("Password") and held_by(place)
        found = iter(shown) if shown else called(place) if name.strong else keys(place)
    elif place.op == ")":
        return
    else:
        found = beside(place, name)
    for start, end in found:
        if end > start:
            yield Mark(name.rule, start, end, named=True)


def _near(place: Place, name: Name) -> list[Span]:
    """Return the value of a field that `place` names, or of the element that it is in."""
    text, follows = place.text, place.text[place.end : place.end + 1]
    if follows in ("<", ">", " ", ":") or (follows in ("'", '"') and place.op in ("", ">")):
        found = (
            list(tagged(place, name))
            if "<" in text[max(0, place.start - 240) : place.end + 2]
            else []
        )
        if found:
            return found
    if follows in ("*", "_", "`", ":") and (found := list(starred(place, name))):
        return found
    if follows == "\\" and (found := list(pickled(place, name))):
        return found
    if follows == "\n" and (found := list(given(place, name))):
        return found
    return list(sibling(place, name)) if follows in ("'", '"', "\n", ",", "\\", " ") else []


def _judged(place: Place) -> Name | None:
    """Return what the name says, the word before it taken into account: ``api key: …``."""
    word = place.word
    if place.op == "(":
        if CALLS.fullmatch(word) or word in ("Password", "PasswordInput", "PasswordField"):
            return Name("password")
        return Name("token", strong=False) if KEYED_CALLS.fullmatch(word) else None
    name = judge(word)
    if (name is None or not name.strong) and place.previous in (" ", "."):
        text, at = place.text, place.start - 1
        while at and text[at - 1] in NAME and place.start - at < 40:
            at -= 1
        joined = place.op not in ("", ",") or place.previous == "." or word.lower() == "passe"
        if at < place.start - 1 and joined:
            wider = judge(text[at : place.start - 1] + "_" + word)
            name = wider if wider is not None and wider.strong else name
    return of_login(place, name)


def _assigned(place: Place, name: Name) -> Iterator[Span]:
    text = place.text
    lead = _LEAD.match(text, place.after)
    at = lead.end() if lead else place.after
    first = place.skip()
    opening = text[first : first + 1]
    listed = name.many or _of_pair(name) or _TUPLE.match(text, first)
    if opening in ("[", "{") or (opening == "(" and listed):
        yield from _group(place, name, first)
        return
    if place.op in (":", "=") and not place.reading.code and (lines := list(below(place, name))):
        yield from lines
        return
    if place.op == ":" and place.close:
        below_it = _NEXT_LINE.match(text, place.after)
        at = below_it.end() if below_it else at
    if string_at(text, at) is not None:
        quote = text[at : at + 1]
        closes = quote in ("'", '"', "`") and place.reading.before(place.start).count(quote) % 2
        if place.close or not closes:
            yield from _quoted(place, name, at, within=bool(lead and lead["open"]))
        return
    if place.op in ("==", "===", "!="):
        return
    block = _BLOCK.match(text, at) if place.op == ":" else None
    if block is not None:
        yield _block(text, block)
    elif place.reading.is_code(place.start) or _CALL.match(text, at):
        stop = line_end(text, at, min(len(text), at + 400))
        wrapped = _WRAPPED.match(text, at, stop)
        if wrapped is not None:
            yield from _quoted(place, name, wrapped.end(), within=False)
        for match in _OTHERWISE.finditer(text, at, stop):
            yield from _quoted(place, name, match.end(), within=False)
    else:
        yield from bare(place, name, at)


def _quoted(place: Place, name: Name, at: int, *, within: bool) -> Iterator[Span]:
    """Judge the literal at `at` together with those that are joined to it.

    `within` tells that it stands in parentheses, where the next may be on the next line.
    """
    text, stop = place.text, at + WINDOW
    spans: list[Span] = []
    formatted = False
    literal = string_at(text, at)
    while literal is not None:
        spans.append(literal.span)
        formatted = formatted or literal.formatted
        also = (_ALSO_BELOW if within else _ALSO).match(text, literal.after)
        at = also.end() if also else literal.after
        literal = string_at(text, at) if text[at : at + 1] != "\\" and at < stop else None
    if name.rule == "authorization":
        for start, end in spans:
            part = authorization(text, start, end, sure=place.word.lower().endswith("orization"))
            if part and not (formatted and harmless(_FIELD.sub("", text[slice(*part)]))):
                yield part
        return
    if name.rule == "cookie":
        for start, end in spans:
            if _CRUMB.search(text, start, end) or secret(name, text[start:end]):
                yield start, end
        return
    value = "".join(text[start:end] for start, end in spans)
    if formatted:
        value = _FIELD.sub("", value).strip(" _-:/.|")
        if len(value) < 4:
            return
    if secret(name, value, quoted=True) or _kaggle(place, name, value):
        yield from spans


def _kaggle(place: Place, name: Name, value: str) -> bool:
    """Tell whether it is Kaggle's ``{"username": …, "key": …}``, whose key is 32 hex digits."""
    if name.rule != "key" or not re.fullmatch("[0-9a-f]{32}", value):
        return False
    return "username" in place.text[max(0, place.start - 100) : place.start]


def _block(text: str, block: re.Match[str]) -> Span:
    """Return the lines of a YAML block, as far as they are indented."""
    start, stop = block.end(), min(len(text), block.end() + WINDOW)
    end = line_end(text, start, stop)
    while end < stop and text.startswith(block["indent"], end + 1):
        end = line_end(text, end + 1, stop)
    return start, end


def _of_pair(name: Name) -> bool:
    """Tell whether it may hold a user and a password: ``auth``, ``credentials``."""
    return not name.strong and name.rule in ("authorization", "secret")


_TUPLE = re.compile(r"\(\s{0,40}[bru]?([\"'])[^\"'\n]{0,200}\1,\s{0,40}[\"']")
_COLUMN = re.compile(r"\[\s{0,80}[bru]?[\"']|\{\s{0,80}(?:[\"']?\d+[\"']?)\s?:")
_BRACKETS = re.compile(r"[\[({]|[\])}]|[\"']")


def _group(place: Place, name: Name, at: int) -> Iterator[Span]:
    """Look at the strings in the list, tuple or dictionary of secrets that opens at `at`."""
    text = place.text
    pair = text[at] == "(" and _of_pair(name)
    column = name.rule == "password" and text[at] in "[{"
    listed = name.many or pair or column or name.rule in ("cookie", "secret") or text[at] == "("
    if at < place.reading.grouped or not listed:
        return
    if column and not name.many and not _COLUMN.match(text, at):
        return  # what is said of it: `{"password": {"type": "string"}}`
    stop = min(len(text), at + WINDOW // 2)
    spans: list[Span] = []
    depth = 0
    match = _BRACKETS.match(text, at)
    while match is not None:
        after = match.end()
        if match[0] in "[({":
            depth += 1
        elif match[0] in "])}":
            depth -= 1
            if not depth:
                break
        else:
            literal = string_at(text, match.start())
            if literal is not None:
                after = literal.after
                if not text[after : after + 4].lstrip().startswith(":"):
                    spans.append(literal.span)
        match = _BRACKETS.search(text, after, stop)
    place.reading.grouped = match.end() if match else stop
    if pair:
        # A user and a password.
        yield from (s for s in spans[-1:] if len(spans) < 3 and not SNAKE.fullmatch(text, *s))
        return
    for start, end in spans:
        value = text[start:end]
        if name.rule == "password" and name.strong:
            if secret(name, value, quoted=True):
                yield start, end
        elif odd(value, 8) and not harmless(value):
            yield start, end
