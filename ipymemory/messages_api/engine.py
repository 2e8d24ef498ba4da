"""The model itself: one client, streamed requests, and tries of its own with a cap.

The SDK retries too, but obeys whatever ``retry-after`` says, to days, and not within a stream;
so its tries are off. What a server does not take or know is found out once, and left out from
then on.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, Protocol

from ipymemory.errors import EngineError
from ipymemory.messages_api import address, failures, sdk, wire
from ipymemory.messages_api.stream import Gathered, told
from ipymemory.models import Reply, Request, Usage

FIRST_WAIT = 0.5
"""Seconds before the second try; doubled each time, to `Engine.wait_most`."""

CONNECT_SECONDS = 10.0
"""To reach a server at all; one that is there answers within one, also from far away."""


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

    `metered` is told the request, the model and the usage of every call that was counted, also of
    one that broke off. `environment` is read anew for each call, so that a key that was set later
    counts.
    """

    name = "anthropic"

    def __init__(
        self,
        limits: Limits,
        environment: Mapping[str, str] = os.environ,
        metered: Callable[[Request, str, Usage], None] = lambda request, model, usage: None,
    ) -> None:
        self.limits = limits
        """What it goes by from the next call on; settings change while it lives."""
        self._environment = environment
        self._metered = metered
        self._client: Any = None
        self._made_of: tuple[str, ...] = ()
        self._plain = False
        self._connecting = asyncio.Lock()

    @property
    def host(self) -> str:
        """Where requests go, with the port where one is named."""
        return address.destination(self._environment)

    @property
    def model(self) -> str:
        """The model that answers where a request names none."""
        return str(self.limits.model)

    async def complete(self, request: Request) -> Reply:
        """Answer one request; raises `EngineError` when it cannot, after the tries there are.

        `Request.hear` gets the words of the first try that had any. Those of a later one differ,
        and two beginnings would be heard; the reply has them.
        """
        heard = _Heard(request.hear)
        tries, most = int(self.limits.tries), float(self.limits.wait_most)
        for number in range(tries):
            try:
                return await self._once(replace(request, hear=heard.listener()))
            except EngineError as error:
                wait = min(most, FIRST_WAIT * 2.0**number) if error.wait is None else error.wait
                last = number == tries - 1 or error.kind not in failures.PASSING
                if last or wait > most:
                    raise
                await asyncio.sleep(wait)
        raise EngineError("The engine was allowed no try at all; see Engine.tries.")

    def prepare(self) -> None:
        """Get ready what the first call would wait for, in a thread; returns at once."""
        sdk.prepare()

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
            stream = await client.messages.create(**self._sent(request))
            async for event in stream:
                gathered.take(told(event))
            return gathered.reply()
        except EngineError:
            raise
        except Exception as error:  # foreign errors are translated where they are met
            failure = failures.translated(error, self.host, self.limits.answer_seconds)
            if failure.kind == "request" and not self._plain and _about_extras(failure):
                self._plain = True
                return await self._once(request)
            raise failure from error
        finally:
            usage = gathered.usage
            if usage is not None:
                self._metered(request, request.model or self.model, usage)
            if stream is not None:
                with suppress(Exception):  # a connection that is broken cannot be closed better
                    await stream.close()

    def _sent(self, request: Request) -> dict[str, Any]:
        return wire.arguments(
            request,
            model=self.model,
            max_tokens=self.limits.answer_tokens,
            effort=self.limits.effort,
            full=address.is_anthropic(self.host) and not self._plain,
        )

    async def _connected(self) -> Any:
        """Return the client, a new one where key or address changed meanwhile."""
        async with self._connecting:
            made_of = tuple(self._environment.get(each, "").strip() for each in address.VARIABLES)
            if self._client is None or made_of != self._made_of:
                await self.close()
                # It takes a second or two; whoever waits for something else must not wait for it.
                anthropic = await asyncio.to_thread(sdk.loaded)
                self._client = self._new_client(anthropic, *made_of[:2])
                self._made_of, self._plain = made_of, False
            return self._client

    def _new_client(self, anthropic: Any, key: str, token: str) -> Any:
        if not (key + token).isascii() or not (key + token).isprintable():
            raise failures.no_key_at_all(self.host)
        if not key and not token and not address.is_anthropic(self.host):
            # Servers on one's own machine want none, but the SDK does.
            token = "none"
        seconds = float(self.limits.answer_seconds)
        return anthropic.AsyncAnthropic(
            # Both at once is refused; the key goes first, as in the SDK.
            **({"api_key": key} if key else {"auth_token": token} if token else {}),
            base_url=address.base_url(self._environment),
            timeout=anthropic.Timeout(seconds, connect=min(seconds, CONNECT_SECONDS)),
            # Somebody agreed to this host, not to whichever it would send us on to.
            http_client=anthropic.DefaultAsyncHttpxClient(follow_redirects=False),
            max_retries=0,
        )


class _Heard:
    """Hands words on to a listener, of one try alone."""

    def __init__(self, hear: Callable[[str], None] | None) -> None:
        self._hear = hear
        self._any = False

    def listener(self) -> Callable[[str], None] | None:
        """Return who is to hear the next try; None where nobody wants to or one was heard."""
        return None if self._hear is None or self._any else self._word

    def _word(self, text: str) -> None:
        self._any = True
        if self._hear is not None:
            self._hear(text)


def _about_extras(failure: EngineError) -> bool:
    told = str(failure)
    return any(word in told for word in ("effort", "output_config", "cache_control"))
