"""An answer as it grows on the screen: one display in a notebook, rich Markdown in a terminal.

Whatever the model says goes through `neutral` first. Each tool call is one quiet line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from ipymemory.neutral import neutral, one_line, plain

_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})")
_LITERAL = re.compile(r"[^\w\s.,:/…-]|_")
"""What could mean something in Markdown."""


@dataclass(slots=True)
class _Words:
    text: str = ""
    shown: str | None = None
    """The text made harmless, while it has not changed."""


@dataclass(slots=True)
class _Call:
    tool: str
    about: str
    refused: bool = False
    noted: str = ""
    """What it did that a person should know, in a few words."""

    def line(self, mark: str) -> str:
        """Return the call as one line, what it is about between two `mark`."""
        tool = re.sub(r"\W", "", one_line(self.tool, 30)) or "tool"
        about = f" {mark}{one_line(self.about)}{mark}" if self.about.strip() else ""
        emphasis = "*" if mark else ""
        noted = one_line(self.noted, 200) or ("refused" if self.refused else "")
        noted = neutral(noted).strip() if mark else noted
        return f"{emphasis}{tool}{emphasis}{about}{f' ({noted})' if noted else ''}"


@dataclass(slots=True)
class Growing:
    """What has come of an answer, words and tool calls in order; `quiet` leaves out the calls."""

    quiet: bool = False
    doing: str = ""
    """What the assistant is doing, to be shown below while it works; no part of the answer."""
    _parts: list[_Words | _Call] = field(default_factory=list)
    _note: str = ""

    def add(self, piece: Mapping[str, Any]) -> None:
        """Take in a piece; one that is of no known kind is passed over."""
        last = self._parts[-1] if self._parts else None
        if "text" in piece or "again" in piece:
            if not isinstance(last, _Words):
                last = _Words()
                self._parts.append(last)
            again = "again" in piece
            last.text = str(piece["again"]) if again else last.text + str(piece["text"])
            last.shown = None
            # Its words say themselves what it does.
            self.doing = ""
        elif "call" in piece:
            self._parts.append(_Call(str(piece["call"]), str(piece.get("about") or "")))
        elif "refused" in piece and isinstance(last, _Call):
            last.refused = True
        elif "noted" in piece and isinstance(last, _Call):
            last.noted = str(piece["noted"])
        elif "doing" in piece:
            self.doing = one_line(str(piece["doing"]))

    def replace(self, text: str) -> None:
        """Put `text` in place of all words: some of them were lost on the way."""
        self._parts = [each for each in self._parts if isinstance(each, _Call)]
        self._parts.append(_Words(text))

    def note(self, text: str) -> None:
        """Say `text`, Markdown, below the answer: why it ends here."""
        self._note = text

    @property
    def empty(self) -> bool:
        """Whether there is nothing to show."""
        return not self.markdown()

    def markdown(self) -> str:
        """Return it as Markdown that does nothing but show."""
        blocks: list[str] = []
        calls: list[str] = []
        for each in (*self._parts, _Words(self._note)):
            if isinstance(each, _Call):
                calls += [] if self.quiet and not each.noted else [each.line("`")]
                continue
            if each.shown is None:
                each.shown = neutral(each.text).strip("\n").rstrip()
            if each.shown:
                blocks += ["\\\n".join(calls)] if calls else []
                blocks.append(each.shown)
                calls = []
        return "\n\n".join([*blocks, "\\\n".join(calls)] if calls else blocks)

    def plain(self) -> str:
        """Return it as plain text."""
        blocks = [
            each.line("") if isinstance(each, _Call) else plain(each.text).strip("\n").rstrip()
            for each in (*self._parts, _Words(self._note))
            if not (self.quiet and isinstance(each, _Call) and not each.noted)
        ]
        return "\n\n".join(each for each in blocks if each)


def _entity(found: re.Match[str]) -> str:
    return f"&#{ord(found[0])};"


class Screen(Protocol):
    """Where an answer is shown while it grows."""

    def show(self, answer: Growing) -> None:
        """Show the answer as far as it has come."""

    def close(self, answer: Growing) -> None:
        """Show the whole answer and let the screen go."""


class Notebook:
    """One display of a cell, updated in place."""

    def __init__(self) -> None:
        self._display: Any = None

    def show(self, answer: Growing) -> None:
        """Show the answer as far as it has come."""
        from IPython.display import display

        working = f"{answer.doing}…" if answer.doing else ""
        markdown = (answer.markdown(), f"*{_LITERAL.sub(_entity, working)}*" if working else "")
        data = {
            "text/markdown": "\n\n".join(filter(None, markdown)),
            "text/plain": "\n\n".join(filter(None, (answer.plain(), working))),
        }
        if self._display is None:
            self._display = display(data, raw=True, display_id=True)  # type: ignore[no-untyped-call]
        else:
            self._display.update(data, raw=True)

    def close(self, answer: Growing) -> None:
        """Show the whole answer."""
        if not answer.empty:
            self.show(answer)


class Terminal:
    """Markdown in a terminal: what is finished is printed, the rest of it moves below."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live

        self._console = Console(highlight=False)
        self._live = Live(
            console=self._console,
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
            vertical_overflow="ellipsis",
        )
        self._printed = ""

    def show(self, answer: Growing) -> None:
        """Show the answer as far as it has come."""
        if not self._console.is_terminal:
            return
        if not self._live.is_started:
            self._live.start()
        rest = self._rest(answer)
        finished = rest[: settled(rest)]
        self._print(finished)
        self._live.update(self._growing(rest[len(finished) :], answer.doing), refresh=True)

    def close(self, answer: Growing) -> None:
        """Show the whole answer and leave the terminal as it was."""
        if self._live.is_started:
            self._live.update("", refresh=True)
            self._live.stop()
        self._print(self._rest(answer))

    def _rest(self, answer: Growing) -> str:
        """Return what is not printed yet; all of it when what was printed has been taken back."""
        text = answer.markdown()
        if not text.startswith(self._printed):
            self._printed = ""
        return text[len(self._printed) :]

    def _print(self, text: str) -> None:
        self._printed += text
        if text.strip():
            self._console.print(self._rendered(text))

    def _growing(self, text: str, doing: str) -> Any:
        if not doing:
            return self._rendered(text)
        from rich.console import Group
        from rich.text import Text

        line = Text(f"{doing}…", style="dim italic", no_wrap=True, overflow="ellipsis")
        return Group(*([self._rendered(text), Text("")] if text.strip() else []), line)

    def _rendered(self, text: str) -> Any:
        from rich.markdown import Markdown

        # An address is shown beside its words: a link in a terminal would hide where it leads.
        return Markdown(text.strip("\n"), hyperlinks=False)


def settled(markdown: str) -> int:
    """Return how many characters of growing Markdown are finished blocks, and do not change."""
    at = end = 0
    fence = ""
    for line in markdown.splitlines(keepends=True):
        at += len(line)
        found = _FENCE.match(line)
        if found is not None and (not fence or found[1].startswith(fence)):
            fence = "" if fence else found[1]
        if not fence and not line.strip():
            end = at
    return end
