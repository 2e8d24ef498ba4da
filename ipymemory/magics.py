"""The magics: ``%memory``, ``%%ask``, ``%ask`` and ``%%private``.

``%memory`` parses and runs what `ipymemory.commands` defines and shows the page: Markdown where
the frontend renders it, plain text in a terminal. It returns nothing.

``%%private`` is a transformer that takes the line away before the cell is compiled, so that the
rest runs as any other cell does: with ``await``, its result in ``_``, its traceback with the
right line numbers. The recorder sees the cell as it was typed and leaves it alone. The magic of
the same name is there for ``%%private?`` and for a call with arguments, which it refuses.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from IPython.core.error import UsageError
from IPython.core.magic import (
    Magics,
    cell_magic,
    line_cell_magic,
    line_magic,
    magics_class,
    no_var_expand,
)

from ipymemory.errors import IpymemoryError

if TYPE_CHECKING:
    from ipymemory.asking import Asker
    from ipymemory.commands.pages import Page
    from ipymemory.commands.place import Place, Screen
    from ipymemory.dream_shown import Cell

PREFIX = "%memory "

_ASK = re.compile(
    r"([ \t]*)%(ask|memory(?=[ \t]+(?:recall|remember)[ \t]+\S))"
    r"[ \t]+(\S|\S.*[^\s\\])[ \t]*(\n?)"
)
"""A line in which somebody asks or tells in words of their own; a backslash at its end goes on."""


def show(shell: Any, page: Page, cell: Cell | None = None) -> None:
    """Put `page` into the cell that runs: as Markdown in a kernel, as text in a terminal.

    Into the `cell` that shows how far a dream is, where there is one. What was passed over is said
    below it, and beside it where the text must be JSON alone.
    """
    from ipymemory.neutral import plain  # late: loading needs none of it

    said = () if page.pure else page.warnings
    if page.pure and page.warnings:
        sys.stderr.write(plain("\n".join((*page.warnings, ""))))
    # Names of folders and files stand on many pages, and a folder may have come from anybody.
    text = plain(page.plain)
    if getattr(shell, "kernel", None) is None:
        sys.stdout.write("\n".join((text.rstrip("\n"), *map(plain, said), "")))
        return
    from IPython.display import display

    markdown = plain("\n\n".join((page.markdown, *said)))
    text = "\n".join((text, *map(plain, said)))
    data = {"text/markdown": markdown, "text/plain": text}
    if page.dream is not None:
        from ipymemory.dream_shown import bundle  # late: loading needs none of it

        data = {**bundle(page.dream), **data}
    if cell is not None:
        cell.put(data)
    else:
        display(data, raw=True)  # type: ignore[no-untyped-call]


def refusal(error: IpymemoryError) -> UsageError:
    """Return what IPython shows of `error`: its sentence, without what moves a cursor."""
    from ipymemory.neutral import plain  # late: loading needs none of it

    return UsageError(plain(str(error)))


def answer(question: str) -> str | None:
    """Return what the person answers to `question`, or None where nobody can be asked.

    A notebook that a program runs has no standard input: IPython's StdinNotImplementedError,
    a RuntimeError.
    """
    from ipymemory.neutral import plain  # late: loading needs none of it

    try:
        return input(plain(question))
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


def with_questions(lines: list[str]) -> list[str]:
    """Return `lines` with each ``%ask TEXT`` and the like as the call that it stands for.

    IPython takes a line that ends in a question mark for a search for help, and most questions
    do; an apostrophe it takes for the begin of a string. Pure and idempotent; ``%ask?`` stays,
    and so does what stands within a string of several lines.
    """
    if not any("%ask" in each or "%memory" in each for each in lines):
        return lines
    found, above = [], ""
    for line in lines:
        asked = _ASK.fullmatch(line)
        if asked is not None and above.count('"""') % 2 == above.count("'''") % 2 == 0:
            call = f"get_ipython().run_line_magic({asked[2]!r}, {asked[3]!r})"
            found.append(f"{asked[1]}{call}{asked[4]}")
        else:
            found.append(line)
        above += line
    return found


@magics_class
class MemoryMagics(Magics):
    """Our magics for one shell; `place` says where a command is called, `asker` is who is asked."""

    shell: Any

    def __init__(self, shell: Any, place: Callable[[], Place], asker: Asker) -> None:
        """Serve `shell`."""
        super().__init__(shell)
        self._place = place
        self._asker = asker

    # What is to be remembered is nobody's template either.
    @no_var_expand
    @line_magic
    def memory(self, line: str) -> None:
        """Show and steer the memory of this notebook; without a command it is the status.

        ::

            %memory status            show what runs, what ran last and where it all lies
            %memory notes             show the session notes, or those of a notebook file
            %memory resume            say where the last kernel stopped; bring its variables back
            %memory mode              show or choose what may happen by itself in this project
            %memory pause             record nothing until resume-recording
            %memory resume-recording  record again after pause
            %memory engine            show or choose what answers: the built-in engine, or a model
            %memory preview           show exactly what a question would send to a model now
            %memory compact           let the notes stand for older cells that a model is shown
            %memory cost              what calls of models cost in this project
            %memory ask-reset         have %%ask begin a new conversation
            %memory list              list the memories of this project, newest first
            %memory show              show a memory, with where it came from
            %memory recall            find memories for a question
            %memory remember          keep a memory for this project's notebooks to come
            %memory forget            remove a memory, and do not learn it again
            %memory extract           look now for what is worth remembering in what was said
            %memory proposals         show memories that wait for a yes, accept or refuse them
            %memory dream             tidy the memories; one undo takes it back
            %memory docs              list living documents, check them, write them anew
            %memory history           list what engines wrote, newest first
            %memory diff              show what a run changed
            %memory undo              put back what was there before a run
            %memory doctor            look for what is wrong and say what to do
            %memory export            copy all that is kept of this project to a folder or .zip
            %memory purge             remove transcripts, notes and history from the disk
            %memory help              what each command does

            %memory help COMMAND tells more of one.
        """
        from IPython.utils.process import arg_split  # type: ignore[attr-defined]

        from ipymemory.commands import table  # late: loading needs none of it

        cell: list[Cell] = []
        saved = getattr(self.shell, "kernel", None) is not None

        def screen(says: Callable[[Mapping[str, Any]], str]) -> Screen:
            from ipymemory.dream_shown import Cell  # late: dreams are rare
            from ipymemory.terminal_line import Line

            if not saved:
                return Line(says)
            cell.append(Cell(self._asker.aside))
            return cell[-1]

        try:
            words = table.sentence(line)
            if words is None:
                words = arg_split(line, posix=True, strict=False)
            page = table.call(replace(self._place(), screen=screen, saved=saved), words)
        except IpymemoryError as error:
            raise refusal(error) from None
        with self._asker.aside():
            if not page.pure and (news := self._asker.news(page.markdown)):
                page = replace(page, warnings=(*page.warnings, news))
            show(self.shell, page, cell[-1] if cell else None)
            if page.next_input:
                self.shell.set_next_input(page.next_input)
        if page.run:
            self._run_again(page.run)

    def _run_again(self, cells: Sequence[tuple[str, str, str]]) -> None:
        """Run cells of an earlier kernel in this one, and say how far that went."""
        from ipymemory import run_again  # late: once in a session, if at all
        from ipymemory.commands.pages import Page

        done, said = run_again.run(self.shell, cells)
        live = self._place().live
        if live is not None and done:
            live.ran_again(done)
        with self._asker.aside():
            show(self.shell, Page(said))

    # A question is nobody's template: ``{x}`` and ``$x`` in it stay as they are.
    @no_var_expand
    @line_cell_magic
    def ask(self, line: str, cell: str | None = None) -> None:
        """Ask the assistant, which has read this notebook and its notes.

        ::

            %ask [--quiet] [--last N] TEXT

            %%ask [--quiet] [--last N]
            TEXT

            --quiet   show the answer without a line for each tool it asked for
            --last N  let it see only the newest N cells and questions

        It reads and answers; it runs no code and changes nothing. The stop button or Ctrl-C ends
        it, keeps what came, and keeps cells queued behind it from running. It needs a model: see
        ``%memory engine``. ``%memory ask-reset`` begins a new conversation.
        """
        from ipymemory import asking, stopping  # late: loading needs none of it

        try:
            question = asking.parse(line, cell)
            with stopping.Stop() as stop, self._asker.aside():
                asking.ask(self.shell, self._asker, question, stop)
        except IpymemoryError as error:
            raise refusal(error) from None

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
