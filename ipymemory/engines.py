"""Which engine works here, and why: the choice of the person, their consent, and the mode.

Without a choice it is the extractive one, whatever keys lie in the environment. A choice holds for
the hosts that were agreed to: a base URL that changed wants a new yes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ipymemory import consent
from ipymemory.config import Settings
from ipymemory.errors import IpymemoryError
from ipymemory.messages_api import destination, is_anthropic, is_this_machine
from ipymemory.places import Project


@dataclass(frozen=True, slots=True)
class Chosen:
    """The engine that may work now. `host` is where it sends to, empty for none."""

    name: str
    host: str = ""
    reason: str = ""
    """Why it is not the one that was chosen, as a sentence, or nothing."""


def choose(
    project: Project, settings: Settings, environment: Mapping[str, str], wanted: str = ""
) -> Chosen:
    """Return the engine that may work in `project` now; `wanted` is one named for this once.

    Naming one agrees to nothing: it may work where somebody agreed to its host before.
    """
    by_setting = settings.engine.name == "anthropic"
    name = wanted or consent.chosen(project) or ("anthropic" if by_setting else "extractive")
    if name != "anthropic":
        return Chosen("extractive")
    host = destination(environment)
    if not host:
        return Chosen("extractive", "", "ANTHROPIC_BASE_URL is no address.")
    try:
        mode = project.mode(settings.memory.mode)
    except IpymemoryError as error:
        # It may say off.
        return Chosen("extractive", "", str(error))
    if mode == "off":
        return Chosen("extractive", "", "Mode off: no engine is called; %memory mode auto ends it.")
    if not by_setting and not consent.given(project, host):
        why = f"Nobody agreed to {host} yet: %memory engine anthropic does."
        return Chosen("extractive", "", why)
    return Chosen("anthropic", host)


def where(host: str) -> str:
    """Return where `host` is, in words: ``stays on this machine`` or not."""
    if is_this_machine(host):
        return f"{host}, on this machine"
    return f"{host}, outside this machine" if is_anthropic(host) else f"{host}, perhaps outside"
