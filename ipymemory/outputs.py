"""The outputs thread: masks what cells printed, displayed and raised, and writes it.

Masking takes longer than appending, so it is not done on the main thread. The thread also finds
out which packages a cell imported, looks once more at cells whose output may come late, and hands
on that cells began and ended.

Each waking takes the interpreter from the cell that runs. So the thread waits on its queue, and
once woken lets more come for a moment and then does it all.
"""

from __future__ import annotations

import heapq
import json
import logging
import os
import queue
import re
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

from ipymemory.background import in_background
from ipymemory.capture import Captured
from ipymemory.config import Settings
from ipymemory.errors import IpymemoryError
from ipymemory.excerpts import clip, privacy_filter
from ipymemory.names import Snapshot
from ipymemory.private import Quotes, is_private
from ipymemory.redaction import Masker, is_secret_name
from ipymemory.turns import new_id, utc_now

log = logging.getLogger(__name__)

CLOSE_SECONDS = 0.5
"""What writing the last outputs may take when the kernel ends."""

BATCH_SECONDS = 0.02
"""What the thread lets come once it is woken: far less than a person notices."""

_LEAST = 200
"""Bytes of a piece that is cut to what room is left; a smaller rest is not worth it."""

_LEFT_OUT = "[… {:,} more outputs left out …]"

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode

_IMPORT = re.compile(r"^[ \t]*(?:import|from)[ \t]+([^\n#]+)", re.MULTILINE)
_ROOT = re.compile(r"(?:^|,)\s*([^\W\d]\w*)")


class Turn(Protocol):
    """What the thread needs of a turn that ended."""

    id: str
    source: str
    captured: Captured
    names: list[Snapshot]
    late_until: float
    count: int | None
    """Its execution count."""
    prompt: int | None
    """The number of the terminal's prompt; in a kernel None, for a result is a message there."""


class Outputs:
    """Writes ``outputs`` lines through `write` in a daemon thread, from `start` to `close`."""

    def __init__(
        self,
        settings: Settings,
        masker: Masker,
        write: Callable[[dict[str, Any]], None],
        notify: Callable[[str], None],
    ) -> None:
        self._settings = settings
        self._masker = masker
        self._write = write
        self._notify = notify
        self._queue: queue.SimpleQueue[Callable[[], None] | str | None] = queue.SimpleQueue()
        self._late: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0
        self._thread: threading.Thread | None = None
        self._quotes = Quotes()
        self._packages: set[str] = set(sys.stdlib_module_names) | {"ipymemory"}

    def start(self) -> None:
        """Start the thread."""
        if self._thread is None:
            self._thread = in_background(self._work, "ipymemory-outputs")
            self._queue.put(self._learn_environment)

    def tell(self, word: str) -> None:
        """Have `notify` called with `word`, once for all that is told in a batch."""
        self._queue.put(word)

    def put(self, turn: Turn) -> None:
        """Have the outputs of a turn written that ended. Never blocks."""
        captured = turn.captured
        self._queue.put(lambda: self._turn(turn, captured))

    def put_late(self, turn: Turn, forget: Callable[[], object]) -> None:
        """Have what comes until ``turn.late_until`` written then, and call `forget`."""
        captured = turn.captured

        def write_late() -> None:
            forget()
            if captured:
                most = self._settings.capture.outputs_bytes
                self._line({"id": turn.id, **self._told(captured, None, most), "late": True})

        def wait() -> None:
            self._count += 1
            heapq.heappush(self._late, (turn.late_until, self._count, write_late))

        self._queue.put(wait)

    def keep_secret(self, source: str, count: int | None = None) -> None:
        """Remember a private cell by its lines and its number: a later traceback may quote it."""
        self._queue.put(lambda: self._remember(source, count))

    def keep_secrets(self, sources: list[str]) -> None:
        """The same for those of `sources` that are private."""
        for count, source in enumerate(sources):
            if is_private(source):
                self.keep_secret(source, count)

    def settle(self) -> None:
        """Wait until what was put so far is written, `CLOSE_SECONDS` at most."""
        if self._thread is not None:
            done = threading.Event()
            self._queue.put(done.set)
            done.wait(CLOSE_SECONDS)

    def close(self) -> None:
        """Write what waits, late or not, and end the thread; takes `CLOSE_SECONDS` at most."""
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join(CLOSE_SECONDS)
            self._thread = None

    def _work(self) -> None:
        going = True
        while going:
            batch = self._batch()
            going = None not in batch
            for job in batch:
                if callable(job):
                    self._do(job)
            now = time.monotonic() if going else float("inf")
            while self._late and self._late[0][0] <= now:
                self._do(heapq.heappop(self._late)[2])
            for word in dict.fromkeys(each for each in batch if isinstance(each, str)):
                self._notify(word)

    def _batch(self) -> list[Callable[[], None] | str | None]:
        """Wait for something to do; return it and what else is there a moment later."""
        wait = max(0.0, self._late[0][0] - time.monotonic()) if self._late else None
        try:
            batch = [self._queue.get(timeout=wait)]
        except queue.Empty:
            return []
        if batch[0] is not None:
            time.sleep(BATCH_SECONDS)
        with suppress(queue.Empty):
            while batch[-1] is not None:
                batch.append(self._queue.get_nowait())
        return batch

    def _do(self, job: Callable[[], None]) -> None:
        try:
            job()
        except IpymemoryError as error:
            log.warning("the output of a cell was not recorded: %s", error)
        except BaseException:
            log.exception("the output of a cell was not recorded")

    def _turn(self, turn: Turn, captured: Captured) -> None:
        most = self._settings.capture.outputs_bytes
        if turn.count is not None:
            self._quotes.public(turn.count)
        level = self._settings.privacy.outputs
        names = fitting([self._masked_name(each, level) for each in turn.names], most // 2)
        told = self._told(captured, turn.prompt, most - _size(names))
        self._line({"id": turn.id, **told, "names": names})
        packages = self._imported(turn.source)
        if packages:
            self._write(
                {
                    "type": "event",
                    "id": new_id(),
                    "time": utc_now(),
                    "name": "packages",
                    "packages": packages,
                }
            )

    def _line(self, fields: dict[str, Any]) -> None:
        self._write({"type": "outputs", **fields})

    def _told(self, captured: Captured, count: int | None, room: int) -> dict[str, Any]:
        """Return outputs and error of a cell, masked, filtered and in at most `room` bytes.

        `count` is that of a terminal's cell, whose result came as text.
        """
        level = self._settings.privacy.outputs
        error = None
        if captured.error is not None:
            name, value, traceback = captured.error
            error = {"name": name[:200]}
            if level != "none":
                error["value"] = self._clean("error", value, (), level)
                error["traceback"] = self._clean("error", traceback, (), level)
            room -= _size(error)
        pieces = captured.pieces()
        if count is not None:
            pieces = with_result(pieces, count)
        if level == "none":
            pieces = []
        if pieces:
            self._learn_environment()
        # Twice the room is enough to mask: it is seldom that masking makes a text much shorter.
        pieces = bounded(pieces, 2 * room)
        for piece in pieces:
            piece["text"] = self._clean(piece["kind"], piece["text"], piece["mime"], level)
        kept = [each for each in pieces if each["text"] or each["mime"]]
        return {"outputs": bounded(kept, room), "error": error}

    def _clean(self, kind: Any, text: str, mime: Any, level: str) -> str:
        text = self._masker.mask(self._quotes.without(text))
        return text if level == "all" else privacy_filter(kind, text, mime, level)

    def _masked_name(self, name: Snapshot, level: str) -> dict[str, Any]:
        kept = name.as_dict()
        if level in ("shapes", "none"):
            kept.pop("columns", None)
        if level == "none":
            kept.pop("shape", None)
        if "columns" in kept:
            kept["columns"] = [self._masker.mask(each) for each in kept["columns"]]
        return kept

    def _remember(self, source: str, count: int | None) -> None:
        # Learned, not kept: a password assigned in a private cell is masked wherever it shows.
        self._masker.mask_source(source)
        self._quotes.add(source, count)

    def _imported(self, source: str) -> dict[str, str]:
        """Return versions of packages that the source names and that were not told before."""
        found: dict[str, str] = {}
        for match in _IMPORT.finditer(source):
            for root in _ROOT.findall(match[1]):
                if root in self._packages or root not in sys.modules:
                    continue
                self._packages.add(root)
                version = _version(root)
                if version:
                    found[root] = version
        return found

    def _learn_environment(self) -> None:
        """Let the values of secret variables of the environment be masked."""
        for name, value in list(os.environ.items()):
            if is_secret_name(name):
                self._masker.learn_named(name, value)


def bounded(pieces: list[dict[str, Any]], room: int) -> list[dict[str, Any]]:
    """Return as many of `pieces` as fit into `room` bytes of JSON, and a note of the others.

    The last one goes first, since a cell ends with what it came to; then in their order.
    """
    if sum(map(_size, pieces)) <= room:
        return pieces
    note = {"kind": "display", "text": _LEFT_OUT.format(len(pieces)), "mime": [], "truncated": 0}
    room -= _size(note)
    kept: dict[int, dict[str, Any]] = {}
    for place in (len(pieces) - 1, *range(len(pieces) - 1)):
        piece = pieces[place]
        size = _size(piece)
        if size > room and room >= 2 * _LEAST:
            text, more = clip(piece["text"], len(piece["text"]) * (room - _LEAST) // size)
            piece = {**piece, "text": text, "truncated": piece["truncated"] + more}
            size = _size(piece)
        if size <= room:
            room -= size
            kept[place] = piece
    found = [kept[place] for place in sorted(kept)]
    left_out = len(pieces) - len(kept)
    if left_out:
        found.insert(max(0, len(found) - 1), {**note, "text": _LEFT_OUT.format(left_out)})
    return found


def fitting(names: list[dict[str, Any]], room: int) -> list[dict[str, Any]]:
    """Return as many of `names` as fit into `room` bytes of JSON, without columns if need be."""
    if _size(names) <= room:
        return names
    found = []
    for each in names:
        if _size(each) > room:
            each = {key: value for key, value in each.items() if key != "columns"}
        room -= _size(each)
        if room < 0:
            break
        found.append(each)
    return found


def _size(value: Any) -> int:
    return len(_encode(value).encode("utf-8", "backslashreplace")) + 1


def with_result(pieces: list[dict[str, Any]], count: int) -> list[dict[str, Any]]:
    """Return a terminal's `pieces` with what stands behind ``Out[3]:`` as the result it is."""
    prompt = re.compile(rf"(?:^|\n)Out\[{count}\]: ?\n?")
    found = []
    for piece in pieces:
        places = list(prompt.finditer(piece["text"])) if piece["kind"] == "stream" else []
        if not places:
            found.append(piece)
            continue
        printed = piece["text"][: places[-1].start()]
        if printed:
            found.append({**piece, "text": f"{printed}\n"})
        result = piece["text"][places[-1].end() :].rstrip("\n")
        found.append({**piece, "kind": "result", "text": result, "mime": ["text/plain"]})
    return found


def _version(root: str) -> str:
    """Return the version of a loaded package, as far as it is told, without running its code."""
    told = vars(sys.modules[root]).get("__version__")
    if isinstance(told, str):
        return told[:50]
    from importlib import metadata

    try:
        return metadata.version(root)[:50]
    except (metadata.PackageNotFoundError, ValueError):
        return ""
