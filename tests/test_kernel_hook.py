"""The kernel hook: one startup file, ours alone, silent once the package is gone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ipymemory import kernel_hook
from ipymemory.errors import PlaceError


@pytest.fixture(autouse=True)
def ipython_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "ipython"
    monkeypatch.setenv("IPYTHONDIR", str(folder))
    return folder


def gone(folder: Path) -> Path:
    """Return a folder that hides the package, wherever it is installed, as if it were gone."""
    place = folder / "gone" / "ipymemory"
    place.mkdir(parents=True, exist_ok=True)
    (place / "__init__.py").write_text(
        "raise ModuleNotFoundError(\"No module named 'ipymemory'\", name='ipymemory')"
    )
    return place.parent


def ipython(folder: Path, code: str, *, package: bool = True) -> str:
    """Run `code` in a real IPython of the folder's profile; return all that it printed."""
    env = {**os.environ, "IPYTHONDIR": str(folder), "IPYMEMORY_HOME": str(folder / "home")}
    env["PYTHONPATH"] = str(Path(__file__).parent.parent if package else gone(folder))
    run = subprocess.run(
        [sys.executable, "-m", "IPython", "--no-banner", "--colors=NoColor", "-c", code],
        env=env,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return run.stdout + run.stderr


@pytest.mark.spec("L13")
def test_the_hook_loads_without_a_word(ipython_folder: Path) -> None:
    assert kernel_hook.install()
    said = ipython(
        ipython_folder,
        "print('ipymemory' in get_ipython().extension_manager.loaded, "
        "'_ipymemory_load' in globals())",
    )
    assert said.split() == ["True", "False"]


@pytest.mark.spec("L13")
def test_the_hook_is_silent_once_the_package_is_gone(ipython_folder: Path) -> None:
    kernel_hook.install()
    said = ipython(ipython_folder, "import sys; print('ipymemory' in sys.modules)", package=False)
    assert said.split() == ["False"]


def test_installing_twice_changes_nothing() -> None:
    assert kernel_hook.install()
    before = kernel_hook.path().stat()
    assert not kernel_hook.install()
    assert kernel_hook.path().stat().st_mtime_ns == before.st_mtime_ns
    assert kernel_hook.state() == "installed"


def test_an_older_hook_of_ours_is_replaced() -> None:
    kernel_hook.install()
    kernel_hook.path().write_text(kernel_hook.MARK + " from an older version\n")
    assert kernel_hook.state() == "outdated"
    assert kernel_hook.install()
    assert kernel_hook.state() == "installed"


def test_uninstalling_removes_only_ours() -> None:
    assert not kernel_hook.uninstall()
    kernel_hook.install()
    other = kernel_hook.path().with_name("60-mine.py")
    other.write_text("x = 1\n")
    assert kernel_hook.uninstall()
    assert not kernel_hook.path().exists()
    assert other.read_text() == "x = 1\n"


@pytest.mark.parametrize("act", [kernel_hook.install, kernel_hook.uninstall])
def test_a_file_that_is_not_ours_is_left_alone(act: object) -> None:
    path = kernel_hook.path()
    path.parent.mkdir(parents=True)
    path.write_text("print('mine')\n")
    assert kernel_hook.state() == "foreign"
    with pytest.raises(PlaceError, match="is not ours"):
        act()  # type: ignore[operator]
    assert path.read_text() == "print('mine')\n"
