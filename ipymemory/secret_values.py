"""Values that a name gives away: ``password=…``, ``"api_key": "…"``, ``export TOKEN=…``.

Whatever stands between name and value in Python, JSON, YAML, TOML, dotenv files, shells,
headers, connection strings, query strings and tables is understood here; `secret_names` says
what the name and the value mean. Code is no value: ``password = getpass()`` stays whole.

The work is linear: each name that is found is looked at in a window of 4,000 characters that
begins with it, and the windows overlap as the names do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from ipymemory.secret_names import (
    STEMS,
    Name,
    harmless,
    judge,
    odd,
    scrambled,
    secret,
)
from ipymemory.secret_tokens import Mark

WINDOW = 4000
"""Characters that are looked at from where a name or a form begins."""

_STEMS = tuple(stem.encode() for stem in STEMS)
_NAME = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
_FOLLOWS = frozenset(" \t\"'`\\]:=>|│┃(!+")
"""What may come directly after a name that a value follows."""

_BETWEEN = re.compile(
    r"(?P<close>\\{0,7}[\"'`])?\]?"
    r"(?P<gap>[ \t]{0,80})"
    r"(?P<op>:[ \t]?[A-Za-z_][\w.]{0,40}(?:\[[^=\n]{0,60}\])?"  # an annotation
    r"(?:[ \t]*\|[ \t]*\w{1,20})?[ \t]*=(?!=)"
    r"|:=|===?|!=|\+=|=>|[=:>,|│┃(])?"
)
_LEAD = re.compile(r"[ \t]*+(?:\\\r?\n[ \t]*+)?(?P<open>\()?(?(open)\s{0,80})")
_NEXT_LINE = re.compile(r"[ \t]*+\r?\n[ \t]*+(?=[\"'])")
_STRING = re.compile(r"(?P<prefix>[rRbBuUfF]{0,2})(?P<escape>\\{0,7})(?P<quote>\"\"\"|'''|[\"'`])")
_INSIDE = {
    '"': re.compile(r'(?:[^\\"\n]|\\.)*+', re.DOTALL),
    "'": re.compile(r"(?:[^\\'\n]|\\.)*+", re.DOTALL),
    "`": re.compile(r"[^`\n]*+"),
}
_ALSO = re.compile(r"[ \t]*+(?:\+[ \t]*+)?(?:\\\r?\n[ \t]*+)?")
_ALSO_BELOW = re.compile(r"\s*+(?:\+\s*+)?(?:\\\r?\n\s*+)?")
_FIELD = re.compile(r"\{[^{}\n]{0,200}\}")
_OTHERWISE = re.compile(r"\b(?:or|else)[ \t]+(?=[rbfuRBFU]{0,2}[\"'])")
_DEFAULTS = re.compile(
    r"(?:getenv|environ\.(?:get|setdefault|pop)|setenv|putenv|set_key|setdefault|\.set|\.config"
    r"|\.option|set_secret|\.get|setProperty)\(\s*(?:[\"'][^\"'\n]{0,80}[\"']\s*,\s*)?[rbfu]?[\"']$"
)
_BLOCK = re.compile(r"[|>][+-]?\d?[ \t]*\r?\n(?P<indent>[ \t]+)")
_SETS = re.compile(
    r"[\s\-+*>|#!%$\\]*(?:(?:export|set|setx|declare|typeset|ENV|ARG|env|set_env|-x|-gx|-e|--env"
    r"|Environment=|config:set|\$?env:)\s*)*[\"'{]?"
)
_SHELL_SET = re.compile(r"\s*(?:export|setx?|ENV|ARG|declare)\s")
_ENV_MAGIC = re.compile(r"\s*%(?:env|set_env)\s+$")
_BARE = re.compile(r"[^\s\"'`,;&<>|]+")
_SHELL = re.compile(r"[^\s\"'`|;&<>()]+")
_CODE = re.compile(
    r"[(\[{<$%*&@|\\]|[fFrRbBuU]{1,2}[\"']|lambda\b|await\b|not\b|new\b|[A-Za-z_][\w.]*[(\[]"
)
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
_COMMENT = re.compile(r"[ \t]+(?:#|//).*")
_SCHEME = re.compile(
    r"(?:Bearer|Basic|Token|Bot|Api-?Key|Key|Digest|Negotiate|NTLM|SSWS|OAuth|Hawk|GenieKey|Splunk"
    r"|JWT|GoogleLogin auth=|AWS4-HMAC-SHA256|AWS)[ \t]+",
    re.IGNORECASE,
)
_PAIR = re.compile(r"[^\s:/\"']+:(?!//)(?=\S)")
_CRUMB = re.compile(r"[\w.%-]+=[^\s;]{4,}")
_CALLS = re.compile(
    r"(?:HTTP|Http|Aio)?(?:Basic|Digest|Proxy|Plain)Auth(?:entication|enticator|Handler)?"
    r"|(?:set|check|make|hash|verify|change|encrypt)_?(?:user_)?pass(?:word|wd)|PlainTextAuthProvider"
    r"|basic_auth|authenticate|auth|set_auth|login_user_pass",
    re.IGNORECASE,
)


def named(text: str, folded: bytes, *, code: bool) -> Iterator[Mark]:
    """Yield a mark for every value in `text` whose name says that it is secret.

    `folded` is `text` in lower case, one byte a character. `code` tells that `text` is a
    cell of Python, where what stands without quotes is an expression.
    """
    seen: set[int] = set()
    for stem in _STEMS:
        at = folded.find(stem)
        while at >= 0:
            end = at + len(stem)
            while text[end : end + 1] in _NAME:
                end += 1
            if text[end : end + 1] in _FOLLOWS and end not in seen:
                seen.add(end)
                between = _BETWEEN.match(text, end)
                if between is not None:
                    start = at
                    while start and text[start - 1] in _NAME and at - start < 100:
                        start -= 1
                    yield from _Value(text, start, end, between, code).marks()
            at = folded.find(stem, max(end, at + 1))


def string_at(text: str, at: int) -> tuple[int, int, int, bool] | None:
    """Return where the string literal at `at` has its inside, where it ends, and if it is an f.

    A literal that is not closed ends with its line, or with the text if it has three quotes.
    """
    opening = _STRING.match(text, at)
    if opening is None:
        return None
    formatted = "f" in opening["prefix"].lower()
    quote, escape, start = opening["quote"], opening["escape"], opening.end()
    if len(quote) == 3:
        end = text.find(quote, start)
        return (
            (start, end, end + 3, formatted) if end >= 0 else (start, len(text), len(text), False)
        )
    if escape:
        line = _line_end(text, start)
        end = text.find(escape + quote, start, line)
        return (
            (start, end, end + len(escape) + 1, formatted)
            if end >= 0
            else (start, line, line, False)
        )
    inside = _INSIDE[quote].match(text, start)
    end = inside.end() if inside else start
    return start, end, end + (text[end : end + 1] == quote), formatted


def authorization(text: str, start: int, end: int, *, sure: bool) -> tuple[int, int] | None:
    """Return the part of an authorization value that is secret: what follows its scheme.

    `sure` tells that the name was ``Authorization``, not a mere ``auth``.
    """
    scheme = _SCHEME.match(text, start, end)
    at = scheme.end() if scheme else start
    value = text[at:end].rstrip()
    if harmless(value) or not value:
        return None
    if scheme:
        return (at, at + len(value)) if sure or odd(value) else None
    pair = _PAIR.match(text, at, end)
    if pair and " " not in value and not harmless(text[pair.end() : end]):
        return pair.end(), at + len(value)
    if " " in value:
        return None
    return (at, at + len(value)) if (sure and odd(value, 8)) or scrambled(value) else None


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


class _Value:
    """One name and what follows it."""

    def __init__(self, text: str, start: int, end: int, between: re.Match[str], code: bool) -> None:
        self.text = text
        self.op = between["op"] or ""
        self.close = between["close"] or ""
        self.gap = between["gap"]
        self.after = between.end()
        self.code = code
        while start < end and text[start] == "-":
            start += 1
        if start and text[start - 1] == "\\" and text[start] in "nrt" and end - start > 2:
            start += 1  # an escaped line feed in a repr is no letter of the name
        self.start, self.end = start, end
        dashes = text[max(0, start - 2) : start]
        before = text[start - len(dashes) - 1 : start - len(dashes)] if len(dashes) == 2 else ""
        self.flag = dashes == "--" or (
            dashes[-1:] == "-" and (len(dashes) < 2 or dashes[0] in " \t\"'\n,[(")
        )
        self.flag = self.flag and before not in ("-",)

    def marks(self) -> Iterator[Mark]:
        """Yield what is secret of the value."""
        name = self._judged()
        if name is None:
            return
        found: Iterator[tuple[int, int]]
        if self.flag and self.op in ("", "=", ",", ":"):
            found = self._argument(name)
        elif self.op in ("=", ":", ":=", "+=", "=>", "==", "===", "!=") or self.op[-1:] == "=":
            found = self._assigned(name)
        elif self.op == ",":
            found = self._paired(name)
        elif self.op == ">":
            found = self._element(name)
        elif self.op == "(":
            found = self._called()
        else:
            found = self._beside(name)
        for start, end in found:
            if end > start:
                yield Mark(name.rule, start, end, named=True)

    def _judged(self) -> Name | None:
        text, start = self.text, self.start
        word = text[start : self.end].rstrip("-")
        if self.op == "(":
            return Name("password") if _CALLS.fullmatch(word) else None
        name = judge(word)
        if (name is None or not name.strong) and start and text[start - 1] in " .":
            # `api key: …`, `secret.key=…`
            at = start - 1
            while at and text[at - 1] in _NAME and start - at < 40:
                at -= 1
            if at < start - 1 and (self.op not in ("", ",") or text[start - 1] == "."):
                wider = judge(text[at : start - 1] + "_" + word)
                name = wider if wider is not None and wider.strong else name
        return name

    # What may follow a name

    def _assigned(self, name: Name) -> Iterator[tuple[int, int]]:
        text = self.text
        lead = _LEAD.match(text, self.after)
        at = lead.end() if lead else self.after
        opening = self._first()
        if opening in "[{" or (opening == "(" and (name.many or name.rule == "authorization")):
            yield from self._group(name, opening)
            return
        if self.op == ":" and self.close:
            below = _NEXT_LINE.match(text, self.after)
            at = below.end() if below else at
        string = string_at(text, at)
        if string is not None:
            yield from self._quoted(name, at, bool(lead and lead["open"]))
            return
        if self.op in ("==", "===", "!="):
            return
        block = _BLOCK.match(text, at) if self.op == ":" else None
        if block is not None:
            yield from self._block(block)
        elif self.code and self._is_code():
            for match in _OTHERWISE.finditer(text, at, min(_line_end(text, at), at + 400)):
                yield from self._quoted(name, match.end(), False)
        else:
            yield from self._bare(name, at)

    def _first(self) -> str:
        at = self.after
        while at < len(self.text) and self.text[at] in " \t":
            at += 1
        return self.text[at : at + 1] or " "

    def _quoted(self, name: Name, at: int, within: bool) -> Iterator[tuple[int, int]]:
        """Judge the literal at `at` together with those that are joined to it."""
        text = self.text
        spans: list[tuple[int, int]] = []
        formatted = False
        string = string_at(text, at)
        while string is not None and len(spans) < 100:
            start, end, after, is_format = string
            spans.append((start, end))
            formatted = formatted or is_format
            also = (_ALSO_BELOW if within else _ALSO).match(text, after)
            at = also.end() if also else after
            string = string_at(text, at) if text[at : at + 1] != "\\" else None
        value = "".join(text[start:end] for start, end in spans)
        if name.rule == "authorization":
            for start, end in spans:
                part = authorization(
                    text, start, end, sure=name.rule == "authorization" and self._sure()
                )
                if part and not (formatted and harmless(_FIELD.sub("", text[slice(*part)]))):
                    yield part
            return
        if name.rule == "cookie":
            yield from (span for span in spans if _CRUMB.search(text[slice(*span)]))
            return
        if formatted:
            value = _FIELD.sub("", value).strip(" _-:/.|")
            if len(value) < 4:
                return
        if self.op in ("==", "===", "!=") and not name.strong:
            return
        if secret(name, value, quoted=True) or self._kaggle(name, value):
            yield from spans

    def _sure(self) -> bool:
        return self.text[self.end - 13 : self.end].lower() == "authorization"

    def _kaggle(self, name: Name, value: str) -> bool:
        """Tell whether it is Kaggle's ``{"username": …, "key": …}``, whose key is 32 hex digits."""
        if name.rule != "key" or len(value) != 32 or not re.fullmatch("[0-9a-f]{32}", value):
            return False
        return "username" in self.text[max(0, self.start - 100) : self.start]

    def _block(self, block: re.Match[str]) -> Iterator[tuple[int, int]]:
        """Take the lines of a YAML block, as far as they are indented."""
        start = end = block.end()
        at = _line_end(self.text, start)
        while True:
            end = at
            if not self.text.startswith(block["indent"], at + 1) or at - start > WINDOW:
                break
            at = _line_end(self.text, at + 1)
        yield start, end

    def _group(self, name: Name, opening: str) -> Iterator[tuple[int, int]]:
        """Look at the strings in a list, tuple or dictionary of secrets."""
        text = self.text
        pair = opening == "(" and name.rule == "authorization"
        if not (name.many or pair or name.rule == "cookie" or (name.rule == "secret")):
            return
        at = text.index(opening, self.after) + 1
        depth, stop = 1, min(len(text), at + WINDOW // 2)
        spans: list[tuple[int, int]] = []
        while at < stop and depth:
            character = text[at]
            if character in "[({":
                depth += 1
            elif character in "])}":
                depth -= 1
            elif character in "\"'":
                string = string_at(text, at)
                if string is not None:
                    start, end, at = string[:3]
                    if not text[at : at + 4].lstrip().startswith(":"):
                        spans.append((start, end))
                    continue
            at += 1
        if pair:
            yield from (span for span in spans[-1:] if len(spans) > 1 or opening == "(")
            return
        for start, end in spans:
            value = text[start:end]
            if (name.rule == "password" and name.strong and secret(name, value, quoted=True)) or (
                odd(value, 8) and not harmless(value)
            ):
                yield start, end

    def _is_code(self) -> bool:
        """Tell whether the name stands in an expression, not in a magic, comment or text."""
        line = self.text[self._line_start() : self.start]
        head = line.lstrip()[:1]
        if head in ("!", "%", "?", "#") or _SHELL_SET.match(line):
            return False
        if line.count('"') % 2 or line.count("'") % 2 or "#" in line:
            return False
        before = self.text[max(0, self.start - 20_000) : self.start]
        return not (before.count('"""') % 2 or before.count("'''") % 2)

    def _line_start(self) -> int:
        low = max(0, self.start - 400)
        return max(low, self.text.rfind("\n", low, self.start) + 1)

    def _bare(self, name: Name, at: int) -> Iterator[tuple[int, int]]:
        """Judge a value without quotes."""
        text = self.text
        line_start = self._line_start()
        stop = min(_line_end(text, at), at + WINDOW)
        if name.rule in ("authorization", "cookie"):
            yield from self._header(name, at, stop)
            return
        before = text[self.start - 1 : self.start]
        if before in ("?", "&") and self.op == "=":
            match = re.compile(r"[^\s\"'`&;#<>\\]+").match(text, at, stop)
            if match and (secret(name, match[0]) or (name.rule != "key" and odd(match[0], 8))):
                yield match.span()
            return
        alone = not self.close and _SETS.fullmatch(text, line_start, self.start) is not None
        if alone and self.op == "=" and not self.gap and text[self.start : self.end].isupper():
            name = replace(name, strong=True)  # of the environment: `TOKEN=x`
        if alone and self.op in ("=", ":"):
            value = _COMMENT.sub("", text[at:stop]).rstrip().rstrip(",;")
            words = value.split()
            shell = self.code or text[line_start : line_start + 1] == "!"
            whole = self.op == "=" and not self.gap and not text[at - 1].isspace() and not shell
            if len(words) > 1 and not (whole and name.rule == "password"):
                value = words[0].rstrip(",;")
                if not (odd(value) or self.op == "=") or (self.op == ":" and not odd(value)):
                    return
        else:
            match = _BARE.match(text, at, stop)
            value = match[0] if match else ""
            while value and (value[-1] in ":." or (value[-1] in ")]}" and not _balanced(value))):
                value = value[:-1]
            follows = text[at + len(value) : at + len(value) + 1]
            if (
                value.isidentifier()
                and not odd(value)
                and (follows in tuple("),]}") or self.op == ":")
            ):
                return
        if value and self._is_secret(name, value, at):
            yield at, at + len(value)

    def _is_secret(self, name: Name, value: str, at: int) -> bool:
        """Judge `value`, which stands without quotes at `at`."""
        if value.isdigit():
            tight = self.op == "=" and not self.gap and not self.text[at - 1].isspace()
            return name.rule == "password" and name.strong and tight and len(value) >= 4
        if _CODE.match(value) and not (value[0] in "$%*&@" and odd(value, 8) and "{" not in value):
            return False
        dotted = _DOTTED.fullmatch(value)
        if dotted and (not odd(value) or judge(value.rpartition(".")[2])):
            return False
        if value.isidentifier() and judge(value) is not None:
            return False
        return secret(name, value)

    def _header(self, name: Name, at: int, stop: int) -> Iterator[tuple[int, int]]:
        """Take the rest of a header's line, up to a quote that encloses it."""
        text = self.text
        if self.op not in (":", "=", "=>"):
            return
        quote = re.compile(r"[\"'`]|\\+[\"'nr]").search(text, at, stop)
        end = quote.start() if quote else stop
        if name.rule == "cookie":
            if self.op == ":" and _CRUMB.match(text, at, end):
                yield at, end
            return
        if self.op == ":" or self._sure():
            part = authorization(text, at, end, sure=self._sure())
            if part and not _CODE.match(text, part[0]):
                yield part

    def _argument(self, name: Name) -> Iterator[tuple[int, int]]:
        """Judge what follows a flag of a command: ``--token x``, ``"--token", "x"``."""
        text = self.text
        at = self.after
        while at < len(text) and text[at] in " \t":
            at += 1
        string = string_at(text, at)
        if string is not None and (self.op != "," or self.close):
            start, end = string[:2]
        elif self.op == ",":
            return
        else:
            match = _SHELL.match(text, at, at + WINDOW)
            if match is None:
                return
            start, end = match.span()
        value = text[start:end]
        if value.startswith("-") or harmless(value) or (value.isalpha() and value.isupper()):
            return
        if name.rule == "cookie":
            if "=" in value:
                yield start, end
        elif name.rule == "key" and not name.strong:
            if secret(name, value):
                yield start, end
        elif name.rule == "authorization":
            part = authorization(text, start, end, sure=True)
            if part:
                yield part
        elif name.strong:
            if secret(name, value, quoted=True):
                yield start, end
        elif _DOTTED.fullmatch(value) or value[0] in "/~." or value.isdigit():
            return
        elif not value.isalpha() or len(value) > 12 or self._in_command():
            # A mere word in a text may be prose about the flag.
            yield start, end

    def _in_command(self) -> bool:
        line = self.text[self._line_start() : self.start].lstrip()
        return line[:1] in ("!", "$", "%", "+") or string_at(self.text, self.after) is not None

    def _paired(self, name: Name) -> Iterator[tuple[int, int]]:
        """Judge ``("name", "value")`` and ``getenv("NAME", "default")``."""
        if not self.close:
            return
        text = self.text
        at = self.after
        while at < len(text) and text[at] in " \t\n":
            at += 1
        string = string_at(text, at)
        if string is None:
            return
        start, end = string[:2]
        if name.rule == "authorization":
            part = authorization(text, start, end, sure=self._sure())
            if part:
                yield part
        elif _DEFAULTS.search(text, max(0, self.start - 120), self.start):
            if secret(name, text[start:end], quoted=True):
                yield start, end
        elif name.strong and odd(text[start:end], 8) and secret(name, text[start:end]):
            yield start, end

    def _element(self, name: Name) -> Iterator[tuple[int, int]]:
        """Judge an XML element's text."""
        if self.text[self.start - 1 : self.start] != "<" or self.gap or self.close:
            return
        end = self.text.find("<", self.after, self.after + WINDOW)
        if end > 0 and secret(name, self.text[self.after : end], quoted=True):
            yield self.after, end

    def _called(self) -> Iterator[tuple[int, int]]:
        """Take the last string of a call that logs in."""
        text = self.text
        word = text[self.start : self.end].lower()
        stop = text.find(")", self.after, self.after + 300)
        if stop < 0:
            return
        strings: list[tuple[int, int]] = []
        at = self.after
        commas = 0
        while at < stop:
            string = string_at(text, at) if text[at] in "\"'" else None
            if string is not None:
                strings.append(string[:2])
                at = string[2]
                continue
            commas += text[at] == ","
            at += 1
        last = strings[-1] if strings else None
        if last is None or harmless(text[slice(*last)]) or text[last[1] + 1 : stop].strip(" ,\n"):
            return
        if commas or "pass" in word:
            yield last

    def _beside(self, name: Name) -> Iterator[tuple[int, int]]:
        """Judge what stands beside a name: in a column, after ``is``, as SQL's ``PASSWORD 'x'``."""
        text, at = self.text, self.after
        while at < len(text) and text[at] in " \t":
            at += 1
        verb = re.compile(r"(?:is|was)\b:?[ \t]+").match(text, at)
        at = verb.end() if verb else at
        if text[at : at + 1] in ("'", '"') and name.strong and not self.close:
            string = string_at(text, at)
            value = text[string[0] : string[1]] if string and self.gap else " "
            if string and " " not in value and secret(name, value, quoted=True):
                yield string[:2]
            return
        if _ENV_MAGIC.fullmatch(text, self._line_start(), self.start):
            stop = min(_line_end(text, at), at + WINDOW)
            if secret(replace(name, strong=True), text[at:stop]):
                yield at, stop
            return
        wide = self.op in ("|", "│", "┃") or len(self.gap) > 1 or "\t" in self.gap
        match = re.compile(r"[^\s|│┃\"',;]+").match(text, at, at + WINDOW)
        if match is None or not (verb or wide):
            return
        value = match[0].rstrip(".)")
        if _CODE.match(value) or not secret(name, value):
            return
        if not name.strong or odd(value, 6 if verb else 12):
            yield at, at + len(value)


def _balanced(value: str) -> bool:
    return all(value.count(a) >= value.count(b) for a, b in ("()", "[]", "{}"))
