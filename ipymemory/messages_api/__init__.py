"""The ``anthropic`` engine: a model behind any server that speaks the Anthropic Messages API.

`address` knows where it would send to without importing anything heavy, `wire` turns requests
into what goes over the line, `stream` what comes back into a reply, `failures` translates what
goes wrong, and `engine` is the model. The SDK is imported with the first request, in the worker.
"""

from ipymemory.messages_api.address import destination, has_key, is_anthropic, is_this_machine

__all__ = ["destination", "has_key", "is_anthropic", "is_this_machine"]
