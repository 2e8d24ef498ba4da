"""A small model of word meanings, as model2vec saves one: each meaning has an axis of its own."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

MEANINGS: Sequence[Sequence[str]] = (
    ("deadline", "due"),
    ("report", "paper"),
    ("board", "directors"),
    ("earnings", "revenue"),
    ("euros", "money"),
    ("zebra", "okapi"),
    ("weather",),
)


def made(
    folder: Path, meanings: Sequence[Sequence[str]] = MEANINGS, kind: str = "<f4", **beside: Any
) -> Path:
    """Save a model into `folder` and return it. The header is as model2vec 0.10 writes it."""
    # Late: where the extra is not installed, these tests are collected and not chosen.
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    folder.mkdir(parents=True, exist_ok=True)
    words = ["[UNK]", *(word for meaning in meanings for word in meaning)]
    tokenizer = Tokenizer(
        models.WordLevel({word: id for id, word in enumerate(words)}, unk_token="[UNK]")
    )
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    vectors = np.zeros((len(words), len(meanings)), kind)
    for axis, meaning in enumerate(meanings):
        for word in meaning:
            vectors[words.index(word), axis] = 3
    tensors = {"embeddings": vectors, **{name: np.asarray(each) for name, each in beside.items()}}
    (folder / "model.safetensors").write_bytes(safetensors(tensors))
    (folder / "config.json").write_text('{"normalize": true}')
    return folder


def safetensors(tensors: Mapping[str, Any]) -> bytes:
    """Return the bytes of a safetensors file that holds `tensors`."""
    kinds = {"f4": "F32", "f2": "F16", "f8": "F64", "i1": "I8", "i4": "I32", "i8": "I64"}
    header, data = {}, b""
    for name, each in tensors.items():
        end = len(data) + each.nbytes
        header[name] = {
            "dtype": kinds[each.dtype.str[1:]],
            "shape": list(each.shape),
            "data_offsets": [len(data), end],
        }
        data += each.tobytes()
    return with_header(json.dumps(header, separators=(",", ":")), data)


def with_header(header: str, data: bytes = b"") -> bytes:
    """Return the bytes of a file with this text for its header."""
    return struct.pack("<Q", len(header)) + header.encode() + data
