"""Frontmatter comes back as it was written, in all three generations, and is edited in place."""

from __future__ import annotations

import json

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ipymemory.errors import FormatError
from ipymemory.memory_files import editing, frontmatter
from ipymemory.memory_files.scanning import parsed
from ipymemory.memory_files.values import Memory

# Everything a file can hold: no lone surrogates, which are no text.
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
LINE = st.text(
    st.one_of(
        st.sampled_from(" #:-'\"“”{}[],&*!|>%@`\\~?=<\t.0123456789eE+ yesno"),
        st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]),
    ),
    max_size=40,
).map(lambda text: text.replace("\n", " "))


def memory(text: str) -> Memory:
    """Return what a scan makes of a file with `text`."""
    from pathlib import Path

    return parsed(text.encode(), Path("x.md"), "x", 0.0)


@pytest.mark.spec("E3")
@settings(deadline=None, max_examples=150)
@given(TEXT, TEXT, TEXT, TEXT)
@example("a", 'fix of #123: it\'s "done"', "", "")
@example("a", "#first", "", "")
@example("a", "curly “quote” and 'plain' one", "", "")
@example("null", "true", "no", "1.5")
@example("a", "ends with a colon:", "", "\u0085\u2028\ufeff")
def test_what_is_written_is_read(name: str, description: str, quote: str, note: str) -> None:
    source = {"quote": quote, "note": note, "turns": ["1", quote]}
    text = frontmatter.write(
        name,
        description,
        {"node_type": "memory", "type": "project", "ipymemory_source": source},
        "Body.\n",
    )
    found = frontmatter.read(text)
    assert found.problem == ""
    assert found.fields["name"] == name
    assert found.fields["description"] == description
    assert found.fields["metadata"]["ipymemory_source"] == source
    assert found.body == "\nBody.\n"


@pytest.mark.spec("E3")
@settings(deadline=None, max_examples=150)
@given(TEXT, TEXT)
@example("yes", "2026-12-02")
@example("a: b", "c: d")
@example("a #b", "- c")
def test_another_yaml_parser_reads_the_same(description: str, quote: str) -> None:
    text = frontmatter.write(
        "n", description, {"modified": "2026-12-02T05:10:11.123Z", "s": {"q": quote}}, "b"
    )
    told = yaml.safe_load(text.split("\n---\n", 1)[0].removeprefix("---\n"))
    assert told["description"] == description
    assert told["metadata"]["s"] == {"q": quote}


KEY = st.sampled_from(["name", "description", "type", "tags", "x_1", "metadata", "a-b", "9"])
VALUE = st.one_of(
    LINE,
    LINE.map(lambda text: json.dumps(text, ensure_ascii=False)),
    st.sampled_from(["", "|", ">-", "[a, b]", "{a: b}", '{"a": "b"}', "*x", "&x y", "!!str 1"]),
)
RAW = st.lists(
    st.tuples(st.sampled_from(["", "  ", "    ", "# "]), KEY, st.sampled_from([":", ": "]), VALUE),
    max_size=6,
).map(lambda rows: "".join(f"{a}{b}{c}{d}\n" for a, b, c, d in rows))


@settings(deadline=None, max_examples=600)
@given(RAW)
@example("metadata: \n  type: user\n")
@example("a: b #c\n")
@example("a: b: c\n")
@example("a: b:\n")
@example("a: b\na: c\nmetadata:\n  a: b\n  a: c\nmetadata:\n  d: e\n")
@example("a: 'b'\n")
@example('a: "b\\x41"\n')
@example("a: b\n  c: d\n")
@example("metadata:\nname: x\n")
def test_the_quick_reading_says_what_the_parser_says(text: str) -> None:
    quick = frontmatter._usual(text)
    if quick is None:
        return
    slow, problem = frontmatter._parsed(text)
    assert (quick, "") == (slow, problem)


def test_usual_files_are_read_without_the_parser() -> None:
    text = frontmatter.write(
        "db-policy",
        'Integration "tests" hit C:\\db: no mocks #1',
        {
            "node_type": "memory",
            "type": "feedback",
            "modified": "2026-12-02T05:10:11.123Z",
            "ipymemory_source": {"turns": ["1"], "quote": "never mock"},
        },
        "x",
    )
    assert frontmatter._usual(text.split("---\n")[1]) is not None


GENERATIONS = {
    "flat": "---\nname: Database testing\ndescription: No mocks\ntype: feedback\n---\nThe fact.\n",
    "flat with session": (
        "---\nname: Database testing\ndescription: No mocks\ntype: feedback\n"
        "originSessionId: 0193\n---\nThe fact.\n"
    ),
    "nested": (
        "---\nname: Database testing\ndescription: No mocks\nmetadata: \n  node_type: memory\n"
        "  type: feedback\n  originSessionId: 0193\n---\nThe fact.\n"
    ),
}


@pytest.mark.spec("E3")
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("generation", GENERATIONS)
def test_three_generations_are_read(generation: str, end: str) -> None:
    found = memory(GENERATIONS[generation].replace("\n", end))
    assert (found.title, found.description, found.kind) == (
        "Database testing",
        "No mocks",
        "feedback",
    )
    assert found.source.session == ("" if generation == "flat" else "0193")
    assert found.body == f"The fact.{end}"
    assert not found.problem


NOTE = st.dictionaries(
    st.from_regex(r"[a-z][a-z0-9_-]{0,10}", fullmatch=True).filter(
        lambda key: (
            key
            not in {"name", "description", "type", "metadata", "originSessionId"}
            | {"modified", "node_type", "originsessionid"}
        )
    ),
    st.one_of(
        TEXT.map(frontmatter.scalar),
        st.sampled_from(["[a, b]", "|\n{0}  two\n{0}  lines", "yes", "2026-01-01", "'x'  # why"]),
    ),
    max_size=3,
)


@pytest.mark.spec("E3")
@settings(deadline=None, max_examples=150)
@given(
    st.sampled_from(["flat", "session", "nested"]),
    NOTE,
    NOTE,
    TEXT,
    TEXT,
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
)
def test_an_edit_keeps_all_that_it_is_not_about(
    generation: str,
    outer: dict[str, str],
    inner: dict[str, str],
    old: str,
    new: str,
    end: str,
    mark: bool,
) -> None:
    lines = ["---", "# a person's comment", "name: n", f"description: {frontmatter.scalar(old)}"]
    unknown = [f"{key}: {value.format('')}" if "{0}" in value else f"{key}: {value}"
               for key, value in outer.items()]  # fmt: skip
    lines += unknown
    nested = []
    if generation == "nested":
        nested = [
            f"  {key}: {value.format('  ')}" if "{0}" in value else f"  {key}: {value}"
            for key, value in inner.items()
        ]
        lines += ["metadata: ", "  node_type: memory", *nested, "  type: user  # kind"]
    else:
        lines += ["type: user"] + (["originSessionId: abc"] if generation == "session" else [])
    text = "\n".join([*lines, "---", "", "Old body.", ""]).replace("\n", end)
    text = "\ufeff" + text if mark else text
    before = frontmatter.read(text)
    assert before.problem == ""
    source = {"quote": new}
    after = editing.edited(
        text,
        new,
        {"type": "project", "modified": "2026-12-02T05:10:11.123Z", "ipymemory_source": source},
        "New body.\n\nMore.",
    )
    read = memory(after)
    assert (read.description, read.kind, read.source.quote) == (new, "project", new)
    assert read.body == f"{end}New body.{end}{end}More.{end}"
    assert after.startswith("\ufeff") == mark
    kept = "\n".join([*unknown, *nested]).replace("\n", end).split(end)
    written = after.split(end)
    for line in kept:
        assert line in written
    assert "# a person's comment" in written
    if end == "\r\n":
        assert after.count("\n") == after.count("\r\n")


def test_a_second_edit_changes_only_what_differs() -> None:
    text = GENERATIONS["flat"]
    values = {"type": "user", "modified": "2026-12-02T05:10:11.123Z"}
    once = editing.edited(text, "A", values, "B")
    twice = editing.edited(once, "A", values, "B")
    assert once == twice


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("---\nname: “x”: y: z\n---\nbody\n", "no valid YAML"),
        ("---\nname: 'it's'\n---\nbody\n", "no valid YAML"),
        ("---\nname: x\nbody without an end\n", "not closed"),
        ("no frontmatter\n", "no frontmatter"),
        ("---\n- a\n- b\n---\nbody\n", "no keys"),
        ("---\nx: !!python/object/apply:os.system [ls]\n---\nbody\n", "no valid YAML"),
        ("---\n" + "a: " + "[" * 5000 + "\n---\nbody\n", "no"),
        ("---\n" + "x: y\n" * 5000 + "---\nbody\n", "longer than"),
    ],
)
@pytest.mark.spec("E8")
def test_what_is_no_frontmatter_is_said_and_shown(text: str, said: str) -> None:
    found = frontmatter.read(text)
    assert said in found.problem
    assert found.body == text
    assert dict(found.fields) == {}
    with pytest.raises(FormatError):
        editing.edited(text, "d", {"type": "user"}, "b")


def test_a_second_block_gives_what_the_first_lacks() -> None:
    found = memory(
        "---\nmetadata:\n  type: user\n---\n\n---\nname: The name\ndescription: What\n"
        "type: project\nmetadata:\n  type: project\n  originSessionId: s\n---\nBody.\n"
    )
    assert (found.title, found.description, found.kind) == ("The name", "What", "user")
    assert found.source.session == "s"
    assert found.body == "Body.\n"


def test_a_second_block_is_not_lost_by_an_edit() -> None:
    text = "---\ntype: user\n---\n---\nname: The name\n---\nBody.\n"
    with pytest.raises(FormatError, match="second block"):
        editing.edited(text, "d", {"type": "user"}, "b")


def test_a_break_in_the_body_is_no_second_block() -> None:
    assert frontmatter.read("---\nname: a\n---\nOne.\n\n---\nname: b\n---\n").body.startswith("One")


@pytest.mark.parametrize("text", ["a: &x {b: [*x]}\n", "x: {y: {z: [1]}}\n", "metadata: [a]\n"])
def test_odd_values_are_no_texts(text: str) -> None:
    found = memory(f"---\n{text}---\nb\n")
    assert (found.kind, found.description, found.subject) == ("", "", "")


def test_flow_metadata_are_not_edited() -> None:
    with pytest.raises(FormatError, match="form"):
        editing.edited("---\nname: a\nmetadata: {type: user}\n---\nb\n", "d", {"type": "user"}, "b")
