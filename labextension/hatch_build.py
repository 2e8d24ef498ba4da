"""Builds the lab extension into the wheel, where Node.js is there; the rest installs without it.

What was built bears the hash of the sources it was built from. It is used only while they are the
same: a stale build goes into no wheel. Nothing of a registry is kept: Yarn is told npm's own.

`python labextension/hatch_build.py` builds it in a checkout, for tests and for work on it.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

SOURCES = Path(__file__).resolve().parent
BUILT = SOURCES.parent / "ipymemory" / "labextension"
STAMP = BUILT / "sources.sha256"
INPUTS = (
    *("package.json", "yarn.lock", "tsconfig.json", ".yarnrc.yml", "install.json"),
    *("src", "style", "schema"),
)
TARGET = "share/jupyter/labextensions/ipymemory"
BUILDER = "jupyter-builder>=1.3,<2"
NODE = (20, 19)
"""What rspack needs."""


class NotBuilt(Exception):
    """Why there is no lab extension, as one sentence."""


def sources_hash() -> str:
    """Return the hash of all that the build is made of."""
    found = hashlib.sha256()
    for name in INPUTS:
        top = SOURCES / name
        files = (
            [top] if top.is_file() else sorted(each for each in top.rglob("*") if each.is_file())
        )
        for each in files:
            found.update(each.relative_to(SOURCES).as_posix().encode() + b"\0")
            found.update(hashlib.sha256(each.read_bytes()).digest())
    return found.hexdigest()


def is_current() -> bool:
    """Return whether what was built was built from these sources, and is whole."""
    try:
        return STAMP.read_text() == sources_hash() and (BUILT / "package.json").exists()
    except OSError:
        return False


def missing() -> str:
    """Return what a build needs and is not there, nothing where all is."""
    wanted = f"Node.js {NODE[0]}.{NODE[1]} or newer"
    node = shutil.which("node")
    if node is None:
        return f"{wanted} was not found"
    told = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
    version = tuple(int(each) for each in re.findall(r"\d+", told)[:2])
    return "" if version >= NODE else f"{wanted} is needed and {told.strip() or 'none'} was found"


def build() -> None:
    """Build what is not current; raises `NotBuilt`, and then nothing stale is left."""
    if is_current():
        return
    shutil.rmtree(BUILT, ignore_errors=True)
    if why := missing():
        raise NotBuilt(_sentence(why))
    environment = {**os.environ, "NODE_ENV": "production"}
    scripts = Path(sys.executable).parent
    environment["PATH"] = os.pathsep.join((environment.get("PATH", ""), str(scripts)))
    if "YARN_NPM_REGISTRY_SERVER" not in environment and (npm := shutil.which("npm")):
        told = subprocess.run(
            [npm, "config", "get", "registry"], capture_output=True, text=True, check=False
        ).stdout.strip()
        if told.startswith("http"):
            environment["YARN_NPM_REGISTRY_SERVER"] = told
    jlpm = shutil.which("jlpm", path=environment["PATH"])
    if jlpm is None:
        raise NotBuilt(_sentence(f"the package {BUILDER} was not found"))
    for step in (("install", "--immutable"), ("build",)):
        ran = subprocess.run(
            [jlpm, *step], cwd=SOURCES, env=environment, capture_output=True, text=True, check=False
        )
        if ran.returncode:
            shutil.rmtree(BUILT, ignore_errors=True)
            said = (ran.stdout + ran.stderr).splitlines()
            last = [each for each in said if each.strip()][-3:]
            raise NotBuilt(_sentence(f"“jlpm {step[0]}” failed ({' / '.join(last)[:500]})"))
    STAMP.write_text(sources_hash())


def _sentence(why: str) -> str:
    return (
        f"The lab extension of ipymemory was not built, since {why}; all else works without it, "
        "and installing again builds it once that is there."
    )


try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # in a test environment, which builds without hatchling
    BuildHookInterface = object  # type: ignore[assignment, misc]


class LabExtensionHook(BuildHookInterface):  # type: ignore[type-arg]
    """Puts the lab extension among the wheel's data.

    An editable install takes one that is there, and builds one only where the environment
    variable ``IPYMEMORY_BUILD_LAB`` is set: Python work must not wait for Node.
    """

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """Return what a build needs of Python packages, nothing where there will be none."""
        return [] if is_current() or missing() else [BUILDER]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build, or say in one sentence why not."""
        if version == "editable" and not is_current() and "IPYMEMORY_BUILD_LAB" not in os.environ:
            return
        try:
            build()
        except NotBuilt as error:
            self.app.display_warning(str(error))
            return
        if self.target_name == "wheel":
            data = build_data["shared_data"]
            for each in sorted(BUILT.rglob("*")):
                if each.is_file() and each != STAMP:
                    data[str(each)] = f"{TARGET}/{each.relative_to(BUILT).as_posix()}"
            data[str(SOURCES / "install.json")] = f"{TARGET}/install.json"
        else:
            build_data["artifacts"].append("ipymemory/labextension")


if __name__ == "__main__":
    try:
        build()
    except NotBuilt as error:
        sys.exit(str(error))
