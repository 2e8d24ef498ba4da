"""Probes of masking: forms in which secrets stand in notebooks, and what only looks like them.

`{w}` stands for a password, `{k}` for a key, `{l}` for a long one, `{b}` for base64 of a password,
`{j}` for a JWT, `{o}` for a password that is no word, `{h}` and `{h40}` for hex digits, `{u}` for a
UUID, `{m}` for ten words of a seed; each form is tried with several values. A form
that begins with ``source:`` is a cell, with ``text:`` an output; the others are tried as both.
Forms are parted by lines of ``--``.
"""

from __future__ import annotations

import base64
import random
import string

_SOURCE = random.Random("secrets")


def _made(length: int, alphabet: str) -> str:
    return "".join(_SOURCE.choice(alphabet) for _ in range(length - 3)) + "aB7"


_ALNUM = string.ascii_letters + string.digits

VALUES: dict[str, tuple[str, ...]] = {
    "w": ("swordfish", "hunt" + "er2!x", "Tr0ub4dor.3", "correct-horse-battery", "geheim7"),
    "k": (_made(40, _ALNUM), _made(14, _ALNUM), _made(44, _ALNUM + "_-")),
    "b": tuple(
        base64.b64encode(each.encode()).decode()
        for each in ("swordfish", "hunter2!x", "bob:Geheim7")
    ),
    "l": (_made(40, _ALNUM), _made(36, _ALNUM)),
    "o": ("hunt" + "er2!x", "Tr0ub4dor.3", "geheim7!"),
    "h": ("9c1185a5c5e9fc54" + "612808977ee8f548",),
    "h40": ("9c1185a5c5e9fc54" + "612808977ee8f548b2258d31",),
    "u": ("550e8400-e29b-41d4" + "-a716-446655440000",),
    "m": ("ability able about above absent absorb abstract absurd abuse access",),
    "j": (f"ey{'J'}hbGciOiJIUzI1NiJ9.ey{'J'}zdWIiOiIxMjM0NTY3ODkwIn0.{_made(43, _ALNUM)}",),
}

SECRETS: dict[str, str] = {
    "SQL": """
INSERT INTO users (name, password) VALUES ('bob', '{w}')
--
INSERT INTO users (id, name, password, n) VALUES (1, 'bob', '{w}', 3), (2, 'al, jr', '{w}', 4);
--
insert into accounts(api_key, owner) values ("{k}", "bob")
--
cur.execute("INSERT INTO users (name, password) VALUES ('bob', '{w}')")
--
INSERT INTO `users` (`name`, `password`)
VALUES ('bob', '{w}');
--
UPDATE users SET password = '{w}' WHERE name = 'bob'
--
UPDATE users SET name='bob', password='{w}' WHERE id=3
--
SELECT * FROM users WHERE password = '{w}'
--
CREATE USER bob WITH PASSWORD '{w}';
--
CREATE USER bob PASSWORD '{w}'
--
CREATE USER 'bob'@'%' IDENTIFIED BY '{w}';
--
CREATE USER bob IDENTIFIED BY {w};
--
CREATE USER bob IDENTIFIED WITH mysql_native_password BY '{w}'
--
CREATE USER bob IDENTIFIED WITH sha256_password BY '{w}'
--
ALTER USER 'root'@'localhost' IDENTIFIED BY '{w}';
--
GRANT ALL ON db.* TO 'bob'@'%' IDENTIFIED BY '{w}'
--
ALTER ROLE bob WITH LOGIN ENCRYPTED PASSWORD '{w}';
--
ALTER ROLE bob PASSWORD '{w}'
--
cur.execute("ALTER ROLE bob PASSWORD '{w}'")
--
CREATE LOGIN bob WITH PASSWORD = '{w}';
--
CREATE LOGIN bob WITH PASSWORD = N'{w}', CHECK_POLICY = OFF
--
SET PASSWORD FOR 'bob'@'localhost' = PASSWORD('{w}');
--
SET PASSWORD FOR bob = '{w}'
--
SET PASSWORD = '{w}'
--
CREATE SECRET s (TYPE S3, KEY_ID 'AKX', SECRET '{k}')
--
COPY t FROM 's3://b/k' CREDENTIALS 'aws_access_key_id=x;aws_secret_access_key={k}'
--
SELECT dblink_connect('host=h user=u password={w} dbname=d')
--
CREATE USER MAPPING FOR bob SERVER s OPTIONS (user 'bob', password '{w}');
--
%sql postgresql://bob:{w}@h/db
""",
    "Kubernetes": """
env:
  - name: DB_PASSWORD
    value: {w}
--
- name: DB_PASSWORD
  value: "{w}"
--
- name: 'API_KEY'
  value: '{k}'
--
{"name": "DB_PASSWORD", "value": "{w}"}
--
{'name': 'API_TOKEN', 'value': '{k}', 'n': 1}
--
{
  "name": "DB_PASSWORD",
  "value": "{w}"
}
--
{"Name": "DB_PASSWORD", "Value": "{w}"}
--
{"key": "DB_PASSWORD", "value": "{w}"}
--
{"ParameterKey": "DBPassword", "ParameterValue": "{w}"}
--
apiVersion: v1
kind: Secret
metadata:
  name: s
data:
  username: Ym9i
  conn: {b}
--
kind: Secret
apiVersion: v1
stringData:
  conn: {w}
type: Opaque
--
apiVersion: v1
data:
  blob: {b}
kind: Secret
--
kubectl create secret generic s --from-literal=conn={w}
--
kubectl create secret docker-registry r --docker-password={w}
--
{"kind": "Secret", "apiVersion": "v1", "data": {"conn": "{b}"}}
--
<add key="DbPassword" value="{w}" />
""",
    "defaults": """
source:parser.add_argument("--token", default="{k}")
--
source:parser.add_argument("--password", help="the password", default='{w}')
--
source:parser.add_argument(
    "--password",
    type=str,
    default="{w}",
)
--
source:p.add_argument('-p', '--password', default='{w}', help='x')
--
source:@click.option("--password", default="{w}")
def f(password): ...
--
source:@click.option("--token", "-t", envvar="T", default="{k}", show_default=True)
--
source:password: str = typer.Option("{w}", help="x")
--
source:flags.DEFINE_string("password", "{w}", "the password")
--
source:token: str = Field(default="{l}", description="x")
--
source:password = st.text_input("Password", value="{w}", type="password")
--
source:password: str = field(default="{w}")
--
source:password = models.CharField(default="{w}")
--
source:password = Column(String, default="{w}")
--
source:password = pn.widgets.PasswordInput(value='{w}')
--
source:args = parser.parse_args(["--password", "{w}"])
--
source:sys.argv = ["x", "--token", "{k}"]
--
source:runner.invoke(cli, ["--password={w}"])
--
text:  --password TEXT  [default: {w}]
--
text:  --password PASSWORD  the password (default: {w})
--
text:  --token TOKEN   what to log in with [default: {k}]
""",
    "files of settings": """
text:[db]
password =
    {w}
user = bob
--
text:machine api.example.org
login bob
password {w}
--
text:machine api.example.org
  login bob
  password {w}
--
text:machine h login bob password {w}
--
text:default login anonymous password {w}
--
text:machine h account a password {w}
--
text:localhost:5432:db:bob:{w}
--
text:*:*:*:bob:{w}
--
text:db.example.org:5432:*:postgres:{w}
localhost:5432:db:al:{w}
--
text:[default]
aws_access_key_id = AKX
aws_secret_access_key = {k}
aws_session_token = {k}
--
text:[default]
aws_secret_access_key={k}
--
text:aws_secret_access_key {k}
--
text:[client]
user=root
password="{w}"
--
text:database:
  password: '{w}'
--
text:password: >-
  {w}
user: bob
--
text:api_key: |-
    {k}
--
text:secrets:
  db: {k}
--
text:passwords:
  bob: {w}
  al: {w}
--
text:credentials:
  username: bob
  password: {w}
--
text:[database]
password = '''{w}'''
--
text:password = \"\"\"
{w}\"\"\"
--
text:db = { user = "bob", password = "{w}" }
--
text:db.password={w}
--
text:<password>{w}</password>
--
text:<password type="x">{w}</password>
--
text:<password><![CDATA[{w}]]></password>
--
text:<db:password>{w}</db:password>
--
text:<user name="bob" password="{w}"/>
--
text:<property name="password" value="{w}"/>
--
text:<property name="password">{w}</property>
--
text:<entry key="password">{w}</entry>
--
text:<property>
  <name>fs.s3a.secret.key</name>
  <value>{k}</value>
</property>
--
text:<setting name="Password" serializeAs="String"><value>{w}</value></setting>
--
text:<string name="api_key">{k}</string>
--
text:<key>password</key>
<string>{w}</string>
--
text:requirepass {w}
--
text:masterauth {w}
--
text:bindpw {w}
--
text:rpcpassword={w}
--
text:wpa_passphrase={w}
--
text:_password={b}
--
text://npm.example.org/:_password="{b}"
--
text:identity: bob
oauth_token: {k}
--
text:bob:$apr1$abcdefgh$Q7s8Qm1vXn0aB7cD9eFgH/
""",
    "commands": """
source:!curl -u bob:{w} https://x
--
source:!curl -X POST https://x --user bob:{w}
--
source:!curl -sSL -ubob:{w} https://x
--
source:!curl https://x -d "user=bob&password={w}"
--
source:!curl https://x -d '{"password": "{w}"}'
--
source:!curl --cookie session={k} https://x
--
source:!curl --oauth2-bearer {k} https://x
--
source:!sshpass -p {w} ssh h
--
source:!sshpass -p'{w}' ssh h
--
source:!sshpass -p{w} scp a b:
--
source:!SSHPASS={w} sshpass -e ssh h
--
source:!mysql -u root -p{w}
--
source:!mysqldump -uroot -p'{w}' db
--
source:!mysqladmin -u root -p{w} status
--
source:!mysqladmin -u root password {w}
--
source:!htpasswd -b file bob {w}
--
source:!htpasswd -bc file bob {w}
--
source:!htpasswd -nb bob {w}
--
source:!htpasswd -cbB file bob '{w}'
--
source:!openssl enc -aes-256-cbc -pass pass:{w} -in x
--
source:!openssl pkcs12 -passin pass:{w} -passout pass:{w}
--
source:!openssl enc -k {w} -in x
--
source:!openssl passwd -6 {w}
--
source:!docker login -u bob -p {w} r.example.org
--
source:!docker login --password {w}
--
source:!echo {w} | docker login -u bob --password-stdin
--
source:!printf '%s' '{w}' | docker login -u bob --password-stdin
--
source:!docker run -e MYSQL_ROOT_PASSWORD={w} mysql
--
source:!docker run --env=POSTGRES_PASSWORD={w} postgres
--
source:!git remote add origin https://{l}@github.com/a/b
--
source:!git remote set-url origin https://bob:{k}@github.com/a/b
--
source:!git config http.extraheader "Authorization: Basic {b}"
--
source:!wget --user=bob --password={w} https://x
--
source:!wget --http-password={w} https://x
--
source:!wget --http-passwd {w} https://x
--
source:!az login -u bob -p {w}
--
source:!az login --password {w}
--
source:!az login --service-principal -u x -p {w} --tenant t
--
source:!az storage blob list --account-key {k}
--
source:!gh auth login --with-token <<< {k}
--
source:!echo {k} | gh auth login --with-token
--
source:!helm install x --set auth.password={w}
--
source:!ansible-playbook x.yml -e "ansible_password={w}"
--
source:!terraform apply -var "db_password={w}"
--
source:!terraform apply -var 'db_password={w}'
--
source:!psql "host=h user=bob password={w}"
--
source:!psql postgresql://bob:{w}@h/db
--
source:!mongo -u bob -p {w} h/db
--
source:!mongodump -u bob -p {w}
--
source:!mongodump --username bob --password {w}
--
source:!redis-cli -a {w}
--
source:!redis-cli AUTH {w}
--
source:!smbclient //h/s -U bob%{w}
--
source:!sqlcmd -S h -U sa -P {w}
--
source:!bcp t out f -U sa -P {w}
--
source:!sqlplus bob/{w}@db
--
source:!ldapsearch -x -D cn=admin -w {w}
--
source:!7z x a.7z -p{w}
--
source:!unzip -P {w} x.zip
--
source:!unrar x -p{w} a.rar
--
source:!gpg --batch --passphrase {w} -d f
--
source:!gpg --batch --passphrase '{w}' -c f
--
source:!ssh-keygen -t rsa -N {w} -f k
--
source:!keytool -storepass {w} -keypass {w}
--
source:!echo '{w}' | sudo -S ls
--
source:!echo "bob:{w}" | chpasswd
--
source:!echo bob:{w} | sudo chpasswd
--
source:!useradd -p {w} bob
--
source:!usermod --password {w} bob
--
source:!net use x: \\\\h\\s {w} /user:bob
--
source:!net user bob {w} /add
--
source:!setx DB_PASSWORD {w}
--
source:!setx DB_PASSWORD "{w}" /M
--
text:setx API_KEY {k}
--
text:C:\\> set DB_PASSWORD={w}
--
text:$env:DB_PASSWORD = '{w}'
--
text:$env:DB_PASSWORD="{w}"
--
text:PS C:\\> $env:API_KEY="{k}"
--
text:$password = ConvertTo-SecureString "{w}" -AsPlainText -Force
--
text:ConvertTo-SecureString -String '{w}' -AsPlainText
--
text:[Environment]::SetEnvironmentVariable("DB_PASSWORD", "{w}", "User")
--
text:$Password = "{w}"
--
text:export DB_PASSWORD='{w}'
--
text:export DB_PASSWORD=$'{w}'
--
text:set -gx DB_PASSWORD {w}
--
text:set -x API_KEY {k}
--
text:setenv DB_PASSWORD {w}
--
text:fish> set -Ux API_KEY {k}
--
text:PASSWORD={w} ./run.sh
--
text:$ export API_KEY={k}
--
text:heroku config:set DB_PASSWORD={w} --app x
--
text:aws configure set aws_secret_access_key {k}
--
text:aws secretsmanager create-secret --name s --secret-string {w}
--
text:gcloud sql users set-password bob --password={w}
--
text:vault kv put secret/db password={w}
--
text:vault login {k}
--
text:npm config set //r/:_authToken {k}
--
text:npm config set //r/:_authToken={k}
--
text:poetry config pypi-token.pypi {k}
--
text:poetry config http-basic.x bob {w}
--
text:pip config set global.index-url https://bob:{w}@p.example.org/simple
--
text:snowsql -a x -u bob -p {w}
--
text:rclone config create r webdav pass {w}
--
text:kaggle config set -n key -v {k}
--
text:databricks configure --token {k}
--
text:influx -username bob -password {w}
--
text:java -Djavax.net.ssl.keyStorePassword={w} -jar x
--
text:cmd /c "tool /password:{w}"
--
text:rdesktop -u bob -p {w} h
--
text:xfreerdp /u:bob /p:{w} /v:h
--
text:svn co https://x --username bob --password {w} --no-auth-cache
--
text:subprocess.run(["mysql", "-u", "root", "-p{w}"])
--
text:subprocess.run(["sshpass", "-p", "{w}", "ssh", "h"])
--
text:subprocess.run(["docker", "login", "-u", "bob", "-p", "{w}"])
--
text:CompletedProcess(args=['sshpass', '-p', '{w}', 'ssh', 'h'], returncode=0)
""",
    "headers and cookies": """
{'Authorization': 'Basic {b}'}
--
{'Authorization': b'Basic {b}'}
--
{"Authorization":"Bearer {k}"}
--
headers = {'authorization': 'Bearer {k}', 'accept': '*/*'}
--
CaseInsensitiveDict({'Authorization': 'Basic {b}'})
--
[('Authorization', 'Bearer {k}')]
--
(b'authorization', b'Bearer {k}')
--
text:authorization: basic {b}
--
text:> authorization: Bearer {k}
--
text:send: b'GET / HTTP/1.1\\r\\nAuthorization: Basic {b}\\r\\n'
--
text:-H 'X-Auth-Token: {k}'
--
text:x-amz-security-token: {k}
--
text:Set-Cookie: session={k}; Path=/; HttpOnly
--
text:set-cookie: id={k}
--
{'Set-Cookie': 'session={k}; Path=/'}
--
{'Cookie': 'a=1; session={k}'}
--
text:<RequestsCookieJar[<Cookie session={k} for .example.org/>]>
--
requests.get(u, cookies={'session': '{k}'})
--
requests.get(u, cookies=dict(session='{l}'))
--
s.cookies.set("session", "{l}")
--
s.cookies["session"] = "{l}"
--
driver.add_cookie({"name": "session", "value": "{l}"})
--
text:jwt is {j}
--
{"id": "{j}"}
--
text:id_token={j}&state=1
--
text:token_type=bearer&access_token={k}&expires_in=3600
--
text:X-CSRFToken: {k}
--
text:<input type="hidden" name="csrfmiddlewaretoken" value="{k}">
--
text:<meta name="csrf-token" content="{k}">
--
session.auth = ('bob', '{w}')
--
auth=aiohttp.BasicAuth('bob', '{w}')
--
auth=BasicAuth(login='bob', password='{w}')
--
httpx.Client(auth=("bob", "{w}"))
""",
    "tracebacks and logs": """
text:    12 DB_PASSWORD={w}
--
text:---> 12 password = "{w}"
--
text:  File ".env", line 1
    DB_PASSWORD={w}
    ^
--
text:OperationalError: (1045, "Access denied: password='{w}' user='bob'")
--
text:ValueError: invalid literal for int() with base 10: 'password={w}'
--
text:ValidationError: 1 error
password
  Input should be a valid int [type=int_parsing, input_value='{w}', input_type=str]
--
text:KeyError: "api_key='{k}'"
--
text:TypeError: connect(user='bob', password='{w}') got x
--
text:password = '{w}', user = 'bob'
--
text:self = <Client password='{w}'>, n = 1
--
text:User(name='bob', password='{w}')
--
text:User(name='bob', hashed_password='x', api_key='{k}')
--
text:<User bob password={w}>
--
text:namespace(user='bob', password='{w}')
--
text:Namespace(token='{l}', n=1)
--
text:2024-01-02 10:00:00 INFO password={w} user=bob
--
text:2024-01-02 INFO user=bob password="{w}"
--
text:level=info msg="login" user=bob password={w} ms=3
--
text:INFO:root:logging in with token {l}
--
text:INFO [main] apiKey={k}, n=2
--
text:{"level":"info","password":"{w}"}
--
text:{"msg":"{\\"password\\":\\"{w}\\"}"}
--
text:"{\\\\\\"password\\\\\\":\\\\\\"{w}\\\\\\"}"
--
text:b'{"password": "{w}"}'
--
text:'{\\n  "password": "{w}"\\n}'
--
text:[password] => {w}
--
text:'password' => '{w}',
--
text::password => "{w}"
--
text:password: '{w}' (str)
--
text:password={w}, host=h
--
text:password={w};host=h
--
text:password={w}|host=h
--
text:Password for bob: {w}
--
text:Your new password: {w}
--
text:Generated API key: {k}
--
text:Token: {l}
--
text:token={l}
--
text:Using token {l}
--
text:user/password: bob/{w}
--
text:username: bob, password: {w}
--
text:login: bob / password: {w}
""",
    "tables": """
text:<table><tr><th>user</th><th>password</th></tr><tr><td>bob</td><td>{w}</td></tr></table>
--
text:<table border="1" class="dataframe">
  <thead>
    <tr style="text-align: right;">
      <th></th>
      <th>user</th>
      <th>password</th>
    </tr>
  </thead>
  <tbody>
    <tr>
      <th>0</th>
      <td>bob</td>
      <td>{w}</td>
    </tr>
  </tbody>
</table>
--
text:<table><tr><th><b>password</b></th></tr><tr><td><i>{w}</i></td></tr></table>
--
text:<tr><td>password</td><td>{w}</td></tr>
--
text:<tr><td><b>password</b></td><td>{w}</td></tr>
--
text:<tr><td>password:</td><td>{w}</td></tr>
--
text:<dt>password</dt><dd>{w}</dd>
--
text:<b>password</b>: {w}
--
text:<li><strong>Password:</strong> {w}</li>
--
text:<span class="k">password</span><span class="o">=</span><span class="s">{w}</span>
--
text:┏━━━━━━┳━━━━━━━━━━━┓
┃ user ┃ password  ┃
┡━━━━━━╇━━━━━━━━━━━┩
│ bob  │ {w} │
└──────┴───────────┘
--
text:╭──────┬───────────╮
│ user │ password  │
├──────┼───────────┤
│ bob  │ {w} │
╰──────┴───────────╯
--
text:+------+-----------+
| user | password  |
+------+-----------+
| bob  | {w} |
+------+-----------+
--
text:| user | **password** |
|---|---|
| bob | {w} |
--
text:**password**: {w}
--
text:**Password:** `{w}`
--
text:- `password`: `{w}`
--
text: user     password
------   ----------
 bob      {w}
--
text:user   password
-----  ---------
bob    {w}
--
text:user,password
bob,{w}
--
text:password;user
{w};bob
--
text:user	password
bob	{w}
--
text:[{'user': 'bob', 'password': '{w}'}]
--
text:{'password': ['{w}', 'x']}
--
text:*************************** 1. row ***************************
    user: bob
password: {w}
""",
    "other languages": """
text:password <- "{w}"
--
text:Sys.setenv(DB_PASSWORD = "{w}")
--
text:Sys.setenv("API_KEY" = "{k}")
--
text:options(password = "{w}")
--
text:dbConnect(drv, user = "bob", password = "{w}")
--
text:list(password = '{w}')
--
text:assign("password", "{w}")
--
text:ENV["DB_PASSWORD"] = "{w}"
--
text:const password = "{w}"
--
text:const PASSWORD::String = "{w}"
--
text:password::String = "{w}"
--
text:Dict("password" => "{w}")
--
text:password := "{w}"
--
text:var password string = "{w}"
--
text:let password: &str = "{w}";
--
text:let password = `{w}`;
--
text:String password = "{w}";
--
text:private static final String PASSWORD = "{w}";
--
text:char *password = "{w}";
--
text:const char password[] = "{w}";
--
text:val password = "{w}"
--
text:define('DB_PASSWORD', '{w}');
--
text:process.env.API_KEY = "{k}"
--
text:process.env['API_KEY'] = '{k}'
--
text:System.setProperty("db.password", "{w}");
--
text:{ password: '{w}', user: 'bob' }
--
text:{password:"{w}"}
--
text:my $password = '{w}';
--
text:@password = '{w}'
--
text::password "{w}"
--
text:password="{w}" user="bob"
--
source:%env DB_PASSWORD={w}
--
source:%env DB_PASSWORD {w}
--
source:os.environ.update({"DB_PASSWORD": "{w}"})
--
source:os.environ.update(DB_PASSWORD="{w}")
--
source:os.environ |= {"API_KEY": "{k}"}
--
source:with patch.dict(os.environ, {"DB_PASSWORD": "{w}"}): ...
--
source:conf = {**base, "password": "{w}"}
--
source:conf.password = "{w}"
--
source:conf.db.password = '{w}'
--
source:setattr(conf, 'password', '{w}')
--
source:if user == "bob" and password == "{w}": ok()
--
source:assert password == "{w}"
--
source:password = "{w}".encode()
--
source:password = b"{w}"
--
source:PASSWORDS = {"bob": "{w}"}
--
source:password = "{w}" if prod else None
--
source:password = None or "{w}"
--
source:password = str("{w}")
--
source:password = base64.b64decode("{b}")
--
source:password = quote_plus("{w}")
--
source:password = urllib.parse.quote("{w}")
--
source:password = bytes("{w}", "utf-8")
--
source:x = lambda password="{w}": password
--
source:await connect(password="{w}")
--
source:keyring.set_password("s", "bob", "{w}")
--
source:pyzipper.setpassword(b"{w}")
--
source:zf.extractall(pwd=b"{w}")
--
source:zf.extractall(pwd="{w}".encode())
--
source:fernet = Fernet("{k}")
--
source:Fernet(b"{k}=")
--
source:jwt.encode(payload, "{w}", algorithm="HS256")
--
source:jwt.decode(t, "{k}", algorithms=["HS256"])
--
source:hmac.new(b"{w}", msg, "sha256")
--
source:AES.new(b"{k}", AES.MODE_GCM)
--
source:app.secret_key = "{w}"
--
source:app.config["SECRET_KEY"] = "{w}"
--
source:SECRET_KEY = b'_5#y2L"F4Q8z{w}'
""",
    "names in other languages": """
text:contraseña = "{w}"
--
text:Contraseña: {w}
--
text:clave: {l}
--
text:clave = "{l}"
--
text:mot de passe : {w}
--
text:MOT_DE_PASSE={w}
--
text:Passwort: {w}
--
text:Kennwort = {w}
--
text:geheimnis = "{l}"
--
text:palavra_passe = "{w}"
--
text:palavra-passe: {w}
--
text:senha: {w}
--
text:wachtwoord: {w}
--
text:lösenord: {w}
--
text:пароль: {w}
--
text:密码：{w}
--
text:密码: {w}
--
text:パスワード: {w}
--
text:비밀번호: {w}
--
text:कूटशब्द: {w}
--
text:पासवर्ड: {w}
--
text:كلمة المرور: {w}
--
text:كلمة السر: {w}
--
text:mật khẩu: {w}
--
text:şifre: {w}
--
text:hasło: {w}
--
text:heslo: {w}
--
text:κωδικός: {w}
--
text:סיסמה: {w}
--
text:รหัสผ่าน: {w}
--
text:clave_api = "{k}"
--
text:chave_api: {k}
""",
    "cookies, options and other languages": r"""
text:# Netscape HTTP Cookie File
# https://curl.se/docs/http-cookies.html

.example.org	TRUE	/	TRUE	1767225600	session	{k}
#HttpOnly_.example.org	TRUE	/	FALSE	0	sid	{l}
--
text:.kaggle.com	TRUE	/	TRUE	1767225600	ka_sessionid	{k}
--
text:www.example.org	FALSE	/	FALSE	0	remember_me	{l}
--
source:%%writefile cookies.txt
# Netscape HTTP Cookie File
.example.org	TRUE	/	TRUE	1767225600	session	{k}
--
source:!curl -b 'session={k}' https://x
--
source:!curl -b "session={k}; a=b" https://x
--
source:!curl -s -b session={k} https://x -o out.csv
--
source:!curl --cookie 'session={k}; theme=dark' https://x
--
source:!curl --cookie "sid={l}" https://x
--
source:%%bash
curl -L -b "sessionid={l}" https://x > y
--
source:subprocess.run(["curl", "-b", "session={l}", "https://x"])
--
source:!wget --header="Cookie: session={k}" https://x
--
source:def main(pw: str = typer.Option("{w}", "--password")): ...
--
source:x = typer.Option("{w}", "-p", "--password", help="x")
--
source:typer.Option("{k}", "--api-key", envvar="K")
--
source:def main(password: Annotated[str, typer.Option(help="x")] = "{w}"): ...
--
source:@click.option("-p", "--password", "pw", default="{w}")
--
source:parser.add_argument("-t", default="{k}", dest="token")
--
source:parser.add_argument("-P", dest="password", default="{w}")
--
source:parser.set_defaults(password="{w}", n=3)
--
clé_api = "{k}"
--
cle_api = "{k}"
--
text:mot de passe : {w}
--
text:Mot de passe : {w}
--
text:mot de passe = {w}
--
text:Passwort: {w}
--
text:Das Passwort lautet: {w}
--
text:Kennwort: {w}
--
text:contraseña: {w}
--
text:senha: {w}
--
text:wachtwoord: {w}
--
text:lösenord: {w}
--
text:lozinka: {w}
--
text:heslo: {w}
--
text:hasło: {w}
--
text:jelszó: {w}
--
text:salasana: {w}
--
text:parool: {w}
--
text:adgangskode: {w}
--
text:şifre: {w}
--
text:slaptažodis: {w}
--
text:kata sandi: {w}
--
text:mật khẩu: {w}
--
text:пароль: {w}
--
text:密码：{w}
--
text:パスワード: {w}
--
text:비밀번호: {w}
--
text:كلمة المرور: {w}
--
text:סיסמה: {w}
--
text:palavra-passe: {w}
--
text:palavra_passe = "{w}"
--
text:clave secreta: {k}
--
text:clave_secreta = "{k}"
--
chave_secreta = "{k}"
--
api_schluessel = "{k}"
--
api_schlüssel = "{k}"
--
clave_de_api = "{k}"
--
chave_de_api = "{k}"
--
chiave_api = "{k}"
--
cle_secrete = "{k}"
--
clé_secrète = "{k}"
--
ключ_api = "{k}"
--
geheimer_schluessel = "{k}"
--
zugangsdaten = {"user": "bob", "pass": "{w}"}
--
source:!helm upgrade x ./c --set db.password={w}
--
source:!helm upgrade x ./c --set db.user=bob,db.password={w}
--
source:!helm upgrade x ./c --set-string "db.password={w}"
--
source:%%bash
helm upgrade --install x ./c --set db.password={w} --wait
--
source:%%bash
helm upgrade x ./c \
  --set db.user=bob \
  --set db.password={w}
--
source:%%bash
helm install x --set auth.rootPassword={w},auth.user=bob
--
source:!helm install x --set postgresql.auth.postgresPassword={w}
--
parola = "{o}"
--
text:parola: {o}
--
text:le mot de passe est {o}
--
text:la contraseña es {o}
--
text:a senha é {o}
--
text:parolă: {o}
--
text:Schlüssel: {l}
--
text:CLE_API={k}
--
text:mnemonic: "abandon {m} accident"
--
seed_phrase = "abandon {m} accident"
""",
    "what a data scientist logs in with": r"""
text:my_project:
  target: dev
  outputs:
    dev:
      type: postgres
      host: localhost
      user: bob
      pass: {w}
      port: 5432
--
text:      type: snowflake
      account: ab12345.eu
      user: bob
      password: "{w}"
      private_key_passphrase: {w}
--
source:!airflow connections add pg --conn-login bob --conn-password {w} --conn-host h
--
source:!airflow connections add pg --conn-uri postgresql://bob:{w}@h/db
--
source:os.environ["AIRFLOW_CONN_PG"] = "postgres://bob:{w}@h:5432/db"
--
source:Connection(conn_id="pg", conn_type="postgres", login="bob", password="{w}")
--
source:spark.conf.set("fs.s3a.secret.key", "{k}")
--
source:spark.conf.set("fs.azure.account.key.acc.dfs.core.windows.net", "{k}")
--
source:SparkSession.builder.config("spark.hadoop.fs.s3a.secret.key", "{k}").getOrCreate()
--
source:df = spark.read.format("jdbc").option("user", "bob").option("password", "{w}").load()
--
text:spark.hadoop.fs.s3a.secret.key {k}
--
text:('spark.hadoop.fs.s3a.secret.key', '{k}')
--
source:s3 = boto3.client("s3", aws_access_key_id="x", aws_secret_access_key="{k}")
--
source:boto3.Session("AKX", "{l}")
--
source:conn = snowflake.connector.connect(user="bob", password="{w}", account="x")
--
source:from huggingface_hub import login; login("{l}")
--
source:login(token="{l}")
--
source:!huggingface-cli login --token {l}
--
source:HfApi(token="{l}")
--
source:!docker run -e PASSWORD={w} -e POSTGRES_USER=bob -p 5432:5432 postgres
--
source:!docker run -e "DB_PASS={w}" x
--
source:!docker build --build-arg GH_TOKEN={l} .
--
source:!kubectl create secret generic db --from-literal=password={w} --from-literal user={w}
--
text:  password:  {b}
  username:  Ym9i
kind: Secret
--
text:GITHUB_PAT={l}
OPENAI_KEY={l}
R_LIBS_USER=~/R
--
source:Sys.setenv(DB_PASSWORD = "{w}")
--
source:%%R
con <- dbConnect(RPostgres::Postgres(), user = "bob", password = "{w}")
--
source:url = "jdbc:postgresql://h:5432/db?user=bob&password={w}"
--
source:url = "jdbc:sqlserver://h:1433;databaseName=d;user=bob;password={w};"
--
source:url = "jdbc:oracle:thin:bob/{w}@h:1521/db"
--
source:cnxn = pyodbc.connect("DRIVER={ODBC Driver 17};SERVER=h;UID=bob;PWD={w}")
--
source:pyodbc.connect(f"DSN=x;Uid=bob;Pwd={w};")
--
text:Endpoint=sb://x.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey={k}=
--
text:DefaultEndpointsProtocol=https;AccountName=x;AccountKey={k}==;EndpointSuffix=core.windows.net
--
source:pd.read_sql("select 1", "postgresql+psycopg2://bob:{w}@h/db")
--
source:create_engine("mysql+pymysql://bob:{w}@h/db")
--
source:requests.get(u, auth=("bob", "{w}"))
--
source:requests.get(u, auth=HTTPDigestAuth("bob", "{w}"))
--
source:requests.post(u, data={"username": "bob", "password": "{w}"})
--
source:requests.get(u, headers={"X-API-KEY": "{k}"})
--
source:requests.get(u, headers={"apikey": "{k}", "x-rapidapi-key": "{k}"})
--
source:requests.get(u, params={"appid": "{l}"})
--
source:requests.get("https://api.openweathermap.org/data?q=Bern&appid={h}")
--
source:r = requests.get(f"https://api.x.org/v1?api_key={k}&series=GDP")
--
source:ssh.connect("h", username="bob", password="{w}")
--
source:pexpect.run("ssh h", events={"(?i)password": "{w}"})
--
source:child.expect("password:"); child.sendline("{w}")
--
text:h:5432:db:bob:{w}
--
text:variable "db_password" {
  default = "{w}"
}
--
text:db_password = "{w}"
--
text:TF_VAR_db_password={w}
--
source:!az login --service-principal --username x --password {w} --tenant t
--
source:!az storage account keys list --account-name x --account-key {l}
--
source:!gcloud auth activate --key-file=k.json && export CLOUDSDK_AUTH_ACCESS_TOKEN={l}
--
text:{"id": "x", "private_key": "-----BEGIN PRIVATE KEY-----\n{l}{l}\n-----END PRIVATE KEY-----\n"}
--
text:{"access_token": "{j}", "expires_in": 3600}
--
text:ConnectionError: HTTPSConnectionPool(host='x', port=443): url: /v1/data?token={k}&q=1
--
text:HTTPError: 401 Client Error: Unauthorized for url: https://api.x.org/v1?apikey={k}
--
text:HTTPError: 403 for url: https://x.blob.core.windows.net/c/f?sv=2022-11-02&sig={k}%3D
--
text:https://b.s3.amazonaws.com/k?X-Amz-Credential=AKX&X-Amz-Signature=9c1185a5c5e9fc54612808977ee8f548b2258d319c1185a5c5e9fc54612808977ee8f5{h}
--
text:(psycopg2.OperationalError) connection to "host=h user=bob password={w}" failed
--
text:Text(value='{l}', description='Token')
--
text:Password(description='Password:', value='{w}')
--
text:Password(value='{w}', description='Password:')
--
text:environ({'PATH': '/bin', 'DB_PASSWORD': '{w}', 'HF_TOKEN': '{l}'})
--
text:ALLUSERSPROFILE=C:\\ProgramData
DB_PASSWORD={w}
PATH=C:\\Windows
--
text:Name                           Value
----                           -----
DB_PASSWORD                    {w}
HF_TOKEN                       {l}
--
text:b'\x80\x04\x95}\x94(\x8c\x08password\x94\x8c\x09{w}\x94u.'
--
source:pickle.loads(b"\x80\x04\x8c\x08password\x94\x8c\x09{w}\x94.")
--
source:MongoClient("mongodb+srv://bob:{w}@c.mongodb.net/db")
--
source:MongoClient(host="h", username="bob", password="{w}")
--
source:redis.Redis(host="h", port=6379, password="{w}")
--
source:redis.from_url("redis://:{w}@h:6379/0")
--
source:psycopg2.connect("dbname=d user=bob password={w} host=h")
--
source:psycopg2.connect(dbname="d", user="bob", password="{w}")
--
source:pymysql.connect(host="h", user="bob", passwd="{w}", db="d")
--
source:pymysql.connect("h", "bob", "{o}", "d")
--
source:Elasticsearch("https://h:9200", basic_auth=("elastic", "{w}"))
--
source:Elasticsearch("https://h:9200", http_auth=("elastic", "{w}"))
--
source:Elasticsearch("https://h:9200", api_key=("id1", "{k}"))
--
source:server.login("bob@x.org", "{w}")
--
source:mlflow.set_tracking_uri("https://bob:{w}@mlflow.x.org")
--
source:os.environ["MLFLOW_TRACKING_PASSWORD"] = "{w}"
--
source:openai.api_key = "{l}"
--
source:client = OpenAI(api_key="{l}", base_url="http://x")
--
source:%env OPENAI_API_KEY {l}
--
source:%env OPENAI_API_KEY={l}
--
source:%set_env DB_PASSWORD {w}
--
text:env: DB_PASSWORD={w}
--
source:dagshub.auth.add_app_token("{l}")
--
source:wandb.login(key="{h40}")
--
source:!wandb login {h40}
--
source:comet_ml.init(api_key="{l}")
--
source:neptune.init_run(api_token="{l}")
--
source:ee.Authenticate(); credentials = ee.ServiceAccountCredentials("x", key_data="{l}")
--
source:cdsapi.Client(url="https://x", key="12345:{u}")
--
text:url: https://cds.climate.copernicus.eu/api/v2
key: 12345:{u}
--
source:fred = Fred(api_key="{h}")
--
source:quandl.ApiConfig.api_key = "{l}"
--
source:ds = TimeSeries(key="{l}", output_format="pandas")
--
source:gmaps = googlemaps.Client(key="{l}")
--
source:tweepy.OAuthHandler("{l}", "{l}")
--
source:tweepy.Client(bearer_token="{l}", consumer_key="{l}", consumer_secret="{l}")
--
source:auth.set_access_token("{l}", "{l}")
--
source:praw.Reddit(client_id="x", client_secret="{l}", user_agent="y")
--
source:spotipy.SpotifyClientCredentials("{h}", "{h}")
--
source:Github("{l}")
--
source:Github(auth=Auth.Token("{l}"))
--
source:gl = gitlab.Gitlab("https://x", private_token="{l}")
--
source:Minio("h:9000", access_key="{l}", secret_key="{l}")
--
source:fs = s3fs.S3FileSystem(key="AKX", secret="{k}")
--
source:pd.read_csv("s3://b/k", storage_options={"key": "AKX", "secret": "{k}"})
--
source:pd.read_parquet("abfs://c/f", storage_options={"account_name": "x", "account_key": "{k}"})
--
source:pd.read_csv("az://c/f", storage_options={"sas_token": "?sv=2022&sig={k}"})
--
source:BlobServiceClient(account_url="https://x", credential="{k}")
--
source:ClientSecretCredential("tenant", "client", "{l}")
--
source:ClientSecretCredential(tenant_id="t", client_id="c", client_secret="{k}")
--
source:AzureKeyCredential("{k}")
--
source:StorageSharedKeyCredential("x", "{l}")
--
source:paramiko.RSAKey.from_private_key_file("k", password="{w}")
--
source:zipfile.ZipFile("a.zip").extractall(pwd=b"{w}")
--
source:msoffcrypto.OfficeFile(f).load_key(password="{w}")
--
source:pikepdf.open("x.pdf", password="{w}")
--
source:PdfReader("x.pdf").decrypt("{w}")
--
source:keyring.set_password("sys", "bob", "{w}")
--
source:dbutils.secrets.put(scope="s", key="k", string_value="{l}")
--
source:st.secrets["db"]["password"] == "{w}"
--
source:%sql --connection_string "postgresql://bob:{w}@h/db"
--
source:%load_ext sql
%sql mysql://bob:{w}@h/db
--
source:!PGPASSWORD={w} psql -h h -U bob -c 'select 1'
--
source:!export PGPASSWORD='{w}'; psql -h h
--
source:!pip install --index-url https://__token__:{l}@gitlab.x.org/simple pkg
--
source:!git clone https://bob:{l}@github.com/x/y
--
source:!git clone https://oauth2:{l}@gitlab.com/x/y
--
source:!ngrok authtoken {l}
--
source:!ngrok config add-authtoken {l}
--
source:ngrok.set_auth_token("{l}")
--
source:!kaggle competitions download -c titanic --key {l}
--
source:!dvc remote modify myremote password {w}
--
source:!dvc remote modify --local myremote secret_access_key {l}
--
source:!mc alias set minio http://h:9000 minio {l}
--
source:!aws configure set aws_secret_access_key {k} --profile x
--
source:!rclone config create x s3 access_key_id=AKX secret_access_key={k}
--
source:!jupyter lab --NotebookApp.token={l}
--
text:    http://127.0.0.1:8888/lab?token={h40}
--
source:!influx -token {l}
--
source:InfluxDBClient(url="x", token="{l}", org="y")
--
source:session = Session(); session.headers.update({"Authorization": "Token {l}"})
--
source:session.headers["X-Auth-Token"] = "{l}"
--
source:client = weaviate.connect_to_wcs("x", auth_credentials=AuthApiKey("{l}"))
--
source:login_data = dict(username="bob", pass_="{w}")
--
source:config = configparser.ConfigParser(); config.read_string("[db]\npassword={w}")
--
text:DatabricksError: token='{l}' is invalid
--
text:Config: host=https://x.azuredatabricks.net, token={l}, auth_type=pat
--
text:{"auths": {"r.example.org": {"auth": "{b}"}}}
--
text:  auth: {b}
--
text:client-certificate-data: LS0tLS1
client-key-data: {l}
--
text:users:
- name: bob
  user:
    token: {l}
--
text:sslpassword={w}
--
text:<Parameter name='password' value='{w}'>
--
text:Variable name: DB_PASSWORD, value: {w}
--
text:Secret value: {l}
--
text:secret_value = "{l}"
--
source:w3 = Account.from_key("0x{h}{h}")
--
text:private key: 0x{h}{h}
""",
}

WHOLE = """
token_count = 512
--
password_length=12
--
max_tokens
--
n_tokens: 1200
--
{"max_tokens": 4096, "n_tokens": 12, "token_count": 77}
--
key=lambda row: row["name"]
--
sorted(rows, key=lambda r: r.key)
--
rows.sort(key=itemgetter("password_reset"))
--
primary_key = "customer_id_2024"
--
tokenizer = AutoTokenizer.from_pretrained("bert-base-uncased-v2")
--
secret santa draws Bob for Alice this year, 24 names
--
the secret to good results is patience, more than 3 epochs
--
def f():
    pass
x = 1
--
    pass  # nothing to do
--
class PasswordReset:
    pass
--
   token  count  share
0    the     12   0.31
1    cat      3   0.08
--
 token  count
   the     12
   cat      3
--
 token  count share
covid19     12   0.1
  cat42      3   0.2
--
    tokens label
0  the cat   pos
1  a dog12   neg
--
<table><tr><th>token</th><th>n</th></tr><tr><td>covid19</td><td>12</td></tr></table>
--
<tr><th>user</th><th>password</th><th>created</th></tr>
--
<tr><td>password</td><td>string</td></tr>
--
<li>password</li><li>username</li>
--
<option>token</option><option>cookie</option>
--
<label>Password</label><input type="password" name="password">
--
<th>password</th>
<th>age</th>
--
<p>Enter your password</p><p>Then press Enter</p>
--
<b>key</b>: value
--
<span class="k">def</span> <span class="nf">token</span><span class="p">(</span>
--
<span class="n">token</span> <span class="o">=</span> <span class="n">tokens</span>
--
<div class="token keyword">import</div>
--
**key**: the name of the column
--
**Token**: a word or a part of one
--
**Password**: required
--
INSERT INTO users (name, password_reset, age) VALUES ('bob', 'yes', 12)
--
INSERT INTO tokens (word, n) VALUES ('the', 12), ('cat', 3)
--
INSERT INTO t (key, value) VALUES ('colour', 'red')
--
INSERT INTO users (name, password) VALUES (%s, %s)
--
INSERT INTO users (name, password) VALUES (?, ?)
--
INSERT INTO users (name, password) VALUES (:name, :password)
--
cur.execute("INSERT INTO users (name, password) VALUES (%s, %s)", (name, pw))
--
INSERT INTO users (name, password) SELECT name, password FROM old
--
CREATE TABLE users (name TEXT, password TEXT NOT NULL, token VARCHAR(40))
--
CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT, FOREIGN KEY (a) REFERENCES b (c))
--
SELECT key, token FROM words WHERE token = 'cat'
--
SELECT name, password FROM users
--
each user is identified by name, each row identified by id42
--
rows are identified by 'customer_id' and 'date'
--
- name: COLOUR
  value: red
--
- name: tokens
  value: 512
--
{"name": "key", "value": "colour"}
--
{"name": "password_reset", "value": "yes"}
--
{"name": "DB_PASSWORD", "valueFrom": {"secretKeyRef": {"name": "db", "key": "password"}}}
--
- name: DB_PASSWORD
  valueFrom:
    secretKeyRef:
      name: db-creds
      key: password
--
- name: password
  type: string
  description: what you log in with
--
apiVersion: v1
kind: ConfigMap
data:
  colour: red
  n: "12"
--
kind: SecretStore
metadata:
  name: s1
data:
  colour: red
--
<property name="maxTokens" value="512"/>
--
<property name="key" value="colour"/>
--
<name>fs.defaultFS</name>
<value>hdfs://namenode:8020</value>
--
<key>CFBundleName</key>
<string>Notebook</string>
--
parser.add_argument("--token", help="what to log in with")
--
parser.add_argument("--max-tokens", type=int, default=512)
--
parser.add_argument("--tokenizer", default="bert-base-uncased")
--
parser.add_argument("--pad-token", default="[PAD]")
--
parser.add_argument("--key", default="customer_id")
--
parser.add_argument("--sort-key", default="date_2024")
--
parser.add_argument("--password", default=None, help="asked for when it is not given")
--
parser.add_argument("--password", default=os.environ.get("PW"))
--
parser.add_argument("--token", action="store_true"); parser.add_argument("--name", default="bob42")
--
@click.option("--password", prompt=True, hide_input=True)
--
@click.option("--token-count", default=3)
--
@click.option("--password", prompt=True)
@click.option("--name", default="bob42")
--
password: str = Field(min_length=8, description="At least 8 characters")
--
password = models.CharField(max_length=128)
--
password = Column(String(128), nullable=False)
--
token = Column("token", String(64))
--
password = st.text_input("Password", type="password")
--
password = widgets.Password(description="Password:")
--
password = Prompt.ask("Password", password=True)
--
  --max-tokens N  how many (default: 512)
--
  --password TEXT  the password [required]
--
  --token-file PATH  [default: ~/.token]
--
[model]
tokens =
    512
    1024
--
keys =
    alpha
    beta
--
password:
  type: string
  minLength: 8
--
token:
  word: the
  n: 12
--
tokens:
  - the
  - cat
--
secrets:
  - name: db
--
secrets:
  db_password:
    file: ./db_password.txt
--
keys:
  left: ArrowLeft
  right: ArrowRight
--
localhost:5432:ready
--
x[1:2:3], x[::2], a:b:c
--
12:30:45:100:200
--
10.0.0.1:5432 is up
--
git clone -b main https://github.com/a/b
--
!cp -p a b
--
!mkdir -p data/raw && ls -la
--
!python -m http.server -p 8000
--
!docker run -p 8080:80 -w /app image
--
!ssh -p 2222 bob@example.org
--
!nc -w 3 example.org 80
--
!curl -b cookies.txt -c cookies.txt https://example.org
--
!curl -u bob https://example.org
--
!unzip -p archive.zip file.csv
--
!openssl rand -base64 32
--
!openssl x509 -in cert.pem -noout
--
!htpasswd -c file bob
--
!ssh-keygen -t ed25519 -N "" -f k
--
!redis-cli -h localhost -a $PW ping
--
!useradd -m -s /bin/bash bob
--
!net start postgresql
--
!setx PATH "C:\\tools"
--
!set -x
--
!gh auth login
--
!az login --use-device-code
--
!echo done | tee log.txt
--
vault login -method=oidc
--
poetry config virtualenvs.in-project true
--
grep -p password file
--
Get-Content -Path secret.txt
--
password -> str
--
def check(password: str) -> bool:
--
def check(token: str, n: int = 3) -> str:
--
token <- tokens[i]
--
token <- "word"
--
key <- "id"
--
password <- readline("Password: ")
--
var token string
--
var password string
--
char password[64];
--
let token: &str = next();
--
[key] => colour
--
[tokens] => 512
--
input_value='abc', input_type=str
--
age
  Input should be a valid integer [type=int_parsing, input_value='old', input_type=str]
--
cookies.set("theme", "dark")
--
cookies["theme"] = "dark"
--
cookies = dict(theme="dark")
--
s.auth = HTTPBasicAuth(user, password)
--
s.auth = user, password
--
Fernet(key)
--
hmac.new(key, msg, "sha256")
--
jwt.decode(token, key, algorithms=["HS256"])
--
jwt.encode({"a": 1}, secret, algorithm="HS256")
--
Fernet.generate_key()
--
clave = "nombre"
--
clave: valor
--
la clave del problema es simple
--
parola = "casa"
--
la parola chiave è gatto
--
das Geheimnis ist gelüftet
--
user: bob, password: required
--
username: bob, password: None
--
user: bob, token: the
--
password for bob is required
--
Password for bob:
--
[sudo] password for bob:
--
the password of the user is checked twice
--
password for the database
--
Invalid password for user bob
--
the token of the day is cat
--
Wrong password. Try again
--
your password: must be long
--
psk = "QPSK"
--
modulation = "psk16"
--
commit 5f2c9e1a0b3d4c5e6f708192a3b4c5d6e7f80912
--
Author: Bob <bob@example.org>
Date:   Mon Jan 15 2024
--
run 550e8400-e29b-41d4-a716-446655440000 took 12.5 s
--
{"id": "550e8400-e29b-41d4-a716-446655440000", "key": "user_id"}
--
sha256: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
--
etag = "d41d8cd98f00b204e9800998ecf8427e"
--
<img src="data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk">
--
3.141592653589793 2.718281828459045 1e-12 0x1f
--
[12, 34, 5678901234567890]
--
x_train shape (60000, 28, 28) y_train shape (60000,)
--
Index(['user', 'password_reset', 'token_count'], dtype='object')
--
 #   Column    Non-Null Count  Dtype
---  ------    --------------  -----
 0   user      2 non-null      object
 1   password  2 non-null      object
--
df.merge(other, left_on="key", right_on="token", how="left")
--
df.rename(columns={"pw": "power", "key": "id"})
--
for token, count in Counter(tokens).most_common(10):
    print(token, count)
--
print(f"{token}: {count}")
--
passed=12 failed=3 skipped=1
--
pass rate: 0.93
--
passing: 12, passes: 3
--
KeyError: 'token'
--
KeyError: 'password'
--
ValueError: password must not be empty
--
TypeError: connect() missing 1 required positional argument: 'password'
--
connect(*, user: str, password: str = None, host: str = "localhost")
--
help(connect): password is what you log in with
--
[masked: password] is what stands here
--
os.environ["HOME"] = "/home/bob"
--
%env HOME=/home/bob
--
export PATH=/usr/bin:/bin
--
monkey_patch, keyboard, hotkeys, keynote, turkey, donkey
--
compass, bypass, trespass, surpass, passport, passenger, passive
--
cookiecutter, cookie dough, cookies and cream
--
author, authority, authentic, coauthor
--
sign in, log in, login page, connect the dots, basic facts, bearer of news
--
le mot de passe est requis
--
Le mot de passe doit contenir 8 caractères
--
mot de passe : obligatoire
--
la clave es el nombre
--
parola: substantivo
--
!curl --cookie jar.txt https://example.org
--
!curl -b theme=dark https://example.org
--
.example.org	TRUE	/	TRUE	1767225600	theme	dark
--
chr1	TRUE	/	FALSE	0	gene	ACGTACGTACGT
--
typer.Option("data", "--folder")
--
typer.Option(..., "--password")
--
typer.Option(None, "--password", prompt=True)
--
Schlüssel: Name
--
chiave = "nome"
--
jeton = "mot"
--
jetons = tokenizer.encode(texte)
--
sandi beach
--
palavra = "casa"
--
cle = "id"
--
clé primaire: id
--
helm upgrade x ./c --set image.tag=1.2.3 --set replicas=3
--
commit 9c1185a5c5e9fc54612808977ee8f548b2258d31
--
sha256:9c1185a5c5e9fc54612808977ee8f548b2258d319c1185a5c5e9fc5461280897
--
model hash: 9c1185a5c5e9fc54612808977ee8f548
--
doi:10.1038/s41586-020-2649-2
--
https://doi.org/10.1103/PhysRevLett.116.061102
--
arXiv:2301.12345v2 [cs.LG]
--
ISBN 978-3-16-148410-0
--
run_id = "9c1185a5c5e9fc54612808977ee8f548"
--
experiment_id: 550e8400-e29b-41d4-a716-446655440000
--
seq = "ATGGCCATTGTAATGGGCCGCTGAAAGGGTGCCCGATAGATGGCCATTGTAATGGGCCGC"
--
>sp|P69905|HBA_HUMAN Hemoglobin subunit alpha
MVLSPADKTNVKAAWGKVGAHAGEYGAEALERMFLSFPTTKTYFPHFDLSHGSAQVKGHGKKVADALTNAVAHVDDMPNA
--
@SRR001666.1 071112_SLXA-EAS1_s_7:5:1:817:345 length=36
GGGTGATGGCCGCTGCCGATGGCGTCAAATCCCACC
+
IIIIIIIIIIIIIIIIIIIIIIIIIIIIII9IG9IC
--
smiles = "CC(C)Cc1ccc(cc1)[C@@H](C)C(=O)O"
--
InChI=1S/C9H8O4/c1-6(10)13-8-5-3-2-4-7(8)9(11)12/h2-5H,1H3,(H,11,12)
--
InChIKey: BSYNRYMUTXBXSQ-UHFFFAOYSA-N
--
inchi_key = "BSYNRYMUTXBXSQ-UHFFFAOYSA-N"
--
model = "meta-llama/Llama-3.1-8B-Instruct"
--
AutoModel.from_pretrained("sentence-transformers/all-MiniLM-L6-v2")
--
tokenizer = AutoTokenizer.from_pretrained("bert-base-uncased", use_fast=True)
--
{'input_ids': [101, 7592, 102], 'token_type_ids': [0, 0, 0], 'attention_mask': [1, 1, 1]}
--
special_tokens_map: {'unk_token': '[UNK]', 'sep_token': '[SEP]', 'pad_token': '[PAD]'}
--
tokenizer.add_special_tokens({"pad_token": "<|endoftext|>"})
--
df.set_index("primary_key").join(other, on="foreign_key")
--
dict_keys(['user', 'token', 'key', 'password_hash', 'session_id'])
--
Index(['session_id', 'user_id', 'auth_method', 'token_length'], dtype='object')
--
df["session_id"].nunique()
--
 session_id  clicks
 2024010112      12
 2024010113      14
--
df["pass_rate"] = df.passed / df.total
--
      pass_rate  key_rate
2020  0.93       0.12
--
3.14159265358979323846264338327950288419716939937510582097494459
--
123456789012345678901234567890123456789012345678901234567890
--
ISIN US0378331005, IBAN-like DE89370400440532013000
--
gene ENSG00000139618, transcript ENST00000380152, protein ENSP00000369497, rs12345678
--
chr17:43044295-43125483
--
PDB 1A3N, UniProt P68871, GO:0005833, KEGG hsa:3043
--
x = b"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kg=="
--
secretion = 12.5; secretary = "Ann"; secrets_of_life = 42
--
passenger_id: 123456
--
keypoints = np.zeros((17, 3)); keyframe = 12; monkey = "capuchin7"
--
authors: A. Smith, B. Jones; author_id: 7103219584
--
DataFrame(columns=["author", "key", "DOI10.1000/xyz123"])
--
@article{smith2020deep, author={Smith, A}, key={smith2020}, doi={10.1000/xyz123}}
--
torch.Size([32, 128, 768]) torch.float32 cuda:0
--
<matplotlib.collections.PathCollection at 0x7f3c8c1b2d90>
--
Tensor("dense_1/BiasAdd:0", shape=(None, 10), dtype=float32)
--
checkpoint-12000/model-00001-of-00003.safetensors 4.9G
--
epoch 12/100 loss=0.0123 val_loss=0.0345 acc=0.9876 lr=1.0e-04
--
git+https://github.com/user/repo.git@9c1185a5c5e9fc54612808977ee8f548b2258d31
--
numpy-2.1.3-cp312-cp312-manylinux_2_17_x86_64.manylinux2014_x86_64.whl
--
scikit_learn==1.5.2 --hash=sha256:b0768ad641981f5d3a198430a1d31c3e044ed2e8a6f22166b4d546a5116d7908
--
geohash u4pruydqqvj, h3 8928308280fffff, plus code 8FVC9G8F+6X
--
WKT: POINT(8.5417 47.3769); POLYGON((0 0, 0 1, 1 1, 0 0))
--
POSCAR Si8 5.43 5.43 5.43; space group Fd-3m (227)
--
session: 12 of 20; session 3 took 4.5 s
--
cookie_count = 12; cookies per user: 3.5
--
signature = inspect.signature(f); signature: (x, y=3)
--
signature: SBS5 0.34, SBS40 0.21, SBS2 0.11
--
mutational_signature = "SBS7a"
--
auth = "author"; cred = "credit"; credibility = 0.7
--
otp = "one time"; pin = 12; pins = [1, 2]
--
appid = 730; params = {"appid": 730, "filters": "price_overview"}
--
key = "temperature_2m"; key: str = "pressure_msl"
--
data[key] = value; for key, value in d.items(): print(key, value)
--
JSON key "abc123" missing
--
AES-256-GCM, RSA-2048, sha256, ed25519
--
s3://bucket/key/with/prefix/part-00000-9c1185a5-c5e9-fc54-6128-08977ee8f548.snappy.parquet
--
dvc.lock: md5: 9c1185a5c5e9fc54612808977ee8f548.dir
--
etag: "33a64df551425fcc55e4d42a148795d9f25f89d4"
--
orcid 0000-0002-1825-0097
--
token_ids = [15496, 995]; token_embeddings.shape = (1, 2, 768)
--
next_page_token: CAUQAA
--
mlflow run 9c1185a5c5e9fc54612808977ee8f548 finished
--
FINGERPRINT = "1010011010101010101110101010101010101"
--
Kcat/Km = 1.2e6 M-1 s-1; pKa = 4.76; passband 400-700 nm
"""
"""What only looks like a secret, or has the form of one and holds none."""


def forms() -> list[tuple[str, str]]:
    """Return kind and form of every probe."""
    return [
        (kind, form.strip("\n"))
        for kind, block in SECRETS.items()
        for form in block.split("\n--\n")
    ]


def probes(form: str) -> list[tuple[str, str, tuple[str, ...]]]:
    """Return how the probes of a form are read, ``text`` or ``source``, each text, its secrets."""
    begin, colon, rest = form.partition(":")
    ways = (begin,) if colon and begin in ("text", "source") else ("text", "source")
    template = rest if len(ways) == 1 else form
    held = [name for name in VALUES if f"{{{name}}}" in template]
    made = []
    for index in range(max([len(VALUES[name]) for name in held], default=1)):
        text, secrets = template, []
        for name in held:
            value = VALUES[name][index % len(VALUES[name])]
            text = text.replace(f"{{{name}}}", value)
            secrets.append(value)
        made += [(way, text, tuple(secrets)) for way in ways]
    return made
