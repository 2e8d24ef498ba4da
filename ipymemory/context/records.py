"""What a model said and how a conversation was compacted, kept in the session's ``worker.jsonl``.

The transcript is the kernel's; there stands the question. The exchange stands here, one message a
line, so that a worker that begins anew renders the same conversation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ipymemory import lines
from ipymemory.context.memory_index import News
from ipymemory.places import SessionFolder
from ipymemory.redaction import mask
from ipymemory.turns import Message, ToolCall, ToolResult, utc_now

MOST_TEXT = 16_000
"""Characters kept of one message: a tool's answer may be a whole file."""


@dataclass(frozen=True, slots=True)
class Compaction:
    """What stands for all that was told up to `kept_from`, a place in the transcript in bytes.

    `index` is the memory index from then on, `request` the last request of the person in it, word
    for word: the next compaction may find no newer one.
    """

    summary: str
    kept_from: int
    index: str = ""
    request: str = ""


@dataclass(frozen=True, slots=True)
class Noted:
    """How far the notes of a model went: to `at`, a place in the transcript in bytes.

    `tokens` is the size of the conversation then, or after a compaction since, not corrected.
    """

    at: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Kept:
    """What was kept of a session's conversation."""

    answers: Mapping[str, tuple[Message, ...]]
    """The exchange of each ask by the ask's id."""
    compaction: Compaction | None
    index: str | None = None
    """The memory index that it begins with; None where it never began."""
    news: tuple[News, ...] = ()
    """What was told of memories since, in order."""
    noted: Noted | None = None


def append_messages(folder: SessionFolder, ask: str, messages: Sequence[Message]) -> None:
    """Keep the exchange of an ask; raises `IpymemoryError` when it cannot be kept."""
    for number, each in enumerate(messages):
        line = {"type": "ask_message", "ask": ask, "n": number, "time": utc_now()}
        lines.append(folder.worker_log, {**line, "message": _as_dict(each)})


def append_compaction(folder: SessionFolder, compaction: Compaction) -> None:
    """Keep a compaction; raises `IpymemoryError` when it cannot be kept."""
    told = {"summary": compaction.summary, "kept_from": compaction.kept_from}
    told |= {"index": compaction.index, "request": compaction.request}
    lines.append(folder.worker_log, {"type": "compaction", "time": utc_now(), **told})


def append_noted(folder: SessionFolder, noted: Noted) -> None:
    """Keep how far the notes went; raises `IpymemoryError` when it cannot be kept."""
    told = {"at": noted.at, "tokens": noted.tokens}
    lines.append(folder.worker_log, {"type": "noted", "time": utc_now(), **told})


def append_index(folder: SessionFolder, index: str) -> None:
    """Keep the index that the conversation begins with; raises `IpymemoryError`."""
    lines.append(folder.worker_log, {"type": "memory_index", "time": utc_now(), "text": index})


def append_news(folder: SessionFolder, news: News) -> None:
    """Keep what is told of memories; raises `IpymemoryError` when it cannot be kept."""
    told = {"after": news.after, "lines": dict(news.lines)}
    lines.append(folder.worker_log, {"type": "memory_news", "time": utc_now(), **told})


def read(folder: SessionFolder) -> Kept:
    """Return what was kept; raises `PlaceError` when it cannot be read."""
    told, _ = lines.read(folder.worker_log)
    answers: dict[str, tuple[Message, ...]] = {}
    compaction = noted = index = None
    news: list[News] = []
    for each in told:
        if each.get("type") == "noted":
            numbers = (each.get("at"), each.get("tokens"))
            noted = Noted(*(number if isinstance(number, int) else 0 for number in numbers))
        if each.get("type") == "compaction":
            index, news = str(each.get("index", "")), []
            summary, request = (str(each.get(name, "")) for name in ("summary", "request"))
            compaction = Compaction(summary, _place(each, "kept_from"), index, request)
        if each.get("type") == "memory_index":
            index, news = str(each.get("text", "")), []
        if each.get("type") == "memory_news" and isinstance(each.get("lines"), Mapping):
            changed = {str(file): str(line) for file, line in each["lines"].items()}
            news.append(News(_place(each, "after"), changed))
        message = _message(each.get("message")) if each.get("type") == "ask_message" else None
        if message is not None:
            ask = str(each.get("ask", ""))
            answers[ask] = (*answers.get(ask, ()), message)
    return Kept(answers, compaction, index, tuple(news), noted)


def as_kept(message: Message) -> Message:
    """Return the message as it will be read back: bounded, masked, without its provider's blocks.

    Thinking that is replayed after anything before it changed is refused, so it is not kept.
    """
    return replace(
        message,
        text=_short(message.text),
        results=tuple(replace(each, text=_short(each.text)) for each in message.results),
        blocks=(),
    )


def _short(text: str) -> str:
    masked = mask(text)
    if len(masked) <= MOST_TEXT:
        return masked
    half = MOST_TEXT // 2
    return f"{masked[:half]}\n[… {len(masked) - MOST_TEXT:,} characters …]\n{masked[-half:]}"


def _place(line: Mapping[str, Any], key: str) -> int:
    place = line.get(key)
    return place if isinstance(place, int) else 0


def _as_dict(message: Message) -> dict[str, Any]:
    value: dict[str, Any] = {"role": message.role, "text": message.text}
    if message.calls:
        value["calls"] = [
            {"id": each.id, "name": each.name, "input": dict(each.input)} for each in message.calls
        ]
    if message.results:
        value["results"] = [
            {"id": each.id, "text": each.text, "refused": each.refused} for each in message.results
        ]
    return value


def _message(value: object) -> Message | None:
    if not isinstance(value, Mapping) or value.get("role") not in ("user", "assistant"):
        return None
    return Message(
        value["role"],
        str(value.get("text", "")),
        tuple(
            ToolCall(str(each.get("id")), str(each.get("name")), each.get("input") or {})
            for each in _objects(value.get("calls"))
        ),
        tuple(
            ToolResult(str(each.get("id")), str(each.get("text")), bool(each.get("refused")))
            for each in _objects(value.get("results"))
        ),
    )


def _objects(value: object) -> list[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []
