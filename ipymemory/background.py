"""How a thread of ours is started in the user's process: it ends with it, and no debugger stops."""

from __future__ import annotations

import threading
from collections.abc import Callable


def in_background(target: Callable[[], None], name: str) -> threading.Thread:
    """Return a thread that does `target`, started.

    Raises `RuntimeError` where there can be no more threads, or the interpreter is about to end.
    """
    thread = threading.Thread(target=target, daemon=True, name=name)
    # As ipykernel marks its own: a debugger must not stop in them.
    thread.pydev_do_not_trace = True  # type: ignore[attr-defined]
    thread.is_pydev_daemon_thread = True  # type: ignore[attr-defined]
    thread.start()
    return thread
