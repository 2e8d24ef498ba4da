"""The commands: how they are called, what they answer, and what they leave."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zipfile
import zlib
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ipymemory import cli, greeting, lines, magics, processes
from ipymemory.commands import calling, table
from ipymemory.commands.amounts import counted, size
from ipymemory.commands.pages import Argument, Arguments, Command, Page
from ipymemory.commands.place import Place
from ipymemory.config import Settings
from ipymemory.errors import ChangedSince, CommandError
from ipymemory.history import History
from ipymemory.places import Project, SessionFolder, config_folder, project_of
from ipymemory.processes import ProcessIdentity
from ipymemory.prompts import NOTES_TEMPLATE
from ipymemory.sessions import Identity, claim, update
from ipymemory.transcript import TranscriptWriter
from ipymemory.turns import new_id, utc_now


def nothing(place: Place, arguments: Arguments) -> Page:
    return Page("")


SHOW = Command(
    "show",
    "show it",
    nothing,
    (
        Argument("PATH", "where"),
        Argument("--section", "which", "NAME", words=True),
        Argument("--now", "at once"),
        Argument("-n", "how many", "N", number=True),
    ),
)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], {}),
        (["a.ipynb"], {"path": "a.ipynb"}),
        (["--now", "a"], {"path": "a", "now": True}),
        (
            ["--section", "Current", "State", "--now"],
            {"section": ["Current", "State"], "now": True},
        ),
        (["--section=Key results"], {"section": ["Key results"]}),
        (["-n", "5"], {"n": 5}),
        (["-n5"], {"n": 5}),
        (["-n=5"], {"n": 5}),
        (["-"], {"path": "-"}),
    ],
)
def test_words_become_arguments(words: list[str], expected: dict[str, object]) -> None:
    default = {"path": None, "section": [], "now": False, "n": None}
    assert calling.parse(SHOW, words, "%memory ") == {**default, **expected}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-n", "0"], "-n takes a whole number of at least 1, not '0'."),
        (["-n", "many"], "-n takes a whole number of at least 1, not 'many'."),
        (["-n"], "-n wants N."),
        (["--section"], "--section wants NAME."),
        (["--now=yes"], "--now takes no value."),
        (["--sectoin", "x"], "--sectoin is unknown here; did you mean --section?"),
        (["--wild"], "--wild is unknown here."),
        (["a", "b"], "There is one word too many: 'b'."),
    ],
)
def test_a_wrong_call_is_answered_with_the_right_form(words: list[str], said: str) -> None:
    with pytest.raises(CommandError) as caught:
        calling.parse(SHOW, words, "%memory ")
    form = "%memory show [PATH] [--section NAME] [--now] [-n N]"
    assert str(caught.value) == f"{said} The right form is: {form}"


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("stauts", "status"), ("note", "notes"), ("histroy", "history"), ("PURGE", "purge")],
)
def test_a_typo_gets_the_nearest_command(typed: str, meant: str) -> None:
    with pytest.raises(CommandError, match=f"Did you mean %memory {meant}\\?"):
        calling.find(table.COMMANDS, typed, "%memory ")


def test_a_word_that_is_near_to_none_gets_the_list() -> None:
    with pytest.raises(CommandError, match="The commands are status, notes, resume, mode, pause,"):
        calling.find(table.COMMANDS, "xyzzy", "%memory ")


def test_every_command_explains_itself() -> None:
    overview = table.overview("%memory ")
    for command in table.COMMANDS.values():
        assert f"%memory {command.name} " in overview
        assert command.summary in overview
        for argument in command.arguments:
            assert argument.help


@pytest.mark.parametrize(
    ("count", "shown"),
    [(0, "0 bytes"), (999, "999 bytes"), (1000, "1.0 KB"), (12_345_678, "12.3 MB")],
)
def test_sizes_read_well(count: int, shown: str) -> None:
    assert size(count) == shown


def test_counts_read_well() -> None:
    assert [counted(n, "turn") for n in (0, 1, 2)] == ["no turns", "1 turn", "2 turns"]


# On a project with sessions on disk.


@pytest.fixture
def project(tmp_path: Path) -> Project:
    root = tmp_path / "work"
    root.mkdir()
    return project_of(root, tmp_path / "home")


@dataclass
class Person:
    """Answers questions with `says`, None for nobody there; keeps what was asked."""

    says: str | None = None
    asked: list[str] = field(default_factory=list)

    def __call__(self, question: str) -> str | None:
        self.asked.append(question)
        return self.says


class Loaded:
    """Stands for the extension's session in a kernel; what it does is proven in test_extension."""

    paused, reason, worker, problems = False, "", "not started", ()
    bound: frozenset[str] = frozenset()
    frontend = None

    def __init__(self) -> None:
        self.calls: list[tuple[object, ...]] = []

    def pause(self) -> None:
        self.calls.append(("pause",))

    def resume(self) -> None:
        self.calls.append(("resume",))

    def ask(self, name: str, timeout: float, **arguments: object) -> object:
        self.calls.append(("ask", name, arguments))
        return {}

    def happened(self, name: str, **details: object) -> None:
        self.calls.append(("happened", name, details))

    def let_go(self) -> None:
        self.calls.append(("let_go",))


def session(project: Project, name: str, *, live: bool = False) -> SessionFolder:
    """Return a session with one turn and notes that the engine wrote in one run."""
    notebook = Identity(project.root / name, None, "", terminal=False)
    kernel = processes.own() if live else replace(processes.own(), pid=2**22 + 1, started=1.0)
    folder = claim(project, notebook, datetime.now(UTC), kernel).folder
    writer = TranscriptWriter(folder, folder.id)
    turn = {"id": new_id(), "time": utc_now()}
    writer.append({"type": "cell", **turn, "kernel": 1, "source": f"x = '{name}'"})
    end = {"execution_count": 1, "status": "ok", "duration_ms": 1.0}
    writer.append({"type": "end", **turn, **end})
    writer.append({"type": "outputs", **turn, "outputs": [], "names": []})
    writer.close()
    run = History(project.history).begin("session_notes", "extractive", "1 turn", [], folder.id)
    run.write(folder.notes.resolve(), NOTES_TEMPLATE.encode(), seen=None)
    run.close()
    run = History(project.history).begin(
        "session_notes", "extractive", "1 turn", [turn["id"]], folder.id
    )
    text = NOTES_TEMPLATE + f"what {name} found\n"
    run.write(folder.notes.resolve(), text.encode(), seen=NOTES_TEMPLATE.encode())
    run.close()
    return folder


def place(
    project: Project,
    folder: SessionFolder | None = None,
    *,
    live: Loaded | None = None,
    person: Person | None = None,
) -> Place:
    return Place(
        Settings(),
        project.folder.parent.parent,
        project,
        ask=person or Person(),
        prefix="%memory " if live else "ipymemory ",
        folder=folder,
        live=live,
    )


def call(where: Place, line: str) -> Page:
    return table.call(where, line.split())


def test_status_of_a_project_without_sessions_writes_nothing(project: Project) -> None:
    page = call(place(project), "status")
    assert "- **Session** none yet" in page.markdown
    assert page.data["kept"] == {
        "sessions": 0, "bytes": 0, "keep_days": 400, "expired": 0, "gone": 0, "memories": 0,
        "proposals": 0,
    }  # fmt: skip
    assert not project.folder.exists()


def test_no_word_at_all_is_the_status(project: Project) -> None:
    assert table.call(place(project), []) == call(place(project), "status")


@pytest.mark.spec("L2")
def test_status_shows_last_success_and_last_error_of_a_service(project: Project) -> None:
    folder = session(project, "a.ipynb")
    line = {"type": "run", "job": "session_notes", "status": "done", "error": ""}
    lines.append(folder.worker_log, {**line, "time": "2026-12-01T10:00:00.000Z"})
    failed = {"status": "failed", "error": "the disk is full"}
    lines.append(folder.worker_log, {**line, "time": "2026-12-01T11:00:00.000Z", **failed})
    page = call(place(project, folder, live=Loaded()), "status")
    assert page.data["services"]["notes"] == {
        "success": "2026-12-01 10:00:00 UTC",
        "failed": "2026-12-01 11:00:00 UTC",
        "error": "the disk is full",
    }
    assert (
        "- **Notes** last success: 2026-12-01 10:00:00 UTC, "
        "last error: 2026-12-01 11:00:00 UTC, the disk is full"
    ) in page.markdown
    assert str(folder.notes) in page.markdown


@pytest.mark.spec("A1", "L12")
def test_status_says_what_an_agent_is_doing(project: Project) -> None:
    class Working(Loaded):
        worker = "running"
        told: object = {"doing": {"magic_docs": "Editing <b>guide.md", "ask": "Reading a file"}}

        def ask(self, name: str, timeout: float, **arguments: object) -> object:
            return self.told

    page = call(place(project, live=Working()), "status")
    assert "- **Now** documents: Editing &lt;b>guide.md" in page.markdown
    assert "- **Now** ask: Reading a file" in page.markdown
    for odd in (None, [], {"doing": []}, {"gates": 3}):
        Working.told = odd
        assert "**Now**" not in call(place(project, live=Working()), "status").markdown


def test_status_says_why_nothing_is_recorded(project: Project) -> None:
    live = Loaded()
    live.reason = "The home folder cannot be written."
    shown = call(place(project, live=live), "status").markdown
    assert "- **Recording** off. The home folder cannot be written." in shown
    live.paused = True
    shown = call(place(project, live=live), "status").markdown
    assert "- **Recording** paused; %memory resume-recording goes on" in shown


@pytest.mark.spec("L12")
@pytest.mark.parametrize("line", ["status", "history", "notes", "doctor", "diff"])
def test_what_a_notebook_keeps_names_no_other_notebook(project: Project, line: str) -> None:
    session(project, "somebody-elses.ipynb")
    own = session(project, "mine.ipynb", live=True)
    page = call(place(project, own, live=Loaded()), line)
    assert "somebody-elses" not in page.markdown + page.plain


@pytest.mark.spec("L12")
@pytest.mark.parametrize("line", ["status", "history", "notes", "diff", "notes --section worklog"])
def test_before_its_first_cell_a_notebook_shows_its_own_last_session_or_none(
    project: Project, line: str
) -> None:
    """What a page shows is saved with the notebook, also before anything was recorded there."""
    own = session(project, "mine.ipynb")
    other = session(project, "somebody-elses.ipynb")
    new = call(place(project, live=Loaded()), line)
    for said in (new.markdown, new.plain, json.dumps(new.data)):
        assert "somebody-elses" not in said and other.id not in said
    again = call(replace(place(project, live=Loaded()), before=own), line)
    assert again == call(place(project, own, live=Loaded()), line)
    assert other.id not in json.dumps(again.data)


def test_notes_are_shown_whole_or_by_section(project: Project) -> None:
    folder = session(project, "a.ipynb")
    where = place(project)
    page = call(where, "notes")
    assert page.plain == page.markdown == folder.notes.read_text()
    assert page.data["sections"][-1] == {"name": "Worklog", "text": "what a.ipynb found"}


def test_a_section_is_found_by_the_beginning_of_its_name(project: Project) -> None:
    session(project, "a.ipynb")
    page = call(place(project), "notes --section worklo")
    assert page.data["sections"] == [{"name": "Worklog", "text": "what a.ipynb found"}]
    with pytest.raises(CommandError, match="no section 'Costs'; they have Session Title, "):
        call(place(project), "notes --section Costs")


def test_notes_now_asks_the_worker_first(project: Project) -> None:
    folder = session(project, "a.ipynb", live=True)
    live = Loaded()
    call(place(project, folder, live=live), "notes --now")
    assert live.calls == [("ask", "update_notes", {"force": True})]


def test_before_the_first_turn_there_are_no_notes(project: Project) -> None:
    assert call(place(project), "notes").plain == (
        "There are no notes yet: they begin with the first cell that runs."
    )


@pytest.mark.spec("L10")
def test_a_mode_is_kept_in_the_project_and_in_the_transcript(project: Project) -> None:
    live = Loaded()
    where = place(project, live=live)
    assert where.mode == "auto"
    assert "Recording and session notes go on" in call(where, "mode read").markdown
    assert where.mode == place(project).mode == "read"
    call(where, "mode read")
    assert live.calls == [("happened", "mode", {"mode": "read", "before": "auto"})]
    with pytest.raises(CommandError, match="did you mean confirm"):
        call(where, "mode confrim")


def test_pause_and_resume_are_for_a_session_that_runs(project: Project) -> None:
    live = Loaded()
    call(place(project, live=live), "pause")
    call(place(project, live=live), "resume-recording")
    assert live.calls == [("pause",), ("resume",)]
    live.paused = True
    # Who types it while recording is paused may mean the other one.
    assert "resume-recording goes on" in call(place(project, live=live), "resume").warnings[0]
    with pytest.raises(CommandError, match="Nothing is being recorded here"):
        call(place(project), "pause")


@pytest.mark.spec("L8")
def test_a_write_is_listed_shown_and_undone(project: Project) -> None:
    folder = session(project, "a.ipynb")
    where = place(project)
    newest = call(where, "history").data[0]
    assert [newest["job"], newest["reason"]] == ["session_notes", "1 turn"]
    assert "+what a.ipynb found" in call(where, f"diff {newest['run'][:16]}").markdown
    page = call(where, "undo")
    assert page.data == {"undone": newest["run"], "files": [str(folder.notes.resolve())]}
    assert folder.notes.read_text() == NOTES_TEMPLATE
    assert "(undone)" in call(where, "history").markdown
    call(where, f"undo {call(where, 'history').data[0]['run']}")
    assert folder.notes.read_text().endswith("what a.ipynb found\n")


@pytest.mark.spec("L8")
def test_status_counts_what_was_taken_back_as_not_covered(project: Project) -> None:
    folder = session(project, "a.ipynb")
    update(folder, notes_through=new_id())
    where = place(project, folder)
    assert "notes cover 1\n" in call(where, "status").markdown
    call(where, "undo")
    assert "notes cover 0; 1 taken back with an undo\n" in call(where, "status").markdown


@pytest.mark.spec("L8")
def test_notes_that_an_undo_emptied_say_so_and_how_to_get_them_back(project: Project) -> None:
    session(project, "a.ipynb")
    where = place(project)
    assert call(where, "notes").warnings == ()
    call(where, "undo")
    said = " ".join(call(where, "notes").warnings)
    assert said.startswith("The notes are empty because an undo of ")
    back = re.search(r"ipymemory (undo \w+) brings it back", said)
    assert back is not None
    call(where, back[1])
    page = call(where, "notes")
    assert "what a.ipynb found" in page.markdown
    assert page.warnings == ()


@pytest.mark.spec("S9")
def test_sections_that_only_a_model_could_fill_are_named(project: Project) -> None:
    folder = session(project, "a.ipynb")
    own = "# Current State\n_Now._\n\n- [1] x\n\n# Ideas\n_Any._\n\n# Data\n_From where._\n"
    folder.notes.write_text(own)
    (said,) = call(place(project), "notes").warnings
    assert said.startswith("Ideas, Data stay empty without a model: ")
    folder.notes.write_text(own.replace("_Any._", "_Any._\nmine").replace("# Data", "# Worklog"))
    assert call(place(project), "notes").warnings == ()


@pytest.mark.spec("L8")
@pytest.mark.parametrize(
    ("says", "undone"), [("y", True), ("", False), ("no", False), (None, False)]
)
def test_undo_asks_before_it_replaces_what_a_person_wrote(
    project: Project, says: str | None, undone: bool
) -> None:
    folder = session(project, "a.ipynb")
    mine = folder.notes.read_text() + "my own line\n"
    folder.notes.write_text(mine)
    person = Person(says)
    where = place(project, person=person)
    if undone:
        call(where, "undo")
    else:
        with pytest.raises(ChangedSince):
            call(where, "undo")
    (question,) = person.asked
    assert "my own line" in question
    assert "what a.ipynb found" in question
    assert folder.notes.read_text() == (NOTES_TEMPLATE if undone else mine)


@pytest.mark.spec("L12")
def test_a_notebook_does_not_show_another_ones_run(project: Project) -> None:
    other = session(project, "other.ipynb")
    own = session(project, "mine.ipynb", live=True)
    run = next(e for e in call(place(project), "history").data if e["session"] == other.id)
    where = place(project, own, live=Loaded())
    assert {e["session"] for e in call(where, "history").data} == {own.id}
    assert "2 runs; `ipymemory history` in a terminal" in call(where, "history").markdown
    for name in ("diff", "undo"):
        with pytest.raises(CommandError, match="belongs to another session"):
            call(where, f"{name} {run['run']}")


def test_a_sound_project_has_no_findings(project: Project) -> None:
    session(project, "a.ipynb")
    page = call(place(project), "doctor")
    assert page.data == []
    assert page.markdown.startswith("Nothing is wrong.")


def test_the_doctor_says_what_is_wrong_and_what_to_do(project: Project) -> None:
    folder = session(project, "a.ipynb")
    with folder.transcript.open("a") as file:
        file.write('{"type": "cell", "id\n')
    folder.notes.write_text(folder.notes.read_text().replace("# Worklog", "# My log"))
    folder.log.write_text("Traceback\nOSError: no space left\n")
    left = folder.path / ".notes.md.1.aa.tmp"
    left.write_text("")
    os.utime(left, (1, 1))
    (project.memory).mkdir(mode=0o755)
    home = project.folder.parent.parent
    template = config_folder(home) / "session-notes" / "template.md"
    template.parent.mkdir(parents=True, mode=0o700)
    template.write_text("no section here\n")
    template.chmod(0o600)
    where = replace(place(project, folder), problems=("Memory.mode must be one of auto.",))
    page = call(where, "doctor")
    shown = "\n".join(f"{each['what']} {each['to_do']}" for each in page.data)
    for sign in (
        "1 line of ",
        "OSError: no space left",
        f"Temporary files of writes that did not end lie about: {left}",
        "Memory.mode must be one of auto.",
        "has no section (a line such as",
        *(["chmod -R go="] if os.name == "posix" else []),
    ):
        assert sign in shown, sign
    template.unlink()
    assert "lack what the template has: Worklog" in call(where, "doctor").markdown


@pytest.mark.parametrize("name", ["out", "out.zip"])
def test_an_export_holds_every_file_and_is_private(
    project: Project, tmp_path: Path, name: str
) -> None:
    session(project, "a.ipynb")
    target = tmp_path / "exports" / name
    page = call(place(project), f"export {target}")
    kept = {
        each.relative_to(project.folder).as_posix()
        for each in project.folder.rglob("*")
        if each.is_file() and ".lock" not in each.name and "lock" not in each.suffix
    }
    if target.suffix:
        with zipfile.ZipFile(target) as archive:
            found = {each.partition("/")[2] for each in archive.namelist()}
            assert archive.testzip() is None
    else:
        found = {e.relative_to(target).as_posix() for e in target.rglob("*") if e.is_file()}
    assert found == kept
    assert page.data["files"] == len(kept)
    assert [each.name for each in target.parent.iterdir()] == [name]
    if os.name == "posix":
        assert target.stat().st_mode & 0o077 == 0
    with pytest.raises(CommandError, match="is there already"):
        call(place(project), f"export {target}")


def test_an_export_goes_nowhere_into_the_memory(project: Project) -> None:
    session(project, "a.ipynb")
    with pytest.raises(CommandError, match="lies in the memory itself"):
        call(place(project), f"export {project.folder / 'copy'}")


def test_purge_shows_asks_and_takes_the_history_too(project: Project) -> None:
    own = session(project, "mine.ipynb", live=True)
    other = session(project, "other.ipynb")
    live, person = Loaded(), Person("y")
    page = call(place(project, own, live=live, person=person), "purge this session")
    (question,) = person.asked
    assert question.startswith("This removes 1 session with transcripts, notes and undo history")
    assert page.plain.startswith("Removed: 1 session")
    assert live.calls == [("let_go",)]
    assert not own.path.exists()
    assert other.notes.exists()
    assert {e["session"] for e in call(place(project), "history").data} == {other.id}
    left = b"".join(zlib.decompress(e.read_bytes()) for e in project.history.glob("images/*/*"))
    assert b"what other.ipynb found" in left
    assert b"what mine.ipynb found" not in left


@pytest.mark.parametrize("says", ["", "n", "maybe"])
def test_purge_removes_nothing_without_a_yes(project: Project, says: str) -> None:
    folder = session(project, "a.ipynb")
    page = call(place(project, person=Person(says)), "purge project")
    assert page.plain == "Nothing was removed."
    assert folder.transcript.exists()


def test_purge_wants_yes_where_nobody_can_be_asked(project: Project) -> None:
    folder = session(project, "a.ipynb")
    with pytest.raises(CommandError, match="say --yes to remove it"):
        call(place(project), "purge project")
    assert folder.transcript.exists()
    call(place(project), "purge project --yes")
    assert not folder.path.exists()
    assert not project.history.exists()
    assert project.record.exists()


def test_memories_go_only_when_they_are_named(project: Project) -> None:
    session(project, "a.ipynb")
    project.memory.mkdir()
    (project.memory / "fact.md").write_text("a fact")
    call(place(project), "purge project --yes")
    assert (project.memory / "fact.md").exists()
    assert call(place(project), "purge project --yes").plain.startswith("Nothing to remove")
    call(place(project), "purge project and memories --yes")
    assert not project.memory.exists()
    with pytest.raises(CommandError, match="purge project --memories"):
        call(place(project), "purge older than 3 days --memories --yes")


def test_purge_leaves_what_another_kernel_records(project: Project) -> None:
    code = (
        "import json; from ipymemory import processes; "
        "print(json.dumps(processes.own().as_dict()), flush=True); input()"
    )
    kernel = subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=Path(__file__).parent.parent,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert kernel.stdout is not None
        held = session(project, "held.ipynb")
        owner = ProcessIdentity.from_dict(json.loads(kernel.stdout.readline()))
        update(held, kernel=owner)
        free = session(project, "free.ipynb")
        page = call(place(project), "purge project --yes")
        assert "1 session that another kernel holds" in page.plain
        assert held.transcript.exists()
        assert not free.path.exists()
        assert {e["session"] for e in call(place(project), "history").data} == {held.id}
    finally:
        kernel.communicate(b"\n")


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege on Windows")
def test_purge_takes_a_link_away_and_not_what_it_points_to(
    project: Project, tmp_path: Path
) -> None:
    own = session(project, "a.ipynb")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "precious.txt").write_text("mine")
    (project.sessions / "linked").symlink_to(elsewhere)
    call(place(project), "purge project --yes")
    assert not own.path.exists()
    assert not (project.sessions / "linked").exists()
    assert (elsewhere / "precious.txt").read_text() == "mine"


def test_purge_by_age_takes_only_the_old(project: Project) -> None:
    old, new = session(project, "old.ipynb"), session(project, "new.ipynb")
    os.utime(old.transcript, (1, 1))
    call(place(project), "purge older than 30 days --yes")
    assert not old.path.exists()
    assert new.transcript.exists()


@pytest.mark.parametrize("line", ["purge everything", "purge older than x days", "purge"])
def test_purge_of_something_unclear_removes_nothing(project: Project, line: str) -> None:
    folder = session(project, "a.ipynb")
    with pytest.raises(CommandError, match="The right form is: ipymemory purge"):
        call(place(project), f"{line} --yes")
    assert folder.transcript.exists()


HOSTILE_NAME = "a\x1b[31m\u202eb\n<img src=x onerror=alert(1)> \x9b2J\x07c"


@pytest.mark.skipif(os.name == "nt", reason="no such names there")
@pytest.mark.spec("L2")
@pytest.mark.parametrize(
    "line", ["status", "list", "cost", "doctor", "undo", "history", "proposals", "export out"]
)
def test_the_name_of_a_folder_does_nothing_where_it_is_shown(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    root = tmp_path / HOSTILE_NAME
    root.mkdir()
    monkeypatch.chdir(root)
    place = Place(Settings(), home, project_of(root, home), lambda _: None, "%memory ")
    table.call(place, ["remember", "the", "gauge", "drifts"])
    page = table.call(place, line.split())
    assert "<img" not in page.markdown
    said: list[str] = []
    monkeypatch.setattr(sys, "stdout", type("Screen", (), {"write": said.append}))
    magics.show(None, page)
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", "".join(said))
    assert all(each not in page.as_json().plain for each in "\x1b\x9b\x07\u202e")
    assert json.loads(page.as_json().plain) == page.data


@pytest.mark.skipif(os.name == "nt", reason="no such names there")
def test_loading_says_one_line_whatever_the_folder_is_called(tmp_path: Path, home: Path) -> None:
    root = tmp_path / HOSTILE_NAME
    root.mkdir()
    line, _ = greeting.line(
        project_of(root, home), Identity(None, None, "", True), datetime.now(UTC)
    )
    assert line.isprintable() and "project ab <img" in line


def test_a_refusal_moves_no_cursor(capsys: pytest.CaptureFixture[str]) -> None:
    assert str(magics.refusal(CommandError("no \x1b[2Jsuch \u202efile"))) == "no such file"
    assert cli.main(["notes", "no\x1b[2J\u202esuch.ipynb"]) == 2
    assert "no file nosuch.ipynb." in capsys.readouterr().err
