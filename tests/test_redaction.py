"""Secrets are masked and nothing else is; every key here is put together when the tests run."""

from __future__ import annotations

import ast
import base64
import gc
import random
import re
import string
import subprocess
import sys
import threading
import time
import uuid

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ipymemory import redaction, secret_tokens
from ipymemory.redaction import Mark, Masker, mask, mask_source, mask_with_marks

ALNUM = string.ascii_letters + string.digits
HEX = "0123456789abcdef"


def rand(length: int, alphabet: str = ALNUM, seed: int = 5) -> str:
    """Return a random text that holds a digit, a capital and a small letter where it can."""
    source = random.Random(f"{length} {alphabet} {seed}")
    while True:
        text = "".join(source.choice(alphabet) for _ in range(length))
        kinds = (str.isdigit, str.isupper, str.islower)
        wanted = [kind for kind in kinds if any(map(kind, alphabet))]
        if length < 8 or all(any(map(kind, text)) for kind in wanted):
            return text


UPPER = string.ascii_uppercase + string.digits
LOWER = string.ascii_lowercase + string.digits
URLSAFE = ALNUM + "_-"

TOKENS = {
    "anthropic": "sk-" + "ant-api03-" + rand(80, URLSAFE) + "AA",
    "openai": "sk" + "-" + rand(48),
    "openai project": "sk-" + "proj-" + rand(60, URLSAFE),
    "openai service": "sk-" + "svcacct-" + rand(60, URLSAFE),
    "deepseek": "sk" + "-" + rand(32, HEX),
    "openrouter": "sk-" + "or-v1-" + rand(64, HEX),
    "aws id": "AK" + "IA" + rand(16, UPPER),
    "aws session id": "AS" + "IA" + rand(16, UPPER),
    "google": "AI" + "za" + rand(35, URLSAFE),
    "google oauth": "ya" + "29." + rand(60, URLSAFE),
    "google client": "GOC" + "SPX-" + rand(28, URLSAFE),
    "azure client": rand(3) + "8" + "Q~" + rand(34),
    "github": "gh" + "p_" + rand(36),
    "github app": "gh" + "s_" + rand(36),
    "github fine": "github" + "_pat_" + rand(22) + "_" + rand(59),
    "gitlab": "gl" + "pat-" + rand(20, URLSAFE),
    "slack bot": "xo" + "xb-" + rand(12, string.digits) + "-" + rand(24),
    "slack user": "xo" + "xp-" + rand(11, string.digits) + "-" + rand(30),
    "slack app": "xa" + "pp-1-" + rand(11, UPPER) + "-" + rand(40, HEX),
    "stripe": "sk_" + "live_" + rand(24),
    "stripe test": "sk_" + "test_" + rand(24),
    "stripe restricted": "rk_" + "live_" + rand(24),
    "stripe webhook": "wh" + "sec_" + rand(32),
    "hugging face": "h" + "f_" + rand(34),
    "npm": "np" + "m_" + rand(36),
    "pypi": "py" + "pi-AgEIcHlwaS5vcmc" + rand(80, URLSAFE),
    "twilio": "S" + "K" + rand(32, HEX),
    "sendgrid": "S" + "G." + rand(22, URLSAFE) + "." + rand(43, URLSAFE),
    "telegram": rand(9, "123456789") + ":A" + "A" + rand(33, URLSAFE),
    "discord": "M" + rand(23) + "." + rand(6) + "." + rand(27),
    "jwt": "ey" + "JhbGciOiJIUzI1NiJ9.ey" + "J" + rand(60) + "." + rand(43, URLSAFE),
    "digitalocean": "do" + "p_v1_" + rand(64, HEX),
    "databricks": "da" + "pi" + rand(32, HEX),
    "shopify": "sh" + "pat_" + rand(32, HEX),
    "vault": "hv" + "s." + rand(24),
    "atlassian": "AT" + "ATT3" + rand(60, URLSAFE),
    "replicate": "r" + "8_" + rand(37),
    "groq": "gs" + "k_" + rand(52),
    "langsmith": "ls" + "v2_pt_" + rand(32, HEX) + "_" + rand(10, HEX),
    "notion": "nt" + "n_" + rand(46),
    "airtable": "pa" + "t" + rand(14) + "." + rand(64, HEX),
    "docker": "dckr" + "_pat_" + rand(27, URLSAFE),
    "grafana": "gl" + "sa_" + rand(32) + "_" + rand(8, HEX),
    "square": "sq0" + "atp-" + rand(22, URLSAFE),
    "mailgun": "key" + "-" + rand(32, HEX),
    "age": "AGE-" + "SECRET-KEY-1" + rand(58, UPPER),
    "alibaba": "LT" + "AI" + rand(20),
    "nvidia": "nv" + "api-" + rand(64, URLSAFE),
    "tavily": "tv" + "ly-" + rand(32),
    "xai": "xa" + "i-" + rand(80),
    "slack client": "xo" + "xc-" + rand(12, string.digits) + "-" + rand(64, HEX),
    "slack cookie": "xo" + "xd-" + rand(80),
    "gitlab runner": "gl" + "rtr-" + rand(20, URLSAFE),
    "bedrock": "bedrock" + "-api-key-" + rand(200),
    "databricks oauth": "do" + "se" + rand(32, HEX),
    "cloudflare": "v1" + ".0-" + rand(24, HEX) + "-" + rand(146, HEX),
    "langfuse": "sk" + "-lf-" + str(uuid.UUID(int=2**127 + 12345)),
    "elevenlabs": "sk" + "_" + rand(48, HEX),
    "linear": "lin" + "_oauth_" + rand(64, HEX),
    "posthog": "ph" + "x_" + rand(43),
    "buildkite": "bk" + "ua_" + rand(40, HEX),
    "circleci": "CCI" + "PAT_" + rand(22) + "_" + rand(40, HEX),
    "fireworks": "f" + "w_" + rand(24),
    "firecrawl": "f" + "c-" + rand(32, HEX),
    "e2b": "e2" + "b_" + rand(40, HEX),
    "neon": "nap" + "i_" + rand(64, LOWER),
    "render": "rn" + "d_" + rand(32),
    "vercel": "vc" + "k_" + rand(56),
    "jina": "jin" + "a_" + rand(60),
    "tailscale": "ts" + "key-auth-" + rand(17) + "-" + rand(32),
    "kaggle": "KG" + "AT_" + rand(32, HEX),
    "dropbox": "s" + "l." + rand(138, URLSAFE),
    "nuget": "oy" + "2" + rand(43, LOWER),
    "crates": "ci" + "o" + rand(32),
}

SURROUNDINGS = (
    "{}",
    "the key is {}.",
    "x = '{}'",
    'call("{}", 3)',
    "https://example.org/?q={}&page=2",
    "{{'a': '{}'}}",
    "line\\n{}\\nline",
    "[{}]",
    "a={};",
)

PW = "hunt" + "er2" + "!x"
WORDY = "swordf" + "ish"
SECRET = rand(40)
SHORT = rand(12)
HEX32 = rand(32, HEX)
BASIC = base64.b64encode(f"bob:{PW}".encode()).decode()
PEM_BODY = "\n".join(rand(64, ALNUM + "+/", seed) for seed in range(12)) + "\n" + rand(40) + "=="
BEGIN, END = "-----BEGIN " + "PRIVATE KEY-----", "-----END " + "PRIVATE KEY-----"
RSA_BEGIN = "-----BEGIN RSA " + "PRIVATE KEY-----"

# Text in which `{pw}`, `{word}` … stand for a secret that must be gone.
BOTH = r"""
password = "{pw}"
password="{pw}"
password: str = '{pw}'
password: Optional[str] = "{pw}"
PASSWORD: Final = "{pw}"
passwd = '{word}'
PASSWORD = "{word}"
db_password = "{pw}"
self.password = "{pw}"
cfg["password"] = "{pw}"
user.password2 = "{pw}"
newPassword = "{pw}"
PGPASSWORD = "{pw}"
pw = "{pw}"
pwd = "{pw}"
passphrase = "correct {word} battery staple"
secret = "{secret}"
client_secret = "{secret}"
SECRET_KEY = "{secret}"
JWT_SECRET = '{secret}'
api_key = "{secret}"
api_key = "{short}"
apikey = "{short}"
API_KEY = b"{short}"
apiKey: '{short}'
openai.api_key = "{secret}"
OPENAI_KEY = "{secret}"
access_token = "{secret}"
auth_token = r"{secret}"
refresh_token = u"{secret}"
hf_token = "{short}"
github_token = "{hex}"
token = "{secret}"
token = "{hex}"
key = "{secret}"
AZURE_STORAGE_KEY = "{secret}=="
private_key = "{secret}"
aws_secret_access_key = "{secret}"
encryption_key = "{short}"
session_token = "{secret}"
webhook_secret = "{secret}"
connect(host="h", user="u", password="{pw}")
connect(host='h', password='{pw}', port=5432)
Client(api_key="{secret}", timeout=3)
Client(token='{secret}')
dict(password="{pw}", user="bob")
{{"user": "bob", "password": "{pw}"}}
{{'password': '{pw}', 'token': '{secret}'}}
{{"auth": {{"pass": "{pw}"}}}}
{{\"password\": \"{pw}\", \"user\": \"bob\"}}
json.loads('{{"password": "{pw}"}}')
"password":"{pw}"
"password" : "{pw}"
password = ("{secret}"
password = (
    "{short}"
    "{secret}"
)
password = "{short}" "{secret}"
password = "{short}" + "{secret}"
password = "{short}" \
    "{secret}"
password = '''{pw}'''
password = '''
{pw}
'''
password = f"{pw}"
password = f"{pw}-{{user}}"
password = "ab\"{pw}"
if password == "{pw}":
if token != "{secret}": raise ValueError
passwords = ["{pw}", "{word}"]
passwords = {{"bob": "{pw}", "al": "{word}"}}
api_keys = ["{secret}", "{short}"]
os.environ["API_KEY"] = "{short}"
os.environ['DB_PASSWORD'] = '{pw}'
os.environ.setdefault("API_KEY", "{short}")
os.environ.get("API_KEY", "{short}")
os.getenv("DB_PASSWORD", "{word}")
os.putenv("API_KEY", "{short}")
cfg.get("password", "{word}")
kwargs.pop('password', '{word}')
getattr(cfg, "password", "{word}")
psycopg2.connect("bob", "{pw}")
connect(user, "{pw}")
client.sign_in("bob", "{word}")
pika.PlainCredentials("bob", "{word}")
UsernamePasswordCredential("bob", "{word}")
AzureKeyCredential("{short}")
password = str("{word}")
password: SecretStr = Field("{word}")
password: str = Field(default="{word}")
monkeypatch.setenv("TOKEN_GITHUB", "{secret}")
spark.conf.set("fs.s3a.secret.key", "{secret}")
password = os.environ.get("PW") or "{pw}"
password = get() if x else "{pw}"
("Authorization", "Bearer {short}")
user, password = "bob", "{pw}"
password, user = "{pw}", "bob"
(user, password) = ("bob", "{pw}")
cfg.user, cfg.password = "bob", "{word}"
setattr(cfg, "password", "{pw}")
("password", "{pw}")
SecretStr("{secret}")
credentials = ("bob", "{pw}")
<input type="password" name="password" value="{pw}">
def connect(host, password="{pw}"):
requests.get(url, auth=("bob", "{pw}"))
requests.get(url, auth=('bob', '{pw}'))
HTTPBasicAuth("bob", "{pw}")
HTTPBasicAuth('bob', '{pw}')
smtp.login("me@example.org", "{pw}")
set_password("{pw}")
{{"Authorization": "Bearer {short}"}}
{{'Authorization': 'Bearer {short}'}}
{{'authorization': 'token {short}'}}
headers["Authorization"] = "Bearer {short}"
headers = {{"Authorization": f"Bearer {secret}"}}
{{"Authorization": "Basic {basic}"}}
{{"X-Api-Key": "{short}"}}
{{'x-api-key': '{short}'}}
{{"Ocp-Apim-Subscription-Key": "{hex}"}}
{{"PRIVATE-TOKEN": "{short}"}}
{{"X-Auth-Token": "{short}"}}
{{"Cookie": "session={short}; theme=dark"}}
cookies = {{"sessionid": "{secret}"}}
Bearer {secret}
postgres://u:{pw}@h/db
postgresql+psycopg2://user:{word}@localhost:5432/db
create_engine("mysql://root:{pw}@127.0.0.1/x")
mongodb+srv://bob:{word}@cluster0.abc.mongodb.net/test
redis://:{word}@cache:6379/0
amqp://guest:{word}@mq//
https://bob:{pw}@example.org/path?q=1
git clone https://{secret}@github.com/a/b.git
https://oauth2:{secret}@gitlab.com/a/b.git
postgres://u:pa/{word}@host/db
postgres://u:p@{word}@host/db
"Server=tcp:x.database.windows.net;User ID=sa;Password={pw};Encrypt=True"
"Driver={{ODBC}};Server=s;UID=sa;PWD={pw};"
"DefaultEndpointsProtocol=https;AccountName=a;AccountKey={secret}=="
"Endpoint=sb://x/;SharedAccessKeyName=Root;SharedAccessKey={secret}="
"host=h user=u password={word} dbname=d"
"https://acc.blob.core.windows.net/c?sv=2020&sig={secret}%3D"
"https://b.s3.amazonaws.com/k?X-Amz-Signature={hex}{hex}"
"http://localhost:8888/?token={hex}{hex}"
"https://api.example.org/v1?api_key={short}&q=a"
"https://maps.example.org/?key={secret}"
"https://api.example.org/v1?access_token={short}"
https://hooks.slack.com/services/T0001/B0001/{secret}
https://discord.com/api/webhooks/123456789/{secret}
https://api.telegram.org/bot123456789:AA{token33}/getMe
"""

SOURCE = r"""
%env OPENAI_API_KEY={secret}
%env TOKEN={short}
%env DB_PASSWORD {word}
%set_env API_KEY={short}
!export DB_PASSWORD={word}
!curl -H "Authorization: Bearer {short}" https://x
!curl -H 'X-Api-Key: {short}' https://x
!curl -u bob:{pw} https://x
!curl --user 'bob:{word}' https://x
!curl https://x \
   -u bob:{word}
!huggingface-cli login --token {short}
!tool --token {word}
!tool --token={short}
!tool --password {word} --verbose
!tool --api-key "{short}"
!mysql -u root -p{word} db
!docker login -u bob -p {word} registry.example.org
!echo {word} | docker login -u bob --password-stdin
!echo {word} | sudo -S apt-get update
!sshpass -p {word} ssh bob@host
!docker login -u bob -p{word}
!mariadb -u root -p{word} db
!zip -P {word} x.zip f
!http -a bob:{word} GET x.org
!openssl rsa -passin pass:{word} -in x
!mongosh -u bob -p {word} h/db
!twine upload -u __token__ -p {word} dist/*
!echo {word} | sudo -kS ls
!redis-cli -h h -a {word} ping
!PGPASSWORD={word} psql -h h
!wandb login {hex40}
!aws configure set aws_secret_access_key {secret}
!pip install --index-url https://bob:{pw}@pypi.example.org/simple x
!wget --header="Authorization: Bearer {short}" https://x
wandb.login(key="{hex40}")
subprocess.run(["tool", "--token", "{short}"])
subprocess.run(["curl", "-u", "bob:{word}", "https://x"])
# password: {pw}
# my token = {secret}
%%bash
export API_TOKEN={word}
%%writefile .env
DB_PASSWORD={word}
%%writefile config.yaml
password: {word}
text = '''
DB_PASSWORD={pw}
'''
url = "jdbc:postgresql://h/db?user=u&password={word}"
config.set("section", "password", "{pw}")
cur.execute("CREATE USER bob WITH PASSWORD '{word}'")
cur.execute("ALTER USER bob IDENTIFIED BY '{word}'")
keyring.set_password("svc", "bob", "{pw}")
"""

TEXT = r"""
OPENAI_API_KEY={secret}
export API_KEY={short}
export API_KEY="{short}"
declare -x DB_PASSWORD="{word}"
set API_TOKEN={word}
$env:API_KEY = "{short}"
DB_PASSWORD={word}
DB_PASSWORD=two {word} words
SMTP_PASS={word}
TOKEN={short}
password: {word}
  password: {word}
- token: {secret}
password: |
  {pw}
  {word}
api_key: {short}  # comment
Password: {pw}
API key: {secret}
Your API key is: {secret}
the password is {pw}
bob with password {pw}
password    {pw}
[db]
password = {word}
spring.datasource.password={word}
<password>{word}</password>
<apiKey>{short}</apiKey>
machine x.org login bob password {word}
//registry.example.org/:_authToken={short}
Authorization: Bearer {short}
> Authorization: Basic {basic}
Authorization: token {short}
authorization: Digest username="bob", response="{hex}"
Authorization: AWS4-HMAC-SHA256 Credential=x, Signature={hex}{hex}
Proxy-Authorization: Basic {basic}
X-Api-Key: {short}
Cookie: session={short}; other={secret}
Set-Cookie: sid={short}; Path=/; HttpOnly
<Cookie sessionid={short} for example.org/>
environ({{'PATH': '/bin', 'API_KEY': '{short}', 'HOME': '/root'}})
{{'PATH': '/bin', 'DB_PASSWORD': '{pw}'}}
ENV API_KEY={short}
docker run -e DB_PASSWORD={word} image
{{"username":"bob","key":"{hex}"}}
{{"auths": {{"x": {{"auth": "{basic}"}}}}}}
Config(user=bob, password={pw}, port=1)
user=bob password={word} host=h
401 Client Error: Unauthorized for url: https://api.example.org/x?api_key={short}
Credentials(access_key='x', secret_key='{secret}', token=None)
OPENAI_API_KEY     {secret}
| api_key | {secret} |
+ tool --token {short}
tool --password={word}
---> 12 connect(password="{pw}")
Mot de passe : {pw}
le mot de passe est {pw}
Ihr Passwort lautet {pw}
la contraseña es {pw}
Пароль: {word}
"""


def filled(template: str) -> tuple[str, list[str]]:
    """Return the text and the secrets in it."""
    values = {
        "pw": PW,
        "word": WORDY,
        "secret": SECRET,
        "short": SHORT,
        "hex": HEX32,
        "hex40": rand(40, HEX),
        "basic": BASIC,
        "token33": rand(33, URLSAFE),
    }
    wanted = [values[name] for name in re.findall(r"(?<!\{)\{(\w+)\}", template)]
    return template.format(**values), wanted


def examples(block: str) -> list[str]:
    """Return the examples: a line each, with the indented and closing lines that belong to it."""
    found: list[str] = []
    for line in block.strip("\n").split("\n"):
        follows = line[:1] in (" ", ")") and found and not line.startswith("  password")
        opened = found and (
            (found[-1].startswith(("%%", "[")) and "\n" not in found[-1])
            or found[-1].count("'''") == 1
        )
        if follows or opened:
            found[-1] += "\n" + line
        else:
            found.append(line)
    return found


PASSWORDS = (
    *("passwort", "kennwort", "Datenbankkennwort", "contraseña", "contrasena", "contraseñas"),
    *("mot_de_passe", "motdepasse", "mdp", "mdp_admin", "senha", "senha_db", "lösenord"),
    *("losenord", "wachtwoord", "hasło", "haslo", "heslo", "geslo", "jelszó", "jelszo"),
    *("salasana", "passord", "adgangskode", "şifre", "пароль", "пароль_бд", "парола", "κωδικός"),
    *("密码", "パスワード", "비밀번호"),
)
"""The word for a password in other languages, as names in code."""

PASSWORD_TEMPLATES = (
    '%s = "{word}"',
    "connect(host='h', %s='{word}', port=1)",
    "cfg['%s'] = '{word}'",
    '{{"%s": "{word}", "n": 1}}',
    "# %s = {word}",
)

BOTH_EXAMPLES, SOURCE_EXAMPLES, TEXT_EXAMPLES = map(examples, (BOTH, SOURCE, TEXT))


@pytest.mark.spec("L7")
@pytest.mark.parametrize("name", TOKENS)
def test_tokens_of_providers_are_masked_wherever_they_stand(name: str) -> None:
    for surrounding in SURROUNDINGS:
        text = surrounding.format(TOKENS[name])
        for masked in (mask(text), mask_source(text)):
            assert TOKENS[name] not in masked
            assert "[masked: " in masked
            left = masked.split("[masked: ")
            assert text.startswith(left[0][:4]), "what stands before it stays"


@pytest.mark.spec("L7")
@pytest.mark.parametrize("template", BOTH_EXAMPLES + SOURCE_EXAMPLES)
def test_secrets_in_a_source_are_masked(template: str) -> None:
    text, secrets = filled(template)
    assert secrets
    masked = mask_source(text)
    assert not [each for each in secrets if each in masked], masked
    assert mask_source(masked) == masked


@pytest.mark.spec("L7")
@pytest.mark.parametrize("template", BOTH_EXAMPLES + TEXT_EXAMPLES)
def test_secrets_in_an_output_are_masked(template: str) -> None:
    text, secrets = filled(template)
    assert secrets
    masked = mask(text)
    assert not [each for each in secrets if each in masked], masked
    assert mask(masked) == masked


@pytest.mark.spec("L7")
@pytest.mark.parametrize("name", PASSWORDS)
def test_a_password_is_known_in_many_languages(name: str) -> None:
    assert redaction.is_secret_name(name)
    for spelling in (name, name.upper()):
        for template in PASSWORD_TEMPLATES:
            text, _ = filled(template % spelling)
            assert WORDY not in mask(text), text
            assert WORDY not in mask_source(text), text
        assert WORDY not in mask(f"{spelling}: {WORDY}\n")


HARMLESS = r"""
x = 1
token_count = 5
max_tokens=100
max_tokens = 4096
n_tokens: 512
tokenizer = "bert-base"
tokenizer = AutoTokenizer.from_pretrained("bert-base-uncased")
tokens = ["the", "cat", "sat"]
token = tokens[i]
token = "hello"
token = next_token
for token in doc:
pad_token = "[PAD]"
eos_token="</s>"
tokenizer.pad_token = tokenizer.eos_token
bos_token_id = 50256
next_token = "eyJwYWdlIjoy"
next_page_token = response.get("nextPageToken")
token_type_ids = [0, 0, 1]
token: str
token: Optional[str] = None
def tokenize(text: str) -> list[str]:
password = getpass()
password = getpass.getpass("Password: ")
password = getpass("Enter your password: ")
password = input("Password: ")
password = None
password = ""
password: str
password: str = Field(...)
password: SecretStr = None
password = os.environ["DB_PASSWORD"]
password = os.getenv("DB_PASSWORD")
password = os.environ.get("DB_PASSWORD", "")
password = config["password"]
password = config.password
password = settings.DB_PASSWORD
password=password
connect(user=user, password=password, host=host)
connect(password=pw)
connect(password=args.password)
api_key=os.environ["KEY"]
api_key = os.getenv("OPENAI_API_KEY")
api_key = userdata.get("OPENAI_API_KEY")
api_key = dbutils.secrets.get(scope="s", key="openai")
client = OpenAI(api_key=api_key)
api_key = "YOUR_API_KEY"
api_key = "your-api-key-here"
api_key = "<your key>"
api_key = "xxxxxxxxxxxx"
api_key = "sk-..."
api_key = "***"
API_KEY = "${API_KEY}"
password = "{password}"
password: "{{ db_password }}"
password = f"{pw}"
url = f"postgres://{user}:{password}@{host}/{db}"
url = "postgres://%s:%s@%s/%s" % (u, p, h, d)
postgresql://localhost:5432/db
http://localhost:8888/tree
https://example.org:8443/@user/post
git@github.com:owner/repo.git
ssh://git@github.com/owner/repo.git
key=lambda x: x
sorted(items, key=lambda item: item[1])
sorted(items, key=len)
df.sort_values(key=str.lower)
primary_key="id"
primary_key = "customer_id_2024"
foreign_key = "orders.customer_id"
partition_key="2024-01-15"
key = "user_id"
key = "data/2024/01/file_ABC123.parquet"
key = "features/v2/train.csv"
cache_key = "d41d8cd98f00b204e9800998ecf8427e"
s3_key = "raw/2024/A1B2C3D4E5F6G7H8I9J0.json"
public_key = "ssh-rsa AAAAB3NzaC1yc2E"
for key, value in d.items():
d[key] = value
d["key"] = "value"
{"key": "value"}
keys = list(d.keys())
if key not in cache:
KeyError: 'name'
KeyError: 'password'
sort key
the key idea is: attention
key: value
Key: Name
hash = "d41d8cd98f00b204e9800998ecf8427e"
commit d670460b4b4aece5915caf5c68d12f560a9fe3e4
git checkout 5c68d12f560a9fe3e4b4b4aece5915caf5c68d12
sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
id = "550e8400-e29b-41d4-a716-446655440000"
run_id: 550e8400-e29b-41d4-a716-446655440000
3.141592653589793238462643383279
12345678901234567890123456789012345678901234567890
[0.123456789012345678, 0.98765432109876543]
model = "gpt-4o-mini-2024-07-18"
model = "claude-haiku-5-5"
sklearn-estimator-html-representation-doc-link
<div class="sk-estimator-doc-link sk-toggleable__content fitted">
<div id="sk-container-id-1" class="sk-top-container">
from sklearn.feature_extraction.text import TfidfVectorizer
self.assertIsInstance(BaseSubprocessTransportProtocol, type)
=========================== test session starts ============================
----------------------------------------------------------------------------
df["password_reset"].sum()
df.groupby("password_reset").size()
columns = ["user", "password_reset", "token_count", "api_key_id"]
df = df.drop(columns=["password", "token"])
   user  password_reset  token_count
0   bob            True            5
password_reset    12
token_count     5120
password_file = "/run/secrets/db"
--token-file path
--token-file /run/secrets/token
!tool --token-file ~/.token
!tool --max-tokens 100
!tool --password-stdin
!tool --token $TOKEN
!tool --token ${TOKEN}
  --token TOKEN         the token to use
  --api-key FILE        where the key is
  --api-key VALUESTR
  --password ASK        whether to ask
  --api-key <key>       the key
  --password string     Password
parser.add_argument("--token", help="the token")
parser.add_argument("--password", "-p", default=None)
use the --token option to log in
docker run -p 8080:80 image
mkdir -p data/raw
ssh -p 2222 host
!pip install -U tokenizers
!python train.py -p config.yaml
https://docs.example.org/api-keys#create-a-token
https://docs.example.org/auth?lang=en
https://example.org/reset-password?step=2
See https://platform.openai.com/account/api-keys for a key.
You can find your API key at https://platform.openai.com/account/api-keys.
Enter your password:
Password:
Invalid password
Password must contain 8 characters
password: required
password is required
The password was changed.
token expired
token: expired
Token indices sequence length is longer than the specified maximum
input type="password"
{"type": "password", "name": "pw"}
{"password": {"type": "string"}}
{"password": null, "token": null}
{"tokens": 512, "max_tokens": 1024}
{'prompt_tokens': 12, 'completion_tokens': 34}
usage: prompt_tokens=12 completion_tokens=34
first_pass = "train"
low_pass = butter(3, 0.1)
def forward_pass(x):
    pass
bypass = True
pass axis=0 explicitly, or pass header=1
password sha256 hashing
user, password = ask()
user, password = "bob", None
for password in candidates:
compass = "north"
passed: 12, failed: 3
pass: 12
12 passed, 3 failed
author = "Jane Doe"
authors: Jane Doe and John Roe
authenticated: True
auth = None
auth = HTTPBasicAuth(user, password)
auth=(user, password)
headers = {"Authorization": f"Bearer {token}"}
headers = {"Authorization": "Bearer " + token}
headers = {"Authorization": "Bearer %s" % token}
headers["X-Api-Key"] = api_key
Authorization: Bearer <token>
Authorization: Bearer $TOKEN
authorization: str = Header()
Bearer token authentication
basic usage of the API
basic statistics
cookie = "chocolate"
cookies = session.cookies
secret_santa = "Bob Miller"
secret_name = "projects/x/secrets/db"
from secrets import token_hex
token = secrets.token_hex(16)
secrets = load("secrets.yaml")
import secrets
signature = inspect.signature(f)
def f(x: int, key: str = "a") -> None:
PWD=/home/bob/work
PWD: /home/bob
pwd = os.getcwd()
SSH_AUTH_SOCK=/tmp/ssh-agent.sock
GOOGLE_APPLICATION_CREDENTIALS=/home/bob/gcp.json
GPG_KEY_FILE=/etc/key.gpg
KEYBOARD=us
PASSWORD_MIN_LENGTH=12
hotkey: ctrl+shift+k
keyboard = "qwerty"
monkey = "see1monkey2do3monkey4"
turkey: 12.5
keyword = "python3.11"
keywords = ["a1", "b2"]
tokenized = "a1 b2"
accuracy = 0.9312
loss: 0.1234 - accuracy: 0.9312
2024-01-15T10:00:00.000Z
192.168.1.10:5432
user@example.org
lat, lon = 48.137154, 11.576124
ATCGATCGATCGATCGATCGATCGATCGATCG
MKTAYIAKQRQISFVKSHFSRQLEERLGLIEVQ
team_key = "BOS-2024"
event_key = "2024casj_qm12"
keyspace = "prod"
authorship, cookiecutter, passenger, surpassed, tokenization, secretary
passenger_id = 1234
passengers = ["a", "b"]
secretary: "Jane"
credentials = service_account.Credentials.from_service_account_file("key.json")
creds = None
curl https://example.org/data.csv -o data.csv
mysql -u root -p
login(user, password)
login("bob", password)
login()
kwargs.pop("password", None)
getattr(cfg, "password", None)
connect(user, password)
connect("clicked", "handler")
connect("localhost", "8080")
las contraseñas son largas
das Passwort ist falsch
le mot de passe est oublié
slot = "morning"
slope: 0.25
mdp = MarkovProcess(states)
"""

BLOBS = {
    "a png": base64.b64encode(random.Random(1).randbytes(30_000)).decode(),
    "a data url": "data:image/png;base64,"
    + base64.b64encode(random.Random(2).randbytes(900)).decode(),
    "many hashes": "\n".join(f"{rand(40, HEX, i)} refs/heads/b{i}" for i in range(50)),
    "many uuids": "\n".join(
        str(uuid.UUID(int=random.Random(i).getrandbits(128))) for i in range(50)
    ),
    "numbers": " ".join(str(random.Random(i).random()) for i in range(500)),
    "integrity": "sha512-" + base64.b64encode(random.Random(3).randbytes(64)).decode(),
    "a lock file": (
        f'wheels = [{{ url = "https://files.example.org/{rand(60, HEX)}/a.whl", '
        f'hash = "sha256:{rand(64, HEX)}" }}]'
    ),
    "sklearn's page": (
        '<style>#sk-container-id-12 {color: black}</style><div class="sk-item">'
        '<label for="sk-estimator-id-31" class="sk-toggleable__label">'
    ),
}


def harmless_examples() -> list[str]:
    lines = [line for line in HARMLESS.strip("\n").split("\n") if line.strip()]
    return [*lines, f'next_token = "{SECRET}"', f"page_token: {SECRET}", f'x = "{SECRET}"']


@pytest.mark.spec("L7")
@pytest.mark.parametrize("text", harmless_examples())
def test_what_is_no_secret_stays_whole(text: str) -> None:
    assert mask_source(text) == text
    assert mask(text) == text


@pytest.mark.spec("L7")
@pytest.mark.parametrize("name", BLOBS)
def test_hashes_images_and_numbers_stay_whole(name: str) -> None:
    assert mask(BLOBS[name]) == BLOBS[name]
    assert mask_source(f"x = '''{BLOBS[name]}'''") == f"x = '''{BLOBS[name]}'''"


def test_the_corpus_is_large() -> None:
    assert len(BOTH_EXAMPLES) + len(SOURCE_EXAMPLES) + len(TEXT_EXAMPLES) + len(TOKENS) >= 240
    assert len(harmless_examples()) >= 200


# Private keys


def key_texts() -> dict[str, str]:
    lines = PEM_BODY.split("\n")
    whole = f"{BEGIN}\n{PEM_BODY}\n{END}\n"
    return {
        "plain": whole,
        "rsa with headers": f"{RSA_BEGIN}\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES,{HEX32}\n\n"
        f"{PEM_BODY}\n{END.replace(' PRIVATE', ' RSA PRIVATE')}",
        "pgp": whole.replace("PRIVATE KEY", "PGP PRIVATE KEY BLOCK"),
        "openssh": whole.replace("PRIVATE KEY", "OPENSSH PRIVATE KEY"),
        "carriage returns": whole.replace("\n", "\r\n"),
        "in json": '{"private_key": "' + whole.replace("\n", "\\n") + '", "id": "x"}',
        "in json in json": '{"a": "{\\"k\\": \\"' + whole.replace("\n", "\\\\n") + '\\"}"}',
        "indented": "key: |\n" + "".join(f"  {line}\n" for line in whole.split("\n")),
        "joined literals": "k = (\n"
        + "".join(f'    "{x}\\n"\n' for x in (BEGIN, *lines, END))
        + ")",
        "one line": f"{BEGIN} {' '.join(lines)} {END}",
    }


def body_left(masked: str) -> list[str]:
    """Return what is left of the key's body, in pieces of eight characters."""
    body = "".join(PEM_BODY.split())
    return [body[i : i + 8] for i in range(len(body) - 8) if body[i : i + 8] in masked]


@pytest.mark.spec("L7")
@pytest.mark.parametrize("name", key_texts())
def test_private_keys_are_masked_however_they_are_written(name: str) -> None:
    text = f"before\n{key_texts()[name]}\nafter"
    for masked in (mask(text), mask_source(text)):
        assert not body_left(masked)
        assert "before" in masked
        assert "after" in masked


@pytest.mark.spec("L7")
@pytest.mark.parametrize("name", ["plain", "in json", "joined literals", "carriage returns"])
def test_a_private_key_that_is_cut_off_anywhere_is_masked(name: str) -> None:
    text = key_texts()[name]
    begin, end = text.index("BEGIN"), text.index("-----END")
    for at in range(begin + len("BEGIN PRIVATE KEY-----") + 30, len(text), 13):
        assert not body_left(mask(text[:at])), at
        assert not body_left(mask(text[:at] + "\n[… 12 characters left out …]\n")), at
    for at in range(0, end - 30, 13):
        assert not body_left(mask(text[at:])), at


def test_a_line_that_only_names_a_key_block_stays() -> None:
    text = f"The file begins with {BEGIN} and says no more."
    assert mask(text) == "The file begins with [masked: private key] and says no more."
    assert mask("-----BEGIN CERTIFICATE-----\nTUlJ\n") == "-----BEGIN CERTIFICATE-----\nTUlJ\n"
    assert mask("a private key is needed") == "a private key is needed"


# Disguises


@pytest.mark.spec("L7")
@pytest.mark.parametrize(
    "text",
    [
        'pass\u200bword = "{pw}"',
        'password\u200b = "{pw}"',
        'password ＝ "{pw}"',
        'ｐａｓｓｗｏｒｄ＝"{pw}"',
        "password：{word}",
        "password = “{pw}”",
        "api_key\u00a0=\u00a0'{short}'",
        "\x1b[33mpassword\x1b[39m\x1b[38;5;241m=\x1b[39m\x1b[33m'\x1b[0m{pw}\x1b[33m'\x1b[39m",
        "\x1b[1mAuthorization\x1b[0m: Bearer \x1b[32m{short}\x1b[0m",
        "pass\u00adword: {pw}",
        "\ufeffDB_PASSWORD={word}",
    ],
)
def test_unseen_characters_and_colours_hide_nothing(text: str) -> None:
    filled_text, secrets = filled(text)
    masked = mask(filled_text)
    assert not [each for each in secrets if each in masked], masked
    assert mask(masked) == masked


@pytest.mark.spec("L7")
@pytest.mark.parametrize("join", ["\u200b", "\u2060", "\x1b[0m", "\ufeff"])
def test_a_token_with_something_unseen_in_it_is_masked(join: str) -> None:
    token = TOKENS["github"]
    for at in range(1, len(token)):
        masked = mask(f"a {token[:at]}{join}{token[at:]} b")
        assert masked == "a [masked: github token] b"


def test_text_of_other_scripts_stays() -> None:
    for text in ("Größe: 12 µm — naïve", "密度 = 3.2", "ключ: значение", "🙂 token_count = 5"):
        assert mask(text) == text
        assert mask_source(text) == text


# Marks


def test_marks_say_what_was_masked_and_where() -> None:
    text = f'a = "x"\npassword = "{PW}"\n{TOKENS["github"]} postgres://u:{PW}@h/db'
    masked, marks = mask_with_marks(text)
    assert [(each.rule, text[each.start : each.end]) for each in marks] == [
        ("password", PW),
        ("github token", TOKENS["github"]),
        ("url password", PW),
    ]
    assert masked == applied(text, marks)
    assert mask_with_marks("x = 1") == ("x = 1", ())


def applied(text: str, marks: tuple[Mark, ...]) -> str:
    for mark in reversed(marks):
        text = f"{text[: mark.start]}[masked: {mark.rule}]{text[mark.end :]}"
    return text


FRAGMENTS = [
    *("password", "token", "api_key", "key", "Authorization", "Cookie", "--token", "Bearer"),
    *("=", ":", " = ", ": ", "==", ",", ">", "(", ")", "[", "]", "{", "}", "'", '"', '"""', "\\"),
    *(" ", "\n", "\t", "  ", "|", "://", "@", "/", "u:p@h", "x", "hunter2", "\u200b", "\x1b[0m"),
    *("[masked: password]", "[masked: ", "…", "\\n", "#", "f'", "é", "＝", "\ud800", "%", "!"),
    *(SECRET, PW, HEX32, TOKENS["github"], TOKENS["jwt"], BEGIN, END, "curl -u ", "login("),
]


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=40).map("".join))
@example(f"＝:x:>login({BEGIN}key: {HEX32}{TOKENS['github']}|/password")
@example(f"|%api_key|{SECRET}password://\u200b{BEGIN}passwordf' = x'")
@settings(max_examples=400, derandomize=True, deadline=None)
def test_masking_never_fails_and_twice_is_once(text: str) -> None:
    for each in (mask, mask_source):
        masked = each(text)
        assert "could not be checked" not in masked
        assert each(masked) == masked
    masked, marks = mask_with_marks(text)
    assert masked == applied(text, marks) == mask(text)


@given(st.text(max_size=200))
@settings(max_examples=200, derandomize=True, deadline=None)
def test_any_text_can_be_masked(text: str) -> None:
    masked = mask(text)
    assert mask(masked) == masked


@given(
    st.lists(st.sampled_from(("x = 1\n", "for a in b:\n", "df.head()\n", "# a\n")), max_size=4),
    st.integers(0, 30),
    st.sampled_from(sorted(TOKENS)),
)
@settings(max_examples=150, derandomize=True, deadline=None)
def test_the_text_around_a_secret_stays(lines: list[str], indent: int, name: str) -> None:
    before, after = "".join(lines) + " " * indent, "\n" + "".join(lines)
    masked = mask_source(before + TOKENS[name] + after)
    assert masked.startswith(before)
    assert masked.endswith(after)
    assert TOKENS[name] not in masked


@pytest.mark.spec("L7")
def test_a_secret_is_found_wherever_it_stands_in_a_long_text() -> None:
    """Also where it lies across the edges of the pieces in which a text is looked at."""
    filler = "some words of a long text\n" * 400
    for offset in range(3900, 4060, 7):
        for secret in (f'password = "{PW}"', TOKENS["github"], f"postgres://u:{PW}@h"):
            masked = mask(filler[:offset] + " " + secret + " " + filler)
            assert PW not in masked
            assert TOKENS["github"] not in masked
            assert len(masked) > len(filler)


def test_what_cannot_be_checked_does_not_get_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("a rule failed")

    monkeypatch.setattr(redaction, "_found", fail)
    assert mask(f"password = '{PW}'") == "[masked: text that could not be checked]"


PYTHON = """
password = "{pw}"
client = Client(api_key="{secret}", timeout=3)
d = {{"password": "{pw}", 'token': '{secret}'}}
url = f"postgres://u:{pw}@{{host}}/db"
key = b"{secret}"
password = (
    "{short}"
    "{secret}"
)
headers = {{"Authorization": f"Bearer {secret}"}}
text = '''
DB_PASSWORD={pw}
'''
requests.get(url, auth=("bob", "{pw}"))
if password == "{pw}":
    pass
"""


@pytest.mark.spec("L7")
def test_a_masked_source_is_still_python() -> None:
    text, secrets = filled(PYTHON)
    masked = mask_source(text)
    assert len(ast.parse(masked).body) == len(ast.parse(text).body)
    assert not [each for each in secrets if each in masked]


def test_cells_of_another_language_are_read_as_text() -> None:
    assert WORDY not in mask_source(f"%%bash\nPASSWORD={WORDY} ./run")
    assert WORDY not in mask_source(f"%%writefile .env\npassword={WORDY}\n")
    assert mask_source("%%time\npassword = ask") == "%%time\npassword = ask"


# What is learned


@pytest.mark.spec("L7")
def test_what_was_typed_into_getpass_is_masked_later() -> None:
    masker = Masker()
    assert masker.mask(f"it is {WORDY}9") == f"it is {WORDY}9"
    assert masker.learn(f"{WORDY}9")
    assert masker.mask(f"it is {WORDY}9.") == "it is [masked: secret]."
    assert masker.mask_source(f'f("{WORDY}9")') == 'f("[masked: secret]")'
    assert masker.mask(f"{WORDY}99 is another word") == f"{WORDY}99 is another word"


@pytest.mark.spec("L7")
@pytest.mark.parametrize(
    "source",
    ['password = "{}"', "%env DB_PASSWORD={}", "login(password='{}')", "postgres://u:{}@h/db"],
)
def test_a_value_that_a_source_names_secret_is_masked_in_outputs(source: str) -> None:
    masker = Masker()
    masker.mask_source(source.format(PW))
    assert masker.mask(f"sent {PW} to h") == "sent [masked: secret] to h"


@pytest.mark.spec("L7")
def test_a_value_that_an_output_names_secret_is_masked_later() -> None:
    masker = Masker()
    masker.mask(f"DB_PASSWORD={PW}\nHOME=/root\n")
    assert masker.mask(f"{PW}") == "[masked: secret]"
    assert masker.mask("/root") == "/root"


@pytest.mark.parametrize(
    "value",
    [
        *("", "abc", "12345", "123456", "3.14159", "password", "Password", "localhost", "string"),
        *("None", "/home/bob", "https://example.org/x", "example", "model", "******", "a" * 4001),
        *("{password}", "<your key>", "jupyter"),
    ],
)
def test_what_is_short_or_common_is_not_learned(value: str) -> None:
    masker = Masker()
    assert not masker.learn(value)
    text = f"a {value} b"
    assert masker.mask(text) == text


@pytest.mark.spec("L7")
def test_a_learned_value_is_found_as_other_texts_spell_it() -> None:
    value = 'p"a/s\\s wö' + "rd\t1"
    masker = Masker()
    assert masker.learn(value)
    from urllib.parse import quote

    for spelled in (
        value,
        repr(value),
        quote(value, safe=""),
        value.encode("unicode_escape").decode(),
    ):
        masked = masker.mask(f"x {spelled} y")
        assert "[masked: secret]" in masked
        assert "rd" not in masked


def test_learning_a_variable_judges_its_name_and_its_value() -> None:
    masker = Masker()
    assert masker.learn_named("db_password", PW)
    assert not masker.learn_named("passwords_seen", 12)
    assert not masker.learn_named("token", "hello world")
    assert not masker.learn_named("primary_key", SECRET)
    assert masker.mask(PW) == "[masked: secret]"
    assert masker.names_secret("API_KEY")
    assert redaction.is_secret_name("hf_token")
    assert not redaction.is_secret_name("key")


def test_what_is_learned_is_bounded() -> None:
    masker = Masker()
    for index in range(1000):
        masker.learn(f"value{index}x{rand(12, seed=index)}")
    assert masker.mask(f"value0x{rand(12, seed=0)}").startswith("value0")
    assert masker.mask(f"value999x{rand(12, seed=999)}") == "[masked: secret]"


def test_two_threads_may_learn_and_mask_at_once() -> None:
    masker = Masker()
    failures: list[Exception] = []

    def work(number: int) -> None:
        try:
            for index in range(150):
                value = f"t{number}-{rand(14, seed=index)}"
                masker.learn(value)
                assert value not in masker.mask(f"a {value} b")
        except Exception as error:  # noqa: BLE001 - told to the test below
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


# Names


@pytest.mark.parametrize(
    "name",
    [
        "password",
        "PASSWORD",
        "dbPassword",
        "db_pass",
        "PGPASSWORD",
        "api_key",
        "apiKey",
        "API-KEY",
        "x-api-key",
        "openai_key",
        "secret",
        "client_secret",
        "SECRET_KEY",
        "access_token",
        "authToken",
        "hf_token",
        "GITHUB_TOKEN",
        "token_github",
        "password2",
        "passphrase",
        "aws_secret_access_key",
        "AccountKey",
        "SharedAccessKey",
        "_authToken",
        "pw",
        "pwd",
    ],
)
def test_names_that_say_secret(name: str) -> None:
    assert redaction.is_secret_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "key",
        "token",
        "keys",
        "tokens",
        "primary_key",
        "foreign_key",
        "sort_key",
        "cache_key",
        "s3_key",
        "public_key",
        "max_tokens",
        "token_count",
        "pad_token",
        "eos_token",
        "next_token",
        "tokenizer",
        "password_reset",
        "password_file",
        "secret_name",
        "passed",
        "bypass",
        "first_pass",
        "low_pass",
        "author",
        "hash",
        "monkey",
        "keyboard",
        "x",
        "df",
        "authority",
        "token_id",
        "password_hint",
        "api_key_name",
        "team_key",
    ],
)
def test_names_that_do_not(name: str) -> None:
    assert not redaction.is_secret_name(name)


def test_every_rule_of_a_token_may_stand_in_a_marker() -> None:
    """So that what is masked is known again as masked."""
    for rule, _ in secret_tokens.TOKENS:
        text = f'password = "[masked: {rule}]"'
        assert mask(text) == text
    assert mask(f'password = "[masked: {PW}]"') != f'password = "[masked: {PW}]"'


# Cost


def test_a_rule_is_asked_only_where_its_literal_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ordinary text is searched for literals and nothing else; not one place is looked at."""
    from ipymemory import secret_values

    def fail(*_: object) -> None:
        raise AssertionError("a rule was asked")

    monkeypatch.setattr(secret_values, "Place", fail)
    monkeypatch.setattr(secret_tokens, "_any", fail)
    text = "for row in table:\n    total += row.amount * rate\nprint(f'{total:.2f}')\n" * 300
    assert mask_source(text) == text


def test_every_literal_is_found_by_the_letter_it_is_gathered_under() -> None:
    from ipymemory import secret_forms
    from ipymemory.secret_literals import Folded

    for words in (secret_forms.FIRST, secret_forms._COMMAND_WORDS):
        assert len(words.gathered) <= 14, "each letter is a search through the text"
        for literal in words.all:
            text = f"a {literal.word.decode().upper()} e"
            # In a short text all are looked for at once first.
            for each in (text, 300 * "q8 " + text, text + 300 * " q8"):
                assert literal in Folded(each).holding(words)
        assert Folded("a = 1\n").holding(words) == ()


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit",
    [
        *("key=", "password=", "passwords=['a',", "'''password='", "://a:b@", "sk-", "\\", "curl "),
        *(
            BEGIN,
            END + "\n",
            "Cookie: a=",
            "ey" + "Ja.",
            "\x1b[",
        ),
        *("pass\u200bword='x' ", "[masked: password]", "redis-cli a ", "a1B2c3D4e5F6g7H8i9J0k1L2 "),
    ],
)
def test_a_million_characters_of_malice_take_seconds(unit: str) -> None:
    text = (unit * (1_000_000 // len(unit) + 1))[:1_000_000]
    begin = time.process_time()
    masked = mask(text)
    assert time.process_time() - begin < 60
    assert "could not be checked" not in masked


def test_importing_it_compiles_no_pattern() -> None:
    """Loading the extension must not wait for rules that a session may never need."""
    code = (
        "import re, logging, sys; compiled = []; real = re.compile\n"
        "def count(*a, **k): compiled.append(a[0]); return real(*a, **k)\n"
        "import dataclasses, functools, bisect, ipymemory\n"
        "re.compile = count\n"
        "import ipymemory.redaction, ipymemory.excerpts\n"
        "late = [m for m in sys.modules if m.startswith('ipymemory.secret_')]\n"
        "sys.stdout.write(repr((len(compiled), late)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ast.literal_eval(run.stdout)[1] == [
        "ipymemory.secret_literals",
        "ipymemory.secret_tokens",
        "ipymemory.secret_marks",
    ]
    assert ast.literal_eval(run.stdout)[0] <= 1


MALICE = (
    *(
        "=",
        ":",
        '"',
        "'",
        "`",
        "-",
        "\\",
        "(",
        "[",
        "{",
        "|",
        "@",
        "\n",
        " ",
        "A1b2",
        "a1B2c3D4e5F6",
    ),
    *("key=", "sig=", "key:", "key=(", "keys=[", "password=", "password='", '"""password="'),
    *("password=x or 'a'", "password='a''b'", "passwords=['a',", "user,password=", "password>"),
    *("--token=", "--token ", "Cookie: ", "Authorization: ", "Authorization: Basic a", "auth('a',"),
    *("token:a|b=", "token:a[", "key: |\n  a\n", "password\\\n=", "://", "://a:b@", "curl -u a:b "),
    *("docker login ", "login(", "sshpass -p ", "mysql -p ", "identified by ", "create user ident"),
    *("eyJ-", "sk-", "sk-A1-", "SG.", "1234567890:AA", "dapi", "0123456789abcdef", "Bearer "),
    *(BEGIN, END + "\n", "private key ", "\x1b[", "\x1b]", "\u200b", "é", "пароль", "a\u0301"),
    *("[masked: password]", "[masked: ", "&sig=token:a=key=[", "wandb login ", "%env token "),
    *("<th>password</th>", "password\t", "|password", "password,a\n", "password\n", "  password"),
    *("htpasswd -b a a ", "openssl enc -k a ", "net use \\\\a a ", "echo a|chpasswd ", "7z -pa "),
    *("set -x password ", "user: a, password: ", "password::A =", "openssl passwd -1 "),
    *(
        "'--token', ",
        "password\n a\n",
        "passwords:\n - a\n",
        "password =\n  a\n",
        "hmac.new(b'a', ",
    ),
    *(
        "a:5432:a:a:a\n",
        ":5432:",
        ":*:",
        "cookies.set('a',",
        "password=Column(",
        "password=a\n b\n",
    ),
    *("<b>password</b>", "<password a ", "<td>password</td>", "name: password\n  value: a\n"),
    *("insert into t(password,", "insert into t(password) values ('a'),", "**password**: "),
    *("insert into t(password) values (", "create user a identified by ", "password for a "),
    *(
        '{"kind": "Secret", "data": {"a": "b"}}',
        "kind: secret\ndata:\n  a: b\n",
        "'name': 'password', 'value': ",
        "data:\n  a: b\n",
    ),
    *("<tr><th>password</th><td>a</td>", "a password\n", "{'password': {0: ", '"password": ["a", '),
)


def grows(unit: str, smaller: int = 8 * 1024) -> float:
    """Return how many times as long four times as much of `unit` takes to mask."""

    def took(size: int) -> float:
        text = unit * (size // len(unit))
        best = 1e9
        for _ in range(3):
            # A collection looks at all that the tests before this one left behind.
            gc.disable()
            try:
                begin = time.process_time()
                mask(text)
                best = min(best, time.process_time() - begin)
            finally:
                gc.enable()
        return best

    return took(4 * smaller) / max(took(smaller), 1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("unit", MALICE)
def test_four_times_the_text_takes_four_times_as_long(unit: str) -> None:
    """Growth is measured, no time: what is not linear takes sixteen times as long, and more."""
    assert any(grows(unit) < 8 for _ in range(3))


# Columns

COLUMNS = {
    "pandas": "    user    password  n\n0    bob   {word}  1\n1  alice  opensesame  2\n",
    "an index with a name": "         password  n\nuser                 \nbob     {word}  1\n",
    "one column": "     password\n0   {word}\n1  opensesame\n",
    "turned": "               0\nuser         bob\npassword  {word}\nn              1\n",
    "a series": "0     {word}\n1    opensesame\nName: password, dtype: object",
    "a row": "user            bob\npassword    {word}\nName: 0, dtype: object",
    "described": "        user   password\ncount      2          2\ntop      bob  {word}\n",
    "markdown": "| user | password |\n|:-----|:---------|\n| bob | {word} |\n",
    "polars": "┌──────┬───────────┐\n│ user ┆ password  │\n│ ---  ┆ ---       │\n"
    "│ str  ┆ str       │\n╞══════╪═══════════╡\n│ bob  ┆ {word} │\n└──────┴───────────┘",
    "psql": " user | password  \n------+-----------\n bob  | {word}\n(1 row)\n",
    "sqlite": "user   password  \n-----  ----------\nbob    {word} \n",
    "kubectl": "NAME   PASSWORD     AGE\nbob    {word}    2d\n",
    "csv": "user,password,n\nal,,2\nbob,{word},1\n",
    "csv with quotes": '"user","password"\n"bob, jr","{word}"\n',
    "tsv": "\tuser\tpassword\n0\tbob\t{word}\n",
    "latex": " & user & password \\\\\n0 & bob & {word} \\\\\n",
    "html": '<table><tr style="text-align: right;">\n<th></th>\n<th>user</th>\n<th>password</th>\n'
    "<th>n</th></tr><tr><th>0</th><td>bob</td><td>{word}</td><td>1</td></tr></table>",
    "html turned": "<table><tr><th>password</th><td>{word}</td><td>opensesame</td></tr></table>",
    "html of spans": '<table><tr><th colspan="2">a</th></tr><tr><th>x</th><th>password</th></tr>'
    "<tr><td>bob</td><td>{word}</td></tr></table>",
    "spanish": "    user  contraseña\n0    bob   {word}\n",
    "russian": "    user      пароль\n0    bob   {word}\n",
    "a dict of columns": "{{'user': {{0: 'bob'}}, 'password': {{0: '{word}', 1: 'opensesame'}}}}",
    "a dict of lists": "{{'user': ['bob'], 'password': ['{word}', 'opensesame'], 'n': [1, 2]}}",
    "json of columns": '{{"password":{{"0":"{word}"}},"n":{{"0":1}}}}',
}


@pytest.mark.spec("L7")
@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_of_passwords_is_masked(name: str) -> None:
    text = filled(COLUMNS[name])[0]
    masked = mask(f"before\n\n{text}\n\nafter: bob")
    assert WORDY not in masked
    assert "opensesame" not in masked
    assert masked.startswith("before")
    assert masked.endswith("after: bob")
    assert masked.count("bob") == text.count("bob") + 1, "the other columns stay"
    assert mask(masked) == masked


@pytest.mark.spec("L7")
@pytest.mark.parametrize(
    "text",
    [
        "user        object\npassword    object\ntoken       object\ndtype: object",
        "user        0\npassword    5\ndtype: int64",
        "      password\nteam          \na            12\nb            31\n",
        "   token  count\n0    the     12\n1    cat      3\n",
        "      tokens  n\n0  the cat  2\n",
        " #   Column    Non-Null Count  Dtype \n---  ------    --------------  ----- \n"
        " 0   user      2 non-null      object\n 1   password  2 non-null      object\n",
        "| Name | Type | Note |\n|---|---|---|\n| password | string | what you chose |\n"
        "| host | string | where |\n",
        "  --user      the user\n  password    the password to use\n  host        the host\n",
        "Please enter your password\nand your name\n",
        "    password_reset  n\n0   yes  1\n",
        '{"password": {"type": "string"}, "token": {"type": "string"}}',
        "<table><tr><th>token</th></tr><tr><td>the</td></tr></table>",
        "<table><tr><th></th><th>password</th></tr><tr><th>count</th><td>12</td></tr></table>",
    ],
)
def test_a_column_of_something_else_stays(text: str) -> None:
    assert mask(text) == text


@pytest.mark.spec("L7")
def test_a_source_that_is_left_alone_holds_nothing_that_was_learned() -> None:
    masker = Masker()
    assert masker.leaves("x = 1")
    assert masker.leaves("\n".join(f"name_{i} = {i}  # an ordinary comment" for i in range(50)))
    assert not masker.leaves("x = '" + "ghp_" + "a1B2" * 9 + "'")
    assert not masker.leaves("pass\x1b[0mword = 'x'")
    assert not masker.leaves("naïve = 1"), "such a text is looked at twice"
    assert masker.learn("blue-horse-7")
    assert not masker.leaves("x = 'blue-horse-7'")
    assert masker.leaves("x = 1")
