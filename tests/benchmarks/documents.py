"""Closed notebooks: two hundred checked, two hundred read, one document of a hundred updated."""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path
from typing import Any

from ipymemory import document_files, document_records, document_updates, ingest, places
from ipymemory.config import Settings
from ipymemory.history import History
from ipymemory.notebook_spans import with_cell
from tests.benchmarks.figures import Row

NOTEBOOKS = 200
CELLS = 40
DOCUMENTS = 100


def rows(runs: int) -> list[Row]:
    """Return what a check of closed notebooks takes, and an update of one document of many."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        return [
            _check(folder / "many", runs),
            *_ingest(folder / "read", runs),
            *_update(folder / "one", runs),
        ]


def _check(folder: Path, runs: int) -> Row:
    folder.mkdir()
    for number in range(NOTEBOOKS):
        path = folder / f"n{number}.ipynb"
        path.write_text(json.dumps(_notebook([f"# MAGIC DOC: {number}\n"]), indent=1))
        (found,) = document_files.of_file(path)
        record = document_records.made("", path.name, found.cells).as_dict()
        path.write_bytes(with_cell(path, path.read_bytes(), found.index, found.text, "doc", record))
    size = sum(each.stat().st_size for each in folder.iterdir()) / 1e6
    seconds = []
    for _ in range(runs):
        begin = time.perf_counter()
        looked = document_files.look([folder])
        fresh = [each for each in looked.documents if not each.stale]
        seconds.append(time.perf_counter() - begin)
        assert len(fresh) == NOTEBOOKS
    note = f"{CELLS} cells each, {size:.0f} MB with their outputs"
    return Row(f"`docs check` on {NOTEBOOKS} notebooks", "s", tuple(seconds), "10 s", note)


def _ingest(folder: Path, runs: int) -> list[Row]:
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    for number in range(NOTEBOOKS):
        # No two say the same, so that nothing is known of one from another.
        text = json.dumps(_notebook([f"# Study {number}\n\nWe want to know."]), indent=1)
        text = text.replace("frame_", f"frame_{number}_")
        (folder / f"n{number}.ipynb").write_text(text)
    found = ingest.find([folder])
    seconds, again = [], []
    for run in range(runs):
        home = folder.parent / f"home{run}"
        for times, status in ((seconds, "done"), (again, "unchanged")):
            begin = time.perf_counter()
            read = list(ingest.Ingest(home, Settings()).read(found.paths))
            times.append(time.perf_counter() - begin)
            assert {each.status for each in read} == {status}
            assert len(read) == NOTEBOOKS
    note = f"{CELLS} cells each; notes, history and what is proposed, each on the disk itself"
    return [
        Row(f"`ingest` of {NOTEBOOKS} notebooks", "s", tuple(seconds), "", note),
        Row("the same again, unchanged", "s", tuple(again), ""),
    ]


def _update(folder: Path, runs: int) -> list[Row]:
    folder.mkdir()
    path = folder / "book.ipynb"
    titles = [f"# MAGIC DOC: {number:03}\n" for number in range(DOCUMENTS)]
    history = History(places.project_of(path, folder / "home").history)
    seconds, all_of_them = [], []
    for run in range(runs):
        path.write_text(json.dumps(_notebook(titles), indent=1))
        before = [each.text for each in document_files.of_file(path)]
        begin = time.perf_counter()
        document_updates.update_file(path, history, dry=False, title=f"{run % DOCUMENTS:03}")
        seconds.append(time.perf_counter() - begin)
        after = [each.text for each in document_files.of_file(path)]
        assert [a == b for a, b in zip(before, after, strict=True)].count(False) == 1
        begin = time.perf_counter()
        document_updates.update_file(path, history, dry=False)
        all_of_them.append(time.perf_counter() - begin)
    note = "its cell and that cell's metadata change, of the others no byte"
    return [
        Row(f"one document of {DOCUMENTS} in a notebook", "s", tuple(seconds), "", note),
        Row("the others", "s", tuple(all_of_them), ""),
    ]


def _notebook(documents: list[str]) -> dict[str, Any]:
    """Return a notebook of pandas cells, half with a table, one with a picture."""
    cells: list[dict[str, Any]] = [
        {"cell_type": "markdown", "id": f"m{at}", "metadata": {}, "source": each}
        for at, each in enumerate(documents)
    ]
    for at in range(CELLS):
        source = (
            f"frame_{at} = pd.read_csv('raw_{at}.csv')  # step {at}\n"
            f"for column in frame_{at}.columns:\n"
            f"    if column.startswith('level'):\n"
            f"        frame_{at}[column] = frame_{at}[column].fillna({at})\n"
            f"frame_{at}.head()"
        )
        table = "\n".join(f"{row}  {row * 1.5:.2f}  Windmill Quay" for row in range(40))
        output: dict[str, Any] = {"text/plain": table, "text/html": f"<table>{table}</table>"}
        if at == 7:
            output = {"image/png": "iVBORw0KGgo" + "A" * 80_000}
        result = {"output_type": "display_data", "data": output, "metadata": {}}
        cells.append(
            {
                "cell_type": "code",
                "id": f"c{at}",
                "metadata": {},
                "execution_count": at + 1,
                "outputs": [result] if at % 2 else [],
                "source": source,
            }
        )
    return {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
