"""Values that follow a name otherwise than by assignment: flags, pairs, headers, calls, columns."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from ipymemory.secret_names import Name, harmless, odd, scrambled, secret
from ipymemory.secret_places import WINDOW, Place, Span, line_end, string_at

CALLS = re.compile(
    r"(?:HTTP|Http|Aio)?(?:Basic|Digest|Proxy|Plain)Auth(?:entication|enticator|Handler)?"
    r"|(?:set|check|make|hash|verify|change|encrypt)_?(?:user_)?pass(?:word|wd)"
    r"|Secret(?:Str|Value|Bytes)?|PlainTextAuthProvider|basic_auth|authenticate|auth|set_auth"
    r"|(?-i:PASSWORD)"  # of MySQL
    r"|(?:Plain|UsernamePassword|AzureKey|AzureNamedKey)?Credentials?",
    re.IGNORECASE,
)
"""Functions whose last text is a password."""

_SCHEME = re.compile(
    r"(?:Bearer|Basic|Token|Bot|Api-?Key|Key|Digest|Negotiate|NTLM|SSWS|OAuth|Hawk|GenieKey|Splunk"
    r"|JWT|GoogleLogin auth=|AWS4-HMAC-SHA256|AWS)[ \t]+",
    re.IGNORECASE,
)
_PAIR = re.compile(r"[^\s:/\"']{1,200}:(?!//)(?=\S)")
_FIELDS = re.compile(r"\w=\S")
_SHELL = re.compile(r"[^\s\"'`|;&<>()]+")
_CELL = re.compile(r"[^\s|│┃\"',;]+")
_IS = re.compile(r"(?:is|was|ist|lautet|war|es|est|était|jest|är|er|è|é|je|este)\b:?[ \t]{1,20}")
_ATTRIBUTE = re.compile(r"value=(?=[\"'])")
_DIGEST = re.compile(
    r"(?:sha|md|base|utf|v|pbkdf|argon|aes|rsa|python|mysql|http|oauth|x)-?\d", re.I
)
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
_CODE = re.compile(r"[(\[{<$%*&@|\\]|[A-Za-z_][\w.]{0,80}[(\[]")
_JAR = re.compile(r"[\w.%-]{1,100}=(?P<value>[^\s;]{4,}) for ")
_CRUMB = re.compile(r"[\w.%-]{1,100}=[^\s;{<$%]{4,}")
_ENV_MAGIC = re.compile(r"\s*%(?:env|set_env)\s+$")
_SETTER = re.compile(
    r"\b(?:setx|setenv|set[ \t]+-\w{1,3}|config(?:ure)?[ \t]+set|config:set)[ \t]+[\w/:.@-]{0,80}$"
)
_DOTS = re.compile(r"^\s*(?:[\w-]{1,60}\.){1,9}$")
"""What a property's name has before its last word: ``spark.hadoop.fs.s3a.secret.``."""
_DIRECTIVES = frozenset(("requirepass", "masterauth", "bindpw", "bindpass"))
BESIDE_USER = re.compile(
    r"\b(?:user(?:[ _]?name)?|login|e-?mail|account)[\"']?\s{0,3}[:=]\s{0,3}[^\s:=]{1,60}"
    r"\s{0,3}[,;/|]?\s{0,3}[\"']?$"
    r"|(?:^|[\s*>-])(?:(?:your|my|the|is|a)\s+)?(?:your|new|temporary|initial|generated|current|old)\s+$"
    r"|\b(?:mot de|kata|palavra|parola d')\s?$",
    re.I,
)
"""What before the word for a password says that one follows: a user, ``your new``."""
_DEFAULTS = re.compile(
    r"(?:getenv|assign|define|DEFINE_string|SetEnvironmentVariable|environ\.(?:get|setdefault|pop)|setenv|putenv|set_key|setdefault|\.set|\.pop|\.config"
    r"|\.option|set_secret|\.get|setProperty)\(\s{0,20}(?:[\"'][^\"'\n]{0,80}[\"']\s{0,20},\s{0,20})?"
    r"[rbfu]?[\"'](?:[\w-]{1,40}\.){0,5}$"
    r"|[gs]etattr\(\s{0,20}[\w.]{1,80}\s{0,20},\s{0,20}[\"']$"
)


def authorization(text: str, start: int, end: int, *, sure: bool) -> Span | None:
    """Return the part of an authorization value that is secret: what follows its scheme.

    `sure` tells that the name was ``Authorization``, not a mere ``auth``.
    """
    scheme = _SCHEME.match(text, start, end)
    at = scheme.end() if scheme else start
    value = text[at:end].rstrip()
    span = at, at + len(value)
    if scheme and sure and _FIELDS.search(value):
        return span  # Digest, AWS: fields with a signature among them
    if not value or harmless(value):
        return None
    if scheme:
        return span if sure or odd(value) else None
    if " " in value:
        return None
    pair = _PAIR.match(text, at, end)
    if pair and not harmless(text[pair.end() : end]):
        return pair.end(), span[1]
    return span if (sure and odd(value, 8)) or scrambled(value) else None


def _sure(place: Place) -> bool:
    return place.word.lower().endswith("authorization")


def header(place: Place, name: Name, at: int, stop: int) -> Iterator[Span]:
    """Take the rest of a header's line, up to a quote that encloses it."""
    text = place.text
    if place.op not in (":", "=", "=>"):
        return
    line = place.reading.before(place.start)
    ends = r"\\+[\"'nr]" + "".join(f"|{each}" for each in "\"'`" if line.count(each) % 2)
    closing = re.compile(ends).search(text, at, stop)
    end = closing.start() if closing else stop
    if name.rule == "cookie":
        if place.op == ":" and _CRUMB.match(text, at, end):
            yield at, end
    elif place.op == ":" or _sure(place):
        part = authorization(text, at, end, sure=_sure(place))
        if part and not _CODE.match(text, part[0]):
            yield part


def argument(place: Place, name: Name) -> Iterator[Span]:
    """Judge what follows a flag of a command: ``--token x``, ``"--token", "x"``."""
    text, at = place.text, place.skip()
    literal = string_at(text, at)
    if place.op == "," and not (literal and place.close):
        return
    if literal is not None:
        start, end = literal.span
        value = text[start:end]
    else:
        value = place.take(_SHELL, at, at + WINDOW)
        start, end = at, at + len(value)
    if not value or value.startswith("-") or harmless(value):
        return
    if literal is None:
        start, end = place.whole(_SHELL, at, value)
    if value.isalpha() and value.isupper():
        return  # how a help text names what is wanted
    if not place.op and (place.close or (literal is None and _prose(place, value, end))):
        return
    if name.rule == "cookie":
        if "=" in value:
            yield start, end
    elif name.rule == "authorization":
        part = authorization(text, start, end, sure=True)
        if part:
            yield part
    elif name.strong or name.rule in ("key", "signature"):
        if secret(name, value, quoted=True):
            yield start, end
    elif not (_DOTTED.fullmatch(value) or value[0] in "/~." or value.isdigit()):
        yield start, end


def _prose(place: Place, value: str, end: int) -> bool:
    """Tell whether a flag's `value` is a word of a text about the flag."""
    if not value.replace("-", "").isalpha():
        return False
    if place.reading.before(place.start).lstrip()[:1] in ("!", "$", "%", "+"):
        return False
    follows = place.text[end : end + 2]
    return not (follows == "" or follows[0] in "\n|;&" or follows == " -")


def paired(place: Place, name: Name) -> Iterator[Span]:
    """Judge ``("name", "value")`` and ``getenv("NAME", "default")``."""
    text = place.text
    literal = string_at(text, place.skip(" \t\n")) if place.close else None
    if literal is None:
        return
    value = text[literal.start : literal.end]
    if name.rule == "authorization":
        part = authorization(text, literal.start, literal.end, sure=_sure(place))
        if part:
            yield part
    elif _DEFAULTS.search(text, max(0, place.start - 160), place.start):
        if secret(name, value, quoted=True):
            yield literal.span
    elif name.strong and secret(name, value):
        opening = place.start - len(place.close) - 1
        alone = (
            text[opening : opening + 1] == "(" and text[literal.after : literal.after + 1] == ")"
        )
        if odd(value, 4 if alone and name.rule == "password" else 8):
            yield literal.span


_FOR = re.compile(r" (?:(?:for|FOR|of) [^\s=:]{1,100}|value)(?P<op>\s{0,20}[=:]|:)(?=\s)")


def of_somebody(place: Place) -> None:
    """Read past whose password it is: ``SET PASSWORD FOR bob = 'x'``, ``Password for bob: x``."""
    of = _FOR.match(place.text, place.end)
    if of is not None:
        place.op, place.after, place.close, place.gap = of["op"].strip(), of.end(), "", " "


_MERE_PASS = Name("password", strong=False)
_USER_BESIDE = re.compile(
    r"\b(?:user(?:[_ ]?name)?|login|e-?mail)[\"']?\s?[:=]\s?[^\n:=]{1,60}(?:\n[ \t\"'-]*)?$", re.I
)


def of_login(place: Place, name: Name | None) -> Name | None:
    """Return `name`; a mere ``pass`` as a password if a user stands just before it."""
    if name != _MERE_PASS:
        return name
    user = _USER_BESIDE.search(place.text, max(0, place.start - 120), place.start)
    return Name("password") if user else name


def called(place: Place) -> Iterator[Span]:
    """Take the last text of a call that logs in or sets a password, if it is the last argument."""
    text, at = place.text, place.after
    stop = text.find(")", at, at + 300)
    last: Span | None = None
    commas = 0
    while at < stop:
        literal = string_at(text, at) if text[at] in "\"'" else None
        if literal is not None:
            last, at = literal.span, literal.after
            continue
        commas += text[at] == ","
        at += 1
    if last is None or harmless(text[slice(*last)]) or text[last[1] + 1 : stop].strip(" ,\n"):
        return
    word = place.word.lower()
    if word.startswith("secret"):
        if odd(text[slice(*last)], 8):
            yield last
    elif commas or "pass" in word or "key" in word:
        yield last


_TARGETS = re.compile(r"[\s(]*[\w.]{1,80}(?:\s*,\s*[\w.]{1,80}){1,8}\s*\)?\s*=(?!=)\s*\(?")


def unpacking(place: Place) -> re.Match[str] | None:
    """Return what stands before the values in ``user, password = "bob", "x"``, if it is one."""
    start, _ = place.reading.line(place.start)
    targets = _TARGETS.match(place.text, start, place.end + 400)
    return targets if targets and targets.end() > place.end else None


def unpacked(place: Place, name: Name, targets: re.Match[str]) -> Iterator[Span]:
    """Judge the value that stands where the name stands among the names."""
    text, at = place.text, targets.end()
    stop = line_end(text, at, min(len(text), at + 400))
    for _ in range(text.count(",", targets.start(), place.start)):
        literal = string_at(text, at)
        at = text.find(",", literal.after if literal else at, stop) + 1
        if not at:
            return
        while text[at : at + 1] in (" ", "\t"):
            at += 1
    literal = string_at(text, at)
    if literal and secret(name, text[literal.start : literal.end], quoted=True):
        yield literal.span


def beside(place: Place, name: Name) -> Iterator[Span]:
    """Judge what stands beside a name: in a column, after ``is``, as SQL's ``PASSWORD 'x'``."""
    text, at = place.text, place.skip()
    if name.rule == "cookie":
        crumb = _JAR.match(text, at)
        if crumb:
            yield crumb.span("value")
        return
    if _ENV_MAGIC.fullmatch(place.reading.before(place.start)):
        stop = line_end(text, at, min(len(text), at + WINDOW))
        if secret(replace(name, strong=True), text[at:stop]):
            yield at, stop
        return
    verb = _IS.match(text, at) or _ATTRIBUTE.match(text, at)
    at = verb.end() if verb else at
    if text[at : at + 1] in ("'", '"') and (verb or not place.close):
        if not (name.strong or name.rule in ("token", "key")):
            return
        literal = string_at(text, at) if place.gap else None
        value = text[literal.start : literal.end] if literal else " "
        if literal and " " not in value and secret(name, value, quoted=True):
            yield literal.span
        return
    value = place.take(_CELL, at, at + WINDOW).rstrip(".)")
    if _CODE.match(value) or not secret(name, value):
        return
    span = place.whole(_CELL, at, value)
    wide = place.op in ("|", "│", "┃") or len(place.gap) > 1 or "\t" in place.gap
    alone = not _DOTS.sub("", place.reading.before(place.start)).strip() and text[
        span[1] : span[1] + 1
    ] in (
        "",
        "\n",
    )
    dotted = place.previous == "."
    if verb or (wide and alone):
        # Of the environment, as PowerShell lists it, it may be a word: `DB_PASSWORD   swordfish`.
        listed = wide and alone and place.word.isupper() and "_" in place.word
        told = verb is not None and ":" in verb[0] and name.rule == "password"
        enough = odd(value) or ((listed or told) and name.strong)
    elif _SETTER.search(place.reading.before(place.start)):
        enough = name.strong
    elif alone and (place.word.lower() in _DIRECTIVES or "_" in place.word or dotted):
        enough = name.strong and (odd(value) or place.word.lower() in _DIRECTIVES)
    elif place.reading.before(place.start).startswith(("machine ", "default login ")):
        enough = name.rule == "password"
    elif name.rule == "password" and name.strong and place.gap and not place.close:
        enough = odd(value) and not _DIGEST.match(value)
    else:
        enough = odd(value, 12) and (wide or (len(value) >= 20 and scrambled(value)))
    if enough or (wide and not name.strong):
        yield span
