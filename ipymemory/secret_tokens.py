"""Tokens that say by themselves what they are: the keys that providers give out.

All of them hold twenty characters or more of letters, digits, ``_``, ``-`` and ``~`` in a row,
which ordinary text seldom does; so those runs are looked for first, at the speed of a search
for one literal, and only they are held against the patterns.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True, slots=True)
class Mark:
    """What is to be masked: the rule that found it, and where it begins and ends in the text."""

    rule: str
    start: int
    end: int
    named: bool = False
    """Whether it is the value of something whose name says so, and so worth remembering."""


TOKENS: tuple[tuple[str, str], ...] = (
    ("anthropic key", r"sk-ant-[\w-]{16,}"),
    ("openrouter key", r"sk-or-v1-[0-9a-f]{32,}"),
    ("openai key", r"sk-(?:proj|svcacct|admin|None)-[\w-]{16,}|sess-[A-Za-z0-9]{40,}"),
    # A digit and a capital: `sk-estimator-doc-link` is a style class of scikit-learn.
    ("openai key", r"sk-(?=[\w-]*\d)(?=[\w-]*[A-Z])[\w-]{20,}|sk-[0-9a-f]{32,}"),
    ("aws key", r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9])|ABSK[A-Za-z0-9+/=]{40,}"),
    (
        "google key",
        r"AIza[\w-]{35}|ya29\.[\w-]{20,}|GOCSPX-[\w-]{20,}|AQ\.Ab8[\w-]{30,}",
    ),
    ("azure key", r"[\w~.]{3}\dQ~[\w~.-]{31,34}(?![\w~-])|[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}"),
    ("github token", r"gh[pousr]_[A-Za-z0-9]{30,}|github_pat_\w{22,}"),
    ("gitlab token", r"gl(?:pat|dt|rt|cbt|ptt|ft|imt|oas|agent|soat|ffct)-[\w-]{20,}"),
    ("gitlab token", r"GR1348941[\w-]{20}"),
    ("atlassian token", r"ATATT3[\w=-]{20,}|ATBB[A-Za-z0-9]{28,}|ATCTT3[\w=-]{20,}"),
    ("slack token", r"xox[abeoprs]-[\w-]{10,}|xapp-\d-[\w-]{10,}|xoxe\.xox[bp]-\d-[\w-]{20,}"),
    ("stripe key", r"[sr]k_(?:live|test|prod)_[A-Za-z0-9]{10,}|whsec_[A-Za-z0-9+/=]{24,}"),
    ("hugging face token", r"hf_[A-Za-z0-9]{30,}|api_org_[A-Za-z0-9]{30,}"),
    ("npm token", r"npm_[A-Za-z0-9]{30,}"),
    ("pypi token", r"pypi-[\w-]{40,}"),
    ("twilio key", r"SK[0-9a-f]{32}(?![0-9A-Za-z])"),
    ("sendgrid key", r"SG\.[\w-]{16,32}\.[\w-]{16,64}"),
    ("telegram token", r"(?:bot)?\d{8,10}:AA[\w-]{33}(?![\w-])"),
    ("discord token", r"[MNO][\w-]{23,27}\.[\w-]{6}\.[\w-]{27,40}"),
    ("jwt", r"ey[JI][\w-]{8,}+\.[\w-]{8,}+(?:\.[\w-]*+)*+"),
    ("square key", r"sq0(?:atp|csp|idp)-[\w-]{20,}|EAAA[\w-]{60}(?![\w-])"),
    ("shopify token", r"shp(?:at|ss|ca|pa|tka)_[0-9a-fA-F]{32}"),
    ("mailgun key", r"(?<![-_])key-[0-9a-f]{32}(?![0-9a-f])"),
    ("mailchimp key", r"[0-9a-f]{32}-us\d{1,2}(?!\d)"),
    ("brevo key", r"xkeysib-[0-9a-f]{40,}-?\w*"),
    ("digitalocean token", r"do[opr]_v1_[0-9a-f]{40,}"),
    ("databricks token", r"dapi[0-9a-f]{32}(?:-\d)?(?![0-9a-f])"),
    ("vault token", r"hv[sbr]\.[\w-]{24,}"),
    ("terraform token", r"[A-Za-z0-9]{14}\.atlasv1\.[\w-]{50,}"),
    ("grafana token", r"gl(?:c|sa)_[\w+/=-]{28,}"),
    ("airtable token", r"pat[A-Za-z0-9]{14}\.[0-9a-f]{50,}"),
    ("notion token", r"ntn_[A-Za-z0-9]{40,}|secret_[A-Za-z0-9]{43}(?![A-Za-z0-9])"),
    ("alibaba key", r"LTAI[A-Za-z0-9]{16,26}(?![A-Za-z0-9])"),
    ("tencent key", r"AKID[A-Za-z0-9]{32}(?![A-Za-z0-9])"),
    ("yandex key", r"AQVN[\w-]{35,38}(?![\w-])"),
    ("mapbox token", r"sk\.eyJ[\w-]{20,}\.[\w-]{20,}"),
    ("facebook token", r"EAA[A-Z][A-Za-z0-9]{80,}"),
    ("age key", r"AGE-SECRET-KEY-1[0-9A-Z]{40,}"),
    ("plaid token", r"access-(?:production|development|sandbox)-[0-9a-f-]{36}"),
    ("new relic key", r"NRAK-[A-Z0-9]{27}|NRJS-[0-9a-f]{19}"),
    ("groq key", r"gsk_[A-Za-z0-9]{40,}"),
    ("provider key", r"(?:xai|pplx|csk)-[A-Za-z0-9]{40,}|(?:nvapi-|pcsk_|tgp_v1_)[\w-]{40,}"),
    ("provider key", r"tvly-(?:dev-|prod-)?[A-Za-z0-9]{20,}|r8_[A-Za-z0-9]{37}|pul-[0-9a-f]{40}"),
    ("provider key", r"lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}|wandb_v1_[\w-]{40,}"),
    ("provider key", r"PMAK-[0-9a-f]{24}-[0-9a-f]{34}|figd_[\w-]{40}|lin_api_[A-Za-z0-9]{40}"),
    ("provider key", r"dckr_(?:pat|oat)_[\w-]{20,}|rubygems_[0-9a-f]{48}|pscale_\w+_[\w.-]{32,}"),
    ("provider key", r"sbp_[0-9a-f]{40}|sb_secret_[\w-]{20,}|nfp_[A-Za-z0-9]{36,}"),
    ("provider key", r"sntry[su]_[\w+/=-]{40,}|dt0c01\.[A-Z0-9]{24}\.[A-Z0-9]{64}"),
    ("provider key", r"dp\.(?:pt|st|ct|scim|audit)\.[\w.-]{40,}|ops_eyJ[\w-]{100,}"),
    ("provider key", r"HRKU-[\w-]{36,}|fo1_[\w-]{43}|FlyV1 fm[12]_[\w+/=,-]{40,}|pnu_\w{36}"),
    ("slack token", r"xox[cd]-[\w%-]{20,}"),
    ("gitlab token", r"glrtr-[\w-]{20,}"),
    ("aws key", r"bedrock-api-key-[\w+/=-]{40,}"),
    ("databricks token", r"dose[0-9a-f]{32}(?![0-9a-f])"),
    ("cloudflare token", r"v1\.0-[0-9a-f]{24}-[0-9a-f]{100,}"),
    ("provider key", r"sk-lf-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|sk_[0-9a-f]{48}"),
    ("provider key", r"lin_oauth_[0-9a-f]{40,}|ph[xr]_[A-Za-z0-9]{40,}|bkua_[0-9a-f]{40}"),
    ("provider key", r"CCIPAT_[A-Za-z0-9]{20,}_[0-9a-f]{40}|fw_[A-Za-z0-9]{24}(?![A-Za-z0-9])"),
    ("provider key", r"fc-[0-9a-f]{32}(?![0-9a-f])|e2b_[0-9a-f]{40}|napi_[a-z0-9]{50,}"),
    ("provider key", r"rnd_[A-Za-z0-9]{28,}|vc[pk]_[A-Za-z0-9]{24,}|jina_[A-Za-z0-9]{50,}"),
    ("provider key", r"tskey-[a-z]+-[A-Za-z0-9]{10,}-[A-Za-z0-9]{20,}|KGAT_[0-9a-f]{32}"),
    ("provider key", r"ico-[A-Za-z0-9]{32}(?![A-Za-z0-9])|cio[A-Za-z0-9]{32}(?![A-Za-z0-9])"),
    ("provider key", r"oy2[a-z0-9]{43}(?![a-z0-9])|sl\.[\w-]{130,}"),
    ("provider key", r"CFPAT-[\w-]{43}|EZ[AT]K\w{54}|aio_[A-Za-z0-9]{28}|tfp_[\w-]{40,}"),
)
"""Rule and pattern; where two fit, the first wins. The prefixes are those of the providers."""

_RUN = 20
_DIGITS = frozenset("0123456789")
_WIDTH = bytes(
    ord("w") if (chr(byte).isalnum() and byte < 128) or chr(byte) in "_-~" else 32
    for byte in range(256)
)


def runs(text: bytes) -> Iterator[tuple[int, int]]:
    """Yield where each long run of token characters begins and ends in `text`, one byte each."""
    if len(text) < _RUN:
        return
    marked = text.translate(_WIDTH)
    needle = b"w" * _RUN
    end = 0
    while (at := marked.find(needle, end)) >= 0:
        # `find` stops at the first place where twenty fit, which is where the run begins.
        end = marked.find(b" ", at)
        if end < 0:
            end = len(marked)
        yield at, end


_BEFORE = 24
"""Characters that a token may have before its long run: ``SG.``, ``123456789:``."""

_LONGEST = 4000
"""Characters that a token may have; of a longer one the rest stays, which is no use to anyone."""


@cache
def _any() -> re.Pattern[str]:
    # Without groups, so that an alternative is passed over by its first letter.
    return re.compile("|".join(pattern for _, pattern in TOKENS), re.ASCII)


@cache
def _each() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((rule, re.compile(pattern, re.ASCII)) for rule, pattern in TOKENS)


@cache
def _word() -> re.Pattern[str]:
    return re.compile(r"(?<![A-Za-z0-9])[A-Za-z0-9]+")


def tokens(text: str, start: int, end: int) -> Iterator[tuple[str, int, int]]:
    """Yield rule, begin and end of each token that has its run from `start` to `end` of `text`."""
    run = text[start:end]
    if _DIGITS.isdisjoint(run) and (run.islower() or run.isupper() or not run.strip("-_~")):
        return  # a name in words, or a line of dashes
    pattern = _any()
    done = 0
    low = max(0, start - _BEFORE) if text[start - 1 : start] in (".", ":") else start
    for word in _word().finditer(text, low, end):
        at = word.start()
        if at < done:
            continue
        # Letters before a token make it part of a word, unless they are an escape.
        if at and text[at - 1] == "\\" and text[at] in "nrt":
            at += 1
        elif at and text[at - 1] == "%":
            at += 2
        match = pattern.match(text, at, at + _LONGEST)
        if match is not None and match.end() > start:
            done = match.end()
            for rule, each in _each():
                if each.match(text, at, at + _LONGEST):
                    yield rule, at, done
                    break


def wandb_key(text: str, start: int, end: int) -> bool:
    """Tell whether the run is the key of a ``wandb login``: 40 hex digits, like a git hash."""
    if end - start != 40 or not re.fullmatch(r"[0-9a-f]{40}", text[start:end]):
        return False
    return re.search(r"wandb(?:\.login\(|\s+login\s)", text[max(0, start - 60) : start]) is not None
