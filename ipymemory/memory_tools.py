"""Remember, Replace and Forget: what the assistant may do to memories, when the person asks for it.

A model reads cells, outputs and files, and any of them may tell it to remember something. So three
things are looked at in code. The question itself must ask for a memory to be kept or to go. Kept at
once is only what the person said: whole sentences of theirs, word for word, from a question of this
session. Whatever else is wanted waits as a proposal: a model's own words, a memory to be forgotten
that the question does not name (behaviour E13). What the assistant said is nobody's words.

Every write goes through the door of the memory folder, with history, modes and the folder's lock.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from ipymemory import lines
from ipymemory.errors import IpymemoryError, MemoryRefused, ToolError
from ipymemory.history import SHORT, Run
from ipymemory.memory_files import KINDS, Draft, Memory, MemoryFolder, Proposal, Source, proposals
from ipymemory.memory_files.subjects import subject_of
from ipymemory.memory_files.values import one_line
from ipymemory.models import ToolSpec
from ipymemory.permissions import Allow, Deny, Policy
from ipymemory.places import SessionFolder
from ipymemory.recall.words import asked, terms
from ipymemory.said import Said, asks_to_forget, asks_to_keep
from ipymemory.tools import Tool
from ipymemory.turns import ToolCall, utc_now

NAMES = ("Remember", "Replace", "Forget")

MOST_PROPOSALS = 5
"""Proposals of one question: what waits must stay short enough to be read."""

_TITLE = 60
_LONGEST = 4000
_ALLOWED = (
    "A memory is kept, replaced or forgotten only when the person asks for it in their question, "
    "and they did not."
)
_NOT_NAMED = "their question does not name what would go"
_BY_HAND = "They can do it themselves with `%memory remember TEXT` or `%memory forget NAME`."


@dataclass(slots=True)
class Remembering:
    """The tools of one question. `tell` gets a few words for the person after each write."""

    opened: Callable[[], MemoryFolder]
    said: Said
    folder: SessionFolder
    ask: str
    """The question's id."""
    notebook: str
    tell: Callable[[str], None]
    names: set[str] = field(default_factory=set)
    """Memories that were written: the conversation knows them."""
    proposed: int = 0

    def tools(self) -> dict[str, Tool]:
        """Return the tools by name; the same in every mode, as every request names them."""
        done = (self.remember, self.replace, self.forget)
        return {spec.name: MemoryTool(spec, do) for spec, do in zip(SPECS, done, strict=True)}

    def policy(self, others: Policy) -> Policy:
        """Return the policy that allows these tools to look at a call, and asks `others` else."""
        return JudgeThemselves(others, NAMES)

    def remember(self, given: Mapping[str, str], run: Run) -> str:
        """Keep a fact; returns a sentence for the model. Raises `IpymemoryError`."""
        if not asks_to_keep(self.said.question):
            raise ToolError(f"{_ALLOWED} {_BY_HAND}")
        return self._keep(given["fact"], given["kind"], None, run)

    def replace(self, given: Mapping[str, str], run: Run) -> str:
        """Put a fact in a memory's place; returns a sentence. Raises `IpymemoryError`."""
        if not asks_to_keep(self.said.question, change=True):
            raise ToolError(f"{_ALLOWED} {_BY_HAND}")
        old = self.opened().find(given["name"])
        return self._keep(given["fact"], old.kind, old, run)

    def forget(self, given: Mapping[str, str], run: Run) -> str:
        """Remove a memory; returns a sentence. Raises `IpymemoryError`."""
        if not asks_to_forget(self.said.question):
            raise ToolError(f"{_ALLOWED} {_BY_HAND}")
        memory = self.opened()
        old = memory.find(given["name"])
        if not self._names(old):
            return self._waits(self._drop_proposed(memory, old, run), _NOT_NAMED)
        done = memory.drop(old.name, run)
        if isinstance(done, Proposal):
            return self._waits(done, _why(memory))
        self._wrote("forgotten", done)
        self.tell(f"forgotten; %memory undo {run.id[:SHORT]} brings it back")
        return f"{done.name} is forgotten and will not be learned again. The person can undo it."

    def _keep(self, fact: str, kind: str, old: Memory | None, run: Run) -> str:
        memory = self.opened()
        spoken = self.said.spoken(fact)
        own = bool(spoken) and (old is None or self._names(old))
        if kind not in KINDS:
            raise ToolError(f"kind is one of {', '.join(KINDS)}.")
        if not spoken and kind in ("user", "feedback"):
            raise ToolError(
                f"A memory of kind {kind} holds the person's own words, and these are not whole "
                "sentences of a question of theirs. Give them as they stand there."
            )
        source = Source(
            self.folder.id, self.notebook, (self.ask,), fact, "ask" if spoken else "model"
        )
        title = one_line(fact, _TITLE).rstrip("….!")
        draft = Draft(kind, title, "", fact, source, subject_of(fact) if spoken else "")
        before = {each.name: each for each in memory.scan()}
        name = old.name if old is not None else None
        if not own:
            self._room()
            done: Memory | Proposal = memory.propose(draft, run, replaces=name)
        else:
            done = memory.keep(draft, run, replaces=name, asked=True)
        if isinstance(done, Proposal):
            if not spoken:
                return self._waits(done, "these are not whole sentences of theirs")
            return self._waits(done, _why(memory) if own else _NOT_NAMED)
        was = before.get(done.name)
        if was is not None and was.description == done.description:
            self.tell(f"known already, as {done.name}")
            return f"That is kept already, as {done.name}."
        self._wrote("saved", done)
        self.tell(f"kept as {done.name}; %memory undo {run.id[:SHORT]} takes it back")
        instead = f" It took the place of: {one_line(was.description, 200)}" if was else ""
        return f"Kept as {done.name} ({done.kind}), in the person's words.{instead}"

    def _drop_proposed(self, memory: MemoryFolder, old: Memory, run: Run) -> Proposal:
        self._room()
        if memory.closed:
            raise MemoryRefused(memory.closed)
        entry, store = run.entry, memory.project.proposals
        return proposals.propose(store, entry.job, entry.session, None, old.name)

    def _names(self, memory: Memory) -> bool:
        """Return whether the question is about `memory`: shares words that tell something."""
        head = {*terms(memory.name), *terms(memory.title), *terms(memory.description)}
        return bool(head & set(asked(self.said.question)))

    def _room(self) -> None:
        if self.proposed >= MOST_PROPOSALS:
            raise ToolError(
                f"{MOST_PROPOSALS} proposals of this question wait already. Say the rest in words."
            )

    def _waits(self, proposal: Proposal, why: str) -> str:
        self.proposed += 1
        self.tell(f"waits for your yes: %memory proposals --accept {proposal.id}")
        return (
            f"It waits for the person's yes, since {why}: {one_line(proposal.line, 300)}. They "
            f"give it with `%memory proposals --accept {proposal.id}`."
        )

    def _wrote(self, what: str, memory: Memory) -> None:
        """Put it on the session's record, so that nobody learns the same from this question."""
        self.names.add(memory.name)
        line = {"type": "memory", "time": utc_now(), "ask": self.ask, "what": what}
        with suppress(IpymemoryError):  # the history has it too
            lines.append(self.folder.worker_log, {**line, "memory": memory.name})


def _why(memory: MemoryFolder) -> str:
    return "the folder is shared with another program" if memory.shared else "the mode is confirm"


@dataclass(frozen=True, slots=True)
class MemoryTool:
    """One of the tools: what it is called with are texts, all of them needed, and no more."""

    spec: ToolSpec
    do: Callable[[Mapping[str, str], Run], str]

    def run(self, call: ToolCall, run: Run) -> str:
        """Carry out the call; raises `ToolError` or another `IpymemoryError`."""
        wanted = tuple(self.spec.schema["properties"])
        given: dict[str, str] = {}
        if extra := sorted(str(each)[:40] for each in call.input if each not in wanted):
            raise ToolError(
                f"{self.spec.name} takes {', '.join(wanted)} and nothing else, such as "
                f"{extra[0]!r}."
            )
        for each in wanted:
            value = call.input.get(each)
            if not isinstance(value, str) or not value.strip():
                raise ToolError(f"{self.spec.name} needs {each} as text.")
            if len(value) > _LONGEST:
                raise ToolError(f"{each} is longer than {_LONGEST:,} characters. Keep the fact.")
            given[each] = value.strip()
        return self.do(given, run)


@dataclass(frozen=True, slots=True)
class JudgeThemselves:
    """Lets the tools of these names judge their calls themselves; other calls are others'."""

    others: Policy
    names: tuple[str, ...]

    def check(self, call: ToolCall) -> Allow | Deny:
        """Return the answer."""
        if call.name not in self.names:
            return self.others.check(call)
        # What a model sends need not be what its type says.
        given: object = call.input
        if not isinstance(given, Mapping):
            return Deny(f"{call.name} takes an object with its inputs by name.")
        return Allow(call)


_TEXT = {"type": "string"}


def text_spec(name: str, description: str, *inputs: str) -> ToolSpec:
    """Return what an engine is told of a tool whose `inputs` are texts, all of them needed."""
    properties = {
        each: {**_TEXT, "enum": list(KINDS)} if each == "kind" else dict(_TEXT) for each in inputs
    }
    return ToolSpec(
        name,
        description,
        {
            "type": "object",
            "properties": properties,
            "required": list(inputs),
            "additionalProperties": False,
        },
    )


_WORDS = (
    "Give fact as whole sentences of the person's, word for word: other words wait for their yes. "
    "While a question is answered, only when the person asks for that in it."
)
_REMEMBER = text_spec(
    "Remember",
    f"Keep a memory for the notebooks to come. {_WORDS} kind: user is about the person, feedback "
    "how they want things done, project what goes on here, reference where things lie.",
    "fact",
    "kind",
)
_REPLACE = text_spec(
    "Replace", f"Put a fact in the place of the memory called name. {_WORDS}", "name", "fact"
)
_FORGET = text_spec(
    "Forget",
    "Remove the memory called name, so that it is not learned again. Only when the person asks "
    "for that in their question.",
    "name",
)
SPECS = (_REMEMBER, _REPLACE, _FORGET)
"""What an engine is told of the tools."""
