"""A small model of word meanings from a folder that the user names: from texts to vectors.

Static embeddings as model2vec and sentence-transformers save them: a vector for each token in
``model.safetensors``, a tokenizer in ``tokenizer.json``; a text is the mean of its tokens. Nothing
is ever fetched. Those two files are read as data and no other is opened: pickles and scripts in
the folder mean nothing here, links are not followed, and every number in a header is checked
before it is used. The rows of the tokens that occur are read one by one, so that a large model
takes no memory. Needs the extra ``embed``: numpy, and tokenizers, which cut texts into tokens.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import json
import os
import stat
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from ipymemory.errors import IpymemoryError

__all__ = ["Embedding", "EmbeddingError", "library", "loaded", "trouble"]

MODEL, TOKENIZER = "model.safetensors", "tokenizer.json"
_NEEDED = ("numpy", "tokenizers")

_MOST_HEADER = 1_000_000
_MOST_BYTES = 4 * 1024**3
_MOST_TOKENIZER = 64 * 1024**2
"""The largest static models there are have half a million tokens: 0.5 GB, and 40 MB of those."""
_MOST_ROWS, _MOST_DIMENSIONS = 2_000_000, 4096
_NAMES = ("embeddings", "embedding.weight")
"""What the tensor is called by model2vec, and by sentence-transformers."""

_FLOATS = {"F64": "<f8", "F32": "<f4", "F16": "<f2"}
_WHOLE = {"I64": "<i8", "I32": "<i4"}

MOST_TOKENS, MOST_CHARS = 512, 4000
"""Of one text, what is embedded; the first is also model2vec's."""


class EmbeddingError(IpymemoryError):
    """The model of meanings cannot be used; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class _Tensor:
    """Where a tensor lies in its file, from `start` on, and what it is made of."""

    start: int
    kind: str
    shape: tuple[int, ...]

    @property
    def width(self) -> int:
        """Bytes of one row."""
        count = 1
        for each in self.shape[1:]:
            count *= each
        return count * int(self.kind[2:])


class Embedding:
    """A model that is loaded; `fingerprint` is another when one of its files is."""

    def __init__(self, folder: Path) -> None:
        """Load what lies in `folder`; raises `EmbeddingError`."""
        self.fingerprint = fingerprint(folder)
        self._numpy = numpy = library("numpy")
        self._path = folder / MODEL
        with _opened(self._path, _MOST_BYTES) as file:
            tensors = _tensors(file, self._path)
            self._table = _table(tensors, self._path)
            whole = {
                name: numpy.frombuffer(
                    _exactly(file, each.start, each.shape[0] * each.width, self._path), each.kind
                )
                for name in ("weights", "mapping")
                if (each := tensors.get(name)) is not None and len(each.shape) == 1
            }
        self._weights, self._mapping = whole.get("weights"), whole.get("mapping")
        self._tokenizer, self._unknown = _tokenizer(folder / TOKENIZER)
        tokens = self._tokenizer.get_vocab_size(with_added_tokens=True)
        rows, self.dimensions = self._table.shape
        there = rows if self._mapping is None else len(self._mapping)
        lowest = highest = 0
        if self._mapping is not None and len(self._mapping):
            lowest, highest = int(self._mapping.min()), int(self._mapping.max())
        weighed = there if self._weights is None else len(self._weights)
        if min(there, weighed) < tokens or lowest < 0 or highest >= rows:
            raise _wrong(folder / MODEL, f"its tokenizer has {tokens} tokens and it fewer vectors")

    def vectors(self, texts: Sequence[str]) -> Any:
        """Return an array of float32 with a row of length 1 for each text.

        A text of which the model knows no token has zeros. Raises `EmbeddingError`.
        """
        numpy = self._numpy
        tokens = [self._tokens(each) for each in texts]
        out = numpy.zeros((len(texts), self.dimensions), "f4")
        flat = numpy.array([each for ids in tokens for each in ids], "i8")
        if not len(flat):
            return out
        which, at = numpy.unique(flat, return_inverse=True)
        with numpy.errstate(all="ignore"):
            rows = self._rows(which if self._mapping is None else self._mapping[which])
            if self._weights is not None:
                rows = rows * self._weights[which, None].astype("f4")
            known = [place for place, ids in enumerate(tokens) if ids]
            begins = numpy.cumsum([0, *(len(tokens[place]) for place in known[:-1])])
            sums = numpy.add.reduceat(rows[at], begins, axis=0)
            lengths = numpy.sqrt((sums * sums).sum(axis=1, keepdims=True))
            usable = numpy.isfinite(lengths) & (lengths > 0)
            out[known] = numpy.where(usable, sums / lengths, 0)
        return out

    def _tokens(self, text: str) -> list[int]:
        text = text[:MOST_CHARS].encode("utf-8", "replace").decode()
        # One by one: a batch is done in threads, and a process that forks later is warned of them.
        ids = self._tokenizer.encode(text, add_special_tokens=False).ids[:MOST_TOKENS]
        return [each for each in ids if each != self._unknown]

    def _rows(self, which: Any) -> Any:
        """Return the vectors of the rows `which`, as they stand in the file now."""
        table, parts = self._table, []
        with _opened(self._path, _MOST_BYTES) as file:
            for each in which.tolist():
                parts.append(
                    _exactly(file, table.start + each * table.width, table.width, self._path)
                )
        read = self._numpy.frombuffer(b"".join(parts), table.kind)
        return read.reshape(len(parts), table.shape[1]).astype("f4")


_kept: dict[str, Embedding] = {}
"""The model that this process uses, by the name of its folder: loading takes tenths of a second."""


def loaded(place: str) -> Embedding:
    """Return the model in the folder `place`, loaded once; raises `EmbeddingError`."""
    kept = _kept.get(place)
    folder = _folder(place)
    if kept is None or kept.fingerprint != fingerprint(folder):
        _kept.clear()
        kept = _kept[place] = Embedding(folder)
    return kept


def trouble(place: str, *, load: bool) -> str:
    """Return why the model in the folder `place` cannot be used; empty when it can.

    Without `load` as far as is seen from outside: nothing is imported, and of the model's file
    only the head is read.
    """
    try:
        if load:
            loaded(place)
            return ""
        folder = _folder(place)
        for name in _NEEDED:
            if importlib.util.find_spec(name) is None:
                raise _missing(name)
        fingerprint(folder)
        with _opened(folder / MODEL, _MOST_BYTES) as file:
            _table(_tensors(file, folder / MODEL), folder / MODEL)
    except EmbeddingError as error:
        return str(error)
    return ""


def fingerprint(folder: Path) -> str:
    """Return what tells the model in `folder` from another; raises `EmbeddingError`.

    As memories are: by inode, size and time of its files.
    """
    found = []
    for name in (MODEL, TOKENIZER):
        state = _state(folder / name)
        found.append(f"{state.st_ino}:{state.st_size}:{state.st_mtime_ns}")
    return " ".join(found)


def _folder(place: str) -> Path:
    folder = Path(place)
    with contextlib.suppress(RuntimeError):  # no home folder
        folder = folder.expanduser()
    if not folder.is_absolute():
        raise EmbeddingError(
            f"Memory.embeddings names {place!r}, which is another folder from every place. Write "
            "the whole path."
        )
    return folder


def _state(path: Path) -> os.stat_result:
    try:
        state = path.lstat()
    except (OSError, ValueError) as error:
        raise EmbeddingError(
            f"There is no {path.name} in {path.parent}, where Memory.embeddings says a model is. "
            "Put a model of the kind of model2vec there."
        ) from error
    if not stat.S_ISREG(state.st_mode):
        raise EmbeddingError(
            f"{path} is no plain file, and links are not followed. Put a copy of the file there."
        )
    return state


def _opened(path: Path, most: int) -> BinaryIO:
    """Open a plain file of at most `most` bytes; raises `EmbeddingError`."""
    before = _state(path)
    # Without O_NONBLOCK a pipe that took the file's place this moment would be waited for.
    flags = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
    try:
        file = os.fdopen(os.open(path, flags | getattr(os, "O_NONBLOCK", 0)), "rb", buffering=0)
    except OSError as error:
        raise EmbeddingError(f"{path} cannot be read: {error.strerror or error}.") from error
    now = os.fstat(file.fileno())
    if (before.st_ino, before.st_dev) != (now.st_ino, now.st_dev) or now.st_size > most:
        file.close()
        raise _wrong(path, "it is larger than any such model, or was exchanged this moment")
    return file


def _exactly(file: BinaryIO, start: int, size: int, path: Path) -> bytes:
    """Return `size` bytes from `start` on; raises `EmbeddingError` where there are fewer."""
    try:
        file.seek(start)
        parts, left = [], size
        while left and (data := file.read(left)):
            parts.append(data)
            left -= len(data)
    except OSError as error:
        raise EmbeddingError(f"{path} cannot be read: {error.strerror or error}.") from error
    if left:
        raise _wrong(path, "it is shorter than its own header says")
    return b"".join(parts)


def _tensors(file: BinaryIO, path: Path) -> dict[str, _Tensor]:
    """Return the tensors that we use, by name, each checked to lie within the file."""
    size = os.fstat(file.fileno()).st_size
    (length,) = struct.unpack("<Q", _exactly(file, 0, 8, path))
    if length > min(_MOST_HEADER, size):
        raise _wrong(path, "its header is longer than that of any such model")
    try:
        header = json.loads(_exactly(file, 8, length, path))
        wanted = {name: header[name] for name in (*_NAMES, "weights", "mapping") if name in header}
        return {name: _tensor(each, 8 + length, size) for name, each in wanted.items()}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise _wrong(path, "its header is not that of a safetensors file") from error


def _tensor(told: Any, base: int, size: int) -> _Tensor:
    start, end = (int(each) for each in told["data_offsets"])
    shape = tuple(int(each) for each in told["shape"])
    kind = {**_FLOATS, **_WHOLE, "I8": "<i1"}[told["dtype"]]
    tensor = _Tensor(base + start, kind, shape)
    if not shape or len(shape) > 2 or min(shape) < 1 or shape[0] > _MOST_ROWS:
        raise ValueError(shape)
    if start < 0 or end - start != shape[0] * tensor.width or base + end > size:
        raise ValueError(told)
    return tensor


def _table(tensors: dict[str, _Tensor], path: Path) -> _Tensor:
    """Return the tensor of all vectors, those beside it checked; raises `EmbeddingError`."""
    table = next((tensors[name] for name in _NAMES if name in tensors), None)
    if table is None or len(table.shape) != 2 or table.kind in _WHOLE.values():
        raise _wrong(path, "it holds no table with a vector for each token")
    if table.shape[1] > _MOST_DIMENSIONS:
        raise _wrong(path, f"its vectors have more than {_MOST_DIMENSIONS} numbers")
    for name, kinds in (("weights", _FLOATS), ("mapping", _WHOLE)):
        each = tensors.get(name)
        if each is not None and (len(each.shape) != 1 or each.kind not in kinds.values()):
            raise _wrong(path, f"its {name} are no list of numbers")
    return table


def _tokenizer(path: Path) -> tuple[Any, int | None]:
    """Return the tokenizer at `path`, and the number of its token for what it does not know."""
    with _opened(path, _MOST_TOKENIZER) as file:
        data = _exactly(file, 0, os.fstat(file.fileno()).st_size, path)
    try:
        told = json.loads(data)["model"]
        tokenizer = library("tokenizers").Tokenizer.from_buffer(data)
        tokenizer.no_padding()
        tokenizer.no_truncation()
        unknown = told.get("unk_token")
        number = tokenizer.token_to_id(unknown) if isinstance(unknown, str) else told.get("unk_id")
    except EmbeddingError:
        raise
    except (KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException as error:  # the library raises bare Exception, and a panic of its Rust
        raise _wrong(path, "the library tokenizers does not take it") from error
    return tokenizer, number if isinstance(number, int) else None


def library(name: str) -> Any:
    """Return a package of the extra ``embed``; raises `EmbeddingError` where it is not there."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise _missing(name) from error


def _missing(name: str) -> EmbeddingError:
    return EmbeddingError(
        f"The package {name} is not installed, which a model of meanings needs. "
        "Type pip install 'ipymemory[embed]'."
    )


def _wrong(path: Path, why: str) -> EmbeddingError:
    return EmbeddingError(
        f"{path} is no model of meanings that can be used: {why}. Put one of the kind of model2vec "
        "there."
    )
