"""The model itself: one client, streamed requests, and tries of its own with a cap.

The SDK retries too, but obeys whatever ``retry-after`` says, to days, and not within a stream;
so its tries are off. What a server does not take is found out once: it is left out from then on.
"""

from __future__ import annotations

import asyncio
import importlib
import os
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from ipymemory.errors import EngineError
from ipymemory.messages_api import address, failures, wire
from ipymemory.messages_api.stream import Gathered
from ipymemory.models import Reply, Request, Usage

FIRST_WAIT = 0.5
"""Seconds before the second try; doubled each time, to `Engine.wait_most`."""

_VARIABLES = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL")


class Limits(Protocol):
    """The settings that the engine goes by; the class `Engine` of our settings."""

    model: Any
    effort: Any
    answer_tokens: Any
    answer_seconds: Any
    tries: Any
    wait_most: Any


class AnthropicModel:
    """A model behind the Messages API, for one event loop.

    `metered` is told the model and the usage of every call that was counted, also of one that
    broke off. `environment` is read anew for each call, so that a key that was set later counts.
    """

    name = "anthropic"

    def __init__(
        self,
        limits: Limits,
        environment: Mapping[str, str] = os.environ,
        metered: Callable[[str, Usage], None] = lambda model, usage: None,
    ) -> None:
        self._limits = limits
        self._environment = environment
        self._metered = metered
        self._client: Any = None
        self._made_of: tuple[str, ...] = ()
        self._plain = False

    @property
    def host(self) -> str:
        """Where requests go, with the port where one is named."""
        return address.destination(self._environment)

    @property
    def model(self) -> str:
        """The model that answers where a request names none."""
        return str(self._limits.model)

    async def complete(self, request: Request) -> Reply:
        """Answer one request; raises `EngineError` when it cannot, after the tries there are."""
        tries = int(self._limits.tries)
        for number in range(tries):
            try:
                return await self._once(request)
            except EngineError as error:
                wait = FIRST_WAIT * 2.0**number if error.wait is None else error.wait
                last = number == tries - 1 or error.kind not in failures.PASSING
                if last or wait > self._limits.wait_most:
                    raise
                await asyncio.sleep(wait)
        raise EngineError("The engine was allowed no try at all; see Engine.tries.")

    async def close(self) -> None:
        """Close the connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _once(self, request: Request) -> Reply:
        gathered = Gathered(request.hear)
        stream: Any = None
        try:
            client = await self._connected()
            sent = wire.arguments(
                request,
                model=self.model,
                max_tokens=self._limits.answer_tokens,
                effort=self._limits.effort,
                full=address.is_anthropic(self.host) and not self._plain,
            )
            stream = await client.messages.create(**sent)
            async for event in stream:
                gathered.take(event.model_dump(exclude_none=True))
            return gathered.reply()
        except EngineError:
            raise
        except Exception as error:  # foreign errors are translated where they are met
            failure = failures.translated(error, self.host, self._limits.answer_seconds)
            if failure.kind == "request" and not self._plain and _about_extras(failure):
                self._plain = True
                return await self._once(request)
            raise failure from error
        finally:
            if stream is not None:
                await stream.close()
            usage = gathered.usage
            if usage is not None:
                self._metered(request.model or self.model, usage)

    async def _connected(self) -> Any:
        """Return the client, a new one where key or address changed meanwhile."""
        made_of = tuple(self._environment.get(each, "") for each in _VARIABLES)
        if self._client is not None and made_of == self._made_of:
            return self._client
        await self.close()
        # It takes a second or two; whoever waits for something else must not wait for that.
        anthropic = await asyncio.to_thread(importlib.import_module, "anthropic")
        key, token, _ = made_of
        if not key and not token and not address.is_anthropic(self.host):
            # Servers on one's own machine want none, but the SDK does.
            token = "none"
        self._client = anthropic.AsyncAnthropic(
            # Both at once is refused; the key goes first, as in the SDK.
            **({"api_key": key} if key else {"auth_token": token} if token else {}),
            base_url=address.base_url(self._environment),
            timeout=float(self._limits.answer_seconds),
            # Somebody agreed to this host, not to whichever it would send us on to.
            http_client=anthropic.DefaultAsyncHttpxClient(follow_redirects=False),
            max_retries=0,
        )
        self._made_of = made_of
        return self._client


def _about_extras(failure: EngineError) -> bool:
    told = str(failure)
    return any(word in told for word in ("effort", "output_config", "cache_control"))
