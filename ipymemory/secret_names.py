"""Names that say that a value is secret, and values that are secret or plainly none.

A data scientist's notebooks are full of ``key``, ``token`` and ``hash``. So a name is judged by
its last word and what stands before it: ``api_key`` and ``hf_token`` name a secret,
``primary_key``, ``pad_token`` and ``password_reset`` do not, and of a mere ``key`` or ``token``
the value decides, by how scrambled it looks.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise

from ipymemory import secret_languages as other
from ipymemory.secret_disguises import spelled

STEMS = (
    *("key", "token", "secret", "pass", "pw", "auth", "cred", "cookie", "signature", "sig="),
    *("psk", "masterauth", "appid", "_pat"),
    *other.STEMS,
)
"""What every name that may be a secret's holds, in lower case; what is searched for first."""


@dataclass(frozen=True, slots=True)
class Name:
    """What a name says. `strong`: whatever it holds is secret; else only what looks scrambled."""

    rule: str
    strong: bool = True
    many: bool = False
    """Whether it names a list or dictionary of them."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_PASSWORDS = (
    _words("password passwd passwort passphrase passcode pwd pw pswd passwords passphrases pwds")
    | other.PASSWORDS
)
_SECRETS = _words("secret secrets apikey apikeys authkey credential credentials creds cred")
_SEALED = re.compile(
    r".*(?:password|passwd|passphrase|passcode|passwort|kennwort|wachtwoord|losenord|contrasena)"
    r"|.*(?:api|secret|access|private|account|auth|encryption|signing|subscription)keys?"
    r"|.*(?:auth|access|api|bearer|refresh|session|security|id|csrf|xsrf|oauth|csrfmiddleware)tokens?"
    r"|(?:client|app|api|shared|consumer|webhook|jwt)secrets?"
    r"|(?:user|db|my|root|admin|key|store|smtp|ftp|redis|mongo|pg|ssh|require|bind)(?:pass|pwd|pw)"
    r"|sharedaccesssignature"
)
"""Names in one piece, lower case: ``apikey``, ``dbpassword``, ``PGPASSWORD``."""

_LIKE_PASSWORD = re.compile("pass|pwd|kennwort|wachtwoord|losenord|contrasena")

_PROVIDERS = _words(
    "anthropic openai azure aws gcp google gemini vertex hf huggingface hub github gh gitlab "
    "bitbucket slack discord telegram twilio sendgrid mailgun stripe paypal npm pypi docker "
    "dockerhub quay heroku vercel netlify cloudflare digitalocean linode databricks snowflake "
    "kaggle wandb comet neptune mlflow sentry datadog grafana cohere mistral groq together "
    "replicate fireworks perplexity deepseek openrouter pinecone weaviate qdrant langchain "
    "langsmith serpapi serper tavily notion airtable jira confluence atlassian linear figma "
    "dropbox box spotify twitter facebook instagram linkedin reddit youtube maps mapbox "
    "algolia elastic elasticsearch opensearch postgres postgresql pg mysql mariadb mssql oracle "
    "mongo mongodb redis rabbitmq kafka neo4j cassandra clickhouse bigquery redshift smtp imap "
    "email mail ftp sftp ssh vpn ldap jenkins circleci travis sonar artifactory nexus vault "
    "consul okta auth0 firebase supabase shopify square plaid zoom quandl fred alphavantage "
    "polygon finnhub census nasa openweather weather eia nyt newsapi roboflow ngrok jupyter ci "
    "civitai modal runpod lambda voyage jina nvidia ngc clearml dagshub prefect hcaptcha recaptcha"
)
_QUALIFIERS = _PROVIDERS | _words(
    "api access secret private auth authentication authorization encryption encrypt decryption "
    "signing sign master service account subscription client app application jwt oauth oauth2 "
    "bearer refresh id session csrf xsrf bot webhook deploy shared hmac aes rsa admin root "
    "consumer personal security user login device push sas server storage license project "
    "cookie cipher crypto fernet gpg pgp tls ssl ssh pem basic my proxy host db bd database sql "
    "prod write read team org workspace developer dev backup kms ec ed25519 wallet mnemonic x"
)
_KEY_QUALIFIERS = _QUALIFIERS - _words(
    "id read write user my host db database sql x project org team workspace box linear square "
    "polygon zoom lambda modal fred maps weather census team cookie"
)
_TOKEN_QUALIFIERS = _QUALIFIERS - _words("my sign x encrypt db sql host lambda box linear square")
_PASS_QUALIFIERS = _QUALIFIERS - _words("x id read write sign encrypt")
_AFTER = _words(
    "prod production dev develop development stage staging test testing local live sandbox old "
    "new current default main primary backup value val str string text plain plaintext raw b64 "
    "base64 bytes enc encoded confirm confirmation again repeat 1 2 3 4 5 6 7 8 9 0 v1 v2 admin "
    "root user db database env1 eu us data base bd"
) | (_PROVIDERS - _words("box square modal lambda"))
"""Words behind the one that counts that change nothing: ``TOKEN_GITHUB``, ``password2``."""

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+")


@lru_cache(maxsize=4096)
def judge(name: str) -> Name | None:
    """Return what `name` says of the value it holds; None when it says nothing of a secret."""
    name = spelled(name)
    lower = name.lower()
    words = [word.lower() for word in _WORD.findall(name[-100:])]
    if lower in ("access_key_id", "aws_access_key_id", "client-key-data", "_auth", "key_data"):
        return Name("key")
    after = []
    while len(words) > 1 and words[-1] in _AFTER:
        after.append(words.pop())
    if len(words) == 1:
        words = [*after, *words]  # `token_github` is a `github_token`
    if not words or "public" in words or "publishable" in words:
        return None
    if "no" in words[:1] and len(words) > 1:
        return None
    return _judge(words)


def _judge(words: list[str]) -> Name | None:
    last, before = words[-1], words[-2] if len(words) > 1 else ""
    joined = before + last
    many = last.endswith("s") and last not in ("pass", "credentials", "creds")
    if last in _PASSWORDS or (last in ("word", "phrase") and before == "pass"):
        return Name("password", many=many)
    if joined in other.PHRASES:
        return Name("password", many=many)  # `mot_de_passe`
    if last in other.UNSURE:
        return Name("password", strong=before in _PASS_QUALIFIERS)
    if (last == "api" and not (other.KEYS | {"key"}).isdisjoint(words)) or (
        {last, before} & other.KEYS and ({last, before} & other.SECRET or before == "api")
    ):
        return Name("key")  # `clave_de_api`, `clé secrète`, `api_schlüssel`
    if last in ("clave", "chave", "geheimnis", "psk"):
        return Name("password" if last == "psk" else "key", strong=False)
    if last in ("schlussel", "schluessel", "chiave"):
        return Name("key", strong=False)
    if last == "appid" and not before:
        return Name("token", strong=False)  # of OpenWeather
    if last == "pat" and before in _PROVIDERS:
        return Name("token")  # a personal access token
    if last == "masterauth":
        return Name("password")
    if last == "authorization":
        return Name("authorization", strong=False)
    if last in _SECRETS:
        return Name("secret", strong=last not in ("cred", "creds", "credentials"), many=many)
    if last == "pass":
        # `low_pass`, `second_pass`, `def forward_pass`
        if before and before not in _PASS_QUALIFIERS:
            return None
        return Name("password", strong=bool(before))
    if _SEALED.fullmatch(last) or (before and _SEALED.fullmatch(joined) and last != "id"):
        rule = "password" if _LIKE_PASSWORD.search(last) else "token"
        return Name("key" if "key" in last else rule, many=many)
    if last in ("key", "keys"):
        strong = before in _KEY_QUALIFIERS
        if before and not strong and before not in ("my", "the", "your", "user", "username"):
            return None
        return Name("key", strong=strong, many=many) if strong or not many else None
    if last in ("token", "tokens"):
        strong = before in _TOKEN_QUALIFIERS
        if before in _WORDS_OF_TEXT or (many and not strong):
            return None
        return Name("token", strong=strong, many=many)
    if last in ("cookie", "cookies"):
        return Name("cookie", strong=False, many=last == "cookies")
    if last in ("auth", "signature", "sig"):
        return Name("authorization" if last == "auth" else "signature", strong=False)
    return None


_WORDS_OF_TEXT = _words(
    "pad eos bos unk sep cls mask start end stop next prev previous first last special sub word "
    "max min num n text image audio video visual input output page continuation sync resume "
    "class type prompt completion cached draft sot eot new good begin begining separator current"
)
"""What makes a ``token`` one of a text or of a paging API, not of a login."""

_PLAIN_WORDS = _words(
    "none null nil true false undefined nan string str text bytes int integer float number bool "
    "boolean any object optional required missing invalid incorrect expired unknown unset empty "
    "default hidden redacted masked removed yes no on off ok error failed valid type name value "
    "apikey api_key credentials credential auth authorization bearer basic header headers prompt "
    "query env "
    "environ input stdin file path varchar char secretstr sensitive self cls n/a na tbd "
    "changed reset saved set created updated deleted accepted rejected denied granted stored "
    "localhost found loaded generated verified is was not and or the a an to of for from with if "
    "in as by "
    "option flag argument parameter field must should can will may has have your this that it "
    "when where which here there before after instead enabled disabled access"
)
_DEFAULT_WORDS = _words(
    "password passwort passwd pass pwd token secret key login cookie user username test example"
)
"""Words that may be a password, in quotes, but say nothing elsewhere."""
_PLACEHOLDER = re.compile(
    r"(?P<one>\W|[xX_0])(?P=one){2,}"  # ***, xxxx, ...
    r"|\W*"
    r"|\$\{.*\}|\$\(.*|\$\w+|%\w+%|\$env:\w+|%\(\w+\)s|%s|!\w+"  # ${X}, $X, %X%
    r"|\{.*\}|<.*>|\[[\w ]{0,40}\]|\(.*\)|\{\{.*|@\w+@"  # {x}, <your key>
    r"|(?:your|insert|enter|replace|paste|change)[-_ ].*|.*[-_ ](?:here|goes[-_ ]here)"
    r"|(?:changeme|todo|dummy|placeholder|yourkey|yourtoken|yourpassword)\W*"
    r"|(?:\w{1,8}[-_.])?(?:x{4,}|X{4,}|\*{3,}|\.{3,}|…)\w{0,4}"  # sk-xxxx
    r"|.{0,8}(?:\.\.\.|…|\*{3,}).{0,6}",
    re.DOTALL,
)
_UPPER_NAME = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*")
_TALKS = re.compile(
    r"\b(?:password|passphrase|token|secret|key|credentials?|cookie|login|auth\w*)s?\b", re.I
)
_PATH = re.compile(r"(?:~|\.{1,2}|[A-Za-z]:)?[\\/]?(?:[\w .@+-]+[\\/])*[\w .@+-]*")
_URL = re.compile(r"[a-z][a-z0-9+.-]*://", re.I)
_HEX = re.compile(
    r"(?:0x|sha\d{1,3}[:-]|md5[:-])?[0-9a-fA-F]+"
    r"|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
)


@cache
def _kind(character: str) -> int:
    if character.isdigit():
        return 1
    if character.isupper():
        return 2
    return 3 if character.isalpha() else 0


def scrambled(value: str) -> bool:
    """Tell whether `value` looks random: digits in it, and kinds of characters that keep changing.

    A random key changes between capitals, small letters and digits at about 6 of 10 places, a
    name or a path at 1 or 2.
    """
    kinds = [_kind(character) for character in value[:100]]
    if 1 not in kinds or not {2, 3} & {*kinds}:
        return False
    changes = sum(1 for one, two in pairwise(kinds) if one != two and one and two)
    return changes >= 0.3 * (len(kinds) - 1 - kinds.count(0))


def hexadecimal(value: str) -> bool:
    """Tell whether `value` is hex digits throughout, as hashes and UUIDs are."""
    return _HEX.fullmatch(value) is not None


def harmless(value: str, *, quoted: bool = False) -> bool:
    """Tell whether `value` is plainly no secret: a placeholder, a word of a form, nothing.

    `quoted` is for what stands in quotes as a password: there ``test`` is a value.
    """
    if len(value) > 300:
        return False
    plain = value.strip()
    lower = plain.lower().rstrip(".:;,!?")
    if (
        lower in _PLAIN_WORDS
        or lower in other.FORM_WORDS
        or (not quoted and lower in _DEFAULT_WORDS)
    ):
        return True
    if _PLACEHOLDER.fullmatch(plain) or not any(map(str.isalnum, _FORMATS.sub("", plain))):
        return True
    if "_" in value and _UPPER_NAME.fullmatch(plain) and judge(plain):
        return True  # the name of a variable that holds it
    return " " in plain and _TALKS.search(value) is not None


_DIGITS = frozenset("0123456789")
SNAKE = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)+")
"""A name in words with underscores between them."""

_FORMATS = re.compile(r"%(?:\(\w+\))?[sdrf]|\{[\w.!:]*\}")


def odd(value: str, least: int = 6) -> bool:
    """Tell whether `value` is no word of any language: letters and digits or signs mixed."""
    if len(value) < least or " " in value or not any(map(str.isalpha, value)):
        return False
    if SNAKE.fullmatch(value):
        return False
    return any(map(str.isdigit, value)) or any(sign in value for sign in "!@#$%^&*+=~?")


def secret(name: Name, value: str, *, quoted: bool = False) -> bool:
    """Tell whether `value`, held by what `name` names, is a secret."""
    plain = value[:500].strip()
    password = name.rule == "password"
    if not name.strong and _DIGITS.isdisjoint(plain):
        return False
    if not plain or harmless(value, quoted=quoted and password and name.strong):
        return False
    if name.strong:
        if password:
            return not _looks_like_path(plain)
        if plain.isdigit() or len(plain) < 3 or _URL.match(plain):
            return False
        if _looks_like_path(plain):
            return False
        return len(plain.split()) <= 3 or scrambled(plain)
    if password:
        return odd(plain) and not _looks_like_path(plain)
    if " " in plain or len(plain) < 16 or _URL.match(plain):
        return False
    if _NUMBERED.fullmatch(plain):
        return True
    if hexadecimal(plain):
        return name.rule == "token" and len(plain) >= 24
    longest = max(map(len, _PIECES.split(plain)))
    return longest >= 12 and scrambled(plain)


_PIECES = re.compile(r"[^A-Za-z0-9+]+")
_NUMBERED = re.compile(r"\d{2,9}:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""A user's number and key, as Copernicus gives them out."""


def _looks_like_path(value: str) -> bool:
    if not value.startswith(("/", "~/", "./", "../", "\\\\")) and value[1:3] not in (":\\", ":/"):
        return False
    return _PATH.fullmatch(value) is not None and not scrambled(value)


_COMMON = _PLAIN_WORDS | _words(
    "admin root guest postgres mysql oracle redis public private localhost welcome hello world "
    "letmein qwerty python jupyter notebook ipython data model train index column pandas numpy "
    "changeme foobar sample demo primary production development staging master develop latest"
)


def worth_learning(value: str) -> bool:
    """Tell whether `value` can be looked for in other texts without masking ordinary words.

    At least six characters; no number under ten digits, no word of one kind of letters under
    eight, no path, nothing common.
    """
    plain = value.strip()
    if _looks_like_path(plain) or _URL.match(plain):
        return False
    if len(plain) < 6 or len(plain) > 4000 or plain.lower() in _COMMON or harmless(plain):
        return False
    if plain.replace(".", "").replace("-", "").isdigit():
        return len(plain) >= 10
    if plain.isalpha() and (plain.islower() or plain.isupper() or plain.istitle()):
        return len(plain) >= 8
    return True
