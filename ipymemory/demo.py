"""``ipymemory demo``: a real notebook in a real kernel, and what it leaves behind.

nbclient runs the notebook as it runs anybody's; the kernel loads the extension in the first
cell. Home, IPython's folder and the notebook all lie in one demo folder, so that nothing of the
user's own is read or touched.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from ipymemory.commands.amounts import size
from ipymemory.commands.pages import Page
from ipymemory.errors import CommandError, IpymemoryError, PlaceError

NOTEBOOK = "bicycles.ipynb"
KERNEL = "ipymemory-demo"
SECONDS = 120
"""Longest time for one cell; the first starts a kernel on a machine that may be busy."""

# Kind and source of each cell; "fails" marks the one that is meant to.
CELLS: tuple[tuple[str, str], ...] = (
    (
        "markdown",
        "# Bicycles on the bridge\n\nTask: find the weekday on which most bicycles cross the "
        "bridge, and write the totals to `totals.csv`.",
    ),
    ("code", "%load_ext ipymemory"),
    (
        "code",
        "import csv\nfrom pathlib import Path\n\n"
        'COUNTS = Path("counts.csv")\n'
        'COUNTS.write_text("day,bicycles\\nMon,812\\nTue,901\\nWed,n/a\\nThu,934\\nFri,776\\n")',
    ),
    (
        "fails",
        "def totals(path):\n"
        '    """Return the bicycles of each weekday."""\n'
        '    with open(path, newline="") as file:\n'
        '        return {row["day"]: int(row["bicycles"]) for row in csv.DictReader(file)}\n\n\n'
        "by_day = totals(COUNTS)",
    ),
    (
        "code",
        "def totals(path):\n"
        '    """Return the bicycles of each weekday; days that nobody counted are left out."""\n'
        '    with open(path, newline="") as file:\n'
        "        return {\n"
        '            row["day"]: int(row["bicycles"])\n'
        "            for row in csv.DictReader(file)\n"
        '            if row["bicycles"] != "n/a"\n'
        "        }\n\n\n"
        "by_day = totals(COUNTS)",
    ),
    (
        "code",
        "best = max(by_day, key=by_day.get)\n"
        'print(f"best day: {best} with {by_day[best]} bicycles")',
    ),
    (
        "markdown",
        "We decided to leave out days without a count instead of guessing them.",
    ),
    (
        "code",
        "# TODO: ask the city for the missing Wednesday\n"
        'with open("totals.csv", "w", newline="") as file:\n'
        "    csv.writer(file).writerows(by_day.items())",
    ),
    ("code", 'password = "only-for-the-demo"\nprint("logged in with", password)'),
    ("code", '%%private\nprint("nothing of this cell is recorded")'),
    ("code", "%memory notes --now"),
)


_SESSION = "memory/projects/*/sessions/*/"
_FILES = (
    (NOTEBOOK, "the notebook with its outputs"),
    ("counts.csv", "what it wrote first"),
    ("totals.csv", "what it wrote last"),
    ("memory", "the memory folder; yours is ~/.ipymemory"),
    (f"{_SESSION}notes.md", "the notes above, yours to read and edit"),
    (f"{_SESSION}transcript.jsonl", "every cell with its output, secrets masked"),
    (f"{_SESSION}worker.jsonl", "what the worker did"),
    ("memory/projects/*/history", "what the notes held before each update, for undo"),
    ("kernel.log", "what the kernel itself had to say"),
)


def run(folder: str | None = None) -> Page:
    """Run the demo in `folder`, a new or empty one, else in a new temporary folder.

    Returns the page that shows notes and files. Raises `CommandError` where nbclient or
    ipykernel are missing or `folder` is in use, and `IpymemoryError` where the kernel fails.
    """
    missing = [each for each in ("nbclient", "ipykernel") if importlib.util.find_spec(each) is None]
    if missing:
        raise CommandError(
            f"The demo runs a notebook in a kernel, and {' and '.join(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} not installed. Install them with: "
            "pip install 'ipymemory[demo]'"
        )
    place = _place(folder)
    printed = _execute(place)
    notes = _notes(place)
    parts = [
        f"The demo ran {NOTEBOOK} in a real kernel. Its first cell, `%load_ext ipymemory`, said:",
        _quoted(printed),
        "**The notes that wrote themselves:**",
        notes.strip(),
        "**Where it all lies:**",
        _listing(place),
        f"Nothing else was touched. To be rid of the demo, delete the folder {place}.",
    ]
    return Page("\n\n".join(parts), {"folder": str(place), "notes": notes})


def _place(folder: str | None) -> Path:
    if folder is None:
        return Path(tempfile.mkdtemp(prefix="ipymemory-demo-")).resolve()
    place = Path(folder).expanduser().absolute()
    try:
        place.mkdir(parents=True, exist_ok=True)
        used = any(place.iterdir())
    except OSError as error:
        raise PlaceError(
            f"The demo folder {place} cannot be made: {error.strerror or error}. Name another."
        ) from error
    if used:
        raise CommandError(f"{place} is not empty, so it was left alone. Name a new folder.")
    return place


def _execute(place: Path) -> str:
    """Run the notebook, save it with its outputs, and return what loading said."""
    import nbformat
    from jupyter_client.kernelspec import KernelSpecManager
    from jupyter_client.manager import AsyncKernelManager
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

    path = place / NOTEBOOK
    notebook = _notebook(nbformat.v4)
    nbformat.write(notebook, path)  # type: ignore[no-untyped-call]
    specs = place / "kernels"
    _write_spec(specs / KERNEL)
    manager = AsyncKernelManager(
        kernel_name=KERNEL,
        kernel_spec_manager=KernelSpecManager(kernel_dirs=[str(specs)], ensure_native_kernel=False),
    )
    client = NotebookClient(
        notebook, km=manager, timeout=SECONDS, resources={"metadata": {"path": str(place)}}
    )
    try:
        with (place / "kernel.log").open("wb") as log:
            # else the kernel's own warnings land between our lines
            client.execute(cleanup_kc=True, env=_environment(place), stderr=log)
    except (CellExecutionError, CellTimeoutError, DeadKernelError, RuntimeError, OSError) as error:
        raise IpymemoryError(
            f"The demo's kernel failed: {error} What it left lies in {place}."
        ) from error
    finally:
        nbformat.write(notebook, path)  # type: ignore[no-untyped-call]
    outputs = next(c for c in notebook.cells if c.source == "%load_ext ipymemory").outputs
    return "".join(each.get("text", "") for each in outputs).strip()


def _notebook(v4: Any) -> Any:
    cells = []
    for kind, source in CELLS:
        if kind == "markdown":
            cells.append(v4.new_markdown_cell(source))
        else:
            cells.append(v4.new_code_cell(source))
            if kind == "fails":
                cells[-1].metadata["tags"] = ["raises-exception"]
    return v4.new_notebook(cells=cells)


def _write_spec(folder: Path) -> None:
    """Write a kernel spec for this very Python: one called python3 may belong to another."""
    folder.mkdir(parents=True)
    spec = {
        "argv": [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        "display_name": "ipymemory demo",
        "language": "python",
    }
    (folder / "kernel.json").write_text(json.dumps(spec), encoding="utf-8")


def _environment(place: Path) -> dict[str, str]:
    """Return the environment in which the kernel finds this package and only demo folders."""
    path = [*filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    package = Path(__file__).parent.parent
    if package.name not in ("site-packages", "dist-packages"):
        # a checkout; where packages are installed the kernel finds it by itself
        path.insert(0, str(package))
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(path),
        "IPYMEMORY_HOME": str(place / "memory"),
        "IPYTHONDIR": str(place / "ipython"),
        "JPY_SESSION_NAME": str(place / NOTEBOOK),
    }


def _notes(place: Path) -> str:
    found = sorted((place / "memory").glob("projects/*/sessions/*/notes.md"))
    if not found:
        raise IpymemoryError(
            f"The kernel ran and left no notes. Its log lies below {place / 'memory'}; "
            "please report it."
        )
    return found[-1].read_text(encoding="utf-8")


def _listing(place: Path) -> str:
    """Return what lies in the demo folder, and what each of it is."""
    lines = [f"{place}", ""]
    for pattern, what in _FILES:
        for path in sorted(place.glob(pattern)):
            files = [path] if path.is_file() else list(path.rglob("*"))
            total = sum(each.stat().st_size for each in files if each.is_file())
            name = f"{path.relative_to(place).as_posix()}{'/' if path.is_dir() else ''}"
            lines.append(f"- {name} ({size(total)}): {what}")
    return "\n".join(lines)


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}" for line in text.splitlines())
