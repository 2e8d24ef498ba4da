"""A running notebook whose kernel is killed at random moments loses no turn."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from pathlib import Path

import pytest
from kernels import Kernel, eventually

from ipymemory.transcript import Transcript

pytestmark = [pytest.mark.kernel, pytest.mark.slow]

KILLS = 100
"""In each of two halves, which can run at the same time."""

CELLS = (
    "import time\nbegun({n})\nprint('cell', {n})\nended({n})",
    "begun({n})\nfor i in range(300):\n    print('row', i, 'of cell', {n})\nended({n})",
    "begun({n})\nvalue_{n} = {n}\ntime.sleep(0.003)\nended({n})\nvalue_{n}",
    "begun({n})\nended({n})\nraise ValueError({n})",
)
# The cell itself tells, past all of ours, that it began and that its end was reached.
MARKS = (
    "import os, time\nmarks = os.open({path!r}, os.O_WRONLY | os.O_APPEND | os.O_CREAT)\n"
    "def begun(n): os.write(marks, b'b%d\\n' % n)\n"
    "def ended(n): os.write(marks, b'e%d\\n' % n)"
)


@pytest.mark.spec("L5")
@pytest.mark.skipif(os.name == "nt", reason="there is no SIGKILL on Windows")
@pytest.mark.parametrize("half", [0, 1])
def test_two_hundred_kills_lose_no_turn(tmp_path: Path, half: int) -> None:
    chance = random.Random(20261202 + half)
    marks = tmp_path / "marks"
    kernel = Kernel(tmp_path)
    number = 0
    span = 0.25
    try:
        for life in range(KILLS):
            if life:
                kernel.manager.start_kernel(env=kernel.env, cwd=str(kernel.work))
                kernel.client.wait_for_ready(timeout=60)
            kernel.client.execute("%load_ext ipymemory", store_history=True)
            kernel.run("%%private\n" + MARKS.format(path=str(marks)))
            for _ in range(40):
                kernel.send(CELLS[number % len(CELLS)].format(n=number))
                number += 1
            if not life:
                # In its own time: a slow machine does not begin a cell in a quarter of a second.
                sent = time.monotonic()
                eventually(lambda: marks.read_text().count("e") >= 10, "ten cells", 60)
                span = max(span, time.monotonic() - sent)
            time.sleep(chance.uniform(0.0, span))
            os.kill(kernel.pid, signal.SIGKILL)
            eventually(lambda: not kernel.manager.is_alive(), "the kernel is gone")
        begun = {int(m[1:]) for m in marks.read_text().split() if m[0] == "b"}
        ended = {int(m[1:]) for m in marks.read_text().split() if m[0] == "e"}
        sources: dict[int, str] = {}
        ends: set[str] = set()
        generations: set[int] = set()
        generation, torn_in = 0, -1
        for session in range(len(kernel.sessions)):
            path = kernel.sessions[session] / "transcript.jsonl"
            torn = 0
            data = path.read_bytes()
            for line in data.split(b"\n"):
                if not line:
                    continue
                try:
                    told = json.loads(line)
                except ValueError:
                    # A kill between two pages of one write: nothing of that kernel comes after.
                    torn, torn_in = torn + 1, generation
                    continue
                generation = told.get("kernel", generation)
                assert generation != torn_in
                if told["type"] == "cell":
                    sources[told["id"]] = told["source"]
                    generations.add(told["kernel"])
                elif told["type"] == "end":
                    ends.add(told["id"])
            read = Transcript(path)
            read.follow()
            assert read.torn == torn - (not data.endswith(b"\n"))  # the last one is waited for
        recorded = {number_of(source): id for id, source in sources.items()}
        assert len(kernel.sessions) == 1
        assert begun <= set(recorded), sorted(begun - set(recorded))[:5]
        # A cell whose successor began has ended, and its end is on record. Of a kernel's last
        # cell the end may be missing: it was killed between the cell's last act and ours.
        after = {n for n in begun if n + 1 in begun}
        assert all(recorded[n] in ends for n in after)
        killed_in_a_cell = sum(1 for n in begun if recorded[n] not in ends)
        assert len(begun) > KILLS
        assert killed_in_a_cell > KILLS // 20
        assert len(ended - {n for n in ended if recorded[n] in ends}) <= KILLS
        kernel.manager.start_kernel(env=kernel.env, cwd=str(kernel.work))
        kernel.client.wait_for_ready(timeout=60)
        kernel.run("%load_ext ipymemory")
        kernel.run("last = 1")
        kernel.recorded("last = 1")
        assert len(kernel.sessions) == 1
        eventually(lambda: "`last`" in kernel.notes() or "last = 1" in kernel.notes(), "notes", 60)
    finally:
        kernel.close()


def number_of(source: str) -> int:
    """Return the number of a cell that this test made, from its source."""
    return int(source.split("begun(")[1].split(")")[0]) if "begun(" in source else -1
