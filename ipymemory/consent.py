"""Who agreed that cells go where: for one project and one host, or for every project.

In the project's record stands ``engine``: the engine's name, and each host somebody agreed to with
the time; in the home's ``state.json`` the same for everywhere. Cells leave the machine only where
one of them, or a config file, says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ipymemory.errors import IpymemoryError
from ipymemory.files import make_folder, read_json, write_json
from ipymemory.places import Project
from ipymemory.turns import utc_now


def chosen(project: Project) -> str:
    """Return the engine that was chosen for this project, else for everywhere, else nothing."""
    for told in _records(project):
        name = told.get("name")
        if isinstance(name, str) and name:
            return name
    return ""


def given(project: Project, host: str) -> bool:
    """Return whether somebody agreed that cells of `project` go to `host`."""
    return any(host in _hosts(told) for told in _records(project))


def choose(project: Project, name: str, host: str = "", *, everywhere: bool = False) -> None:
    """Choose the engine `name`, and agree to `host` where one is named.

    Raises `IpymemoryError` when that cannot be kept.
    """
    if everywhere:
        path = project.home / "state.json"
        make_folder(project.home)
        state = read_json(path) or {}
        write_json(path, state | {"engine": _with(state.get("engine"), name, host)})
        # What was chosen here before must not stand in the way.
        if "engine" in project.properties():
            project.set_property("engine", _with(project.properties().get("engine"), "", ""))
        return
    project.set_property("engine", _with(project.properties().get("engine"), name, host))


def _records(project: Project) -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = []
    for read in (project.properties, lambda: _state(project.home)):
        try:
            told = read().get("engine")
        except IpymemoryError:
            # What cannot be read gives no consent.
            continue
        if isinstance(told, Mapping):
            found.append(told)
    return found


def _state(home: Path) -> dict[str, Any]:
    return read_json(home / "state.json") or {}


def _hosts(told: Mapping[str, Any]) -> Mapping[str, Any]:
    hosts = told.get("hosts")
    return hosts if isinstance(hosts, Mapping) else {}


def _with(told: object, name: str, host: str) -> dict[str, Any]:
    before = told if isinstance(told, Mapping) else {}
    hosts = dict(_hosts(before))
    if host:
        hosts[host] = utc_now()
    return {"name": name, "hosts": hosts}
