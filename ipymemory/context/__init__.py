"""The conversation that a model is shown: turns as messages, in front of which nothing moves.

`rendering` puts one entry into words, `records` keeps what a model said in ``worker.jsonl``,
`compaction` says what stays when it grows too long, and `conversation` holds it all together.
"""

from ipymemory.context.conversation import Conversation, Part

__all__ = ["Conversation", "Part"]
