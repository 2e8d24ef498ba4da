"""A session's conversation, as it would be sent: only ever appended to, until it is compacted.

A provider caches a prompt by its exact beginning. So what was shown once stays as it was, by the
steps of the transcript: output that comes late is told of at the end, an answer stands where it was
asked for, and the beginning changes only with a compaction. A worker that starts anew reads the
same lines and renders the same text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ipymemory import assistant, gates
from ipymemory.config import Settings
from ipymemory.context import compaction, memory_index, records
from ipymemory.context.compaction import Limits, Piece, size_of, size_of_tools
from ipymemory.context.memory_index import Index, News
from ipymemory.context.rendering import later, text_of
from ipymemory.models import Request, ToolSpec, Usage
from ipymemory.places import SessionFolder
from ipymemory.redaction import mask
from ipymemory.steps import Step
from ipymemory.turns import Ask, Message, Turn, tokens

_HEARD = Message("assistant", "(noted)")
"""Stands behind each cell, since a conversation takes turns."""

_LEVELS = ("all", "no-tables", "shapes", "none")

_FACTORS = (0.5, 3.0)
"""How far the meter is ever corrected: beyond that a server counts something else."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of what would be sent, for a person to look at. `tokens` by the meter."""

    name: str
    tokens: int
    text: str


class Conversation:
    """The conversation of one session. Raises `IpymemoryError` where its records cannot be read."""

    def __init__(self, folder: SessionFolder, settings: Settings) -> None:
        self.settings = settings
        self.factor = 1.0
        """By how much real usage differs from the estimate; 1 until a model told its usage."""
        self.corrected = False
        self._folder = folder
        self._steps: Sequence[Step] = ()
        self._read = 0
        self._asked: dict[str, int] = {}
        """Where each question stands, in bytes of the transcript."""
        self._pieces: list[Piece] = []
        self._before: int | None = None
        found = records.read(folder)
        self._answers = dict(found.answers)
        self._compaction = found.compaction
        self._noted = found.noted
        self._index = found.index
        self._news = list(found.news)
        self._told = 0
        """How many of the news stand among the pieces."""

    def remember(self, now: Index | None) -> None:
        """Begin with the index, or tell at the end what differs in it from what was told.

        None where it cannot be read now: then nothing is told, and once it can be read, all of it
        is news. Call it after `follow`. Raises `IpymemoryError` when it cannot be kept on record.
        """
        if self._index is None:
            index = mask(now.text) if now is not None else ""
            records.append_index(self._folder, index)
            self._index = index
            return
        if now is None:
            return
        known = memory_index.lines_of(self._index)
        for each in self._news:
            known.update(each.lines)
        changed = memory_index.changes(known, now)
        if changed:
            news = News(max((each.at for each in self._pieces), default=0), changed)
            records.append_news(self._folder, news)
            self._news.append(news)
            self._tell_news(news.after)

    def follow(self, steps: Sequence[Step]) -> None:
        """Take in what is new of the steps of a transcript; another list is another transcript."""
        if steps is not self._steps:
            self._steps, self._read, self._before = steps, 0, None
            self._asked, self._pieces, self._told = {}, [], 0
        beginning = self._compaction.kept_from if self._compaction is not None else -1
        while self._read < len(steps):
            step = steps[self._read]
            self._read += 1
            if step.at > beginning:
                # What was told of memories stands behind what it came after.
                self._tell_news(step.at - 1)
                self._take(step)
            elif isinstance(step.entry, Ask):
                # Its end may stand behind what was compacted, and must not bring it back.
                self._asked[step.entry.id] = step.at
        self._tell_news(steps[-1].at if steps else 0)

    def _tell_news(self, until: int) -> None:
        while self._told < len(self._news) and self._news[self._told].after <= until:
            news = self._news[self._told]
            self._told += 1
            said = (Message("user", memory_index.told(news.lines)), _HEARD)
            self._pieces.append(Piece(news.after, "", said, size_of(said), False, True))

    def _take(self, step: Step) -> None:
        entry = step.entry
        if isinstance(entry, Ask):
            if entry.id not in self._asked:
                self._asked[entry.id] = step.at
                self._add(step.at, entry.id, self._answers.get(entry.id, ()))
            return
        level = self.level
        added = step.added and isinstance(entry, Turn)
        text = later(entry, level) if added else text_of(entry, level)  # type: ignore[arg-type]
        if text:
            said = (Message("user", text), _HEARD)
            self._add(step.at, entry.id, said, isinstance(entry, Turn) and not added)

    def _add(self, at: int, id: str, messages: tuple[Message, ...], cell: bool = False) -> None:
        if messages:
            self._pieces.append(Piece(at, id, messages, size_of(messages), cell))

    def answered(self, ask: str, messages: Sequence[Message]) -> None:
        """Keep the exchange of an ask; raises `IpymemoryError` when it cannot be kept."""
        said = tuple(records.as_kept(each) for each in messages)
        self._answers[ask] = said
        last = self._pieces[-1].at if self._pieces else 0
        self._add(self._asked.get(ask, last), ask, said)
        records.append_messages(self._folder, ask, said)

    def fork(
        self,
        last: str,
        *,
        tools: tuple[ToolSpec, ...] = (),
        turns: int | None = None,
        since: str = "",
    ) -> Request:
        """Return the conversation with `last` as its end, to be answered.

        Of its turns only the newest `turns` where that is a number, and only what began after the
        entry `since` where there is one.
        """
        messages = self._messages(turns, since)
        marks = {each for each in (self._before, len(messages) - 1) if each is not None}
        if turns is None:
            self._before = len(messages) - 1 if messages else None
        return Request(
            assistant.SYSTEM,
            (*messages, Message("user", last)),
            tools,
            breakpoints=tuple(sorted(each for each in marks if 0 <= each < len(messages))),
        )

    @property
    def tokens(self) -> int:
        """The tokens of what would be sent now, without a question."""
        return round(self._size * self.factor)

    @property
    def _size(self) -> int:
        """The same before it is corrected: a correction is no growth."""
        size = tokens(assistant.SYSTEM) + sum(each.size for each in self._pieces)
        size += tokens(memory_index.beginning(self._index or ""))
        return size + (tokens(self._compaction.summary) if self._compaction is not None else 0)

    @property
    def limit(self) -> int:
        """The tokens past which the conversation is compacted (behaviour S10)."""
        notes = self.settings.session_notes
        least = min(notes.context_tokens, notes.context_tokens_unmetered)
        limit = notes.context_tokens if self.corrected else least
        return min(limit, self._window)

    @property
    def share(self) -> float:
        """What a model's window leaves of the numbers of the notes and of the kept tail, up to 1.

        They are meant for a conversation of `SessionNotes.context_tokens` (behaviour S10).
        """
        return min(1.0, self._window / int(self.settings.session_notes.context_tokens))

    @property
    def _window(self) -> int:
        """Nine tenths of what the model takes at once, in tokens."""
        return int(self.settings.engine.window_tokens) * 9 // 10

    def standing(self) -> gates.Context:
        """Return how the conversation stands since a model last brought the notes up to date."""
        noted = self._noted
        at, before = (noted.at, noted.tokens) if noted is not None else (-1, 0)
        new = (each for each in self._pieces if each.at > at)
        calls = sum(each.cell + sum(len(one.calls) for one in each.messages) for each in new)
        grown = round(max(0, self._size - before) * self.factor)
        return gates.Context(self.tokens, grown, calls, noted is not None)

    @property
    def answered_in_words(self) -> bool:
        """Whether the newest of it is an answer that used no tool (behaviour, "idle")."""
        last = next((each.messages for each in reversed(self._pieces) if not each.news), ())
        return bool(last) and last[-1] is not _HEARD and not any(each.calls for each in last)

    def noted(self, at: int) -> None:
        """Keep that a model brought the notes up to date with all up to `at`.

        Raises `IpymemoryError` when it cannot be kept on record.
        """
        self._noted = records.Noted(at, self._size)
        records.append_noted(self._folder, self._noted)

    @property
    def at(self) -> int:
        """How far the conversation goes, as a place in the transcript in bytes."""
        return self._pieces[-1].at if self._pieces else -1

    def metered(self, request: Request, usage: Usage) -> None:
        """Correct the meter by what a model really counted of `request`."""
        estimate = tokens(request.system) + size_of(request.messages) + size_of_tools(request.tools)
        if estimate >= 1000 and usage.prompt:
            low, high = _FACTORS
            self.factor = min(high, max(low, usage.prompt / estimate))
            self.corrected = True

    def compact(self, notes: str, through: str, index: str = "") -> bool:
        """Put `notes` in the place of the turns before the kept tail; return whether that helped.

        `notes` cover the entries up to `through`, and `index` is the memory index from now on.
        Nothing is done where there are no notes, or where nothing would go. Raises
        `IpymemoryError` when it cannot be kept on record.
        """
        limits = self.settings.session_notes
        first = compaction.kept(
            self._told_pieces(),
            through,
            Limits(
                limits.kept_turns,
                round(limits.kept_tokens * self.share),
                round(limits.kept_tokens_most * self.share),
            ),
        )
        if not notes.strip() or first == 0:
            return False
        text = compaction.summary(notes, limits.section_tokens, self._last_request())
        self._drop(first, text, index)
        return True

    def to_sum_up(self) -> int:
        """Return how many pieces a summary by a model may stand for: all but the newest tokens."""
        pieces = self._told_pieces()
        most = round(self.settings.session_notes.kept_tokens * self.share)
        size, first = 0, len(pieces)
        while first and size + pieces[first - 1].size <= most:
            first -= 1
            size += pieces[first].size
        return first

    def sum_up(self, pieces: int, text: str, index: str = "") -> None:
        """Put `text`, a model's summary of all there is, in the place of the first `pieces`.

        `index` is the memory index from now on. Raises `IpymemoryError` when it cannot be kept on
        record.
        """
        self._drop(pieces, compaction.summed_up(text, self._last_request()), index)

    def _drop(self, first: int, summary: str, index: str) -> None:
        pieces = self._told_pieces()
        kept_from, request = pieces[first - 1].at, self._last_request()
        made = records.Compaction(summary, kept_from, mask(index), request)
        records.append_compaction(self._folder, made)
        self._compaction, self._before, self._index = made, None, made.index
        self._pieces, self._news, self._told = pieces[first:], [], 0
        # What is new for the notes is counted from the size that is left.
        noted = records.Noted(self._noted.at if self._noted is not None else -1, self._size)
        records.append_noted(self._folder, noted)
        self._noted = noted

    def _told_pieces(self) -> list[Piece]:
        """Return what was told but of memories: these a compaction reads anew."""
        return [each for each in self._pieces if not each.news]

    def parts(self) -> list[Part]:
        """Return what would be sent, in order, for a person to read."""
        found = [Part("instructions", tokens(assistant.SYSTEM), assistant.SYSTEM)]
        if text := memory_index.beginning(self._index or ""):
            found.append(Part("memory index", tokens(text), text))
        if self._compaction is not None:
            text = self._compaction.summary
            found.append(Part("notes of what was before", tokens(text), text))
        for each in self._pieces:
            text = "\n\n".join(f"{one.role}: {_shown(one)}" for one in each.messages)
            name = "memories since" if each.news else "cell" if each.cell else "prose or ask"
            found.append(Part(name, each.size, text))
        return found

    def _messages(self, turns: int | None, since: str) -> tuple[Message, ...]:
        pieces = [each for each in self._pieces if each.news or each.id > since]
        if turns is not None:
            cells = [at for at, each in enumerate(pieces) if each.cell]
            first = cells[-turns] if 0 < turns <= len(cells) else 0
            pieces = [each for at, each in enumerate(pieces) if each.news or at >= first]
        found: tuple[Message, ...] = ()
        if text := memory_index.beginning(self._index or ""):
            found = (Message("user", text), _HEARD)
        if self._compaction is not None and turns is None and not since:
            found += (Message("user", self._compaction.summary), _HEARD)
        return found + tuple(message for each in pieces for message in each.messages)

    def _last_request(self) -> str:
        asked = [each for each in self._pieces if not each.cell and len(each.messages) > 1]
        questions = [each.messages[0].text for each in asked if each.messages[-1] is not _HEARD]
        if questions:
            return questions[-1]
        return self._compaction.request if self._compaction is not None else ""

    @property
    def level(self) -> str:
        """What may be sent of outputs: the stricter of ``Privacy.sent_outputs`` and ``outputs``."""
        privacy = self.settings.privacy
        chosen = (str(privacy.sent_outputs), str(privacy.outputs))
        return max(chosen, key=lambda each: _LEVELS.index(each) if each in _LEVELS else 9)


def _shown(message: Message) -> str:
    calls = [f"[{each.name} {dict(each.input)}]" for each in message.calls]
    results = [each.text for each in message.results]
    return "\n".join(filter(None, (message.text, *calls, *results)))
