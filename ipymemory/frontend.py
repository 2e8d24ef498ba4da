"""The open notebook's page: two comms to the lab extension, and what goes over them.

``ipymemory.push`` is opened by the kernel and carries what the kernel tells. ``ipymemory.rpc`` is
opened by the page, one message and one reply at a time. One comm for both would make the page's
requests wait for the running cell: a kernel answers a comm where it last sent on it.

What the page sends is untrusted: it is read by `page_messages`, never run, and answered with a
sentence where it is refused. Nothing that comes or goes here reaches a cell: each way in ends in
one ``except``. Requests come on a thread of the kernel's own while a cell runs, where the kernel
has such threads, and wait for the cell where it has none. Until a page speaks, what reads its
words is not even imported.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ipymemory.config import Settings
    from ipymemory.live import LiveSession
    from ipymemory.page_updates import Updates
    from ipymemory.places import Project

log = logging.getLogger(__name__)

VERSION = 1
"""Of the messages, also in the page's `protocol.ts`."""

PUSH = "ipymemory.push"
RPC = "ipymemory.rpc"

MOST_PAGES = 20
"""Pages of one kernel that are listened to, the newest: each tab opens one, each reload too."""

MOST_DREAM = 240.0
"""Seconds that a dream is waited for that was agreed to: it only puts files in place."""


class Frontend:
    """The page's end in the kernel, from `install` to `remove`. No method raises."""

    def __init__(self, shell: Any, session: LiveSession) -> None:
        self._session = session
        self._kernel = getattr(shell, "kernel", None)
        self._pid = os.getpid()
        self._lock = threading.RLock()
        self._push: Any = None
        self._pages: list[Any] = []
        self._hello = False
        self._version = ""
        self.unknown = False
        """Whether a page answered that it has no lab extension of ours."""
        self._documents: Updates | None = None
        self.editing = ""
        """The markdown cell that somebody is writing in, by its id, or nothing."""

    @property
    def connected(self) -> bool:
        """Whether a page with the lab extension is there, as far as the kernel knows."""
        return self._hello and bool(self._pages)

    @property
    def page_version(self) -> str | None:
        """The version of the lab extension in the page, None as long as no page speaks."""
        return self._version if self.connected else None

    def install(self) -> None:
        """Listen for pages, and tell those that are open already."""
        manager = getattr(self._kernel, "comm_manager", None)
        if manager is not None:
            _quietly(lambda: manager.register_target(RPC, self._opened))
            _quietly(self._announce)

    def remove(self) -> None:
        """Let every page go and listen no more. In a child that was forked, nothing."""
        manager = getattr(self._kernel, "comm_manager", None)
        if manager is None or os.getpid() != self._pid:
            return
        _quietly(lambda: manager.unregister_target(RPC, self._opened))
        with self._lock:
            comms, self._pages, self._push = [*self._pages, self._push], [], None
        for each in comms:
            if each is not None:
                _quietly(each.close)

    def heard(self, event: Mapping[str, Any]) -> None:
        """Tell the page what a worker's event means for it."""
        _quietly(lambda: self._pass_on(event))

    def take_back(self, cell: str, now: str, then: str, job: str, *, again: bool) -> None:
        """Have the page make `then` of a document that says `now`: a person undid an update."""
        _quietly(lambda: self._updates().take_back(cell, now, then, job, again=again))

    def shows(self, cell: str) -> bool:
        """Return whether a page is there that shows this markdown cell."""
        return self.connected and self._session.page.find(cell) is not None

    def push(self, kind: str, **fields: Any) -> bool:
        """Tell the page something; return whether there is one to tell."""
        push = self._push
        if push is None or not self.connected or os.getpid() != self._pid:
            return False
        return _quietly(lambda: push.send({"v": VERSION, "type": kind, **fields}))

    def _pass_on(self, event: Mapping[str, Any]) -> None:
        kind, details = event.get("kind"), event.get("details")
        if not isinstance(details, Mapping):
            return
        if event.get("job") == "dream" and self.connected:
            from ipymemory import page_dream  # late: dreams are rare

            if (dream := page_dream.told(event)) is not None:
                self.push("dream", **dream)
        if kind == "document_now":
            self._updates().began(details)
        elif kind == "documents_wait":
            self._updates().saved.look()
        elif kind == "doing" and event.get("job") == "magic_docs":
            self._updates().does(str(details.get("text", "")))
        elif kind == "document":
            self._updates().made(details, str(event.get("run", "")))
        elif kind in ("finished", "failed") and self.connected:
            from ipymemory import page_standing  # late: there is rarely a page

            self.push("notes", text=page_standing.notes(self._session))
            self.push("status", **page_standing.state(self._session))

    # Comms. Messages may come on a thread of the kernel's.

    def _announce(self) -> None:
        from comm import create_comm, get_comm_manager  # late: only a kernel has it

        with self._lock:
            old = self._push
            if old is not None:
                # Without a close: a page that was reloaded never knew it and would complain.
                old._closed = True
                get_comm_manager().comms.pop(old.comm_id, None)
            self._push = push = create_comm(target_name=PUSH, data={"v": VERSION})
            # A page without our extension closes it at once, as JupyterLab does with any comm
            # that it does not know.
            push.on_close(lambda _: self._refused(push))

    def _refused(self, push: Any) -> None:
        from comm import get_comm_manager

        with self._lock:
            if push is self._push:
                self.unknown = not self._hello
                # By it a page that comes later finds us, and gets one of its own.
                push._closed = False
                get_comm_manager().comms[push.comm_id] = push

    def _opened(self, comm: Any, _message: Any) -> None:
        def listen() -> None:
            comm.on_msg(lambda message: self._answer(comm, message))
            comm.on_close(lambda _: self._closed(comm))
            with self._lock:
                self._pages.append(comm)
                for each in self._pages[:-MOST_PAGES]:
                    self._pages.remove(each)
                    _quietly(each.close)

        _quietly(listen)

    def _closed(self, comm: Any) -> None:
        with self._lock:
            if comm in self._pages:
                self._pages.remove(comm)
            if not self._pages:
                self.editing = ""

    def _answer(self, comm: Any, message: Any) -> None:
        from ipymemory import page_messages  # late: there is rarely a page

        data: object = None
        try:
            data = message["content"]["data"]
            kind, body = page_messages.head(data)
            reply = self._reply(kind, body) if body.get("v") == VERSION else _unsupported()
        except page_messages.Refused as error:
            reply = {"type": "refused", "text": str(error)}
        except Exception:  # whatever a page sends, nothing comes out into the user's kernel
            log.exception("a message of the page could not be answered")
            reply = {"type": "refused", "text": "The kernel could not use this message."}
        answer = {"v": VERSION, "id": page_messages.answer_id(data), **reply}
        _quietly(lambda: comm.send(answer))

    def _reply(self, kind: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the reply to a message; raises `Refused`."""
        from ipymemory.page_messages import Refused

        known: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
            "hello": self._on_hello,
            "cells": self._on_cells,
            "editing": self._on_editing,
            "applied": self._on_applied,
            "accepted": self._on_accepted,
            "conflict": self._on_conflict,
            "dismissed": self._on_dismissed,
            "command": self._on_command,
        }
        if kind not in known:
            raise Refused("This kernel knows no such message, and it was ignored.")
        return known[kind](body)

    def _on_hello(self, body: Mapping[str, Any]) -> dict[str, Any]:
        from ipymemory import __version__, page_dream, page_messages, page_standing

        page_messages.short(body, "frontend")
        self._version, self.unknown = page_messages.short(body, "package"), False
        self._session.page.afresh()
        self._hello = True
        # A page that was reloaded does not know the comm that the one before it had.
        self._announce()
        return {
            "type": "welcome",
            "version": __version__,
            "notes": page_standing.notes(self._session),
            "updating": self._updates().writing,
            "dream": page_dream.standing(*self._here()),
            **page_standing.state(self._session),
        }

    def _here(self) -> tuple[Project, Settings]:
        return self._session.project, self._session.settings

    def _on_cells(self, body: Mapping[str, Any]) -> dict[str, Any]:
        from ipymemory import page_messages

        cells = page_messages.cells(body)
        refused = (*cells.refused, *self._session.page.take(cells, paused=self._session.paused))
        if cells.full and not cells.more:
            self._updates().saved.look()
            self._updates().saved.send()
        return {"type": "ok", "refused": [{"cell": id, "text": text} for id, text in refused]}

    def _on_editing(self, body: Mapping[str, Any]) -> dict[str, Any]:
        from ipymemory import page_messages

        self.editing = page_messages.cell_id(body)
        return {"type": "ok"}

    def _on_applied(self, body: Mapping[str, Any]) -> dict[str, Any]:
        return self._on_document(body, "applied")

    def _on_accepted(self, body: Mapping[str, Any]) -> dict[str, Any]:
        return self._on_document(body, "accepted")

    def _on_conflict(self, body: Mapping[str, Any]) -> dict[str, Any]:
        return self._on_document(body, "conflict")

    def _on_dismissed(self, body: Mapping[str, Any]) -> dict[str, Any]:
        return self._on_document(body, "dismissed")

    def _on_document(self, body: Mapping[str, Any], outcome: str) -> dict[str, Any]:
        from ipymemory import page_messages

        cell, job = page_messages.cell_id(body), page_messages.short(body, "job")
        self._updates().told(cell, job, outcome)
        return {"type": "ok"}

    def _on_command(self, body: Mapping[str, Any]) -> dict[str, Any]:
        from ipymemory import page_documents, page_dream, page_messages, page_standing

        name = page_messages.short(body, "name")
        if name == "notes":
            return {"type": "notes", "text": page_standing.notes(self._session)}
        if name == "status":
            return {"type": "status", **page_standing.state(self._session)}
        if name == page_documents.STANDING:
            self._updates().saved.look()
            return {"type": "ok"}
        if name in page_dream.COMMANDS:
            reply = page_dream.command(name, body, *self._here(), self._of_dream)
            if name == page_dream.DISMISS:
                self._dreamt(reply["state"])
            return reply
        raise page_messages.Refused(
            "There is no such command. The page may ask for “notes”, “status”, “documents” and "
            "“dream”, and press the buttons of a dream."
        )

    def _of_dream(self, question: str, id: str) -> None:
        """Have the worker do something with the dream `id`, on a thread that waits for it."""
        from ipymemory import page_dream, page_messages
        from ipymemory.errors import IpymemoryError

        if self._session.worker == "not started":
            raise page_messages.Refused(
                "There is no worker yet that could do it, since nothing is on record here. Run a "
                "cell first."
            )

        def ask() -> None:
            try:
                told = self._session.ask(question, MOST_DREAM, dream=id)
                why = str(told.get("error") or "")
            except IpymemoryError as error:
                why = str(error)
            state = page_dream.standing(*self._here())
            self.push("dream", state=state, **({"notice": why} if why else {}))
            self._dreamt(state)

        # Whatever else goes wrong is the log's: nothing of a thread may reach a cell.
        threading.Thread(target=lambda: _quietly(ask), daemon=True).start()

    def _dreamt(self, state: Mapping[str, Any]) -> None:
        """Have the cell that shows a dream say what became of it by a button."""
        from ipymemory import dream_shown

        _quietly(lambda: dream_shown.settle(state))

    def _updates(self) -> Updates:
        """Return what goes to and fro about documents; made when there is something."""
        with self._lock:
            if self._documents is None:
                from ipymemory.page_updates import Updates  # late: there is rarely a page

                self._documents = Updates(self._session, self.push)
            return self._documents


def _unsupported() -> dict[str, Any]:
    from ipymemory import __version__

    text = (
        f"This kernel has ipymemory {__version__}, which speaks version {VERSION}. Install the "
        "same version for the page and the kernel."
    )
    return {"type": "unsupported", "versions": [VERSION], "text": text}


def _quietly(step: Callable[[], object]) -> bool:
    """Do `step`; return whether it went well. What goes wrong is the log's and nobody else's."""
    try:
        step()
    except Exception:  # comms run code of the kernel's, at its end also on sockets that are closed
        log.debug("the page could not be reached", exc_info=True)
        return False
    return True
