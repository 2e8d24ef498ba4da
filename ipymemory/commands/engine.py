"""``engine``: which engine answers, and the consent that goes with choosing a model."""

from __future__ import annotations

import os

from ipymemory import consent, engines
from ipymemory.commands.calling import nearest
from ipymemory.commands.pages import Argument, Arguments, Command, Page
from ipymemory.commands.place import Place
from ipymemory.engines import Chosen
from ipymemory.errors import CommandError
from ipymemory.messages_api import destination, has_key, is_anthropic

ENGINES = ("extractive", "anthropic")


def _engine(place: Place, arguments: Arguments) -> Page:
    wanted = arguments["engine"]
    if wanted is not None and wanted not in ENGINES:
        near = nearest(wanted, ENGINES)
        raise CommandError(
            f"There is no engine {wanted!r}{f'; did you mean {near}?' if near else '.'} "
            f"The right form is: {ENGINE.usage(place.prefix)}"
        )
    if wanted is None and arguments["everywhere"]:
        raise CommandError(f"Say which engine. The right form is: {ENGINE.usage(place.prefix)}")
    if wanted is not None:
        host = destination(os.environ) if wanted == "anthropic" else ""
        if wanted == "anthropic" and not host:
            raise CommandError(
                "ANTHROPIC_BASE_URL is no address. Set it to one such as http://localhost:11434."
            )
        consent.choose(place.project, wanted, host, everywhere=arguments["everywhere"])
        if place.live is not None:
            place.live.happened("engine", engine=wanted, host=host)
    found = engines.choose(place.project, place.settings, os.environ)
    return Page(
        _told(place, found, arguments["everywhere"]), {"engine": found.name, "host": found.host}
    )


def _told(place: Place, found: Chosen, everywhere: bool) -> str:
    where = "in every project" if everywhere else "in this project"
    if found.name == "extractive":
        told = "Engine **extractive**: built in, no model, and nothing leaves this machine."
        return f"{told} {found.reason}".strip()
    told = (
        f"Engine **anthropic** {where}: {place.settings.engine.model} at "
        f"{engines.where(found.host)}, answers your questions (%%ask) and by itself keeps the "
        "notes of a longer session and living documents, and looks for memories. For that this "
        "notebook's cells, text and index of memories go there, masked, and the files of the "
        "project that it looks at. "
        # A shell has no conversation that could be previewed.
        f"%memory preview shows what a question would send, {place.prefix}cost what it came to; "
        f"{place.prefix}engine extractive ends this."
    )
    if is_anthropic(found.host) and not has_key(os.environ):
        told += " There is no ANTHROPIC_API_KEY in the environment yet; set it with %env."
    return told


ENGINE = Command(
    "engine",
    "show or choose what answers: the built-in engine, or a model",
    _engine,
    (
        Argument("ENGINE", "the engine to choose", "extractive / anthropic"),
        Argument("--everywhere", "for every project of yours, not only this one"),
    ),
    details=(
        "anthropic is any server that speaks the Anthropic Messages API: ANTHROPIC_BASE_URL says "
        "which, Engine.model which model. It is remembered for this project and this host."
    ),
)
