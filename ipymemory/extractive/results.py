"""What the outputs of one cell say: metrics, the last value, tables, figures, warnings.

Outputs are quoted, never computed with. What is only progress (bars, rates, object addresses) is
left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ipymemory.extractive import tracebacks
from ipymemory.extractive.material import Failure, Said
from ipymemory.extractive.wording import clean
from ipymemory.turns import Output, Turn

_MOST = 16_000
"""Characters of one output that are read: the most that a transcript keeps of one."""
_NUMBER = r"[-+]?(?:\d[\d,]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_METRIC = re.compile(
    r"(?<![\w.])(?P<name>[A-Za-z_][\w@%/²\-]*(?:[ (][\w@%./²\-]+\)?){0,4})\s*(?::|=|->|→)\s*"
    rf"[$€£]?(?P<value>{_NUMBER})(?![\w:]|[-/]\d)"
)
_KNOWN = re.compile(
    r"(?i)(?<![\w.])(?P<name>(?:[a-z]+[_ ]){0,2}(?:loss|acc|accuracy|f1|auc|rmse|mae|mse|mape|r2"
    r"|score|precision|recall|perplexity|bleu|error))\s+(?:is\s+|of\s+)?"
    rf"(?P<value>{_NUMBER})(?![\w:])"
)
_NOISE = re.compile(
    r"(?i)(?:epochs?|steps?|iter|iterations?|batch|it|eta|time|elapsed|seed|line|column|pid|size"
    r"|port|at|id|index|fold|round|memory|cell|in|out|item|max_iter|year|width|height)\Z"
)
_CUT = re.compile(r"… [\d,]+ (?:characters|more outputs) left out …")
_SKIPPED = re.compile(
    r"\d+%\s*\||\bit/s\b|\bs/it\b|━{3,}|█{2,}|={8,}>?|\[#+|^\s*\d+/\d+ \[|" + _CUT.pattern
)
_WARNING = re.compile(r"\b(?P<name>[A-Z]\w*Warning):\s*(?P<text>.*)")
_SHAPE = re.compile(r"\[(?P<rows>\d+) rows x (?P<columns>\d+) columns\]")
_OBJECT = re.compile(
    r"^\[?<.*>\]?,?\s*$|^Text\(|<[\w.]+ (?:object )?at 0x|^Figure\(|^\(<|^\[?Text\(", re.DOTALL
)
_INSTALLED = re.compile(r"Successfully installed (?P<what>.*)")
_PACKAGE = re.compile(r"(?P<name>[A-Za-z][\w.\-]*?)-(?P<version>\d[\w.+!]*)(?=\s|$)")
_WRITES = re.compile(r"\.(?:write|to|save)\w*\(")
_BRIEF = 5
_DIGITS = re.compile(r"\d[\d.,]*")
_FOOT = re.compile(r"(?:Name: .*)?dtype: \w+$|Name: .*, dtype: |Length: \d+")
_NUMPY = re.compile(r"np\.(?:float|int|uint|bool|str)\w*\((?P<inner>[^()]*)\)$")
_TIMES = re.compile(r"CPU times: |Wall time: ")
_TOOK = re.compile(r"(?m)^(?:Wall time: .{1,60}|.{1,60} per loop \(mean.{1,80})$")


def said_by(turn: Turn) -> Said:
    """Return what the outputs of `turn` say. Never raises."""
    printed: list[str] = []
    warnings: list[str] = []
    metrics: dict[str, str] = {}
    versions: list[tuple[str, str]] = []
    value, shape, took = "", "", ""
    table: tuple[str, ...] = ()
    figures = 0
    for output in turn.outputs:
        figures += _is_figure(output)
        text = output.text[:_MOST]
        if not text.strip() or output.kind == "error" or _CUT.fullmatch(text.strip("[] \n")):
            continue
        found = _SHAPE.search(text)
        if found:
            shape = f"{found['rows']} x {found['columns']}"
        if output.kind == "stream":
            lines = [
                line for line in text.splitlines() if line.strip() and not _SKIPPED.search(line)
            ]
            warnings += _warnings(lines)
            if _is_warning(lines):
                continue
            for line in lines:
                for installed in _INSTALLED.finditer(line):
                    versions += [
                        (m["name"], m["version"]) for m in _PACKAGE.finditer(installed["what"])
                    ]
            lines = [line for line in lines if not _TIMES.match(line)]
            measured = _TOOK.search(text)
            took = clean(measured.group()) if measured else took
            printed += lines
        elif not _OBJECT.search(text.strip()[:2000]):
            rows = tuple(
                "…" if _CUT.search(row) else row.rstrip()
                for row in text.splitlines()
                if row.strip()
            )
            if len(rows) > 2 and _FOOT.match(rows[-1]):
                rows = rows[:-1]
            if len(rows) == 1:
                value, table = _bare(clean(rows[0])), ()
            else:
                value, table = "", rows
    for line in printed:
        metrics.update(_metrics(line))
    failure = turn.error
    return Said(
        failure=tracebacks.read(failure, turn.source, turn.execution_count) if failure else None,
        metrics=tuple(metrics.items())[-8:],
        printed=clean(printed[-1])[:400] if printed else "",
        brief=0 < len(printed) <= _BRIEF,
        value=value[:600],
        table=table[:40],
        shape=shape,
        figures=figures,
        warnings=tuple(dict.fromkeys(warnings))[:3],
        versions=tuple(dict.fromkeys(versions)),
        took=took,
    )


def _bare(value: str) -> str:
    """Return a scalar of numpy's as people read it: ``0.5`` for ``np.float64(0.5)``."""
    match = _NUMPY.match(value)
    return match["inner"] if match else value


def is_table(rows: tuple[str, ...]) -> bool:
    """Return whether `rows` stand in columns, as pandas prints a frame or a series."""
    return len(rows) > 1 and sum("  " in row.strip() for row in rows) * 2 > len(rows)


def is_write(expression: str) -> bool:
    """Return whether an expression writes: what it returns is a count of bytes, no result."""
    return _WRITES.search(expression) is not None


def told_apart(line: str) -> str:
    """Return what a printed line is about, its numbers aside; nothing when it has none."""
    return _DIGITS.sub("#", line) if has_number(line) else ""


def has_number(text: str) -> bool:
    """Return whether `text` holds a digit."""
    return any(char.isdigit() for char in text)


def _metrics(line: str) -> Iterator[tuple[str, str]]:
    """Yield the line for the metrics named in it: one entry, so that the line stays whole.

    The key is the names, so that a later line about the same things takes this one's place.
    """
    if len(line) > 400 or not has_number(line):
        return
    names = [match["name"].strip() for match in (*_METRIC.finditer(line), *_KNOWN.finditer(line))]
    told = [name for name in dict.fromkeys(names) if not _NOISE.match(name.split(" ")[0])]
    if told:
        yield " ".join(told).casefold(), clean(line)


def _is_figure(output: Output) -> bool:
    return any(
        each.startswith("image/") or "plotly" in each or "vega" in each for each in output.mime
    )


def _warnings(lines: list[str]) -> Iterator[str]:
    for line in lines:
        match = _WARNING.search(line)
        if match:
            yield clean(f"{match['name']}: {match['text']}")[:300]


def _is_warning(lines: list[str]) -> bool:
    """Return whether a stream is a warning with the line of code below it, and nothing else."""
    return 0 < len(lines) <= 12 and _WARNING.search(lines[0]) is not None


def outcome(failure: Failure) -> str:
    """Return the error as people write it: ``KeyError: 'x'``."""
    return f"{failure.name}: {failure.value}" if failure.value else failure.name
