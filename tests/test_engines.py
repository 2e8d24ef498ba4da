"""Which engine may work: nothing leaves the machine before somebody agreed to that host."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from traitlets.config import Config

from ipymemory import cli, consent, engines, greeting
from ipymemory.assistant import NO_MODEL
from ipymemory.commands import table
from ipymemory.commands.pages import Page
from ipymemory.commands.place import Place
from ipymemory.config import Settings
from ipymemory.cost import Ledger
from ipymemory.errors import CommandError
from ipymemory.models import Usage
from ipymemory.places import Project
from ipymemory.sessions import Identity

KEY = {"ANTHROPIC_API_KEY": "k"}
OLLAMA = {"ANTHROPIC_BASE_URL": "http://localhost:11434"}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path, "p-1", tmp_path / "home" / "projects" / "p-1")


def other(project: Project) -> Project:
    return Project(project.root, "p-2", project.folder.parent / "p-2")


@pytest.mark.spec("L12")
def test_a_key_alone_sends_nothing(project: Project) -> None:
    assert engines.choose(project, Settings(), KEY).name == "extractive"


@pytest.mark.spec("L12")
def test_consent_is_for_one_project_and_one_host(project: Project) -> None:
    consent.choose(project, "anthropic", "api.anthropic.com")
    assert engines.choose(project, Settings(), KEY).host == "api.anthropic.com"
    moved = engines.choose(project, Settings(), OLLAMA)
    assert moved.name == "extractive" and "localhost:11434" in moved.reason
    assert engines.choose(other(project), Settings(), KEY).name == "extractive"
    consent.choose(project, "anthropic", "localhost:11434")
    assert engines.choose(project, Settings(), OLLAMA).name == "anthropic"
    assert engines.choose(project, Settings(), KEY).name == "anthropic"


def test_going_back_ends_it(project: Project) -> None:
    consent.choose(project, "anthropic", "api.anthropic.com")
    consent.choose(project, "extractive")
    assert engines.choose(project, Settings(), KEY).name == "extractive"


def test_everywhere_is_everywhere_but_where_something_else_was_chosen(project: Project) -> None:
    consent.choose(other(project), "extractive")
    consent.choose(project, "anthropic", "api.anthropic.com", everywhere=True)
    assert engines.choose(project, Settings(), KEY).name == "anthropic"
    assert engines.choose(other(project), Settings(), KEY).name == "extractive"


def test_a_config_file_is_consent(project: Project) -> None:
    settings = Settings(Config({"Engine": {"name": "anthropic"}}))
    assert engines.choose(project, settings, KEY).name == "anthropic"


@pytest.mark.spec("L10")
def test_in_mode_off_no_engine_is_called(project: Project) -> None:
    consent.choose(project, "anthropic", "api.anthropic.com")
    project.set_property("mode", "off")
    found = engines.choose(project, Settings(), KEY)
    assert found.name == "extractive" and "Mode off" in found.reason


@pytest.mark.parametrize("text", ["{", "[]", '{"engine": 3}', '{"engine": {"hosts": []}}'])
def test_a_record_that_cannot_be_read_gives_no_consent(project: Project, text: str) -> None:
    project.record.parent.mkdir(parents=True)
    project.record.write_text(text)
    (project.home / "state.json").write_text(text)
    assert engines.choose(project, Settings(), KEY).name == "extractive"
    assert not consent.given(project, "api.anthropic.com")


def call(project: Project, line: str) -> Page:
    place = Place(Settings(), project.home, project, ask=lambda question: None, prefix="ipymemory ")
    return table.call(place, line.split())


@pytest.mark.spec("L12")
def test_choosing_says_where_it_goes_and_how_to_end_it(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://localhost:11434")
    assert "nothing leaves this machine" in call(project, "engine").markdown
    page = call(project, "engine anthropic")
    assert page.data == {"engine": "anthropic", "host": "localhost:11434"}
    assert "on this machine" in page.markdown and "engine extractive ends this" in page.markdown
    assert "claude-haiku-5-5 at localhost:11434" in call(project, "status").markdown
    assert call(project, "engine extractive").data["engine"] == "extractive"


def test_a_missing_key_is_told_at_once(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    told = call(project, "engine anthropic").markdown
    assert "no ANTHROPIC_API_KEY" in told and "outside this machine" in told


def test_a_key_that_is_not_used_is_mentioned(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    told = call(project, "status").markdown
    assert "is not used; ipymemory engine anthropic does" in told


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("engine antropic", "did you mean anthropic"),
        ("engine --everywhere", "Say which engine"),
        ("preview", "no conversation here"),
        ("compact", "no conversation here"),
    ],
)
def test_a_wrong_call_gets_the_right_form(project: Project, line: str, word: str) -> None:
    with pytest.raises(CommandError, match=word):
        call(project, line)


def test_an_address_that_is_none_is_refused(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://[")
    with pytest.raises(CommandError, match="ANTHROPIC_BASE_URL is no address"):
        call(project, "engine anthropic")


@pytest.mark.spec("L9")
def test_cost_says_what_went_and_what_it_cost(project: Project) -> None:
    assert "No model was called" in call(project, "cost").markdown
    Ledger(project).record("ask", "h", "claude-haiku-5-5", Usage(1_000, 100, 3_000))
    Ledger(project).record("ask", "h", "qwen3", Usage(1_000, 100))
    page = call(project, "cost")
    assert "2 calls, 5,000 tokens in (60% from the cache), 200 out" in page.markdown
    assert "1 call to a model without a known price" in page.markdown
    assert page.data["total"]["calls"] == page.data["today"]["calls"] == 2
    assert "of the day's 0.50 USD are left" in page.markdown and page.data["budget"]["open"]
    assert "Budget" not in call(project, "status").markdown
    consent.choose(project, "anthropic", "api.anthropic.com")
    assert "- **Budget** 0.50 USD of the day's" in call(project, "status").markdown
    Ledger(project).record("ask", "h", "claude-haiku-5-5", Usage(0, 1_000_000))
    for line in ("cost", "status"):
        page = call(project, line)
        assert "budget of 0.50 USD is spent (0.50 USD today); it opens again" in page.markdown
    assert not call(project, "cost").data["budget"]["open"]


@pytest.mark.spec("L12")
def test_loading_says_that_questions_go_to_a_model(project: Project) -> None:
    identity = Identity(project.root / "a.ipynb", None, "kernel.json", False)
    assert "%%ask" not in greeting.line(project, identity, datetime.now(UTC))[0]
    consent.choose(project, "anthropic", "api.anthropic.com")
    told, _ = greeting.line(project, identity, datetime.now(UTC))
    assert "Questions (%%ask) and a longer session's notes go to a model; %memory status" in told


def test_a_key_is_told_of_once_in_a_project(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    identity = Identity(project.root / "a.ipynb", None, "kernel.json", False)
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    assert "a key for" not in greeting.line(project, identity, datetime.now(UTC))[0]
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "of-a-test")
    told = greeting.line(project, identity, datetime.now(UTC))[0]
    assert "it is not used unless you type %memory engine anthropic" in told
    project.folder.mkdir(parents=True)
    assert "it is not used" not in greeting.line(project, identity, datetime.now(UTC))[0]


@pytest.mark.spec("L10")
def test_a_record_that_cannot_be_read_may_say_off(project: Project) -> None:
    settings = Settings(Config({"Engine": {"name": "anthropic"}}))
    project.record.parent.mkdir(parents=True)
    project.record.write_text("{")
    found = engines.choose(project, settings, KEY)
    assert found.name == "extractive" and str(project.record) in found.reason


@pytest.mark.parametrize("prefix", ["%memory ", "ipymemory "])
def test_what_choosing_a_model_says_names_only_commands_that_are_there(
    project: Project, prefix: str
) -> None:
    """What is said before anything is sent must be true in a notebook and in a shell."""
    place = Place(Settings(), project.home, project, ask=lambda question: None, prefix=prefix)
    said = table.call(place, ["engine", "anthropic"]).markdown
    known = table.COMMANDS if prefix == "%memory " else cli.line_commands()
    named = re.findall(rf"{prefix}([a-z-]+)", said)
    assert named and set(named) <= set(known)
    assert "%memory preview" in said
    # Nothing asks; to type it is the consent.
    assert "asks" not in NO_MODEL


def test_a_preview_without_a_model_says_that_nothing_is_sent(project: Project) -> None:
    class Conversation:
        def ask(self, name: str, timeout: float) -> dict[str, Any]:
            return {"host": "", "tokens": 2000, "parts": []}

    live: Any = Conversation()
    place = Place(Settings(), project.home, project, lambda _: None, "%memory ", live=live)
    said = table.call(place, ["preview"]).markdown
    assert said.startswith("Nothing is sent, since no model is chosen. With one, a question would")
