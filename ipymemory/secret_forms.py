"""Secrets that a form gives away: URLs, key blocks, bearer tokens, known commands, calls."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator

from ipymemory.secret_calls import crumb_line, crumbs, keyed, pgpass
from ipymemory.secret_clients import (
    clients,
    connected,
    decrypted,
    logged_in,
    signed_in,
    stored,
    typed,
)
from ipymemory.secret_commands import COOKIES, PIPED, WITH_FLAG, WITHOUT_FLAG
from ipymemory.secret_literals import Folded, Literals
from ipymemory.secret_names import STEMS, harmless, odd, scrambled
from ipymemory.secret_queries import IDENTIFIED, IDENTIFIED_BARE, OF_USERS
from ipymemory.secret_siblings import manifest
from ipymemory.secret_tokens import Mark

_LINE = 2000
"""Characters of a command that are looked at."""


def formed(text: str, folded: Folded) -> Iterator[Mark]:
    """Yield a mark for every secret in `text` that its surroundings give away.

    `folded` is `text` in lower case.
    """
    yield from _asked(text, folded, _FORMS, FIRST)
    if _FLAG.search(folded.raw):
        yield from _asked(text, folded, _COMMANDS, _COMMAND_WORDS)


def may_hold(folded: Folded) -> bool:
    """Tell whether a text may hold a secret that a name or its surroundings give away."""
    return bool(folded.holding(FIRST)) or _FLAG.search(folded.raw) is not None


def _asked(text: str, folded: Folded, forms: dict[bytes, _Form], words: Literals) -> Iterator[Mark]:
    """Ask each of `forms` wherever its word stands."""
    for word in (x.word for x in folded.holding(words) if x.word in forms):
        lower, find = folded.text, forms[word]
        at = lower.find(word)
        while at >= 0:
            end = at + len(word)
            if not callable(find):
                # All of a command at once: its name may occur in it again.
                end = max(end, _command_end(text, at))
                for pattern in find if isinstance(find, tuple) else (find,):
                    yield from _values(pattern, text, at, end)
            else:
                for mark in find(text, at):
                    yield mark
                    end = max(end, mark.end)
            at = lower.find(word, end)


# URLs

_REST = re.compile(r"[^\s\"'`<>\\|]{0,400}")
_HOST = re.compile(r"[\w.-]+(?::\d+)?(?:[/?,#]|$)")
_WEBHOOK = re.compile(
    r"(?:hooks\.slack\.com/(?:services|workflows|triggers)/"
    r"|(?:ptb\.|canary\.)?discord(?:app)?\.com/api/webhooks/\d+/"
    r"|[\w-]+\.webhook\.office\.com/webhookb2/|outlook\.office\.com/webhook/"
    r"|hooks\.zapier\.com/hooks/catch/\d+/)(?P<secret>[\w/@.-]{8,})"
)


_WEB = ("http", "ttps", "+ssh")


def _url(text: str, at: int) -> Iterator[Mark]:
    """Find the password in ``scheme://user:password@host``, a token as user, a webhook's path."""
    start = at + 3
    match = _REST.match(text, start)
    rest = match[0] if match else ""
    if "@" not in rest:
        hook = _WEBHOOK.match(rest) if "hook" in rest else None
        if hook is not None:
            yield Mark("webhook", start + hook.start("secret"), start + hook.end("secret"))
        return
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    user, colon, _ = rest.partition(":")
    if "@" in authority:
        info = authority.rpartition("@")[0]
        user, colon, password = info.partition(":")
        if not colon:
            if len(user) >= 16 and scrambled(user) and text[at - 4 : at].lower() in _WEB:
                yield Mark("url password", start, start + len(user))
            return
        end = start + len(info)
    else:
        # A slash or a hash in the password that nobody escaped: `user:pa/ss@host/db`.
        if not colon or "@" in user or "/" in user or rest.startswith("["):
            return
        end = start + rest.rindex("@")
        password = text[start + len(user) + 1 : end]
        number = re.split(r"[/?#]", password, maxsplit=1)[0]
        if number.isdigit() or not number or not _HOST.match(rest, end - start + 1):
            return
    if password and not _template(password):
        yield Mark("url password", start + len(user) + 1, end, named=True)


def _template(value: str) -> bool:
    return harmless(value, quoted=True) or (value[0] in "{$<%" and value[-1] in "})>%s")


# Key blocks

_BEGIN = re.compile(r"-{4,5} ?BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}")
_END = re.compile(r"-{4,5} ?END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}")
_BLOCK = 20_000
"""Characters that a private key with its two lines may have; 8192 bits of RSA have 6,400."""

_BREAK = r"(?:\s|\\+[nrt]|\\+(?=\n)|[\"',+>|$#*b()]){0,40}"
_BODY = re.compile(
    rf"(?:{_BREAK}(?:[A-Za-z0-9+/=_-]{{20,}}|[A-Z][A-Za-z-]{{2,20}}: ?[^\n\\\"]{{1,80}}))*+"
    rf"(?:{_BREAK}[A-Za-z0-9+/=]{{1,76}}(?=\s*$|\s*[\"'…\[\\]|\s*\n|-))?"
)
_KAERB = r"(?:[\s\"',+>|$#*b()\\]|[nrt](?=\\)){1,40}"  # as `_BREAK`, but read backwards
_YDOB = re.compile(
    rf"(?:{_KAERB})?[A-Za-z0-9+/=]{{1,76}}"
    rf"(?:{_KAERB}[A-Za-z0-9+/=]{{20,}})*+"
    rf"(?:{_KAERB}[A-Za-z0-9+/=]{{1,76}}(?=\s|[\"'\[]|$))?"
)


def _key_block(text: str, at: int) -> Iterator[Mark]:
    """Find a private key in PEM, whole or cut off at either end, its lines broken or escaped."""
    begin = _around(_BEGIN, text, at)
    if begin is not None:
        again = _BEGIN.search(text, begin.end(), begin.end() + _BLOCK)
        stop = again.start() if again else begin.end() + _BLOCK
        end = _END.search(text, begin.end(), stop)
        if end is not None:
            yield Mark("private key", begin.start(), end.end())
            return
        body = _BODY.match(text, begin.end(), stop)
        stop = body.end() if body else begin.end()
        yield Mark("private key", begin.start(), stop)
        return
    end = _around(_END, text, at)
    if end is not None:
        before = text[max(0, end.start() - _BLOCK) : end.start()][::-1]
        body = _YDOB.match(before)
        yield Mark("private key", end.start() - (body.end() if body else 0), end.end())


def _around(pattern: re.Pattern[str], text: str, at: int) -> re.Match[str] | None:
    """Return the match of `pattern` that reaches over `at`."""
    for match in pattern.finditer(text, max(0, at - 60), at + 40):
        if match.start() < at < match.end():
            return match
    return None


# Tokens behind a word

_BEARER = re.compile(r"[ \t]{1,20}(?P<token>[\w.~+/=-]{12,4000})")


def _bearer(text: str, at: int) -> Iterator[Mark]:
    match = _BEARER.match(text, at + 6)
    if match and odd(match["token"], 12) and not harmless(match["token"]):
        yield Mark("bearer token", match.start("token"), match.end("token"), named=True)


_BASIC = re.compile(r"[ \t]+(?P<token>[A-Za-z0-9+/]{6,400}={0,2})(?![\w+/])")


def _basic(text: str, at: int) -> Iterator[Mark]:
    """Find ``Basic`` credentials: base64 of a user, a colon and a password."""
    match = _BASIC.match(text, at + 5)
    if match is None:
        return
    try:
        plain = base64.b64decode(match["token"], validate=True).decode()
    except (binascii.Error, ValueError):
        return
    if ":" in plain and plain.isprintable():
        yield Mark("authorization", match.start("token"), match.end("token"), named=True)


# Commands

_WORD = r"(?P<q>[\"']?)(?P<value>[^\s\"'|;&]+|(?<=\")[^\"\n]+|(?<=')[^'\n]+)(?P=q)"
_USER = re.compile(
    r"(?<![\w-])(?:-[uU]|--user|--proxy-user)(?:[\"']\s*,\s*|\s+|=|)[\"']?[^\s:\"'\\,=]+:"
    r"(?P<value>[^\s\"'\\,]+)"
)
_MYSQL = re.compile(r"(?<=[\s\"'])-p(?P<q>[\"']?)(?P<value>[^\s\"'|;&<>,]+)(?P=q)")
_LOGIN_P = re.compile(rf"(?<=[\s\"'])-p(?:[\"']\s*,\s*|\s+|=|){_WORD}")
_P = re.compile(rf"(?<=\s)-p\s+{_WORD}")
_ZIP = re.compile(rf"(?<=\s)-P\s+{_WORD}")
_PAIRED = re.compile(r"(?<=\s)(?:-a|--auth)[\s=]+[\"']?[^\s:\"']+:(?P<value>[^\s\"']+)")
_LOGIN_TOOLS = re.compile(
    r"\b(?:docker|podman|nerdctl|helm|oras|az|oc|cf|ibmcloud|buildah|skopeo)\b"
)
_NETRC = re.compile(r"login\s+\S+\s+password\s+(?P<value>\S+)", re.IGNORECASE)
_SUDO = re.compile(r"sudo (?:-[A-Za-z]+ )*-[A-Za-z]*S", re.IGNORECASE)
_REDIS = re.compile(rf"(?<=\s)-a\s+{_WORD}")
_GRANTS = re.compile(r"\b(?:user|role|grant|alter|create|to)\b", re.I)


def _command_end(text: str, at: int) -> int:
    """Return where the command at `at` ends: with its line, or the lines that go on with it."""
    stop = min(len(text), at + _LINE)
    end = text.find("\n", at, stop)
    while end > 0 and text[end - 1] == "\\":
        end = text.find("\n", end + 1, stop)
    return end if end >= 0 else stop


def _values(pattern: re.Pattern[str], text: str, at: int, end: int) -> Iterator[Mark]:
    for match in pattern.finditer(text, at, end):
        value = match["value"]
        if not _template(value) and value != "-":
            yield Mark("password", *match.span("value"), named=True)


def _login(text: str, at: int) -> Iterator[Mark]:
    """Find what follows ``login``: ``docker login -p x``, a line of .netrc, ``login("u", "x")``."""
    line = max(text.rfind("\n", max(0, at - 200), at), at - 200, -1) + 1
    before = text[line:at]
    if _LOGIN_TOOLS.search(before):
        yield from _values(_LOGIN_P, text, at, _command_end(text, at))
        piped = PIPED.search(before[: _tool(before)])
        if piped and not _template(piped["value"]):
            yield Mark(
                "password", line + piped.start("value"), line + piped.end("value"), named=True
            )
        return
    netrc = _NETRC.match(text, at, at + 300)
    if netrc and not _template(netrc["value"]):
        yield Mark("password", netrc.start("value"), netrc.end("value"), named=True)
        return
    yield from logged_in(text, at)


def _tool(before: str) -> int:
    match = _LOGIN_TOOLS.search(before)
    return match.start() if match else 0


def _sudo(text: str, at: int) -> Iterator[Mark]:
    """Find the password in ``echo password | sudo -S``."""
    if not _SUDO.match(text, at):
        return
    yield from _piped(text, at)


def _piped(text: str, at: int) -> Iterator[Mark]:
    """Find what is piped into the command at `at`, which reads a key or a password there."""
    low = max(0, at - 200)
    piped = PIPED.search(text[low:at])
    if piped and not _template(piped["value"]):
        yield Mark("password", low + piped.start("value"), low + piped.end("value"), named=True)


def _users(text: str, at: int) -> Iterator[Mark]:
    """Find the password in ``echo "bob:password" | chpasswd``."""
    for mark in _piped(text, at):
        user = text.find(":", mark.start, mark.end)
        if user >= 0:
            yield Mark("password", user + 1, mark.end, named=True)


def _sql(text: str, at: int) -> Iterator[Mark]:
    """Find the password of ``CREATE USER bob IDENTIFIED BY 'password'``."""
    if OF_USERS.search(text, max(0, at - 200), at):
        yield from _values(IDENTIFIED_BARE, text, at, at + 300)
    if _GRANTS.search(text, max(0, at - 200), at):
        yield from _values(IDENTIFIED, text, at, at + 300)


_Form = re.Pattern[str] | tuple[re.Pattern[str], ...] | Callable[[str, int], Iterator[Mark]]
_FORMS: dict[bytes, _Form] = {
    b"://": _url,
    b"private key": _key_block,
    b"bearer": _bearer,
    b"basic ": _basic,
    b"login": _login,
    b"sign_in(": signed_in,
    b"connect(": connected,
    b"boto": clients,
    b"github(": clients,
    b"sendline(": typed,
    b".decrypt(": decrypted,
    b"secrets.put(": stored,
    b"identified": _sql,
    b"kind": manifest,
    b"fernet(": keyed,
    b"hmac.new(": keyed,
    b"aes.new(": keyed,
    b"jwt.": keyed,
    b"cookie": crumbs,
    b"true\t/": crumb_line,
    b"false\t/": crumb_line,
    b":5432:": pgpass,
    b":*:": pgpass,
    b"chpasswd": _users,
    b"gh auth": _piped,
    **{word.encode(): pattern for word, pattern in WITHOUT_FLAG.items()},
}
FIRST = Literals((*STEMS, *(word.decode() for word in _FORMS)))
"""What is looked for in every text: what a name holds and what a form does, all at once."""

_FLAG = re.compile(rb"-(?:[puaskwnbcPUASKN](?<=\W..)|String|from)")
_COMMANDS: dict[bytes, _Form] = {
    b"curl": (_USER, COOKIES),
    b"mysql": _MYSQL,
    b"redis-cli": _REDIS,
    b"sudo -": _sudo,
    b"mariadb": _MYSQL,
    b"zip -": _ZIP,
    b"twine": _P,
    b"http -": _PAIRED,
    **{word.encode(): pattern for word, pattern in WITH_FLAG.items()},
}
"""Commands that take a password with one of the flags that `_FLAG` finds."""

_COMMAND_WORDS = Literals(tuple(word.decode() for word in _COMMANDS))
