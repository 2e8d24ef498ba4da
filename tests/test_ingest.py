"""`ipymemory ingest`: many notebook files, killed and gone on with, undone, and never changed."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import ipymemory
from ipymemory import cli, file_notes, greeting, ingest, places, recent_sessions, sessions
from ipymemory.config import Settings
from ipymemory.errors import PlaceError
from ipymemory.held import resolved
from ipymemory.history import History
from ipymemory.ingest import Ingest, Read
from ipymemory.memory_files import opened, proposals
from ipymemory.places import Project, SessionFolder
from ipymemory.sessions import Identity

RULE = "Never shuffle the hours before splitting."


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of one's own, and no settings of whoever runs this."""
    work = (tmp_path / "work").resolve()
    (work / ".git").mkdir(parents=True)
    (work / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    monkeypatch.setenv("JUPYTER_CONFIG_DIR", str(tmp_path / "jupyter"))
    monkeypatch.setenv("JUPYTER_CONFIG_PATH", str(tmp_path / "system"))
    monkeypatch.chdir(work)
    return work


def code(source: str, count: int, text: str = "") -> dict[str, Any]:
    outputs = [{"output_type": "stream", "name": "stdout", "text": text}] if text else []
    return {
        "cell_type": "code",
        "metadata": {},
        "execution_count": count,
        "source": source,
        "outputs": outputs,
    }


def prose(source: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "metadata": {}, "source": source}


def write(path: Path, *cells: dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {"nbformat": 4, "nbformat_minor": 4, "metadata": {}, "cells": list(cells)}
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def study(path: Path, number: int, *more: dict[str, Any]) -> Path:
    return write(
        path,
        prose(f"# Study {number}\n\nWe want to know who rides on day {number}."),
        code(f"riders_{number} = {number} + 800\nprint(riders_{number})", 1, f"{number + 800}\n"),
        *more,
    )


def read(
    home: Path, *names: Path, settings: Settings | None = None, dry: bool = False
) -> list[Read]:
    found = ingest.find(names)
    assert not found.problems
    return list(Ingest(home, settings or Settings(), dry=dry).read(found.paths))


def project(home: Path, folder: Path) -> Project:
    return places.project_of(folder, home)


def session(home: Path, path: Path) -> SessionFolder:
    return places.folder_of_file(project(home, path), path)


def waiting(home: Path, folder: Path) -> list[str]:
    found = proposals.waiting(project(home, folder).proposals)
    return sorted(each.draft.description for each in found if each.draft)


def start(folder: Path, *words: str, **more: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "ipymemory", "ingest", *words],
        cwd=folder,
        text=True,
        encoding="utf-8",
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more},
    )


def run(*words: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = cli.main(["ingest", *words])
    return status, out.getvalue(), err.getvalue()


def tree(top: Path) -> dict[str, bytes]:
    """Return every file below `top` but locks."""
    return {
        each.relative_to(top).as_posix(): each.read_bytes()
        for each in sorted(top.rglob("*"))
        if each.is_file() and not each.name.endswith("lock")
    }


def notes_of(home: Path, paths: Sequence[Path]) -> dict[str, str]:
    return {each.name: session(home, each).notes.read_text("utf-8") for each in paths}


@pytest.mark.spec("S1", "E13")
def test_each_notebook_gets_notes_and_what_it_says_is_only_proposed(
    home: Path, folder: Path
) -> None:
    path = study(folder / "a" / "hours.ipynb", 7, prose(RULE))
    study(folder / "b.ipynb", 8)
    before = tree(folder)
    process = start(folder, ".")
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, "")
    assert "\x1b" not in out
    assert "- a/hours.ipynb: noted, 1 proposal\n" in out
    assert "- b.ipynb: noted\n" in out
    assert "2 notebooks read." in out
    assert tree(folder) == before, "no notebook is changed, and nothing is left beside one"
    notes = session(home, path).notes.read_text("utf-8")
    told = subprocess.run(
        [sys.executable, "-P", "-m", "ipymemory", "notes", str(path)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=True,
    )
    assert notes == told.stdout
    assert "Study 7" in notes
    assert waiting(home, folder) == [RULE]
    assert not list(opened(project(home, folder), Settings()).scan()), "nobody said yes"
    (proposal,) = proposals.waiting(project(home, folder).proposals)
    assert proposal.draft is not None
    assert proposal.draft.source.notebook == "hours.ipynb"
    assert proposal.draft.source.origin == "file"
    assert proposal.session == session(home, path).id


def test_what_has_not_changed_is_passed_over(home: Path, folder: Path) -> None:
    for number in range(5):
        study(
            folder / f"n{number}.ipynb",
            number,
            prose(f"Always use port {number} for lab {number}."),
        )
    assert run(".")[0] == 0
    before = tree(home)
    status, out, _ = run(".", "--json")
    assert status == 0
    assert [each["status"] for each in json.loads(out)["notebooks"]] == ["unchanged"] * 5
    assert tree(home) == before
    study(folder / "n3.ipynb", 33)
    told = read(home, folder)
    assert [each.path.name for each in told if each.status == "done"] == ["n3.ipynb"]
    assert "Study 33" in session(home, folder / "n3.ipynb").notes.read_text("utf-8")


@pytest.mark.spec("S13")
def test_what_a_person_changed_in_the_notes_stays(home: Path, folder: Path) -> None:
    path = study(folder / "n.ipynb", 1)
    read(home, folder)
    notes = session(home, path).notes
    own = "\n\n- Ask Ada before using these\n\n# Key results"
    notes.write_text(notes.read_text("utf-8").replace("\n\n# Key results", own), "utf-8")
    study(path, 1, code("print('eleven', 11)", 2, "eleven 11\n"))
    read(home, folder)
    text = notes.read_text("utf-8")
    assert "- Ask Ada before using these" in text
    assert "eleven" in text


@pytest.mark.spec("L8")
def test_an_undo_takes_the_notes_back_and_they_do_not_come_again(home: Path, folder: Path) -> None:
    path = study(folder / "n.ipynb", 1)
    (done,) = read(home, folder)
    history = History(project(home, folder).history)
    assert history.find(done.run).job == "ingest"
    notes = session(home, path).notes
    history.undo(done.run)
    assert not notes.exists()
    assert [each.status for each in read(home, folder)] == ["unchanged"]
    assert not notes.exists()
    study(path, 1, code("eleven = 11\nprint('eleven', eleven)", 2, "eleven 11\n"))
    assert [each.status for each in read(home, folder)] == ["done"]
    text = notes.read_text("utf-8")
    assert "eleven" in text
    assert "Study 1" not in text
    assert "riders_1" not in text


@pytest.mark.spec("L8")
def test_an_undo_of_the_second_reading_leaves_the_first_one_s_notes(
    home: Path, folder: Path
) -> None:
    path = study(folder / "n.ipynb", 1)
    read(home, folder)
    notes = session(home, path).notes
    first = notes.read_bytes()
    study(path, 1, code("eleven = 11\nprint('eleven', eleven)", 2, "eleven 11\n"))
    (done,) = read(home, folder)
    History(project(home, folder).history).undo(done.run)
    assert notes.read_bytes() == first
    # Nobody wrote these lines by hand: the next ones take their place.
    write(path, prose("# Another study\n\nWe want to know nothing."), code("x = 1", 1))
    read(home, folder)
    text = notes.read_text("utf-8")
    assert "Another study" in text
    assert "riders_1" not in text


def test_one_that_was_killed_before_its_last_steps_takes_no_line_for_a_person_s(
    home: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = study(folder / "n.ipynb", 1)
    read(home, folder)
    study(path, 1, code("eleven = 11\nprint('eleven', eleven)", 2, "eleven 11\n"))

    def killed(*rest: Any) -> None:
        raise PlaceError("killed here")

    with monkeypatch.context() as patch:
        patch.setattr(file_notes.notes_base, "write", killed)
        assert [each.error for each in read(home, folder)] == ["killed here"]
    assert "eleven" in session(home, path).notes.read_text("utf-8")
    study(path, 1)
    read(home, folder)
    assert "eleven" not in session(home, path).notes.read_text("utf-8")


def test_notes_that_somebody_deleted_are_made_again(home: Path, folder: Path) -> None:
    path = study(folder / "n.ipynb", 1)
    read(home, folder)
    notes = session(home, path).notes
    text = notes.read_bytes()
    notes.unlink()
    (done,) = read(home, folder)
    assert done.run
    assert notes.read_bytes() == text
    assert [each.status for each in read(home, folder)] == ["unchanged"]


@pytest.mark.spec("L7")
def test_secrets_and_private_cells_are_nowhere(home: Path, folder: Path) -> None:
    key = "sk-ant-api03-" + "Zq7" * 20
    write(
        folder / "n.ipynb",
        prose(f"# Study\n\nAlways use the key {key} for the report."),
        code(f"api_key = '{key}'\nprint(api_key)", 1, f"{key}\n"),
        code("%%private\nsalary_of_ada = 61_234", 2, "61234 salary\n"),
        code("# ipymemory: off\nsalary_of_bob = 51_234", 3),
        code("total = 3", 4),
    )
    status, out, _ = run(".", "--json")
    assert status == 0
    everything = b"\n".join(tree(home).values()).decode("utf-8", "replace") + out
    for each in (key, "salary", "61234"):
        assert each not in everything
    assert "total" in everything


@pytest.mark.spec("L7")
@pytest.mark.parametrize("level", ["no-tables", "shapes", "none"])
def test_of_outputs_is_kept_what_the_setting_says(home: Path, folder: Path, level: str) -> None:
    table = "    name  age\n0   Ada   36\n1   Bob   41\n2   Cyd   29"
    result = {"output_type": "execute_result", "execution_count": 1, "metadata": {}}
    frame = code("people.head()", 1)
    frame["outputs"] = [{**result, "data": {"text/plain": table}}]
    error = code("people['x']", 2)
    error["outputs"] = [
        {
            "output_type": "error",
            "ename": "KeyError",
            "evalue": "'Ada'",
            "traceback": ["KeyError: 'Ada'"],
        }
    ]
    printed = code("print('rider', name)", 3, "rider: Eve\n")
    path = write(folder / "n.ipynb", prose("# People"), frame, error, printed)
    settings = Settings()
    settings.privacy.outputs = level
    read(home, folder, settings=settings)
    text = session(home, path).notes.read_text("utf-8")
    assert "KeyError" in text
    assert "Bob" not in text
    assert ("Ada" in text) is (level == "no-tables")
    assert ("Eve" in text) is (level == "no-tables")


@pytest.mark.spec("L7")
def test_nothing_is_read_while_nobody_knows_what_may_be_kept(
    home: Path, folder: Path, tmp_path: Path
) -> None:
    study(folder / "n.ipynb", 1)
    settings = tmp_path / "jupyter" / "ipymemory_config.json"
    settings.parent.mkdir()
    settings.write_text('{"Privacy": {"outputs": "nothing"}}')
    status, out, err = run(".")
    assert (status, out) == (2, "")
    assert "Nothing was read." in err
    assert not home.exists()


@pytest.mark.spec("L10")
@pytest.mark.parametrize("mode", ["read", "off"])
def test_where_no_memory_may_be_written_the_notes_go_on_and_it_is_made_up_for(
    home: Path, folder: Path, mode: str
) -> None:
    path = study(folder / "n.ipynb", 1, prose(RULE))
    project(home, folder).set_property("mode", mode)
    status, out, _ = run(".")
    assert status == 0
    assert f"No memory is written in mode {mode}" in out
    assert session(home, path).notes.exists()
    assert waiting(home, folder) == []
    project(home, folder).set_property("mode", "confirm")
    assert read(home, folder)[0].proposed
    assert waiting(home, folder) == [RULE]
    assert [each.status for each in read(home, folder)] == ["unchanged"]


@pytest.mark.spec("E13", "L12")
def test_what_was_refused_does_not_come_again_from_another_notebook(
    home: Path, folder: Path
) -> None:
    study(folder / "a.ipynb", 1, prose(RULE))
    read(home, folder)
    store = project(home, folder).proposals
    proposals.settle(store, proposals.waiting(store)[0])
    study(folder / "b.ipynb", 2, prose(RULE))
    read(home, folder)
    assert waiting(home, folder) == []


@pytest.mark.spec("E13")
def test_more_than_may_wait_is_offered_once_there_is_room(home: Path, folder: Path) -> None:
    for number in range(15):
        rules = f"Always use port {number} for lab {number}. Never drop column {number} of it."
        study(folder / f"n{number:02}.ipynb", number, prose(rules))
    _, out, _ = run(".")
    assert "more to remember than may wait at once" in out
    store = project(home, folder).proposals
    offered: set[str] = set()
    for _ in range(5):
        for each in proposals.waiting(store):
            assert each.draft is not None
            offered.add(each.draft.description)
            proposals.settle(store, each)
        if not any(each.more or each.proposed for each in read(home, folder)):
            break
    assert len(offered) == 30
    assert {each.status for each in read(home, folder)} == {"unchanged"}


def test_what_cannot_be_read_is_listed_and_the_rest_goes_on(home: Path, folder: Path) -> None:
    study(folder / "a.ipynb", 1)
    (folder / "binary.ipynb").write_bytes(os.urandom(3000).replace(b"{", b"\xff") + b"\xff")
    (folder / "cut.ipynb").write_text('{"nbformat": 4, "cells": [')
    (folder / "deep.ipynb").write_text("[" * 200_000)
    (folder / "two.ipynb").write_text('{"nbformat": 2}')
    (folder / "words.ipynb").write_text("not json")
    with (folder / "huge.ipynb").open("wb") as file:
        file.truncate(300 * 1024 * 1024)
    (folder / "empty.ipynb").write_bytes(b"")
    write(folder / "new.ipynb")
    study(folder / "z.ipynb", 2)
    status, out, err = run(".", "gone.ipynb")
    assert (status, err) == (1, "")
    failed = [line for line in out.splitlines() if line.startswith("- Failed: ")]
    assert len(failed) == 7
    for each in ("binary", "cut", "deep", "two", "words", "huge", "gone"):
        assert sum(f"{each}.ipynb" in line for line in failed) == 1
    assert "2 notebooks read, 2 without anything in it, 7 failed." in out
    assert session(home, folder / "z.ipynb").notes.exists()
    data = json.loads(run(".", "--json")[1])
    assert sum(each["status"] == "failed" for each in data["notebooks"]) == 6
    assert all(each["error"] for each in data["notebooks"] if each["status"] == "failed")


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such modes")
@pytest.mark.skipif(os.name != "nt" and os.geteuid() == 0, reason="root may read everything")
def test_what_may_not_be_read_is_listed(home: Path, folder: Path) -> None:
    study(folder / "closed" / "a.ipynb", 1).parent.chmod(0)
    study(folder / "b.ipynb", 1).chmod(0)
    status, out, _ = run(".")
    (folder / "closed").chmod(0o700)
    assert status == 1
    assert out.count("Mend its permissions") == 1
    assert out.count("Check its permissions") == 1


def test_a_folder_that_may_not_be_looked_into_is_named_and_the_rest_goes_on(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study(folder / "closed" / "a.ipynb", 1)
    last = study(folder / "open" / "b.ipynb", 2)
    may = os.access

    def access(path: Any, mode: int) -> bool:
        return Path(path).name != "closed" and may(path, mode)

    monkeypatch.setattr(os, "access", access)
    found = ingest.find([folder])
    assert found.paths == [last]
    ((path, text),) = found.problems
    assert path == folder / "closed"
    assert text.endswith("may not be looked into. Mend its permissions.")


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such files")
def test_a_pipe_is_not_waited_for(folder: Path) -> None:
    os.mkfifo(folder / "pipe.ipynb")
    status, out, _ = run("pipe.ipynb", ".")
    assert status == 1
    assert "no regular file" in out


@pytest.mark.spec("L6")
def test_of_folders_what_is_somebody_s_notebook_is_read_once(
    home: Path, folder: Path, tmp_path: Path
) -> None:
    real = study(folder / "sub" / "n.ipynb", 1)
    study(folder / "sub" / ".ipynb_checkpoints" / "n-checkpoint.ipynb", 2)
    study(folder / ".hidden.ipynb", 3)
    study(folder / "node_modules" / "x.ipynb", 4)
    study(folder / "env" / "x.ipynb", 5)
    (folder / "env" / "pyvenv.cfg").write_text("")
    elsewhere = study(tmp_path / "elsewhere" / "x.ipynb", 6)
    try:
        (folder / "sub" / "again.ipynb").symlink_to(real)
        (folder / "sub" / "out").symlink_to(elsewhere.parent, target_is_directory=True)
        (tmp_path / "named.ipynb").symlink_to(real)
    except OSError:
        pytest.skip("no links here")
    names = [folder, folder / "sub", real, tmp_path / "named.ipynb"]
    assert ingest.find(names).paths == [real]
    assert ingest.find([folder / "sub" / "out"]).paths == [elsewhere.resolve()]
    read(home, *names)
    assert len(list(project(home, folder).sessions.iterdir())) == 1


def test_each_notebook_goes_to_its_own_project(home: Path, folder: Path, tmp_path: Path) -> None:
    here = study(folder / "n.ipynb", 1, prose(RULE))
    there = study(
        tmp_path.resolve() / "other" / "n.ipynb", 2, prose("Always use port 5 for lab 5.")
    )
    read(home, here, there)
    assert session(home, here).notes.exists()
    assert session(home, there).notes.exists()
    assert waiting(home, here) == [RULE]
    assert waiting(home, there) == ["Always use port 5 for lab 5."]


@pytest.mark.spec("E13")
def test_each_time_it_says_how_and_where_to_answer_what_waits(home: Path, tmp_path: Path) -> None:
    school = tmp_path.resolve() / "school"
    for part in ("a", "b"):
        for number in range(12):
            rules = f"Always use port {number} for lab {number}. Never drop column {number} of it."
            study(school / part / f"n{number:02}.ipynb", number, prose(rules))
    run(str(school))
    _, out, _ = run(str(school))
    assert "No notebooks read" in out
    assert "answer what `ipymemory proposals` shows" in out
    assert "give these commands in their folders: " in out
    assert f"{school / 'a'}, {school / 'b'}" in out


def test_a_dry_run_tells_and_writes_nothing(home: Path, folder: Path) -> None:
    study(folder / "a.ipynb", 1, prose(RULE))
    study(folder / "b.ipynb", 2, prose(RULE))
    status, out, _ = run(".", "--dry-run")
    assert status == 0
    assert "2 notebooks would be read." in out
    assert "1 memory would be proposed." in out
    assert not home.exists()


@pytest.mark.worker
@pytest.mark.parametrize(("signals", "number"), [(["SIGKILL"], 8), (["SIGINT", "SIGTERM"], 5)])
@pytest.mark.skipif(os.name == "nt", reason="Windows sends no such signals")
def test_a_process_that_is_ended_at_any_moment_loses_nothing(
    home: Path, folder: Path, tmp_path: Path, signals: list[str], number: int
) -> None:
    """Against what one that nobody disturbs makes of the same notebooks."""
    paths = [
        study(folder / f"n{at:02}.ipynb", at, prose(f"Always use port {at} for lab {at}."))
        for at in range(number)
    ]
    calm = tmp_path / "calm"
    read(calm, folder)
    own = project(home, folder).sessions
    ended: list[int] = []
    # Each is let begin one more notebook, and a little more or less of it.
    while 0 not in ended:
        begun = len(list(own.glob("*")))
        process = start(folder, ".")
        while process.poll() is None and len(list(own.glob("*"))) <= begun:
            time.sleep(0.001)
        time.sleep(0.005 * (len(ended) % 8))
        process.send_signal(getattr(signal, signals[len(ended) % len(signals)]))
        out, _ = process.communicate(timeout=60)
        ended.append(process.returncode)
        if signals != ["SIGKILL"] and process.returncode and len(list(own.glob("*"))) < number:
            # Else all was read, and the signal came when the process was about to end.
            assert process.returncode in (130, 143)
            assert "left. Nothing is lost; the same command goes on here." in out
    assert len(ended) > 2, "they were to be cut short"
    status, _, err = run(".")
    assert (status, err) == (0, "")
    assert notes_of(home, paths) == notes_of(calm, paths)
    assert waiting(home, folder) == waiting(calm, folder)
    assert not list(project(home, folder).sessions.rglob("*.tmp"))
    assert {each.status for each in read(home, folder)} == {"unchanged"}


@pytest.mark.worker
def test_two_at_once_do_no_harm(home: Path, folder: Path, tmp_path: Path) -> None:
    paths = [
        study(folder / f"n{at:02}.ipynb", at, prose(f"Always use port {at} for lab {at}. {RULE}"))
        for at in range(15)
    ]
    calm = tmp_path / "calm"
    read(calm, folder)
    both = [start(folder, ".", "--json") for _ in range(3)]
    told = [json.loads(each.communicate(timeout=120)[0])["notebooks"] for each in both]
    assert [each.returncode for each in both] == [0, 0, 0]
    runs = [each["run"] for one in told for each in one if each["run"]]
    assert len(runs) == len(set(runs)) == 15, "each was noted once"
    assert notes_of(home, paths) == notes_of(calm, paths)
    assert waiting(home, folder) == waiting(calm, folder)


def test_a_notebook_that_was_read_greets_and_is_nobody_s_session(home: Path, folder: Path) -> None:
    path = study(folder / "n.ipynb", 1)
    read(home, folder)
    own, now = project(home, folder), datetime.now(UTC)
    identity = Identity(path, None, "kernel-1.json", terminal=False)
    found = sessions.find(own, identity, now)
    assert found.folder == session(home, path)
    assert not found.continues
    line, _ = greeting.line(own, identity, now)
    assert "This notebook was read before: Study 1" in line
    assert "kernel" not in line
    claim = sessions.claim(own, identity, now, sessions.processes.own())
    assert not claim.folder.of_file
    assert claim.record.previous == session(home, path).id
    assert sessions.find(own, identity, now).folder == claim.folder
    assert sessions.latest_folder(own) == claim.folder


def test_what_was_read_is_in_the_way_of_no_session(home: Path, folder: Path) -> None:
    path = study(folder / "n.ipynb", 1)
    read(home, folder)
    own = project(home, folder)
    assert sessions.latest_folder(own) is None
    assert recent_sessions.since(own, 0.0) == []
    latest = ipymemory.open(folder).sessions.latest()
    assert latest is not None
    assert latest.record.notebook == str(path)
    assert latest.notes.section("Session Title") is not None


def test_a_purge_takes_what_was_read_too(home: Path, folder: Path) -> None:
    path = study(folder / "n.ipynb", 1)
    read(home, folder)
    study(path, 2)
    read(home, folder)
    own = project(home, folder)
    assert b"Study 1" in _images(own)
    History(own.history).forget([session(home, path).id])
    assert b"Study 1" not in _images(own)


def _images(own: Project) -> bytes:
    import zlib

    found = [each for each in (own.history / "images").rglob("*") if each.is_file()]
    return b"\n".join(zlib.decompress(each.read_bytes()) for each in found)


@pytest.mark.terminal
@pytest.mark.skipif(os.name == "nt", reason="there is no such terminal on Windows")
def test_a_terminal_gets_a_bar_that_goes_again(folder: Path) -> None:
    import pty

    for number in range(6):
        study(folder / f"n{number}.ipynb", number)
    ours, theirs = pty.openpty()
    process = start(folder, ".", stderr=theirs, env={**os.environ, "TERM": "xterm"})
    os.close(theirs)
    seen = b""
    try:
        while part := os.read(ours, 4096):
            seen += part
    except OSError:  # Linux says so when the other end is closed
        pass
    os.close(ours)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert b"6/6" in seen
    assert seen.rstrip().endswith(b"\x1b[2K"), "the line is taken away"
    assert b"\x1b[?25h" in seen, "the cursor is there again"
    assert "\x1b" not in out
    assert "6 notebooks read." in out


def test_an_engine_that_breaks_on_one_notebook_stops_no_other(
    home: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study(folder / "a.ipynb", 1)
    study(folder / "b.ipynb", 2)
    write_notes: Callable[..., str] = file_notes.write

    def breaks(where: SessionFolder, notebook: Any, *rest: Any) -> str:
        if notebook.path.name == "a.ipynb":
            raise ValueError("no such luck")
        return write_notes(where, notebook, *rest)

    monkeypatch.setattr(file_notes, "write", breaks)
    first, second = read(home, folder)
    assert (first.status, second.status) == ("failed", "done")
    assert "no such luck" in first.error
    monkeypatch.undo()
    monkeypatch.setenv("IPYMEMORY_HOME", str(home))
    assert read(home, folder)[0].status == "done"
    assert resolved(session(home, folder / "a.ipynb").notes).exists()
