r"""A small screen: what a terminal would show of a text with carriage returns and cursor codes.

It knows what tqdm, rich, pip and shells use: ``\r``, ``\b``, the cursor's movements, erasing.
Lines that have scrolled off can no longer change, as in a terminal.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

_LIVE = 64
"""Lines that can still be rewritten: no terminal in use moves its cursor up further."""

_WIDE = 1000
"""Columns that a code can move the cursor to; a wider screen is not in use."""

CODE = (
    r"(?:\x1b\[|\x9b)[0-?]{0,64}[ -/]{0,8}[@-~]"  # cursor, erasing, colours
    r"|\x1b\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)"  # window title, links
    r"|\x1b[PX^_][^\x1b]{0,4096}\x1b\\"
    r"|\x1b[ -/]{0,8}[0-OQ-WYZ\\`-~]"
    r"|[\x1b\x9b]"
)
"""One ANSI code, or an escape character that begins none."""

_UNFINISHED = (
    r"(?:\x1b\[|\x9b)[0-?]{0,64}[ -/]{0,8}"
    r"|\x1b[\]PX^_][^\x07\x1b]{0,4096}\x1b?"
    r"|\x1b[ -/]{0,8}"
)


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """Return `pattern`, compiled when it is first needed: loading the extension must not wait."""
    return re.compile(pattern)


def moves(text: str) -> bool:
    """Tell whether `text` holds anything that moves a cursor, but for line feeds."""
    return "\r" in text or "\x1b" in text or "\b" in text or "\x9b" in text


class Screen:
    """The lines that can still change, and a cursor; what scrolls off goes to `sink`."""

    __slots__ = ("_column", "_lines", "_rest", "_row", "_saved", "_sink", "_touched", "_widest")

    def __init__(self, sink: Callable[[str], object], widest: int | None = None) -> None:
        self._sink = sink
        self._widest = widest
        self._lines = [""]
        self._touched = [False]
        self._row = self._column = 0
        self._saved = (0, 0)
        self._rest = ""

    def feed(self, text: str) -> None:
        """Play `text`; a code that is not whole yet waits for the next call."""
        if self._rest:
            text, self._rest = self._rest + text, ""
        if not moves(text):
            self._put(text)
        else:
            self._play(text.replace("\r\n", "\n"))
        self._scroll(_LIVE)
        self._narrow()

    def rest(self) -> str:
        """Return the lines that have not gone to `sink`; wiped ones below the cursor are none."""
        count = len(self._lines)
        while count > self._row + 1 and self._touched[count - 1] and not self._lines[count - 1]:
            count -= 1
        return self._text(count)

    def _play(self, text: str) -> None:
        if "\x1b" not in text and "\b" not in text and "\x9b" not in text:
            self._return(text)
            return
        unfinished = compiled(_UNFINISHED)
        at = 0
        for match in compiled(rf"[\r\b]|{CODE}").finditer(text):
            if match.start() > at:
                self._put(text[at : match.start()])
            code = match[0]
            if code[0] in "\x1b\x9b" and unfinished.fullmatch(text, match.start()):
                self._rest = text[match.start() :]
                return
            at = match.end()
            if code == "\r":
                self._column = 0
            elif code == "\b":
                self._column = max(0, self._column - 1)
            elif len(code) > 1:
                self._obey(code)
        if at < len(text):
            self._put(text[at:])

    def _return(self, text: str) -> None:
        """Write `text`, in which only carriage returns move the cursor."""
        for index, line in enumerate(text.split("\n")):
            if index:
                self._down()
            states = line.split("\r")
            self._put(states[0])
            if len(states) > 1:
                # The last state stands; of an earlier one only what reaches beyond it.
                shown = ""
                for state in reversed(states[1:]):
                    if len(state) > len(shown):
                        shown += state[len(shown) :]
                self._column = 0
                self._put(shown)
                if sum(map(bool, states)) > 1:
                    self._touched[self._row] = True
                self._column = len(states[-1])

    def _put(self, run: str) -> None:
        """Write `run`, which holds no codes, at the cursor."""
        if self._row == len(self._lines) - 1 and self._column == len(self._lines[-1]):
            self._append(run)
            return
        for index, part in enumerate(run.split("\n")):
            if index:
                self._down()
            if not part:
                continue
            line = self._lines[self._row].ljust(self._column)
            end = self._column + len(part)
            self._lines[self._row] = line[: self._column] + part + line[end:]
            self._touched[self._row] = True
            self._column = end

    def _append(self, run: str) -> None:
        first, *more = run.rsplit("\n", _LIVE)
        if len(more) == _LIVE:
            # Everything that was changeable scrolls away at once.
            self._lines[-1] += first
            self._sink(self._text(len(self._lines)) + "\n")
            self._lines, self._touched = more, [False] * _LIVE
        else:
            self._lines[-1] += first
            self._lines += more
            self._touched += [False] * len(more)
        self._row, self._column = len(self._lines) - 1, len(self._lines[-1])
        if len(self._lines) > 4 * _LIVE:
            self._scroll(_LIVE)

    def _down(self) -> None:
        self._row += 1
        self._column = 0
        if self._row == len(self._lines):
            self._lines.append("")
            self._touched.append(False)
            if len(self._lines) > 4 * _LIVE:
                self._scroll(_LIVE)

    def _obey(self, code: str) -> None:
        """Carry out one code that moves the cursor or erases; others change no text."""
        final = code[-1]
        if code[0] == "\x1b" and code[1] != "[":
            if final == "7":
                self._saved = (self._row, self._column)
            elif final == "8":
                self._move(*self._saved)
            elif final == "M":
                self._move(self._row - 1, self._column)
            return
        numbers = [int(number) for number in compiled(r"\d{1,4}").findall(code)]
        count = (numbers[0] if numbers else 0) or 1
        mode = numbers[0] if numbers else 0
        if final == "A":
            self._move(self._row - count, self._column)
        elif final == "B":
            self._move(self._row + count, self._column)
        elif final == "C":
            self._move(self._row, self._column + count)
        elif final == "D":
            self._column = max(0, self._column - count)
        elif final == "E":
            self._move(self._row + count, 0)
        elif final == "F":
            self._move(self._row - count, 0)
        elif final == "G":
            self._move(self._row, count - 1)
        elif final in "Hf":
            self._move(count - 1, numbers[1] - 1 if len(numbers) > 1 else 0)
        elif final == "K":
            self._erase_line(mode)
        elif final == "J":
            self._erase_screen(mode)
        elif final == "s":
            self._saved = (self._row, self._column)
        elif final == "u":
            self._move(*self._saved)

    def _move(self, row: int, column: int) -> None:
        """Put the cursor into `row`, which is made if it is the next one down."""
        self._row = max(0, min(row, _LIVE - 1 if row >= len(self._lines) else row))
        while self._row >= len(self._lines):
            self._lines.append("")
            self._touched.append(False)
        self._column = max(0, min(column, max(_WIDE, self._column)))

    def _erase_line(self, mode: int) -> None:
        line = self._lines[self._row]
        if mode == 0:
            line = line[: self._column]
        elif mode == 1:
            line = " " * min(self._column + 1, len(line)) + line[self._column + 1 :]
        else:
            line = ""
        self._lines[self._row] = line
        self._touched[self._row] = True

    def _erase_screen(self, mode: int) -> None:
        if mode == 0:
            self._erase_line(0)
            del self._lines[self._row + 1 :], self._touched[self._row + 1 :]
        elif mode == 1:
            self._lines[: self._row] = [""] * self._row
            self._erase_line(1)
        elif mode == 2:
            self._lines, self._touched = [""] * (self._row + 1), [True] * (self._row + 1)

    def _scroll(self, keep: int) -> None:
        """Let go of the oldest lines, but for the last `keep`."""
        over = len(self._lines) - keep
        if over > 0:
            self._let_go(over)

    def _narrow(self) -> None:
        """Hold to the bound on memory: old lines go first, then a long line's beginning."""
        if self._widest is None:
            return
        size = sum(map(len, self._lines))
        over = 0
        while size > 2 * self._widest and over < len(self._lines) - 1:
            size -= len(self._lines[over])
            over += 1
        if over:
            self._let_go(over)
        if size > 2 * self._widest:
            cut = size - self._widest
            self._sink(self._lines[0][:cut])
            self._lines[0] = self._lines[0][cut:]
            self._column = max(0, self._column - cut)

    def _let_go(self, count: int) -> None:
        self._sink(self._text(count) + "\n")
        del self._lines[:count], self._touched[:count]
        self._row = max(0, self._row - count)
        self._saved = (max(0, self._saved[0] - count), self._saved[1])

    def _text(self, count: int) -> str:
        return "\n".join(
            line.rstrip(" ") if touched else line
            for line, touched in zip(self._lines[:count], self._touched, strict=False)
        )
