"""Every write of an engine is on record, can be shown, and can be taken back."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from ipymemory import files, held
from ipymemory.errors import ChangedSince, HistoryError, PlaceError
from ipymemory.history import History, Run
from ipymemory.images import Images, digest
from ipymemory.turns import new_id


@pytest.fixture
def project(tmp_path: Path) -> Path:
    path = Path(os.path.realpath(tmp_path)) / "project"
    path.mkdir()
    return path


@pytest.fixture
def history(project: Path) -> History:
    return History(project / "history")


@pytest.fixture
def notes(project: Path) -> Path:
    path = project / "notes.md"
    path.write_text("one\n")
    return path


def run_writing(
    history: History,
    path: Path,
    *texts: str | None,
    turns: tuple[str, ...] = ("t1",),
    session: str = "s",
    job: str = "notes",
) -> Run:
    run = history.begin(job, "extractive", "1 turn", turns, session)
    for text in texts:
        seen = path.read_bytes() if path.exists() else None
        run.write(path, None if text is None else text.encode(), seen=seen)
    run.close()
    return run


def test_a_run_that_wrote_nothing_leaves_nothing(history: History) -> None:
    history.begin("notes", "extractive", "1 turn", ("t1",), "s").close()
    assert history.entries(5) == []
    assert history.undone_turns("notes", "s") == frozenset()
    assert not history.folder.exists()
    with pytest.raises(HistoryError, match="nothing an engine wrote"):
        history.diff()
    with pytest.raises(HistoryError, match="nothing left to undo"):
        history.undo()


@pytest.mark.spec("L8")
def test_a_run_is_listed_with_all_that_it_did(history: History, notes: Path) -> None:
    run = run_writing(history, notes, "two\n", "three\n", turns=("t1", "t2"))
    (entry,) = history.entries(5)
    assert (entry.id, entry.job, entry.engine, entry.reason) == (
        run.id,
        "notes",
        "extractive",
        "1 turn",
    )
    assert (entry.turns, entry.session, entry.undone_by) == (("t1", "t2"), "s", "")
    (write,) = entry.writes
    assert write.path == notes
    assert (write.before, write.after, write.size) == (digest(b"one\n"), digest(b"three\n"), 6)
    assert json.loads(json.dumps(entry.as_dict()))["writes"][0]["path"] == str(notes)


@pytest.mark.spec("L8")
def test_each_write_is_logged_before_it_is_made(
    history: History, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[list[str]] = []
    replace = held.Held.replace

    def watched(self: held.Held, data: bytes) -> None:
        text = (history.folder / "log.jsonl").read_text()
        seen.append([json.loads(line)["type"] for line in text.splitlines()])
        assert Images(history.folder / "images").get(digest(b"one\n")) == b"one\n"
        replace(self, data)

    monkeypatch.setattr(held.Held, "replace", watched)
    run_writing(history, notes, "two\n", "three\n")
    assert seen == [["run", "write"], ["run", "write", "wrote", "write"]]


def test_the_log_is_on_the_disk_itself_before_the_write(
    history: History, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    fsync, replace = os.fsync, held.Held.replace

    def watched(descriptor: int) -> None:
        synced.append(os.fstat(descriptor).st_ino)
        fsync(descriptor)

    def checked(self: held.Held, data: bytes) -> None:
        assert synced[-1] == (history.folder / "log.jsonl").stat().st_ino
        replace(self, data)

    monkeypatch.setattr(os, "fsync", watched)
    monkeypatch.setattr(held.Held, "replace", checked)
    run_writing(history, notes, "two\n", "three\n")


@pytest.mark.spec("L8")
def test_diff_shows_one_run_also_after_later_ones(history: History, notes: Path) -> None:
    first = run_writing(history, notes, "one\ntwo\n")
    run_writing(history, notes, "one\ntwo\nthree")
    assert history.diff(first.id) == (
        "--- notes.md before\n+++ notes.md after\n@@ -1 +1,2 @@\n one\n+two\n"
    )
    assert "+three\n" in history.diff()
    assert "+two" not in history.diff()


@pytest.mark.spec("L8")
def test_undo_puts_back_what_was_there_and_undoing_that_brings_it_again(
    history: History, notes: Path
) -> None:
    first = run_writing(history, notes, "two\n", turns=("t1",))
    second = run_writing(history, notes, "three\n", turns=("t2",))
    assert history.undo() == [notes]
    assert notes.read_text() == "two\n"
    assert history.is_undone(second.id)
    assert not history.is_undone(first.id)
    assert history.undone_turns("notes", "s") == {"t2"}
    assert history.undone_turns("notes", "other") == history.undone_turns("docs", "s") == set()

    back = history.entries(1)[0]
    assert (back.undoes, back.engine, back.job) == (second.id, "person", "notes")
    with pytest.raises(HistoryError, match=f"undo {back.id} to have it back"):
        history.undo(second.id)

    assert history.undo() == [notes]
    assert notes.read_text() == "one\n"
    assert history.undone_turns("notes", "s") == {"t1", "t2"}
    history.undo(history.entries(1)[0].id)
    history.undo(back.id)
    assert notes.read_text() == "three\n"
    assert history.undone_turns("notes", "s") == set()
    assert not history.is_undone(second.id)


def test_a_file_that_a_run_made_goes_with_it_and_comes_back(
    history: History, project: Path
) -> None:
    path = project / "new.md"
    run_writing(history, path, "made\n")
    assert "+made" in history.diff()
    history.undo()
    assert not path.exists()
    history.undo(history.entries(1)[0].id)
    assert path.read_text() == "made\n"
    run_writing(history, path, None)
    assert not path.exists()
    assert "-made" in history.diff()
    history.undo()
    assert path.read_text() == "made\n"


@pytest.mark.spec("L8")
def test_undo_asks_when_somebody_wrote_since(history: History, notes: Path) -> None:
    run = run_writing(history, notes, "two\n")
    notes.write_text("a person's\n")
    with pytest.raises(ChangedSince, match="has changed since run") as caught:
        history.undo(run.id)
    (versions,) = caught.value.versions
    assert versions.path == notes
    assert (versions.before, versions.left, versions.now) == ("one\n", "two\n", "a person's\n")
    assert notes.read_text() == "a person's\n"
    assert not history.is_undone(run.id)
    assert len(history.entries()) == 1

    assert history.undo(run.id, force=True) == [notes]
    assert notes.read_text() == "one\n"
    history.undo(history.entries(1)[0].id)
    assert notes.read_text() == "a person's\n", "what was replaced is kept too"


def test_undo_of_a_file_that_was_deleted_since(history: History, notes: Path) -> None:
    run = run_writing(history, notes, "two\n")
    notes.unlink()
    with pytest.raises(ChangedSince) as caught:
        history.undo(run.id)
    assert caught.value.versions[0].now is None
    history.undo(run.id, force=True)
    assert notes.read_text() == "one\n"


@pytest.mark.spec("L6")
def test_undo_follows_no_link(history: History, notes: Path, tmp_path: Path) -> None:
    run = run_writing(history, notes, "two\n")
    outside = tmp_path / "outside.md"
    outside.write_text("two\n")
    notes.unlink()
    notes.symlink_to(outside)
    for force in (False, True):
        with pytest.raises(PlaceError, match="is a link"):
            history.undo(run.id, force=force)
    assert outside.read_text() == "two\n"
    assert not history.is_undone(run.id)


def test_what_is_forgotten_is_gone_and_the_rest_stays(history: History, notes: Path) -> None:
    run_writing(history, notes, "two\n", session="a", turns=("a1",))
    history.undo()
    run_writing(history, notes, "three\n", session="b")
    history.forget(["a"])
    assert [each.session for each in history.entries()] == ["b"]
    assert history.undone_turns("notes", "a") == set()
    assert "+three" in history.diff()
    history.forget(["b"])
    assert history.entries() == []
    assert [each for each in (history.folder / "images").glob("??/*") if each.is_file()] == []


def test_undo_is_all_or_nothing(history: History, notes: Path, project: Path) -> None:
    other = project / "other.md"
    other.write_text("one\n")
    run = history.begin("notes", "extractive", "", (), "s")
    run.write(notes, b"two\n", seen=b"one\n")
    run.write(other, b"two\n", seen=b"one\n")
    run.close()
    other.write_text("a person's\n")
    with pytest.raises(ChangedSince):
        history.undo()
    assert notes.read_text() == "two\n"
    assert set(history.undo(force=True)) == {notes, other}


def test_undo_of_what_a_person_undid_by_hand_is_on_record(history: History, notes: Path) -> None:
    run = run_writing(history, notes, "two\n", turns=("t1",))
    notes.write_text("one\n")
    assert history.undo(run.id) == []
    assert history.undone_turns("notes", "s") == {"t1"}
    assert history.entries(1)[0].undoes == run.id


def test_runs_are_found_by_how_they_begin(history: History, notes: Path) -> None:
    first = run_writing(history, notes, "two\n")
    assert history.find(first.id[:10]).id == first.id
    run_writing(history, notes, "three\n")
    with pytest.raises(HistoryError, match="2 runs begin with"):
        history.find(first.id[:5])
    with pytest.raises(HistoryError, match="no run zzz"):
        history.diff("zzz")


def test_a_write_over_what_the_tool_did_not_see_is_refused(history: History, notes: Path) -> None:
    run = history.begin("notes", "extractive", "", (), "s")
    notes.write_text("a person's\n")
    with pytest.raises(HistoryError, match="changed by somebody else"):
        run.write(notes, b"two\n", seen=b"one\n")
    assert notes.read_text() == "a person's\n"
    assert history.entries() == []


def test_no_log_no_write(history: History, notes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = history.begin("notes", "extractive", "", (), "s")
    (history.folder / "log.jsonl").mkdir(parents=True)
    with pytest.raises((HistoryError, PlaceError)):
        run.write(notes, b"two\n", seen=b"one\n")
    assert notes.read_text() == "one\n"


def test_a_folder_that_cannot_be_made_stops_the_write(notes: Path, project: Path) -> None:
    (project / "file").write_text("")
    run = History(project / "file" / "history").begin("notes", "extractive", "", (), "s")
    with pytest.raises(HistoryError):
        run.write(notes, b"two\n", seen=b"one\n")
    assert notes.read_text() == "one\n"


def test_a_newer_versions_log_is_only_read(history: History, notes: Path) -> None:
    run_writing(history, notes, "two\n")
    log = history.folder / "log.jsonl"
    log.write_text(log.read_text().replace('"version":1', '"version":2'))
    history = History(history.folder)
    assert len(history.entries()) == 1
    assert "+two" in history.diff()
    with pytest.raises(HistoryError, match="newer ipymemory"):
        run_writing(history, notes, "three\n")
    with pytest.raises(HistoryError, match="newer ipymemory"):
        history.undo()
    assert notes.read_text() == "two\n"


def test_a_damaged_line_hides_no_other(history: History, notes: Path) -> None:
    run_writing(history, notes, "two\n")
    log = history.folder / "log.jsonl"
    with log.open("ab") as file:
        file.write(b'{"type":"run","run":"x"}\n{"type":"write"}\n{"type":"left_out"}\n{"torn')
    run_writing(history, notes, "three\n")
    assert len(History(history.folder).entries()) == 2
    history.undo()
    assert notes.read_text() == "two\n"


def test_a_damaged_image_is_told_and_nothing_is_written(history: History, notes: Path) -> None:
    run_writing(history, notes, "two\n")
    image = history.folder / "images" / digest(b"one\n")[:2] / digest(b"one\n")[2:]
    image.write_bytes(zlib.compress(b"something else"))
    with pytest.raises(HistoryError, match="is damaged"):
        history.undo()
    image.write_bytes(b"no zlib")
    with pytest.raises(HistoryError, match="cannot be read"):
        history.undo()
    image.unlink()
    with pytest.raises(HistoryError, match="no longer kept"):
        history.undo()
    assert notes.read_text() == "two\n"
    assert "no longer kept" in history.diff()
    assert len(history.entries()) == 1


def test_a_moved_home_keeps_its_history(history: History, notes: Path, project: Path) -> None:
    run_writing(history, notes, "two\n")
    moved = project.rename(project.parent / "moved")
    assert History(moved / "history").undo() == [moved / "notes.md"]
    assert (moved / "notes.md").read_text() == "one\n"


def test_it_stays_bounded_and_forgets_no_undo(project: Path, notes: Path) -> None:
    history = History(project / "history", keep=10)
    for n in range(60):
        run_writing(history, notes, f"text {n}\n", turns=(f"t{n}",))
        if n % 7 == 0:
            history.undo()
    runs = [each for each in history.entries() if not each.undoes]
    assert 10 <= len(runs) <= 11
    assert {each.undoes for each in history.entries() if each.undoes} <= {r.id for r in runs}
    assert history.undone_turns("notes", "s") == {f"t{n}" for n in range(0, 60, 7)}
    assert History(project / "history").undone_turns("notes", "s") == {
        f"t{n}" for n in range(0, 60, 7)
    }
    images = [each for each in (history.folder / "images").glob("??/*") if each.is_file()]
    assert len(images) <= 2 * 11 + 3
    for entry in runs:
        assert history.diff(entry.id)


def test_one_jobs_runs_do_not_push_out_anothers(project: Path, notes: Path) -> None:
    history = History(project / "history", keep=3)
    run_writing(history, notes, "dream\n", job="dream")
    for n in range(20):
        run_writing(history, notes, f"{n}\n")
    assert [each.job for each in history.entries()].count("dream") == 1


def test_what_one_process_logs_another_sees(history: History, notes: Path) -> None:
    other = History(history.folder)
    assert other.entries() == []
    run_writing(history, notes, "two\n", turns=("t1",))
    assert len(other.entries()) == 1
    other.undo()
    assert history.undone_turns("notes", "s") == {"t1"}
    (history.folder / "log.jsonl").unlink()
    assert history.entries() == other.entries() == []


def test_standing_is_the_run_whose_text_is_in_the_file(history: History, notes: Path) -> None:
    assert history.standing(notes) is None
    assert not history.knows(notes)

    def standing() -> str:
        entry = history.standing(notes)
        return entry.id if entry else ""

    a = run_writing(history, notes, "a\n")
    b = run_writing(history, notes, "b\n")
    assert standing() == b.id
    history.undo()
    undo_b = history.entries(1)[0].id
    assert standing() == a.id
    history.undo()
    undo_a = history.entries(1)[0].id
    assert standing() == ""
    assert history.knows(notes)
    history.undo(undo_a)
    assert standing() == a.id
    history.undo(undo_b)
    assert standing() == b.id
    c = run_writing(history, notes, "c\n")
    history.undo(b.id, force=True)
    assert notes.read_text() == "a\n"
    assert standing() == a.id
    assert not history.is_undone(c.id)


_KILLED = """
import os, signal, sys
from pathlib import Path
from ipymemory.history import History

top, undoing = Path(sys.argv[1]), sys.argv[2] == "True"

def once(step, home):
    count = 0

    def killing(function):
        # Every change of the disk is two steps: killed just before it, and just after.
        def wrapped(*args, **kwargs):
            nonlocal count
            count += 1
            if count == step:
                os.kill(os.getpid(), signal.SIGKILL)
            value = function(*args, **kwargs)
            count += 1
            if count == step:
                os.kill(os.getpid(), signal.SIGKILL)
            return value
        return wrapped

    for name in ("open", "write", "replace", "fsync"):
        setattr(os, name, killing(getattr(os, name)))
    history = History(home / "history")
    run = history.begin("notes", "extractive", "1 turn", ("t1",), "s")
    path = home / "notes.md"
    for text in (b"two\\n", b"three\\n"):
        run.write(path, text, seen=path.read_bytes())
    run.close()
    if undoing:
        history.undo()

step = 0
while True:
    step += 1
    home = top / f"{step:04d}"
    home.mkdir()
    (home / "notes.md").write_text("one\\n")
    child = os.fork()
    if not child:
        try:
            once(step, home)
            os._exit(7)
        except BaseException:
            os._exit(1)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code == 7:
        break
    if code != -signal.SIGKILL:
        sys.exit(f"step {step} ended with {code}")
"""


@pytest.mark.spec("L8")
@pytest.mark.parametrize("undoing", [False, True])
def test_killed_at_every_step_it_still_can_be_read_and_undone(project: Path, undoing: bool) -> None:
    if not hasattr(os, "fork"):
        return
    command = [sys.executable, "-c", _KILLED, str(project), str(undoing)]
    subprocess.run(command, check=True, cwd=Path(__file__).parent.parent)
    landed = []
    for home in sorted(project.iterdir()):
        path = home / "notes.md"
        history = History(home / "history")
        now = path.read_text()
        landed.append(now)
        written = [each for each in history.entries() if each.writes and not each.undoes]
        if now != "one\n":
            (entry,) = written
            assert entry.writes[0].after == digest(now.encode())
            assert "-one" in history.diff(entry.id)
            assert history.undone_turns("notes", "s") == set()
            assert history.undo() == [path]
        elif written:
            # the undo came to pass, so its turns count as undone
            assert undoing
            assert history.undone_turns("notes", "s") == {"t1"}
        assert path.read_text() == "one\n"
        run_writing(history, path, "four\n", turns=("t4",))
        assert history.undo() == [path]
        assert path.read_text() == "one\n"
        assert "t4" in history.undone_turns("notes", "s")
    texts = list(dict.fromkeys(landed))
    assert texts == ["one\n", "two\n", "three\n"]
    assert landed[-1] == ("one\n" if undoing else "three\n")
    assert len(landed) > 40


def test_images_are_stored_once_and_compressed(tmp_path: Path) -> None:
    images = Images(tmp_path / "images")
    name = images.put(b"x" * 10_000)
    path = tmp_path / "images" / name[:2] / name[2:]
    assert path.stat().st_size < 200
    stamp = path.stat().st_mtime_ns
    assert images.put(b"x" * 10_000) == name
    assert path.stat().st_mtime_ns == stamp
    assert images.get(name) == b"x" * 10_000
    other = images.put(b"y")
    images.keep_only({other})
    assert images.get(other) == b"y"
    with pytest.raises(HistoryError, match="no longer kept"):
        images.get(name)


def test_a_lock_that_hangs_is_told(
    history: History, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from filelock import FileLock

    files.make_folder(history.folder)
    monkeypatch.setattr(history._lock, "timeout", 0.05)
    with FileLock(history.folder / ".lock"), pytest.raises(HistoryError, match="Another process"):
        history.begin("notes", "extractive", "", (), new_id()).write(notes, b"x", seen=b"one\n")
    assert notes.read_text() == "one\n"
