"""What one sentence is about and which property of that, so that a change of mind is known for one.

"Amounts are stored in cents" and "Amounts are stored in euros" have one subject, ``amounts:
unit``, and the later one takes the place of the other. A subject is told from plain forms alone and
is empty where none shows it: two memories that only share a word must not retire each other. So
of several sentences none is told: one of them might go unseen with the others.

Subjects are written as the built-in engine writes those of what it learns by itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from ipymemory.memory_files.values import normal

_Match = re.Match[str]


def _re(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_LEAD = _re(
    r"^\W*(?:(?:please|note|remember|reminder|important|rule|decision|correction|update|actually"
    r"|no|now|sorry|from now on|as of now|bitte|merke|ab jetzt|ab sofort|korrektur)\b"
    r"[\s,:]*(?:that\b|dass\b)?\s*)+"
)
_MONTHS = "jan|feb|mär|apr|mai|jun|jul|aug|sep|okt|nov|dez"
_SENTENCES = _re(rf"(?:(?<!\d)[.!?]|[!?]|\.(?!\s+(?:{_MONTHS})))\s+\S|[。！？]\s*\S|\n\s*\S")
_ARTICLE = _re(r"^(?:the|our|all|every|my|this project['’]?s|der|die|das|unsere?|alle|mein[e]?)\s+")

_LONGEST = 400
"""Characters of a sentence whose form is plain."""

_THING = r"[\w`\"'“”./-][^,;:?!]{1,80}?"
_IS = r"(?:is|are|was changed to|were changed to|will be|(?:has |have )?moved to|became)"
_STANDS = (
    rf"(?:{_IS}|come|comes|stand|stands|count|counts)"
    r"(?:\s+(?:now|always|all|only|both|not|no longer|stored|saved|kept|given|measured|written"
    r"|recorded|reported|counted|expressed|noted|encoded|formatted))*(?:\s+(?:in|as|by|with))?"
)
_STEHT = (
    r"(?:ist|sind|steht|stehen|kommt|kommen|liegt|liegen|wird|werden)"
    r"(?:\s+(?:jetzt|nun|immer|alle|nur|nicht|mehr))*(?:\s+(?:in|im|als|mit|auf))?"
)
_SORTS = (
    r"(?:(?P<order>(?:day|month|year)[- ]first|tag zuerst|monat zuerst"
    r"|(?:dd|mm|yyyy)[-./](?:dd|mm)[-./](?:dd|yyyy|yy)|iso[- ]8601)"
    r"|(?P<zone>utc|gmt|ces?t|[ep]s?t|local time|ortszeit|\w+ time\b)"
    r"|(?P<unit>(?:milli|centi|kilo)?met(?:er|re)s?|zentimetern?|metern?|kilometern?|feet|inches"
    r"|miles|celsius|fahrenheit|kelvin|percent|prozent|cents?|pence|euros?|dollars?|pounds|usd|eur"
    r"|gbp|jpy|yen|kg|kilograms?|kilogramm|grams?|gramm|tons|tonnes|milliseconds|seconds|minutes"
    r"|hours|days|sekunden|minuten|stunden|tagen?|cm|mm|km|ms)"
    r"|(?P<parted>(?:comma|semicolon|tab)[- ]separated)"
    r"|(?P<coded>utf-?8|utf-?16|latin-?1|iso-8859-\d+|cp1252|windows-1252|shift[-_]?jis|ascii))\b"
)
_VALUED = _re(rf"^(?P<what>{_THING})\s+(?:{_STANDS}|{_STEHT})\s+(?:the\s+)?{_SORTS}")

_PROPERTY = (
    r"(?P<prop>(?:time ?zone|zeitzone|(?:random )?seed|threshold|cut-?off|limit|owner|maintainer"
    r"|reviewer|contact|encoding|delimiter|separator|unit|currency|version|branch|path|folder"
    r"|location|address|url|link|license|key column|primary key|target|metric|baseline|schedule"
    r"|schwellwert|grenzwert|einheit|währung|kodierung|trennzeichen|ansprechpartner(?:in)?)s?)"
)
_PROPERTY_OF = _re(
    rf"^(?:(?:the|our|my|der|die|das|unser)\s+)?{_PROPERTY}\s+(?:of|for|in|von|für|der|des)\s+"
    rf"(?P<what>{_THING})\s+(?:{_IS}|ist|sind|wird)\s+\S"
)
_ITS_PROPERTY = _re(
    rf"^(?:(?:the|our|my|der|die|das|unser)\s+)?(?P<what>{_THING})(?:['’]s)?\s*\b{_PROPERTY}\s+"
    rf"(?:{_IS}|ist|sind|wird)\s+\S"
)
_BARE_PROPERTY = _re(
    rf"^(?:(?:the|our|my|der|die|das|unser)\s+)?(?P<what>)?{_PROPERTY}\s+(?:{_IS}|ist|sind|wird)\s+\S"
)
_CJK = re.compile(
    r"^(?P<what>[^、。はが]{1,30}?)の?(?P<prop>締め?切り?|担当者?|単位|文字コード|期限"
    r"|タイムゾーン|区切り文字|しきい値|閾値|乱数シード|保存場所)は.+"
    r"|^(?P<what2>[^，。]{1,30}?)的?(?P<prop2>截止日期|负责人|单位|编码|时区|阈值|路径)(?:是|为|改为).+"
)
_DEADLINE = _re(
    r"^(?:the\s+|our\s+)?(?:deadline|due date)\s+(?:for|of)\s+(?P<aim>[^,.;:]+?)\s+"
    rf"(?:{_IS}|:)\s*\S"
    rf"|^(?P<aim2>[\w -]{{3,60}}?)\s+(?:deadline|due date)\s+{_IS}\s+\S"
    rf"|^(?P<aim3>[\w -]{{3,60}}?)\s+{_IS}\s+(?:now\s+)?due\b"
    r"|^(?:die\s+)?(?:frist|abgabe)\s+(?:für|der|des|von)\s+(?P<aim4>[^,.;:]+?)\s+(?:ist|wird)\s+\S"
)
_RULE = _re(
    r"^(?:(?P<case>(?:when|whenever|if|for|in|with|before|after)\b[^,.;:?]{0,80}),\s*)?"
    r"(?:(?:we|you|i|everyone)\s+(?:should\s+|must\s+|have to\s+)?(?:always|never|must not|must)"
    r"|(?P<avoid>avoid)|always|never|do not(?: ever)?|don['’]?t(?: ever)?)\s+"
    r"(?P<what>[a-z]\w*\b.+)$"
)
_LANGUAGE = _re(
    r"^(?:always\s+|only\s+)?(?:answer|reply|respond|write|speak|explain)\b[^,;]{0,40}?\s+in\s+"
    r"(?:simple\s+|plain\s+)?(?:english|german|french|spanish|italian|dutch|portuguese|japanese"
    r"|chinese|korean|russian|polish|turkish|arabic|hindi)\b"
    r"|^(?:antworte|schreib|erkläre?)\b[^,;]{0,40}?\s+auf\s+(?:deutsch|englisch|französisch)\b"
    r"|(?:日本語|英語|中国語)で(?:答|回答|返信|書)"
)
_PREFER = _re(
    r"^(?:in general,\s*)?(?:i|we)\s+(?:strongly\s+|always\s+|much\s+)?prefer\s+(?P<one>.+?)"
    r"\s+(?:over|to|rather than|instead of)\s+(?P<other>[^,.;]+)[.!]?$"
)
_NAME = _re(r"^(?:my name is|call me|ich hei(?:ß|ss)e|mein name ist)\s+\S|(?:私の名前は|我叫)")
_ROLE = _re(r"^(?:i work as|my (?:role|job) is|ich arbeite als)\s+\S")
_TRUTH = _re(
    r"^(?:the\s+|our\s+)?(?:single\s+)?source of truth\s+(?:for|of|on|about)\s+"
    r"(?P<aim>[^,.;:]+?)\s+(?:is|are|lives in|lies in)\b"
    r"|\s(?:is|are)\s+(?:now\s+)?(?:the\s+|our\s+)?(?:single\s+)?source of truth\s+"
    r"(?:for|of|on|about)\s+(?P<aim2>[^,.;:]+?)[.!]*$"
)
_USE = _re(
    r"^we(?:['’]re| are)?\s+(?:(?:only|all|both|now)\s+)?(?:use|using|stick to|stay with|go with"
    r"|work with|rely on)\s+.+?\s+for\s+(?P<aim>[^,.;]+?)[.!]*"
    r"(?:[\s,]+(?:not|instead of|rather than|now|from now on)\b.*)?$"
)
_CONVENTION = _re(
    r"^(?:our|the team['’]?s)\s+(?:convention|rule|standard|policy|style)\s+for\s+"
    r"(?P<aim>[^,.;:]+?)\s+is\b"
)


def subject_of(text: str) -> str:
    """Return the subject of `text` such as ``amounts: unit``; empty where no form shows one."""
    sentence = _LEAD.sub("", text.strip()).strip()
    if not sentence or len(sentence) > _LONGEST or _SENTENCES.search(sentence):
        return ""
    for form, subject in _FORMS:
        match = form.search(sentence)
        if match is not None and (found := subject(match)):
            return found
    return ""


_VAGUE_WORDS = (
    "it this that these those they there everything file files data table column columns value "
    "values number numbers code notebook es das dies diese datei daten spalte werte"
)
_VAGUE = frozenset(_VAGUE_WORDS.split())
"""Things that are another one in every sentence."""

_SAME = {
    **dict.fromkeys(("encoding", "kodierung", "文字コード", "编码"), "coded"),
    **dict.fromkeys(("delimiter", "separator", "trennzeichen", "区切り文字"), "parted"),
    **dict.fromkeys(("timezone", "zeitzone", "タイムゾーン", "时区"), "zone"),
    **dict.fromkeys(("unit", "einheit", "単位", "单位"), "unit"),
    "randomseed": "seed",
}
"""What has a name here and a form of value in `_SORTS`."""


def _about(what: str, aim: str | None) -> str:
    words = normal(_ARTICLE.sub("", (aim or "").strip()))
    return f"{what}: {words}" if words else ""


def _first(match: _Match, *names: str) -> str:
    return next((match[each] for each in names if match[each]), "")


def _valued(match: _Match) -> str:
    sort = next(name for name, value in match.groupdict().items() if value and name != "what")
    what = normal(_ARTICLE.sub("", match["what"]))
    return _of(what, sort)


def _property(match: _Match) -> str:
    what = normal(_ARTICLE.sub("", match["what"] or ""))
    prop = normal(match["prop"]).replace(" ", "")
    return _of(what, prop if prop.endswith("ss") else prop.removesuffix("s"))


def _done(match: _Match) -> str:
    """Return what is to be done, or not, without whether it is."""
    words = normal(match["what"]).split()
    if match["avoid"]:
        words = [re.sub(r"(?<=\w{3})ing$", "", words[0]), *words[1:]]
    case = normal(match["case"] or "")
    start = f"do, {case}:" if case else "do:"
    return f"{start} {' '.join(words)}" if 2 <= len(words) <= 12 else ""


def _cjk(match: _Match) -> str:
    what, prop = _first(match, "what", "what2"), _first(match, "prop", "prop2")
    return _of(normal(what), normal(prop)) if normal(what) else ""


def _of(what: str, prop: str) -> str:
    prop = _SAME.get(prop, prop)
    return "" if what in _VAGUE else f"{what}: {prop}" if what else prop


_FORMS: tuple[tuple[re.Pattern[str], Callable[[_Match], str]], ...] = (
    (_LANGUAGE, lambda match: "answer: language"),
    (_RULE, _done),
    (
        _PREFER,
        lambda match: (
            "prefer: " + " or ".join(sorted((normal(match["one"]), normal(match["other"]))))
        ),
    ),
    (_NAME, lambda match: "user: name"),
    (_ROLE, lambda match: "user: role"),
    (_TRUTH, lambda match: _about("source of truth", _first(match, "aim", "aim2"))),
    (_CONVENTION, lambda match: _about("convention", match["aim"])),
    (_DEADLINE, lambda match: _about("deadline", _first(match, "aim", "aim2", "aim3", "aim4"))),
    (_USE, lambda match: _about("use for", match["aim"])),
    (_PROPERTY_OF, _property),
    (_BARE_PROPERTY, _property),
    (_ITS_PROPERTY, _property),
    (_VALUED, _valued),
    (_CJK, _cjk),
)
