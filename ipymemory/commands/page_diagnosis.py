"""What ``doctor`` finds of the page: whether the lab extension is there, and of which version.

The kernel knows a page by what it says, and that one is there without our extension by its answer
that it does not know us. What is installed is looked up where JupyterLab does, as far as this is
the environment that it runs in.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from ipymemory.commands.place import Place

_AGAIN = "python -m pip install --force-reinstall --no-deps ipymemory"
_SERVERS = ("jupyterlab", "notebook")


def findings(place: Place) -> Iterator[tuple[str, str]]:
    """Yield what is wrong, and what to do about it."""
    from ipymemory import __version__

    page = place.live.frontend if place.live is not None else None
    said = page.page_version if page is not None else None
    if said is not None:
        if said != __version__:
            of = f"ipymemory {said}" if said else "an older ipymemory"
            yield (
                f"The page has the lab extension of {of}, and "
                f"this kernel has ipymemory {__version__}.",
                "Install the same version for both (python -m pip install "
                f"ipymemory=={__version__} where JupyterLab runs), and reload the page.",
            )
        return
    unknown = page is not None and page.unknown
    here = _server()
    if not unknown and not here:
        return
    found = _installed()
    if found is None and here:
        yield (
            f"The lab extension of ipymemory is not installed beside {here}, so the page shows no "
            "panel and no document changes in the notebook.",
            "It is built when ipymemory is installed and Node.js 20.19 or newer is there. Type: "
            f"{_AGAIN}, and reload the page.",
        )
    elif found is None:
        yield (
            "The page has no lab extension of ipymemory, so it shows no panel and no document "
            "changes in the notebook.",
            "Install ipymemory also in the environment that runs JupyterLab or Notebook, and "
            "reload the page.",
        )
    elif found != __version__:
        yield (
            f"The lab extension that is installed is of ipymemory {found or 'unknown'}, and the "
            f"package is ipymemory {__version__}.",
            f"Type: {_AGAIN}, and reload the page.",
        )
    elif unknown:
        yield (
            "The lab extension of ipymemory is installed, and the page does not know it.",
            "Reload the page; if that does not help, type jupyter labextension list in a terminal, "
            "and turn it on again.",
        )


def _server() -> str:
    """Return the server with pages that is installed in this environment, or nothing."""
    from importlib.metadata import PackageNotFoundError, version

    for name in _SERVERS:
        try:
            if int(version(name).split(".")[0]) >= 4:
                return name
        except (PackageNotFoundError, ValueError):
            continue
    return ""


def _installed() -> str | None:
    """Return the version of the lab extension that Jupyter finds here, None where it finds none."""
    try:
        from jupyter_core.paths import jupyter_path
    except ImportError:
        return None
    for folder in jupyter_path("labextensions"):
        path = Path(folder) / "ipymemory" / "package.json"
        if path.is_file():
            try:
                told = json.loads(path.read_bytes())
            except (OSError, ValueError):
                return ""
            found = told.get("version") if isinstance(told, dict) else None
            return found if isinstance(found, str) else ""
    return None
