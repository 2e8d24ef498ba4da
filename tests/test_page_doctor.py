"""What the doctor finds of the page: no lab extension, another version, one that is turned off."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from kernels import Kernel
from pages import Page

from ipymemory import __version__
from ipymemory.commands import page_diagnosis


class Jupyter:
    """What of Jupyter is in this environment."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.packages = folder / "packages"
        self.packages.mkdir()
        self.extension = folder / "jupyter" / "labextensions" / "ipymemory" / "package.json"
        monkeypatch.syspath_prepend(str(self.packages))
        monkeypatch.setattr(
            "jupyter_core.paths.jupyter_path",
            lambda *names: [str(folder / "jupyter" / Path(*names))],
        )

    def package(self, name: str, version: str) -> None:
        info = self.packages / f"{name}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Name: {name}\nVersion: {version}\n")

    def install(self, text: str) -> None:
        self.extension.parent.mkdir(parents=True, exist_ok=True)
        self.extension.write_text(text)


@pytest.fixture
def jupyter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Jupyter:
    return Jupyter(tmp_path, monkeypatch)


def found(page: Any = None, live: bool = True) -> str:
    """Return what is wrong and what to do, one text; nothing where all is well."""
    place = SimpleNamespace(live=SimpleNamespace(frontend=page) if live else None)
    return " ".join(" ".join(each) for each in page_diagnosis.findings(place))  # type: ignore[arg-type]


def page(version: str | None = None, unknown: bool = False) -> Any:
    return SimpleNamespace(page_version=version, unknown=unknown)


def test_where_no_page_can_be_nothing_is_missing(jupyter: Jupyter) -> None:
    assert found() == found(page()) == found(live=False) == ""
    # the old notebook has no such extensions
    jupyter.package("jupyterlab", "3.6.8")
    assert found(page()) == ""


def test_an_extension_that_is_not_there_is_built_by_installing_again(jupyter: Jupyter) -> None:
    jupyter.package("jupyterlab", "4.6.6")
    for told in (found(page()), found(live=False), found(page(unknown=True))):
        assert "not installed beside jupyterlab" in told and "Node.js 20.19" in told
        assert "--force-reinstall" in told and "reload the page" in told


@pytest.mark.parametrize(
    ("text", "shown"), [('{"version": "0.0.9"}', "0.0.9"), ("[", "unknown"), ("{}", "unknown")]
)
def test_an_extension_of_another_version_is_told(jupyter: Jupyter, text: str, shown: str) -> None:
    jupyter.package("notebook", "7.3.3")
    jupyter.install(text)
    told = found(page())
    assert f"is of ipymemory {shown}, and the package is ipymemory {__version__}" in told
    jupyter.install(json.dumps({"version": __version__}))
    assert found(page()) == ""
    assert "type jupyter labextension list" in found(page(unknown=True))


def test_the_page_says_which_version_it_is(jupyter: Jupyter) -> None:
    assert found(page(__version__)) == ""
    assert f"of ipymemory 9.9.9, and this kernel has ipymemory {__version__}" in found(
        page("9.9.9")
    )
    assert "of an older ipymemory" in found(page(""))
    # where JupyterLab runs elsewhere only its page tells
    assert "also in the environment that runs JupyterLab" in found(page(unknown=True))


@pytest.fixture
def kernel(tmp_path: Path) -> Iterator[Kernel]:
    kernel = Kernel(tmp_path)
    yield kernel
    kernel.close()


@pytest.mark.kernel
def test_the_kernel_hears_which_version_the_page_is_or_that_there_is_none(kernel: Kernel) -> None:
    """As JupyterLab answers a comm that nothing in it knows, and as our extension greets."""
    ran = kernel.run("%load_ext ipymemory")
    (push,) = [
        told["comm_id"]
        for kind, told in ran.messages
        if kind == "comm_open" and told["target_name"] == "ipymemory.push"
    ]
    assert "page" not in kernel.run("%memory doctor").markdown.replace("versions, page", "")
    client = kernel.client
    client.shell_channel.send(client.session.msg("comm_close", {"comm_id": push, "data": {}}))
    told = kernel.run("%memory doctor").markdown
    assert "no lab extension of ipymemory" in told or "the page does not know it" in told
    # a page that comes later still finds that we are here
    client.shell_channel.send(
        client.session.msg("comm_info_request", {"target_name": "ipymemory.push"})
    )
    while (reply := client.get_shell_msg(timeout=20))["msg_type"] != "comm_info_reply":
        pass
    assert list(reply["content"]["comms"]) == [push]
    one = Page(kernel)
    one.open(package="9.9.9")
    assert (
        "The page has the lab extension of ipymemory 9.9.9" in kernel.run("%memory doctor").markdown
    )
    one.say("hello", package=__version__)
    told = kernel.run("%memory doctor").markdown
    assert "page" not in told.replace("versions, page", "")
    one.say("hello", package=["no", "text"])
    kernel.run("1")
