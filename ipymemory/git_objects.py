"""Git's objects, read from a repository's own files without starting git.

An object lies in a file of its own, or in a pack: whole, or as a delta to another
(gitformat-pack(5)). Only what is asked for is unpacked, and never more than `MOST_BYTES` of it,
whatever a header says. Nothing else of a repository is heard: not its configuration, which can
make git run programs, and no ``alternates``, ``replace`` or ``grafts``, which lead elsewhere.
"""

from __future__ import annotations

import re
import struct
import zlib
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from ipymemory.errors import PlaceError, ToolError
from ipymemory.held import Held, listed

MOST_BYTES = 4 * 1024 * 1024
"""Bytes of one object, as of a file that is read."""

_DEEPEST = 200
"""Deltas behind each other; git itself makes no more than 50 unless it is told to."""

_PIECE = 16 * 1024
_KINDS = {1: "commit", 2: "tree", 3: "blob", 4: "tag"}
_HASH = re.compile(r"[0-9a-f]{40}")
_PACKS = 500


class Objects:
    """The objects below `folder`, a repository's ``objects``; use as a context manager."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stack = ExitStack()
        self._packs: list[_Pack] | None = None
        self._known: dict[str, tuple[str, bytes]] = {}

    def __enter__(self) -> Objects:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    def get(self, name: str, kind: str) -> bytes:
        """Return the object `name`, 40 hex digits, of the kind ``commit``, ``tree``, ...

        Raises `ToolError` where there is none, it is of another kind, damaged or too large.
        """
        found, data = self.any(name)
        if found != kind:
            raise ToolError(f"{name[:10]} is a {found} and no {kind}.")
        return data

    def any(self, name: str, depth: int = 0) -> tuple[str, bytes]:
        """Return the kind and the content of the object `name`; raises `ToolError`."""
        if not _HASH.fullmatch(name):
            raise ToolError(f"{name[:60]!r} names no object of git's.")
        if name in self._known:
            return self._known[name]
        try:
            found = self._loose(name) or self._packed(name, depth)
        except (zlib.error, struct.error, ValueError, IndexError, OSError) as error:
            raise ToolError(f"The object {name[:10]} is damaged.") from error
        if found is None:
            raise ToolError(f"The repository has no object {name[:10]}.")
        if found[0] != "blob":  # commits and trees are small and come again
            self._known[name] = found
        return found

    def beginning(self, digits: str) -> list[str]:
        """Return the names that begin with `digits`, at least four of them."""
        try:
            entries = listed(self._folder / digits[:2])
        except PlaceError:
            entries = []
        loose = [digits[:2] + each.name for each in entries]
        packed = [name for pack in self._opened() for name in pack.beginning(digits)]
        found = {*loose, *packed}
        return sorted(each for each in found if each.startswith(digits) and _HASH.fullmatch(each))

    def _loose(self, name: str) -> tuple[str, bytes] | None:
        try:
            with Held(self._folder / name[:2] / name[2:]) as held:
                packed = held.read(MOST_BYTES + 1024)
        except PlaceError:
            return None
        if packed is None:
            return None
        stream = zlib.decompressobj()
        data = stream.decompress(packed, MOST_BYTES + 64)
        head, _, content = data.partition(b"\0")
        kind, _, size = head.decode("ascii").partition(" ")
        if kind not in _KINDS.values() or int(size) > MOST_BYTES or len(content) > MOST_BYTES:
            raise ToolError(_too_large(name))
        if len(content) != int(size):
            raise ValueError(size)
        return kind, content

    def _packed(self, name: str, depth: int) -> tuple[str, bytes] | None:
        if depth > _DEEPEST:
            raise ToolError(f"{name[:10]} stands behind too many deltas.")
        for pack in self._opened():
            at = pack.find(bytes.fromhex(name))
            if at is not None:
                return self._unpacked(pack, at, depth)
        return None

    def _unpacked(self, pack: _Pack, at: int, depth: int) -> tuple[str, bytes]:
        """Return the object at the place `at` of `pack`, its deltas applied."""
        deltas: list[bytes] = []
        while True:
            if depth + len(deltas) > _DEEPEST:
                raise ToolError("An object stands behind too many deltas.")
            number, base, data = pack.entry(at)
            if number in _KINDS:
                kind = _KINDS[number]
                break
            deltas.append(data)
            if isinstance(base, int):
                at = base
                continue
            kind, data = self.any(base.hex(), depth + len(deltas))
            break
        for delta in reversed(deltas):
            data = applied(data, delta)
        return kind, data

    def _opened(self) -> list[_Pack]:
        if self._packs is None:
            self._packs = []
            folder = self._folder / "pack"
            try:
                names = [each.name for each in listed(folder) if each.name.endswith(".idx")]
            except PlaceError:
                names = []
            for each in names[:_PACKS]:
                index = self._file(folder / each)
                pack = self._file(folder / f"{each[:-4]}.pack")
                if index is not None and pack is not None:
                    self._packs.append(_Pack(index, pack))
        return self._packs

    def _file(self, path: Path) -> BinaryIO | None:
        try:
            with Held(path) as held:
                file = held.opened()
        except PlaceError:
            return None
        return None if file is None else self._stack.enter_context(file)


class _Pack:
    """One pack and its index, version 2; read piece by piece, since either may be large."""

    def __init__(self, index: BinaryIO, pack: BinaryIO) -> None:
        self._index = index
        self._pack = pack
        head = index.read(8 + 256 * 4)
        known = head[:8] == b"\xfftOc\0\0\0\x02" and len(head) == 8 + 256 * 4
        self._fan = struct.unpack(">256I", head[8:]) if known else (0,) * 256
        self._count = self._fan[255]

    def find(self, name: bytes) -> int | None:
        """Return where in the pack the object `name` stands."""
        at = self._first(name)
        if at >= self._fan[name[0]] or self._name(at) != name:
            return None
        after = 8 + 256 * 4 + 24 * self._count
        (offset,) = struct.unpack(">I", self._read(self._index, after + 4 * at, 4))
        if offset & 0x80000000:
            after += 4 * self._count + 8 * (offset & 0x7FFFFFFF)
            (offset,) = struct.unpack(">Q", self._read(self._index, after, 8))
        return int(offset)

    def beginning(self, digits: str) -> list[str]:
        """Return the names, at most ten, that begin with `digits`."""
        name = bytes.fromhex(digits.ljust(40, "0"))
        found: list[str] = []
        for at in range(self._first(name), self._fan[name[0]]):
            known = self._name(at).hex()
            if not known.startswith(digits) or len(found) >= 10:
                break
            found.append(known)
        return found

    def entry(self, at: int) -> tuple[int, int | bytes, bytes]:
        """Return the kind by its number, the base of a delta, and what stands there unpacked."""
        head = self._read(self._pack, at, 64, short=True)
        byte, used = head[0], 1
        number, size, shift = (byte >> 4) & 7, byte & 15, 4
        while byte & 0x80:
            byte = head[used]
            size |= (byte & 0x7F) << shift
            used, shift = used + 1, shift + 7
        base: int | bytes = 0
        if number == 6:
            byte = head[used]
            used, back = used + 1, byte & 0x7F
            while byte & 0x80:
                byte = head[used]
                used, back = used + 1, ((back + 1) << 7) | (byte & 0x7F)
            base = at - back
            if not 0 < base < at:
                raise ValueError(base)
        elif number == 7:
            base, used = head[used : used + 20], used + 20
        elif number not in _KINDS:
            raise ValueError(number)
        if size > MOST_BYTES:
            raise ToolError(_too_large("An object"))
        return number, base, self._inflated(at + used, size)

    def _inflated(self, at: int, size: int) -> bytes:
        stream, data = zlib.decompressobj(), b""
        self._pack.seek(at)
        while len(data) <= size and not stream.eof:
            piece = stream.unconsumed_tail or self._pack.read(_PIECE)
            if not piece:
                break
            data += stream.decompress(piece, size + 1 - len(data))
        if len(data) != size:
            raise ValueError(size)
        return data

    def _first(self, name: bytes) -> int:
        """Return the place in the index of the first name that is not less than `name`."""
        low = self._fan[name[0] - 1] if name[0] else 0
        high = self._fan[name[0]]
        while low < high:
            middle = (low + high) // 2
            if self._name(middle) < name:
                low = middle + 1
            else:
                high = middle
        return low

    def _name(self, at: int) -> bytes:
        return self._read(self._index, 8 + 256 * 4 + 20 * at, 20)

    @staticmethod
    def _read(file: BinaryIO, at: int, size: int, *, short: bool = False) -> bytes:
        file.seek(at)
        data = file.read(size)
        if not data or (len(data) < size and not short):
            raise ValueError(at)
        return data


def applied(base: bytes, delta: bytes) -> bytes:
    """Return `base` changed as `delta` says; raises `ValueError`, `IndexError`, `ToolError`."""
    at, numbers = 0, []
    for _ in range(2):
        number = shift = 0
        while True:
            byte = delta[at]
            at += 1
            number |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                break
        numbers.append(number)
    if numbers[1] > MOST_BYTES:
        raise ToolError(_too_large("An object"))
    if numbers[0] != len(base):
        raise ValueError(numbers[0])
    made = bytearray()
    while at < len(delta):
        byte = delta[at]
        at += 1
        if byte & 0x80:
            values = []
            for bits in (range(4), range(4, 7)):
                value = 0
                for shift, bit in enumerate(bits):
                    if byte & (1 << bit):
                        value |= delta[at] << (8 * shift)
                        at += 1
                values.append(value)
            begin, size = values[0], values[1] or 0x10000
            piece = base[begin : begin + size]
        else:
            size = byte
            piece = delta[at : at + size]
            at += size
        if not size or len(piece) != size or len(made) + size > numbers[1]:
            raise ValueError(at)
        made += piece
    if len(made) != numbers[1]:
        raise ValueError(len(made))
    return bytes(made)


def _too_large(what: str) -> str:
    return f"{what[:10]} is larger than {MOST_BYTES // 2**20} MB; it was not read."
