"""A table of forms in which secrets stand, each with several values, and of what is left whole."""

from __future__ import annotations

import random

import pytest
from secret_probes import SECRETS, WHOLE, forms, probes

from ipymemory.redaction import Masker, mask, mask_source


@pytest.mark.spec("L7")
@pytest.mark.parametrize("kind", SECRETS)
def test_no_form_of_a_kind_lets_a_secret_through(kind: str) -> None:
    leaked = []
    for form in (form for each, form in forms() if each == kind):
        for way, text, secrets in probes(form):
            # What the recorder asks first, so that most cells are asked nothing more.
            assert not Masker().leaves(text) or mask_source(text) == text
            masked = (mask if way == "text" else mask_source)(text)
            again = (mask if way == "text" else mask_source)(masked)
            leaked += [masked for each in secrets if each in masked]
            assert again == masked
    assert not leaked


@pytest.mark.spec("L7")
def test_what_looks_like_a_secret_stays_whole() -> None:
    texts = WHOLE.strip("\n").split("\n--\n")
    assert [text for text in texts if mask(text) != text or mask_source(text) != text] == []
    assert len(texts) >= 150


@pytest.mark.spec("L7")
@pytest.mark.parametrize("name", ["password", "db_password", "api_key", "secret"])
def test_the_column_of_a_frame_is_masked_with_and_without_its_index(name: str) -> None:
    source = random.Random(name)
    values = ["sword" + "fish7", "hunt" + "er2x!", "Tr0ub4dor", "G3heimnis-lang"]
    for position in range(4):
        for rows in (1, 2, 4):
            columns = [
                ("user", ["bob", "alice", "j r", "x@y.org"]),
                ("n", ["1", "20", "300", "4"]),
                ("day", ["2024-01-01"] * 4),
            ]
            source.shuffle(values)
            columns.insert(position, (name, values))
            for index in (False, True):
                masked = mask(printed(columns, rows, index))
                assert not [each for each in values[:rows] if each in masked], masked
                assert masked.count("2024-01-01") == rows


def printed(columns: list[tuple[str, list[str]]], rows: int, index: bool) -> str:
    """Return a frame as ``DataFrame.to_string`` prints it: every column to the right."""
    parts = [["", *map(str, range(rows))]] if index else []
    parts += [[head, *cells[:rows]] for head, cells in columns]
    wide = [max(map(len, part)) for part in parts]
    return "\n".join(
        (" " * (1 + index)).join(
            part[row].rjust(width) for part, width in zip(parts, wide, strict=True)
        )
        for row in range(rows + 1)
    )
