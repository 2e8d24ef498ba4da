"""What a person said in their questions to the assistant, and whether they asked for a memory.

Of a question count the lines that are the person's: code between fences and quoted lines (``>``)
are something that they show. A sentence is theirs when it stands whole in a question: a piece of
one may say the opposite ("we never said that …").
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

_FENCED = re.compile(r"^[ \t]*(```+|~~~+).*?(?:^[ \t]*\1[`~]*[ \t]*$|\Z)", re.DOTALL | re.MULTILINE)
_QUOTED = re.compile(r"^[ \t]*>.*$", re.MULTILINE)

_KEEP_WORDS = (
    r"remember|memori[sz]e|keep in mind|bear in mind|note (?:that|this|down|to(?: self)?)"
    r"|make a note|take note|write (?:this|that|it) down|(?:save|store|record|keep) (?:this|that|it"
    r"|the following|a memory|(?:as|in|to) (?:a )?memor\w+)"
    r"|add (?:this|that|it|a|to)[^.!?]{0,40}memor\w+"
    r"|(?:don['’]?t|do not|never) forget"
    r"|merk\w*|notier\w*|speicher\w*|behalte?|vergiss nicht|denk(?:e)? dran"
    r"|souviens(?:-toi)?|retiens|retenez|mémoris\w+|n['’]oublie(?:z)? pas"
    r"|recu[eé]rda\w*|recuerda|no olvides|memoriz[ae]\w*|ricorda\w*|non dimenticare"
    r"|lembr[ae]\w*|não esqueça|onthoud\w*|vergeet niet|zapamiętaj\w*|запомни\w*"
    r"|覚えて(?!い)|記憶して|メモして|忘れないで|记住|記住|记下|记得|别忘|기억해"
)
_CHANGE_WORDS = (
    r"correct\w*|update\w*|chang\w+|replac\w+|no longer|not any ?more|instead|outdated|wrong"
    r"|änder\w*|ersetz\w*|korrigier\w*|aktualisier\w*|nicht mehr|falsch|stattdessen"
    r"|corrig\w+|remplac\w+|cambi\w+|reemplaz\w+|修正|更新|変更|もう|替换|更改|改成|改为"
)
_DROP_WORDS = (
    r"forget|(?:drop|delete|remove|erase|discard) (?:the |that |this |your |any |all )*"
    r"(?:[\w-]+ ){0,4}(?:memor\w+|note|rule|entry|preference|fact)|un-?remember"
    r"|vergiss|vergessen|lösch\w*|oublie\w*|supprime\w*|olvida\w*|borra\w*|elimina\w*"
    r"|dimentica\w*|esqueç\w*|apag\w+|vergeet|zapomnij\w*|забудь\w*"
    r"|忘れて|削除|消して|忘记|忘掉|删除|잊어"
)


def _re(words: str) -> re.Pattern[str]:
    # Scripts without spaces have no word boundaries.
    return re.compile(rf"(?<![a-zà-ÿ])(?:{words})", re.IGNORECASE)


_KEEP = _re(_KEEP_WORDS)
_CHANGE = _re(f"{_KEEP_WORDS}|{_CHANGE_WORDS}")
_DROP = _re(_DROP_WORDS)
_NOT_FORGET = _re(
    r"(?:don['’]?t|do not|never|please don['’]?t) (?:ever )?forget|vergiss (?:\w+ )?nicht"
    r"|n['’]oublie\w* pas|no olvides|non dimenticare|não esqueça|vergeet niet|忘れないで|别忘"
)
_ASKED_OF_US = _re(
    r"(?:do|did|can|could|will|don['’]?t|didn['’]?t) you (?:still |even )?(?:remember|recall)"
    r"|what (?:do|did|can) you (?:still )?remember|as (?:you|i) remember|i (?:don['’]?t )?remember"
    r"|i can['’]?t remember|if i remember|erinnerst du|te souviens-tu|te souviens|覚えていますか"
    r"|(?:i|we) forg[eo]t\w*|did (?:i|you|we) forget|have you forgotten|ich habe vergessen"
)
_NOT_KEEP = _re(
    r"(?:don['’]?t|do not|never|no need to|not to|without) (?:ever |please )?(?:remember\w*"
    r"|memori[sz]\w+|sav\w+|stor\w+|record\w*|keep\w*|note|make a note|take note|write)"
    r"|merke? (?:dir )?(?:das |es )?nicht|speicher\w* (?:das |es )?nicht|覚えないで|记住?不要记"
)
_BEFORE = re.compile(r"(?:[.!?;\n•。！？；]|(?:^|\n)[-*\d.)]+)\s*$")
_ASKING = re.compile(
    rf"(?:{_KEEP_WORDS}|{_CHANGE_WORDS})(?:[ ,:]*(?:please|bitte|dir|me|also|too|this|"
    r"for (?:me|us|later|next time|the future)))*"
    r"[\s,:;\"“”'‘’—–-]*(?:that|dass|daß|que|che|to|di|de)?[\s,:\"“”'‘’—–-]*$",
    re.IGNORECASE,
)
_AFTER = re.compile(
    r"[\s\"“”'‘’)」]*(?:$|[.!?;\n。！？；]|,?\s*(?:ok|okay|please|thanks?|thank you|bitte|danke)\b"
    r"|を?(?:覚えて|記憶して|メモして|忘れないで))"
)
_EDGE = " \t.!;:。！；：\"“”'‘’"


@dataclass(frozen=True, slots=True)
class Said:
    """The person's questions in a session: the one that is being answered, and those before."""

    question: str
    before: tuple[str, ...] = ()

    def spoken(self, words: str) -> bool:
        """Return whether `words` are whole sentences of one of the questions, word for word."""
        wanted = _plain(words).strip(_EDGE)
        if len(wanted) < 2:
            return False
        texts = [_plain(own(each)) for each in (self.question, *self.before)]
        # A sentence may go over lines, and a line may be a sentence.
        folded = wanted.replace("\n", " ")
        return any(
            _whole(each, wanted) or _whole(each.replace("\n", " "), folded) for each in texts
        )


def own(question: str) -> str:
    """Return the lines of `question` that are the person's own words."""
    return _QUOTED.sub("", _FENCED.sub("", question))


def asks_to_keep(question: str, *, change: bool = False) -> bool:
    """Return whether the person asks for something to be remembered.

    With `change` also whether they say that something is no longer so.
    """
    text = _ASKED_OF_US.sub(" ", _NOT_KEEP.sub(" ", own(question)))
    return (_CHANGE if change else _KEEP).search(text) is not None


def asks_to_forget(question: str) -> bool:
    """Return whether the person asks for a memory to go."""
    text = _ASKED_OF_US.sub(" ", _NOT_FORGET.sub(" ", own(question)))
    return _DROP.search(text) is not None


def _whole(text: str, wanted: str) -> bool:
    at = text.find(wanted)
    while at >= 0:
        head, tail = text[:at], text[at + len(wanted) :]
        begins = not head.strip() or _BEFORE.search(head) or _ASKING.search(head)
        if begins and _AFTER.match(tail):
            return True
        at = text.find(wanted, at + 1)
    return False


def _plain(text: str) -> str:
    """Return `text` for comparing: one form of letters and of white space, lines kept."""
    folded = unicodedata.normalize("NFKC", text).casefold().replace("’", "'")
    return re.sub(r"\s*\n\s*", "\n", re.sub(r"[^\S\n]+", " ", folded)).strip()
