"""A process that is there beside a dream: it meddles with the memories, or dreams to be killed.

It has all loaded before the first line of JSON comes, so that its moments are those it is told.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from ipymemory import places
from ipymemory.config import Settings
from ipymemory.dream_model import model_of
from ipymemory.errors import IpymemoryError
from ipymemory.events import Bus, Event
from ipymemory.history import History
from ipymemory.jobs import dream
from ipymemory.jobs.dream import Context
from ipymemory.memory_files import Draft, Source, opened
from ipymemory.places import Project

SETTINGS = {"Engine": {"tries": 1, "answer_seconds": 20.0}}


def draft(text: str) -> Draft:
    return Draft("project", text.rstrip("."), "", text, Source(origin="person"))


def meddle(project: Project, what: str, name: str, text: str) -> str:
    """Add, change or delete one memory; return ``done``, or why not."""
    folder = opened(project, Settings())
    run = History(project.history).begin("remember", "person", "a test", (), "")
    try:
        if what == "add":
            folder.save(draft(text), run)
        elif what == "change":
            folder.supersede(name, draft(text), run)
        else:
            folder.forget(name, run)
    except IpymemoryError as error:
        return type(error).__name__
    return "done"


def dream_until_killed(project: Project, by_model: bool) -> None:
    settings = Settings.read(SETTINGS)[0]
    bus = Bus()

    def tell(event: Event) -> None:
        if event.details.get("phase") == "updating" and event.kind == "dream":
            say({"at": "updating"})

    bus.subscribe(tell)
    model, note = model_of(project, settings, by_hand=True) if by_model else (None, "")
    assert not by_model or model is not None, note
    dream.dream(Context(project, settings, bus, model=model))


def say(value: dict[str, Any]) -> None:
    os.write(1, json.dumps(value).encode() + b"\n")


def main() -> None:
    import anthropic  # noqa: F401 - before the fork, as all else

    say({"at": "loaded"})
    while line := sys.stdin.readline():
        told = json.loads(line)
        project = places.project_of(Path(told["root"]), places.home(""))
        if "deeds" in told:
            came = []
            for delay, what, name, text in told["deeds"]:
                time.sleep(delay)
                came.append(meddle(project, what, name, text))
            say({"came": came})
            continue
        child = os.fork()
        if not child:
            try:
                say({"at": "begun", "pid": os.getpid()})
                dream_until_killed(project, told["model"])
                say({"at": "ended"})
            finally:
                os._exit(0)
        # Its number is nobody else's until then.
        sys.stdin.readline()
        os.waitpid(child, 0)
        say({"at": "gone"})


if __name__ == "__main__":
    main()
