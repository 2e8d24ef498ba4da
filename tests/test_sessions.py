"""Which session a kernel works in: restarts, renames, copies, second kernels, other versions."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

import pytest

from ipymemory import places, processes, sessions
from ipymemory.errors import FormatError, PlaceError
from ipymemory.places import Project, SessionFolder
from ipymemory.processes import ProcessIdentity
from ipymemory.sessions import Claim, Identity, SessionRecord
from ipymemory.transcript import TranscriptWriter

NOW = datetime.now(UTC)
HOUR = timedelta(hours=1)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    (tmp_path / "work").mkdir()
    return places.project_of(tmp_path / "work", tmp_path / "memory")


@pytest.fixture
def notebook(project: Project) -> Path:
    path = project.root / "analysis.ipynb"
    path.write_text("{}")
    return path


def who(
    path: Path | None, connection: str = "kernel-1.json", *, terminal: bool = False
) -> Identity:
    inode = None
    if path is not None and path.exists():
        inode = (path.stat().st_dev, path.stat().st_ino)
    return Identity(path, inode, connection, terminal)


_numbers = count(4_000_000)


def dead() -> ProcessIdentity:
    """Return a process of this host and boot that is no more, each time another."""
    return replace(processes.own(), pid=next(_numbers), started=1.0)


def running() -> ProcessIdentity:
    """Return a process that lives as long as the tests do: the one that started them."""
    parent = processes.identity(os.getppid())
    assert parent is not None
    return parent


def claim(
    project: Project, identity: Identity, kernel: ProcessIdentity | None = None,
    now: datetime = NOW, *, running: str = "",
) -> Claim:  # fmt: skip
    """Claim as `kernel`, a dead one if not given, and record a cell, ended or `running`."""
    made = sessions.claim(project, identity, now, kernel or dead())
    writer = TranscriptWriter(made.folder, made.folder.id)
    id = f"{made.generation:04}"
    writer.append({"type": "cell", "id": id, "kernel": made.generation, "source": running})
    if not running:
        writer.append({"type": "end", "id": id, "status": "ok"})
    writer.close()
    touch(made.folder, now)
    return made


def touch(folder: SessionFolder, when: datetime) -> None:
    os.utime(folder.transcript, (when.timestamp(), when.timestamp()))


# Going on.


def test_a_kernel_goes_on_with_the_session_of_its_notebook(
    project: Project, notebook: Path
) -> None:
    first = claim(project, who(notebook))
    assert (first.continued, first.generation, first.died_in) == (False, 1, None)
    found = sessions.find(project, who(notebook, "kernel-2.json"), NOW)
    assert (found.folder, found.continues, found.restarted) == (first.folder, True, True)
    second = claim(project, who(notebook, "kernel-2.json"))
    assert (second.folder, second.continued, second.generation) == (first.folder, True, 2)
    assert second.record.connection == "kernel-2.json"
    assert second.record.started == first.record.started


def test_a_restarted_kernel_is_known_by_its_connection_file(
    project: Project, notebook: Path
) -> None:
    first = claim(project, who(None, "kernel-a.json"))
    other = claim(project, who(None, "kernel-b.json"))
    assert other.folder != first.folder
    again = claim(project, who(None, "kernel-a.json"))
    assert (again.folder, again.continued) == (first.folder, True)
    # What is learned on the way is kept, and what is unknown later was known before.
    named = claim(project, who(notebook, "kernel-a.json"))
    assert named.folder == first.folder
    unnamed = claim(project, who(None, "kernel-a.json"))
    assert unnamed.record.notebook == str(notebook)
    assert unnamed.record.inode == who(notebook).inode


def test_the_connection_file_goes_before_the_notebook(project: Project, notebook: Path) -> None:
    first = claim(project, who(notebook, "kernel-a.json"), running(), NOW - HOUR)
    second = claim(project, who(notebook, "kernel-b.json"))
    assert second.folder != first.folder
    sessions.update(first.folder, kernel=dead())
    assert sessions.find(project, who(notebook, "kernel-a.json"), NOW).folder == first.folder
    assert sessions.find(project, who(notebook, "kernel-b.json"), NOW).folder == second.folder
    assert sessions.find(project, who(notebook, "kernel-c.json"), NOW).folder == second.folder


def test_a_terminal_goes_on_with_its_own_session_only(project: Project) -> None:
    first = claim(project, who(None, "terminal 7", terminal=True))
    assert claim(project, who(None, "terminal 8", terminal=True)).folder != first.folder
    assert claim(project, who(None, "terminal 7", terminal=True)).folder == first.folder
    unknown = who(None, "", terminal=True)
    assert claim(project, unknown).folder != claim(project, unknown).folder


def test_a_kernel_that_loads_again_goes_on_as_the_same_kernel(
    project: Project, notebook: Path
) -> None:
    me = processes.own()
    first = claim(project, who(notebook), me, running="%unload_ext ipymemory")
    found = sessions.find(project, who(notebook), NOW)
    assert (found.continues, found.restarted, found.died_in) == (True, False, None)
    again = claim(project, who(notebook), me)
    assert (again.folder, again.continued, again.generation) == (first.folder, False, 1)


@pytest.mark.parametrize(
    ("idle", "continues"), [(HOUR * 11.99, True), (HOUR * 12, False), (HOUR * 400, False)]
)
def test_a_session_is_gone_on_with_for_twelve_hours(
    project: Project, notebook: Path, idle: timedelta, continues: bool
) -> None:
    first = claim(project, who(notebook), running="fit()")
    found = sessions.find(project, who(notebook), NOW + idle)
    assert (found.folder, found.continues) == (first.folder, continues)
    assert found.died_in is not None and found.died_in.source == "fit()"
    second = claim(project, who(notebook), now=NOW + idle)
    assert (second.folder == first.folder, second.continued) == (continues, continues)
    assert second.record.previous == ("" if continues else first.folder.id)


@pytest.mark.spec("L5")
def test_the_next_session_says_in_which_cell_the_kernel_died(
    project: Project, notebook: Path
) -> None:
    claim(project, who(notebook), running="os.abort()")
    found = sessions.find(project, who(notebook), NOW)
    assert found.died_in is not None and found.died_in.source == "os.abort()"
    second = claim(project, who(notebook))
    assert second.died_in == found.died_in
    assert sessions.find(project, who(notebook), NOW).died_in is None, "that one ended well"


@pytest.mark.spec("L5")
def test_a_kernel_that_let_its_session_go_did_not_die(project: Project, notebook: Path) -> None:
    me = processes.own()
    first = claim(project, who(notebook), me, running="exit()")
    sessions.release(first.folder)
    found = sessions.find(project, who(notebook), NOW)
    assert (found.continues, found.restarted, found.died_in) == (True, True, None)


def test_only_the_owner_lets_a_session_go(project: Project, notebook: Path) -> None:
    first = claim(project, who(notebook), running())
    sessions.release(first.folder)
    assert sessions.read(first.folder).kernel == running()
    shutil.rmtree(first.folder.path)
    sessions.release(first.folder)
    assert not first.folder.path.exists()


# Two kernels.


def test_a_second_live_kernel_gets_a_session_of_its_own(project: Project, notebook: Path) -> None:
    first = claim(project, who(notebook, "kernel-a.json"), running())
    assert sessions.find(project, who(notebook, "kernel-b.json"), NOW).folder is None
    second = claim(project, who(notebook, "kernel-b.json"), processes.own())
    assert (second.continued, second.folder != first.folder) == (False, True)
    assert sessions.owned(sessions.read(first.folder), first.folder, NOW)
    assert not sessions.owned(sessions.read(second.folder), second.folder, NOW)


RACER = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from ipymemory import places, processes, sessions
project = places.project_of(Path(sys.argv[1]), Path(sys.argv[2]))
stat = Path(sys.argv[1]).stat()
who = sessions.Identity(Path(sys.argv[1]), (stat.st_dev, stat.st_ino), sys.argv[3], False)
print("ready", flush=True)
sys.stdin.readline()
claim = sessions.claim(project, who, datetime.now(UTC), processes.own())
print(claim.folder.id, claim.continued, claim.generation, flush=True)
sys.stdin.readline()
"""


@pytest.mark.parametrize("before", ["nothing", "a session"])
def test_of_kernels_that_begin_at_once_exactly_one_goes_on(
    project: Project, notebook: Path, before: str
) -> None:
    first = claim(project, who(notebook)) if before == "a session" else None
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACER, notebook, project.home, f"kernel-{n}.json"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for n in range(6)
    ]  # fmt: skip
    try:
        for each in racers:
            assert each.stdout is not None and each.stdout.readline() == "ready\n"
        for each in racers:
            assert each.stdin is not None
            each.stdin.write("go\n")
            each.stdin.flush()
        said = [each.stdout.readline().split() for each in racers if each.stdout]
    finally:
        for each in racers:
            each.communicate()
    ids = [each[0] for each in said]
    assert len(set(ids)) == 6, "no two kernels own one session"
    assert [each[1] for each in said].count("True") == (1 if first else 0)
    if first is not None:
        assert [each for each in said if each[1] == "True"] == [[first.folder.id, "True", "2"]]
    assert len(sessions.every(project)) == 6


def test_changes_of_kernel_and_worker_are_all_kept(project: Project, notebook: Path) -> None:
    folder = claim(project, who(notebook)).folder
    code = (
        "import sys; from pathlib import Path; from ipymemory import places, sessions\n"
        "folder = places.SessionFolder(Path(sys.argv[1]))\n"
        "for n in range(15):\n"
        "    had = sessions.read(folder).pending\n"
        "    sessions.update(folder, **{sys.argv[2]: f'{n}'})\n"
    )
    names = ("notes_through", "extracted_through", "last_turn")
    command = [sys.executable, "-c", code, str(folder.path)]
    started = [subprocess.Popen([*command, name]) for name in names]
    assert [each.wait() for each in started] == [0, 0, 0]
    record = sessions.read(folder)
    assert [getattr(record, name) for name in names] == ["14"] * 3


def test_a_kernel_of_another_host_owns_for_an_hour(project: Project, notebook: Path) -> None:
    elsewhere = replace(processes.own(), host="elsewhere", boot="b")
    first = claim(project, who(notebook), elsewhere)
    assert not processes.alive(elsewhere)
    assert sessions.owned(first.record, first.folder, NOW + HOUR * 0.99)
    assert sessions.find(project, who(notebook), NOW + HOUR * 0.99).folder is None
    assert not sessions.owned(first.record, first.folder, NOW + HOUR)
    assert sessions.find(project, who(notebook), NOW + HOUR).continues


def test_a_number_that_was_given_to_another_process_owns_nothing(
    project: Project, notebook: Path
) -> None:
    reused = replace(running(), started=running().started + 60)
    first = claim(project, who(notebook), reused)
    assert claim(project, who(notebook), dead()).folder == first.folder


# Renamed, copied, saved.


def test_a_renamed_notebook_goes_on(project: Project, notebook: Path) -> None:
    first = claim(project, who(notebook))
    moved = project.root / "deep" / "better name.ipynb"
    moved.parent.mkdir()
    notebook.rename(moved)
    again = claim(project, who(moved, "kernel-2.json"))
    assert (again.folder, again.continued) == (first.folder, True)
    assert again.record.notebook == str(moved)


def test_a_copied_notebook_starts_anew(project: Project, notebook: Path) -> None:
    first = claim(project, who(notebook))
    copy, link = project.root / "copy.ipynb", project.root / "link.ipynb"
    shutil.copy2(notebook, copy)
    os.link(notebook, link)
    for n, each in enumerate((copy, link)):
        made = claim(project, who(each, f"kernel-{n}b.json"))
        assert (made.continued, made.folder != first.folder) == (False, True)
    assert claim(project, who(notebook, "kernel-3.json")).folder == first.folder


def test_a_notebook_saved_as_a_new_file_goes_on(project: Project, notebook: Path) -> None:
    first = claim(project, who(notebook))
    fresh = project.root / ".new"
    fresh.write_text('{"saved": "by renaming"}')
    notebook.rename(project.root / ".~analysis.ipynb")
    fresh.rename(notebook)
    assert who(notebook).inode != first.record.inode
    again = claim(project, who(notebook, "kernel-2.json"))
    assert (again.folder, again.record.inode) == (first.folder, who(notebook).inode)


@pytest.mark.parametrize("opened_first", ["the renamed one", "the new one"])
def test_a_new_notebook_under_an_old_name_starts_anew(
    project: Project, notebook: Path, opened_first: str
) -> None:
    first = claim(project, who(notebook))
    old = project.root / "old.ipynb"
    notebook.rename(old)
    notebook.write_text("{}")
    order = (old, notebook) if opened_first == "the renamed one" else (notebook, old)
    made = {path: claim(project, who(path, f"kernel-{path.stem}.json")) for path in order}
    assert (made[old].folder, made[old].continued) == (first.folder, True)
    assert made[notebook].continued is False


def test_a_notebook_reached_through_a_link_is_the_same(project: Project, notebook: Path) -> None:
    first = claim(project, who(notebook))
    way = project.root.parent / "way"
    way.symlink_to(project.root, target_is_directory=True)
    again = claim(project, who(way / notebook.name, "kernel-2.json"))
    assert (again.folder, again.record.notebook) == (first.folder, str(notebook))


def test_a_path_that_no_file_can_have_is_no_notebook(project: Project) -> None:
    odd = Identity(Path("/a\0b.ipynb"), None, "", False)
    assert sessions.find(project, odd, NOW).folder is None
    assert sessions.claim(project, odd, NOW, dead()).record.notebook == ""


# On disk.


def test_finding_changes_nothing(project: Project, notebook: Path) -> None:
    assert sessions.find(project, who(notebook), NOW) == sessions.Found()
    assert not project.folder.exists()
    assert (sessions.every(project), sessions.latest_folder(project)) == ([], None)
    assert sessions.expired(project, 1, NOW) == []


def test_claiming_tells_what_project_it_is(project: Project, notebook: Path) -> None:
    made = claim(project, who(notebook), processes.own())
    known = project.properties()
    assert known["root"] == str(project.root)
    assert known["first_seen"]
    told = json.loads(made.folder.record.read_text())
    assert told["kernel"] == processes.own().as_dict()
    assert (told["notebook"], told["version"], told["generation"]) == (str(notebook), 1, 1)
    if os.name == "posix":
        assert made.folder.record.stat().st_mode & 0o777 == 0o600
        assert made.folder.path.stat().st_mode & 0o777 == 0o700


def test_a_record_is_read_as_it_was_written() -> None:
    record = SessionRecord(
        "0193", notebook="/a/b.ipynb", inode=(3, 4), connection="kernel-1.json", previous="0192",
        generation=3, started="t0", last_turn="t1", kernel=processes.own(), worker=dead(),
        notes_through="a", extracted_through="b", pending=("notes",), unknown={"novel": [1]},
    )  # fmt: skip
    value = json.loads(json.dumps(record.as_dict()))
    assert SessionRecord.from_dict(value) == record
    odd = {"inode": [1, "x"], "kernel": {"pid": "x"}, "generation": "x", "pending": 5, "started": 5}
    assert SessionRecord.from_dict({"version": 1} | odd, "0193") == SessionRecord("0193")


@pytest.mark.spec("L13")
def test_a_record_of_a_newer_version_is_only_read(project: Project, notebook: Path) -> None:
    first = claim(project, who(notebook))
    told = json.loads(first.folder.record.read_text()) | {"version": 2, "novel": True}
    first.folder.record.write_text(json.dumps(told))
    before = first.folder.record.read_bytes()
    record = sessions.read(first.folder)
    assert (record.version, record.notebook, record.unknown) == (2, str(notebook), {"novel": True})
    with pytest.raises(FormatError, match=r"newer ipymemory.*pip install --upgrade"):
        sessions.update(first.folder, notes_through="x")
    second = claim(project, who(notebook))
    assert (second.folder != first.folder, second.record.previous) == (True, first.folder.id)
    assert first.folder.record.read_bytes() == before


@pytest.mark.spec("L13")
def test_a_record_of_an_older_version_is_upgraded_and_a_copy_kept(
    project: Project, notebook: Path
) -> None:
    first = claim(project, who(notebook))
    told = json.loads(first.folder.record.read_text()) | {"version": 0, "dropped": "x"}
    first.folder.record.write_text(json.dumps(told))
    before = first.folder.record.read_bytes()
    again = claim(project, who(notebook))
    assert (again.folder, again.record.version) == (first.folder, 1)
    assert (first.folder.path / "session.v0.json").read_bytes() == before
    assert json.loads(first.folder.record.read_text())["dropped"] == "x"
    sessions.update(first.folder, notes_through="y")
    assert (first.folder.path / "session.v0.json").read_bytes() == before


def test_a_broken_record_is_kept_and_costs_no_other(project: Project, notebook: Path) -> None:
    first = claim(project, who(notebook))
    first.folder.record.write_text('{"note')
    second = claim(project, who(notebook))
    assert second.folder != first.folder
    assert first.folder.record.read_text() == '{"note'
    assert {folder for _, folder in sessions.every(project)} == {first.folder, second.folder}
    with pytest.raises(FormatError, match="not valid JSON"):
        sessions.update(first.folder, notes_through="x")


def test_a_folder_in_whose_place_a_file_stands_is_said(project: Project, notebook: Path) -> None:
    project.home.write_text("")
    with pytest.raises(PlaceError, match=r"Move away the file.*or set IPYMEMORY_HOME"):
        claim(project, who(notebook))


def test_sessions_come_newest_first(project: Project, notebook: Path) -> None:
    made = [claim(project, who(None, f"{n}.json"), now=NOW - HOUR * n) for n in (3, 1, 2)]
    order = [made[1].folder, made[2].folder, made[0].folder]
    assert [folder for _, folder in sessions.every(project)] == order
    assert sessions.latest_folder(project) == order[0]
    (project.sessions / ".gone-0193").mkdir()
    (project.sessions / "a file").write_text("")
    assert [folder for _, folder in sessions.every(project)] == order


@pytest.mark.spec("L13")
def test_sessions_expire_by_their_last_turn_and_never_while_a_kernel_lives(
    project: Project,
) -> None:
    day = timedelta(days=1)
    old = claim(project, who(None, "a.json"), now=NOW - day * 401)
    claim(project, who(None, "b.json"), now=NOW - day * 399)
    claim(project, who(None, "c.json"), running(), NOW - day * 500)
    assert sessions.expired(project, 400, NOW) == [old.folder]
    assert len(sessions.expired(project, 100, NOW)) == 2


def test_finding_reads_few_of_many_sessions(
    project: Project, notebook: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(400):
        folder = SessionFolder(project.sessions / f"{n:04}")
        folder.path.mkdir(parents=True)
        folder.transcript.write_text("")
        touch(folder, NOW - timedelta(days=400 - n))
    mine = claim(project, who(notebook))
    read: list[SessionFolder] = []
    real = sessions.read
    monkeypatch.setattr(sessions, "read", lambda folder: [read.append(folder), real(folder)][1])
    assert sessions.find(project, who(notebook), NOW).folder == mine.folder
    assert sessions.find(project, who(notebook, "new.json"), NOW).folder == mine.folder
    assert len(read) == 2, "those idle for longer are not looked at"
    read.clear()
    assert sessions.find(project, who(project.root / "other.ipynb", "x"), NOW).folder is None
    assert len(read) == sessions.MOST_LOOKED_AT
