"""A shell of this process that is recorded, for tests that need no kernel."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from kernels import eventually
from traitlets.config import Config

from ipymemory.config import Settings
from ipymemory.places import SessionFolder
from ipymemory.recorder import Recorder
from ipymemory.redaction import Masker
from ipymemory.transcript import TranscriptWriter


class Recording:
    """A real shell and recorder that write to a transcript in `folder`."""

    def __init__(self, folder: Path, **config: dict[str, Any]) -> None:
        self.folder = SessionFolder(folder / "session")
        self.settings = Settings(Config(config))
        self.shell: Any = InteractiveShell(config=Config({"HistoryManager": {"enabled": False}}))
        self.told: list[str] = []
        self.trouble: Exception | None = None
        """What opening the transcript raises."""
        self.opened = 0
        self.torn = 0
        """Lines that were no JSON when `lines` last looked."""
        self.recorder = self.new_recorder()

    def new_recorder(self) -> Recorder:
        """Return another recorder of the same shell, as loading again makes one."""
        return Recorder(self.shell, self._open, self.settings, self.told.append, Masker())

    def _open(self) -> TranscriptWriter:
        self.opened += 1
        if self.trouble is not None:
            raise self.trouble
        return TranscriptWriter(self.folder, "session")

    def run(self, source: str, **options: Any) -> Any:
        """Run a cell; return IPython's result."""
        return self.shell.run_cell(source, store_history=options.pop("history", True), **options)

    @property
    def lines(self) -> list[dict[str, Any]]:
        """The lines of the transcript without the first, which is the file's own."""
        if not self.folder.transcript.exists():
            return []
        data = self.folder.transcript.read_bytes()
        found, self.torn = [], 0
        for line in data.split(b"\n")[1:]:
            try:
                found += [json.loads(line)] if line else []
            except ValueError:
                self.torn += 1
        return found

    def sources(self) -> list[str]:
        """Return the sources on record, in order."""
        return [each["source"] for each in self.lines if each["type"] == "cell"]

    def outputs(self) -> dict[str, Any]:
        """Return the ``outputs`` line of the last cell on record, once it is there."""
        (id,) = [each["id"] for each in self.lines if each["type"] == "cell"][-1:]

        def found() -> list[dict[str, Any]]:
            return [each for each in self.lines if (each["type"], each["id"]) == ("outputs", id)]

        eventually(found, "the outputs are on record")
        return found()[0]

    def end(self) -> dict[str, Any]:
        """Return the newest ``end`` line."""
        return [each for each in self.lines if each["type"] == "end"][-1]

    def close(self) -> None:
        """Stop recording and let the shell go."""
        self.recorder.remove()
        self.shell.restore_sys_module_state()


def text(outputs: dict[str, Any]) -> list[tuple[str, str]]:
    """Return kind and text of each piece of an ``outputs`` line."""
    return [(each["kind"], each["text"]) for each in outputs["outputs"]]
