"""``status``: one page that says what runs, what ran last, why nothing ran, and where it all is."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ipymemory import engines, lines, memory_place, sessions
from ipymemory.commands.amounts import counted, size
from ipymemory.commands.memories import one
from ipymemory.commands.pages import JSON, Arguments, Command, Page
from ipymemory.commands.place import Place
from ipymemory.cost import Ledger
from ipymemory.errors import WorkerError
from ipymemory.history import History
from ipymemory.memory_files import proposals as waiting
from ipymemory.messages_api import has_key
from ipymemory.places import SessionFolder
from ipymemory.recall import embedding
from ipymemory.transcript import Transcript
from ipymemory.turns import Turn

ASK_SECONDS = 2.0
"""A worker at rest answers in milliseconds; the page does not wait for one that is busy."""

_JOBS = {"session_notes": "notes", "magic_docs": "documents"}
"""Jobs as a reader knows them, where their names are others."""

PROBLEMS = 5
"""Problems shown of this process, the newest; the rest is in the log file."""


def _status(place: Place, arguments: Arguments) -> Page:
    folder = place.shown
    data: dict[str, Any] = {
        "project": str(place.project.root),
        **_engine(place),
        "budget": Ledger(place.project).gate(place.settings).reason,
        "mode": place.mode,
        "recording": _recording(place),
        "session": _session(folder, place),
        "services": _services(folder),
        "worker": place.live.worker if place.live else "",
        **_told(place),
        "kept": _kept(place),
        "recall": _recall(place),
        "problems": [*place.problems, *(place.live.problems if place.live else ())[-PROBLEMS:]],
        "files": _files(place, folder),
    }
    return Page("\n".join(_lines(data)), data)


def _engine(place: Place) -> dict[str, str]:
    """Return the engine by its name, and what it does and where it sends to in words."""
    found = engines.choose(place.project, place.settings, os.environ)
    told = "extractive: built in, no model, no network"
    if found.name == "anthropic":
        told = (
            f"%%ask, and the notes of a longer session, by {place.settings.engine.model} at "
            f"{engines.where(found.host)}"
        )
    elif found.reason:
        told += f". {found.reason}"
    elif has_key(os.environ):
        told += f" (the key in the environment is not used; {place.prefix}engine anthropic does)"
    return {"engine": found.name, "engine_told": told}


def _lines(data: Mapping[str, Any]) -> list[str]:
    """Return the page. It names no other notebook: what a cell prints is saved with this one."""
    kept, session = data["kept"], data["session"]
    out = [
        f"**Project** {one(data['project'])}",
        "",
        f"- **Engine** {data['engine_told']}",
        f"- **Mode** {data['mode']}",
        f"- **Recording** {data['recording']}",
    ]
    if data["engine"] != "extractive":
        out.insert(3, f"- **Budget** {data['budget']}")
    if session:
        out.append(
            f"- **Session** {counted(session['turns'], 'turn')}, "
            f"{counted(session['kernels'], 'kernel')}, notes cover {session['covered']}"
            + (f"; {session['undone']} taken back with an undo" if session["undone"] else "")
        )
    else:
        out.append("- **Session** none yet: it begins with the first cell that runs")
    for name, service in data["services"].items():
        out.append(
            f"- **{name.capitalize()}** last success: {service['success'] or 'none yet'}, "
            f"last error: {_error(service)}"
        )
    out += [f"- **Now** {_JOBS.get(job, job)}: {one(line)}" for job, line in data["doing"].items()]
    out += [f"- **Gate** of the {name}: {reason}" for name, reason in data["gates"].items()]
    if data["worker"]:
        out.append(f"- **Worker** {data['worker']}")
    out += [
        f"- **Kept** {counted(kept['sessions'], 'session')} of this project, "
        f"{size(kept['bytes'])}; {_aging(kept)}",
        f"- **Memories** {kept['memories'] or 'none yet'}{_waiting(kept)}",
    ]
    if data["recall"]:
        out.append(f"- **Recall** {data['recall']}")
    # What holds recording is told once, where it says that nothing is recorded.
    more = [each for each in data["problems"] if each not in data["recording"]]
    out += [f"- **Problem** {each}" for each in more]
    out += ["", "**Files**", ""]
    out += [f"- {name}: {one(path)}" for name, path in data["files"].items()]
    return out


def _recording(place: Place) -> str:
    live = place.live
    if live is None:
        return "not here: a notebook records after %load_ext ipymemory"
    if live.paused:
        return f"paused; {place.prefix}resume-recording goes on"
    return f"off. {live.reason}" if live.reason else "on"


def _session(folder: SessionFolder | None, place: Place) -> dict[str, Any]:
    """Return the counts of the session's transcript; nothing when there is none."""
    if folder is None or not folder.transcript.is_file():
        return {}
    transcript = Transcript(folder.transcript)
    transcript.follow()
    turns = [each for each in transcript.entries if isinstance(each, Turn)]
    record = next((r for r, f in sessions.every(place.project) if f.id == folder.id), None)
    through = record.notes_through if record is not None else ""
    undone = History(place.project.history).undone_turns("session_notes", folder.id)
    covered = [each.id for each in turns if through and each.id <= through]
    undone = undone.intersection(covered)
    return {
        "id": folder.id,
        "turns": len(turns),
        "kernels": len({each.kernel for each in turns}),
        "covered": len(covered) - len(undone),
        "undone": len(undone),
        "torn": transcript.torn,
        "last": turns[-1].time if turns else "",
    }


def _services(folder: SessionFolder | None) -> dict[str, dict[str, str]]:
    """Return, for each job that ran, when it last succeeded and how it last failed."""
    services: dict[str, dict[str, str]] = {"notes": {"success": "", "failed": "", "error": ""}}
    found: list[dict[str, Any]] = []
    if folder is not None:
        found, _ = lines.read(folder.worker_log)
    for each in found:
        if each.get("type") != "run":
            continue
        name = {"session_notes": "notes"}.get(str(each.get("job")), str(each.get("job")))
        if name in ("notes", "extraction") and each.get("engine") == "anthropic":
            name += " by a model"
        service = services.setdefault(name, {"success": "", "failed": "", "error": ""})
        when = _when(str(each.get("time", "")))
        if each.get("status") == "done":
            service["success"] = when
            if refusals := each.get("refusals"):
                service["failed"], service["error"] = when, f"an edit was refused: {refusals[0]}"
        else:
            service["failed"] = when
            service["error"] = str(each.get("error") or each.get("status"))
    return services


def _error(service: Mapping[str, str]) -> str:
    return f"{service['failed']}, {service['error']}" if service["failed"] else "none"


def _told(place: Place) -> dict[str, dict[str, str]]:
    """Return what the worker that runs knows: each job's last gate, and what is being done.

    The latter in the form that may be saved with a notebook.
    """
    if place.live is None or place.live.worker != "running":
        return {"gates": {}, "doing": {}}
    try:
        told = place.live.ask("status", ASK_SECONDS)
    except WorkerError as error:
        return {"gates": {"notes": str(error)}, "doing": {}}
    told = told if isinstance(told, Mapping) else {}
    return {name: _words(told.get(name)) for name in ("gates", "doing")}


def _words(told: object) -> dict[str, str]:
    named = told.items() if isinstance(told, Mapping) else ()
    return {str(name): str(text) for name, text in named}


def _kept(place: Place) -> dict[str, Any]:
    every = sessions.every(place.project)
    days = place.settings.memory.keep_days
    old = sessions.expired(place.project, days, datetime.now(UTC))
    folder = place.project.folder
    memories = memory_place.memory_place(place.project, place.settings.memory.folder).folder
    files = [each for each in folder.rglob("*") if each.is_file()] if folder.is_dir() else []
    return {
        "sessions": len(every),
        "bytes": sum(_bytes(each) for each in files),
        "keep_days": days,
        "expired": len(old),
        "gone": _gone(place),
        "memories": memory_place.count(memories),
        "proposals": len(waiting.waiting(place.project.proposals)),
    }


def _recall(place: Place) -> str:
    """Return how memories are found, where a setting has a model of meanings used for it."""
    where = place.settings.memory.embeddings
    if not where:
        return ""
    # A kernel never loads it; there, what the worker met stands among the problems.
    trouble = embedding.trouble(where, load=place.live is None)
    return f"by words alone. {trouble}" if trouble else f"by words, then by the meanings in {where}"


def _waiting(kept: Mapping[str, Any]) -> str:
    number = kept["proposals"]
    return f"; {counted(number, 'proposal')} to look at" if number else ""


def _aging(kept: Mapping[str, Any]) -> str:
    parts = [f"each goes {kept['keep_days']} days after its last turn"]
    if kept["expired"]:
        parts.append(f"{kept['expired']} are past that and go next")
    if kept["gone"]:
        parts.append(f"{counted(kept['gone'], 'session')} went lately")
    return ", ".join(parts)


def _gone(place: Place) -> int:
    """Return how many sessions went when the project was last looked through."""
    told = place.project.properties().get("expired")
    number = told.get("sessions") if isinstance(told, Mapping) else 0
    return number if isinstance(number, int) else 0


def _bytes(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        # gone meanwhile: a temporary file, as a rule
        return 0


def _files(place: Place, folder: SessionFolder | None) -> dict[str, str]:
    found = {"home": str(place.home), "project": str(place.project.folder)}
    if folder is not None:
        found |= {"notes": str(folder.notes), "transcript": str(folder.transcript)}
    return found


def _when(time: str) -> str:
    return f"{time[:19].replace('T', ' ')} UTC" if time else ""


STATUS = Command("status", "show what runs, what ran last and where it all lies", _status, (JSON,))
