"""A question to the assistant on its way: on record, then to the worker, then its end on record.

What an answer looks like on its way to a screen is told in `streamed`.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ipymemory.client import MOST_ASKED, Client, fits
from ipymemory.errors import CommandError
from ipymemory.streaming import Stream
from ipymemory.transcript import TranscriptWriter
from ipymemory.turns import new_id, utc_now


@contextlib.contextmanager
def asking(
    question: str,
    last: int | None,
    begun: Mapping[str, Any],
    writer: TranscriptWriter,
    client: Client,
    ended: Callable[[Mapping[str, Any]], None],
) -> Iterator[Stream]:
    """Put the masked `question` on record and to the worker; give the stream of the answer.

    `begun` is what else its line holds; `ended` gets the line of its end, whatever ends the
    block. Raises `IpymemoryError` when it cannot be recorded or asked.
    """
    id, since = new_id(), time.perf_counter()
    if not fits(question):
        raise CommandError(
            f"Nothing was asked: the question is longer than the {MOST_ASKED // 1024} KB that "
            "fit into one. Put the long part into a cell, run that, and ask about it."
        )
    writer.append({"type": "ask", "id": id, "time": utc_now(), **begun, "question": question})
    status, stream = "error", None
    try:
        with client.stream("ask", question=question, ask_id=id, last=last) as stream:
            yield stream
        done = isinstance(stream.value, dict) and stream.value.get("status") == "done"
        status = "ok" if done and not stream.error else "error"
    except KeyboardInterrupt:
        status = "interrupted"
        raise
    finally:
        told = stream.value if stream is not None and isinstance(stream.value, dict) else {}
        ended(
            {
                "type": "ask_end",
                "id": id,
                "time": utc_now(),
                "status": status,
                "chars": told.get("chars", stream.chars if stream is not None else 0),
                "calls": told.get("calls", 0),
                "duration_ms": round((time.perf_counter() - since) * 1000, 3),
            }
        )
