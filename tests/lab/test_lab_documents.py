"""What waits for a living document, and whose text it is, in a real browser."""

from __future__ import annotations

import pytest
from driver import Notebook
from test_lab import DOC, LOAD, in_lab, shot
from test_lab import browser as browser
from test_lab import notebook as notebook
from test_lab import running as running

from ipymemory.document_records import Cell, hash_of, made

pytestmark = pytest.mark.lab

SAYS = "return panel.content.model.cells.get(0).sharedModel.getSource().includes(argument);"


@in_lab
@pytest.mark.spec("M7", "M9", "L10")
def test_a_proposal_that_is_told_again_still_names_its_cells(notebook: Notebook) -> None:
    nb = notebook.open(
        "again.ipynb",
        ("markdown", "# MAGIC DOC: Again\n"),
        ("code", LOAD),
        ("code", "LIMIT = 3.5"),
        ("code", "%memory docs accept Again\n%memory mode confirm\n%memory docs update Again"),
        ("code", "%memory mode auto"),
    )
    nb.loaded(1)
    nb.run(2)
    nb.run(3)
    waits = nb.cell(0).locator(".ipymemory-mark[data-state='proposal']")
    waits.wait_for()
    nb.command("docmanager:save")
    nb.page.reload()
    nb.ready()
    nb.command("ipymemory:show")
    nb.recording()
    waits.wait_for()
    nb.panel(".ipymemory-documents").get_by_role("button", name="Use the proposed").click()
    nb.until(SAYS, "`LIMIT` = `3.5`")
    nb.cell(0).locator(".ipymemory-mark[data-state='current']").wait_for()
    nb.run(4)
    assert nb.checked() == (0, "")


@in_lab
@pytest.mark.spec("M5", "M7", "M9")
def test_a_models_text_says_that_it_is_older_than_its_cells(notebook: Notebook) -> None:
    cells = [Cell("c2", hash_of("LIMIT = 3.5"))]
    record = made("2026-01-02T03:04:05Z", "older.ipynb", cells, "anthropic").as_dict()
    nb = notebook.open(
        "older.ipynb",
        ("markdown", DOC),
        ("code", LOAD),
        ("code", "LIMIT = 4.5"),
        ("code", "%memory docs accept Tides"),
        ("code", "%memory docs update Tides"),
        records={0: record},
    )
    nb.loaded(1)
    for at in (2, 3, 4):
        nb.run(at)
    nb.until(SAYS, "_The text above is older than its cells: [code 1] has changed._")
    nb.rendered(0).get_by_text("older than its cells").wait_for()
    assert nb.source(0).startswith(DOC) and "Overview" not in nb.source(0)
    # it is as stale as it was, here as for a check
    nb.cell(0).locator(".ipymemory-mark[data-state='stale']").wait_for()
    assert nb.checked()[0] == 1
    nb.cell(0).locator(".ipymemory-mark[data-state='stale']").wait_for()
    for theme in ("JupyterLab Light", "JupyterLab Dark"):
        nb.page.evaluate(
            """async theme => { await window.jupyterapp.commands.execute('apputils:change-theme',
                {theme}); }""",
            theme,
        )
        nb.page.wait_for_function("theme => document.body.dataset.jpThemeName === theme", arg=theme)
        nb.page.wait_for_timeout(300)
        shot(nb, f"{theme.split()[-1].lower()}-older")
    # the cell is as it was, and so is the text
    nb.edit(2)
    nb.page.keyboard.press("Control+a")
    nb.page.keyboard.type("LIMIT = 3.5")
    nb.run(2)
    nb.run(4)
    nb.until("return panel.content.model.cells.get(0).sharedModel.getSource() === argument;", DOC)
    nb.cell(0).locator(".ipymemory-mark[data-state='current']").wait_for()
    assert nb.checked() == (0, "")
