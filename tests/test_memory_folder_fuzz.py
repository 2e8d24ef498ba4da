"""A memory folder as people leave it: whatever lies there, nothing is lost or rewritten unasked."""

from __future__ import annotations

import random
import sys
import unicodedata
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from ipymemory import places
from ipymemory.errors import IpymemoryError, MemoryRefused
from ipymemory.history import History, Run
from ipymemory.memory_files import Draft, Memory, MemoryFolder, Source, frontmatter
from ipymemory.memory_files import index as lines
from ipymemory.memory_place import is_index
from ipymemory.places import Project
from ipymemory.recall import Recall

NAMES = [
    "dates", "Dates 2", "a(b)", "日付", "Gro\u0308ße", "Größe-2", "e\u0301te\u0301", "sub/deep/x",
    "MEMORY-notes", "memory", "README", "-dash", "[x] y", "50% off", "x" * 120, "team-rules",
    "con", "a.b.c", "tab\there", "emoji 🐟",
]  # fmt: skip
KEYS = [
    "name: A name", "name: 'a: b'", 'name: "q \\" q"', "name: 日付", "description: Plain words",
    'description: "with: colon"', "description: >\n  folded\n  text",
    "description: |\n  kept\n  so",
    "description:", "type: project", "type: feedback", "type: no", "type: [a]", "tags: [a, b]",
    "tags:\n  - a\n  - b", "# a comment", "created: 2024-01-01", "pinned: true", "n: 0o17",
    "metadata: \n  type: user\n  mine: yes  # kept", "metadata: {type: user}", "metadata:",
    "metadata:\n  node_type: memory\n  type: project\n  modified: 2026-11-01T00:00:00.000Z",
    "metadata:\n    type: user\n    ipymemory_source: {\"subject\": \"dates: order\"}",
    "? odd\n: key", "anchor: &a [1]\nalias: *a", "__proto__: x", "originSessionId: 0193",
]  # fmt: skip
BROKEN = [
    "name: “a: b: c", "\tname: x", "name: [", "- a\n- b", "a: b: c", "{", "key: @x", "%YAML 9",
    "!!python/object:os.system x", "a: *missing", "name: x\nname: y", "\x00", "a: " + "[" * 300,
]  # fmt: skip
BODIES = [
    "Dates are day-first.", "", "---", "---\nname: second\n---\nbelow", "# Head\n\n- a\n- b\n",
    "[[other]] and [x](y.md)", "- [Dates](dates.md) — day-first", "trailing  \n\n\n", "\ttab",
    "one\rtwo", "日付は日が先です", "```\n---\n```", "x" * 70_000, "<!-- c -->", "\u2028line",
]  # fmt: skip


def made(chance: random.Random) -> bytes:
    """Return the bytes of a file as somebody may have written it."""
    if chance.random() < 0.06:
        return chance.choice(
            [b"", b"\xff\xfe-\x00-\x00", b"\x89PNG\r\n\x1a\n\x00", b"\r\r\r", b"---", b"---\n---"]
        )
    keys = chance.sample(KEYS, chance.randint(0, 6))
    if chance.random() < 0.2:
        keys.insert(chance.randint(0, len(keys)), chance.choice(BROKEN))
    front = "\n".join(keys)
    text = f"---\n{front}\n---{chance.choice(['', ' '])}\n"
    if chance.random() < 0.1:
        text = front
    text += chance.choice(["", "\n"]) + chance.choice(BODIES) + chance.choice(["", "\n"])
    if chance.random() < 0.3:
        text = text.replace("\n", "\r\n")
    if chance.random() < 0.1:
        text = text.replace("\n", "\r\n", 2)
    data = text.encode("utf-8")
    if chance.random() < 0.2:
        data = b"\xef\xbb\xbf" + data
    return data + (b"\xe9" if chance.random() < 0.04 else b"")


class Folder:
    """A folder of such files, and what each holds."""

    def __init__(self, project: Project, chance: random.Random) -> None:
        self.project = project
        self.chance = chance
        self.door = MemoryFolder(project.memory, project)
        project.memory.mkdir(parents=True)
        for name in chance.sample(NAMES, chance.randint(3, 12)):
            with suppress(OSError):  # a name that this system does not allow
                self.put(f"{name}.md", made(chance))
        if chance.random() < 0.7:
            mine = [
                "# Mine",
                "- [Old](gone.md) — kept",
                "words",
                "- [Dates](dates.md)",
                "\ufeff",
                "",
            ]
            end = chance.choice(["\n", "\r\n"])
            self.put("MEMORY.md", end.join(chance.sample(mine, 4)).encode())
        self.mine = self.persons_lines()

    def put(self, name: str, data: bytes) -> None:
        path = self.project.memory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)

    def files(self) -> dict[str, bytes]:
        """Return what each memory's file holds, by its path in the folder."""
        found = {}
        for path in self.project.memory.rglob("*"):
            if path.is_file() and not is_index(path.name):
                found[path.relative_to(self.project.memory).as_posix()] = path.read_bytes()
        return found

    def persons_lines(self) -> list[str]:
        pages = self.door.pages()
        every = [line.rstrip("\r") for page in pages for line in page.split("\n")]
        return [each for each in every if each.strip() and not lines.linked(each)]

    def run(self) -> Run:
        return History(self.project.history).begin("remember", "person", "a test", (), "s1")

    def whole(self) -> None:
        """Check that no file is lost to a reader, and that the index leads to each current one."""
        files = self.files()
        assert all(name.endswith(".md") for name in files), files.keys()
        found = {each.file: each for each in self.door.scan()}
        assert found.keys() == files.keys()
        manifest = self.door.manifest()
        assert len(manifest.splitlines()) == len(files)
        for memory in found.values():
            assert self.door.read(memory.name).path == memory.path
            assert memory.as_dict()
        listed = lines.listed(self.door.pages())
        assert {each.file for each in found.values() if each.current} <= listed
        assert self.door.drift() == []
        kept = self.persons_lines()
        assert [each for each in kept if each in self.mine] == self.mine


def draft(chance: random.Random) -> Draft:
    text = chance.choice(
        ["Dates are month-first", "日付は月が先", "Use: 'tabs' # here", "- a\n- b"]
    )
    subject = chance.choice(["", "dates: order"])
    kind = chance.choice(["project", "user", "feedback"])
    return Draft(kind, text, "", text, Source("s", "n.ipynb", ("t",), text, "person"), subject)


def save(folder: Folder) -> str:
    before = {each.name for each in folder.door.scan()}
    try:
        kept = folder.door.save(draft(folder.chance), folder.run(), asked=True)
    except MemoryRefused as error:
        # The memory of the same subject is one that no program edits.
        assert "left as it is" in str(error)
        return ""
    return kept.file if kept.name in before else f"new {kept.file}"


def supersede(folder: Folder) -> str:
    memory = folder.chance.choice(folder.door.scan())
    new, path = draft(folder.chance), memory.path
    before = path.read_bytes()
    try:
        folder.door.supersede(memory.name, new, folder.run())
    except MemoryRefused as error:
        # What a program cannot edit it says, and leaves.
        assert "left as it is" in str(error)
        assert path.read_bytes() == before
        return ""
    _edited(memory, new, before, path.read_bytes())
    return memory.file


def _edited(memory: Memory, new: Draft, before: bytes, after: bytes) -> None:
    bom = b"\xef\xbb\xbf"
    assert before.startswith(bom) == after.startswith(bom)
    old, now = frontmatter.read(before.decode()), frontmatter.read(after.decode())
    for key, value in old.fields.items():
        if key not in ("description", "metadata", "type"):
            assert now.fields[key] == value
    was = frontmatter.block(before.decode().removeprefix("\ufeff"))
    assert was is not None
    block = frontmatter.block(after.decode().removeprefix("\ufeff"))
    assert block is not None and block.ending == was.ending
    assert now.body.strip().replace("\r\n", "\n") == new.body.strip()
    for comment in (b"# a comment", b"# kept"):
        assert before.count(comment) <= after.count(comment) or comment in new.body.encode()


def forget_and_undo(folder: Folder) -> str:
    memory = folder.chance.choice(folder.door.scan())
    before = memory.path.read_bytes()
    folder.door.forget(memory.name, folder.run())
    assert not memory.path.exists()
    folder.whole()
    History(folder.project.history).undo()
    folder.door.rebuild_index()
    assert memory.path.read_bytes() == before
    return ""


def forget(folder: Folder) -> str:
    memory = folder.chance.choice(folder.door.scan())
    folder.door.forget(memory.name, folder.run())
    return memory.file


def read(folder: Folder) -> str:
    door = MemoryFolder(folder.project.memory, folder.project)
    door.manifest()
    door.index()
    Recall(folder.project, door).find(folder.chance.choice(["dates day-first", "日付", "name"]))
    door.mend()
    return ""


def edit_by_hand(folder: Folder) -> str:
    name = folder.chance.choice(sorted(folder.files()))
    folder.put(name, made(folder.chance))
    folder.door.rebuild_index()
    return name


DEEDS: list[Callable[[Folder], str]] = [
    save,
    supersede,
    forget_and_undo,
    forget,
    read,
    edit_by_hand,
]


@pytest.mark.spec("E8", "L8")
@pytest.mark.parametrize("seed", range(60))
def test_whatever_lies_there_only_what_was_asked_changes(
    tmp_path: Path, home: Path, seed: int
) -> None:
    chance = random.Random(seed)
    (tmp_path / "work").mkdir()
    folder = Folder(places.project_of(tmp_path / "work", home), chance)
    before = folder.files()
    folder.door.rebuild_index()
    assert folder.files() == before
    for _ in range(8):
        if not folder.files():
            break
        folder.whole()
        before = folder.files()
        about = chance.choice(DEEDS)(folder)
        after = folder.files()
        changed = {
            name for name in before.keys() | after.keys() if before.get(name) != after.get(name)
        }
        assert changed <= {about.removeprefix("new ")}, (about, changed)
    folder.whole()


def test_a_huge_file_is_shown_by_its_beginning_and_left_alone(tmp_path: Path, home: Path) -> None:
    (tmp_path / "work").mkdir()
    folder = Folder(places.project_of(tmp_path / "work", home), random.Random(1))
    huge = (
        b"---\nname: Huge\ndescription: Ten megabytes\ntype: project\n---\n" + b"line\n" * 2_000_000
    )
    folder.put("huge.md", huge)
    folder.put("line.md", b"---\nname: Line\ntype: project\n---\n" + b"x" * 10_000_000)
    folder.put("none.md", b"\n" * 10_000_000)
    folder.door.rebuild_index()
    folder.whole()
    found = {each.name: each for each in folder.door.scan()}
    assert found["huge"].description == "Ten megabytes" and len(found["huge"].body) < 1000
    assert len(folder.door.read("huge").body) <= 1024 * 1024
    assert [each.memory.name for each in Recall(folder.project, folder.door).find("megabytes")]
    assert (folder.project.memory / "huge.md").read_bytes() == huge
    folder.door.forget("huge", folder.run())
    History(folder.project.history).undo()
    assert (folder.project.memory / "huge.md").read_bytes() == huge


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege on Windows")
def test_links_among_them_are_neither_followed_nor_written_through(
    tmp_path: Path, home: Path
) -> None:
    (tmp_path / "work").mkdir()
    folder = Folder(places.project_of(tmp_path / "work", home), random.Random(2))
    outside = tmp_path / "outside.md"
    outside.write_text("---\nname: o\ndescription: theirs\ntype: project\n---\ntheirs\n")
    (folder.project.memory / "link.md").symlink_to(outside)
    (folder.project.memory / "up").symlink_to(tmp_path)
    folder.door.rebuild_index()
    with pytest.raises(IpymemoryError):
        folder.door.supersede("link", draft(folder.chance), folder.run())
    with suppress(IpymemoryError):
        folder.door.forget("link", folder.run())
    assert outside.read_text().endswith("theirs\n")
    folder.door.save(draft(folder.chance), folder.run())
    assert "theirs" not in folder.door.manifest() + folder.door.index()


@pytest.mark.skipif(sys.platform == "darwin", reason="the file system knows one form only")
def test_a_name_in_another_form_of_unicode_is_another_file_and_found(
    tmp_path: Path, home: Path
) -> None:
    (tmp_path / "work").mkdir()
    project = places.project_of(tmp_path / "work", home)
    door = MemoryFolder(project.memory, project)
    project.memory.mkdir(parents=True)
    for form in ("NFD", "NFC"):
        name = unicodedata.normalize(form, "Größe")
        text = f"---\nname: {form}\ndescription: In {form}\ntype: project\n---\n{form}\n"
        (project.memory / f"{name}.md").write_text(text)
    door.rebuild_index()
    assert {each.description for each in door.scan()} == {"In NFD", "In NFC"}
    assert len(lines.listed(door.pages())) == 2
    assert door.find(unicodedata.normalize("NFD", "Größe")).description == "In NFD"
    assert door.find("Größe").description == "In NFC"
    # What is typed need not be in the form that the file has.
    (project.memory / f"{unicodedata.normalize('NFC', 'Größe')}.md").unlink()
    door.rebuild_index()
    assert door.find("größe").description == "In NFD"
