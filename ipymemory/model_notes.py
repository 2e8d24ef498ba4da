"""When a model brings the session notes up to date: by how its conversation has grown.

The gates of behaviour S3 spare money; until the first one opens, and wherever no model may work,
the notes are the extractive engine's.
"""

from __future__ import annotations

from collections.abc import Callable

from ipymemory import gates
from ipymemory.config import Settings
from ipymemory.context import Conversation
from ipymemory.errors import IpymemoryError
from ipymemory.gates import Gate
from ipymemory.ran import Ran
from ipymemory.session_model import SessionModel
from ipymemory.transcript import Transcript


class ModelNotes:
    """The gates of one session's notes by a model, and how its last runs fared."""

    def __init__(self, model: SessionModel, clock: Callable[[], float]) -> None:
        self.ran = Ran(clock)
        self._model = model
        self._clock = clock
        self._conversation: Conversation | None = None
        self._closed = ""

    def look(self, transcript: Transcript, settings: Settings) -> None:
        """See which engine may work now, and what is new in its conversation. Never raises."""
        self._conversation, self._closed = None, ""
        try:
            chosen = self._model.chosen(settings)
            if chosen.name == "anthropic":
                self._conversation = self._model.followed(transcript, settings)
                self._model.prepare()
            else:
                self._closed = chosen.reason
        except IpymemoryError as error:
            self._closed = str(error)
            self.ran.badly(str(error))

    @property
    def conversation(self) -> Conversation | None:
        """The conversation, where a model may write; as of the last `look`."""
        return self._conversation

    def gate(self, settings: Settings, *, rest_seconds: float, busy: bool) -> Gate:
        """Return whether a model may bring the notes up to date now, and why."""
        conversation = self._conversation
        if conversation is None:
            return Gate(False, self._closed or "the notes are the built-in engine's")
        notes = settings.session_notes
        if not notes.enabled:
            return Gate(False, "session notes are turned off (SessionNotes.enabled)")
        gate = gates.model_notes(
            conversation.standing(),
            first=round(notes.first_tokens * conversation.share),
            growth=round(notes.update_tokens * conversation.share),
            calls=notes.update_calls,
            idle=rest_seconds >= settings.engine.idle_seconds or conversation.answered_in_words,
            busy=busy,
        )
        if gate.open and self.ran.wait:
            return Gate(False, f"the last try failed; the next is in {self.ran.wait:.0f} s")
        budget = self._model.ledger.gate(settings) if gate.open else gate
        return gate if budget.open else budget

    def due(self, settings: Settings, *, rest_seconds: float, busy: bool) -> float | None:
        """Return the seconds until the gate opens by itself, None where something must happen."""
        if self.gate(settings, rest_seconds=rest_seconds, busy=busy).open:
            return 0.0
        # Two things pass by themselves: the wait after a failure, and the time to an idle moment.
        idle = settings.engine.idle_seconds
        later = max(idle - rest_seconds, self.ran.wait, 0.0)
        wait, self.ran.not_before = self.ran.not_before, 0.0
        try:
            opens = self.gate(settings, rest_seconds=max(rest_seconds, idle), busy=busy).open
        finally:
            self.ran.not_before = wait
        return later if opens else None
