"""What stands in ``session.json``, as a value; a part of `sessions`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from ipymemory.processes import ProcessIdentity

VERSION = 1


@dataclass(frozen=True, slots=True)
class SessionRecord:
    """What ``session.json`` holds. `unknown` are keys of a newer version, kept as they are."""

    id: str
    version: int = VERSION
    notebook: str = ""
    inode: tuple[int, int] | None = None
    connection: str = ""
    previous: str = ""
    generation: int = 1
    started: str = ""
    last_turn: str = ""
    kernel: ProcessIdentity | None = None
    worker: ProcessIdentity | None = None
    notes_through: str = ""
    extracted_through: str = ""
    pending: tuple[str, ...] = ()
    read: Mapping[str, str] = field(default_factory=dict)
    """Of a notebook file: the fingerprint of what it held when its notes or memories were made."""
    unknown: Mapping[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return the record as JSON values."""
        value = {each.name: getattr(self, each.name) for each in fields(self)}
        if not self.read:
            del value["read"]
        unknown = value.pop("unknown")
        for name in ("kernel", "worker"):
            value[name] = value[name].as_dict() if value[name] is not None else None
        return {**unknown, **value}

    @classmethod
    def from_dict(cls, value: Mapping[str, Any], id: str = "") -> SessionRecord:
        """Return the record that `as_dict` described; what is of the wrong type is its default."""
        version, generation = value.get("version"), value.get("generation")
        inode, pending, read = value.get("inode"), value.get("pending"), value.get("read")
        known = {each.name for each in fields(cls)}
        texts = ("notebook", "connection", "previous", "started", "last_turn", "notes_through",
                 "extracted_through")  # fmt: skip
        return cls(
            id=id or str(value.get("id") or ""),
            version=version if isinstance(version, int) else 0,
            inode=_inode(inode),
            generation=generation if isinstance(generation, int) else 1,
            kernel=ProcessIdentity.from_dict(value.get("kernel")),
            worker=ProcessIdentity.from_dict(value.get("worker")),
            pending=tuple(map(str, pending)) if isinstance(pending, list) else (),
            read={str(k): str(v) for k, v in read.items()} if isinstance(read, dict) else {},
            unknown={name: each for name, each in value.items() if name not in known},
            **{name: str(value[name]) for name in texts if isinstance(value.get(name), str)},
        )


def _inode(value: object) -> tuple[int, int] | None:
    if isinstance(value, list) and len(value) == 2 and all(isinstance(n, int) for n in value):
        return (value[0], value[1])
    return None
