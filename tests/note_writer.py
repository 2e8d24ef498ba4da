"""A model that writes session notes, as a `ModelServer` plays it."""

from __future__ import annotations

from typing import Any

from model_server import tool

from ipymemory import markdown


def asked_notes(body: dict[str, Any]) -> str:
    """Return the notes that a request shows, nothing where it is none for notes."""
    content = body["messages"][-1]["content"]
    text = content if isinstance(content, str) else str(content[0].get("text", ""))
    if "Bring the session notes up to date" not in text:
        return ""
    return text.partition("<notes>\n")[2].partition("\n</notes>")[0]


class Writer:
    """A model that writes lines into sections, in one round of calls; ``{n}`` counts its runs."""

    def __init__(self, **edits: str) -> None:
        self.edits: dict[str, str] = {k.replace("_", " "): v for k, v in edits.items()}
        self.seen: list[str] = []
        self.told: list[str] = []
        self.path = "notes.md"

    def __call__(self, body: dict[str, Any], number: int) -> Any:
        notes = asked_notes(body)
        if not notes:
            content = body["messages"][-1]["content"]
            if isinstance(content, list):
                self.told += [e["content"] for e in content if e["type"] == "tool_result"]
            return "Done."
        self.seen.append(notes)
        calls = []
        for name, text in self.edits.items():
            found = markdown.section(notes + "\n", name)
            assert found is not None, name
            old = f"{found.header}\n{found.italic}\n{found.body}".rstrip("\n")
            text = text.replace("{n}", str(len(self.seen)))
            new = f"{found.header}\n{found.italic}\n\n{text}"
            call = {"path": self.path, "old_string": old, "new_string": new}
            calls.append(tool("Edit", call, f"call_{len(calls)}"))
        return calls or "Nothing new."
