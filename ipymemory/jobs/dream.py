"""Dream: memories tidy themselves, in the open (behaviour D).

The built-in engine merges what says the same, spells out relative dates, marks what names files
that are gone, lets links follow, and puts contradictions to the user as questions; it deletes
nothing that is not said elsewhere. All of it is one run of the undo history: one undo takes a
dream back. It is planned on what was read at its start; what somebody changed meanwhile is left
out, and the files are put in place as one (`dream_journal`).

Events, all of job ``dream`` and with the dream's id as their run but for the last two kinds:

- ``dream``: how it stands, in counts (`_Dream.tell`): ``status``, ``phase`` (starting, updating),
  ``step``, ``started``, ``sessions`` (since the last dream), ``files``, ``engine``; with a model
  also ``reviewed`` (of those sessions), ``turns``, ``calls``, ``tokens`` and ``usd``. May be
  kept, also in a notebook that is saved (behaviour L12).
- ``dream_turn``: ``turn``, ``calls``, ``text``: what a model said in one of its turns, masked.
- ``dream_file``: ``file``, ``diff``, ``gone``: what was done to one file, as it is put in place.
  Both hold words of memories: to be shown while they come, and kept nowhere.
- ``finished`` and ``failed``: the outcome, in counts; the run is that of the undo history.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ipymemory import (
    dream_copy,
    dream_journal,
    dream_questions,
    dream_recovery,
    dream_state,
    dream_waiting,
    lines,
    processes,
    recent_sessions,
)
from ipymemory.dream_copy import Consolidated, Given
from ipymemory.dream_journal import Group, Placed
from ipymemory.dream_lock import Busy, HeldLock
from ipymemory.dream_outcome import Context as Context
from ipymemory.dream_outcome import Dreamt as Dreamt
from ipymemory.dream_outcome import reason
from ipymemory.dream_recovery import left_behind as left_behind
from ipymemory.dream_recovery import lock as lock
from ipymemory.dream_recovery import recover as recover
from ipymemory.dream_waiting import Plan
from ipymemory.errors import FormatError, IpymemoryError
from ipymemory.events import Event
from ipymemory.files import make_folder, read_json, write_json
from ipymemory.held import resolved
from ipymemory.history import History, Run
from ipymemory.memory_files import PERSONS, opened
from ipymemory.tidying import tidied
from ipymemory.turns import new_id, utc_now

log = logging.getLogger(__name__)

JOB = "dream"
ENGINE = "extractive"
MODELS = "anthropic"

_MODELS_SHARE = 0.9
"""Of a dream's time what a model may take, so that the rest is put in place in any case."""

_LOOK_SECONDS = 0.02
"""How often at most it is looked whether the dream is to end."""

LOST = (
    "Another machine, or another program, took the lock meanwhile, so nothing was changed. Try "
    "again when its dream has ended."
)

MOST_SESSIONS = 100
"""Sessions that are counted as under review: as many as a model may search."""


def plan(context: Context) -> Dreamt:
    """Return what a dream would do now, with its diff, and change nothing. Raises nothing."""
    try:
        folder = opened(context.project, context.settings)
        found = tidied(folder, context.project.root, PERSONS)
        plans = dream_recovery.place(context.project, folder) / "plans"
        seconds = context.settings.dream.minutes * _MODELS_SHARE * 60
        given = Given(folder, found, plans, new_id(), seconds, context.cancelled)
        by = _by_model(context, given)
        diff = "".join(dream_waiting.diff(change) for group in by.groups for change in group)
        counts = _sum(found.counts, by)
        return Dreamt("planned", "", by.error, counts, note=context.note, diff=diff)
    except IpymemoryError as error:
        return Dreamt("failed", error=str(error))


def dream(context: Context, plan: str = "") -> Dreamt:
    """Tidy the memories; return how it ended. Waits for no lock of another dream; never raises.

    Where every write waits for a yes, what it would do waits for one (`dream_waiting`), unless
    the caller was told yes. With the id of a `plan` that waits it does exactly that. May be called
    at any time: the gates are the caller's.
    """
    started = time.monotonic()
    try:
        outcome = _Dream(context, plan).dream()
    except Exception as error:  # a dream that fails must not end the worker
        known = isinstance(error, IpymemoryError)
        if not known:
            log.exception("the memories of %s could not be tidied", context.project.key)
        outcome = Dreamt("failed", error=str(error) if known else repr(error)[:500])
    outcome = replace(outcome, seconds=time.monotonic() - started)
    _record(context, outcome)
    return outcome


class _Dream:
    """One dream, from the lock to the summary."""

    def __init__(self, context: Context, plan: str = "") -> None:
        self.context = context
        self.project = context.project
        self.id = plan or new_id()
        self.plan = bool(plan)
        self.folder = opened(context.project, context.settings)
        self.place = dream_recovery.place(context.project, self.folder)
        self.end = time.monotonic() + context.settings.dream.minutes * 60
        self.told: dict[str, Any] = {}
        self.files = 0
        self.sessions: list[str] = []
        self.last_told = 0.0
        self.looked = 0.0
        self.killed = False
        self.engine = ENGINE if context.model is None else MODELS

    def dream(self) -> Dreamt:
        folder = self.folder
        if folder.closed:
            return Dreamt("refused", error=folder.closed)
        if not folder.folder.is_dir():
            return Dreamt("refused", error="There are no memories yet.")
        make_folder(self.place)
        if self.plan and not dream_waiting.there(self.place):
            return Dreamt("refused", error="No plan waits any more, so nothing was changed.")
        held = lock(self.project, folder).take()
        if isinstance(held, Busy):
            return Dreamt("locked" if held.running else "refused", error=held.reason)
        return self.held(held)

    def held(self, held: HeldLock) -> Dreamt:
        """Dream while the lock is held; its time stands only where the dream came to its end."""
        outcome = Dreamt("failed")
        try:
            (self.place / dream_state.KILL).unlink(missing_ok=True)
            own = self.context.session.id if self.context.session else ""
            self.sessions = recent_sessions.since(
                self.project, held.last or 0.0, own, MOST_SESSIONS
            )
            self.tell("orient")
            dream_recovery.finish(self.project, self.context.settings, self.folder)
            dream_copy.sweep(self.place)
            outcome = self.carry_out(held) if self.plan else self.work(held)
        finally:
            if outcome.status == "done":
                held.done()
                # It was made of memories that are others now.
                dream_waiting.drop(self.place)
            else:
                held.roll_back()
            self.tell(self.told.get("phase", ""), outcome)
        return outcome

    def work(self, held: HeldLock) -> Dreamt:
        """Plan, ask, and put in place."""
        self.tell("gather")
        found = tidied(self.folder, self.project.root, PERSONS, self.over)
        if self.over():
            return Dreamt("killed", counts=found.counts)
        self.tell("consolidate", memories=found.counts["memories"])
        seconds = (self.end - time.monotonic()) * _MODELS_SHARE
        given = Given(
            *(self.folder, found, self.place, self.id, seconds, self.over, self.count, self.say),
            frozenset(self.sessions),
        )
        by = _by_model(self.context, given)
        if self.over():
            return Dreamt("killed", counts={"memories": found.counts["memories"]})
        counts = _sum(found.counts, by)
        if not held.mine:
            return Dreamt("locked", error=LOST)
        if by.groups and self.folder.proposes and not self.context.confirmed:
            plan = Plan(self.id, utc_now(), self.engine, counts, by.groups, by.asked)
            dream_waiting.put(self.place, plan)
            note = f"Without the model's part: {by.error}" if by.error else self.context.note
            return Dreamt("waiting", counts=counts, note=note)
        run, placed = self.put(by.groups, counts, confirmed=self.context.confirmed)
        if placed.cancelled:
            return Dreamt("killed", counts={"memories": found.counts["memories"]})
        questions = dream_questions.Questions(self.project, run.entry.session)
        counts["asked"] = questions.contradictions(found.doubts)
        left: tuple[str, ...] = ()
        if self.context.asks:
            counts["asked"] += questions.removals(self.folder, by.asked)
        elif by.asked:
            left = tuple(f"{name}: {why}" for name, why in by.asked)
            counts["not_removed"] = len(left)
        if placed.left_out:
            counts["left_out"] = counts.get("left_out", 0) + len(placed.left_out)
        id = run.id if run.writes else ""
        status = "failed" if by.error else "done"
        return Dreamt(status, id, by.error, counts, note=self.context.note, left=left)

    def carry_out(self, held: HeldLock) -> Dreamt:
        """Do what waited for a yes, exactly as it was shown."""
        if not held.mine:
            return Dreamt("locked", error=LOST)
        plan = dream_waiting.take(self.place, self.id)
        top = resolved(self.folder.folder)
        for each in (change.path for group in plan.groups for change in group):
            if not resolved(each).is_relative_to(top):
                raise FormatError(f"{each} is no memory, so nothing was changed.")
        self.engine, counts = plan.engine, dict(plan.counts)
        self.tell("consolidate", memories=counts.get("memories", 0))
        run, placed = self.put(plan.groups, counts, confirmed=True)
        if placed.cancelled:
            return Dreamt("killed", counts={"memories": counts.get("memories", 0)})
        doubts = tidied(self.folder, self.project.root, PERSONS).doubts
        questions = dream_questions.Questions(self.project, run.entry.session)
        counts["asked"] = questions.contradictions(doubts)
        counts["asked"] += questions.removals(self.folder, plan.asked)
        if placed.left_out:
            counts["left_out"] = counts.get("left_out", 0) + len(placed.left_out)
        return Dreamt("done", run.id if run.writes else "", counts=counts)

    def put(
        self, groups: tuple[Group, ...], counts: dict[str, int], *, confirmed: bool
    ) -> tuple[Run, Placed]:
        """Put `groups` in place as one run; nothing is where that was cancelled."""
        history = History(self.project.history, self.context.settings.memory.history_keep)
        session = self.context.session.id if self.context.session else ""
        run, placed = history.begin(JOB, self.engine, reason(counts), (), session), Placed()
        if groups:
            with self.folder.held_still(confirmed=confirmed, run=run):
                self.tell("prune", phase="updating")
                placed = dream_journal.place(
                    self.place, run, groups, self.over, self.one_placed, self.project.key
                )
            run.close()
        else:
            # A save or a dream that was killed in its last step may have left the index behind.
            self.folder.mend()
        if not placed.cancelled:
            self.recall_follows()
        return run, placed

    def over(self) -> bool:
        """Return whether the dream is to end: killed, out of time, or the worker's end."""
        now = time.monotonic()
        if self.killed or self.context.cancelled() or now > self.end:
            return True
        # A search asks for every file it comes by.
        if now - self.looked < _LOOK_SECONDS:
            return False
        self.looked = now
        try:
            told = read_json(self.place / dream_state.KILL)
        except IpymemoryError:
            told = {"id": self.id}
        self.killed = told is not None and told.get("id") == self.id
        return self.killed

    def count(self, counts: dict[str, Any]) -> None:
        """Take counts of how far the model is."""
        self.tell("consolidate", **counts)

    def say(self, kind: str, details: dict[str, Any]) -> None:
        """Tell of something that is shown and kept nowhere."""
        self.context.bus.emit(Event(kind, JOB, self.id, details))

    def one_placed(self, group: Group) -> None:
        changed = [each for each in group if each.before != each.after]
        for each in changed[: max(0, dream_waiting.MOST_TOLD - self.files)]:
            self.context.bus.emit(Event("dream_file", JOB, self.id, dream_waiting.told(each)))
        self.files += len(changed)
        # Not for each: a state is written to the disk, and two a second can be read.
        if time.monotonic() - self.last_told > 0.5:
            self.tell("prune", phase="updating")

    def tell(self, step: str, outcome: Dreamt | None = None, **more: Any) -> None:
        """Say how it stands, in counts alone, on the disk and as an event. Never raises."""
        self.last_told = time.monotonic()
        self.told |= {
            "id": self.id,
            "status": "running",
            "phase": self.told.get("phase", "starting"),
            "step": step or self.told.get("step", ""),
            "started": self.told.get("started") or utc_now(),
            "owner": processes.own().as_dict(),
            "sessions": len(self.sessions),
            "engine": self.engine,
            "files": self.files,
            **more,
        }
        if outcome is not None:
            self.told |= {**outcome.as_dict(), "step": "ended", "ended": utc_now()}
        with contextlib.suppress(IpymemoryError):
            write_json(self.place / dream_state.STATE, self.told)
        if outcome is None:
            shown = {key: value for key, value in self.told.items() if key != "owner"}
            self.context.bus.emit(Event("dream", JOB, self.id, shown))

    def recall_follows(self) -> None:
        # Late, since recall stands on the memories; it catches up by itself at the next question.
        from ipymemory.recall import Recall

        with contextlib.suppress(IpymemoryError):
            Recall(self.project, self.folder).sync()


def _by_model(context: Context, given: Given) -> Consolidated:
    """Return all there is to do, with the model's part where one may work."""
    if context.model is None or given.found.counts["memories"] < 2:
        return Consolidated(given.found.groups)
    make_folder(given.place)
    return context.model(given)


def _sum(counts: Mapping[str, int], by: Consolidated) -> dict[str, int]:
    """Return what both did, by kind."""
    both = {key: counts.get(key, 0) + by.counts.get(key, 0) for key in (*counts, *by.counts)}
    return both | {"asked": counts["asked"] + len(by.asked)} if "asked" in counts else both


def _record(context: Context, outcome: Dreamt) -> None:
    """Tell of the outcome, and note it in the worker's log."""
    engine = ENGINE if context.model is None else MODELS
    kind = "finished" if outcome.status in ("done", "waiting") else "failed"
    context.bus.emit(Event(kind, JOB, outcome.run, outcome.as_dict()))
    if context.session is None or outcome.status in ("locked", "refused"):
        return
    line = {"type": "run", "time": utc_now(), "job": JOB, "engine": engine, **outcome.as_dict()}
    try:
        lines.append(context.session.worker_log, {**line, "id": outcome.run or new_id()})
    except IpymemoryError as error:
        log.warning("the outcome of a dream could not be noted: %s", error)
