"""Fixtures shared by all tests: a home of one's own, and kernels that are always ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No test reads or writes the home folder of whoever runs it."""
    home = tmp_path / "home"
    monkeypatch.setenv("IPYMEMORY_HOME", str(home))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)
    return home


@pytest.fixture
def new_kernel(tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """A function that starts a kernel in this test's folder; all are ended with the test."""
    from kernels import Kernel

    started: list[Kernel] = []

    def start(*args: Any, **options: Any) -> Kernel:
        started.append(Kernel(options.pop("folder", tmp_path), *args, **options))
        return started[-1]

    yield start
    for each in started:
        each.close()


@pytest.fixture
def kernel(new_kernel: Callable[..., Any]) -> Any:
    """A kernel with the extension loaded."""
    kernel = new_kernel()
    ran = kernel.run("%load_ext ipymemory")
    assert ran.reply["status"] == "ok", ran.reply
    return kernel
