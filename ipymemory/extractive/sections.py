"""The ten sections of behaviour S1, as bullets drawn from the story and the words.

Every line names the cell it rests on and quotes what stands there. A line's `weight` says what
gives way when a section is too long: ends of old errors go before an error that is open.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from ipymemory.extractive import lineage, phrases, prose, results
from ipymemory.extractive.material import Line
from ipymemory.extractive.story import Result, Step, Story, Trouble
from ipymemory.extractive.wording import block, code, quote, quotes, spans
from ipymemory.extractive.words import Words, quoted, session_title

_RECENT = 40
"""Steps after which an error nobody came back to is no longer part of the current state."""
_LOOKS = re.compile(r"\.(?:head|tail|sample|info)\(|\.(?:columns|dtypes|index)$|^display\(")
_SMALL_TABLE = 12

Lines = list[Line]


def name_of(section: str) -> str:
    """Return the form in which section names are compared: case and ``&`` do not matter."""
    return " ".join(section.casefold().replace("&", "and").split())


def lines_of(story: Story, words: Words, notebook: str) -> dict[str, Lines]:
    """Return the lines of each of the ten sections but the work log, by `name_of` its name."""
    made: Mapping[str, Callable[[], Lines]] = {
        "Session Title": lambda: _title(story, words, notebook),
        "Current State": lambda: _state(story, words),
        "Task specification": lambda: _task(words),
        "Files and Functions": lambda: _files(story),
        "Workflow": lambda: _workflow(story),
        "Errors & Corrections": lambda: _errors(story),
        "Codebase and System Documentation": lambda: lineage.codebase(story),
        "Learnings": lambda: _learnings(words),
        "Key results": lambda: _key_results(story),
    }
    return {name_of(name): make() for name, make in made.items()}


def _title(story: Story, words: Words, notebook: str) -> Lines:
    text = session_title(words, story, notebook)
    return [Line(text, 9)] if text else []


def _state(story: Story, words: Words) -> Lines:
    lines: Lines = []
    if not story.steps:
        return lines
    last = story.steps[-1]
    open_errors = [story.troubles[index] for index in story.unsolved]
    recent = [each for each in open_errors if len(story.steps) - each.index <= _RECENT]
    for trouble in reversed(recent[-3:]):
        lines.append(Line(f"- Open: {_error(trouble).removesuffix('; open')}", 9))
    if len(recent) > 3:
        labels = ", ".join(each.step.label for each in reversed(recent[:-3][-12:]))
        lines.append(Line(f"- Open too: {labels}", 9))
    if last.turn.status == "running":
        lines.append(Line(f"- Running, {last.label}: {_source(last)}", 9))
    for index in range(len(story.steps) - 1, -1, -1):
        step = story.steps[index]
        told = step.turn.status == "running" or any(each.step is step for each in recent[-3:])
        if not told:
            # An open error is said above; what came before it still tells where things stand.
            which = "Last" if step is last else "Last before that"
            lines.append(Line(f"- {which}, {step.label}: {phrases.phrase(story, index)}", 9))
            break
    lines += _gone(story)
    lines += _in_memory(story)
    for mark, (label, _) in list(story.marks.items())[-8:]:
        lines.append(Line(f"- To do, {label}: {quote(mark, 160)}", 8))
    for text, where in list(words.unchecked.items())[-8:]:
        lines.append(Line(f"- To do: {quote(text, 160)} ({where})", 8))
    for text, where in list(words.next.items())[-5:]:
        lines.append(Line(f"- Next: {quote(prose.without_cue(text), 200)} ({where})", 8))
    return lines


def _gone(story: Story) -> Lines:
    """Return what died with a kernel and was not made again."""
    if story.kernel not in story.restarts:
        return []
    before = story.restarts[story.kernel]
    lost = {name: label for name, label in story.lost.items() if _tells(story, name)}
    text = f"- The kernel was restarted after {before}"
    if lost:
        shown = ", ".join(f"{code(name)} {label}" for name, label in list(lost.items())[:10])
        text += f"; not made again since: {shown}" + (", …" if len(lost) > 10 else "")
    return [Line(text, 8)]


def _in_memory(story: Story) -> Lines:
    """Return the names of the living kernel that a next step would build on."""
    shown = [
        f"{code(named.name)} ({lineage.kind(named)}) {named.label}"
        for name, named in story.names.items()
        if name not in story.lost and named.type and lineage.stands_out(story, named)
    ]
    return [Line("- In memory: " + ", ".join(shown[-12:]), 6)] if shown else []


def _task(words: Words) -> Lines:
    lines = [Line(text, 8) for text in quoted(words.opening, limit=320)]
    told = {text: where for text, where in words.task.items() if text not in words.opening}
    lines += [Line(text, 6) for text in quoted(told)]
    if words.headings:
        shown = [quote(text, 60) for text in list(words.headings)[:14]]
        lines.append(Line("- Parts: " + ", ".join(each for each in shown if each), 5))
    return lines


def _files(story: Story) -> Lines:
    lines: Lines = []
    for path, file in story.files.items():
        uses = "; ".join(
            f"{verb_of(verb)} by {code(by, 60)} {label}" for verb, by, label in file.uses[-4:]
        )
        lines.append(Line(f"- {code(path, 200)} {uses}", 7))
    for definition, label in story.definitions.values():
        doc = f": {quote(definition.doc, 140)}" if definition.doc else ""
        text = f"- {code(definition.signature, 200)} {label}{doc}"
        if definition.kind == "class":
            text = f"- class {code(definition.signature, 160)} {label}{doc}"
            if definition.methods:
                text += f"; methods {spans(definition.methods, 8, 70)}"
        lines.append(Line(text, 6))
    return lines


def _workflow(story: Story) -> Lines:
    lines: Lines = []
    for command, (labels, outcome) in story.commands.items():
        text = f"- {code(command, 160)} {', '.join(labels)}"
        lines.append(Line(text + (f" → {code(outcome, 140)}" if outcome else ""), 6))
    lines += _order(story)
    return lines


def _order(story: Story) -> Lines:
    """Return how a notebook file ran, where that is not the order in which its cells stand."""
    stands = [each.turn for each in story.steps if each.turn.origin == "file"]
    if len(stands) != len(story.steps) or len(stands) < 2:
        return []
    places = sorted(range(len(stands)), key=lambda at: (_place(stands[at].id), at))
    labels = [story.steps[at].label for at in places if stands[at].execution_count is not None]
    counts = [stands[at].execution_count or 0 for at in places if stands[at].execution_count]
    lines: Lines = []
    if counts != sorted(counts):
        shown = ", ".join(labels[:40]) + (", …" if len(labels) > 40 else "")
        lines.append(Line(f"- The cells stand in another order than they ran in: {shown}", 9))
    if len(set(counts)) != len(counts):
        twice = [f"[{each}]" for each in dict.fromkeys(counts) if counts.count(each) > 1]
        lines.append(Line(f"- From more than one run: {', '.join(twice[:8])} each stand twice", 7))
    never = [story.steps[at].label for at in places if stands[at].execution_count is None]
    if never and len(never) < len(stands):
        lines.append(Line(f"- Not run: {', '.join(never[:12])}" + ", …" * (len(never) > 12), 7))
    elif never:
        lines.append(Line("- No cell has been run since outputs were cleared", 7))
    return lines


def _errors(story: Story) -> Lines:
    lines: Lines = []
    for trouble in story.troubles:
        lines.append(Line(f"- {_error(trouble)}", 6 if trouble.cured_in else 8))
    for warning, labels in story.warnings.items():
        lines.append(Line(f"- {', '.join(labels)} warns {code(warning, 200)}", 4))
    return lines


def _learnings(words: Words) -> Lines:
    lines: Lines = []
    for text, where in words.decided.items():
        prefix = "" if text.casefold().startswith("deci") else "Decided: "
        lines += [Line(line, 8) for line in quoted({text: where}, prefix=prefix)]
    learned = {text: where for text, where in words.learned.items() if text not in words.opening}
    return lines + [Line(text, 6) for text in quoted(learned)]


def _key_results(story: Story) -> Lines:
    found: list[tuple[int, Line]] = []
    place = {step.label: at for at, step in enumerate(story.steps)}
    shown: set[tuple[str, str]] = set()
    for result in story.metrics.values():
        shown.add((result.label, result.value))
        text = f"- {code(result.value, 200)} {result.label}{_with(result.note)}{_before(result)}"
        found.append((place.get(result.label, 0), Line(text, 8)))
    for expression, result in story.results.items():
        if (result.label, result.value) in shown or _is_dull(expression, result):
            continue
        text = f"- {code(expression, 120)} {result.label}{_with(result.note)}"
        if result.value:
            text += f" → {code(result.value, 240)}{_before(result)}"
        else:
            text += block(result.table)
        if expression.isidentifier() and len(result.table) > _SMALL_TABLE:
            continue
        weight = 7 if results.has_number(text) and not expression.isidentifier() else 4
        found.append((place.get(result.label, 0), Line(text, weight)))
    for (titles, _), (label, call) in story.figures.items():
        name = f"figure {quotes(titles, 6, 100)}".rstrip()
        by = f" by {code(call, 100)}" if call else ""
        found.append((place.get(label, 0), Line(f"- {label} {name}{by}", 4)))
    found.sort(key=lambda each: each[0])
    return [line for _, line in found]


def _before(result: Result) -> str:
    if not result.before:
        return ""
    return "; before " + ", ".join(
        f"{code(value, 100)} {label}{_with(note)}" for value, label, note in result.before
    )


def _with(note: str) -> str:
    return f" with {note}" if note else ""


def _is_dull(expression: str, result: Result) -> bool:
    value = result.value
    return (
        "__version__" in expression
        or ".fit(" in expression
        or _LOOKS.search(expression) is not None
        or results.is_write(expression)
        or (bool(value) and (value.startswith("<") or len(value) > 400))
    )


def _error(trouble: Trouble) -> str:
    """Return an error with its line and what cured it, or that it is open."""
    failure, step = trouble.failure, trouble.step
    labels = (
        trouble.labels if len(trouble.labels) < 5 else (trouble.labels[0], "…", trouble.labels[-1])
    )
    where = ", ".join(labels)
    if not failure.name:
        text = f"{where} the kernel ended while this ran: {_source(step)}"
    else:
        text = f"{where} {code(results.outcome(failure), 240)}"
        text += f" at {code(failure.at, 160)}" if failure.at else ""
    if failure.inside:
        there = f" [{failure.count}]" if failure.count is not None else ""
        text += f", in {code(failure.function)}{there}: {code(failure.inside, 160)}"
    if not trouble.cured_in:
        return f"{text}; open"
    return f"{text}; cured in {trouble.cured_in}" + (f": {trouble.cure}" if trouble.cure else "")


def _source(step: Step) -> str:
    lines = step.facts.lines
    return code(lines[0], 140) if lines else "an empty cell"


def verb_of(verb: str) -> str:
    """Return how the use of a file reads: ``read``, ``written`` or ``named``."""
    return {"reads": "read", "writes": "written", "names": "named"}[verb]


def _tells(story: Story, name: str) -> bool:
    named = story.names.get(name)
    return named is not None and lineage.matters(story, named)


def _place(id: str) -> int:
    digits = id.rpartition(" ")[2]
    return int(digits) if digits.isdigit() else 0
