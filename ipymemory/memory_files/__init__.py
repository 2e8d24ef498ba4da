"""Long-term memories: a folder of Markdown files with an index, read and written through one door.

`MemoryFolder` is the door, `Draft` what somebody wants kept, `Memory` what is kept. `opened` gives
a project's folder by its settings.
"""

from ipymemory.memory_files.folder import PERSONS, MemoryFolder, opened
from ipymemory.memory_files.proposals import Proposal
from ipymemory.memory_files.values import KINDS, Draft, Memory, Source, age

__all__ = [
    "KINDS",
    "PERSONS",
    "Draft",
    "Memory",
    "MemoryFolder",
    "Proposal",
    "Source",
    "age",
    "opened",
]
