"""The forms of sentences that are kept as memories, and what each is about.

A rule is an imperative or begins with "we", "you" or "I"; a fact names who says so; a deadline
names its day; a link says what it is for.

A subject is told from the form alone, and is empty where the form does not show it: memories that
only share a word must not retire each other.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from ipymemory.memory_files.values import normal


@dataclass(frozen=True, slots=True)
class Form:
    """A form of sentence: its kind of memory, and its subject by the match."""

    kind: str
    pattern: re.Pattern[str]
    subject: Callable[[re.Match[str]], str] = lambda match: ""
    from_files: bool = True
    """Whether it is worth a proposal where it came with a file."""


def _re(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


# No imperative: what was, and what some thing always does.
_PAST = (
    r"(?!\w+ed\b|\w+[^su\W]s\b|(?:was|were|had|got|did|saw|found|knew|went|made|came|took|gave|wrote|ran|met|kept"
    r"|is|are|am|be|been|has|have|seems?|mind|know|you|we|i|they|it|he|she|the|a|an|this|that|so|in|at|on)\b)"
)
# What may stand before an imperative: a polite word, or the case for which it holds.
_LEAD = (
    r"^\W*(?:(?:rule|important|remember|reminder|note(?: to self)?|convention|nb|decision)\s*:\s*)?"
    r"(?:please,?\s+)?"
    r"(?:(?P<case>(?:when|whenever|if|for|in|with|before|after|from now on|as a rule|by default)\b"
    r"[^,.;:?]{0,80}),\s*(?:please\s+)?)?"
)
_RULE = _re(
    rf"{_LEAD}(?:"
    rf"(?P<imperative>(?:always|never|do not|don['’]?t|do not ever|don['’]?t ever|avoid)\s+{_PAST}"
    r"(?P<what1>[a-z]\w*\b.+))"
    r"|(?:we|i|you|everyone|everybody|one)\s+(?:should\s+|must\s+|have to\s+)?"
    rf"(?P<we>always|never|must not|must|should never|should always)\s+{_PAST}"
    r"(?P<what2>[a-z]\w*\b.+)"
    r")$"
)
_PREFER = _re(
    r"^\W*(?:in general,\s*|generally,\s*)?(?:i|we)\s+(?:strongly\s+|always\s+|much\s+)?prefer\s+"
    r"(?P<one>.+?)(?:\s+(?:over|to|rather than|instead of)\s+(?P<other>[^,.;]+))?[.!]?$"
)
_USER = _re(
    r"^\W*(?:i['’]?m|i am|i work as|i work (?:in|on|at|for|with)"
    r"|my (?:role|job|team|background|name) is|call me"
    r"|i (?:teach|study|maintain|own|lead|manage)|i know (?:little|a lot|nothing|no))\s+"
    r"(?!(?:going|trying|using|running|getting|looking|doing|working through|not sure|still|just"
    r"|now|here|done|stuck|afraid|sorry|happy|glad|sure|seeing|testing|loading|adding|about)\b)"
    r"(?:an?\s|the\s|new to\s|responsible for\s|no\s|\S+\s).{3,}$"
)
USE = _re(
    rf"{_LEAD}(?:from now on,?\s+)?we(?:['’]re| are)?\s+(?:(?:only|all|both|now)\s+)?"
    r"(?:use|using|stick to|stay with|go with|work with|rely on)\s+(?P<what>.+?)"
    r"(?:\s+(?:for|as)\s+(?P<aim>(?:our\s+|the\s+|all\s+|every\s+)?[^,.;]+?))?"
    r"(?P<rest>\s*[,;(]?\s*(?:not|instead of|rather than|never|and not)\s+.+)?[.!)]*$"
)
_DECIDED = _re(
    r"^\W*(?:decision\s*:\s*.{8,}|(?:today\s+)?(?:we|the team|the group|our team)\s+(?:have\s+)?"
    r"(?:decided|agreed|settled|chose|resolved)\s+(?:to|that|on|not to|against|for)\s+.{4,})$"
)
_CONVENTION = _re(
    r"^\W*(?:our|the team['’]?s|the project['’]?s|the house)\s+(?:convention|rule|standard|policy"
    r"|style|agreement)\s+(?:for\s+(?P<aim>[^,.;:]+?)\s+)?is\s*:?\s+.{4,}$"
)
_TRUTH = _re(
    r"^\W*(?:the\s+|our\s+)?(?:single\s+)?source of truth"
    r"(?:\s+(?:for|of|on|about)\s+(?P<aim>[^,.;:]+?))?"
    r"\s+(?:is|are|lives in|lies in)\s*:?\s+.{2,}$"
    r"|^\W*(?P<what>[^,.;:]{2,120}?)\s+(?:is|are)\s+(?:the\s+|our\s+)?(?:single\s+)?source of truth"
    r"(?:\s+(?:for|of|on|about)\s+(?P<aim2>[^,.;:]+?))?[.!]*$"
)
_TEAM = (
    r"(?:the\s+|our\s+|my\s+)?(?:[\w-]+\s+){0,2}(?:team|client|customer|vendor|provider|supplier"
    r"|colleagues?|boss|lab|station|office|department|owners?|maintainers?|supervisor|advisor"
    r"|authors?|group|operator|support|people|engineers?|analysts?)"
)
_WHO = rf"(?:{_TEAM}|(?-i:[A-Z][\w-]+))"
_TOLD = _re(
    r"^\W*(?P<what>(?:(?:the|all|our|these|this|those|every|each|some|both)\s+)?[\w`][^,;:?]{3,}?\s"
    r"(?:is|are|was|were|has|have|means?|counts?|come|comes|uses?|contain|contains|includes?"
    r"|excludes?|start|starts|ends?|holds?|must|needs?)\s[^;?]+?)"
    rf"(?:\s*[,(–-]\s*(?:from|per)\s+{_TEAM}|,?\s+\(?(?:according to|as told by|as per"
    rf"|(?:as )?confirmed by|said|says|say|told by|so says?)\s+{_WHO})\)?[.!]*$"
    rf"|^\W*(?:according to|per)\s+{_WHO},\s*(?P<what2>.{{10,}})$"
    rf"|^\W*{_WHO}\s+(?:says?|said|told (?:us|me)|confirmed|confirms|asked (?:us|me)|wants? us)\s+"
    r"(?:that\s+|to\s+)?(?P<what3>.{8,})$"
)
DEADLINE = _re(
    r"\b(?:deadline|due|deliver(?:ed|y|able)?|submit(?:ted)?|submission|hand(?:ed)? in|hand-in"
    r"|freeze|release|launch|go-live|presentation|present(?:ed)?|defen[cs]e|ready (?:by|before)"
    r"|must be (?:done|finished)|finished by|abgabe|frist|échéance|fecha límite|entrega)\b"
)
PASSED = _re(r"\b(?:was|were|passed|missed|last (?:week|month|year)|yesterday|ago|had)\b")
DUE_FOR = _re(
    r"\b(?:deadline|due date)\s+(?:for|of)\s+(?:the\s+|our\s+)?(?P<aim>[^,.;:]+?)\s+"
    r"(?:is|:|will be|moved)"
    r"|^\W*(?:the\s+|our\s+)?(?P<aim2>[\w -]{3,60}?)\s+(?:is|are|will be|must be)\s+(?:now\s+)?"
    r"(?:due|delivered|submitted|ready|finished|done|handed in)\b"
)
LINK = re.compile(
    r"(?:\[(?P<name>[^\]]{2,120})\]\()?(?P<url>https?://[^\s<>()\"'`]{4,300}[^\s<>()\"'`.,;:!?])"
)
PURPOSE = _re(
    r"\b(?:docs?|documentation|described|documented|dashboard|wiki|runbook|tracker|tracked|issues?"
    r"|tickets?|bugs?|board|schema|dictionary|codebook|spec(?:ification)?|guide|guidelines?|policy"
    r"|repo(?:sitory)?|lives?|kept|hosted|here is|are at|is at|downloaded|download|published|feed"
    r"|api|contact|handbook|protocol|metadata|catalog(?:ue)?|reports?|monitor(?:ing)?|status)\b"
)
_VALUE = _re(
    r"^\W*(?:the\s+|all\s+|our\s+)?(?P<what>[\w` .-]{3,60}?)\s+(?:is|are)\s+"
    r"(?:now\s+|always\s+|all\s+)?(?:in\s+)?"
    r"(?:(?P<order>(?:day|month|year)-first)|(?P<zone>utc|gmt|[a-z]+ time|local time)"
    r"|(?P<unit>(?:milli|centi|kilo)?met(?:er|re)s?|feet|inches|celsius|fahrenheit|kelvin|percent"
    r"|euros?|dollars|usd|eur|kg|grams?|seconds|milliseconds|cm|mm|km)"
    r"|(?P<parted>(?:comma|semicolon|tab)[- ]separated)|(?P<coded>utf-?8|latin-?1|cp1252|ascii))\b"
)

FORMS = (
    Form("feedback", _RULE, lambda m: _done(m)),
    Form("user", _PREFER, lambda m: _preferred(m)),
    Form("user", _USER, from_files=False),
    Form("reference", _TRUTH, lambda m: about("source of truth", m["aim"] or m["aim2"])),
    Form("project", _CONVENTION, lambda m: about("convention", m["aim"]) if m["aim"] else ""),
    Form("project", _DECIDED),
    Form("project", USE, lambda m: about("use for", m["aim"]) if m["aim"] else ""),
    Form("project", _TOLD, lambda m: _valued(m)),
)


def is_news(match: re.Match[str], code: frozenset[str]) -> bool:
    """Return whether "we use X" tells more than the code does that uses X."""
    if match["rest"] or re.search(r"\b(?:all|every|everywhere|only|throughout|never)\b", match[0]):
        return True
    words = set(normal(match["what"]).split())
    return not words & code and (bool(match["aim"]) or "from now on" in match[0].lower())


def is_lasting(text: str) -> bool:
    """Return whether what somebody says of themselves is more than what they just do."""
    return not re.search(
        r"^\W*(?:i['’]?m|i am)\s+(?:\w+ly\s+)?\w+ing\b|\b(?:today|tonight|currently)\b",
        text,
        re.IGNORECASE,
    )


def about(what: str, aim: str | None) -> str:
    """Return a subject: the property `what`, of `aim` where that is known."""
    words = normal(re.sub(r"^(?:the|our|all|every)\s+", "", (aim or "").strip(), flags=re.I))
    return f"{what}: {words}" if words else what


def _done(match: re.Match[str]) -> str:
    """Return the subject of a rule: what is to be done, or not, without whether it is."""
    found = match.groupdict()
    what = next((found[f"what{n}"] for n in (1, 2) if found.get(f"what{n}")), "")
    words = normal(what).split()
    case = normal(re.sub(r"^(?:from now on|as a rule|by default)$", "", found["case"] or ""))
    if match["imperative"] and match["imperative"].lower().startswith("avoid"):
        words = [re.sub(r"(?<=\w{3})ing$", "", words[0]), *words[1:]]
    start = f"do, {case}:" if case else "do:"
    return f"{start} {' '.join(words)}" if 2 <= len(words) <= 12 else ""


def _preferred(match: re.Match[str]) -> str:
    if not match["other"]:
        return ""
    return "prefer: " + " or ".join(sorted((normal(match["one"]), normal(match["other"]))))


def _valued(match: re.Match[str]) -> str:
    """Return the subject of a fact whose value is of a known sort, such as an order of dates."""
    what = match["what"] or match["what2"] or match["what3"] or ""
    found = _VALUE.search(what)
    if found is None:
        return ""
    sort = next(name for name, value in found.groupdict().items() if value and name != "what")
    return f"{normal(found['what'])}: {sort}"
