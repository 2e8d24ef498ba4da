"""Probes of masking: forms in which secrets stand in notebooks, and what only looks like them.

`{w}` stands for a password, `{k}` for a key, `{l}` for a long one, `{b}` for base64 of a password,
`{j}` for a JWT; each form is tried with several values. A form that begins with ``source:`` is a
cell, with ``text:`` an output; the others are tried as both. Forms are parted by lines of ``--``.
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
