"""A real server and a real browser: JupyterLab or Notebook 7 with the lab extension as built.

Nothing is installed for it: the server is pointed at what `labextension/hatch_build.py` built just
now, and its kernels at this checkout.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TOP = Path(__file__).resolve().parent.parent.parent

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")

FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage"),
)

BARE = "bare"
"""A kernel of a Python in which ipymemory is not installed."""

WITHOUT = {
    "argv": [
        *(sys.executable, "-c"),
        "import sys; sys.modules['ipymemory'] = None; "
        "from ipykernel.kernelapp import launch_new_instance; launch_new_instance()",
        *("-f", "{connection_file}"),
    ],
    "display_name": BARE,
    "language": "python",
}

QUIET = {"fetchNews": "false", "checkForUpdates": False}


class Missing(Exception):
    """What these tests need and cannot have, as a sentence."""


def browser_path() -> str:
    """Return a Chrome or Chromium: one that is here, else the distribution's, installed now."""
    if (named := os.environ.get("IPYMEMORY_BROWSER")) and Path(named).exists():
        return named
    for name in BROWSERS:
        if found := shutil.which(name):
            return found
    if shutil.which("apt-get") and getattr(os, "geteuid", lambda: 1)() == 0:
        for step in (("update",), ("install", "-y", "--no-install-recommends", "chromium")):
            subprocess.run(["apt-get", "-q", *step], capture_output=True, check=False, timeout=300)
        if found := shutil.which("chromium"):
            return found
    raise Missing(
        "The browser tests need Chrome or Chromium, and none was found or could be installed. "
        "Install one, or name it in IPYMEMORY_BROWSER."
    )


def built() -> Path:
    """Return the folder of the lab extension, built if its sources changed; raises `Missing`."""
    spec = importlib.util.spec_from_file_location(
        "hatch_build", TOP / "labextension" / "hatch_build.py"
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    try:
        module.build()
    except module.NotBuilt as error:
        raise Missing(str(error)) from error
    return Path(module.BUILT)


@dataclass(frozen=True, slots=True)
class Server:
    """A server that runs. `work` is its root, `home` our home folder in its kernels."""

    app: str
    address: str
    token: str
    work: Path
    home: Path

    def page(self, name: str) -> str:
        """Return the address of a notebook's page."""
        path = "lab/tree" if self.app == "lab" else "notebooks"
        return f"{self.address}/{path}/{name}?token={self.token}" + (
            "&reset" if self.app == "lab" else ""
        )

    def setting(self, plugin: str, value: dict[str, Any]) -> None:
        """Set what a user sets in the settings editor."""
        request = urllib.request.Request(
            f"{self.address}/lab/api/settings/{plugin}?token={self.token}",
            json.dumps({"raw": json.dumps(value)}).encode(),
            {"Content-Type": "application/json", "Authorization": f"token {self.token}"},
            method="PUT",
        )
        with urllib.request.urlopen(request, timeout=20):
            pass

    def lines(self, kind: str) -> list[dict[str, Any]]:
        """Return the lines of this kind on record, of all sessions."""
        paths = sorted(self.home.glob("projects/*/sessions/*/transcript.jsonl"))
        told = [json.loads(line) for path in paths for line in path.read_bytes().splitlines()]
        return [each for each in told if each["type"] == kind]


@contextlib.contextmanager
def server(app: str, folder: Path, *, shared: bool = False) -> Iterator[Server]:
    """Start JupyterLab (``lab``) or Notebook 7 (``notebook``), with everything in `folder`.

    With `shared` pages of one notebook are one document (jupyter-collaboration). Raises `Missing`.
    """
    if shared and importlib.util.find_spec("jupyter_server_ydoc") is None:
        raise Missing("This test needs jupyter-collaboration. Install it, as tox does.")
    extensions = folder / "share" / "labextensions"
    extensions.mkdir(parents=True)
    shutil.copytree(built(), extensions / "ipymemory")
    bare = folder / "share" / "kernels" / BARE
    bare.mkdir(parents=True)
    (bare / "kernel.json").write_text(json.dumps(WITHOUT))
    work = folder / "work"
    work.mkdir()
    quiet = folder / "settings" / "@jupyterlab" / "apputils-extension"
    quiet.mkdir(parents=True)
    (quiet / "notification.jupyterlab-settings").write_text(json.dumps(QUIET))
    profile = folder / "ipython" / "profile_default"
    profile.mkdir(parents=True)
    # A document that writes itself would do so in the midst of what is looked at here.
    (profile / "ipython_config.py").write_text("c.MagicDocs.enabled = False\n")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    token = secrets.token_hex(8)
    environment = {
        **os.environ,
        "JUPYTER_PATH": str(folder / "share"),
        "JUPYTER_CONFIG_DIR": str(folder / "config"),
        "JUPYTER_DATA_DIR": str(folder / "data"),
        "JUPYTER_RUNTIME_DIR": str(folder / "run"),
        "JUPYTERLAB_SETTINGS_DIR": str(folder / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(folder / "workspaces"),
        "IPYTHONDIR": str(folder / "ipython"),
        "IPYMEMORY_HOME": str(folder / "home"),
        "PYTHONPATH": str(TOP),
    }
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    exposed = {"lab": "LabApp", "notebook": "JupyterNotebookApp"}[app]
    log = (folder / "server.log").open("w")
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", f"jupyter{app}" if app == "lab" else app, "--no-browser"),
            *("--allow-root", "--ip=127.0.0.1", f"--port={port}", "--ServerApp.port_retries=0"),
            *(f"--IdentityProvider.token={token}", f"--ServerApp.root_dir={work}"),
            f"--{exposed}.expose_app_in_browser=True",
            f"--YDocExtension.disable_rtc={not shared}",
        ],
        env=environment,
        # where jupyter-collaboration puts its file
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
    )
    address = f"http://127.0.0.1:{port}"
    try:
        _wait(process, f"{address}/api/status?token={token}", folder / "server.log")
        yield Server(app, address, token, work, folder / "home")
    finally:
        process.terminate()
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(15)
        log.close()


def _wait(process: subprocess.Popen[bytes], address: str, log: Path) -> None:
    end = time.monotonic() + 90
    while True:
        assert process.poll() is None, log.read_text()[-3000:]
        try:
            with urllib.request.urlopen(address, timeout=2):
                return
        except (OSError, urllib.error.URLError):
            assert time.monotonic() < end, log.read_text()[-3000:]
            time.sleep(0.1)


class Notebook:
    """The notebook that a page shows, and what a user does in it."""

    def __init__(self, page: Any, server: Server) -> None:
        self.page = page
        self.server = server
        self.shown = page.locator(".jp-NotebookPanel:not(.lm-mod-hidden)")

    def open(
        self,
        name: str,
        *cells: tuple[str, str],
        kernel: str = "python3",
        records: dict[int, dict[str, Any]] | None = None,
        panel: bool = True,
    ) -> Notebook:
        """Write a notebook file of these cells and open its page, with the panel shown.

        `records` are what documents rest on, by the place of their cells. Without `panel` the page
        need not have our extension.
        """
        made = [
            {
                "cell_type": kind,
                "id": f"c{at}",
                "metadata": {"ipymemory": {"doc": records[at]}} if at in (records or {}) else {},
                "source": source,
                **({"execution_count": None, "outputs": []} if kind == "code" else {}),
            }
            for at, (kind, source) in enumerate(cells)
        ]
        spec = {"name": kernel, "display_name": kernel, "language": "python"}
        content = {"nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": spec}}
        (self.server.work / name).write_text(json.dumps({**content, "cells": made}))
        self.page.goto(self.server.page(name))
        self.ready()
        if panel:
            self.command("ipymemory:show")
        return self

    def ready(self) -> None:
        """Wait until the page is up and its kernel at rest."""
        self.shown.locator(".jp-Notebook .jp-Cell").first.wait_for(timeout=60_000)
        self.page.wait_for_function("() => window.jupyterapp?.restored.then(() => true)")
        self.page.wait_for_function(
            "() => window.jupyterapp.shell.currentWidget?.sessionContext?.session?.kernel?.status"
            " === 'idle'",
            timeout=60_000,
        )

    def command(self, name: str) -> None:
        """Run a command of the application."""
        self.page.evaluate(
            "async name => { await window.jupyterapp.commands.execute(name); }", name
        )

    def say(self, script: str, argument: Any = None) -> Any:
        """Return what a script says of the notebook's panel, `panel` in it."""
        return self.page.evaluate(
            f"argument => {{ const panel = window.jupyterapp.shell.currentWidget; {script} }}",
            argument,
        )

    def until(self, script: str, argument: Any = None, timeout: float = 20_000) -> None:
        """Wait until a script, with `panel` in it, is true."""
        self.page.wait_for_function(
            f"argument => {{ const panel = window.jupyterapp.shell.currentWidget; {script} }}",
            arg=argument,
            timeout=timeout,
        )

    def cell(self, at: int) -> Any:
        return self.shown.locator(f".jp-Cell[data-windowed-list-index='{at}']")

    def show(self, at: int) -> None:
        """Scroll a cell into view: JupyterLab 4.3 puts only those into the page that are seen."""
        self.say("return panel.content.scrollToItem(argument, 'auto').then(() => true);", at)

    def rendered(self, at: int) -> Any:
        return self.cell(at).locator(".jp-MarkdownOutput")

    def edit(self, at: int) -> None:
        """Put the cursor into a cell. What is typed before it is there would be shortcuts."""
        if not self.cell(at).locator(".jp-InputArea-editor .cm-content").count():
            # JupyterLab 4.3 gives only the cells that are seen an editor.
            self.say(
                "panel.content.activeCellIndex = argument;"
                " return panel.content.scrollToItem(argument, 'center').then(() => true);",
                at,
            )
        if self.rendered(at).count() and self.rendered(at).is_visible():
            self.rendered(at).dblclick()
        self.cell(at).locator(".jp-InputArea-editor .cm-content").click()
        self.until(
            "const n = panel.content; return n.activeCellIndex === argument && n.mode === 'edit'"
            " && n.activeCell.editor.hasFocus();",
            at,
        )

    def run(self, at: int) -> None:
        """Run a cell and wait for its end."""
        self.edit(at)
        # after a restart the same count comes again, so it is heard and not compared
        self.say(
            """const cell = panel.content.model.cells.get(argument).sharedModel; window.ran = false;
               const heard = (_, told) => { if (told.executionCountChange?.newValue != null) {
                   cell.changed.disconnect(heard); window.ran = true; } };
               cell.changed.connect(heard);""",
            at,
        )
        self.page.keyboard.press("Control+Enter")
        self.until("return window.ran;", timeout=60_000)

    def source(self, at: int) -> str:
        return str(
            self.say("return panel.content.model.cells.get(argument).sharedModel.getSource();", at)
        )

    def update(self, cell: str, base: str, source: str, run: str = "r1") -> None:
        """Have the kernel come up with new text for a document, as the worker's event does."""
        self.kernel(f"{HEARD}({event(cell, base, source, run)!r})")

    def kernel(self, code: str) -> None:
        """Run code in the kernel that no cell shows."""
        self.page.evaluate(
            """async code => { await window.jupyterapp.shell.currentWidget.sessionContext.session
                .kernel.requestExecute({code, silent: true, store_history: false}).done; }""",
            code,
        )

    def checked(self) -> tuple[int, str]:
        """Save the notebook; return what ``ipymemory docs check`` of it exits with and says."""
        self.command("docmanager:save")
        path = self.server.work / str(self.say("return panel.context.path;"))
        found = subprocess.run(
            [sys.executable, "-m", "ipymemory", "docs", "check", str(path)],
            env={**os.environ, "PYTHONPATH": str(TOP)},
            cwd=self.server.work,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return found.returncode, (found.stdout + found.stderr) if found.returncode else ""

    def panel(self, part: str = "") -> Any:
        return self.page.locator(f"#ipymemory-panel {part}".strip())

    def recording(self) -> None:
        """Wait until the panel says that the session is recorded."""
        self.panel(".ipymemory-state[data-state='linked']").wait_for()

    def loaded(self, at: int) -> None:
        """Run the cell that loads the extension."""
        self.run(at)
        self.recording()


HEARD = "get_ipython()._ipymemory.frontend.heard"


def event(cell: str, base: str, source: str, run: str = "r1") -> dict[str, Any]:
    """Return the event that tells new text for a cell."""
    details = {"cell_id": cell, "base": base, "source": source}
    return {"kind": "document", "job": "magic_docs", "run": run, "details": details}
