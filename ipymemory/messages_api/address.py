"""Where a request would go: told from the environment alone, before anybody consents to it."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

ANTHROPIC = "api.anthropic.com"

KEYS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")
VARIABLES = (*KEYS, "ANTHROPIC_BASE_URL")
"""What of an environment says where a request goes and who pays for it."""

_LOCAL = {"localhost", "127.0.0.1", "::1"}


def base_url(environment: Mapping[str, str]) -> str:
    """Return the server's address without a ``/v1`` at its end, which the SDK adds itself."""
    given = environment.get("ANTHROPIC_BASE_URL", "").strip()
    if not given:
        return f"https://{ANTHROPIC}"
    if "//" not in given:
        given = f"http://{given}"
    return given.rstrip("/").removesuffix("/v1")


def destination(environment: Mapping[str, str]) -> str:
    """Return the host, with its port where one is named: what consent is given to."""
    try:
        parts = urlsplit(base_url(environment))
        host, port = (parts.hostname or "").lower(), parts.port
    except ValueError:
        return ""
    host = f"[{host}]" if ":" in host else host
    return f"{host}:{port}" if port else host


def has_key(environment: Mapping[str, str]) -> bool:
    """Return whether there is a key or a token for a server."""
    return any(map(environment.get, KEYS))


def is_anthropic(host: str) -> bool:
    """Return whether `host` is Anthropic's own, which takes more than the old core of the API."""
    return host in (ANTHROPIC, f"{ANTHROPIC}:443")


def is_this_machine(host: str) -> bool:
    """Return whether what goes to `host` stays on this machine."""
    try:
        return urlsplit(f"//{host}").hostname in _LOCAL
    except ValueError:
        return False
