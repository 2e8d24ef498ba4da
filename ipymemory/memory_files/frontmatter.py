"""YAML between two lines ``---`` at the top of a file, read and written (`editing` edits it).

Three generations are met in the field: flat ``name/description/type``; flat with
``originSessionId``; nested below ``metadata`` (formats.md). Values are taken as text, never as
dates or truth values, so that ``type: no`` stays what it says.

Most files have the form that we and Claude Code write, and are read without a YAML parser, a
hundred times as fast; whatever is the least unusual goes to PyYAML's safe loader. Files are
untrusted: the pure Python loader is taken, whose depth Python bounds, and nothing of a file but
texts, lists and mappings is ever made.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

_OPEN = re.compile(r"---[ \t]*(\r?\n)")
_CLOSE = re.compile(r"(?:\A|(?<=\n))---[ \t]*(?:\r?\n|\Z)")
_LINE = re.compile(r"(?P<indent> *)(?P<key>[A-Za-z_]\w*):(?: +(?P<value>\S.*?))? *")
_QUOTED = re.compile(r'"(?:[^"\\]|\\["\\])*"')
_TYPED = frozenset(["true", "false", "yes", "no", "on", "off", "null", "y", "n", "nan", "inf"])
_NUMBER = re.compile(r"[\d.]")

MOST_YAML = 16 * 1024
"""Characters of frontmatter; a memory's has some hundreds."""

MOST_BRACKETS = 200
"""Opening brackets in it: five thousand, one in the other, take PyYAML a second to refuse."""


@dataclass(frozen=True, slots=True)
class Front:
    """What a file says of itself, and the text below.

    `problem` says, as a sentence without a name, why `fields` is not to be trusted; then `body`
    is the file as it stands.
    """

    fields: Mapping[str, Any] = field(default_factory=dict)
    body: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Block:
    """A block between two lines ``---`` at the top of a text: its YAML, its first line's ending,
    and where the text below begins."""

    yaml: str
    ending: str
    end: int


def block(text: str) -> Block | None:
    """Return the block at the top of `text`, None where there is none or it is not closed."""
    opened = _OPEN.match(text)
    if opened is None:
        return None
    closed = _CLOSE.search(text, opened.end())
    if closed is None:
        return None
    return Block(text[opened.end() : closed.start()], opened[1], closed.end())


def read(text: str) -> Front:
    """Return the frontmatter of `text`, and of a second block below it what the first lacks."""
    text = text.removeprefix("\ufeff")
    first = block(text)
    if first is None:
        opened = _OPEN.match(text)
        what = "Its frontmatter is not closed." if opened else "It has no frontmatter."
        return Front({}, text, what)
    fields, problem = fields_in(first.yaml)
    if problem:
        return Front({}, text, problem)
    body = text[first.end :]
    below = body.lstrip("\r\n")
    second = block(below)
    if second is not None:
        more, problem = fields_in(second.yaml)
        if more and not problem:
            fields, body = _joined(fields, more), below[second.end :]
    return Front(fields, body)


def text_of(fields: Mapping[str, Any], *path: str) -> str:
    """Return the text at `path`, empty when there is none."""
    value: object = fields
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, str) else ""


def write(
    name: str, description: str, metadata: Mapping[str, str | Mapping[str, Any]], body: str
) -> str:
    """Return a whole file of the newest generation, with line feeds."""
    lines = ["---", f"name: {scalar(name)}", f"description: {scalar(description)}", "metadata:"]
    lines += [f"  {key}: {value_of(key, value)}" for key, value in metadata.items()]
    return "\n".join([*lines, "---", "", body.strip("\n"), ""])


def scalar(text: str) -> str:
    """Return `text` as a YAML scalar on one line, quoted where any parser could mistake it."""
    plain = (
        _plain(text)
        and not _NUMBER.match(text)
        and not {'"', "'"} & set(text)
        and text.casefold() not in _TYPED
    )
    return text if plain else f'"{_escaped(text)}"'


def value_of(key: str, value: str | Mapping[str, Any]) -> str:
    """Return a value of the metadata as it is written behind ``key: ``."""
    if isinstance(value, str):
        # A moment stands bare, as Claude Code writes it.
        return value if key == "modified" and _plain(value) else scalar(value)
    return _unseen_escaped(json.dumps(value, ensure_ascii=False))


def _plain(text: str) -> bool:
    """Return whether `text`, on one line and unquoted, is a scalar for every YAML parser."""
    return (
        text[:1].isalnum()
        and text.isprintable()
        and ": " not in text
        and " #" not in text
        and text[-1] not in ": "
    )


def _escaped(text: str) -> str:
    return _unseen_escaped(text.replace("\\", "\\\\").replace('"', '\\"'))


def _unseen_escaped(text: str) -> str:
    """Return `text` with every character escaped that YAML does not take as it is, or folds."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else _escape(each) for each in text)


def _escape(char: str) -> str:
    named = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(char)
    code = ord(char)
    return named or (f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}")


def fields_in(yaml: str) -> tuple[dict[str, Any], str]:
    """Return the mapping in `yaml`, or what is wrong with it."""
    if len(yaml) > MOST_YAML:
        return {}, f"Its frontmatter is longer than {MOST_YAML // 1024} KB."
    if yaml.count("[") + yaml.count("{") > MOST_BRACKETS:
        return {}, "Its frontmatter is no YAML that a memory has."
    fast = _usual(yaml)
    if fast is not None:
        return fast, ""
    return _parsed(yaml)


def _usual(yaml: str) -> dict[str, Any] | None:
    """Return the mapping in `yaml` if it is of the form that programs write, else None."""
    fields: dict[str, Any] = {}
    inner: dict[str, Any] | None = None
    depth = 0
    for raw in yaml.split("\n"):
        line = raw.removesuffix("\r")
        if not line:
            continue
        match = _LINE.fullmatch(line)
        if match is None or not line.isprintable():
            return None
        indent, key, written = len(match["indent"]), match["key"], match["value"]
        if indent and (inner is None or (depth and indent != depth)):
            return None
        if not indent:
            if inner is not None and not inner:
                return None
            inner, depth = None, 0
        else:
            depth = indent
        target = fields if inner is None else inner
        if written is None:
            if indent:
                return None
            inner = target[key] = {}
            continue
        value = _simple(written)
        if value is None:
            return None
        target[key] = value
    return None if inner is not None and not inner else fields


def _simple(written: str) -> Any:
    """Return the value that is `written`, or None where it takes a parser to tell."""
    if _plain(written):
        return written
    if _QUOTED.fullmatch(written):
        return json.loads(written)
    if written[0] == "{" and "\\" not in written:
        try:
            value = json.loads(written)
        except ValueError:
            return None
        return value if _of_texts(value) else None
    return None


def _of_texts(value: object) -> bool:
    """Return whether `value` is a mapping of texts and lists of texts, which YAML reads alike.

    The lists may hold such mappings too: `MOST_BRACKETS` bounds how deep that goes.
    """
    return isinstance(value, dict) and all(
        isinstance(each, str)
        or (
            isinstance(each, list)
            and all(isinstance(item, str) or _of_texts(item) for item in each)
        )
        for each in value.values()
    )


def _parsed(yaml: str) -> tuple[dict[str, Any], str]:
    import yaml as parser

    try:
        value = parser.load(yaml, loader())
    except parser.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 2}" if mark is not None else ""
        return {}, f"Its frontmatter is no valid YAML{where}."
    except (RecursionError, ValueError, TypeError, OverflowError):
        return {}, "Its frontmatter is no YAML that a memory has."
    if value in (None, ""):
        return {}, ""
    if not isinstance(value, dict):
        return {}, "Its frontmatter holds no keys."
    return {str(key): each for key, each in value.items()}, ""


@cache
def loader() -> Any:
    """Return the safe loader without its guesses at dates, numbers and truth values."""
    import yaml as parser

    return type("Texts", (parser.SafeLoader,), {"yaml_implicit_resolvers": {}})


def _joined(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Return `first` with what it lacks from `second`; the mappings in both are joined too."""
    joined = dict(second) | {key: value for key, value in first.items() if value != ""}
    for key, value in first.items():
        other = second.get(key)
        if isinstance(value, Mapping) and isinstance(other, Mapping):
            joined[key] = _joined(value, other)
    return joined
