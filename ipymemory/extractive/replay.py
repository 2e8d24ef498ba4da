"""Which cells to run again, in order, to get the variables of a kernel back that is gone.

From the last cell to the first: a cell is needed that binds or changes a name which is wanted at
that point; what it reads is wanted before it. A function wants what it reads wherever it is
called. Cells that failed, or whose end nobody saw, are not run again: what only they bound cannot
be had back, and is named.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from ipymemory.extractive.dataflow import BUILTINS, Flow, flow_of
from ipymemory.turns import Turn

_GIVEN = frozenset(["get_ipython", "display", "In", "Out", "exit", "quit", "__name__", "__file__"])
"""Names that every shell has."""


@dataclass(frozen=True, slots=True)
class Replay:
    """Cells to run `again`, in order, for `names`; what cannot be had back, and from which cell.

    `lost` are pairs of a name and the label of the cell that alone bound it, empty where no cell
    on record did.
    """

    again: tuple[Turn, ...] = ()
    names: tuple[str, ...] = ()
    lost: tuple[tuple[str, str], ...] = ()
    asks: frozenset[str] = frozenset()
    """Ids of cells that wait for somebody's answer."""
    waits: frozenset[str] = frozenset()
    """Ids of cells with ``await`` at their top."""


def replay(
    turns: Sequence[Turn], names: Collection[str] = (), there: Collection[str] = ()
) -> Replay:
    """Return what brings `names` back, or all that stood at the end; `there` are there already."""
    flows = _flows(turns)
    _spread(flows)
    standing = _standing(turns, flows)
    wanted_names = [name for name in (names or standing) if name not in there]
    if not wanted_names:
        return Replay()
    modules = {name for flow in flows for name in flow.modules}
    within = {name: reads for flow in flows for name, reads in flow.within.items()}
    wanted = _closed(set(wanted_names), within, there)
    first = set(wanted)
    again: list[int] = []
    for at in range(len(turns) - 1, -1, -1):
        flow = flows[at]
        if not _ran(turns[at]) or not flow.parsed:
            continue
        gives = (flow.binds | flow.changes) & wanted
        # What sets something for all is taken along where it needs nothing more than modules.
        sets = (flow.sets or flow.stars) and flow.reads <= modules | wanted | BUILTINS
        if not (gives or sets):
            continue
        again.append(at)
        wanted -= flow.afresh - flow.reads
        wanted |= _closed(flow.reads | (flow.changes & wanted), within, there)
    again.reverse()
    bound = {name for at in again for name in flows[at].binds | flows[at].changes}
    stars = any(flows[at].stars for at in again)
    lost = () if stars and not names else _lost(turns, flows, (wanted | first) - bound)
    return Replay(
        tuple(turns[at] for at in again) if any(_gives(flows[at]) for at in again) else (),
        tuple(name for name in wanted_names if name in bound),
        lost,
        frozenset(turns[at].id for at in again if flows[at].asks),
        frozenset(turns[at].id for at in again if flows[at].waits),
    )


def _gives(flow: Flow) -> bool:
    return bool(flow.binds or flow.changes or flow.stars)


def _flows(turns: Sequence[Turn]) -> list[Flow]:
    types: dict[str, str] = {}
    modules: set[str] = set()
    found = []
    for turn in turns:
        types.update({each.name: each.type for each in turn.names})
        flow = flow_of(turn.source, types, modules)
        # What the kernel saw counts beside what the text says: ``exec``, a magic that binds.
        flow.binds |= {each.name for each in turn.names}
        modules |= flow.modules
        found.append(flow)
    return found


def _spread(flows: Sequence[Flow]) -> None:
    """Let who changes a thing change all names that may hold it or be in it."""
    beside: dict[str, set[str]] = {}
    for flow in flows:
        for one, other in flow.shares:
            both = beside.get(one, {one}) | beside.get(other, {other})
            beside.update(dict.fromkeys(both, both))
    for flow in flows:
        flow.changes |= {name for each in tuple(flow.changes) for name in beside.get(each, ())}


def _ran(turn: Turn) -> bool:
    return turn.status == "ok" or (turn.status == "unknown" and turn.origin == "history")


def _standing(turns: Sequence[Turn], flows: Sequence[Flow]) -> list[str]:
    """Return the names that stood at the end, in the order in which they were bound last."""
    standing: dict[str, None] = {}
    for turn, flow in zip(turns, flows, strict=True):
        if turn.source.lstrip().startswith("%reset"):
            standing.clear()
        if not _ran(turn):
            continue
        for name in sorted(flow.binds, key=turn.source.find):
            if not name.startswith("_"):
                standing.pop(name, None)
                standing[name] = None
        for name in flow.deletes:
            standing.pop(name, None)
    return list(standing)


def _closed(names: set[str], within: dict[str, frozenset[str]], there: Collection[str]) -> set[str]:
    """Return `names` with what the functions among them read, and theirs."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name in found or name in there or name in BUILTINS or name in _GIVEN:
            continue
        found.add(name)
        waiting += within.get(name, ())
    return found


def _lost(
    turns: Sequence[Turn], flows: Sequence[Flow], names: Collection[str]
) -> tuple[tuple[str, str], ...]:
    by_name = {
        name: turn.label
        for turn, flow in zip(turns, flows, strict=True)
        if not _ran(turn)
        for name in flow.binds
    }
    return tuple((name, by_name.get(name, "")) for name in sorted(names))
