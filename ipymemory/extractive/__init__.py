"""The extractive engine: what can be told from cells, outputs and tracebacks without a model."""

from ipymemory.extractive.document import Chapter, write_document
from ipymemory.extractive.engine import ExtractiveModel
from ipymemory.extractive.fitting import fills, write_notes
from ipymemory.extractive.material import NotesMaterial
from ipymemory.extractive.merging import merge

__all__ = [
    "Chapter",
    "ExtractiveModel",
    "NotesMaterial",
    "fills",
    "merge",
    "write_document",
    "write_notes",
]
