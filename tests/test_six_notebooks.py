"""What the built-in engine tells of six notebooks as people write them, read aloud."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import six_notebooks
from test_document_files import folder as folder
from test_document_files import run

from ipymemory.commands.dream_plans import summary
from ipymemory.document_files import of_file
from ipymemory.document_records import BEGIN, END


def told(folder: Path, name: str, capsys: pytest.CaptureFixture[str]) -> str:
    path = folder / f"{name}.ipynb"
    path.write_text(json.dumps(six_notebooks.ALL[name], indent=1))
    assert run(capsys, "update", path.name)[0] == 0
    (found,) = of_file(path)
    assert found.stale == ()
    return found.text


def steps(text: str) -> dict[str, str]:
    """Return what is said of each step by its label, in the order of the document."""
    return dict(re.findall(r"(?m)^\d+\. (\[code \d+\]) (.*)$", text))


@pytest.mark.spec("M5")
@pytest.mark.parametrize("name", six_notebooks.ALL)
def test_every_line_says_something_and_names_cells_that_there_are(
    folder: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    text = told(folder, name, capsys)
    ours = text[text.index(BEGIN) : text.index(END)]
    code = [
        each
        for each in six_notebooks.ALL[name]["cells"]
        if each["cell_type"] == "code" and each["source"].strip() and each["source"][0] != "#"
    ]
    labels = {f"[code {number}]" for number in range(1, len(code) + 1)}
    assert set(steps(ours)) == labels, "each cell is one step"
    assert set(re.findall(r"\[code \d+\]", ours)) - {"[code 3]"} <= labels
    for line in ours.splitlines()[1:]:
        assert line == line.rstrip(), line
        assert not re.search(r"  |``|\(\)\)|: *$|; *$|, *$|\bno \w+s\b|None\b", line), line
        assert len(line) < 400
    # A heading is followed by something, and nothing is said twice in one part.
    for part in re.split(r"(?m)^#+ ", ours)[1:]:
        lines = [each for each in part.splitlines()[1:] if each]
        assert lines and len(set(lines)) == len(lines), part


LINES = {
    "cleaning": [
        "reads `data/tides_2025.csv`; writes `out/daily.parquet`, `out/highest.png`",
        "2. [code 2] `raw` from `RAW`; reads `data/tides_2025.csv`; shows `raw.head()`",
        "columns `time`, `level`, `station`",
        "9. [code 9] imports `matplotlib`; writes `out/highest.png`; figure "
        '"Highest water each day"\n',
    ],
    "training": [
        "2. [code 2] sets `SEED`, `BATCH`, `EPOCHS`, `LEARNING_RATE`",
        "6. [code 6] `optimizer` from `model`, `LEARNING_RATE`; makes `model`, `loss_of`",
        "7. [code 7] shows `epoch 4 loss 0.4100`; makes `loss`",
        "shows `accuracy: 0.874`",
    ],
    "simulation": [
        "1. [code 1] imports `numpy`; makes `rng`",
        "4. [code 4] `waits` from `ARRIVALS`, `SERVICE`, `COUNTERS`\n",
        "7. [code 7] runs `!ls -l results`\n",
    ],
    "teaching": [
        "open errors: 1",
        "4. [code 4] `NotImplementedError` at `double(numbers)`",
        "5. [code 5] prints `3 squared is 9`",
    ],
    "api": [
        "2. [code 2] sets `BASE`, `TOKEN`, `PAGE_SIZE`",
        "3. [code 3] `session = requests.Session()`\n",
        "- [code 9] `KeyError: 'left'` at",
    ],
    "messy": [
        "Start with [code 3]; the cells depend on each other in this order: [code 3], [code 4], "
        "[code 2], [code 5], [code 6], [code 1], [code 7] to [code 15].\n",
        "4. [code 5] shows `df`\n",
        "`Budget (final) v2.xlsx` read by `pd.read_excel` [code 4]",
    ],
}


@pytest.mark.spec("M5")
@pytest.mark.parametrize("name", LINES)
def test_it_reads_as_a_person_would_say_it(
    folder: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    text = told(folder, name, capsys)
    for line in LINES[name]:
        assert line in text, text


@pytest.mark.spec("M5")
def test_notebooks_that_do_not_feed_each_other_have_no_order(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("api", "teaching"):
        told(folder, name, capsys)
    (folder / "ALL.md").write_text("# MAGIC DOC: All\n")
    assert run(capsys, "update", "ALL.md")[0] == 0
    assert "None of them reads a file that another one writes" in (folder / "ALL.md").read_text()


@pytest.mark.spec("M9")
def test_the_pages_are_sentences(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def said(*words: str) -> str:
        return run(capsys, *words)[1].splitlines()[-1]

    assert said("check") == "There is no notebook and no .md file here that can be looked at."
    assert said("update") == "There is no living document that could be written here."
    (folder / "plain.md").write_text("# Plain\n")
    assert said("check") == "There is no living document here; 1 file looked at."
    (folder / "one.ipynb").write_text(json.dumps(six_notebooks.API))
    (folder / "two.ipynb").write_text(json.dumps(six_notebooks.MESSY))
    assert said("check").startswith("2 living documents in 3 files: all are stale. `ipymemory")
    assert said("update", "--dry-run") == "2 living documents would be written anew."
    assert said("update", "one.ipynb") == "1 living document written anew."
    assert said("check").startswith("2 living documents in 3 files: 1 stale, 1 up to date.")
    assert said("update") == "1 living document written anew, 1 was up to date already."
    assert said("check") == "2 living documents in 3 files: all are up to date."
    assert said("update") == "Nothing to write: 2 living documents are up to date."
    assert said("check", "one.ipynb") == "1 living document in 1 file: it is up to date."


def test_a_dream_over_nothing_is_a_sentence() -> None:
    assert summary({}) == ["There is no memory yet, so there was nothing to tidy."]
    assert summary({"memories": 1}) == ["1 memory looked through. There was nothing to tidy."]
