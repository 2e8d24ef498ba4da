"""Where the commands of a shell take a password that no name gives away.

Each pattern is looked for from the command's name to the end of its line, in a shell's words as in
a list of arguments of Python's ``subprocess``.
"""

from __future__ import annotations

import re

_GAP = r"(?:[\"']\s{0,9},\s{0,9}[\"']|[ \t]+)"
_VALUE = r"(?P<q>[\"']?)(?P<value>[^\s\"'|;&<>,\])]+|(?<=\")[^\"\n]+|(?<=')[^'\n]+)(?P=q)"
_BEHIND = r"(?<=[\s\"'])"

_SEED = r"NAME[\"']?(?: is)?\s{0,3}[:=]?\s{0,3}[\"']?(?P<value>(?:[a-z]{3,8} ){11,23}[a-z]{3,8})\b"
"""The words of a wallet's seed: 12 to 24, as BIP-39 has them."""

_P = re.compile(rf"{_BEHIND}-p{_GAP}{_VALUE}")
_P_CLOSE = re.compile(rf"{_BEHIND}-p(?!\b)(?![\w]{{0,3}}=){_VALUE}")
_CAPITAL_P = re.compile(rf"{_BEHIND}-P{_GAP}{_VALUE}")

WITH_FLAG: dict[str, re.Pattern[str]] = {
    "mongo": _P,
    "snowsql": _P,
    "rdesktop": _P,
    "useradd": _P,
    "usermod": _P,
    "sshpass": re.compile(rf"sshpass{_GAP}-p(?:{_GAP})?{_VALUE}"),
    "unrar ": _P_CLOSE,
    "7z ": _P_CLOSE,
    "sqlcmd": _CAPITAL_P,
    "bcp ": _CAPITAL_P,
    "htpasswd": re.compile(
        rf"htpasswd{_GAP}(?:-(?=\w*b)(?=\w*n)\w+|-(?=\w*b)\w+{_GAP}[^\s\"',]+)"
        rf"{_GAP}[^\s\"',]+{_GAP}{_VALUE}"
    ),
    "ssh-keygen": re.compile(rf"{_BEHIND}-N{_GAP}{_VALUE}"),
    "ldap": re.compile(rf"{_BEHIND}-w{_GAP}{_VALUE}"),
    "smbclient": re.compile(rf"{_BEHIND}-U{_GAP}?[\"']?[^\s\"'%]+%(?P<value>[^\s\"']+)"),
    "kaggle config": re.compile(rf"-n{_GAP}key{_GAP}-v{_GAP}{_VALUE}"),
    "securestring": re.compile(
        r"SecureString[ \t]+(?:-String[ \t]+)?(?P<q>[\"'])(?P<value>[^\"'\n$]+)(?P=q)", re.I
    ),
    "from-literal": re.compile(r"from-literal[= ][\"']?[\w.-]+=(?P<value>[^\s\"']+)"),
}
"""Commands that take it with a flag, and the pattern of it."""

WITHOUT_FLAG: dict[str, re.Pattern[str]] = {
    "openssl": re.compile(
        rf"(?:-pass(?:in|out)?{_GAP}pass:|enc\b[^\n]{{0,200}}?[ \t]-k{_GAP}"
        rf"|\bpasswd(?:{_GAP}-\w+){{0,3}}{_GAP}(?!-)){_VALUE}"
    ),
    "net use": re.compile(
        rf"net use [^\n]{{0,80}}\\\\\S+[ \t]+(?![/*]){_VALUE}(?=[ \t]+/user)", re.I
    ),
    "net user": re.compile(rf"net user [\w.-]+[ \t]+(?![/*]){_VALUE}(?=[ \t]+/add)", re.I),
    "sqlplus": re.compile(r"sqlplus[ \t]+(?:-\w+[ \t]+)*\w+/(?P<value>[^\s@/]+)@"),
    "xfreerdp": re.compile(rf"(?<=\s)/p:{_VALUE}"),
    "vault login": re.compile(rf"vault login[ \t]+(?!-|method=|username=){_VALUE}"),
    "poetry config": re.compile(
        rf"poetry config[ \t]+(?:http-basic\.\S+[ \t]+\S+|pypi-token\.\S+)[ \t]+{_VALUE}"
    ),
    "rclone config": re.compile(rf"[ \t]pass(?:word)?[ \t=]{_VALUE}"),
    "dvc remote": re.compile(
        r"dvc remote modify[ \t]+(?:--?\w+[ \t]+)*[\w.-]+[ \t]+(?:password|\w*secret\w*|account_key"
        rf"|sas_token|connection_string|session_token)[ \t]+{_VALUE}"
    ),
    "mc alias": re.compile(rf"mc alias set(?:[ \t]+[^\s-]\S*){{3}}[ \t]+{_VALUE}"),
    "jdbc:oracle": re.compile(
        r"jdbc:oracle:(?:thin|oci8?):[^\s/@:\"']{1,60}/(?P<value>[^\s@\"']+)@", re.I
    ),
    "account.key.": re.compile(
        r"account\.key\.[\w.-]+[\"']?[ \t]*[,=: ][ \t]*(?P<q>[\"']?)(?P<value>[\w+/=-]{8,})(?P=q)"
    ),
    "mnemonic": re.compile(_SEED.replace("NAME", "mnemonic")),
    "phrase": re.compile(_SEED.replace("NAME", "(?:seed|recovery|wallet)?[ _]?phrase"), re.I),
    "mysqladmin": re.compile(rf"mysqladmin[^\n]{{0,200}}?[ \t]password[ \t]+{_VALUE}"),
    "redis-cli": re.compile(rf"[ \t]AUTH[ \t]+(?:\w+[ \t]+(?=\S))?{_VALUE}", re.I),
    "gh auth login": re.compile(rf"<<<[ \t]*{_VALUE}"),
    "/password:": re.compile(rf"/password:{_VALUE}", re.I),
}
"""Commands that take it as a word of its own."""

COOKIES = re.compile(
    rf"{_BEHIND}(?:-b|--cookie){_GAP}[\"']?(?:[\w.-]{{1,80}}=[^;\s\"']*;\s?)*"
    r"(?P<value>(?:[\w.-]{0,60}(?i:sess|sid|auth|token|jwt|remember|login)[\w.-]{0,60}=[^\s\"']{4,}"
    r"|[\w.-]{1,80}=(?=[^\s;\"']*\d)[^\s;\"']{12,})(?:;\s?[^\s\"']+)*)"
)
"""Cookies that curl is given as they are, not in a file."""

PIPED = re.compile(
    r"\b(?:echo|printf)\s+(?:-n\s+|[\"']%s(?:\\n)?[\"']\s+)?(?P<q>[\"']?)(?P<value>[^\s\"'|$]+)(?P=q)"
    r"\s*\|\s*(?:sudo\s+)?$"
)
"""What is piped into the command that begins where this ends."""
