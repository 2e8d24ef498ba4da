"""What makes a secret or its name look otherwise: unseen characters, wide letters, other scripts.

A text with any of them is also read as `bare` spells it: without what is not seen, in plain
letters, with the word for a password in a script of its own (``пароль``) spelled as ``pwd``. What
is found there is masked in the text as it is.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import cache

from ipymemory.secret_tokens import Mark

_UNSEEN = (
    "\u00ad\u0300-\u036f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\ufe00-\ufe0f\ufeff\U000e0000-\U000e01ef"
)

_PASSWORDS = (
    *("пароль", "пароля", "паролю", "пароли", "парола", "паролата", "лозинка", "κωδικός"),
    *("κωδικοσ", "κωδικος", "συνθηματικό", "סיסמה", "סיסמא", "密码", "密碼", "口令"),
    *("パスワード", "비밀번호", "암호", "รหัสผ่าน"),
    *("पासवर्ड", "कूटशब्द", "كلمة المرور", "كلمة السر", "mật khẩu", "mật_khẩu", "رمز عبور"),
    *("گذرواژه", "পাসওয়ার্ড", "கடவுச்சொல்", "პაროლი", "գաղտնաբառ", "密钥", "密鑰", "秘密鍵"),
    *("ключ_api", "api_ключ", "ключ api", "api-ключ", "секретный ключ", "секретный_ключ"),
)
"""The word for a password in scripts that have no Latin letters, in lower case."""

_LATIN = ("señ", "ösenord", "hasł", "jelszó", "şifre", "slaptaž", "clé", "chlüssel", "parolă")
"""Parts of such words in Latin letters with a mark, in lower case."""

_KEYS = re.compile("clé[ _-]?(?:d['’]|de[ _])?api|clé[ _]secrète")

_LOOK_ALIKE = dict(zip("аеорсухіјѕԁоΑΒΕΗΙΚΜΝΟΡΤΧαορν", "aeopcyxijsdoABEHIKMNOPTXaopv", strict=True))


class Bare:
    """A text as it reads without its disguise, and where each of its parts comes from."""

    __slots__ = ("_begins", "_origins", "text")

    def __init__(self, text: str, begins: list[int], origins: list[int]) -> None:
        self.text = text
        self._begins = begins
        self._origins = origins

    def back(self, marks: Iterable[Mark]) -> Iterator[Mark]:
        """Yield `marks`, found in the bare text, as they lie in the text that was given."""
        begins, origins = self._begins, self._origins
        for mark in marks:
            first = bisect_right(begins, mark.start) - 1
            last = bisect_right(begins, mark.end - 1) - 1
            start = origins[first] + mark.start - begins[first]
            end = origins[last] + mark.end - begins[last]
            yield Mark(mark.rule, start, end, mark.named)


def bare(text: str) -> Bare | None:
    """Return `text` without its disguise; None if it wears none."""
    begins, origins = [0], [0]
    shown = text
    if "\x1b" in text or _dressed().search(text):
        shown, begins, origins = _undressed(text)
        shown = shown.translate(_plain())
    shown = spelled(shown)
    return None if shown == text else Bare(shown, begins, origins)


def spelled(text: str) -> str:
    """Return `text`, as long as it was, in ASCII letters if it names a password in others."""
    if text.isascii():
        return text
    other = max(text) > "\u036f"
    if other and _mixed().search(text):
        text = text.translate(_alike())
    lower = text.lower()
    if len(lower) != len(text):
        lower = "".join(each.lower()[:1] or each for each in text)
    words = [match.span() for match in _foreign().finditer(lower)] if other else []
    if not words and not any(part in lower for part in _LATIN):
        return text
    words = sorted((*words, *(match.span() for match in _KEYS.finditer(lower))))
    pieces: list[str] = []
    at = 0
    for start, end in words:
        pieces += [text[at:start], "pwd".rjust(end - start, "_") if end - start > 2 else "pw"]
        at = end
    return "".join([*pieces, text[at:]]).translate(_LETTERS)


def _undressed(text: str) -> tuple[str, list[int], list[int]]:
    """Return `text` without what is not seen, where its pieces begin in it, and where in `text`."""
    pieces: list[str] = []
    begins: list[int] = []
    origins: list[int] = []
    at = length = 0
    for match in (*_unseen().finditer(text), None):
        stop = match.start() if match else len(text)
        if stop > at:
            pieces.append(text[at:stop])
            begins.append(length)
            origins.append(at)
            length += stop - at
        at = match.end() if match else stop
    return "".join(pieces), begins or [0], origins or [0]


class _Letters(dict[int, int]):
    """A letter with a mark to the letter; made as they are asked for."""

    def __missing__(self, code: int) -> int:
        plain = _STROKES.get(code) or ord(unicodedata.normalize("NFKD", chr(code))[0])
        if plain > 127 and chr(code).isalpha():
            plain = ord("a")  # so that what is joined to a name is a part of it: `пароль_бд`
        self[code] = plain
        return plain


_LETTERS = _Letters()
_STROKES = dict(zip(map(ord, "łŁøØđĐıßæÆœŒбдБД"), map(ord, "lLoOdDisaAoObdBD"), strict=True))


@cache
def _plain() -> dict[int, int]:
    plain = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
    plain |= dict.fromkeys((0xA0, 0x2007, 0x202F, 0x3000), ord(" "))
    plain |= dict.fromkeys((0x2018, 0x2019, 0x201A, 0x201B), ord("'"))
    plain |= dict.fromkeys((0x201C, 0x201D, 0x201E, 0x201F), ord('"'))
    plain |= dict.fromkeys((0x2010, 0x2011, 0x2012, 0x2212), ord("-"))
    return plain | {0xFE55: ord(":"), 0xFE66: ord("="), 0xA789: ord(":"), 0x2236: ord(":")}


@cache
def _unseen() -> re.Pattern[str]:
    from ipymemory.screen import CODE

    return re.compile(rf"{CODE}|[{_UNSEEN}]+")


@cache
def _dressed() -> re.Pattern[str]:
    return re.compile(f"[\x9b{_UNSEEN}{''.join(map(chr, _plain()))}]")


@cache
def _foreign() -> re.Pattern[str]:
    return re.compile("|".join(sorted(_PASSWORDS, key=len, reverse=True)))


@cache
def _mixed() -> re.Pattern[str]:
    return re.compile("[A-Za-z][Ͱ-ӿ]|[Ͱ-ӿ][A-Za-z]")


@cache
def _alike() -> dict[int, int]:
    return {ord(one): ord(other) for one, other in _LOOK_ALIKE.items()}
