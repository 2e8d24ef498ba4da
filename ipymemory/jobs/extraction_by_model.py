"""Extraction by a model: it chooses what of a person's words is worth keeping (behaviour E).

The model works in a fork of the session's conversation, so that most of what it reads is in its
provider's cache. Its prompt carries what was said since the last look and a manifest of what is
kept (behaviour E5), so that it need not look around. The fence lets it read as the assistant does
(behaviour E6); it writes through two tools alone, which keep only what a person has said, word for
word, and tell whose words these are from the record (`learning_tools`). That check comes before the
write, so nothing that fails it was ever on disk.

Where nothing was said that could be kept, no model is asked.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ipymemory import looked_through, prompts
from ipymemory.agent import Outcome, run_agent
from ipymemory.context import Conversation
from ipymemory.extractive.doubts import passing
from ipymemory.extractive.passages import Passage
from ipymemory.extractive.remembering import MemoriesMaterial
from ipymemory.history import History
from ipymemory.learning import JOB, Context, Extracted, Keeping, Said, record
from ipymemory.learning_tools import Choosing
from ipymemory.looked_through import Shown
from ipymemory.memory_files.values import fingerprint, normal
from ipymemory.models import Model, ToolSpec
from ipymemory.permissions import Policy
from ipymemory.redaction import mask
from ipymemory.tools import Tool
from ipymemory.turns import Entry, new_id

log = logging.getLogger(__name__)

ENGINE = "anthropic"

EVERY_TURNS = 8
"""Turns after which a model looks, where the setting does not say (behaviour E4)."""

ROUNDS = 5
"""Rounds of a run (behaviour E5)."""

MOST_SAID = 200
"""Sentences, the newest, that a model is shown at once."""

_FEWEST_WORDS = 3
"""Words of a sentence that can be worth keeping."""

_END = re.compile(r"<(?=\s*/?\s*(?:said|memories)\b)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ByModel:
    """What a run by a model works with beside its `Context`; made by the session that owns it."""

    model: Model
    conversation: Conversation
    specs: tuple[ToolSpec, ...]
    """The tools that the conversation's requests name."""
    reading: Mapping[str, Tool]
    """Those that only look, and the fence around them."""
    fence: Policy


class Look:
    """One look of a model's through what of `entries` it was not shown.

    `candidates` is empty where nothing was said that could be kept: then `skip` is all there is to
    do. Raises `IpymemoryError` when the records cannot be read.
    """

    def __init__(self, context: Context, entries: Sequence[Entry]) -> None:
        self.context = context
        self.entries = tuple(entries)
        self.history = History(context.project.history, context.settings.memory.history_keep)
        before = looked_through.shown(context.folder)
        said = Said(context, self.entries, before.looked_at, before.through)
        self.keeping = Keeping.of(context)
        known = self._known()
        every = [
            each for each in said.sentences(self.history) if fingerprint(each.text) not in known
        ]
        self.said: tuple[Passage, ...] = tuple(every[-MOST_SAID:])
        through = max((each.id for each in self.entries), default="")
        self.shown = Shown(said.looked_at, max(through, before.through))
        closed = self.keeping.memory.closed
        self.candidates = () if closed else tuple(filter(_worth_a_look, self.said))

    async def run(self, by: ByModel) -> Extracted:
        """Have the model choose; return what came of it. Never raises but for cancellation."""
        context = self.context
        turns = tuple(dict.fromkeys(each.id for each in self.said))
        count = len(self.said)
        reason = f"{count:,} sentences said" if count != 1 else "1 sentence said"
        run = self.history.begin(JOB, ENGINE, reason, turns, context.folder.id)
        material = MemoriesMaterial(self.said, context.notebook, context.folder.id)
        choosing = Choosing(self.keeping, self.said, material)
        request = by.conversation.fork(self.prompt(), tools=by.specs)
        outcome = await run_agent(
            by.model,
            replace(request, once=True),
            {**by.reading, **choosing.tools()},
            choosing.policy(by.fence),
            run,
            context.bus,
            rounds=ROUNDS,
            seconds=context.settings.extraction.minutes * 60,
            one_answer=True,
            cancelled=context.cancelled,
        )
        return self._ended(outcome, choosing, run.writes)

    def prompt(self) -> str:
        """Return what the model is asked: masked, and unable to end where its marks stand."""
        return prompts.fill(
            prompts.EXTRACT_PROMPT,
            memories=_inert(self.keeping.memory.manifest()) or "(none)",
            said="\n".join(f"- [{_where(each)}] {_inert(each.text)}" for each in self.said),
        )

    def settle(self, found: Extracted) -> None:
        """Put on record how far the look got, and what is to be told; raises `IpymemoryError`."""
        if found.saved:
            self.keeping.tell_later(found.run, self.entries)
        if found.status == "done":
            looked_through.show(self.context.folder, self.shown)
        record(self.context, found, ENGINE)

    def skip(self) -> Extracted:
        """Note that there was nothing to ask a model about; raises `IpymemoryError`."""
        looked_through.show(self.context.folder, self.shown)
        return Extracted("done", new_id(), through=self.shown.through)

    def _known(self) -> frozenset[str]:
        every = (each for each in self.keeping.memory.scan() if each.current)
        return frozenset(fingerprint(each.source.quote or each.description) for each in every)

    def _ended(self, outcome: Outcome, choosing: Choosing, writes: int) -> Extracted:
        # A model that was refused until its rounds were over has looked at what there was.
        done = outcome.status in ("done", "out_of_rounds")
        keeping = self.keeping
        return Extracted(
            "done" if done else outcome.status,
            outcome.run,
            outcome.error,
            tuple(keeping.saved),
            tuple(keeping.proposed),
            tuple(choosing.refused[:10]),
            self.shown.through if done else "",
            bool(writes),
        )


def _worth_a_look(passage: Passage) -> bool:
    """Return whether a person wrote it here, in words, as a statement that may last."""
    words = normal(passage.text)
    enough = len(words.split()) >= _FEWEST_WORDS or not words.isascii()
    return passage.typed and enough and not passing(passage.text)


def _where(passage: Passage) -> str:
    cell = f" in {passage.cell}" if passage.cell else ""
    return f"{passage.kind}{cell}" if passage.typed else "came with the file"


def _inert(text: str) -> str:
    return _END.sub("‹", mask(text))
