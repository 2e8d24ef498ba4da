"""What a user sees and does in JupyterLab and Notebook 7, in a real browser."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from driver import BARE, FLAGS, HEARD, Missing, Notebook, Server, browser_path, event, server
from kernels import eventually
from model_server import Fault, ModelServer

from ipymemory.document_records import Cell, hash_of, made

pytestmark = pytest.mark.lab

LOAD = "%load_ext ipymemory"
DOC = "# MAGIC DOC: Tides\n\n_Short._\n\nThe gauge is read at noon.\n\nLevels are in cm.\n"
NEW = DOC.replace("at noon", "at noon and at midnight")


@pytest.fixture(scope="module", params=["lab", "notebook"])
def running(request: pytest.FixtureRequest, tmp_path_factory: Any) -> Iterator[Server]:
    try:
        with server(request.param, tmp_path_factory.mktemp(request.param)) as found:
            yield found
    except Missing as error:
        pytest.fail(str(error), pytrace=False)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: Any) -> Iterator[Server]:
    """A JupyterLab whose pages of one notebook are one document."""
    try:
        with server("lab", tmp_path_factory.mktemp("shared"), shared=True) as found:
            yield found
    except Missing as error:
        pytest.fail(str(error), pytrace=False)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    try:
        path = browser_path()
    except Missing as error:
        pytest.fail(str(error), pytrace=False)
    with sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=path, args=list(FLAGS))
        yield found
        found.close()


@pytest.fixture
def notebook(browser: Any, running: Server) -> Iterator[Notebook]:
    page = browser.new_page(viewport={"width": 1280, "height": 860})
    page.set_default_timeout(20_000)
    said: list[str] = []
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("dialog", lambda dialog: dialog.accept())
    made = Notebook(page, running)
    yield made
    made.say("return panel?.sessionContext?.shutdown().then(() => true);")
    page.close()
    assert not [each for each in said if "ipymemory" in each]


in_lab = pytest.mark.parametrize("running", ["lab"], indirect=True)
"""For what does not depend on the application around the notebook."""


COUNT = "return panel.content.model.cells.get(argument).sharedModel.execution_count;"


def shot(notebook: Notebook, name: str) -> None:
    """Save a picture where IPYMEMORY_SHOTS says, to be looked at."""
    if folder := os.environ.get("IPYMEMORY_SHOTS"):
        path = Path(folder) / f"{notebook.server.app}-{name}.png"
        notebook.page.screenshot(path=str(path))


def test_a_session_as_a_user_has_it(notebook: Notebook) -> None:
    decision = "We decided to use the median for the level."
    nb = notebook.open(
        "session.ipynb",
        ("markdown", "# Tides at Windmill Quay"),
        ("code", LOAD),
        ("code", "level = {'cm': 3}"),
        ("markdown", ""),
        ("code", "1/0"),
    )
    nb.panel(".ipymemory-state[data-state='absent']").wait_for()
    assert "%load_ext ipymemory" in nb.panel(".ipymemory-state").inner_text()
    nb.loaded(1)
    assert "project work" in nb.panel(".ipymemory-state").inner_text()
    nb.run(2)
    nb.edit(3)
    nb.page.keyboard.type(decision)
    nb.run(4)
    notes = nb.panel(".ipymemory-notes")
    notes.get_by_text("Tides at Windmill Quay").first.wait_for()
    notes.get_by_text("ZeroDivisionError").first.wait_for()
    notes.get_by_text("median").first.wait_for()

    def told() -> list[str]:
        return [
            each["source"]
            for each in nb.server.lines("markdown")
            if each["cell_id"] in ("c0", "c3") and each["source"]
        ]

    assert told() == ["# Tides at Windmill Quay", decision]
    shot(nb, "session")
    # the kernel restarts: nothing is loaded in the new one until the cell runs again
    nb.say("return panel.sessionContext.restartKernel().then(() => true);")
    nb.panel(".ipymemory-state[data-state='absent']").wait_for()
    nb.loaded(1)
    nb.run(2)
    # the page is loaded again, and finds the kernel as it is
    nb.command("docmanager:save")
    nb.page.reload()
    nb.ready()
    nb.command("ipymemory:show")
    nb.recording()
    notes.get_by_text("median").first.wait_for()
    nb.run(2)
    # another kernel, then one that crashes
    nb.say("return panel.sessionContext.changeKernel({name: 'python3'}).then(() => true);")
    nb.panel(".ipymemory-state[data-state='absent']").wait_for()
    nb.loaded(1)
    nb.kernel("import os, threading; threading.Timer(0.2, lambda: os._exit(9)).start()")
    nb.panel(".ipymemory-state[data-state='absent']").wait_for()
    nb.page.locator(".jp-Dialog button.jp-mod-accept").click()
    nb.loaded(1)
    nb.run(2)
    assert told() == ["# Tides at Windmill Quay", decision]


@pytest.mark.spec("M2")
def test_a_document_that_came_with_the_notebook_says_that_it_waits(notebook: Notebook) -> None:
    nb = notebook.open(
        "elsewhere.ipynb",
        ("markdown", "# MAGIC DOC: Tides\n\nThis line is theirs.\n"),
        ("code", LOAD),
        ("code", "%config MagicDocs.enabled = True\n%config Engine.idle_seconds = 0.5\nx = 1"),
        ("code", "%memory docs accept Tides"),
        ("code", "y = x"),
    )
    nb.loaded(1)
    nb.run(2)
    mark = nb.cell(0).locator(".ipymemory-mark[data-state='elsewhere']")
    mark.wait_for()
    assert mark.inner_text() == "waits" and "accept" in str(mark.get_attribute("aria-label"))
    nb.panel(".ipymemory-documents").get_by_text("%memory docs accept Tides").wait_for()
    assert nb.source(0) == "# MAGIC DOC: Tides\n\nThis line is theirs.\n"
    shot(nb, "elsewhere")
    for at in (3, 4):
        nb.run(at)
    says = "return panel.content.model.cells.get(0).sharedModel.getSource().includes(argument);"
    nb.until(says, "`y`")
    nb.cell(0).locator(".ipymemory-mark[data-state='current']").wait_for()


@pytest.mark.spec("M1", "M3", "M7")
def test_a_document_keeps_itself_true_while_cells_run(notebook: Notebook) -> None:
    nb = notebook.open(
        "true.ipynb",
        ("markdown", "# MAGIC DOC: Tides\n\nThis line is mine.\n"),
        ("code", LOAD),
        (
            "code",
            "%config MagicDocs.enabled = True\n%config Engine.idle_seconds = 0.5\n"
            "%memory docs accept",
        ),
        ("code", "LIMIT = 3.5\nlevels = [3, 4, 5]"),
        ("code", "high = [each for each in levels if each > LIMIT]"),
    )
    nb.loaded(1)
    for at in (2, 3, 4):
        nb.run(at)
    says = "return panel.content.model.cells.get(0).sharedModel.getSource().includes(argument);"
    nb.until(says, "`high` (list 2) from `levels`, `LIMIT`")
    nb.rendered(0).get_by_text("LIMIT", exact=True).first.wait_for()
    assert nb.source(0).startswith("# MAGIC DOC: Tides\n\nThis line is mine.\n")
    shot(nb, "document")
    nb.edit(3)
    nb.page.keyboard.press("Control+A")
    nb.page.keyboard.type("LIMIT = 4.5\nlevels = [3, 4, 5]")
    nb.run(3)
    nb.until(says, "`LIMIT` = `4.5`")
    assert "3.5" not in nb.source(0)
    # what it rests on is saved with it, so that a check needs neither kernel nor page
    nb.until("return panel.content.model.cells.get(0).getMetadata('ipymemory')?.doc;")
    assert nb.checked() == (0, "")
    mark = nb.cell(0).locator(".ipymemory-mark")
    assert mark.inner_text() == "living" and "up to date" in str(mark.get_attribute("aria-label"))
    nb.edit(4)
    nb.page.keyboard.press("Control+A")
    nb.page.keyboard.type("high = [each for each in levels if each >= LIMIT]")
    code, said = nb.checked()
    assert code == 1 and "[code 2] has changed" in said, said
    told = "cells have changed since it was written"
    nb.panel(".ipymemory-documents").get_by_text(told).wait_for()
    shot(nb, "stale")
    nb.run(4)
    eventually(lambda: nb.checked()[0] == 0, "the document names the cell as it is now")
    # one button takes the last update back and leaves what they wrote since
    nb.edit(0)
    nb.page.keyboard.press("Control+Home")
    nb.page.keyboard.press("End")
    nb.page.keyboard.type("\n\nThe gauge is at the quay.")
    nb.page.keyboard.press("Escape")
    item = nb.panel(".ipymemory-documents li")
    item.locator("summary").click()
    assert item.locator("ins").count()
    shot(nb, "changed")
    item.get_by_role("button", name="back").click()
    nb.until(says, "if each > LIMIT]")
    assert "The gauge is at the quay." in nb.source(0)
    # and it does not come again with what they write, only with other cells
    nb.edit(0)
    nb.page.keyboard.press("Control+Home")
    nb.page.keyboard.press("End")
    nb.page.keyboard.type("\n\nIt is read at noon.")
    nb.page.keyboard.press("Escape")
    eventually(
        lambda: any("read at noon" in each["source"] for each in nb.server.lines("markdown")),
        "the kernel is told what they wrote",
    )
    nb.page.wait_for_timeout(2000)
    assert not item.locator("summary").count() and "It is read at noon." in nb.source(0)
    assert "taken back" in item.locator(".ipymemory-why").inner_text()
    assert nb.checked()[0] == 1, "what it says now is of the cell as it was"
    nb.kernel("get_ipython().run_line_magic('config', 'MagicDocs.enabled = False')")
    nb.edit(4)
    nb.page.keyboard.press("Escape")
    nb.command("notebook:delete-cell")
    code, said = nb.checked()
    assert code == 1 and "gone" in said, said
    told = "cells have changed since it was written"
    nb.panel(".ipymemory-documents").get_by_text(told).wait_for()


@pytest.mark.spec("M7")
def test_an_update_lands_in_the_cell_and_can_be_undone(notebook: Notebook) -> None:
    nb = notebook.open(
        "lands.ipynb", ("markdown", DOC), ("code", LOAD), ("code", "1"), ("code", "print('x')")
    )
    nb.loaded(1)
    nb.run(2)
    mark = nb.cell(0).locator(".ipymemory-mark")
    assert mark.inner_text() == "living" and "not written" in str(mark.get_attribute("aria-label"))
    nb.panel(".ipymemory-documents").get_by_text("Tides").wait_for()
    nb.edit(3)
    nb.page.evaluate(
        """() => { const cell = window.jupyterapp.shell.currentWidget.content.model.cells.get(0);
            const comm = WebSocket.prototype; window.heard = 0; window.landed = 0;
            cell.sharedModel.changed.connect(() => { window.landed = performance.now(); }); }"""
    )
    nb.kernel(f"{HEARD}({event('c0', DOC, NEW)!r})")
    nb.until("return window.landed > 0;")
    assert nb.source(0) == NEW
    nb.rendered(0).get_by_text("at noon and at midnight").wait_for(timeout=900)
    # nobody lost the cursor
    assert nb.say(
        "const n = panel.content;"
        " return [n.activeCellIndex, n.mode, n.activeCell.editor.hasFocus()];"
    ) == [3, "edit", True]
    eventually(
        lambda: [
            each["outcome"] for each in nb.server.lines("event") if each["name"] == "document"
        ],
        "the kernel is told that it was applied",
    )
    # undo and redo, in the cell
    nb.edit(0)
    nb.page.keyboard.press("Control+z")
    nb.until("return panel.content.model.cells.get(0).sharedModel.getSource() === argument;", DOC)
    nb.page.keyboard.press("Control+Shift+z")
    nb.until("return panel.content.model.cells.get(0).sharedModel.getSource() === argument;", NEW)
    # written by an engine, so nobody's words
    assert {
        each["origin"] for each in nb.server.lines("markdown") if "MAGIC" in each["source"]
    } == {"file"}


@pytest.mark.spec("M2", "M3", "M7")
def test_a_document_follows_the_cells_that_run(notebook: Notebook) -> None:
    """From a cell that somebody writes to its new text, with nothing in between but the kernel."""
    head = "# MAGIC DOC: Levels\n"
    nb = notebook.open(
        "follows.ipynb", ("markdown", ""), ("code", LOAD), ("code", ""), ("code", "done = True")
    )
    nb.loaded(1)
    nb.kernel("get_ipython().run_line_magic('config', 'MagicDocs.enabled = True')")
    nb.run(3)
    nb.edit(0)
    nb.page.keyboard.type(head)
    nb.edit(2)
    nb.page.keyboard.type("levels_in_cm = [3, 4, 5]")
    nb.run(2)
    nb.until(
        "return panel.content.model.cells.get(0).sharedModel.getSource().includes('levels_in_cm');",
        timeout=40_000,
    )
    assert nb.source(0).startswith(head)
    shot(nb, "follows")
    # what somebody writes into it stays when it is made anew
    nb.edit(0)
    nb.page.keyboard.press("Control+Home")
    nb.page.keyboard.press("End")
    nb.page.keyboard.type("\n\nThe gauge is at the quay.")
    nb.edit(3)
    nb.page.keyboard.press("Control+a")
    nb.page.keyboard.type("highest_level = max(levels_in_cm)")
    nb.run(3)
    nb.until(
        "return panel.content.model.cells.get(0).sharedModel.getSource().includes('highest_level')",
        timeout=40_000,
    )
    assert "The gauge is at the quay." in nb.source(0) and "levels_in_cm" in nb.source(0)


@pytest.mark.spec("M7", "M9")
def test_each_mark_says_how_its_document_stands(notebook: Notebook) -> None:
    code = ("LIMIT = 3.5", "levels = [3, 4, 5]")
    cells = [Cell(f"c{at + 3}", hash_of(each)) for at, each in enumerate(code)]
    record = made("2026-01-02T03:04:05Z", "opened.ipynb", cells).as_dict()
    other = DOC.replace("Tides", "Levels")
    nb = notebook.open(
        "opened.ipynb",
        ("markdown", DOC),
        ("markdown", other),
        ("code", LOAD),
        *(("code", each) for each in code),
        records={0: record, 1: {**record, "rests_on": record["rests_on"][:1]}},
    )
    marks = [nb.cell(at).locator(".ipymemory-mark") for at in (0, 1)]
    # nobody has compared it, so it is not said to be true
    for each in marks:
        each.wait_for()
        assert each.get_attribute("data-state") == "opened"
        assert "once ipymemory is loaded" in str(each.get_attribute("aria-label"))
    nb.loaded(2)
    nb.cell(0).locator(".ipymemory-mark[data-state='current']").wait_for()
    nb.cell(1).locator(".ipymemory-mark[data-state='stale']").wait_for()
    nb.panel(".ipymemory-why").get_by_text("[code 2] is new").wait_for()
    shot(nb, "opened")
    # a cell that changes is seen at once, and when it is as it was and saved, that too
    nb.edit(3)
    nb.page.keyboard.press("End")
    nb.page.keyboard.type("5")
    nb.cell(0).locator(".ipymemory-mark[data-state='stale']").wait_for()
    nb.command("docmanager:save")
    nb.panel(".ipymemory-why").get_by_text("[code 1] has changed").first.wait_for()
    nb.page.keyboard.press("Backspace")
    nb.command("docmanager:save")
    nb.cell(0).locator(".ipymemory-mark[data-state='current']").wait_for()
    # a model writes it just now
    for cell, state in (("c0", "updating"), ("", "current")):
        told = {"kind": "document_now", "job": "magic_docs", "details": {"cell_id": cell}}
        nb.kernel(f"{HEARD}({told!r})")
        nb.cell(0).locator(f".ipymemory-mark[data-state='{state}']").wait_for()
        assert nb.cell(1).locator(".ipymemory-mark").get_attribute("data-state") == "stale"
        if cell:
            details = {"text": "Reading clean.py", "kept": "Reading clean.py", "by": "code"}
            told = {"kind": "doing", "job": "magic_docs", "details": details}
            nb.kernel(f"{HEARD}({told!r})")
            nb.panel(".ipymemory-documents").get_by_text("Reading clean.py …").wait_for()
            shot(nb, "updating")
    assert not nb.panel(".ipymemory-documents").get_by_text("Reading clean.py").count()
    # in the mode confirm a text waits for a yes, and nothing is put in before
    told = event("c0", DOC, NEW)
    told["details"] |= {"propose": True, "record": record}
    nb.kernel(f"{HEARD}({told!r})")
    nb.cell(0).locator(".ipymemory-mark[data-state='proposal']").wait_for()
    assert nb.source(0) == DOC
    # each is reached by the keyboard, has a name, and the same in its tooltip
    for each in marks:
        each.focus()
        nb.page.keyboard.press("Shift+Tab")
        nb.page.keyboard.press("Tab")
        assert each.evaluate("mark => document.activeElement === mark")
        label = str(each.get_attribute("aria-label"))
        assert label.startswith("Living document") and each.get_attribute("title") == label
    nb.panel(".ipymemory-documents").get_by_role("button", name="Use the proposed").click()
    nb.until("return panel.content.model.cells.get(0).sharedModel.getSource() === argument;", NEW)
    nb.cell(0).locator(".ipymemory-mark[data-state='current']").wait_for()


@in_lab
@pytest.mark.spec("M7")
def test_an_update_lands_within_300_ms(notebook: Notebook) -> None:
    nb = notebook.open("soon.ipynb", ("markdown", DOC), ("code", LOAD), ("code", "1"))
    nb.loaded(1)
    nb.run(2)
    nb.page.evaluate(
        """() => { const cell = window.jupyterapp.shell.currentWidget.content.model.cells.get(0);
            cell.sharedModel.changed.connect(() => { window.landed = Date.now(); }); }"""
    )
    # the kernel notes when it sent the update, by the same clock
    nb.kernel(
        "import time, threading\n"
        "def _send():\n    global _sent\n    _sent = time.time()\n"
        f"    {HEARD}({event('c0', DOC, NEW)!r})\n"
        "_t = threading.Thread(target=_send); _t.start(); _t.join()"
    )
    nb.until("return window.landed > 0;")
    sent = nb.say(
        "return panel.sessionContext.session.kernel"
        ".requestExecute({code: '', silent: true, user_expressions: {t: '_sent'}}).done"
        ".then(told => Number(told.content.user_expressions.t.data['text/plain']));"
    )
    assert nb.page.evaluate("window.landed") - sent * 1000 < 300
    # and within as much of leaving the cell
    nb.edit(0)
    nb.update("c0", NEW, DOC)
    nb.cell(0).locator(".ipymemory-mark[data-state='waiting']").wait_for()
    assert nb.source(0) == NEW
    nb.page.evaluate("window.landed = 0")
    began = nb.page.evaluate(
        """() => { const began = Date.now();
            window.jupyterapp.shell.currentWidget.content.mode = 'command'; return began; }"""
    )
    nb.until("return window.landed > 0;")
    assert nb.page.evaluate("window.landed") - began < 300
    assert nb.source(0) == DOC


@pytest.mark.spec("M7")
def test_typing_while_fifty_updates_arrive_loses_nothing(notebook: Notebook) -> None:
    nb = notebook.open("typing.ipynb", ("markdown", DOC), ("code", LOAD), ("code", "1"))
    nb.loaded(1)
    nb.run(2)
    nb.edit(0)
    nb.page.keyboard.press("Control+End")
    made = [DOC.replace("at noon", f"at noon, {n} times") for n in range(50)]
    events = [event("c0", DOC, each) for each in made]
    nb.page.evaluate(
        """() => { const cell = window.jupyterapp.shell.currentWidget.content.model.cells.get(0);
            window.changes = [];
            cell.sharedModel.changed.connect(() => window.changes.push(
                cell.sharedModel.getSource())); }"""
    )
    nb.kernel(
        "import threading, time\n"
        f"def _send():\n    for e in {events!r}:\n        {HEARD}(e); time.sleep(0.06)\n"
        "threading.Thread(target=_send).start()"
    )
    typed = "\nTyped at ten characters a second."
    nb.page.keyboard.type(typed, delay=100)
    assert nb.source(0) == DOC + typed
    nb.page.keyboard.press("Escape")
    nb.until(
        "return panel.content.model.cells.get(0).sharedModel.getSource() === argument;",
        made[-1] + typed,
    )
    changes = nb.page.evaluate("window.changes")
    # one change a character, and one merged update
    assert len(changes) == len(typed) + 1
    time.sleep(0.5)
    applied = [each for each in nb.server.lines("event") if each.get("outcome") == "applied"]
    assert nb.source(0) == made[-1] + typed and applied
    # the person's step and the update's are two
    nb.edit(0)
    nb.page.keyboard.press("Control+z")
    nb.until(
        "return panel.content.model.cells.get(0).sharedModel.getSource() === argument;", DOC + typed
    )


@pytest.mark.spec("M7")
def test_a_conflict_leaves_the_persons_text_and_keeps_a_proposal(notebook: Notebook) -> None:
    nb = notebook.open("conflict.ipynb", ("markdown", DOC), ("code", LOAD), ("code", "1"))
    nb.loaded(1)
    nb.run(2)
    nb.edit(0)
    mine = DOC.replace("at noon", "at dawn")
    nb.say("panel.content.model.cells.get(0).sharedModel.setSource(argument);", mine)
    nb.update("c0", DOC, NEW)
    nb.page.keyboard.press("Escape")
    nb.cell(0).locator(".ipymemory-mark[data-state='proposal']").wait_for()
    assert nb.source(0) == mine
    item = nb.panel(".ipymemory-documents li")
    assert "at noon and at midnight" in item.locator("ins").inner_text()
    assert "at dawn" in item.locator("del").inner_text()
    shot(nb, "proposal")
    # by keyboard alone: the mark leads to the document's line, and from there on
    nb.cell(0).locator(".ipymemory-mark").focus()
    nb.page.keyboard.press("Enter")
    nb.page.wait_for_function("() => document.activeElement?.closest('[data-cell]')")
    nb.page.keyboard.press("Tab")
    nb.page.keyboard.press("Tab")
    assert nb.page.evaluate("document.activeElement.textContent") == "Use this text"
    nb.page.keyboard.press("Enter")
    nb.until("return panel.content.model.cells.get(0).sharedModel.getSource() === argument;", NEW)
    nb.cell(0).locator(".ipymemory-mark[data-state='new']").wait_for()
    outcomes = [each["outcome"] for each in nb.server.lines("event") if each["name"] == "document"]
    assert "conflict" in outcomes


MAGIC = "get_ipython().run_line_magic('memory', {!r})"


@in_lab
@pytest.mark.spec("M7", "L8")
def test_an_update_in_a_cell_is_in_the_history_and_undone_from_there(notebook: Notebook) -> None:
    nb = notebook.open(
        "history.ipynb",
        ("markdown", DOC),
        ("code", LOAD),
        ("code", "1"),
        ("code", "%memory undo"),
        ("code", "%memory history"),
    )
    get = "return panel.content.model.cells.get(0).sharedModel.getSource() === argument;"

    def runs() -> list[str]:
        paths = list(nb.server.home.glob("projects/*/history/log.jsonl"))
        told = [json.loads(line) for path in paths for line in path.read_bytes().splitlines()]
        return [e["reason"] for e in told if e["type"] == "run" and e["job"] == "magic_docs"][seen:]

    seen = 0
    seen = len(runs())
    nb.loaded(1)
    nb.run(2)
    nb.update("c0", DOC, NEW, "20990101T000000000000aaaa")
    nb.until(get, NEW)
    eventually(lambda: runs() == ['update of "Tides" in its cell'], "it is in the history")
    nb.run(3)
    nb.until(get, DOC)
    nb.cell(3).get_by_text("Undone: magic_docs").wait_for()
    assert len(runs()) == 2 and runs()[-1].startswith("undo of 20990101")
    # what was undone does not come again, not even by itself from another page
    nb.update("c0", DOC, NEW)
    nb.page.wait_for_timeout(400)
    assert nb.source(0) == DOC
    # the undo is undone, and then the update is taken back by the cell's own keys
    nb.kernel(MAGIC.format(f"undo {undo_of(nb)}"))
    nb.until(get, NEW)
    nb.edit(0)
    nb.page.keyboard.press("Control+z")
    nb.until(get, DOC)
    eventually(lambda: len(runs()) == 4, "that too is in the history")
    nb.page.keyboard.press("Escape")
    # with words of theirs in it, those stay
    other = DOC.replace("at noon", "at dusk")
    nb.update("c0", DOC, other, "20990101T000000000001aaaa")
    nb.until(get, other)
    nb.edit(0)
    nb.page.keyboard.press("Control+End")
    nb.page.keyboard.type("Mine.")
    nb.page.keyboard.press("Escape")
    eventually(lambda: len(runs()) == 5, "the second one is in the history too")
    nb.run(3)
    nb.until(get, DOC + "Mine.")
    nb.run(4)
    shot(nb, "history")
    # a proposal that is taken is told as such
    told = event("c0", DOC + "Mine.", NEW, "20990101T000000000002aaaa")
    told["details"]["propose"] = True
    nb.kernel(f"{HEARD}({told!r})")
    nb.panel(".ipymemory-documents").get_by_role("button", name="Use the proposed").click()
    nb.until(get, NEW)
    eventually(lambda: nb.server.lines("event")[-1].get("outcome") == "accepted", "told")
    eventually(lambda: len(runs()) == 7, "it is in the history")
    # with no page that shows it there is nothing to take it back in
    nb.kernel("get_ipython()._ipymemory.frontend.remove()")
    nb.run(3)
    nb.cell(3).get_by_text("Open the notebook there").wait_for()


@in_lab
@pytest.mark.spec("M7", "L8")
def test_documents_outlive_a_restart_and_a_page_that_is_loaded_again(notebook: Notebook) -> None:
    nb = notebook.open(
        "outlive.ipynb",
        ("markdown", DOC),
        ("code", LOAD),
        ("code", "1"),
        ("code", "%memory undo"),
    )
    get = "return panel.content.model.cells.get(0).sharedModel.getSource() === argument;"
    nb.loaded(1)
    nb.run(2)
    told = {"kind": "document_now", "job": "magic_docs", "details": {"cell_id": "c0"}}
    nb.kernel(f"{HEARD}({told!r})")
    mark = nb.cell(0).locator(".ipymemory-mark[data-state='updating']")
    mark.wait_for()
    # the kernel that wrote is gone, and with it what it wrote
    nb.say("return panel.sessionContext.restartKernel().then(() => true);")
    nb.panel(".ipymemory-state[data-state='absent']").wait_for()
    mark.wait_for(state="detached")
    nb.loaded(1)
    nb.run(2)
    nb.update("c0", DOC, NEW, "20990202T000000000000aaaa")
    nb.until(get, NEW)
    lines = nb.server.home.glob
    eventually(
        lambda: any(
            "20990202" in path.read_text() for path in lines("projects/*/history/log.jsonl")
        ),
        "the update is in the history",
    )
    # a page that is loaded again knows no step of its own, and takes the update back all the same
    nb.command("docmanager:save")
    nb.page.reload()
    nb.ready()
    nb.command("ipymemory:show")
    nb.recording()
    assert nb.source(0) == NEW
    nb.run(3)
    nb.until(get, DOC)


def undo_of(nb: Notebook) -> str:
    """Return the id of the newest undo of a document's update."""
    (path,) = nb.server.home.glob("projects/*/history/log.jsonl")
    told = [json.loads(line) for line in path.read_bytes().splitlines()]
    return str([each["run"] for each in told if each["type"] == "run" and each["undoes"]][-1])


@pytest.mark.spec("D5", "D6", "D7", "L12")
def test_a_dream_is_shown_while_it_runs_and_ends_by_its_button(notebook: Notebook) -> None:
    words = ("Exports of the shop are delivered as CSV files", "Levels of the lake are in metres")
    with ModelServer(lambda body, number: "Nothing is to be done.") as model:
        model.faults = [Fault("hang")]
        nb = notebook.open(
            "dream.ipynb", ("code", LOAD), ("code", "1"), ("code", "%memory dream --now")
        )
        nb.kernel(f"import os; os.environ.update({model.environment()!r})")
        nb.loaded(0)
        nb.run(1)
        for line in (*(f"remember {each}." for each in words), "engine anthropic"):
            nb.kernel(MAGIC.format(line))
        nb.edit(2)
        nb.page.keyboard.press("Control+Enter")
        dream = nb.panel(".ipymemory-dream")
        dream.get_by_text("brings together").wait_for()
        # the cell shows the same, in place of the words that are saved
        nb.cell(2).locator(".ipymemory-dream[data-status='running']").wait_for()
        assert not nb.cell(2).get_by_text("ipymemory dream --kill").is_visible()
        eventually(lambda: model.requests, "the model is asked")
        shot(nb, "dreaming")
        button = dream.get_by_role("button", name="End the dream")
        button.focus()
        nb.page.keyboard.press("Enter")
        nb.panel(".ipymemory-dream[data-status='killed']").wait_for()
        (state,) = nb.server.home.glob("projects/*/dream/state.json")
        told, wish = (
            datetime.fromisoformat(json.loads(path.read_text())[name])
            for path, name in ((state, "ended"), (state.with_name("kill.json"), "time"))
        )
        assert (told - wish).total_seconds() < 1
        assert not button.is_visible()
        assert nb.page.evaluate("document.activeElement.closest('.ipymemory-dream') !== null")
        nb.cell(2).get_by_text("The dream was ended. The").wait_for()
        nb.run(2)
        nb.panel(".ipymemory-dream[data-status='done']").wait_for()
        shot(nb, "dreamt")
        nb.command("docmanager:save")
        saved = (nb.server.work / "dream.ipynb").read_text("utf-8")
        assert "memories looked through" in saved
        assert not [each for each in words if each in saved]
        # of a dream that another process had a page is told when it asks
        began = {**json.loads(state.read_text()), "id": "f" * 24, "status": "running"}
        state.write_text(json.dumps(began))
        nb.page.reload()
        nb.ready()
        nb.command("ipymemory:show")
        nb.panel(".ipymemory-dream[data-status='running']").wait_for()
        state.write_text(json.dumps({**began, "status": "done"}))
        nb.panel(".ipymemory-dream[data-status='done']").wait_for()


@in_lab
@pytest.mark.spec("M1")
def test_nothing_is_written_where_no_living_document_is(notebook: Notebook) -> None:
    evil = "# Tides <img src=x onerror='window.evil = 1'><script>window.evil = 2</script>"
    title = "# MAGIC DOC: <img src=x onerror='window.evil = 4'> __proto__"
    rests = {"__proto__": 1, "rests_on": [None, 3, {"cell": "__proto__"}], "updated": ["x"]}
    nb = notebook.open(
        "hostile.ipynb",
        ("markdown", evil),
        ("code", LOAD),
        ("code", "1"),
        ("markdown", title),
        records={3: rests},
    )
    nb.loaded(1)
    nb.run(2)
    # what a heading holds is text wherever it is shown
    assert "<img src=x" in nb.panel(".ipymemory-documents .ipymemory-link").inner_text()
    assert nb.panel(".ipymemory-documents img").count() == 0
    nb.panel(".ipymemory-notes").get_by_text("Tides").first.wait_for()
    nb.update("c0", evil, "mine now")
    nb.update("c2", "1", "import os")
    push = "get_ipython()._ipymemory.frontend.push"
    for data in (
        "'doc.update', cell='c2', base='1', source='import os', job=''",
        "'doc.update', cell='c0', base=None, source=3",
        "'doc.update'",
        "'notes', text=7",
        "'notes', text='# Tides\\n\\n<b onclick=\"window.evil = 3\">x</b> ![](http://x/y.png)'",
        "'status', project=['x']",
        "'no such thing'",
        "'doc.update', cell='__proto__', base='constructor', source='x' * 5_000_000",
        "'doc.update', cell='c1', base='', source='x' * 5_000_000, job={'__proto__': 1}",
        "'doc.updating', cell={'__proto__': 1}",
        "'doc.updating', cell='__proto__', doing='<img src=x>'",
        "'doc.standing', documents={'length': 1e9}",
        "'doc.standing', documents=[None, 3, 'x', [], {}, {'cell': '__proto__'}] * 9_000",
        "'doc.standing', documents=[{'cell': 'c1', 'updated': 'x', 'stale': [{}] * 9_000}]",
        "'dream', state='x', turn=3, file=[None], doing={'text': {}}",
        "'notes', text='x' * 5_000_000",
    ):
        nb.kernel(f"{push}({data})")
    time.sleep(0.5)
    assert (nb.source(0), nb.source(2)) == (evil, "1")
    assert nb.page.evaluate("window.evil") is None
    assert nb.panel(".ipymemory-notes img").count() == 0
    assert (nb.source(3), nb.page.evaluate("({}).polluted ?? ({}).id")) == (title, None)
    # and it goes on
    nb.update("c3", title, f"{title}\n\nTrue.\n")
    nb.until("return panel.content.model.cells.get(3).sharedModel.getSource().includes('True');")
    nb.run(2)


@in_lab
@pytest.mark.spec("M7")
def test_of_a_hundred_documents_one_update_touches_one(notebook: Notebook) -> None:
    docs = [("markdown", DOC.replace("Tides", f"Tides {n}")) for n in range(100)]
    nb = notebook.open("hundred.ipynb", ("code", LOAD), ("code", "1"), *docs)
    nb.loaded(0)
    nb.run(1)
    nb.until("return document.querySelectorAll('.ipymemory-documents > li').length === 100;")
    nb.page.evaluate(
        """() => { window.touched = [];
            for (const cell of window.jupyterapp.shell.currentWidget.content.model.cells) {
                cell.sharedModel.changed.connect(() => window.touched.push(cell.id)); } }"""
    )
    base = docs[40][1]
    nb.update("c42", base, base.replace("at noon", "at dusk"))
    nb.until("return window.touched.length > 0;")
    time.sleep(0.3)
    assert nb.page.evaluate("window.touched") == ["c42"]


@pytest.mark.spec("M7")
def test_two_pages_of_a_shared_notebook_get_one_update(browser: Any, shared: Server) -> None:
    """With jupyter-collaboration: what two pages put in stands there once, whoever types."""
    pages = [browser.new_page(viewport={"width": 1280, "height": 860}) for _ in range(2)]
    first, second = (Notebook(each, shared) for each in pages)
    first.open("shared.ipynb", ("markdown", DOC), ("code", LOAD), ("code", "1"))
    second.page.goto(shared.page("shared.ipynb"))
    second.ready()
    second.command("ipymemory:show")
    first.loaded(1)
    first.run(2)
    second.recording()
    get = "return panel.content.model.cells.get(0).sharedModel.getSource()"
    texts = [DOC, NEW, NEW.replace("Levels are", "All levels are")]
    # nobody writes: both pages hear of it, one puts it in
    for at in (1, 2):
        first.update("c0", texts[at - 1], texts[at])
        for each in (first, second):
            each.until(f"{get} === argument;", texts[at])
    pages[0].wait_for_timeout(500)
    assert first.source(0) == second.source(0) == texts[-1]
    # somebody types in the second page while updates come: it waits there, and lands once
    second.edit(0)
    second.page.keyboard.press("Control+End")
    made = [texts[-1].replace("noon and", f"noon, {n} times, and") for n in range(10)]
    events = [event("c0", texts[-1], each) for each in made]
    first.kernel(
        "import threading, time\n"
        f"def _send():\n    for e in {events!r}:\n        {HEARD}(e); time.sleep(0.1)\n"
        "threading.Thread(target=_send).start()"
    )
    typed = "\nTyped by another person."
    second.page.keyboard.type(typed, delay=60)
    pages[0].wait_for_timeout(500)
    assert first.source(0) == second.source(0) == texts[-1] + typed
    second.page.keyboard.press("Escape")
    for each in (first, second):
        each.until(f"{get} === argument;", made[-1] + typed)
    pages[0].wait_for_timeout(500)
    assert first.source(0) == second.source(0) == made[-1] + typed
    shot(second, "shared")
    # one is gone without a word, the other goes on: at the latest when the first is missed
    second.page.close()
    first.update("c0", made[-1] + typed, DOC)
    first.until(f"{get} === argument;", DOC, timeout=60_000)
    first.say("return panel.sessionContext.shutdown().then(() => true);")
    first.page.close()


@in_lab
@pytest.mark.spec("M8")
def test_without_our_extension_the_page_is_told_of_by_the_doctor(notebook: Notebook) -> None:
    notebook.page.route("**/extensions/ipymemory/**", lambda route: route.abort())
    cells = (("markdown", DOC), ("code", LOAD), ("code", "1"), ("code", "%memory doctor"))
    nb = notebook.open("missing.ipynb", *cells, panel=False)
    for at in (1, 2, 3):
        nb.run(at)
    nb.cell(3).get_by_text("the page does not know it").wait_for()
    assert nb.cell(2).locator(".jp-OutputArea-output").inner_text() == "1"
    assert nb.source(0) == DOC
    # and is found when it is there
    nb.page.unroute("**/extensions/ipymemory/**")
    nb.command("docmanager:save")
    nb.page.reload()
    nb.ready()
    nb.command("ipymemory:show")
    nb.recording()
    nb.run(3)
    assert "the page" not in nb.cell(3).locator(".jp-OutputArea").inner_text()


@in_lab
def test_a_setting_loads_it_by_itself(notebook: Notebook) -> None:
    notebook.server.setting("ipymemory:plugin", {"autoLoad": True})
    try:
        nb = notebook.open("setting.ipynb", ("markdown", "# Tides"), ("code", "1"))
        nb.recording()
        nb.run(1)
        # nothing of it is seen in the notebook, and the cell is the first
        assert nb.say("return panel.content.model.cells.get(1).sharedModel.execution_count;") == 1
        nb.panel(".ipymemory-notes").get_by_text("Tides").first.wait_for()
    finally:
        notebook.server.setting("ipymemory:plugin", {})


@in_lab
def test_a_kernel_without_ipymemory_is_left_as_it_is(notebook: Notebook) -> None:
    notebook.server.setting("ipymemory:plugin", {"autoLoad": True})
    try:
        cells = (("markdown", DOC), ("code", "1/0"), ("code", "2"))
        nb = notebook.open("without.ipynb", *cells, kernel=BARE)
        nb.panel(".ipymemory-state[data-state='absent']").wait_for()
        nb.run(1)
        nb.run(2)
        assert [nb.say(COUNT, at) for at in (1, 2)] == [1, 2]
        outputs = [nb.cell(at).locator(".jp-OutputArea-output").all_inner_texts() for at in (1, 2)]
        assert "ZeroDivisionError" in outputs[0][0] and outputs[1] == ["2"]
        assert nb.cell(0).locator(".ipymemory-mark").inner_text() == "living"
        # and one that has it, chosen later, is found
        nb.say("return panel.sessionContext.changeKernel({name: 'python3'}).then(() => true);")
        nb.recording()
        nb.say("return panel.sessionContext.changeKernel({name: argument}).then(() => true);", BARE)
        nb.panel(".ipymemory-state[data-state='absent']").wait_for()
        nb.run(2)
    finally:
        notebook.server.setting("ipymemory:plugin", {})


@in_lab
@pytest.mark.spec("M7")
def test_a_document_of_5_mb_is_refused_with_a_sentence(notebook: Notebook) -> None:
    nb = notebook.open(
        "long.ipynb", ("markdown", DOC), ("markdown", "# T"), ("code", LOAD), ("code", "1")
    )
    nb.loaded(2)
    nb.run(3)
    # as a picture that was pasted into the text
    long = DOC + "\n![](data:image/png;base64," + "A" * 5_000_000 + ")\n"
    nb.say("panel.content.model.cells.get(0).sharedModel.setSource(argument);", long)
    nb.cell(0).locator(".ipymemory-mark[data-state='long']").wait_for()
    assert "Split it" in nb.panel(".ipymemory-documents li p").inner_text()
    nb.edit(1)
    nb.page.keyboard.press("End")
    nb.page.keyboard.type("ides in short")
    nb.run(3)
    nb.panel(".ipymemory-notes").get_by_text("Tides in short").first.wait_for()
    nb.update("c0", DOC, NEW)
    nb.page.wait_for_timeout(300)
    assert nb.source(0) == long


@pytest.mark.parametrize("theme", ["JupyterLab Light", "JupyterLab Dark"])
def test_it_can_be_read_in_both_themes_wide_and_narrow(notebook: Notebook, theme: str) -> None:
    """Every mark, and what the panel says of each."""
    titles = ("Tides", "Levels", "Gauges", "Stations", "Reports", "Maps")
    docs = [DOC.replace("Tides", each) for each in titles]
    code = ("level = [3, 4, 5]", "level['cm']")
    cells = [Cell(f"c{at + 7}", hash_of(each)) for at, each in enumerate(code)]
    record = made("2026-01-02T03:04:05Z", "looks.ipynb", cells).as_dict()
    old = {**record, "rests_on": record["rests_on"][:1]}
    nb = notebook.open(
        "looks.ipynb",
        *(("markdown", each) for each in docs),
        ("code", LOAD),
        *(("code", each) for each in code),
        records={1: record, 2: old, 3: record},
    )
    nb.page.evaluate(
        """async theme => { await window.jupyterapp.commands.execute('apputils:change-theme',
            {theme}); }""",
        theme,
    )
    nb.page.wait_for_function("theme => document.body.dataset.jpThemeName === theme", arg=theme)
    nb.cell(1).locator(".ipymemory-mark[data-state='opened']").wait_for()
    name = theme.split()[-1].lower()
    shot(nb, f"{name}-opened")
    nb.loaded(6)
    nb.run(7)
    nb.run(8)
    nb.panel(".ipymemory-notes").get_by_text("TypeError").first.wait_for()
    told = {"kind": "document_now", "job": "magic_docs", "details": {"cell_id": "c3"}}
    nb.kernel(f"{HEARD}({told!r})")
    told = event("c4", docs[4], docs[4].replace("at noon", "at noon and at midnight"))
    told["details"]["propose"] = True
    nb.kernel(f"{HEARD}({told!r})")
    nb.edit(5)
    nb.update("c5", docs[5], docs[5].replace("noon", "dusk"))
    states = ("new", "current", "stale", "updating", "proposal", "waiting")
    for at, state in enumerate(states):
        nb.show(at)
        nb.cell(at).locator(f".ipymemory-mark[data-state='{state}']").wait_for()
    for width, what in ((1280, "wide"), (760, "narrow"), (300, "narrowest")):
        nb.page.set_viewport_size({"width": width, "height": 860})
        nb.page.wait_for_timeout(300)
        nb.show(1)
        shot(nb, f"{name}-{what}")
        parts = nb.panel().locator("p, h2, li, button, summary").all()
        seen = [each for each in parts if each.is_visible() and each.inner_text()]
        assert len(seen) > 5 or width < 760
        # WCAG AA for text of this size
        faint = [(each.inner_text(), _contrast(each)) for each in seen if _contrast(each) < 4.5]
        assert not faint
        for at in range(6):
            nb.show(at)
            each = nb.cell(at).locator(".ipymemory-mark")
            assert _contrast(each) >= 4.5, (what, each.inner_text())
            box, beside = each.bounding_box(), each.locator("xpath=..").locator(BESIDE).first
            text = beside.bounding_box()
            # a mark covers nothing of its document, and all of its word is seen
            assert box is not None and text is not None
            left, above = box["x"] + box["width"], box["y"] + box["height"]
            assert left <= text["x"] + 1 or above <= text["y"] + 1, (what, box, text)
            assert each.evaluate("mark => mark.scrollWidth <= mark.clientWidth + 1")
        box, edge = nb.panel().bounding_box(), width + 1
        assert box is None or width < 760 or box["x"] + box["width"] <= edge
        assert nb.panel().evaluate("panel => panel.scrollWidth <= panel.clientWidth + 1")
    nb.page.set_viewport_size({"width": 1280, "height": 860})
    if nb.server.app == "lab":
        assert nb.page.locator(".ipymemory-status").inner_text() == "Memory: recording"
    # every control has a name for who cannot see it
    assert nb.page.evaluate(
        """() => [...document.querySelectorAll(
            '.ipymemory-panel button, .ipymemory-mark, .ipymemory-status')]
            .every(each => each.getAttribute('aria-label') || each.textContent.trim())"""
    )
    # the update that waits lands when the cell is left
    nb.page.keyboard.press("Escape")
    nb.until("return panel.content.model.cells.get(5).sharedModel.getSource().includes('dusk');")


BESIDE = ".jp-MarkdownOutput:visible, .jp-InputArea-editor:visible"


def _contrast(element: Any) -> float:
    """Return the contrast of an element's text on what is behind it, by WCAG's formula."""
    return float(
        element.evaluate(
            """element => {
                const parse = text => (text.match(/[\\d.]+/g) ?? []).map(Number);
                let node = element, back = [255, 255, 255];
                while (node) {
                    const found = parse(getComputedStyle(node).backgroundColor);
                    if (found.length === 3 || found[3] > 0) { back = found; break; }
                    node = node.parentElement;
                }
                const parsed = parse(getComputedStyle(element).color);
                const alpha = parsed[3] ?? 1;
                const front = parsed.slice(0, 3).map(
                    (each, n) => alpha * each + (1 - alpha) * back[n]);
                const light = color => {
                    const [r, g, b] = color.slice(0, 3).map(each => {
                        const part = each / 255;
                        return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
                    });
                    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
                };
                const one = light(front), two = light(back);
                return (Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05);
            }"""
        )
    )
