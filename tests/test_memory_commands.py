"""Memories as people type them: list, show, recall, remember, forget, proposals, undo, doctor."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kernels import Kernel

import ipymemory
from ipymemory import cli, greeting, lines, places
from ipymemory.commands import calling, table
from ipymemory.commands.pages import Page
from ipymemory.commands.place import Place
from ipymemory.commands.remembering import guessed
from ipymemory.config import Settings
from ipymemory.errors import CommandError, IpymemoryError, MemoryMissing, MemoryRefused
from ipymemory.held import resolved
from ipymemory.history import History
from ipymemory.memory_files import Draft, MemoryFolder, Source, opened
from ipymemory.places import Project, SessionFolder

DATES = "Dates in this source are day-first, from the data team"


class Loaded:
    """Stands for the extension's session in a kernel; keeps what it was told."""

    paused, reason, worker, problems = False, "", "not started", ()
    bound: frozenset[str] = frozenset()
    frontend = None

    def __init__(self) -> None:
        self.told: list[tuple[str, dict[str, object]]] = []

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def ask(self, name: str, timeout: float, **arguments: Any) -> Any: ...

    def happened(self, name: str, **details: Any) -> None:
        self.told.append((name, details))

    def let_go(self) -> None: ...


@pytest.fixture
def project(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    root = tmp_path / "work"
    root.mkdir()
    monkeypatch.chdir(root)
    monkeypatch.setenv("JUPYTER_CONFIG_DIR", str(tmp_path / "jupyter"))
    return places.project_of(root, home)


def place(project: Project, live: Loaded | None = None, settings: Settings | None = None) -> Place:
    folder = SessionFolder(project.sessions / "s1") if live else None
    prefix = "%memory " if live else "ipymemory "
    return Place(
        settings or Settings(), project.home, project, lambda _: None, prefix, folder, live
    )


def call(project: Project, text: str, **options: Any) -> Page:
    """Call a command as ``%memory`` does."""
    return table.call(place(project, **options), table.sentence(text) or text.split())


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """Call a command as ``ipymemory`` does."""
    code = cli.main(list(words))
    return code, *capsys.readouterr()


@pytest.mark.spec("E12")
def test_what_is_remembered_is_listed_shown_and_recalled(project: Project) -> None:
    page = call(project, f"remember {DATES}", live=Loaded())
    name = "dates-in-this-source-are-day-first-from-the-data-team"
    run = lines.read(project.history / "log.jsonl")[0][0]["run"][:16]
    assert page.markdown == f"Remembered as `{name}` (project). `%memory undo {run}` takes it back."
    assert page.data["new"]
    assert page.data["source"] == {"session": "s1", "quote": DATES, "origin": "person"}
    listed = call(project, "list")
    assert f"- **{name}** (project, today): {DATES}" in listed.markdown
    assert listed.data[0]["name"] == name
    assert listed.data[0]["age"] == "today"
    shown = call(project, "show dates")
    assert "(project, today; " in shown.markdown
    assert "From: asked for by hand, session s1, 20" in shown.markdown
    assert shown.data["description"] == DATES
    found = call(project, "recall how are dates parsed")
    assert DATES in found.markdown
    assert found.data[0]["name"] == name
    assert found.data[0]["score"] > 0
    assert (found.exit, shown.exit, listed.exit) == (0, 0, 0)
    assert '"memories":["dates-' in (project.folder / "usage.jsonl").read_text()


def test_the_same_twice_is_said(project: Project) -> None:
    call(project, f"remember {DATES}")
    page = call(project, f"remember {DATES}")
    assert page.markdown.startswith("That is remembered already, as `dates-")
    assert not page.data["new"]
    assert call(project, "history").markdown.count("**remember**") == 1


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Amounts are stored in cents", "Actually, amounts are now in euros."),
        ("Always answer in German", "Answer in English, please"),
        ("I prefer tabs over spaces", "I prefer spaces over tabs"),
        ("報告書の締切は金曜日です", "報告書の締切は月曜日です"),
    ],
)
def test_a_change_of_mind_takes_the_old_ones_place_and_says_so(
    project: Project, first: str, second: str
) -> None:
    call(project, f"remember {first}")
    page = call(project, f"remember {second}")
    assert f", in place of what was kept of the same: “{first}”. `ipymemory undo " in page.markdown
    (kept,) = call(project, "list").data
    assert kept["description"] == second.rstrip(".") or kept["body"].strip() == second
    assert page.data["replaced"] == first
    call(project, "undo")
    (back,) = call(project, "list").data
    assert back["description"] == first
    assert call(project, f"recall {first}").data[0]["description"] == first


def test_what_only_shares_words_stays_beside_the_other(project: Project) -> None:
    call(project, "remember The harbour data is from 2019")
    page = call(project, "remember The harbour data is on the share")
    assert "in place of" not in page.markdown
    call(project, "remember Amounts are stored in cents. Tax is apart.")
    call(project, "remember Amounts are stored in euros")
    assert len(call(project, "list").data) == 4


@pytest.mark.spec("L10")
def test_a_change_of_mind_that_waits_says_what_it_would_replace(project: Project) -> None:
    call(project, "remember Amounts are stored in cents")
    call(project, "mode confirm")
    page = call(project, "remember Amounts are stored in euros")
    assert "replace amounts-are-stored-in-cents by [project] Amounts are stored in euros" in (
        page.markdown
    )


@pytest.mark.spec("E7")
def test_the_transcript_is_told(project: Project) -> None:
    live = Loaded()
    call(project, f"remember {DATES}", live=live)
    call(project, "forget dates", live=live)
    name = "dates-in-this-source-are-day-first-from-the-data-team"
    assert live.told == [
        ("memory", {"what": "saved", "memory": name, "kind": "project"}),
        ("memory", {"what": "forgotten", "memory": name, "kind": "project"}),
    ]


@pytest.mark.spec("L12", "L8")
def test_forgotten_undone_and_kept_by_hand(project: Project) -> None:
    call(project, f"remember {DATES}")
    page = call(project, "forget dates")
    assert "It will not be learned again by itself" in page.markdown
    assert call(project, "list").exit == 1
    draft = Draft("project", "x", DATES, DATES)
    assert opened(project, Settings()).forgotten(draft)
    call(project, "undo")
    assert len(call(project, "list").data) == 1
    assert DATES[:20] in (project.memory / "MEMORY.md").read_text()
    assert not opened(project, Settings()).forgotten(draft)
    assert call(project, "recall dates").exit == 0
    call(project, "forget dates")
    call(project, f"remember {DATES}")
    assert not opened(project, Settings()).forgotten(draft)


@pytest.mark.spec("L8")
def test_undo_of_a_save_takes_its_line_too(project: Project) -> None:
    call(project, f"remember {DATES}")
    call(project, "remember Amounts are in cents")
    first = call(project, "history").data[1]["run"]
    page = call(project, f"undo {first}")
    assert page.exit == 0
    assert "dates" not in (project.memory / "MEMORY.md").read_text().lower()
    assert "cents" in (project.memory / "MEMORY.md").read_text()
    assert call(project, "recall dates").exit == 1


@pytest.mark.spec("L8")
def test_a_plain_undo_means_the_memory_and_not_the_notes_written_since(project: Project) -> None:
    call(project, f"remember {DATES}")
    notes = resolved(project.folder / "notes.md")
    run = History(project.history).begin("session_notes", "extractive", "1 turn", (), "")
    run.write(notes, b"what came out\n", seen=None)
    run.close()
    assert DATES in call(project, "diff").markdown
    told = call(project, "undo").markdown
    assert "Undone: remember" in told and "Removed again: " in told and "Put back" not in told
    assert call(project, "list").exit == 1
    assert "Undone: session_notes" in call(project, "undo").markdown
    assert not notes.exists()


@pytest.mark.spec("L8")
def test_a_memory_of_long_ago_gives_way_to_newer_notes(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ipymemory.history.utc_now", lambda: "2026-01-02T03:04:05.000000Z")
    call(project, f"remember {DATES}")
    run = History(project.history).begin("session_notes", "extractive", "1 turn", (), "")
    run.write(resolved(project.folder / "notes.md"), b"what came out\n", seen=None)
    run.close()
    assert "Undone: session_notes" in call(project, "undo").markdown


@pytest.mark.spec("L8")
@pytest.mark.parametrize("folder", [True, False], ids=["in a session", "before the first cell"])
@pytest.mark.parametrize("undone", ["remember", "replace", "forget", "accept"])
def test_the_way_back_that_is_told_leads_back_whatever_was_written_since(
    project: Project, folder: bool, undone: str
) -> None:
    def typed(line: str) -> Page:
        where = place(project, Loaded())
        return table.call(where if folder else replace(where, folder=None), line.split())

    def kept() -> list[str]:
        return sorted(each["description"] for each in call(project, "list").data or ())

    if undone != "remember":
        typed("remember Amounts are in cents")
    if undone == "accept":
        typed("mode confirm")
        waits = typed("remember Dates are day-first").data["id"]
    before = kept()
    said = typed(
        {
            "remember": "remember Dates are day-first",
            "replace": "remember Amounts are in euros",
            "forget": "forget amounts",
            "accept": f"proposals --accept {waits if undone == 'accept' else ''}",
        }[undone]
    ).markdown
    assert kept() != before
    # The notes are brought up to date a second later, by a run of their own.
    notes = project.sessions / "s1" / "notes.md"
    notes.parent.mkdir(parents=True)
    run = History(project.history).begin("session_notes", "extractive", "6 turns", (), "s1")
    run.write(notes.resolve(), b"# Current State\n", seen=None)
    run.close()
    (back,) = re.findall(r"`%memory (undo [^`]*)`", said)
    typed(back)
    assert kept() == before


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("remember don't ever mock the db", "don't ever mock the db"),
        ("remember 'quote it'", "quote it"),
        ('remember "a" and "b"', '"a" and "b"'),
        ("remember use --flag and -x always", "use --flag and -x always"),
        ("remember --type feedback never mock", "never mock"),
        ("remember the cost is $x and {y}", "the cost is $x and {y}"),
        ("remember  日付は日が先 ", "日付は日が先"),
    ],
)
def test_a_sentence_is_kept_as_it_was_typed(project: Project, line: str, kept: str) -> None:
    assert call(project, line).data["source"]["quote"] == kept


def test_other_commands_are_split_as_before() -> None:
    for line in ("notes --section 'Current State'", "status", "", "show 'a b'"):
        assert calling.sentence(table.COMMANDS, line) is None


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Always use polars", "feedback"),
        ("don't mock the db", "feedback"),
        ("I am new to pandas", "user"),
        ("My team is in Oslo", "user"),
        ("The dictionary is at https://example.org/x", "reference"),
        ("The report is due on 2026-12-18", "project"),
    ],
)
@pytest.mark.spec("E1")
def test_the_kind_is_told_from_the_words(text: str, kind: str) -> None:
    assert guessed(text) == kind


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("remember", "TEXT is missing. The right form is: ipymemory remember TEXT"),
        ("remember x --type rule", "There is no type 'rule'. The types are user, feedback"),
        ("list --type feedbak", "did you mean feedback?"),
        ("forget", "NAME is missing. The right form is: ipymemory forget NAME"),
        ("show", "NAME is missing"),
        ("recall", "QUERY is missing"),
        ("recall x -n 0", "-n takes a whole number of at least 1"),
        ("proposals --accept x --refuse y", "not both"),
    ],
)
def test_a_wrong_call_is_refused_with_the_right_form(
    project: Project, line: str, said: str
) -> None:
    with pytest.raises(CommandError) as caught:
        call(project, line)
    assert said in str(caught.value)


@pytest.mark.spec("L7")
def test_a_secret_is_not_remembered(project: Project) -> None:
    with pytest.raises(MemoryRefused, match="looks like a secret"):
        call(project, "remember the token is ghp_abcdefghijklmnopqrstuvwxyz0123456789")
    assert not project.memory.exists()


def test_exit_codes_and_json(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["list"], ["show", "x"], ["recall", "x"], ["forget", "x"]):
        assert run(capsys, *words)[0] == 1
        code, out, _ = run(capsys, *words, "--json")
        assert code == 1
        assert json.loads(out) in ([], None)
    code, out, _ = run(capsys, "remember", DATES, "--type", "reference", "--json")
    assert (code, json.loads(out)["type"]) == (0, "reference")
    code, out, _ = run(capsys, "list", "--type", "reference", "--json")
    assert (code, len(json.loads(out))) == (0, 1)
    assert run(capsys, "list", "--type", "user")[0] == 1
    code, out, _ = run(capsys, "recall", "day", "first", "--json", "-n", "1")
    assert (code, json.loads(out)[0]["type"]) == (0, "reference")
    code, _, err = run(capsys, "remember", "token ghp_abcdefghijklmnopqrstuvwxyz0123456789")
    assert code == 2
    assert "secret" in err
    code, out, _ = run(capsys, "forget", "dates", "--json")
    assert (code, json.loads(out)["description"]) == (0, DATES)


@pytest.mark.spec("L10")
def test_modes(project: Project) -> None:
    call(project, f"remember {DATES}")
    call(project, "mode read")
    assert call(project, "recall dates").exit == 0
    for line in ("remember another thing", "forget dates"):
        with pytest.raises(MemoryRefused, match="No memory is written in mode read"):
            call(project, line)
    call(project, "mode off")
    for line in ("recall dates", "list", "show dates"):
        with pytest.raises(CommandError, match="Memory is off in this project"):
            call(project, line)
    with pytest.raises(MemoryRefused, match="No memory is written in mode off"):
        call(project, "remember another thing")


@pytest.mark.spec("L10")
def test_in_mode_confirm_a_write_waits(project: Project) -> None:
    call(project, f"remember {DATES}")
    call(project, "mode confirm")
    before = sorted((each.name, each.read_bytes()) for each in project.memory.iterdir())
    first = call(project, "remember Amounts are in cents").data["id"]
    second = call(project, "forget dates").data["id"]
    assert sorted((each.name, each.read_bytes()) for each in project.memory.iterdir()) == before
    assert len(list(project.proposals.iterdir())) == 2
    waiting = call(project, "proposals")
    assert "save [project] Amounts are in cents" in waiting.markdown
    assert "forget dates-in-this-source" in waiting.markdown
    call(project, f"proposals --accept {first}")
    call(project, f"proposals --refuse {second}")
    assert len(call(project, "list").data) == 2
    assert call(project, "proposals").data == []
    with pytest.raises(MemoryMissing):
        call(project, f"proposals --accept {first}")
    call(project, "undo")
    assert len(call(project, "list").data) == 1


@pytest.mark.spec("E13")
def test_a_shared_folder_waits_for_a_yes(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    settings = Settings()
    settings.memory.folder = "claude"
    theirs = opened(project, settings).folder
    theirs.mkdir(parents=True)
    # As Claude Code writes one, with a space behind `metadata:`.
    (theirs / "db.md").write_text(
        "---\nname: Database testing\ndescription: No mocks\nmetadata: \n  node_type: memory\n"
        "  type: feedback\n---\n\nNever mock the database.\n"
    )
    (theirs / "MEMORY.md").write_text("- [Database testing](db.md) — its own hook\n")
    assert call(project, "recall mock the database", settings=settings).exit == 0
    page = call(project, f"remember {DATES}", settings=settings)
    assert "the folder is shared with another program" in page.markdown
    assert sorted(each.name for each in theirs.iterdir()) == ["MEMORY.md", "db.md"]
    call(project, f"proposals --accept {page.data['id']}", settings=settings)
    index = (theirs / "MEMORY.md").read_text()
    assert index.startswith("- [Database testing](db.md) — its own hook\n")
    assert "dates-in-this-source" in index
    assert not project.memory.exists()
    # The setting off again, nothing of the shared folder is seen.
    assert call(project, "list").exit == 1
    assert greeting.memories(project) == 0
    assert greeting.memories(project, "claude") == 2


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "![x](https://example.org/pixel.png)",
        "<img src=x onerror=alert(1)>",
        "[x](javascript:alert(1))",
        "\x1b]0;title\x07",
    ],
)
def test_a_memory_is_harmless_where_it_is_shown(project: Project, text: str) -> None:
    folder = MemoryFolder(project.memory, project)
    folder.folder.mkdir(parents=True)
    (folder.folder / "x.md").write_text(
        f"---\nname: x\ndescription: {json.dumps(text)}\ntype: {json.dumps(text)}\n"
        f"metadata:\n  ipymemory_source: {json.dumps({'quote': text, 'origin': text[:20]})}\n"
        f"---\nzebra {text}\n"
    )
    for line in ("list", "show x", "recall zebra"):
        page = call(project, line)
        for shown in (page.markdown, page.text):
            assert "\x1b" not in shown
        for harm in ("<script", "<img", "](javascript", "![x]"):
            assert harm not in page.markdown


# doctor


def test_doctor_says_what_is_wrong_with_memories(project: Project) -> None:
    assert call(project, "doctor").data == []
    call(project, f"remember {DATES}")
    assert call(project, "doctor").data == []
    memory = project.memory
    (memory / "broken.md").write_text("---\nname: “a: b: c\n---\nkept\n")
    (memory / "mine.md").write_text(
        "---\nname: mine\ndescription: d\ntype: user\n---\npassword = 'hunter2hunter2'\n"
    )
    index = (memory / "MEMORY.md").read_text()
    (memory / "MEMORY.md").write_text(index + "- [Gone](gone.md) — mine\n")
    for path in memory.iterdir():
        path.chmod(0o600)
    said = sorted(each["what"] for each in call(project, "doctor").data)
    assert len(said) == 4
    dangling, behind, broken, secret = said
    assert "leads to no file: - [Gone](gone.md)" in dangling
    assert "was behind its files: 2 memories had no line in it" in behind
    assert "broken.md is shown by its name only. Its frontmatter is no valid YAML" in broken
    assert "mine.md holds what looks like a secret" in secret
    again = sorted(each["what"] for each in call(project, "doctor").data)
    assert again == [dangling, broken, secret]
    assert (memory / "broken.md").read_text() == "---\nname: “a: b: c\n---\nkept\n"


def test_doctor_only_says_it_of_a_shared_folder(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    settings = Settings()
    settings.memory.folder = "claude"
    theirs = opened(project, settings).folder
    theirs.mkdir(parents=True)
    (theirs / "x.md").write_text("---\nname: x\ndescription: d\ntype: user\n---\n")
    page = call(project, "doctor", settings=settings)
    assert "have no line in its index" in page.data[0]["what"]
    assert not (theirs / "MEMORY.md").exists()


# Python


def test_python_reads_memories(project: Project) -> None:
    call(project, f"remember {DATES}")
    call(project, "remember Amounts are in cents")
    memories = ipymemory.open(project.root).memories
    assert [each.description for each in memories.recall("how are dates parsed")] == [DATES]
    assert memories.recall("colours") == []
    assert len(memories) == 2
    assert next(each.name for each in memories) == "amounts-are-in-cents"
    assert memories.get("dates").source == Source("", "", (), DATES, "person")
    with pytest.raises(IpymemoryError, match="There is no memory zebra"):
        memories.get("zebra")


def test_purge_of_all_leaves_nothing_of_the_memories(project: Project) -> None:
    call(project, f"remember {DATES}")
    call(project, "recall dates")
    call(project, "forget dates")
    (project.folder / "offered.jsonl").write_text("{}\n")
    call(project, "purge project --memories --yes")
    left = [each for each in project.folder.rglob("*") if each.is_file()]
    assert not [each for each in left if b"day-first" in each.read_bytes()]
    gone = {"memory", "index.sqlite", "listed.json", "forgotten.jsonl", "offered.jsonl"}
    assert not gone & {each.name for each in project.folder.iterdir()}


# In kernels


@pytest.mark.kernel
@pytest.mark.spec("E12")
def test_what_one_notebook_learned_another_recalls(new_kernel: Any, tmp_path: Path) -> None:
    git = tmp_path / "work" / ".git"
    git.mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    for name in ("one", "two"):
        (tmp_path / "work" / name).mkdir()
    first: Kernel = new_kernel("one/one.ipynb")
    assert "no memories yet." in first.run("%load_ext ipymemory").text
    first.run(f"x = 1\n%memory remember {DATES}, isn't it {{x}}")
    assert "**remember**" in first.run("%memory history").markdown
    second: Kernel = new_kernel("two/two.ipynb")
    assert ", 1 memory." in second.run("%load_ext ipymemory").text
    assert "isn't it {x}" in second.run("%memory recall how are dates parsed").text
    assert "one.ipynb" in second.run("%memory show dates").text
    undone = first.run("%memory undo")
    assert "Undone: remember" in undone.text
    assert "There are no memories" in second.run("%memory list").text
