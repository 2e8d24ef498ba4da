"""The magics: ``%memory`` and ``%%private``.

``%memory`` parses and runs what `ipymemory.commands` defines and shows the page: Markdown where
the frontend renders it, plain text in a terminal. It returns nothing.

``%%private`` is a transformer that takes the line away before the cell is compiled, so that the
rest runs as any other cell does: with ``await``, its result in ``_``, its traceback with the
right line numbers. The recorder sees the cell as it was typed and leaves it alone. The magic of
the same name is there for ``%%private?`` and for a call with arguments, which it refuses.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from IPython.core.error import UsageError
from IPython.core.magic import Magics, cell_magic, line_magic, magics_class

from ipymemory import commands
from ipymemory.commands.pages import Page
from ipymemory.commands.place import Place
from ipymemory.errors import IpymemoryError

PREFIX = "%memory "


def show(shell: Any, page: Page) -> None:
    """Put `page` into the cell that runs: as Markdown in a kernel, as text in a terminal."""
    if getattr(shell, "kernel", None) is None:
        sys.stdout.write("\n".join((page.plain.rstrip("\n"), *page.warnings, "")))
        return
    from IPython.display import display

    markdown = "\n\n".join((page.markdown, *page.warnings))
    text = "\n".join((page.plain, *page.warnings))
    display(  # type: ignore[no-untyped-call]
        {"text/markdown": markdown, "text/plain": text}, raw=True
    )


def answer(question: str) -> str | None:
    """Return what the person answers to `question`, or None where nobody can be asked.

    A notebook that a program runs has no standard input: IPython's StdinNotImplementedError,
    a RuntimeError.
    """
    try:
        return input(question)
    except (EOFError, RuntimeError, OSError):
        return None


def without_private(lines: list[str]) -> list[str]:
    """Return `lines` without a first line ``%%private``; for IPython's clean-up transformers.

    Pure and idempotent, since IPython calls it several times a cell. The line is left empty, so
    that a traceback counts as the person does, unless another cell magic follows, which must be
    the first line.
    """
    if not lines or lines[0].strip() != "%%private":
        return lines
    return lines[1:] if "".join(lines[1:2]).startswith("%%") else ["\n", *lines[1:]]


# A terminal asks whether a cell is complete; there the line must stay, as for any cell magic,
# and IPython leaves out what says this of itself.
without_private.has_side_effects = True  # type: ignore[attr-defined]


@magics_class
class MemoryMagics(Magics):
    """``%memory`` and ``%%private`` for one shell; `place` says where a command is called."""

    shell: Any

    def __init__(self, shell: Any, place: Callable[[], Place]) -> None:
        """Serve `shell`."""
        super().__init__(shell)
        self._place = place

    @line_magic
    def memory(self, line: str) -> None:
        """Show and steer the memory of this notebook."""
        from IPython.utils.process import arg_split  # type: ignore[attr-defined]

        try:
            page = commands.call(self._place(), arg_split(line, posix=True, strict=False))
        except IpymemoryError as error:
            raise UsageError(str(error)) from None
        show(self.shell, page)

    @cell_magic
    def private(self, line: str, cell: str) -> None:
        """Run the cell and record nothing of it.

        ::

            %%private
            password = "..."

        So does a first line ``# ipymemory: off``.
        """
        if line.strip():
            raise UsageError("%%private takes no arguments. The right form is: %%private")
        self.shell.run_cell(f"%%private\n{cell}")


MemoryMagics.memory.__doc__ = f"{MemoryMagics.memory.__doc__}\n\n{commands.overview(PREFIX)}\n"
