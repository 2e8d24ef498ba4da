"""A dream in the cell that began it, in a real browser: watched, ended, agreed to, taken back."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import dream_set
import pytest
from driver import Notebook
from kernels import eventually
from model_server import Fault, ModelServer
from scripted import good
from test_lab import LOAD, MAGIC, _contrast, browser, notebook, running, shot

pytestmark = pytest.mark.lab

__all__ = ["browser", "notebook", "running"]

WORDS = ("town", "Levels of the lake", "server 0")
"""What stands in memories, and in nothing that is saved with a notebook."""

STALE = {"id": "f" * 24, "status": "running", "step": "gather"}
"""A dream that a page takes for running, and that is over."""


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with ModelServer(lambda body, number: "Nothing is to be done.") as model:
        yield model


def prepared(nb: Notebook) -> Path:
    """Load the extension in cell 0, run cell 1, and have memories to tidy; return their folder."""
    nb.loaded(0)
    nb.run(1)
    nb.kernel(MAGIC.format("remember Levels of the lake are in metres."))
    nb.kernel("get_ipython().run_line_magic('config', 'Dream.enabled = False')")
    (folder,) = nb.server.home.glob("projects/*/memory")
    dream_set.fill(folder, nb.server.work, 20)
    return folder


def shots(nb: Notebook, name: str) -> None:
    """Save pictures in both themes, wide and narrow; whatever is said can be read in them."""
    for theme in ("Dark", "Light"):
        nb.page.evaluate(
            """async theme => { await window.jupyterapp.commands.execute(
                'apputils:change-theme', {theme}); }""",
            f"JupyterLab {theme}",
        )
        nb.page.wait_for_function(
            "theme => document.body.dataset.jpThemeName === theme", arg=f"JupyterLab {theme}"
        )
        for size, width in (("narrow", 760), ("wide", 1280)):
            nb.page.set_viewport_size({"width": width, "height": 860})
            nb.page.wait_for_timeout(300)
            nb.cell(2).scroll_into_view_if_needed()
            shot(nb, f"{name}-{theme.lower()}-{size}")
        said = nb.page.locator(".ipymemory-dream :is(p, li, button, summary)").all()
        seen = [each for each in said if each.is_visible() and each.inner_text()]
        assert seen and not [e.inner_text() for e in seen if _contrast(e) < 4.5]


def saved(nb: Notebook, name: str) -> str:
    """Return the notebook as it is saved; no word of a memory is in it."""
    nb.command("docmanager:save")
    text = (nb.server.work / name).read_text("utf-8")
    assert not [each for each in WORDS if each in text]
    return text


def state_of(nb: Notebook) -> dict[str, Any]:
    (path,) = nb.server.home.glob("projects/*/dream/state.json")
    found: dict[str, Any] = json.loads(path.read_text())
    return found


@pytest.mark.spec("D5", "D6", "D7", "L12")
def test_the_cell_has_its_own_view_and_its_button_ends_the_dream(
    notebook: Notebook, model: ModelServer
) -> None:
    model.faults = [Fault("hang")]
    cells = (("code", LOAD), ("code", "1"), ("code", "%memory dream --now"))
    nb = notebook.open("watch.ipynb", *cells)
    nb.kernel(f"import os; os.environ.update({model.environment()!r})")
    folder = prepared(nb)
    nb.kernel(MAGIC.format("engine anthropic"))
    before = {each.name: each.read_bytes() for each in folder.glob("*-*.md")}
    nb.edit(2)
    nb.page.keyboard.press("Control+Enter")
    view = nb.cell(2).locator(".ipymemory-dream")
    view.get_by_text("brings together").wait_for()
    eventually(lambda: model.requests, "the model is asked")
    assert not nb.cell(2).get_by_text("ipymemory dream --kill").is_visible()
    assert view.get_by_text("21 memories").is_visible()
    shots(nb, "cell-dreaming")
    saved(nb, "watch.ipynb")
    pressed = time.time()
    view.get_by_role("button", name="End the dream").click()
    nb.cell(2).get_by_text("The dream was ended. The").wait_for()
    assert datetime.fromisoformat(state_of(nb)["ended"]).timestamp() - pressed < 1
    assert not view.get_by_role("button").first.is_visible()
    assert {each.name: each.read_bytes() for each in folder.glob("*-*.md")} == before
    # and once to its end
    model.brain = good(("Glob", {"pattern": "*.md"}), words="Nothing is to be done.")
    nb.run(2)
    nb.cell(2).get_by_text("memories looked through").wait_for()
    nb.cell(2).locator(".ipymemory-dream[data-status='done']").wait_for()
    view.get_by_text("Files changed").click()
    view.locator(".ipymemory-diff ins").first.wait_for()
    assert view.get_by_text("Nothing is to be done.").is_visible()
    assert view.get_by_text("1 tool call", exact=True).is_visible()
    assert view.get_by_text("(goes)").first.is_visible()
    assert view.get_by_text("2 turns · 1 tool call ·").is_visible()
    shots(nb, "cell-dreamt")
    text = saved(nb, "watch.ipynb")
    assert "memories looked through" in text and "application/vnd.ipymemory.dream+json" in text
    # the kernel is gone: what was saved stays, and nothing else
    nb.say("return panel.sessionContext.shutdown().then(() => true);")
    view.wait_for(state="hidden")
    assert nb.cell(2).get_by_text("memories looked through").is_visible()
    nb.page.reload()
    nb.ready()
    assert nb.cell(2).get_by_text("memories looked through").is_visible()


@pytest.mark.spec("D5", "D6", "L8", "L10", "L12")
def test_a_click_does_what_is_shown_and_another_takes_it_back(notebook: Notebook) -> None:
    cells = (("code", LOAD), ("code", "1"), ("code", "%memory dream --now"))
    nb = notebook.open("confirm.ipynb", *cells)
    folder = prepared(nb)
    nb.kernel(MAGIC.format("engine extractive"))
    nb.kernel(MAGIC.format("mode confirm"))
    try:
        before = {each.name: each.read_bytes() for each in folder.glob("*-*.md")}

        def held() -> dict[str, bytes]:
            return {each.name: each.read_bytes() for each in folder.glob("*-*.md")}

        nb.run(2)
        view = nb.cell(2).locator(".ipymemory-dream[data-status='waiting']")
        view.get_by_text("waits for your yes").wait_for()
        view.locator(".ipymemory-diff ins").first.wait_for()
        nb.panel(".ipymemory-dream[data-status='waiting'] .ipymemory-diff").first.wait_for()
        assert not nb.cell(2).get_by_text("%memory dream --yes").is_visible()
        shots(nb, "cell-waiting")
        assert "%memory dream --yes" in saved(nb, "confirm.ipynb")
        # one that is dismissed is gone, everywhere
        view.get_by_role("button", name="Dismiss").click()
        gone = ".ipymemory-dream[data-status='dismissed']"
        nb.cell(2).locator(gone).wait_for(state="attached")
        nb.panel(gone).wait_for()
        nb.cell(2).get_by_text("What the dream would do was dropped").wait_for()
        assert held() == before
        # and one that is agreed to is done, as it was shown
        nb.run(2)
        view.get_by_role("button", name="Do it").focus()
        nb.page.keyboard.press("Enter")
        done = ".ipymemory-dream[data-status='done']"
        nb.cell(2).locator(done).wait_for()
        nb.panel(done).wait_for()
        nb.cell(2).get_by_text("The dream tidied 21 memories: 4 merged").wait_for()
        assert len(held()) == len(before) - 4
        assert nb.page.evaluate("document.activeElement !== document.body")
        assert "tidied 21 memories" in saved(nb, "confirm.ipynb")
        nb.panel(done).get_by_role("button", name="Undo the dream").click()
        undone = ".ipymemory-dream[data-status='undone']"
        nb.panel(undone).wait_for()
        nb.cell(2).get_by_text("The dream was taken back").first.wait_for()
        shots(nb, "cell-undone")
        assert held() == before
        saved(nb, "confirm.ipynb")
        # what is refused is said
        nb.kernel(f"get_ipython()._ipymemory.frontend.push('dream', state={STALE!r})")
        nb.panel(".ipymemory-dream").get_by_role("button", name="End the dream").click()
        nb.panel(".ipymemory-notice").get_by_text("This dream is over").wait_for()
    finally:
        nb.kernel(MAGIC.format("mode auto"))
