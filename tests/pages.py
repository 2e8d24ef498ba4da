"""A page for tests: speaks to a real kernel's comms as the lab extension does, with any message."""

from __future__ import annotations

import queue
import time
import uuid
from collections.abc import Callable
from typing import Any

from kernels import Kernel


class Page:
    """One page at one kernel. `pushed` are the messages that the kernel told by itself."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.comm = uuid.uuid4().hex
        self.pushed: list[dict[str, Any]] = []
        self.pushes: list[str] = []
        self.replies: list[dict[str, Any]] = []
        self.displays: list[dict[str, Any]] = []
        """What displays of cells that have run were changed to."""
        self.closed = False
        self.subshell: str | None = None
        """The kernel's thread that this page's messages are for, where it has such."""

    def open(self, **hello: Any) -> dict[str, Any]:
        """Open the page's comm and say hello; return the reply."""
        self._send("comm_open", {"target_name": "ipymemory.rpc", "data": {}})
        return self.say("hello", frontend="test", notebook="a.ipynb", **hello)

    def say(self, kind: str, *, v: Any = 1, **fields: Any) -> dict[str, Any]:
        """Send one message and return its reply."""
        id = uuid.uuid4().hex
        return self.say_raw({"v": v, "type": kind, "id": id, **fields}, id)

    def say_raw(self, data: Any, id: Any = None) -> dict[str, Any]:
        """Send anything as one message and return the reply that bears `id`."""
        before = len(self.replies)
        self._send("comm_msg", {"data": data})
        self.until(lambda: any(each.get("id") == id for each in self.replies[before:]), "a reply")
        return next(each for each in self.replies[before:] if each.get("id") == id)

    def cells(self, *cells: tuple[str, str], **fields: Any) -> dict[str, Any]:
        """Tell markdown cells, each an id and a source."""
        told = [
            {"id": id, "source": source, "hash": f"h-{id}-{len(source)}"} for id, source in cells
        ]
        return self.say("cells", cells=told, **fields)

    def until(self, true: Callable[[], object], what: str, seconds: float = 20) -> None:
        """Take in what the kernel publishes until `true()` is."""
        end = time.monotonic() + seconds
        while not true():
            assert time.monotonic() < end, f"not within {seconds:g} s: {what}"
            self.listen(0.1)

    def listen(self, seconds: float) -> None:
        """Take in one message of the kernel's, if one comes within so long."""
        try:
            message = self.kernel.client.get_iopub_msg(timeout=seconds)
        except queue.Empty:
            return
        kind, content = message["msg_type"], message["content"]
        if kind == "comm_open" and content["target_name"] == "ipymemory.push":
            self.pushes.append(content["comm_id"])
        elif kind == "comm_msg":
            into = self.replies if content["comm_id"] == self.comm else self.pushed
            into.append(content["data"])
        elif kind == "update_display_data":
            self.displays.append(content["data"])
        elif kind == "comm_close" and content["comm_id"] == self.comm:
            self.closed = True

    def _send(self, kind: str, content: dict[str, Any]) -> None:
        client = self.kernel.client
        message = client.session.msg(kind, {"comm_id": self.comm, **content})
        if self.subshell is not None:
            message["header"]["subshell_id"] = self.subshell
        client.shell_channel.send(message)
