"""Merge, Rewrite and Remove, one call at a time, and the look at what they come to together."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ipymemory import dream_copy, dream_tools, places
from ipymemory.config import Settings
from ipymemory.dream_copy import Copy
from ipymemory.dream_outcome import Dreamt, reason
from ipymemory.dream_tools import MOST_MERGED, Consolidating
from ipymemory.errors import FormatError, ToolError
from ipymemory.history import History, Run
from ipymemory.jobs import dream_by_model
from ipymemory.jobs.dream_by_model import fault
from ipymemory.memory_files import MemoryFolder, drafts, opened
from ipymemory.memory_files.rewriting import rewritten
from ipymemory.memory_files.values import Draft, Source
from ipymemory.tidying import tidied

pytestmark = pytest.mark.usefixtures("home")

OLD, LATER = "2026-11-23T09:00:00.000Z", "2026-11-24T09:00:00.000Z"
SECRET = "sk-ant-api03-" + "a1B2c3D4e5F6g7H8" * 5


class Desk:
    """A folder of memories, and a model's tools on a copy of it."""

    def __init__(self, top: Path) -> None:
        (top / "work").mkdir()
        self.top = top
        self.project = places.project_of(top / "work", places.home(""))
        self.run: Run = History(top / "drafts").begin("dream", "anthropic", "a test", (), "")
        self._begun: Consolidating | None = None

    @property
    def folder(self) -> MemoryFolder:
        return opened(self.project, Settings())

    @property
    def work(self) -> Consolidating:
        if self._begun is None:
            found = tidied(self.folder, self.project.root, frozenset({"person"}))
            self._begun = Consolidating(Copy(self.folder, found.groups, self.top / "copy"))
        return self._begun

    @property
    def copy(self) -> Copy:
        return self.work.copy

    def remember(
        self, name: str, text: str, kind: str = "project", time: str = OLD, **more: str
    ) -> None:
        source = Source(
            f"s-{name}", "work.ipynb", (f"t-{name}",), text, more.get("origin", "person")
        )
        draft = drafts.checked(Draft(kind, name, "", text, source, more.get("subject", "")))
        path = self.folder.folder / f"{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(drafts.file_text(name, draft, time), "utf-8", newline="\n")

    def merge(self, keep: str, gone: str, text: str) -> str:
        return self.work.merge({"keep": keep, "gone": gone, "text": text}, self.run)

    def remove(self, name: str, because: str) -> str:
        return self.work.remove({"name": name, "because": because}, self.run)

    def rewrite(self, name: str, text: str) -> str:
        return self.work.rewrite({"name": name, "text": text}, self.run)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    desk = Desk(tmp_path)
    desk.remember("tea", "Tea of the office is drunk at noon by all clerks.")
    desk.remember("tea-too", "Tea of the office is drunk at noon by clerks.")
    for n in range(8):
        desk.remember(f"lake-{n}", f"Lake {n} was measured by the office of town {n}.")
    return desk


BOTH = "Tea of the office is drunk at noon by all clerks."


@pytest.mark.spec("D4")
def test_a_merge_names_every_origin_once_and_never_its_own_twice(desk: Desk) -> None:
    desk.merge("tea", "tea-too", BOTH)
    kept = desk.copy.memory(desk.copy.find("tea"))
    assert kept.source.session == "s-tea" and kept.source.quote == BOTH
    assert [each.session for each in kept.source.also] == ["s-tea-too"]


@pytest.mark.spec("D4")
def test_an_origin_that_both_know_is_named_once(desk: Desk) -> None:
    """As where somebody took a merge back by hand and left what it was made of."""
    own, extra = desk.folder.read("tea").source, Source("s-x", "x.ipynb", ("t",), "Tea.", "person")
    for name, also in (("tea", (extra,)), ("tea-too", (own, extra))):
        path = desk.folder.folder / f"{name}.md"
        memory = desk.folder.read(name)
        path.write_bytes(rewritten(path.read_bytes(), memory, body=memory.body, also=also))
    desk.merge("tea", "tea-too", BOTH)
    kept = desk.copy.memory(desk.copy.find("tea"))
    assert sorted(each.session for each in kept.source.also) == ["s-tea-too", "s-x"]


@pytest.mark.spec("D4")
def test_so_many_become_one_at_once_and_no_more(desk: Desk) -> None:
    for n in range(MOST_MERGED):
        desk.remember(f"tea-{n}", BOTH.replace("Tea", "The tea"))
    every = [f"tea-{n}" for n in range(MOST_MERGED)]
    with pytest.raises(ToolError, match="At most 8"):
        desk.merge("tea-too", "\n".join(every), f"{BOTH}")
    with pytest.raises(ToolError, match="keep is none of them"):
        desk.merge("tea", "tea-too\ntea", BOTH)
    with pytest.raises(ToolError, match="gone names the memories"):
        desk.merge("tea", " \n", BOTH)


@pytest.mark.spec("D4")
def test_what_a_merge_takes_and_what_stays_are_put_in_place_together(desk: Desk) -> None:
    desk.merge("tea", "tea-too", BOTH)
    (group,) = desk.copy.groups()
    assert [(each.path.stem, each.after is None) for each in group] == [
        ("tea", False),
        ("tea-too", True),
    ]
    assert fault(desk.copy, desk.work) == ""


@pytest.mark.spec("D4")
def test_links_by_the_name_that_a_file_gives_itself_follow_too(desk: Desk) -> None:
    path = desk.folder.folder / "tea-too.md"
    path.write_text(path.read_text().replace('"title": "tea-too"', '"title": "Afternoon tea"'))
    desk.remember("walk", "Before a walk see [[Afternoon tea]] and [[tea-too]].")
    desk.merge("tea", "tea-too", BOTH)
    assert desk.work.settle() == 1
    walk = desk.copy.memory(desk.copy.find("walk"))
    assert "see [[tea]] and [[tea]]." in walk.body
    assert walk.description == "Before a walk see [[tea]] and [[tea]]."


@pytest.mark.spec("D4")
def test_no_link_and_no_title_names_a_memory_that_another_took_the_place_of(ports: Desk) -> None:
    """Also through a memory that went for a third in the same dream."""
    ports.remember("noon", "Tea of office is drunk at noon by clerks.")
    ports.remember("walk", "Ask [[old]] and [[noon]].")
    path = ports.folder.folder / "walk.md"
    path.write_text(path.read_text().replace('"title": "walk"', '"title": "Ask [[noon]]"'))
    ports.remove("old", "new")
    ports.merge("tea-too", "noon", "Tea of the office is drunk at noon by clerks.")
    ports.merge("tea", "tea-too", BOTH)
    assert ports.work.settle() == 1
    walk = ports.copy.memory(ports.copy.find("walk"))
    assert (walk.description, walk.label) == ("Ask [[new]] and [[tea]].", "Ask [[tea]]")
    assert "[[old]]" not in walk.body and "[[noon" not in walk.body
    assert walk.source.quote == "Ask [[old]] and [[noon]].", "what was said is not worded anew"
    assert fault(ports.copy, ports.work) == ""


@pytest.fixture
def ports(desk: Desk) -> Desk:
    desk.remember("old", "The port is 80.", subject="server: port")
    desk.remember("new", "The port is 90.", time=LATER, subject="server: port")
    desk.remember("newest", "The port is 95.", time="2026-11-25T09:00:00.000Z",
                  subject="server: port")  # fmt: skip
    return desk


@pytest.mark.spec("D5")
def test_what_is_part_of_a_removal_is_touched_no_more(ports: Desk) -> None:
    assert "goes at the end" in ports.remove("old", "new")
    calls: list[Callable[[], str]] = [
        lambda: ports.rewrite("old", "The port is 80."),
        lambda: ports.rewrite("new", "The port is 90."),
        lambda: ports.merge("new", "newest", "The port is 90.\nThe port is 95."),
        lambda: ports.merge("newest", "old", "The port is 80.\nThe port is 95."),
        lambda: ports.remove("new", "newest"),
        lambda: ports.remove("old", "newest"),
    ]
    for each in calls:
        with pytest.raises(ToolError, match="part of a removal already"):
            each()


@pytest.mark.spec("D5")
def test_one_that_goes_itself_is_no_reason_for_another_to_go(ports: Desk) -> None:
    """Else what the first was contradicted by would have to stand for both, unseen."""
    assert "goes at the end" in ports.remove("new", "newest")
    assert "They are asked" in ports.remove("old", "new")
    assert list(ports.work.removed) == ["new"] and list(ports.work.asked) == ["old"]


@pytest.mark.spec("D5")
def test_what_goes_because_of_another_goes_only_while_that_one_stands(ports: Desk) -> None:
    ports.remove("old", "new")
    ports.work.settle()
    (group,) = ports.copy.groups()
    assert [(each.path.stem, each.before == each.after) for each in group] == [
        ("new", True),  # unchanged: it guards the group
        ("old", False),
    ]


@pytest.mark.spec("D5")
@pytest.mark.parametrize(
    ("kind", "goes"), [("project", True), ("reference", True), ("user", False), ("feedback", False)]
)
def test_what_names_a_file_that_is_gone_goes_unless_it_is_of_the_person(
    desk: Desk, kind: str, goes: bool
) -> None:
    (desk.project.root / "there.py").write_text("")
    desk.remember("dead", "Orders of the town are cleaned in `src/gone.py`.", kind)
    desk.remember("alive", "Orders of the lake are cleaned in `there.py`.", kind)
    told = desk.remove("dead", "the file is gone")
    assert ("goes at the end" in told) == goes and ("dead" in desk.work.removed) == goes
    assert "They are asked" in desk.remove("alive", "the file is gone")


@pytest.mark.spec("D5")
def test_the_reason_of_a_question_is_masked_and_short(desk: Desk) -> None:
    desk.remove("tea", f"The key {SECRET} is in it, {'and so on ' * 60}")
    (why,) = desk.work.asked.values()
    assert SECRET not in why and "a model would remove it: The key" in why and len(why) == 200


@pytest.mark.spec("D5")
@pytest.mark.parametrize(("count", "asked"), [(2, False), (3, True)])
def test_a_fifth_goes_and_more_is_asked_about(desk: Desk, count: int, asked: bool) -> None:
    assert desk.copy.total == 10
    names = [f"lake-{n}" for n in range(count)]
    desk.work.removed |= dict.fromkeys(names, "what it names is gone")
    desk.work.settle()
    assert list(desk.work.asked) == (names if asked else [])
    gone = [each for each in names if desk.copy.files[each].after is None]
    assert gone == ([] if asked else names)


@pytest.mark.spec("D4", "L7")
@pytest.mark.parametrize(
    ("text", "why"),
    [
        (f"{BOTH} {SECRET}", "password, key or token"),
        (f"{BOTH}\u200b", "the character '\\u200b'"),
        (f"{BOTH}\n" * 90, "longer than 4,000"),
        ("Tea is drunk at noon.", "no whole sentence"),
    ],
)
def test_a_text_is_refused_and_the_model_is_told_why(desk: Desk, text: str, why: str) -> None:
    for call in (lambda: desk.merge("tea", "tea-too", text), lambda: desk.rewrite("tea", text)):
        with pytest.raises(ToolError) as caught:
            call()
        assert why in str(caught.value)
    assert desk.copy.groups() == ()


@pytest.mark.spec("D4")
def test_memories_of_two_kinds_or_of_two_things_stay_apart(desk: Desk) -> None:
    desk.remember("rule", BOTH, "feedback")
    with pytest.raises(ToolError, match="is of kind"):
        desk.merge("tea", "rule", BOTH)
    with pytest.raises(ToolError, match="not about the same"):
        desk.merge("tea", "lake-1", f"{BOTH}\nLake 1 was measured by the office of town 1.")


# What they come to together


@pytest.mark.spec("D5")
@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("type: project", "type: feedback", "would leave tea broken"),
        ('"session": "s-extra"', '"session": "s-other"', "lose where tea came from"),
        ("originSessionId: s-tea", "originSessionId: s-lake", "lose where tea came from"),
    ],
)
def test_an_outcome_that_lost_something_is_none(desk: Desk, old: str, new: str, said: str) -> None:
    """Every call is looked at by itself; this stands behind them, should one of them be wrong."""
    file = desk.copy.find("tea")
    memory = desk.copy.memory(file)
    extra = Source("s-extra", "x.ipynb", ("t",), "said elsewhere", "person")
    with_two = dream_copy.rewritten(file.before, memory, body=memory.body, also=(extra,))
    file.before = file.after = with_two
    file.after = with_two.replace(old.encode(), new.encode())
    assert file.after != file.before and said in fault(desk.copy, desk.work)


@pytest.mark.spec("D5")
def test_a_memory_that_went_without_a_word_makes_an_outcome_none(desk: Desk) -> None:
    desk.copy.remove(desk.copy.find("lake-3"))
    assert "lose memories that nothing stands for" in fault(desk.copy, desk.work)


@pytest.mark.spec("D4")
def test_a_file_that_cannot_be_rewritten_is_a_refusal(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> bytes:
        raise FormatError("It is odd.")

    monkeypatch.setattr(dream_copy, "rewritten", fail)
    with pytest.raises(ToolError, match="tea was left as it is"):
        desk.merge("tea", "tea-too", BOTH)
    assert "tea-too" in {each.name for each in desk.copy.there()}


# What is told of it


def test_what_a_dream_did_is_said_in_a_phrase_by_all_its_parts() -> None:
    counts = {"memories": 1200, "merged": 1, "dated": 2, "rewritten": 3, "removed": 4,
              "marked": 5, "relinked": 6}  # fmt: skip
    assert reason(counts) == (
        "tidied 1,200 memories: 1 merged, 2 dated, 3 rewritten, 4 removed, 5 marked, 6 relinked"
    )
    assert reason({"memories": 3}) == "tidied 3 memories: nothing to do"


@pytest.mark.spec("L12")
def test_an_outcome_says_all_but_words_of_memories() -> None:
    outcome = Dreamt("done", "r", "e", {"merged": 1}, 1.234, "n", "+words", ("tea: why",))
    assert outcome.as_dict() == {
        "status": "done", "run": "r", "error": "e", "note": "n", "counts": {"merged": 1},
        "seconds": 1.23,
    }  # fmt: skip
    assert outcome.as_plan() == {**outcome.as_dict(), "diff": "+words"}


def test_the_rounds_are_those_of_the_specification() -> None:
    assert dream_by_model.ROUNDS == 40 and dream_tools.MOST_REMOVED == 0.2
