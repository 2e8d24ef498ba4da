"""The system's calls on open files as they were when this was loaded.

A kernel runs code of the user's, and a test in a notebook may put something else in the place of
``os.write`` (`unittest.mock.patch`), so that it raises, or writes to a list. What is ours must go
on, and must not be seen by who looks at what is written.
"""

from __future__ import annotations

from os import close, dup, fstat, lseek, open, read, write

__all__ = ["above", "close", "dup", "fstat", "lseek", "open", "read", "write"]

_STANDARD = 3


def above(descriptor: int) -> int:
    """Return `descriptor`, or one for the same file where it is the number of a standard stream.

    User code may close those, and what a library then prints would go into a file of ours. Raises
    `OSError`, and then it is closed.
    """
    low: list[int] = []
    try:
        while descriptor < _STANDARD:
            low.append(descriptor)
            descriptor = dup(descriptor)
    finally:
        for each in low:
            close(each)
    return descriptor
