"""Which engine may work: nothing leaves the machine before somebody agreed to that host."""

from __future__ import annotations

from pathlib import Path

import pytest
from traitlets.config import Config

from ipymemory import consent, engines
from ipymemory.config import Settings
from ipymemory.places import Project

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
