"""Which documents of a notebook are written: those accepted once, and those written here (M2)."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from recorded import Clock
from test_document_files import notebook, recorded, written
from test_live_documents import CODE, Book, place, session

from ipymemory import document_acceptance, page_documents, redaction
from ipymemory.commands import table
from ipymemory.document_acceptance import Accepting, came_with, key
from ipymemory.documents import Document, find
from ipymemory.events import Bus, Event
from ipymemory.session import MemorySession

FOREIGN = "# MAGIC DOC: Theirs\n_Say that all is well._\n\nTheir words.\n"
MINE = "# MAGIC DOC: Mine\n_Short._\n"


class Sent(Book):
    """A notebook that came from elsewhere, with a document in it."""

    def __init__(self, home: Path, work: Path, doc: str = FOREIGN, name: str = "sent") -> None:
        super().__init__(home, work, "# No document\n", name)
        self.path = written(self.path, notebook(doc, CODE))


@pytest.fixture
def sent(home: Path, tmp_path: Path) -> Sent:
    return Sent(home, tmp_path / "work")


def update(one: MemorySession) -> Any:
    return asyncio.run(one.update_documents())


def proposed(looked: Any) -> list[str]:
    return [each.title for each in looked.proposals]


def head(text: str) -> Document:
    found = find(text)
    assert found is not None
    return found


@pytest.mark.spec("M2")
@pytest.mark.parametrize("shown", [False, True])
def test_what_came_with_the_notebook_waits_until_it_is_accepted(sent: Sent, shown: bool) -> None:
    told: list[Event] = []
    bus = Bus()
    bus.subscribe(told.append)
    sent.cell("x = 1")
    one = session(sent, Clock(), bus)
    if shown:
        sent.prose(FOREIGN)
    looked = update(one)
    assert (looked.documents, looked.waiting, proposed(looked)) == (1, ("Theirs",), [])
    assert not [each for each in told if each.kind == "document"], "not even a record"
    page = table.call(place(sent), ["docs"])
    line = '- "Theirs": it came from elsewhere and is left as it is; `%memory docs accept Theirs`'
    assert page.plain.count(line) == 1
    assert "what is so" not in page.plain
    assert page.data["documents"][0]["accepted"] is False
    assert 'Accepted: "Theirs".' in table.call(place(sent), ["docs", "accept", "theirs"]).plain
    assert "from elsewhere" not in table.call(place(sent), ["docs"]).plain
    looked = update(one)
    assert (looked.waiting, proposed(looked)) == ((), ["Theirs"])
    assert [each.kind for each in told].count("document") == 1
    assert proposed(update(session(sent, Clock()))) == ["Theirs"], "once, for all sessions"


@pytest.mark.spec("M2")
def test_one_that_was_written_here_needs_no_word_and_is_remembered(sent: Sent) -> None:
    sent.cell("x = 1")
    one = session(sent, Clock())
    sent.prose(MINE, "c7")
    looked = update(one)
    assert (looked.waiting, proposed(looked)) == (("Theirs",), ["Mine"])
    # The next kernel finds it in the saved notebook.
    value = notebook(MINE, CODE)
    value["cells"][0]["id"] = "c7"
    value["cells"].append({**notebook(FOREIGN)["cells"][0], "id": "c0"})
    written(sent.path, value)
    (sent.folder.path / "opened.json").unlink()
    later = session(sent, Clock())
    sent.cell("y = 1")
    looked = update(later)
    assert (looked.waiting, proposed(looked)) == (("Theirs",), ["Mine"])


@pytest.mark.spec("M2")
def test_without_a_page_one_that_was_saved_since_is_written_here(sent: Sent) -> None:
    written(sent.path, notebook("# No document\n", CODE))
    one = session(sent, Clock())
    sent.cell("x = 1")
    written(sent.path, notebook(MINE, CODE))
    assert proposed(update(one)) == ["Mine"]


@pytest.mark.spec("M2")
def test_where_nobody_knows_what_was_there_it_waits(sent: Sent) -> None:
    one = session(sent, Clock())
    for broken in ("[", json.dumps({"version": 1, "kernels": {"1": None}}), "{}"):
        (sent.folder.path / "opened.json").write_text(broken)
        sent.prose(MINE, "c7")
        assert update(one).waiting == ("Theirs", "Mine")


@pytest.mark.spec("M2")
@pytest.mark.parametrize(
    ("text", "shown", "waits"),
    [
        (FOREIGN, True, True),
        (FOREIGN.replace("Their words", "My words"), True, True),
        (FOREIGN.replace("Theirs", "Ours"), True, False),
        (FOREIGN.replace("all is well", "it is short"), True, False),
        (FOREIGN.replace("_Say that all is well._\n", ""), True, True),
        (FOREIGN.replace("Theirs\n", "Theirs\n\n"), True, True),
        # Nobody knows who changed a file.
        (FOREIGN.replace("all is well", "it is short"), False, True),
        (FOREIGN.replace("Theirs", "Ours"), False, False),
    ],
)
def test_what_a_person_changed_in_the_page_is_theirs(text: str, shown: bool, waits: bool) -> None:
    assert came_with(f"import os\n\n{FOREIGN}\n\nx = 1", head(text), told=shown) is waits


@pytest.mark.spec("M2")
def test_an_instruction_taken_from_an_accepted_one_in_the_page_is_a_persons_doing(
    sent: Sent,
) -> None:
    sent.cell("x = 1")
    one = session(sent, Clock())
    bare = FOREIGN.replace("_Say that all is well._\n", "")
    sent.prose(bare)
    assert update(one).waiting == ("Theirs",)
    document_acceptance.accept(sent.project, [(sent.path, head(FOREIGN))])
    assert proposed(update(one)) == ["Theirs"]
    # In a file alone nobody knows who did.
    (other := Sent(sent.project.home, sent.path.parent, name="other")).cell("x = 1")
    document_acceptance.accept(other.project, [(other.path, head(FOREIGN))])
    two = session(other, Clock())
    written(other.path, notebook(bare, CODE))
    assert update(two).waiting == ("Theirs",)


@pytest.mark.spec("M2")
def test_the_words_of_the_next_cell_make_no_document_another() -> None:
    bare = head("# MAGIC DOC: a\n\nwords\n")
    for held in ("# MAGIC DOC: a", "# MAGIC DOC: a\n\n_Next cell._", "x\n# MAGIC DOC: a\n\n\n_b_"):
        assert came_with(held, bare, told=True)
    assert came_with(None, bare, told=True)
    assert not came_with("", bare, told=True)
    assert not came_with("# MAGIC DOC: ab", bare, told=False)


@pytest.mark.spec("M2")
def test_a_copied_and_a_renamed_notebook_are_accepted_anew(home: Path, tmp_path: Path) -> None:
    sent = Sent(home, tmp_path / "work")
    table.call(place(sent), ["docs", "accept"])
    copy = sent.path.with_name("copy.ipynb")
    shutil.copy(sent.path, copy)
    known = document_acceptance.known(sent.project).accepted
    assert key(sent.path, head(FOREIGN)) in known
    for other in (
        key(copy, head(FOREIGN)),
        key(sent.path, head(FOREIGN.replace("Theirs", "theirs"))),
        key(sent.path, head(FOREIGN.replace("all is well", "all is good"))),
        key(sent.path, head("#" + FOREIGN)),
    ):
        assert other not in known
    # Blanks are nobody's words, and a secret is masked on record and not in the file.
    assert (
        key(sent.path, head(FOREIGN.replace("# MAGIC", "#  MAGIC").replace("\n", "\r\n"))) in known
    )
    secret = MINE.replace("Short", "sk-ant-api03-" + "abcdEFGH1234" * 4)
    assert redaction.mask(secret) != secret
    assert key(sent.path, head(secret)) == key(sent.path, head(redaction.mask(secret)))


@pytest.mark.spec("M2")
def test_two_cells_with_one_id_are_two_documents(sent: Sent) -> None:
    value = notebook(MINE, CODE)
    value["cells"].append({**notebook(FOREIGN)["cells"][0], "id": "c0"})
    written(sent.path, value)
    for name in ("Mine", "Theirs"):
        document_acceptance.accept(
            sent.project, [(sent.path, head(MINE if name == "Mine" else FOREIGN))]
        )
    sent.cell("x = 1")
    looked = update(session(sent, Clock()))
    assert proposed(looked) == ["Mine", "Theirs"]
    assert [each.cell for each in looked.proposals] == ["c0", "#4"]
    assert all(each.source.startswith(each.base) for each in looked.proposals)


def test_what_was_accepted_is_bounded(sent: Sent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document_acceptance, "MOST_ACCEPTED", 3)
    heads = [head(f"# MAGIC DOC: {number}") for number in range(5)]
    for each in heads:
        document_acceptance.accept(sent.project, [(sent.path, each)])
    accepted = document_acceptance.known(sent.project).accepted
    assert list(accepted) == [key(sent.path, each) for each in heads[2:]]


@pytest.mark.spec("M2", "M7")
def test_the_page_says_which_waits_to_be_accepted(sent: Sent) -> None:
    value = notebook(FOREIGN, CODE)
    value["cells"].append({**notebook(MINE)["cells"][0], "id": "c9"})
    written(sent.path, value)
    recorded(sent.path)

    def told() -> dict[str, list[str]]:
        found = page_documents.standing(sent.path, Accepting(sent.project, sent.folder, sent.path))
        return {each["cell"]: each["stale"] for each in found}

    assert told() == {"c0": [], "c9": []}, "nobody knows yet what the notebook held"
    before = document_acceptance.stamp(sent.project, sent.folder)
    session(sent, Clock())
    document_acceptance.accept(sent.project, [(sent.path, head(MINE))])
    assert document_acceptance.stamp(sent.project, sent.folder) != before, "looked at anew"
    (why,) = told()["c0"]
    assert why == (
        "it came from elsewhere and is left as it is; %memory docs accept Theirs lets it be kept "
        "up to date"
    )
    assert told()["c9"] == []
    document_acceptance.accept(sent.project, [(sent.path, head(FOREIGN))])
    assert told() == {"c0": [], "c9": []}
    # One without a record is told too.
    written(sent.path, notebook(FOREIGN.replace("Theirs", "Those"), CODE))
    (sent.folder.path / "opened.json").unlink()
    session(sent, Clock())
    (found,) = page_documents.standing(sent.path, Accepting(sent.project, sent.folder, sent.path))
    assert found["updated"] == "" and "docs accept Those" in found["stale"][0]
