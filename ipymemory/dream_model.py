"""Whether a model takes part in a dream, and the model that does: one for each dream.

A dream waits on a thread of its own, in a worker and on the command line alike, so its model has
a loop and connections of its own and shares nothing with the session's.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping

from ipymemory import engines
from ipymemory.agent_summary import Aside, Billed
from ipymemory.config import Settings
from ipymemory.cost import Ledger
from ipymemory.errors import IpymemoryError
from ipymemory.jobs.dream_by_model import JOB, ByModel
from ipymemory.memory_files import opened
from ipymemory.messages_api.engine import AnthropicModel
from ipymemory.models import Request, Usage
from ipymemory.places import Project

log = logging.getLogger(__name__)


def model_of(
    project: Project,
    settings: Settings,
    session: str = "",
    *,
    by_hand: bool = False,
    wanted: str = "",
    environment: Mapping[str, str] = os.environ,
) -> tuple[ByModel | None, str]:
    """Return the model's part of a dream, or None and why a chosen one takes none.

    The budget of a day stops what runs by itself, never what a person asks for. `wanted` is an
    engine named for this once. Never raises.
    """
    try:
        chosen = engines.choose(project, settings, environment, wanted)
        if chosen.name != "anthropic":
            return None, chosen.reason
        if closed := opened(project, settings).closed:
            return None, closed
    except IpymemoryError as error:
        return None, str(error)
    ledger = Ledger(project)
    gate = ledger.gate(settings)
    if not by_hand and not gate.open:
        return None, f"The built-in engine tidied alone: {gate.reason}."

    def spent(request: Request, name: str, usage: Usage) -> None:
        try:
            ledger.record(request.job or JOB, model.host, name, usage, session)
        except IpymemoryError as error:
            log.warning("what a dream cost could not be noted: %s", error)

    model = AnthropicModel(settings.engine, environment, spent)
    seconds = float(settings.engine.summary_seconds)
    aside = Aside(Billed(model), seconds, lambda: ledger.gate(settings).open)
    return ByModel(model, project, settings, aside), ""
