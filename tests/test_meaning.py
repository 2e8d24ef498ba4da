"""With a model of meanings recall finds what shares no word with the question, or says why not."""

from __future__ import annotations

import json
import os
import pickle
import sqlite3
import struct
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from static_model import MEANINGS, made, safetensors, with_header
from test_commands import Loaded, place

from ipymemory import places
from ipymemory.commands import table
from ipymemory.commands.calling import parse
from ipymemory.config import Settings
from ipymemory.errors import WorkerError
from ipymemory.history import History, Run
from ipymemory.memory_files import Draft, MemoryFolder, drafts
from ipymemory.places import Project
from ipymemory.recall import Recall, database, embedding, meaning
from ipymemory.recall.embedding import Embedding, EmbeddingError

pytestmark = pytest.mark.embed

WHEN = "2026-12-02T05:10:11.123Z"
NOTES = {
    "board": "The board report is due on Friday",
    "revenue": "Revenue stands in euros",
    "paper": "A paper on okapi",
    "japanese": "顧客データは毎週月曜日に更新される",
}


@pytest.fixture
def project(tmp_path: Path, home: Path) -> Project:
    root = tmp_path / "work"
    root.mkdir()
    return places.project_of(root, home)


@pytest.fixture
def folder(project: Project) -> MemoryFolder:
    project.memory.mkdir(parents=True)
    for name, text in NOTES.items():
        draft = Draft("project", name, text, text)
        (project.memory / f"{name}.md").write_text(drafts.file_text(name, draft, WHEN), "utf-8")
    return MemoryFolder(project.memory, project)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return made(tmp_path / "model")


@pytest.fixture
def recall(project: Project, folder: MemoryFolder, model: Path) -> Recall:
    return Recall(project, folder, str(model))


def begun(project: Project) -> Run:
    return History(project.history).begin("extraction", "extractive", "a test", (), "s1")


def names(recall: Recall, question: str, **options: Any) -> list[str]:
    return [each.memory.name for each in recall.find(question, **options)]


def vectors(project: Project) -> dict[str, bytes]:
    with database.Database(project.folder / "index.sqlite").opened() as db:
        return dict(
            db.execute("SELECT m.name, v.vector FROM vectors v JOIN memories m ON m.id = v.id")
        )


def test_a_synonym_is_found(recall: Recall, project: Project, folder: MemoryFolder) -> None:
    for question, found in (
        ("deadline for the directors", "board"),
        ("what money are earnings given in", "revenue"),
    ):
        assert names(Recall(project, folder), question) == []
        assert names(recall, question)[:1] == [found]
    assert recall.trouble == ""


def test_an_unrelated_question_finds_nothing(recall: Recall) -> None:
    for question in ("how is the weather", "make this faster", "what is this", "?", "売上は何"):
        assert names(recall, question) == []


def test_words_come_before_meanings(recall: Recall) -> None:
    found = recall.find("an okapi for directors")
    assert [each.memory.name for each in found] == ["paper", "board"]
    assert found[0].score > found[1].score
    assert names(recall, "an okapi for directors", n=1) == ["paper"]
    assert names(recall, "an okapi for directors", without=frozenset({"paper"})) == ["board"]


def test_a_full_page_of_words_never_loads_the_model(project: Project, folder: MemoryFolder) -> None:
    recall = Recall(project, folder, "/nowhere/at/all")
    assert names(recall, "okapi", n=1) == ["paper"]
    assert recall.trouble == ""


def test_the_vectors_are_of_length_one_and_of_the_current_ones(
    recall: Recall, project: Project
) -> None:
    old = "---\nname: old\ndescription: zebra\nsuperseded_by: x\n---\nzebra\n"
    (project.memory / "old.md").write_text(old)
    assert names(recall, "zebra") == ["paper"]
    found = vectors(project)
    assert found["old"] == found["japanese"] == b""
    for name in ("board", "revenue", "paper"):
        assert np.linalg.norm(np.frombuffer(found[name], "<f4")) == pytest.approx(1)


def test_another_model_embeds_anew(recall: Recall, project: Project, model: Path) -> None:
    assert names(recall, "zebra") == ["paper"]
    before = vectors(project)
    made(model, [("zebra",), *MEANINGS[:-2], ("weather", "okapi")])
    assert names(recall, "weather") == ["paper"]
    assert names(recall, "zebra") == []
    assert vectors(project)["paper"] != before["paper"]


def test_the_index_is_disposable(recall: Recall, project: Project) -> None:
    assert names(recall, "zebra") == ["paper"]
    before = vectors(project)
    (project.folder / "index.sqlite").unlink()
    assert names(recall, "zebra") == ["paper"]
    assert vectors(project) == before


def test_an_index_without_vectors_gets_them(
    recall: Recall, project: Project, folder: MemoryFolder
) -> None:
    assert names(Recall(project, folder), "okapi") == ["paper"]
    assert vectors(project) == {}
    assert names(recall, "zebra") == ["paper"]


def test_what_changes_is_embedded_anew(recall: Recall, project: Project) -> None:
    assert names(recall, "money") == ["revenue"]
    path = project.memory / "revenue.md"
    path.write_text(path.read_text("utf-8").replace("Revenue", "Okapi").replace("euros", "pens"))
    recall.sync()
    assert set(names(recall, "zebra")) == {"paper", "revenue"}
    assert names(recall, "money") == []
    draft = Draft("project", "More", "A zebra at the zoo", "")
    recall.memory.save(draft, begun(project))
    assert "more" in names(recall, "okapi")


@pytest.mark.spec("L12")
def test_what_is_forgotten_leaves_no_vector(recall: Recall, project: Project) -> None:
    assert names(recall, "zebra") == ["paper"]
    index = project.folder / "index.sqlite"
    vector = vectors(project)["paper"]
    assert vector in index.read_bytes()
    recall.memory.forget("paper", begun(project))
    assert vector not in index.read_bytes()
    assert names(recall, "zebra") == []


@pytest.mark.parametrize("missing", ["numpy", "tokenizers"])
def test_without_the_extra_words_answer_and_it_is_said(
    recall: Recall, model: Path, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    embedding._kept.clear()
    monkeypatch.setitem(sys.modules, missing, None)
    assert names(recall, "okapi") == ["paper"]
    said = (
        f"The package {missing} is not installed, which a model of meanings needs. "
        "Type pip install 'ipymemory[embed]'."
    )
    assert recall.trouble == said
    assert embedding.trouble(str(model), load=False) == said


def damaged(folder: Path, how: str) -> None:
    """Make the model in `folder` one that must not be used."""
    model, tokenizer = folder / "model.safetensors", folder / "tokenizer.json"
    data = model.read_bytes()
    rows = 1 + sum(map(len, MEANINGS))

    def header(**told: Any) -> bytes:
        whole = {"dtype": "F32", "shape": [rows, 7], "data_offsets": [0, rows * 28]} | told
        return with_header(json.dumps({"embeddings": whole}), bytes(rows * 28))

    table = np.ones((rows, 7), "f4")
    damages = {
        "pickle": lambda: pickle.dumps(Hostile(folder / "ran")),
        "empty": lambda: b"",
        "cut": lambda: data[:-40],
        "longer header than file": lambda: struct.pack("<Q", 2**40) + data[8:],
        "huge header": lambda: with_header("{" + " " * 2_000_000 + "}"),
        "deep header": lambda: with_header("[" * 400_000),
        "header is a list": lambda: with_header("[]"),
        "no tensor": lambda: with_header("{}"),
        "negative": lambda: header(data_offsets=[-100, rows * 28 - 100]),
        "beyond": lambda: header(data_offsets=[64, rows * 28 + 64]),
        "huge shape": lambda: header(shape=[2**40, 2**40]),
        "flat": lambda: header(shape=[rows * 7]),
        "cube": lambda: header(shape=[rows, 7, 1]),
        "no rows": lambda: header(shape=[0, 7], data_offsets=[0, 0]),
        "strange numbers": lambda: header(dtype="BF128"),
        "whole numbers": lambda: header(dtype="I32"),
        "text for a shape": lambda: header(shape="ab"),
        "fewer rows": lambda: safetensors({"embeddings": table[:3]}),
        "wild mapping": lambda: safetensors(
            {"embeddings": table, "mapping": np.full(rows, 10**9, "i8")}
        ),
        "short weights": lambda: safetensors({"embeddings": table, "weights": np.ones(2)}),
    }
    if how in damages:
        model.write_bytes(damages[how]())
    elif how == "link":
        model.rename(folder / "elsewhere")
        model.symlink_to(folder / "elsewhere")
    elif how == "folder":
        model.unlink()
        model.mkdir()
    elif how == "pipe":
        model.unlink()
        os.mkfifo(model)
    elif how == "none":
        model.unlink()
    else:
        texts = {"no tokenizer": "{}", "tokenizer is text": "hello", "deep tokenizer": "[" * 10**5}
        tokenizer.write_text(texts[how])


class Hostile:
    """What a pickle may hold: reading it with pickle would write a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


OUTSIDE = [
    *("pickle", "empty", "longer header than file", "huge header", "deep header", "no tensor"),
    *("header is a list", "negative", "beyond", "huge shape", "flat", "cube", "no rows", "none"),
    *("strange numbers", "whole numbers", "text for a shape", "folder", "cut"),
]
LINKS = [] if os.name == "nt" else ["link", "pipe"]
INSIDE = [
    *("fewer rows", "wild mapping", "short weights"),
    *("no tokenizer", "tokenizer is text", "deep tokenizer"),
]


@pytest.mark.parametrize("how", [*OUTSIDE, *LINKS, *INSIDE])
def test_a_hostile_model_is_refused_and_words_answer(recall: Recall, model: Path, how: str) -> None:
    damaged(model, how)
    assert names(recall, "okapi") == ["paper"]
    assert recall.trouble.startswith((str(model), f"There is no model.safetensors in {model}"))
    assert recall.trouble.endswith(".") and len(recall.trouble) < 400 + 2 * len(str(model))
    if how not in INSIDE:
        assert embedding.trouble(str(model), load=False) == recall.trouble
    assert embedding.trouble(str(model), load=True) == recall.trouble
    assert not (model / "ran").exists()


def test_other_files_in_the_folder_are_not_opened(recall: Recall, model: Path) -> None:
    (model / "config.json").write_text("{" * 10_000_000)
    for name in ("pipeline.skops", "pytorch_model.bin", "README.md"):
        (model / name).write_bytes(pickle.dumps(Hostile(model / "ran")))
    (model / "numpy.py").write_text(f"open({str(model / 'ran')!r}, 'w')")
    assert names(recall, "zebra") == ["paper"]
    assert not (model / "ran").exists()


def test_numbers_that_are_none_match_nothing(recall: Recall, model: Path) -> None:
    rows = 1 + sum(map(len, MEANINGS))
    for value in (np.nan, np.inf, -np.inf, 3e38):
        data = safetensors({"embeddings": np.full((rows, 7), value, "f4")})
        (model / "model.safetensors").write_bytes(data)
        assert names(recall, "zebra") == []
        assert recall.trouble == ""


def test_a_relative_folder_is_refused(project: Project, folder: MemoryFolder) -> None:
    recall = Recall(project, folder, "model")
    assert names(recall, "okapi") == ["paper"]
    assert "Write the whole path." in recall.trouble


@pytest.mark.parametrize("kind", ["<f2", "<f8", "|i1"])
def test_smaller_and_larger_numbers_are_read(tmp_path: Path, kind: str) -> None:
    plain, other = Embedding(made(tmp_path / "a")), Embedding(made(tmp_path / "b", kind=kind))
    texts = ["earnings due", "zebra", "nothing known", ""]
    assert other.vectors(texts) == pytest.approx(plain.vectors(texts), abs=1e-3)
    assert not plain.vectors(texts)[2:].any()


def test_weights_and_a_shared_table_are_read(tmp_path: Path) -> None:
    words = [each for meaning in MEANINGS for each in meaning]
    mapping, weights = np.zeros(1 + len(words), "i8"), np.ones(1 + len(words))
    mapping[:] = np.arange(1 + len(words))
    mapping[1 + words.index("weather")] = 1 + words.index("zebra")
    weights[1 + words.index("due")] = 0.0
    model = Embedding(made(tmp_path / "model", mapping=mapping, weights=weights))
    weather, zebra, both, due = model.vectors(["weather", "zebra", "due zebra", "due"])
    assert weather == pytest.approx(zebra)
    assert both == pytest.approx(zebra)
    assert not due.any()


def test_a_model_cut_while_in_use_is_a_sentence(model: Path) -> None:
    loaded = Embedding(model)
    file = model / "model.safetensors"
    with file.open("r+b") as opened:
        opened.truncate(200)
    with pytest.raises(EmbeddingError, match="shorter than its own header says"):
        loaded.vectors(["zebra"])


def test_a_held_index_leaves_the_words(
    recall: Recall, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "WAIT_SECONDS", 0.05)
    recall.sync()
    db = sqlite3.connect(project.folder / "index.sqlite", isolation_level=None)
    db.execute("BEGIN IMMEDIATE")
    try:
        assert names(recall, "okapi") == ["paper"]
        assert "could not be used for meanings" in recall.trouble
    finally:
        db.close()
    assert names(recall, "zebra") == ["paper"]


def test_at_most_a_few_are_found_by_meaning(recall: Recall, project: Project) -> None:
    for n in range(8):
        recall.memory.save(Draft("project", f"Okapi {n}", f"Okapi {n}", ""), begun(project))
    assert len(names(recall, "zebra")) == meaning.MOST


# What commands say.


def page(where: Any, name: str, *typed: str) -> Any:
    command = table.COMMANDS[name]
    return command.run(where, parse(command, typed, where.prefix))


def with_model(where: Any, model: object) -> Any:
    settings = Settings()
    settings.memory.embeddings = str(model)
    return replace(where, settings=settings)


def test_status_says_what_finds(project: Project, folder: MemoryFolder, model: Path) -> None:
    assert "**Recall**" not in page(place(project), "status").markdown
    for live in (None, Loaded()):
        where = with_model(place(project, live=live), model)
        assert f"- **Recall** by words, then by the meanings in {model}" in (
            page(where, "status").markdown
        )
        gone = page(with_model(where, model / "gone"), "status").markdown
        assert "- **Recall** by words alone. There is no model.safetensors in" in gone
    (model / "tokenizer.json").write_text("{}")
    said = page(with_model(place(project), model), "status").markdown
    assert "- **Recall** by words alone." in said and "does not take it" in said


def test_the_command_line_finds_by_meaning(
    project: Project, folder: MemoryFolder, model: Path
) -> None:
    where = with_model(place(project), model)
    found = page(where, "recall", "zebra")
    assert [each["name"] for each in found.data] == ["paper"]
    alone = page(with_model(where, model / "gone"), "recall", "zebra")
    assert alone.exit == 1 and "Found by their words alone. There is no" in alone.markdown


class Asked(Loaded):
    """A kernel whose worker answers a recall, or does not."""

    def __init__(self, answer: object) -> None:
        super().__init__()
        self.answer = answer

    def ask(self, name: str, timeout: float, **arguments: object) -> object:
        super().ask(name, timeout, **arguments)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def test_a_kernel_asks_its_worker(project: Project, folder: MemoryFolder, model: Path) -> None:
    live = Asked({"found": [["paper", 0.4], ["gone", 0.3]], "trouble": ""})
    found = page(with_model(place(project, live=live), model), "recall", "zebra")
    assert [each["name"] for each in found.data] == ["paper"]
    assert live.calls == [("ask", "recall", {"question": "zebra", "n": 5})]
    live = Asked(WorkerError("The worker has not answered for 5 s. Try again."))
    found = page(with_model(place(project, live=live), model), "recall", "okapi")
    assert [each["name"] for each in found.data] == ["paper"]
    assert "Found by their words alone. The worker has not answered" in found.markdown


@pytest.mark.kernel
def test_a_real_kernel_finds_by_meaning_and_imports_no_model(kernel: Any, model: Path) -> None:
    kernel.run("import sys\nx = 1")
    kernel.run("%memory remember An okapi lives in the source")
    assert "No memory answers" in kernel.run("%memory recall zebra").text
    kernel.run(f"%config Memory.embeddings = {str(model)!r}")
    assert "An okapi lives in the source" in kernel.run("%memory recall zebra").text
    assert "by words, then by the meanings" in kernel.run("%memory status").text
    assert kernel.run("print({'numpy', 'tokenizers'} & set(sys.modules))").text.strip() == "set()"
    kernel.run(f"%config Memory.embeddings = {str(model / 'gone')!r}")
    said = kernel.run("%memory recall okapi").text
    assert "An okapi lives in the source" in said and "words alone" in said
