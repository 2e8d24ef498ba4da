"""The page's end in the kernel: real kernels, and a page that says what it likes."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from kernels import Kernel, eventually
from pages import Page
from test_document_files import notebook, written

from ipymemory import document_proposals, document_records, frontend
from ipymemory.document_proposals import Proposal
from ipymemory.document_records import hash_of
from ipymemory.frontend import Frontend
from ipymemory.history import History
from ipymemory.page_messages import MOST_ALL, MOST_CELL, MOST_CELLS, Refused, answer_id, cells, head
from ipymemory.places import SessionFolder

DOC = "# MAGIC DOC: Tides\n\nThe gauge is read at noon.\n"


@pytest.fixture
def kernel(tmp_path: Path) -> Iterator[Kernel]:
    kernel = Kernel(tmp_path)
    yield kernel
    kernel.close()


def texts(kernel: Kernel, session: int = -1) -> list[tuple[str, str, str]]:
    """Return id, source and origin of every markdown line on record."""
    return [
        (each["cell_id"], each["source"], each["origin"])
        for each in kernel.lines(session)
        if each["type"] == "markdown"
    ]


@pytest.mark.kernel
@pytest.mark.spec("S3")
def test_markdown_cells_reach_transcript_and_notes(kernel: Kernel) -> None:
    page = Page(kernel)
    kernel.run("%load_ext ipymemory")
    welcome = page.open()
    assert welcome["type"] == "welcome" and welcome["project"] == "work"
    assert page.cells(("a", "# Tides at Windmill Quay"), ("b", "Old."), full=True) == {
        "v": 1, "type": "ok", "id": page.replies[-1]["id"], "refused": [],
    }  # fmt: skip
    # loading writes nothing, and neither does what the page tells
    assert not kernel.home.exists()
    kernel.run("level = 3")
    eventually(lambda: len(texts(kernel)) == 2, "both are on record")
    page.cells(("b", "We decided to use the median for the level."))
    eventually(lambda: len(texts(kernel)) == 3, "the change is on record")
    page.cells(("b", "We decided to use the median for the level."))
    page.say("cells", removed=["a"])
    eventually(lambda: len(texts(kernel)) == 4, "what is gone is on record")
    assert texts(kernel) == [
        ("a", "# Tides at Windmill Quay", "typed"),
        ("b", "Old.", "typed"),
        ("b", "We decided to use the median for the level.", "typed"),
        ("a", "", "typed"),
    ]
    eventually(lambda: "median" in kernel.notes(), "the notes know the prose")
    page.until(lambda: any("median" in each.get("text", "") for each in page.pushed), "live notes")


@pytest.mark.kernel
def test_the_page_is_answered_while_the_kernel_rests_and_never_hurts_it(kernel: Kernel) -> None:
    kernel.run("%load_ext ipymemory")
    page = Page(kernel)
    page.open()
    assert page.say("hello", v=2)["type"] == "unsupported"
    assert page.say("hello", v=2)["versions"] == [1]
    assert page.say("no such thing")["type"] == "refused"
    assert page.say("command", name="dream").items() >= {"type": "dream", "state": {}}.items()
    for id in ("f" * 24, "", None, ["f"], "f" * 10_000):
        assert page.say("command", name="dream-kill", dream=id)["type"] == "refused"
    assert page.say_raw(["no", "object"])["type"] == "refused"
    assert page.say_raw({"v": 1, "type": 7, "id": "x"}, "x")["type"] == "refused"
    assert page.say("cells", cells="x")["type"] == "refused"
    assert page.say("command", name="rm -rf")["type"] == "refused"
    assert page.say("applied", cell="../x")["type"] == "refused"
    assert page.say("applied", cell="nowhere")["type"] == "refused"
    assert page.say("editing", cell="a") == {"v": 1, "id": page.replies[-1]["id"], "type": "ok"}
    told = page.say("cells", cells=[{"id": "big", "source": "x" * 5_000_000}, {"id": "a"}, 3])
    assert [each["cell"] for each in told["refused"]] == ["big", "a", ""]
    assert "5,000,000 characters" in told["refused"][0]["text"]
    assert page.say("command", name="status")["recording"] is True
    assert page.say("command", name="notes") == {
        "v": 1, "id": page.replies[-1]["id"], "type": "notes", "text": "",
    }  # fmt: skip
    ran = kernel.run("print(1 + 1)")
    assert (ran.text, ran.kinds) == ("2\n", ["stream"])


HOSTILE = (
    "x" * 5_000_000,
    3,
    True,
    1e308,
    [["a"] * 1000],
    {"__proto__": {"id": "a"}, "constructor": {"prototype": 1}, "__class__": "os"},
    "__proto__",
    "{0.__class__}",
    "../../etc/passwd",
    "<img src=x onerror=alert(1)>",
    "\x00\ud800",
)
FIELDS = {
    "hello": ("frontend", "package", "notebook"),
    "cells": ("cells", "removed", "full"),
    "editing": ("cell",),
    "applied": ("cell", "job"),
    "accepted": ("cell", "job"),
    "conflict": ("cell", "job"),
    "dismissed": ("cell", "job"),
    "command": ("name", "dream"),
    "toString": ("valueOf",),
}
"""What a page may say; the last is a word that any object of JavaScript knows."""


@pytest.mark.kernel
@pytest.mark.spec("M7")
def test_whatever_a_message_holds_it_is_used_or_refused_with_a_sentence(kernel: Kernel) -> None:
    kernel.run("%load_ext ipymemory")
    kernel.run("1")
    # as a browser writes it: half a pair of surrogates too
    kernel.client.session.pack = lambda value: json.dumps(value, default=str).encode()
    page = Page(kernel)
    page.open()
    page.cells(("d", DOC), full=True)
    refused = 0
    for kind, names in FIELDS.items():
        for name in names:
            for value in HOSTILE:
                reply = page.say(kind, **{"cell": "d", **{name: value}})
                if reply["type"] == "refused":
                    refused += 1
                    assert reply["text"].endswith("."), (kind, name, reply)
                    # nothing of what came is given back, however long
                    assert len(reply["text"]) < 300, (kind, name)
                else:
                    assert reply["type"] in ("ok", "welcome"), (kind, name, reply)
    assert refused > 80
    for told_cells in (
        [{"id": "a", "source": each} for each in HOSTILE],
        [*HOSTILE],
        [None, [], {}],
    ):
        told = page.say("cells", cells=told_cells)
        assert told["type"] == "ok" and all(each["text"].endswith(".") for each in told["refused"])
    page.cells(("last", "Words."))
    eventually(lambda: texts(kernel)[-1][0] == "last", "what can be used is on record")
    log = kernel.sessions[-1] / "kernel.log"
    assert not log.exists() or "Traceback" not in log.read_text()
    # a page that does so is still a page, and the kernel as it was
    assert page.say("command", name="status")["type"] == "status"
    ran = kernel.run("print(sorted(name for name in globals() if name[0] != '_'))")
    assert ran.text == "['In', 'Out', 'exit', 'get_ipython', 'open', 'quit']\n", ran.text
    assert (ran.kinds, len(kernel.run("1 + 1").messages)) == (["stream"], 1)


@pytest.mark.kernel
def test_a_secret_in_a_text_is_masked_and_a_private_one_left_out(kernel: Kernel) -> None:
    kernel.run("%load_ext ipymemory")
    page = Page(kernel)
    page.open()
    key = "sk-ant-api03-" + "Q7x" * 30
    page.cells(
        ("a", f"The key is {key} for now."), ("p", "# ipymemory: off\n\nmy diary"), full=True
    )
    kernel.run("1")
    eventually(lambda: texts(kernel), "on record")
    page.cells(("z", "x " * 60_000))
    eventually(lambda: len(texts(kernel)) == 2, "the long one too")
    data = (kernel.sessions[-1] / "transcript.jsonl").read_bytes()
    assert key.encode() not in data and b"diary" not in data
    assert max(map(len, data.split(b"\n"))) < 64 * 1024
    kernel.run("%memory pause")
    page.cells(("q", "said while paused"))
    kernel.run("%memory resume-recording")
    page.cells(("r", "said after"))
    eventually(lambda: len(texts(kernel)) == 3, "recorded again")
    assert b"while paused" not in (kernel.sessions[-1] / "transcript.jsonl").read_bytes()


@pytest.mark.kernel
def test_reload_restart_and_unload(kernel: Kernel) -> None:
    kernel.run("%load_ext ipymemory")
    page = Page(kernel)
    page.open()
    page.cells(("a", "one"), ("b", "two"), ("c", "three"), full=True)
    kernel.run("1")
    eventually(lambda: len(texts(kernel)) == 3, "on record")
    # the page is loaded again: nothing is told twice, and what is gone is noted
    page = Page(kernel)
    page.open()
    page.until(lambda: page.pushes, "the new page is given a comm of its own")
    page.cells(("a", "one"), full=True, more=True)
    page.cells(("b", "two"), full=True)
    eventually(lambda: len(texts(kernel)) == 4, "the one that is gone")
    assert texts(kernel)[-1][:2] == ("c", "")
    kernel.restart()
    kernel.run("%load_ext ipymemory")
    page = Page(kernel)
    page.open()
    page.cells(("a", "one"), full=True)
    kernel.run("2")
    eventually(lambda: len(texts(kernel)) == 5, "gone while no kernel looked")
    assert texts(kernel)[-1][:2] == ("b", "")
    page.cells(("a", "one again"))
    eventually(lambda: len(texts(kernel)) == 6, "and changes go on")
    ran = kernel.run("%unload_ext ipymemory")
    closed = [told["comm_id"] for kind, told in ran.messages if kind == "comm_close"]
    assert page.comm in closed
    left = kernel.run(
        "from comm import get_comm_manager as g\n"
        "print(len(g().comms), 'ipymemory.rpc' in g().targets)"
    )
    assert left.text == "0 False\n"


@pytest.mark.kernel
@pytest.mark.spec("M7", "M8")
def test_new_text_goes_to_the_page_and_else_stays_a_proposal(kernel: Kernel) -> None:
    kernel.run("%load_ext ipymemory")
    heard = "get_ipython()._ipymemory.frontend.heard"
    event = (
        "{'kind': 'document', 'job': 'magic_docs', 'run': 'r1', "
        "'details': {'cell_id': 'd', 'base': %r, 'source': 'new'}}"
    )
    kernel.run("1")
    kernel.run(f"{heard}({event % DOC})")
    told = [each for each in kernel.lines() if each.get("name") == "document"]
    assert [each["outcome"] for each in told] == ["proposal"] and "lab extension" in told[0][
        "reason"
    ]
    page = Page(kernel)
    page.open()
    page.cells(("d", DOC), full=True)
    # events come on a thread of the worker's client
    kernel.run(f"import threading; threading.Timer(0.3, lambda: {heard}({event % DOC})).start()")
    page.until(lambda: any(each["type"] == "doc.update" for each in page.pushed), "the update")
    update = next(each for each in page.pushed if each["type"] == "doc.update")
    assert update == {
        "v": 1, "type": "doc.update", "cell": "d", "base": DOC, "source": "new", "job": "r1",
        "hash": f"h-d-{len(DOC)}",
    }  # fmt: skip
    assert page.say("applied", cell="d", job="r1")["type"] == "ok"
    assert page.say("conflict", cell="d", job="r1")["type"] == "ok"
    assert page.say("dismissed", cell="d", job="r1")["type"] == "ok"
    assert page.say("accepted", cell="d", job="r1")["type"] == "ok"
    told = [each for each in kernel.lines() if each.get("name") == "document"]
    assert [each["outcome"] for each in told] == [
        *("proposal", "applied", "conflict", "dismissed", "accepted")
    ]
    # a living document is an engine's, not a person's words
    assert texts(kernel) == [("d", DOC, "file")]


@pytest.mark.kernel
@pytest.mark.spec("M7", "M9")
def test_a_page_is_told_how_the_documents_of_the_saved_notebook_stand(
    kernel: Kernel, tmp_path: Path
) -> None:
    path = written(kernel.work / "clean.ipynb", notebook(DOC, ["x = 1", "y = 2"]))
    hashes = [
        document_records.Cell(f"c{at}", hash_of(f"{n} = {at}")) for at, n in ((1, "x"), (2, "y"))
    ]
    record = document_records.made("2026-01-02T03:04:05Z", path.name, hashes).as_dict()
    content = json.loads(path.read_bytes())

    def save(second: str) -> None:
        content["cells"][0]["metadata"] = {"ipymemory": {"doc": record}}
        content["cells"][2]["source"] = second
        path.write_text(json.dumps(content))

    save("y = 2  # as before")
    kernel.run("%load_ext ipymemory")
    page = Page(kernel)
    page.open()

    def standing() -> list[Any]:
        return [each["documents"] for each in page.pushed if each["type"] == "doc.standing"]

    page.cells(("c0", DOC), full=True)
    page.until(lambda: len(standing()) == 1, "what is true is told")
    assert standing()[0] == [{"cell": "c0", "updated": record["updated"], "stale": []}]
    save("y = 3")
    assert page.say("command", name="documents")["type"] == "ok"
    page.until(lambda: len(standing()) == 2, "what is stale is told")
    assert standing()[1][0]["stale"] == ["[code 2] has changed"]
    # a file in the midst of a save says nothing, and a document never written neither
    path.write_text('{"cells": [{"magic')
    page.say("command", name="documents")
    record = {}
    save("y = 3")
    page.say("command", name="documents")
    ran = kernel.run("print(1)")
    assert (ran.text, len(standing())) == ("1\n", 2)
    # nothing was recorded, and nothing written, for a page that only looks
    assert len(kernel.sessions) <= 1


@pytest.mark.kernel
@pytest.mark.spec("M7", "L10")
def test_a_page_is_told_what_is_written_now_and_what_waits(kernel: Kernel) -> None:
    kernel.run("%load_ext ipymemory")
    kernel.run("1")
    heard = "get_ipython()._ipymemory.frontend.heard"
    page = Page(kernel)
    page.open()
    page.cells(("d", DOC), full=True)

    def now(cell: str) -> None:
        event = {"kind": "document_now", "job": "magic_docs", "details": {"cell_id": cell}}
        # as the worker's client tells it: from a thread, when no cell runs
        kernel.run(f"import threading; threading.Timer(0.2, lambda: {heard}({event!r})).start()")

    def told() -> list[str]:
        return [each["cell"] for each in page.pushed if each["type"] == "doc.updating"]

    now("d")
    page.until(lambda: told() == ["d"], "what is written now")
    # a page that is loaded again is told too
    page = Page(kernel)
    assert page.open()["updating"] == "d"
    now("")
    page.until(lambda: told() == [""], "that it is through")
    page = Page(kernel)
    assert page.open()["updating"] == ""
    # what waits on disk comes with the first full telling
    folder = SessionFolder(kernel.sessions[-1])
    later = "2099-01-02T03:04:05.000Z"
    record = document_records.made(later, "tides.ipynb", [document_records.Cell("c", "h")])
    waits = Proposal("d", "Tides", DOC, DOC + "new\n", later, record, "anthropic")
    document_proposals.write(folder, [waits])

    def again() -> dict[str, Any]:
        page = Page(kernel)
        page.open()
        page.cells(("d", DOC), full=True)
        page.until(lambda: any(e["type"] == "doc.update" for e in page.pushed), "what waits")
        return next(e for e in page.pushed if e["type"] == "doc.update")

    assert again().items() >= {"cell": "d", "base": DOC, "source": DOC + "new\n"}.items()
    assert "propose" not in again()
    kernel.run("%memory mode confirm")
    waited = again()
    assert waited["propose"] is True
    # what the text rests on and who wrote it come along, as when it was told first
    assert waited["record"] == record.as_dict()
    page = Page(kernel)
    page.open()
    page.cells(("d", DOC), full=True)
    page.until(lambda: any(e["type"] == "doc.update" for e in page.pushed), "what waits")
    job = next(e["job"] for e in page.pushed if e["type"] == "doc.update")
    page.say("accepted", cell="d", job=job)
    history = History(folder.path.parents[1] / "history")
    eventually(lambda: [e.engine for e in history.entries()] == ["anthropic"], "who wrote it")
    kernel.run("%memory mode off")
    page = Page(kernel)
    page.open()
    page.cells(("d", DOC), full=True)
    kernel.run("1")
    assert not any(each["type"] == "doc.update" for each in page.pushed)


@pytest.mark.kernel
def test_the_kernel_is_not_slowed_by_loading_the_page_side(kernel: Kernel) -> None:
    """Within 2 ms, importing nothing that a kernel has not: measured in the kernel itself."""
    ran = kernel.run(
        "import sys, time\n"
        "from ipymemory.frontend import Frontend\n"
        "before = set(sys.modules)\n"
        "class S: page = paused = None\n"
        "took = []\n"
        "for _ in range(20):\n"
        "    t = time.perf_counter()\n"
        "    f = Frontend(get_ipython(), S()); f.install()\n"
        "    took.append(time.perf_counter() - t); f.remove()\n"
        "print(min(took) < 0.002, sorted(set(sys.modules) - before))"
    )
    assert ran.text == "True []\n"
    kernel.run("%load_ext ipymemory")
    loaded = "import sys; print([each for each in sys.modules if 'ipymemory.page' in each])"
    assert kernel.run(loaded).text == "[]\n"


class _Comm:
    def __init__(self) -> None:
        self.sent: list[Any] = []

    def on_msg(self, handler: Any) -> None:
        self.handler = handler

    def on_close(self, handler: Any) -> None:
        self.closing = handler

    def send(self, data: Any) -> None:
        self.sent.append(data)

    def close(self) -> None:
        self.closing(None)


def test_without_a_kernel_there_is_no_page() -> None:
    page = Frontend(SimpleNamespace(), SimpleNamespace())  # type: ignore[arg-type]
    page.install()
    assert not page.connected and not page.push("status")
    page.remove()


def test_whatever_fails_in_here_is_answered_and_stays_here() -> None:
    class Broken:
        def __getattr__(self, name: str) -> Any:
            raise RuntimeError(name)

    page = Frontend(SimpleNamespace(), Broken())  # type: ignore[arg-type]
    comm = _Comm()
    page._opened(comm, {})
    for data in ({"v": 1, "type": "hello", "id": 1}, None, {"v": 1, "type": "cells", "id": 2}, 3):
        comm.handler({"content": {"data": data}})
    comm.handler(None)
    assert [each["type"] for each in comm.sent] == ["refused"] * 5
    assert [each["id"] for each in comm.sent] == [1, None, 2, None, None]
    page.heard({"kind": "finished", "details": {}})
    page.heard({"kind": "document", "details": {"cell_id": "a", "base": "", "source": ""}})


def test_old_pages_are_let_go() -> None:
    page = Frontend(SimpleNamespace(), SimpleNamespace())  # type: ignore[arg-type]
    comms = [_Comm() for _ in range(frontend.MOST_PAGES + 5)]
    for each in comms:
        page._opened(each, {})
    assert page._pages == comms[5:]


@pytest.mark.parametrize("value", [None, 3, "x", [], {}, {"type": 3}, {"type": "x" * 1000}])
def test_what_is_no_message_is_refused(value: object) -> None:
    with pytest.raises(Refused, match="Reload the page"):
        head(value)


@pytest.mark.parametrize("id", [None, 1.5, True, "x" * 1000, 2**60, [], {}])
def test_an_id_that_cannot_be_used_is_none(id: object) -> None:
    assert answer_id({"id": id}) is None
    assert answer_id({"id": "a"}) == "a" and answer_id({"id": 7}) == 7


def test_cells_are_bounded_one_by_one() -> None:
    found = cells(
        {
            "cells": [
                {"id": "a", "source": "x", "hash": "h", "position": 3, "origin": "file"},
                {"id": "b", "source": "x" * (MOST_CELL + 1)},
                {"id": "c", "source": "x", "hash": "h" * 1000},
                {"id": "d", "source": "x", "position": -1, "origin": "typed"},
                {"id": "no id", "source": "x"},
                {"id": "e", "source": "x", "position": True},
            ],
            "removed": ["z", 3, "../../etc"],
            "full": 1,
        }
    )
    assert [(each.id, each.position, each.came) for each in found.cells] == [
        ("a", 3, True),
        ("d", None, False),
        ("e", None, False),
    ]
    assert [id for id, _ in found.refused] == ["b", "c", ""]
    assert found.removed == ("z",) and not found.full
    with pytest.raises(Refused, match="Split the notebook"):
        cells({"cells": [{}] * (MOST_CELLS + 1)})
    many = cells({"cells": [{"id": f"c{n}", "source": "x" * MOST_CELL} for n in range(20)]})
    assert len(many.cells) == MOST_ALL // MOST_CELL and len(many.refused) == 4


@pytest.mark.kernel
def test_the_page_is_answered_while_a_cell_runs_where_the_kernel_has_threads_for_it(
    kernel: Kernel,
) -> None:
    """On ipykernel 7 with the page's messages on a subshell; the older waits for the cell."""
    info = kernel.client.session.msg("kernel_info_request", {})
    kernel.client.shell_channel.send(info)
    while (reply := kernel.client.get_shell_msg(timeout=20))["msg_type"] != "kernel_info_reply":
        continue
    threads = "kernel subshells" in reply["content"].get("supported_features", [])
    kernel.run("%load_ext ipymemory")
    page = Page(kernel)
    if threads:
        asked = kernel.client.session.msg("create_subshell_request", {})
        kernel.client.control_channel.send(asked)
        page.subshell = kernel.client.get_control_msg(timeout=20)["content"]["subshell_id"]
    page.open()
    kernel.send("import time; time.sleep(3)")
    time.sleep(0.3)
    began = time.monotonic()
    page.cells(("a", "said while a cell runs"), full=True)
    took = time.monotonic() - began
    assert took < 2 if threads else took > 2
    assert threading.active_count() < 50


@pytest.mark.kernel
@pytest.mark.spec("A1", "L10")
def test_a_page_is_told_what_the_model_is_doing_for_a_document(kernel: Kernel) -> None:
    kernel.run("%load_ext ipymemory")
    kernel.run("1")
    page = Page(kernel)
    page.open()
    heard = "get_ipython()._ipymemory.frontend.heard"
    for job in ("extraction", "magic_docs"):
        details = {"text": f"Reading for {job}", "kept": "Reading", "by": "code"}
        event = {"kind": "doing", "job": job, "details": details}
        kernel.run(f"import threading; threading.Timer(0.2, lambda: {heard}({event!r})).start()")

    def told() -> list[str]:
        found = [each for each in page.pushed if each["type"] == "doc.updating"]
        return [each.get("doing", "") for each in found]

    page.until(lambda: told() == ["Reading for magic_docs"], "what is done")
