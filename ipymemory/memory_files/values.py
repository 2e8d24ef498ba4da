"""A memory as the other rooms see it: frozen values, and the words in which it is listed.

`Draft` is what somebody wants kept, `Memory` what lies in the folder, `Source` where either came
from: a memory that cannot say that is no better than a rumour (behaviour E12).
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

KINDS = ("user", "feedback", "project", "reference")
"""The kinds of memories (behaviour E1)."""

_WORD = re.compile(r"[\w]+")
_SPACE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Source:
    """Where a memory came from. Empty where nobody knows.

    `origin` is who said it: ``person`` (asked for by hand), ``markdown``, ``comment``, ``ask``
    (a person's words in a cell), ``file``, ``output``, ``model``.
    """

    session: str = ""
    notebook: str = ""
    turns: tuple[str, ...] = ()
    quote: str = ""
    """The words themselves."""
    origin: str = ""
    also: tuple[Source, ...] = ()
    """Where else the same was said: of memories that were merged into this one."""

    @property
    def alone(self) -> Source:
        """This source without the others."""
        return replace(self, also=()) if self.also else self

    def as_dict(self) -> dict[str, Any]:
        """Return what is known, as JSON values; the session is kept elsewhere in the file."""
        known: dict[str, Any] = {
            "notebook": self.notebook,
            "turns": list(self.turns),
            "quote": self.quote,
            "origin": self.origin,
            "also": [{"session": each.session, **each.as_dict()} for each in self.also],
        }
        return {key: value for key, value in known.items() if value}

    @classmethod
    def from_dict(cls, value: object, session: str = "") -> Source:
        """Return the source in `value`, whatever it is; what it should not hold is left out."""
        told = value if isinstance(value, Mapping) else {}
        turns, also = told.get("turns"), told.get("also")
        return cls(
            session,
            _text(told.get("notebook")),
            tuple(map(_text, turns)) if isinstance(turns, list | tuple) else (),
            _text(told.get("quote")),
            _text(told.get("origin")),
            tuple(
                cls.from_dict({**each, "also": ()}, _text(each.get("session")))
                for each in (also if isinstance(also, list | tuple) else ())
                if isinstance(each, Mapping)
            ),
        )


@dataclass(frozen=True, slots=True)
class Draft:
    """What is to be kept. `body` is the fact first, then ``**Why:**`` and ``**How to apply:**``."""

    kind: str
    title: str
    description: str
    body: str
    source: Source = field(default_factory=Source)
    subject: str = ""
    """What it is about and which property of that, such as ``dates: order``: a later memory of
    the same subject takes this one's place."""

    def as_dict(self) -> dict[str, Any]:
        """Return the draft as JSON values."""
        return {
            "kind": self.kind,
            "title": self.title,
            "description": self.description,
            "body": self.body,
            "subject": self.subject,
            "source": {"session": self.source.session, **self.source.as_dict()},
        }

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Draft:
        """Return the draft in `value`; what is missing is empty."""
        told = value.get("source")
        session = _text(told.get("session")) if isinstance(told, Mapping) else ""
        return cls(
            _text(value.get("kind")),
            _text(value.get("title")),
            _text(value.get("description")),
            _text(value.get("body")),
            Source.from_dict(told, session),
            _text(value.get("subject")),
        )


@dataclass(frozen=True, slots=True)
class Memory:
    """One file of the memory folder.

    `name` is its path in the folder without ``.md``, the name by which people and links know it.
    From a scan, `body` is what stands in the first 30 lines of the file; `MemoryFolder.read`
    gives all of it.
    """

    name: str
    kind: str
    description: str
    body: str
    path: Path
    modified: str
    """When it was last changed, ISO 8601 in UTC."""
    source: Source = field(default_factory=Source)
    current: bool = True
    """False when the file says that another memory took its place."""
    subject: str = ""
    problem: str = ""
    """What is wrong with the file, as a sentence; such a file is shown and never rewritten."""
    label: str = ""
    """The name that the file itself gives."""
    digest: str = ""
    """SHA-256 of the whole file, empty when only its beginning was read."""

    @property
    def title(self) -> str:
        """A name for readers: the file's own, or one made of the file's name."""
        name = self.label or self.name.rpartition("/")[2]
        if " " in name:
            return name
        words = re.sub(r"[-_]+", " ", name).strip()
        return words[:1].upper() + words[1:]

    @property
    def file(self) -> str:
        """The path in the folder, with forward slashes."""
        return f"{self.name}.md"

    @property
    def text(self) -> str:
        """What there is to read: the body, or the description where there is no body."""
        return self.body.strip() or self.description

    def age(self, now: datetime) -> str:
        """Return how old it is, in words."""
        return age(self.modified, now)

    def as_dict(self) -> dict[str, Any]:
        """Return the memory as JSON values."""
        source = {"session": self.source.session, **self.source.as_dict()}
        return {
            "name": self.name,
            "type": self.kind,
            "title": self.title,
            "description": self.description,
            "body": self.body,
            "path": str(self.path),
            "modified": self.modified,
            "current": self.current,
            "subject": self.subject,
            "source": source,
            "problem": self.problem,
        }


def one_line(text: str, most: int = 0) -> str:
    """Return `text` on one line, without what cannot be seen, of at most `most` characters."""
    if not text.isprintable():
        text = "".join(each if each.isprintable() else " " for each in text)
    flat = _SPACE.sub(" ", text).strip()
    return f"{flat[: most - 1].rstrip()}…" if most and len(flat) > most else flat


def normal(text: str) -> str:
    """Return the words of `text` and nothing else, for comparing: case, marks and spaces apart."""
    return " ".join(_WORD.findall(unicodedata.normalize("NFKC", text).casefold()))


def fingerprint(text: str) -> str:
    """Return a hash of the words of `text`, 32 hex digits; empty when there are none."""
    words = normal(text)
    if not words:
        return ""
    return hashlib.sha256(words.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def when(text: str) -> datetime | None:
    """Return the moment that `text` names in ISO 8601, in UTC; None when it names none."""
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    try:
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except OverflowError:
        return None


def stamp(moment: datetime) -> str:
    """Return `moment` as it is written: ``2026-12-02T05:10:11.123Z``."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def age(time: str, now: datetime) -> str:
    """Return how long before `now` the moment `time` was: ``today``, ``3 days ago`` …"""
    moment = when(time)
    if moment is None:
        return "of unknown age"
    days = (now.astimezone(UTC).date() - moment.date()).days
    if days <= 0:
        return "today"
    if days == 1:
        return "yesterday"
    if days < 60:
        return f"{days} days ago"
    return f"{days // 30} months ago" if days < 730 else f"{days // 365} years ago"


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
