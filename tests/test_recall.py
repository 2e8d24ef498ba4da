"""Recall finds what answers a question, and nothing rather than noise."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
import recall_set

from ipymemory import places
from ipymemory.history import History, Run
from ipymemory.memory_files import Draft, MemoryFolder, drafts
from ipymemory.places import Project
from ipymemory.recall import Recall, database, words
from ipymemory.recall.ranking import Candidate, ranked, worth

WHEN = "2026-12-02T05:10:11.123Z"
NOTES = {
    "dates": "Dates in this source are day-first, from the data team",
    "database": "Integration tests hit a real database: never mock it",
    "cents": "Amounts are stored in cents, so divide `amount_total` by 100",
    "loader": "Use load_csv from our own package, it knows the encoding",
    "parser": "HTMLParser chokes on the export of 2019; strip the header first",
    "deadline": "The board report is due on 2026-12-18",
    "wiki": "The data dictionary is at https://wiki.example.org/data",
    "role": "I am a climate scientist and new to pandas",
    "chinese": "日期格式是日在前，数据来自数据组",
    "japanese": "この顧客データは毎週月曜日に更新される",
    "korean": "날짜는 일이 먼저 온다",
    "thai": "วันที่ในไฟล์นี้เริ่มด้วยวัน",
    "german": "Größe steht in Zentimetern, nicht in Metern",
    "french": "Les données sont arrivées après l'été",
}


@pytest.fixture
def project(tmp_path: Path, home: Path) -> Project:
    root = tmp_path / "work"
    root.mkdir()
    return places.project_of(root, home)


@pytest.fixture
def folder(project: Project) -> MemoryFolder:
    folder = MemoryFolder(project.memory, project)
    project.memory.mkdir(parents=True)
    for name, text in NOTES.items():
        draft = Draft("project", name, text, text)
        (project.memory / f"{name}.md").write_text(drafts.file_text(name, draft, WHEN))
    return folder


@pytest.fixture(params=["index", "no index"])
def recall(
    request: pytest.FixtureRequest,
    project: Project,
    folder: MemoryFolder,
    monkeypatch: pytest.MonkeyPatch,
) -> Recall:
    """Recall with its index, and as it is where SQLite has no FTS5."""
    if request.param == "no index":
        without_fts5(monkeypatch)
    return Recall(project, folder)


def without_fts5(monkeypatch: pytest.MonkeyPatch) -> None:
    # What an SQLite that was built without it says.
    monkeypatch.setattr(database, "_TABLES", database._TABLES.replace("fts5(", "fts6("))


def begun(project: Project) -> Run:
    return History(project.history).begin("extraction", "extractive", "a test", (), "s1")


def names(
    recall: Recall, question: str, n: int = 5, without: frozenset[str] = frozenset()
) -> list[str]:
    return [each.memory.name for each in recall.find(question, n, without)]


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("how are dates parsed", "dates"),
        ("Is the date day first?", "dates"),
        ("may I mock the database in a test?", "database"),
        ("what is amount_total", "cents"),
        ("amountTotal", "cents"),
        ("loadCsv", "loader"),
        ("load_csv", "loader"),
        ("loadcsv", "loader"),
        ("csv encoding", "loader"),
        ("html parser", "parser"),
        ("parsing html exports", "parser"),
        ("when is the board report due", "deadline"),
        ("climate science", "role"),
        ("日期", "chinese"),
        ("日期格式是什么？", "chinese"),
        ("数据组", "chinese"),
        ("顧客データ", "japanese"),
        ("月曜日", "japanese"),
        ("날짜", "korean"),
        ("วันที่", "thai"),
        ("größe", "german"),
        ("GROSSE", "german"),
        ("donnees", "french"),
        ("DONNÉES", "french"),
    ],
)
def test_a_question_finds_its_memory(recall: Recall, question: str, found: str) -> None:
    assert names(recall, question)[:1] == [found]


@pytest.mark.parametrize(
    "question",
    [
        "how do I change the colour of a plot",
        "what is the weather in Paris",
        "why",
        "what should I do about this",
        "",
        "   ",
        "?!",
        "天气",
        "which one of these is the data that I use to make the animated histogram of rainfall",
        '"',
    ],
)
def test_nothing_is_an_answer(recall: Recall, question: str) -> None:
    assert names(recall, question) == []


@pytest.mark.parametrize(
    "question",
    [
        '" OR 1', "dates AND NOT dates", "dates*", "NEAR(dates day)", "head: dates", "-dates",
        "dates'; DROP TABLE memories; --", "(dates", "^dates", "dates\x00", "\ud800 dates", "{x}",
        "x" * 100_000, "dates " * 2000,
    ],
)  # fmt: skip
def test_no_question_is_a_command(recall: Recall, question: str) -> None:
    found = names(recall, question)
    assert found in ([], ["dates"])
    assert names(recall, "dates day first") == ["dates"]


def test_at_most_so_many_and_none_twice(recall: Recall, project: Project) -> None:
    for n in range(8):
        recall.memory.save(
            Draft(
                "project", f"Sensor {n}", f"Sensor {n} drifts", f"Sensor {n} drifts in the cold."
            ),
            begun(project),
        )
    first = names(recall, "sensor drift")
    assert len(first) == len(set(first)) == 5
    second = names(recall, "sensor drift", without=frozenset(first))
    assert len(second) == 3
    assert not set(first) & set(second)
    assert len(names(recall, "sensor drift", 2)) == 2
    assert names(recall, "sensor drift", 0) == []


def test_a_named_one_beats_one_that_mentions(recall: Recall, project: Project) -> None:
    long = "We met and spoke of the budget, the holidays, a new printer, and once of sensors."
    recall.memory.save(Draft("project", "Meeting", "Notes of a meeting", long), begun(project))
    recall.memory.save(
        Draft("project", "Sensors", "Sensors drift in the cold", "Check them."), begun(project)
    )
    assert names(recall, "sensors") == ["sensors", "meeting"]


def test_kind_age_and_use_order_what_is_equal() -> None:
    def one(name: str, kind: str = "project", modified: str = "2026-01-01") -> Candidate:
        return Candidate(name, kind, modified, frozenset({"a"}), frozenset({"a"}))

    worths = worth(["a"], {"a": 3}, 10)
    order = [name for name, _ in ranked([one("b"), one("a")], worths, {})]
    assert order == ["a", "b"]
    assert ranked([one("a"), one("b", "feedback")], worths, {})[0][0] == "b"
    assert ranked([one("a"), one("b", modified="2026-02-01")], worths, {})[0][0] == "b"
    assert ranked([one("a"), one("b")], worths, {"b": 3})[0][0] == "b"
    more = Candidate("z", "reference", "2020-01-01", frozenset(), frozenset({"a", "c"}))
    both = worth(["a", "c"], {"a": 3, "c": 3}, 10)
    assert ranked([one("a", "feedback", "2026-02-01"), more], both, {"a": 9})[0][0] == "z"


def test_a_common_word_alone_is_no_answer() -> None:
    worths = worth(["data", "plot", "rain"], {"data": 90}, 100)
    common = Candidate("x", "project", "", frozenset({"data"}), frozenset({"data"}))
    assert ranked([common], worths, {}) == []


def test_the_current_one_is_recalled(recall: Recall, project: Project) -> None:
    draft = Draft("feedback", "Decimal mark", "Numbers use a decimal comma", "", subject="numbers")
    recall.memory.save(draft, begun(project))
    assert names(recall, "decimal comma") == ["decimal-mark"]
    later = Draft("feedback", "x", "Numbers use a decimal point", "", subject="numbers")
    recall.memory.save(later, begun(project))
    found = recall.find("decimal mark in numbers")
    assert [each.memory.description for each in found] == ["Numbers use a decimal point"]
    old = "---\nname: old\ndescription: zebra\nsuperseded_by: x\n---\nzebra\n"
    (recall.memory.folder / "old.md").write_text(old)
    assert names(recall, "zebra") == []


def test_a_persons_edit_is_found(recall: Recall, project: Project) -> None:
    assert names(recall, "zebra") == []
    path = recall.memory.folder / "cents.md"
    path.write_text(path.read_text().replace("Amounts", "Zebra amounts"))
    recall.sync()
    assert names(recall, "zebra") == ["cents"]
    path.unlink()
    assert names(recall, "amounts in cents") == []
    (recall.memory.folder / "new.md").write_text("A quagga, without frontmatter.\n")
    assert names(recall, "quagga") == ["new"]


def test_all_of_a_long_memory_is_found(recall: Recall, project: Project) -> None:
    body = "\n".join(["line"] * 60 + ["and here the word okapi"])
    recall.memory.save(Draft("project", "Long", "A long one", body), begun(project))
    found = recall.find("okapi")
    assert [each.memory.name for each in found] == ["long"]
    assert "okapi" in found[0].memory.body


@pytest.mark.spec("L12")
def test_what_is_forgotten_is_in_no_index(project: Project, folder: MemoryFolder) -> None:
    secret = Draft("user", "Okapi", "I keep an okapi", "okapi okapi")
    recall = Recall(project, folder)
    folder.save(secret, begun(project))
    assert names(recall, "okapi") == ["okapi"]
    index = project.folder / "index.sqlite"
    assert b"okapi" in index.read_bytes()
    with database.Database(index).opened() as db:
        assert db.execute("PRAGMA secure_delete").fetchone() == (1,)
    folder.forget("okapi", begun(project))
    assert b"okapi" not in index.read_bytes()
    assert names(recall, "okapi") == []


def test_the_index_is_disposable(project: Project, folder: MemoryFolder) -> None:
    recall, index = Recall(project, folder), project.folder / "index.sqlite"
    assert names(recall, "dates") == ["dates"]
    if os.name == "posix":
        assert index.stat().st_mode & 0o777 == 0o600
    index.unlink()
    assert names(recall, "dates") == ["dates"]
    assert index.exists()


@pytest.mark.parametrize("damage", ["text", "truncated", "flipped", "empty", "older", "tables"])
def test_a_damaged_index_comes_back(project: Project, folder: MemoryFolder, damage: str) -> None:
    index = project.folder / "index.sqlite"
    assert names(Recall(project, folder), "dates") == ["dates"]
    data = index.read_bytes()
    if damage == "text":
        index.write_bytes(b"this is no database " * 500)
    elif damage == "truncated":
        index.write_bytes(data[: len(data) // 2])
    elif damage == "flipped":
        index.write_bytes(data[:4096] + bytes(255 - each for each in data[4096:]))
    elif damage == "empty":
        index.write_bytes(b"")
    elif damage == "older":
        with sqlite3.connect(index) as db:
            db.execute("PRAGMA user_version=0")
        db.close()
    else:
        with sqlite3.connect(index) as db:
            db.execute("DROP TABLE memories")
        db.close()
    assert names(Recall(project, folder), "dates") == ["dates"]
    assert names(Recall(project, folder), "日期") == ["chinese"]


def test_a_held_index_is_done_without(
    project: Project, folder: MemoryFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "WAIT_SECONDS", 0.05)
    assert names(Recall(project, folder), "dates") == ["dates"]
    folder.save(Draft("project", "Okapi", "An okapi", ""), begun(project))
    db = sqlite3.connect(project.folder / "index.sqlite", isolation_level=None)
    db.execute("BEGIN EXCLUSIVE")
    try:
        assert names(Recall(project, folder), "okapi") == ["okapi"]
    finally:
        db.close()


def test_an_index_that_cannot_be_made_is_done_without(
    project: Project, folder: MemoryFolder
) -> None:
    (project.folder / "index.sqlite").mkdir()
    assert names(Recall(project, folder), "dates") == ["dates"]
    folder.forget("dates", begun(project))
    assert names(Recall(project, folder), "dates") == []


def test_a_folder_that_is_not_there_answers_nothing(project: Project) -> None:
    assert Recall(project, MemoryFolder(project.memory, project)).find("dates") == ()


@pytest.mark.spec("L10")
def test_off_reads_nothing(project: Project, folder: MemoryFolder) -> None:
    off = MemoryFolder(project.memory, project, mode="off")
    assert Recall(project, off).find("dates") == ()
    assert not (project.folder / "index.sqlite").exists()


def test_two_processes_share_an_index(project: Project, folder: MemoryFolder) -> None:
    recall = Recall(project, folder)
    assert names(recall, "dates") == ["dates"]
    code = (
        "import sys\nfrom pathlib import Path\nfrom ipymemory import places\n"
        "from ipymemory.memory_files import MemoryFolder\nfrom ipymemory.recall import Recall\n"
        "project = places.project_of(Path(sys.argv[1]), Path(sys.argv[2]))\n"
        "found = Recall(project, MemoryFolder(project.memory, project)).find('okapi')\n"
        "print([each.memory.name for each in found])\n"
    )
    folder.save(Draft("project", "Okapi", "An okapi", ""), begun(project))
    done = subprocess.run(
        [sys.executable, "-c", code, project.root, project.home],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "['okapi']"
    assert names(recall, "okapi") == ["okapi"]


def test_use_is_on_record(project: Project, folder: MemoryFolder) -> None:
    recall = Recall(project, folder)
    recall.used([])
    assert not (project.folder / "usage.jsonl").exists()
    recall.used(["dates", "cents"], "s1")
    assert recall._uses() == {"dates": 1, "cents": 1}


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("load_csv", ["load", "csv", "loadcsv"]),
        ("loadCsv", ["load", "csv", "loadcsv"]),
        ("HTMLParser2", ["html", "parser", "2", "htmlparser2"]),
        ("__init__", ["init"]),
        ("x" * 65, []),
        ("Parse parses parsed parsing", ["pars"] * 4),
        ("stopped", ["stop"]),
        ("data's", ["data", "s"]),
        ("2026-12-18", ["2026", "12", "18"]),
    ],
)
def test_words_become_terms(text: str, terms: list[str]) -> None:
    assert list(words.terms(text)) == terms


def test_terms_are_plain() -> None:
    for text in NOTES.values():
        for term in words.terms(text):
            assert term.isascii()
            assert term.isalnum()
            assert term == term.lower()


@pytest.fixture
def asked_of_many(project: Project, tmp_path: Path) -> tuple[recall_set.Find, dict[str, str]]:
    """Find over the memories of the set, and which of them each name is."""
    project.memory.mkdir(parents=True)
    known = recall_set.wrote(project.memory)
    recall = Recall(project, MemoryFolder(project.memory, project))
    return lambda question: names(recall, question), known


def test_most_questions_of_a_set_by_hand_are_answered_and_few_that_are_none(
    asked_of_many: tuple[recall_set.Find, dict[str, str]],
) -> None:
    find, known = asked_of_many
    for what, questions in (*recall_set.SETS.items(), ("held", recall_set.HELD)):
        there, first = recall_set.hits(find, known, questions)
        assert there >= 0.95, what
        assert first >= 0.9, what
    assert recall_set.wrong(find, recall_set.NOTHING) <= 0.1
    assert recall_set.wrong(find, recall_set.HELD_NOTHING) <= 0.15


def test_a_word_that_is_misspelt_or_has_another_ending_is_found(recall: Recall) -> None:
    assert names(recall, "amonuts in the ledger are cents?") == ["cents"]
    assert names(recall, "whose datta tema is that") == []
    assert names(recall, "Zentimeter") == ["german"]
    assert names(recall, "is the dictionery somewhere") == ["wiki"]
    assert names(recall, "Integrationstest") == []


@pytest.mark.parametrize(
    ("one", "other", "is_near"),
    [
        ("dictionary", "dictionery", True),
        ("recal", "recall", True),
        ("amonut", "amount", True),
        ("timestmap", "timestamp", True),
        ("zentimet", "zentimetern", True),
        ("sensor", "censor", False),
        ("cat", "car", False),
        ("2023a", "2024a", True),
        ("20231", "20241", False),
        ("station", "statistic", False),
        ("test", "testimony", False),
        ("", "word", False),
    ],
)
def test_forms_and_misspellings_of_a_word(one: str, other: str, is_near: bool) -> None:
    assert words.near(one, other) is words.near(other, one) is is_near


def test_a_word_or_two_are_looked_up_and_a_sentence_is_asked() -> None:
    assert words.bare("column") and words.bare("sort column")
    assert not words.bare("what column") and not words.bare("sort the column")
