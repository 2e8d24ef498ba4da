"""What Markdown cells and comments say: titles, the task, cues for learnings and decisions.

Sentences are quoted as they stand. Which ones is decided by cue words alone, in a few languages;
a question is no learning, and a living document's own text is nobody's words.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

_MOST = 20_000
_FENCE = re.compile(r"(?ms)^ {0,3}(?P<mark>`{3,}|~{3,}).*?(?:^ {0,3}(?P=mark)[`~]*\s*$|\Z)")
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_HEADING = re.compile(r"^ {0,3}(?P<level>#{1,6})[ \t]+(?P<text>.*?)[ \t#]*$")
_ITEM = re.compile(r"^\s*(?:[-*+]|\d{1,3}[.)])\s+(?P<text>.*)$")
_CHECK = re.compile(r"^\[(?P<mark>[ xX])\]\s+(?P<text>.*)$")
_END = re.compile(r"(?<=[.!?…])[\"')\]]*\s+(?=[\"'(\[`*_A-ZÀ-ÞА-Я0-9])|(?<=[。！？])")
_QUOTATION = re.compile(r"\s*(?:[-*+]\s+)?>|(?: {4}|\t)(?![-*+]|\d+[.)])")
_LIVING = re.compile(r"(?i)^\s{0,3}#{1,6}\s*magic\s+doc\s*:")

_TASK = re.compile(
    r"(?i)\b(?:goals?|aims?|objectives?|tasks?|purpose|exercise|assignment|deliverables?|deadline"
    r"|due|hypothes[ie]s|questions?|we want|i want|wants? to|need to|has to|must|should|we will"
    r"|we'll|in this notebook|this notebook"
    r"|ziele?|aufgabe|wollen|möchten?|soll(?:en)?|muss|müssen"
    r"|objectif|tâche|voulons|devons|il faut"
    r"|objetivos?|tarea|queremos|debemos|hay que|tarefa|obiettivo|compito"
    r"|цель|задача|нужно)\b|目标|任务|目的|需要|目標|課題"
)
_DECIDED = re.compile(
    r"(?i)\b(?:decided|decision|we chose|i chose|we choose|chosen|instead of|rather than"
    r"|going with|go with|from now on|we drop|we keep|i drop|i keep|we use|will use|prefer"
    r"|settled on"
    r"|entschieden|entscheidung|stattdessen|ab jetzt"
    r"|nous avons choisi|décidé|décision|plutôt que"
    r"|decidimos|decidido|en lugar de|em vez de|decidi|deciso|invece di"
    r"|besloten|in plaats van|решили|решено|вместо)\b|决定|決め|代わりに"
)
_LEARNED = re.compile(
    r"(?i)\b(?:turns? out|turned out|because|since|never|always|don'?t|do not|must not|avoid"
    r"|careful|caution|beware|gotcha|lesson|learn(?:ed|t)|reali[sz]ed|found (?:that|out)"
    r"|shows? that|suggests?|means that|conclu(?:de|sion)|therefore|so that|works? better"
    r"|better than|worse than|does(?:n'?t| not) work|did(?:n'?t| not) (?:help|work)|no effect"
    r"|surprising(?:ly)?|important(?:ly)?|remember|confirmed|leak(?:s|age|ed)?|outliers?"
    r"|the reason|actually|only if|only works?|breaks?|failed"
    r"|stellt sich heraus|weil|niemals|nie|immer|vorsicht|achtung|wichtig|zeigt,? dass|gelernt"
    r"|il s'avère|parce que|jamais|toujours|attention|important"
    r"|resulta que|porque|nunca|siempre|ojo|cuidado|importante|sempre|atenção|perché|attenzione"
    r"|omdat|blijkt|nooit|altijd|let op"
    r"|потому что|оказалось|никогда|всегда|важно)\b"
    r"|\b(?:note|nb|n\.b\.|warning|tip|hinweis|nota|remarque|conclusion|fazit)\s*:"
    r"|因为|原来|不要|注意|发现|結果|なぜなら|わかった|分かった"
)
_NEXT = re.compile(
    r"(?i)^\W*(?:next(?: steps?)?|to be done|still to do|open (?:question|point)s?|later"
    r"|nächste schritte|offen|prochaines? étapes?|próximos? pasos?|下一步)\b\s*[:\-–]?"
)


@dataclass(frozen=True, slots=True)
class Told:
    """What a text says: each field in the order in which it stands there."""

    headings: tuple[tuple[int, str], ...] = ()
    opening: tuple[str, ...] = ()
    task: tuple[str, ...] = ()
    decided: tuple[str, ...] = ()
    learned: tuple[str, ...] = ()
    next: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()


def told_by(markdown: str) -> Told:
    """Return what a Markdown cell says. Never raises."""
    text = markdown[:_MOST].replace("\r\n", "\n").replace("\r", "\n")
    if _LIVING.match(text.lstrip("\n")):
        return Told()
    text = _COMMENT.sub(" ", _FENCE.sub("\n", text))
    headings: list[tuple[int, str]] = []
    sentences: list[str] = []
    following: list[str] = []
    unchecked: list[str] = []
    asked = False
    for kind, part in _parts(text):
        if kind.startswith("#"):
            headings.append((len(kind), part))
            asked = _NEXT.match(part) is not None
            continue
        check = _CHECK.match(part)
        if check:
            if check["mark"] == " ":
                unchecked.append(check["text"])
            continue
        for sentence in sentences_of(part):
            if asked or _NEXT.match(sentence):
                following.append(sentence)
            else:
                sentences.append(sentence)
    return Told(
        headings=tuple(headings),
        opening=tuple(sentences[:4]),
        task=tuple(each for each in sentences if _TASK.search(each)),
        decided=tuple(each for each in sentences if is_decision(each)),
        learned=tuple(each for each in sentences if is_learning(each)),
        next=tuple(following),
        unchecked=tuple(unchecked),
    )


def said_in(markdown: str, without: Collection[str] = ()) -> Iterator[str]:
    """Yield the sentences of a Markdown text that are its writer's own, but for some lines.

    Headings, code, comments, tables and quotations are left out, and a living document is nobody's
    words. Never raises.
    """
    text = markdown[:_MOST].replace("\r\n", "\n").replace("\r", "\n")
    if _LIVING.match(text.lstrip("\n")):
        return
    text = _COMMENT.sub(" ", _FENCE.sub("\n\n", text))
    own = "\n".join(
        "" if _QUOTATION.match(line) or line in without else line for line in text.split("\n")
    )
    for kind, part in _parts(own):
        if not kind and not _CHECK.match(part):
            yield from sentences_of(part)


def without_cue(sentence: str) -> str:
    """Return a sentence about what comes next without the word that says so."""
    rest = _NEXT.sub("", sentence, count=1).strip()
    return rest or sentence


def sentences_of(paragraph: str) -> Iterator[str]:
    """Yield the sentences of one paragraph that hold more than a word."""
    for sentence in _END.split(paragraph[:4000]):
        stripped = sentence.strip()
        if len(stripped) > 3 and any(char.isalpha() for char in stripped):
            yield stripped


def is_task(sentence: str) -> bool:
    """Return whether a sentence says what is to be done."""
    return _TASK.search(sentence) is not None


def is_decision(sentence: str) -> bool:
    """Return whether a sentence says what was decided; a question never does."""
    return _DECIDED.search(sentence) is not None and not _is_question(sentence)


def is_learning(sentence: str) -> bool:
    """Return whether a sentence says what was learned; a question never does."""
    return (
        _LEARNED.search(sentence) is not None
        and not _is_question(sentence)
        and not is_decision(sentence)
        and len(sentence) > 15
    )


def _is_question(sentence: str) -> bool:
    return sentence.rstrip("\"')*_ ").endswith(("?", "？"))


def _parts(text: str) -> Iterator[tuple[str, str]]:
    """Yield ``("#" * level, heading)`` and ``("", paragraph or list item)`` in order."""
    lines: list[str] = []
    for line in [*text.split("\n"), ""]:
        heading = _HEADING.match(line)
        item = _ITEM.match(line)
        if heading or item or not line.strip():
            if lines:
                yield "", " ".join(lines)
                lines = []
            if heading and heading["text"].strip():
                yield heading["level"], heading["text"].strip()
            elif item and item["text"].strip():
                lines = [item["text"].strip()]
        elif not re.fullmatch(r"\s*[|:\-= ]+\s*", line) and not line.lstrip().startswith("|"):
            lines.append(line.strip().lstrip("> "))
