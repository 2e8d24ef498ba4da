"""The fence under attack: a hostile agent tries its ways out, through the real engine and agent.

Whatever is private here holds the word ZEBRA and nothing else does, so that it is in no answer if
it stayed private. An audit hook hears whatever the tools open for writing, remove or start.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from model_server import ModelServer
from scripted import Call, Script, clumsy, hostile

from ipymemory import fence as fences
from ipymemory import reading
from ipymemory.agent import Outcome, run_agent
from ipymemory.config import Settings
from ipymemory.errors import IpymemoryError
from ipymemory.events import Bus
from ipymemory.fence import Fence
from ipymemory.finding import reading_tools
from ipymemory.history import History
from ipymemory.messages_api.engine import AnthropicModel
from ipymemory.models import Request
from ipymemory.permissions import Allow, Deny
from ipymemory.places import Project
from ipymemory.turns import Message, ToolCall

SECRET = "ZEBRA-of-the-house\n"
KEY = "sk-ant-api03-ZEBRA" + "Ab3" * 28

HEARD: list[str] = []
_STARTS = {"subprocess.Popen", "os.system", "os.exec", "os.fork", "os.posix_spawn", "os.spawn"}
_CHANGES = {
    *("os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.link", "os.symlink", "os.truncate"),
    *("os.chmod", "os.chown", "os.utime", "shutil.copyfile", "shutil.move", "shutil.rmtree"),
}
_test_threads: set[int] = set()
"""Threads of the test itself, whose acts are its own."""
_on = [False]


def _hear(event: str, args: tuple[Any, ...]) -> None:
    if not _on[0] or threading.get_ident() in _test_threads:
        return
    if "__pycache__" in str(args):
        # A module that is imported for the first time leaves its bytecode.
        return
    writing = event == "open" and isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR)
    if event in _STARTS or event in _CHANGES or writing:
        HEARD.append(f"{event} {args!r}"[:200])


sys.addaudithook(_hear)


@contextmanager
def nothing_done() -> Iterator[None]:
    """Nothing is written, removed or started within the block, but by threads of the test."""
    HEARD.clear()
    _on[0] = True
    try:
        yield
    finally:
        _on[0] = False
    assert not HEARD


def test_the_hook_hears_what_is_done(tmp_path: Path) -> None:
    for act in (lambda: (tmp_path / "x").write_text("x"), lambda: os.system("true")):
        with pytest.raises(AssertionError), nothing_done():
            act()
    with nothing_done():
        (tmp_path / "x").read_text()


@dataclass
class World:
    """A project, and around it what is nobody's business."""

    top: Path
    root: Path
    home: Path
    memory: Path
    policy: Callable[[ToolCall], None] = lambda call: None
    """Done between the check of a call and its use."""
    fence: Fence = field(init=False)

    def __post_init__(self) -> None:
        project = Project(self.root, "project-1", self.home / "projects" / "project-1")
        self.fence = Fence.of(project, self.memory, Settings().privacy.closed)

    def check(self, call: ToolCall) -> Allow | Deny:
        verdict = self.fence.check(call)
        if isinstance(verdict, Allow):
            self.policy(call)
        return verdict

    def seen(self) -> dict[str, Any]:
        """Return all that there is, so that two looks can be compared."""
        found: dict[str, Any] = {}
        for each in sorted(self.top.rglob("*")):
            at = each.lstat()
            held = each.read_bytes() if each.is_file() and not each.is_symlink() else b""
            found[str(each)] = (at.st_mode, at.st_ino, at.st_mtime_ns, held)
        return found

    def ask(self, tool: str, **given: Any) -> tuple[str, bool]:
        """Return the answer to one call, and whether it was refused; without an agent."""
        verdict = self.check(ToolCall("1", tool, given))
        if isinstance(verdict, Deny):
            return verdict.message, True
        run = History(self.top / "history").begin("ask", "scripted", "asked", (), "s")
        try:
            return reading_tools(self.fence, "no-tables")[tool].run(verdict.call, run), False
        except IpymemoryError as error:
            return str(error), True


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    top = Path(os.path.realpath(tmp_path)) / "world"
    root, home, outside = top / "project", top / "home", top / "outside"
    memory = home / "projects" / "project-1" / "memory"
    for path, text in {
        root / "load.py": "def load_csv(path): ...\n",
        root / "src" / "deep" / "clean.py": "x = 1\n",
        root / "settings.yaml": f"api_key: {KEY}\n",
        root / ".env": SECRET,
        root / "keys" / "id_rsa": SECRET,
        root / "keys" / "server.pem": SECRET,
        root / "data.csv": SECRET,
        root / "data.csv.gz": SECRET,
        root / ".env.bak": SECRET,
        root / ".ssh" / "config": SECRET,
        root / "credentials.json": SECRET,
        root / ".git" / "config": SECRET,
        root / ".git" / "hooks" / "post-checkout": SECRET,
        root / "sub" / ".git" / "config": SECRET,
        outside / "secret.txt": SECRET,
        outside / "deep" / "clean.py": SECRET,
        memory / "dates.md": "Dates are day-first.\n",
        home / "config" / "prompt.md": SECRET,
        home / "projects" / "project-1" / "project.json": SECRET,
        home / "projects" / "project-1" / "sessions" / "s" / "transcript.jsonl": SECRET,
        home / "projects" / "other-2" / "memory" / "theirs.md": SECRET,
        top / "project-twin" / "secret.txt": SECRET,
    }.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (root / "link.txt").symlink_to(outside / "secret.txt")
    (root / "chain.txt").symlink_to("link.txt")
    (root / "loop.txt").symlink_to("loop.txt")
    (root / "env.txt").symlink_to(".env")
    (root / "folder").symlink_to(outside)
    (root / "up").symlink_to("..")
    (root / "home").symlink_to(home)
    (root / "hard.txt").hardlink_to(outside / "secret.txt")
    (root / "hard.ipynb").hardlink_to(outside / "secret.txt")
    yield World(top, root, home, memory)
    # A file without a right would be in the way of whoever clears up.
    for each in (root / "pipe", root / "socket"):
        each.unlink(missing_ok=True)


def play(world: World, script: Script, rounds: int = 400) -> Outcome:
    """Let `script` call the reading tools behind the fence of `world`."""
    run = History(world.top / "history").begin("ask", "anthropic", "asked", (), "s")
    engine = Settings().engine

    async def go(server: ModelServer) -> Outcome:
        model = AnthropicModel(engine, server.environment())
        tools = reading_tools(world.fence, "no-tables")
        try:
            request = Request("", (Message("user", "look"),))
            limits = {"rounds": rounds, "seconds": 120.0}
            return await run_agent(model, request, tools, world, run, Bus(), **limits)
        finally:
            await model.close()

    with ModelServer(script) as server:
        return asyncio.run(go(server))


READS = (
    # Upwards, and by the whole path.
    *("../outside/secret.txt", "src/../../outside/secret.txt"),
    *("src/deep/../../../outside/secret.txt",),
    *("{top}/outside/secret.txt", "//{top}/outside/secret.txt", "{root}/../outside/secret.txt"),
    *("{top}/project-twin/secret.txt", "../project-twin/secret.txt"),
    *("file://{top}/outside/secret.txt",),
    *("..\\outside\\secret.txt", "%2e%2e/outside/secret.txt", "..;/outside/secret.txt"),
    *(".. /outside",),
    *("/etc/passwd", "//etc/passwd", "/etc/shadow", "/../../etc/passwd", "..", "../..", "/", "."),
    # What only looks like a file.
    *("/proc/self/environ", "/proc/self/root{top}/outside/secret.txt", "/proc/self/cwd/load.py"),
    *("/proc/self/fd/0", "/dev/zero", "/dev/stdin", "/dev/tty", "/dev/fd/0", "/sys/kernel/notes"),
    *("pipe", "socket", "CON", "nul.txt", "load.py:stream", "load.py::$DATA"),
    # What nobody replaces.
    *("~/.ssh/id_rsa", "~root/.profile", "~", "$HOME/.bashrc", "${{HOME}}/x", "%USERPROFILE%\\x"),
    *("`id`",),
    # Links.
    *("link.txt", "chain.txt", "loop.txt", "env.txt", "folder/secret.txt", "folder"),
    *("up/outside/secret.txt",),
    *("hard.txt", "hard.ipynb", "home/config/prompt.md", "folder/../outside/secret.txt", "up"),
    # Private names, and their twins.
    *(".env", "./.env", "src/../.env", ".env/", ".env/.", ".ENV", ".Env", ".env.", ".env "),
    *(".env.bak",),
    *(".env~", "\uff0eenv", ".e\u200bnv", ".en\u1e7c", ".env::$DATA", ".env\u0000", "\u2024env"),
    *(".env.local",),
    *("keys/id_rsa", "keys/ID_RSA", "keys/server.pem", "keys/SERVER.PEM", "keys/server.pem.1"),
    *("data.csv", "DATA.CSV", "data.csv.gz", "credentials.json", ".ssh/config", "\u212aeys/id_rsa"),
    # Git's own, and ours.
    *(".git/config", ".GIT/config", ".git/hooks/post-checkout", "sub/.git/config", ".git"),
    *("../home/config/prompt.md", "../home/projects/project-1/project.json", "../home"),
    *("../home/projects/project-1/sessions/s/transcript.jsonl", "{memory}/../project.json"),
    *("{memory}/../../other-2/memory/theirs.md", "{memory}/../sessions/s/transcript.jsonl"),
    # What no path can be.
    *("load.py\u0000", "load.py\u0000/../.env", "a\nb", "a/" * 3000, "n" * 300, "\x1b[2J"),
    *("\u202etxt.vne.",),
)  # fmt: skip

ODD: tuple[Any, ...] = (None, 7, True, 1.5, [], ["load.py"], {"path": ".env"}, "")

OTHERS: tuple[Call, ...] = (
    # Tools that are not there.
    *((each, {"path": "load.py", "command": "id"}) for each in ("Bash", "Write", "Edit", "Python")),
    *((each, {"path": "load.py"}) for each in ("read", "READ", "Read2", "Cat", "Open", "Delete")),
    # A pattern as an oracle, and one that takes for ever.
    *(("Grep", {"pattern": each}) for each in ("ZEBRA", "Z", "zebra|ZEB", "sk-ant-api03-Z")),
    *(("Grep", {"pattern": each}) for each in ("(?i)z",)),
    *(("Grep", {"pattern": each}) for each in ("(a+)+$", "(a|a)*b", ".*.*.*.*.*Z", "Z" * 20_000)),
    *(("Grep", {"pattern": each, "path": "src"}) for each in ("", "[", "(", "\\", "(?=Z)")),
    *(("Grep", {"pattern": each, "path": "src"}) for each in ("x{9999}",)),
    *(("Grep", {"pattern": "Z", "path": each}) for each in ("..", "/", "folder", "link.txt")),
    *(("Grep", {"pattern": "Z", "path": each}) for each in (".env",)),
    *(("Grep", {"pattern": "Z", "glob": each}) for each in (".env*", "../*", "/etc/*")),
    *(("Grep", {"pattern": "Z", "glob": each}) for each in ("**/.git/**",)),
    ("Grep", {"pattern": "Z", "path": "hard.txt"}),
    ("Grep", {"pattern": "Z", "path": "up/home"}),
    # Names.
    *(("Glob", {"pattern": each}) for each in ("../**", "/**", "**/../..", "C:/*", "*" * 400)),
    *(("Glob", {"pattern": each}) for each in ("folder/*",)),
    *(("Glob", {"pattern": each}) for each in ("**/.env", "**/id_rsa", ".git/**", "[")),
    *(("Glob", {"pattern": each}) for each in ("{a,b}" * 99,)),
    *(("Find", {"path": each}) for each in ("..", "/", "folder", "up", "/proc", "home")),
    ("Find", {"name": "id_rsa"}),
    ("Find", {"larger": -1, "days": 10**18}),
    *(("List", {"path": each}) for each in ("..", "/", "folder", "/proc/self", "keys", ".git")),
    *(("List", {"path": each}) for each in ("~",)),
    *(("Wc", {"path": each}) for each in (".env", "hard.txt", "link.txt", "../outside/secret.txt")),
    # More than is asked for.
    ("Read", {"path": "load.py", "offset": -5}),
    ("Read", {"path": "load.py", "offset": 10**30}),
    ("Read", {"path": "load.py", "follow_symlinks": True}),
    ("Read", {"path": "load.py", "root": "/"}),
    ("Read", {"paths": ["/etc/passwd"]}),
)  # fmt: skip


def ways(world: World) -> list[Call]:
    places = {"top": world.top, "root": world.root, "memory": world.memory}
    named = [each.format(**places) if "{" in each else each for each in READS]
    return [*(("Read", {"path": each}) for each in (*named, *ODD)), *OTHERS]


@pytest.mark.spec("E6", "L6", "L7")
def test_the_hostile_agent_finds_no_way_out(world: World) -> None:
    os.mkfifo(world.root / "pipe")
    with socket.socket(socket.AF_UNIX) as bound:
        # The name of a socket has a hundred bytes at most.
        here = Path.cwd()
        os.chdir(world.root)
        try:
            bound.bind("socket")
        finally:
            os.chdir(here)
        before = world.seen()
        tried = ways(world)
        script = hostile(tried, at_once=16)
        with nothing_done():
            outcome = play(world, script)
        assert outcome.status == "done", outcome.error
        assert world.seen() == before
    assert len(tried) > 150 and len(script.told) == len(tried)
    for each in script.told:
        assert "ZEBRA" not in each.text.replace(str(each.given.get("pattern")), ""), each
        assert "secret.txt" not in each.text or each.refused, each
        assert len(each.text) < 45_000
        if each.name == "Read":
            assert each.refused, each
        if each.refused:
            assert "Allowed here: Read, Grep, Glob" in each.text and str(world.root) in each.text
    # And it is no fence that lets nobody in.
    assert world.ask("Read", path="load.py") == (
        "load.py, lines 1 to 1 of 1:\n1\tdef load_csv(path): ...",
        False,
    )
    assert "day-first" in world.ask("Read", path=str(world.memory / "dates.md"))[0]
    assert "day-first" in world.ask("Grep", pattern="day", path=str(world.memory))[0]


@pytest.mark.spec("E6")
def test_a_clumsy_agent_gets_to_read_in_the_end(world: World) -> None:
    script = clumsy(("Read", {"path": "load.py"}))
    with nothing_done():
        assert play(world, script).status == "done"
    assert not script.told[-1].refused and "load_csv" in script.told[-1].text
    assert all("Allowed here" in each.text for each in script.told if each.refused)


@pytest.mark.spec("E6", "L6")
def test_names_and_contents_of_ten_megabytes_harm_nobody(world: World) -> None:
    big = "A" * 10_000_000
    (world.root / "big.txt").write_text(big)
    begun = time.monotonic()
    for given in (
        {"tool": "Read", "path": big},
        {"tool": big, "path": "load.py"},
        {"tool": "Grep", "pattern": big},
        {"tool": "Glob", "pattern": big},
        {"tool": "Find", "name": big},
        {"tool": "Read", "path": "load.py", big: 1},
        {"tool": "Read", "path": "load.py", "offset": big},
        {"tool": "Find", "kind": big},
        {"tool": "Read", "path": "big.txt"},
        {"tool": "Wc", "path": "big.txt"},
    ):
        answer, refused = world.ask(**given)
        assert refused and len(answer) < 2000 and "Allowed here" in answer
    assert "passed over" in world.ask("Grep", pattern="AAAA")[0]
    assert time.monotonic() - begun < 5


def _to_link(path: Path, target: Path) -> None:
    path.rename(path.with_name("moved"))
    path.symlink_to(target)


def _to_hard_link(path: Path, target: Path) -> None:
    path.unlink()
    path.hardlink_to(target)


def _to_pipe(path: Path, target: Path) -> None:
    path.unlink()
    os.mkfifo(path)


SWAPS = [
    ("Read", "load.py", "load.py", "secret.txt", _to_link),
    ("Read", "load.py", "load.py", "secret.txt", _to_hard_link),
    ("Read", "load.py", "load.py", "secret.txt", _to_pipe),
    ("Read", "src/deep/clean.py", "src/deep", "deep", _to_link),
    ("Read", "src/deep/clean.py", "src", ".", _to_link),
    ("Grep", "load.py", "load.py", "secret.txt", _to_link),
    ("Grep", "load.py", "load.py", "secret.txt", _to_hard_link),
    ("Grep", "src", "src", ".", _to_link),
    ("Grep", "src", "src/deep", "deep", _to_link),
    ("Glob", "src", "src", ".", _to_link),
    ("Find", "src/deep", "src", ".", _to_link),
    ("List", "src/deep", "src/deep", "deep", _to_link),
    ("Wc", "src/deep/clean.py", "src", ".", _to_link),
]


@pytest.mark.spec("L6")
@pytest.mark.parametrize(("tool", "path", "swapped", "target", "swap"), SWAPS)
def test_a_swap_between_check_and_use_leads_nowhere(
    world: World, tool: str, path: str, swapped: str, target: str, swap: Any
) -> None:
    world.policy = lambda call: swap(world.root / swapped, world.top / "outside" / target)
    given = {"Grep": {"pattern": "."}, "Glob": {"pattern": "*"}}.get(tool, {})
    answer, refused = world.ask(tool, path=path, **given)
    assert "ZEBRA" not in answer and "secret.txt" not in answer
    assert not refused or "Allowed here" in answer


@pytest.mark.spec("L6")
def test_a_swap_while_a_search_walks_leads_nowhere(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Right after a folder was listed, what it lists becomes a link, and a link a folder."""
    real = reading.listed

    def listed(folder: Path, most: int) -> Any:
        found = real(folder, most)
        if folder == world.root / "src":
            _to_link(folder / "deep", world.top / "outside" / "deep")
        if folder == world.root:
            _to_link(world.root / "load.py", world.top / "outside" / "secret.txt")
        return found

    monkeypatch.setattr(reading, "listed", listed)
    answer, _ = world.ask("Grep", pattern=".")
    assert "ZEBRA" not in answer


@pytest.mark.slow
@pytest.mark.spec("L6")
def test_a_folder_that_flickers_between_itself_and_a_link_is_never_followed(world: World) -> None:
    source, over = world.root / "src", threading.Event()

    def flicker() -> None:
        _test_threads.add(threading.get_ident())
        link, folder = world.root / "one", world.root / "other"
        link.symlink_to(world.top / "outside")
        while not over.is_set():
            with suppress(OSError):
                source.rename(folder)
                link.rename(source)
                source.rename(link)
                folder.rename(source)

    thread = threading.Thread(target=flicker)
    thread.start()
    read = 0
    try:
        with nothing_done():
            until = time.monotonic() + 3
            while time.monotonic() < until:
                for tool, given in (
                    ("Read", {"path": "src/deep/clean.py"}),
                    ("Grep", {"pattern": ".", "path": "src"}),
                    ("List", {"path": "src"}),
                ):
                    answer, refused = world.ask(tool, **given)
                    assert "ZEBRA" not in answer and "secret.txt" not in answer
                    read += not refused
    finally:
        over.set()
        thread.join()
    assert read


@pytest.mark.spec("E6")
def test_our_home_stays_closed_where_it_lies_inside_the_project(world: World) -> None:
    home = world.root / ".ipymemory"
    memory = home / "projects" / "project-1" / "memory"
    memory.mkdir(parents=True)
    (memory / "dates.md").write_text("day-first")
    for each in (home / "config.json", memory.parent / "project.json"):
        each.write_text(SECRET)
    inside = World(world.top, world.root, home, memory)
    for path in (".ipymemory/config.json", f"{memory}/../project.json", ".ipymemory"):
        answer, refused = inside.ask("Read", path=path)
        assert refused and "ipymemory's own" in answer
    assert "ZEBRA" not in inside.ask("Grep", pattern=".")[0]
    assert ".ipymemory" not in inside.ask("List")[0]
    assert inside.ask("Read", path=".ipymemory/projects/project-1/memory/dates.md")[1] is False


@pytest.mark.spec("E6")
def test_a_home_folder_or_the_whole_disk_is_nobodys_project(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(world.root))
    monkeypatch.setenv("USERPROFILE", str(world.root))
    for root in (world.root, Path(world.root.anchor)):
        around = World(world.top, root, world.home, world.memory)
        for path in (world.root / "load.py", Path("/etc/hostname"), root):
            answer, refused = around.ask("Read", path=str(path))
            assert refused and "outside the project" in answer
        assert around.ask("Read", path=str(world.memory / "dates.md"))[1] is False


def test_a_notebook_that_is_its_own_project_shows_itself_alone(world: World) -> None:
    notebook = world.root / "a.ipynb"
    notebook.write_text('{"nbformat": 4, "cells": [{"cell_type": "markdown", "source": "hello"}]}')
    alone = World(world.top, notebook, world.home, world.memory)
    assert "hello" in alone.ask("Read", path="a.ipynb")[0]
    for given in ({"path": "load.py"}, {"path": "."}):
        assert alone.ask("Read", **given)[1]
    assert alone.ask("Grep", pattern=".")[1], "the folder around it is closed"


@pytest.mark.spec("L6")
@pytest.mark.parametrize(
    ("named", "odd"),
    [
        *((each, True) for each in ("\\\\host\\share\\x", "//host/x", "\\/host/x", "C:x", "a:b")),
        *((each, True) for each in ("ab:c",)),
        *((each, True) for each in ("NUL", "con.txt", "src/com1", "src\\LPT1.py", "x/aux ")),
        *((each, True) for each in ("CONIN$",)),
        *((each, True) for each in ("load.py:s", "\\\\?\\C:\\x", "\\\\.\\pipe\\x", "~\\x", "a\0")),
        *((each, False) for each in ("C:\\work\\load.py", "src\\clean.py", "console.py")),
        *((each, False) for each in ("company/x",)),
    ],
)  # fmt: skip
def test_what_windows_would_open_as_something_else_is_not_looked_up(named: str, odd: bool) -> None:
    assert bool(fences._odd(named, windows=True)) is odd


@pytest.mark.spec("E6")
def test_private_names_are_the_users_to_choose(world: World) -> None:
    mine = Fence(world.root, None, ["load*", "SRC"])
    call = ToolCall("1", "Read", {"path": "load.py"})
    assert isinstance(mine.check(call), Deny)
    assert isinstance(mine.check(ToolCall("1", "List", {"path": "src/deep"})), Deny)
    assert isinstance(mine.check(ToolCall("1", "Read", {"path": ".env"})), Allow)
    assert isinstance(Fence(world.root, None, ["*"]).check(call), Deny)
    assert isinstance(Fence(world.root, None, []).check(call), Allow)


def test_a_path_that_was_not_resolved_is_closed(world: World) -> None:
    assert not world.fence.why_closed(world.root / "src" / "a.py")
    assert "outside" in world.fence.why_closed(world.root / "src" / ".." / ".." / "x")


@pytest.mark.spec("E6", "L6")
@pytest.mark.parametrize(
    "name",
    [
        *(".env", ".ENV", ".env.", ".env ", ".env~", ".env.bak.old", ".env::$DATA", "prod.env"),
        *("\uff0eenv", ".e\u200bnv", "\u2024env", ".en\uff56", "id_rsa.\uff11", "data.cs\u24e5"),
        *(
            "A.PEM",
            "a.csv.gz",
            "x.xlsx",
            "my-secrets.toml",
            "credentials",
            "hf_token",
            "db.sqlite3",
        ),
    ],
)
def test_a_private_name_is_known_in_every_guise(world: World, name: str) -> None:
    assert world.fence.is_private(name)


def test_code_with_an_ordinary_name_is_not_taken_for_private(world: World) -> None:
    for name in (
        *(
            "environment.yml",
            "keyboard.py",
            "tokenizer.py",
            "database.py",
            "csv_reader.py",
            "a.json",
        ),
        *("monkey.py", "README.md", "setup.cfg", "data.py", "keys.md", "model.py", "Makefile"),
    ):
        assert not world.fence.is_private(name), name
