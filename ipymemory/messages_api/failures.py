"""What goes wrong between us and a server, in our own words and with a kind a program can go by.

The SDK's errors are told apart by their status and the transport's by their module, since the
transport library changed its name between the SDK's versions, and raw ones come out of a stream.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from ipymemory.errors import EngineError

PASSING = frozenset({"limit", "overloaded", "network", "time", "protocol"})
"""Kinds of failure that may be gone at the next try."""

_KINDS = {
    401: "credentials",
    402: "credentials",
    403: "credentials",
    404: "request",
    408: "time",
    409: "overloaded",
    413: "too_long",
    429: "limit",
}

NO_SERVER_OF_ITS_KIND = "See whether ANTHROPIC_BASE_URL leads to a server that speaks that API."
"""What to do where an answer came that is none."""

NOT_OF_THE_API = f"The server's answer was not one of the Messages API. {NO_SERVER_OF_ITS_KIND}"

ANOTHER = "Try again, or set another Engine.model."

LATER = "Try again in a while."

_SHORTER = "%memory compact makes it shorter, %memory ask-reset begins a new one."
_UNREACHED = (
    "See whether it runs, the network, and ANTHROPIC_BASE_URL; %memory engine extractive goes on "
    "without a model."
)
_REFUSED = "Set another Engine.model, or have %memory ask-reset begin a new conversation."
_NEXT = {404: "See whether there is such a model as Engine.model, and ANTHROPIC_BASE_URL."}
"""What to do about a status, where that is not told by its kind."""


def translated(error: Exception, host: str, seconds: float) -> EngineError:
    """Return `error` as an `EngineError`; one that is none of a server's is returned as failed."""
    if isinstance(error, EngineError):
        return error
    status = getattr(error, "status_code", None)
    if isinstance(status, int) and status >= 300:
        return _by_status(error, status, host)
    name, module = type(error).__name__, type(error).__module__.partition(".")[0]
    if "Timeout" in name:
        said = f"{host} said nothing for {seconds:g} s."
        return EngineError(f"{said} Try again, or raise Engine.answer_seconds.", "time")
    if getattr(error, "type", "") in ("overloaded_error", "api_error"):
        return EngineError(f"{host} broke off, since it has too much to do. {LATER}", "overloaded")
    if isinstance(error, TypeError) and "authentication" in str(error):
        return no_key_at_all(host)
    if name in ("CredentialsError", "AnthropicError"):
        # A profile of the SDK's own that is not whole; before 1.0 its error had no name of its own.
        return no_key_at_all(host, f" ({str(error)[:200].rstrip('.')})")
    rubbish = json.JSONDecodeError | UnicodeError | RecursionError
    if isinstance(error, rubbish) or "Validation" in name:
        said = f"What {host} answered is not of the Messages API."
        return EngineError(f"{said} {NO_SERVER_OF_ITS_KIND}", "protocol")
    if module.startswith(("httpx", "httpcore", "anthropic", "anyio")) or isinstance(error, OSError):
        said = f"{host} cannot be reached, or broke off ({name})."
        return EngineError(f"{said} {_UNREACHED}", "network")
    said = f"{host} could not be asked: {name}: {str(error)[:200].rstrip('.')}."
    return EngineError(f"{said} {LATER}")


def no_key_at_all(host: str, why: str = "") -> EngineError:
    """Return the failure of having no key, or none that can be one; `why` in brackets."""
    return EngineError(
        f"There is no key for {host}{why}. Set ANTHROPIC_API_KEY (with %env or before Jupyter "
        "starts), or %memory engine extractive to go on without a model.",
        "credentials",
    )


def _by_status(error: Exception, status: int, host: str) -> EngineError:
    kind = _KINDS.get(status) or ("overloaded" if status >= 500 else "request")
    told = _told(error)
    if kind == "credentials":
        return EngineError(
            f"{host} refused the key or the account (status {status}{told}). Set another with "
            "%env ANTHROPIC_API_KEY=…; it counts from the next call on.",
            kind,
        )
    if kind == "too_long" or "prompt is too long" in told or "exceed_context" in told:
        return EngineError(f"The conversation is too long for {host}{told}. {_SHORTER}", "too_long")
    what = {
        "limit": "has had enough requests for now",
        "overloaded": "has too much to do or failed",
        "time": "took too long",
    }.get(kind, "refused the request")
    wait = _wait(error)
    next_ = _NEXT.get(status, _REFUSED if kind == "request" else LATER)
    if wait is not None and wait >= 1:
        next_ = f"It asks to wait {_length(wait)}."
    return EngineError(f"{host} {what} (status {status}{told}). {next_}", kind, wait)


def _length(seconds: float) -> str:
    for size, word in ((86_400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {word}"
    return f"{seconds:.0f} s"


def _told(error: Exception) -> str:
    """Return what the server said itself, one short printable line after a colon, or nothing."""
    body = getattr(error, "body", None)
    inner = body.get("error") if isinstance(body, Mapping) else None
    said = inner.get("message") if isinstance(inner, Mapping) else None
    if not isinstance(said, str) or not said.strip():
        return ""
    line = " ".join(said.split())[:200]
    return ": " + "".join(each for each in line if each.isprintable()).rstrip(".")


def _wait(error: Exception) -> float | None:
    """Return the seconds of ``retry-after``, whatever form it has; None where it is none."""
    headers = getattr(getattr(error, "response", None), "headers", {}) or {}
    given = str(headers.get("retry-after") or "").strip()
    try:
        seconds = float(given)
        return max(0.0, seconds) if math.isfinite(seconds) else None
    except ValueError:
        pass
    try:
        return max(0.0, (parsedate_to_datetime(given) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError, OverflowError):
        return None
