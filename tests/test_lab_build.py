"""The lab extension's build: what is stale is never used, and without Node the rest installs."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

TOP = Path(__file__).parent.parent


@pytest.fixture
def hook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The hook of a copy of the sources, with something built of them."""
    copy = tmp_path / "labextension"
    ignored = shutil.ignore_patterns("node_modules", "lib", ".yarn")
    shutil.copytree(TOP / "labextension", copy, ignore=ignored)
    monkeypatch.syspath_prepend(str(copy))
    spec = importlib.util.spec_from_file_location("hatch_build", copy / "hatch_build.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.BUILT.mkdir(parents=True)
    (module.BUILT / "package.json").write_text("{}")
    module.STAMP.write_text(module.sources_hash())
    return module


class Made:
    """What the hook is given of a build, and what it said."""

    def __init__(self, hook: ModuleType, version: str = "standard") -> None:
        self.warnings: list[str] = []
        self.data: dict[str, Any] = {"shared_data": {}, "artifacts": []}
        told = SimpleNamespace(
            target_name="wheel", app=SimpleNamespace(display_warning=self.warnings.append)
        )
        hook.LabExtensionHook.initialize.__get__(told)(version, self.data)


def test_what_was_built_goes_into_the_wheel_while_its_sources_are_the_same(
    hook: ModuleType,
) -> None:
    assert sorted(Made(hook).data["shared_data"].values()) == [
        "share/jupyter/labextensions/ipymemory/install.json",
        "share/jupyter/labextensions/ipymemory/package.json",
    ]


@pytest.mark.parametrize("name", ["src/link.ts", "style/base.css", "yarn.lock", "src/new.ts"])
def test_a_stale_build_is_impossible(
    hook: ModuleType, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    with (hook.SOURCES / name).open("a") as file:
        file.write("\n")
    made = Made(hook)
    assert made.data["shared_data"] == {} and not hook.BUILT.exists()
    assert len(made.warnings) == 1
    assert "Node.js 20.19 or newer was not found; all else works" in made.warnings[0]


def test_a_development_install_waits_for_no_node(
    hook: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("IPYMEMORY_BUILD_LAB", raising=False)
    assert Made(hook, "editable").data["shared_data"]
    hook.STAMP.write_text("another")
    made = Made(hook, "editable")
    assert (made.data["shared_data"], made.warnings) == ({}, [])


def test_an_old_node_and_a_build_that_fails_are_told(
    hook: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.name == "nt":
        return
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", str(programs))
    for name, script in (("node", "echo v18.2.0"), ("jlpm", "echo no network; exit 1")):
        (programs / name).write_text(f"#!/bin/sh\n{script}\n")
        (programs / name).chmod(0o755)
    hook.STAMP.write_text("another")
    assert "and v18.2.0 was found" in Made(hook).warnings[0]
    (programs / "node").write_text("#!/bin/sh\necho v22.12.0\n")
    assert "“jlpm install” failed (no network)" in Made(hook).warnings[0]
    assert not hook.BUILT.exists()


def test_nothing_that_is_committed_names_a_registry() -> None:
    lock = (TOP / "labextension" / "yarn.lock").read_text("utf-8")
    assert "://" not in lock and "npm:" in lock
    assert "registry" not in (TOP / "labextension" / ".yarnrc.yml").read_text().casefold()


def test_page_and_kernel_have_one_version() -> None:
    with (TOP / "pyproject.toml").open("rb") as file:
        version = tomllib.load(file)["project"]["version"]
    package = json.loads((TOP / "labextension" / "package.json").read_text("utf-8"))
    assert package["version"] == version
    from ipymemory import frontend, page_messages

    spoken = (TOP / "labextension" / "src" / "protocol.ts").read_text("utf-8")
    assert f"VERSION = {frontend.VERSION};" in spoken
    assert f"PACKAGE = '{version}';" in spoken
    for target in (frontend.PUSH, frontend.RPC):
        assert f"'{target}'" in spoken
    most = re.search(r"MOST_CELL = (\d+) \* 1024", spoken)
    assert most is not None and int(most[1]) * 1024 == page_messages.MOST_CELL


def test_the_rooms_of_the_page_are_small_and_import_downwards() -> None:
    sources = {
        each.stem: each.read_text("utf-8")
        for each in (TOP / "labextension" / "src").iterdir()
        if each.suffix == ".ts"
    }
    long = {name: text.count("\n") for name, text in sources.items() if text.count("\n") > 350}
    assert not long
    left = {name: set(re.findall(r"from '\./([\w-]+)'", text)) for name, text in sources.items()}
    while ground := [name for name, needed in left.items() if not needed & set(left)]:
        for name in ground:
            del left[name]
    assert not left, "these import each other"


def test_it_runs_as_a_program_too(hook: ModuleType) -> None:
    ran = subprocess.run(
        [sys.executable, str(hook.SOURCES / "hatch_build.py")],
        env={"PATH": "", "SYSTEMROOT": os.environ.get("SYSTEMROOT", "")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
