"""How a dream stands, as one line of counts: for a terminal, and for a notebook's saved output.

No word of a memory is in it, so that it may be kept anywhere (behaviour L12).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

_STEPS = {
    "orient": "looks at what there is",
    "gather": "gathers what is new",
    "consolidate": "brings together what belongs together",
    "prune": "puts the files in place",
}


def line(state: Mapping[str, Any], now: datetime | None = None) -> str:
    """Return what a dream does and how far it is; `state` as `dream_state.state` gives it."""
    step = _STEPS.get(str(state.get("step")), "begins")
    found = [f"A dream tidies the memories: it {step}", *amounts(state)]
    seconds = _seconds(state, now or datetime.now(UTC))
    return " · ".join([*found, f"{seconds} s"] if seconds is not None else found)


def amounts(state: Mapping[str, Any]) -> list[str]:
    """Return how far it is in counts, each a few words; nothing of what there is none of."""
    memories, sessions = _number(state, "memories"), _number(state, "sessions")
    found = [_some(memories, "memory", "memories")]
    if sessions and "reviewed" in state:
        reviewed = _number(state, "reviewed")
        found.append(f"{reviewed:,} of {_some(sessions, 'session')} reviewed")
    elif sessions:
        found.append(f"{_some(sessions, 'session')} since the last")
    if files := _number(state, "files"):
        found.append(f"{_some(files, 'file')} written")
    found += [_some(_number(state, "turns"), "turn"), _some(_number(state, "calls"), "tool call")]
    found.append(_some(_number(state, "tokens"), "token"))
    usd = state.get("usd")
    if isinstance(usd, float) and usd > 0:
        found.append(f"{usd:.4f} $")
    return [each for each in found if each]


def _some(count: int, one: str, more: str = "") -> str:
    return f"{count:,} {one if count == 1 else more or one + 's'}" if count else ""


def _number(state: Mapping[str, Any], key: str) -> int:
    value = state.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _seconds(state: Mapping[str, Any], now: datetime) -> int | None:
    try:
        began = datetime.fromisoformat(str(state.get("started")))
        return max(0, round((now - began).total_seconds()))
    except (ValueError, TypeError):  # none, or one without a zone
        return None
