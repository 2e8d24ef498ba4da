"""What the worker answers to an ``ask``: by the name of the question, or that there is none.

The assistant's answer comes in pieces before the reply, until somebody cancels it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from ipymemory.errors import IpymemoryError
from ipymemory.learning import told
from ipymemory.pieces import Pieces
from ipymemory.session import MemorySession

log = logging.getLogger(__name__)

Message = Mapping[str, Any]

_NO_SESSION = "The worker was asked before it was told which session it serves."


class Answers:
    """Answers through `say`, which puts a message on the pipe; `session` is None before hello."""

    def __init__(
        self,
        say: Callable[[Message], None],
        session: Callable[[], MemorySession | None],
    ) -> None:
        self._say = say
        self._session = session
        self.streaming: set[object] = set()
        """The numbers of the asks that are being answered in pieces."""

    async def answer(self, message: Message) -> None:
        """Say the reply to an ``ask``, its pieces before it. Never raises but for cancellation."""
        reply: dict[str, Any] = {"type": "reply", "id": message.get("id"), "ok": True}
        try:
            arguments = message.get("args") or {}
            name = str(message.get("name"))
            if name == "ask":
                reply["value"] = await self._stream(message.get("id"), arguments)
            else:
                reply["value"] = await self._asked(name, arguments)
        except IpymemoryError as error:
            reply |= {"ok": False, "error": str(error)}
        except Exception as error:
            log.exception("an ask failed")
            reply |= {"ok": False, "error": f"{type(error).__name__}: {error}"}
        self._say(reply)

    async def _stream(self, number: object, arguments: Message) -> dict[str, Any]:
        """Have the assistant answer, and hand on what it says while it does."""
        session, last = self._session(), arguments.get("last")
        if session is None:
            raise IpymemoryError(_NO_SESSION)
        pieces = Pieces(self._say, number)
        self.streaming.add(number)
        try:
            return await session.ask(
                str(arguments.get("question", "")),
                str(arguments.get("ask_id", "")),
                last if isinstance(last, int) else None,
                pieces.hear,
                lambda: number not in self.streaming,
            )
        finally:
            self.streaming.discard(number)
            pieces.close()

    async def _asked(self, name: str, arguments: Message) -> Any:
        session = self._session()
        if name == "ping":
            return "pong"
        if session is None:
            raise IpymemoryError(_NO_SESSION)
        if name == "status":
            session.observe()
            return session.status()
        if name == "preview":
            return session.preview()
        if name == "recall":
            return await session.recall(str(arguments["question"]), int(arguments["n"]))
        if name == "compact":
            return await session.compact()
        if name == "update_notes":
            outcome = await session.update_notes(force=bool(arguments.get("force")))
            if outcome.status != "done":
                raise IpymemoryError(
                    f"The notes were not updated: {outcome.error or outcome.status}"
                )
            return outcome.as_dict()
        if name == "update_documents":
            return (await session.update_documents()).as_dict()
        if name == "extract":
            return told(await session.extract())
        if name == "dream":
            dreamt = await session.dreaming.dream(
                session.settings, confirmed=bool(arguments.get("confirmed"))
            )
            return dreamt.as_dict()
        if name == "dream_accept":
            dreaming, id = session.dreaming, str(arguments["dream"])
            return (await dreaming.dream(session.settings, confirmed=True, plan=id)).as_dict()
        if name == "dream_undo":
            return await session.dreaming.undo(session.settings, str(arguments["dream"]))
        if name == "dream_plan":
            return (await session.dreaming.plan(session.settings)).as_plan()
        if name == "dream_gate":
            return session.dreaming.gate(session.settings).reason
        raise IpymemoryError(f"The worker knows no question called {name!r}.")
