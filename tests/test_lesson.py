"""The lesson notebook in a real kernel, from the first cell to the notes, line by line."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from kernels import ROOT, Kernel

pytestmark = pytest.mark.kernel

LESSON = ROOT / "notebooks" / "tides.ipynb"
EXPECTED = Path(__file__).parent / "tides_notes.md"


def plain(notes: str) -> list[str]:
    """Return the lines of the notes without what differs from run to run and stack to stack."""
    text = re.sub(r"`Wall time: [^`]*`", "`Wall time: TIME`", notes)
    text = re.sub(r"(`(?:matplotlib\.pyplot|numpy|pandas)`) [\d.]+", r"\1 VERSION", text)
    text = re.sub(r"\(\d{4}-\d\d-\d\d \d\d:\d\d UTC\)", "(WHEN)", text)
    return text.rstrip("\n").split("\n")


@pytest.mark.spec("S1", "S13", "L2")
def test_the_lesson_leaves_the_notes_it_should(
    tmp_path: Path, new_kernel: Callable[..., Kernel]
) -> None:
    (tmp_path / "work").mkdir()
    shutil.copy(LESSON, tmp_path / "work" / LESSON.name)
    cells = json.loads(LESSON.read_text("utf-8"))["cells"]
    kernel = new_kernel(LESSON.name)
    kernel.run("%load_ext ipymemory")
    for cell in cells:
        if cell["cell_type"] != "code":
            continue
        ran = kernel.run("".join(cell["source"]), cell_id=cell["id"])
        meant_to_fail = "raises-exception" in cell["metadata"].get("tags", ())
        assert (ran.reply["status"] == "error") == meant_to_fail, cell
    kernel.run("%memory notes --now")
    assert plain(kernel.notes()) == plain(EXPECTED.read_text("utf-8"))
    # Once more, from the transcript alone: the same bytes.
    before = kernel.notes()
    (kernel.sessions[0] / "notes.md").unlink()
    kernel.run("%memory notes --now")
    assert kernel.notes() == before
