"""Settings: what is refused and in what words, and what a changed file changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from traitlets import TraitError
from traitlets.config import Config

from ipymemory.config import Settings
from ipymemory.config_reading import completed, read_config_files
from ipymemory.setting_classes import CLASSES


@pytest.mark.parametrize(
    ("section", "name", "value", "allowed"),
    [
        ("SessionNotes", "wait_seconds", -1, "a number from 0 to 3600"),
        ("SessionNotes", "wait_seconds", float("nan"), "a number from 0 to 3600"),
        ("SessionNotes", "rounds", "many", "a whole number from 1 to 100"),
        ("SessionNotes", "rounds", 0, "a whole number from 1 to 100"),
        ("Memory", "keep_days", 0, "a whole number from 1 up"),
        ("Memory", "mode", "sometimes", "one of auto, confirm, read, off"),
        ("Memory", "share_worktrees", "yes please", "True or False"),
        ("Memory", "home", 7, "text"),
    ],
)
def test_a_wrong_value_is_refused_with_what_is_allowed(
    section: str, name: str, value: Any, allowed: str
) -> None:
    settings, refused = Settings.read(Config({section: {name: value}}))
    default = Settings().as_dict()[section][name]
    assert refused == (
        f"{section}.{name} must be {allowed}, not {value!r}. It is {default!r} until you mend the "
        "config file or command line that sets it.",
    )
    assert settings.as_dict() == Settings().as_dict()


@pytest.mark.spec("S4")
def test_config_magic_refuses_and_leaves_the_value(  # what %config calls
) -> None:
    notes = Settings().session_notes
    notes.update_config(Config({"SessionNotes": {"wait_seconds": 5}}))
    with pytest.raises(TraitError, match="from 0 to 3600"):
        notes.update_config(Config({"SessionNotes": {"wait_seconds": -5}}))
    assert notes.wait_seconds == 5
    notes.update_config(Config({"SessionNotes": {"rounds": 7}}))
    assert (notes.wait_seconds, notes.rounds) == (5, 7)


def test_an_unknown_setting_is_named_with_what_there_is() -> None:
    _, refused = Settings.read(Config({"SessionNotes": {"wait_secs": 3}}))
    assert len(refused) == 1
    assert refused[0].startswith("SessionNotes has no setting wait_secs; it has ")
    assert " enabled, " in refused[0]
    assert refused[0].endswith(". Mend the config file or command line that sets it.")


def test_one_wrong_line_does_not_cost_the_others() -> None:
    config = Config({"SessionNotes": {"rounds": 0, "minutes": 2}, "InteractiveShell": {"x": 1}})
    settings, refused = Settings.read(config)
    assert len(refused) == 1
    assert settings.session_notes.minutes == 2


def test_every_setting_has_help_and_a_default_that_is_allowed() -> None:
    for section in CLASSES:
        for name, trait in section.class_traits(config=True).items():
            assert trait.help.endswith((".", ")")), f"{section.__name__}.{name}"
        defaults = {name: getattr(section(), name) for name in section.class_traits(config=True)}
        assert not section.refusals(defaults)


def test_settings_cross_the_pipe_and_come_back() -> None:
    settings = Settings(Config({"SessionNotes": {"rounds": 7}, "Memory": {"mode": "read"}}))
    assert Settings.from_dict(settings.as_dict()).as_dict() == settings.as_dict()


@pytest.mark.spec("S4")
def test_a_changed_file_sets_what_it_says_differently_and_nothing_else() -> None:
    settings = Settings()
    settings.session_notes.update_config(Config({"SessionNotes": {"rounds": 7}}))
    before = {"SessionNotes": {"wait_seconds": 1.0}}
    settings.take({"SessionNotes": {"wait_seconds": 3, "minutes": 99}}, before)
    notes = settings.session_notes
    assert (notes.wait_seconds, notes.rounds, notes.minutes) == (3, 7, 3)
    settings.take({}, {"SessionNotes": {"wait_seconds": 3}})
    assert (notes.wait_seconds, notes.rounds) == (1, 7), "a line that is gone gives the default"
    settings.take({}, {"SessionNotes": {"no_such_setting": 3}})


def test_config_files_are_merged_and_a_broken_one_is_said(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("c.SessionNotes.rounds = 3\nc.SessionNotes.minutes = 1\n")
    (tmp_path / "b.json").write_text('{"SessionNotes": {"rounds": 5}}')
    (tmp_path / "c.py").write_text("c.SessionNotes.rounds = (\n")
    names = ("a.py", "b.json", "c.py", "absent.py")
    config, failed = read_config_files([tmp_path / name for name in names])
    assert config == {"SessionNotes": {"rounds": 5, "minutes": 1}}
    assert len(failed) == 1
    assert str(tmp_path / "c.py") in failed[0].sentence
    assert "SyntaxError" in failed[0].sentence
    assert not failed[0].private


@pytest.mark.spec("L7")
def test_a_mistyped_privacy_does_not_fall_open() -> None:
    settings, refused = Settings.read(Config({"Privacy": {"outputs": "no-tabels"}}))
    assert settings.privacy.outputs == "none"
    assert "Nothing is recorded until you mend" in refused[0]
    assert settings.held == refused[0]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.py", "# c.Memory.mode\nc.SessionNotes.rounds = 0\n"),
        ("a.json", '{"SessionNotes": {\n "minutes": 1,\n "rounds": 0}}'),
    ],
)
def test_a_wrong_value_names_the_file_that_sets_it(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    (tmp_path / "z.py").write_text("# c.SessionNotes.rounds = 10\nc.SessionNotes.minutes = 1\n")
    files = [tmp_path / name, tmp_path / "z.py", tmp_path / "absent.json"]
    _, refused = Settings.read(read_config_files(files)[0], files)
    assert len(refused) == 1
    assert refused[0].endswith(f"not 0. It is 10 until you mend {tmp_path / name}.")


def test_a_file_that_ipython_could_not_read_is_found_out(tmp_path: Path) -> None:
    sections = [each.__name__ for each in CLASSES]
    broken, fine, foreign = tmp_path / "a.py", tmp_path / "b.py", tmp_path / "c.py"
    broken.write_text("c.Privacy.outputs = no_such_name\n")
    fine.write_text("open('was run', 'w')\nc.Memory.keep_days = 7\n")
    foreign.write_text("c.TerminalInteractiveShell.colors = (\n# c.Engine.name = 'x'\n")
    made, found = completed([broken, fine, foreign], {"Memory": {"keep_days": 7}}, {}, sections)
    assert [(each.sentence, each.private) for each in found] == [
        (
            f"The config file {broken} was left out: NameError: name 'no_such_name' is not "
            "defined. It speaks of Privacy, so nothing is recorded until you mend it; then it is "
            "read again by itself.",
            True,
        )
    ]
    assert not Path("was run").exists(), "a file that was read is not run again"
    assert made == {"Memory": {"keep_days": 7}}


@pytest.mark.spec("L7")
def test_a_file_with_privacy_that_was_mended_since_ipython_started_is_read(tmp_path: Path) -> None:
    mended = tmp_path / "a.py"
    mended.write_text("c.Privacy.outputs = 'shapes'\n")
    made, found = completed([mended], {}, {}, ["Memory", "Privacy"])
    assert (made, found) == ({"Privacy": {"outputs": "shapes"}}, ())


@pytest.mark.spec("L7")
@pytest.mark.parametrize("other", ["file", "flag"])
def test_a_broken_file_with_privacy_does_not_hide_behind_another(
    tmp_path: Path, other: str
) -> None:
    fine, broken = tmp_path / "a.py", tmp_path / "b.py"
    broken.write_text("c.Privacy.outputs = 'none'\nimport no_such_module\n")
    told = {"Privacy": {"sent_outputs": "all"}}
    if other == "file":
        fine.write_text("c.Privacy.sent_outputs = 'all'\n")
    flags = told if other == "flag" else {}
    made, found = completed([fine, broken], told, flags, ["Privacy"])
    assert made == told
    assert [each.private for each in found] == [True]
    settings, said = Settings.read(made, [fine, broken], found)
    assert settings.held == said[0] == found[0].sentence
    assert settings.as_dict()["Privacy"] == {
        "outputs": "none",
        "sent_outputs": "none",
        "files": ["*"],
    }


@pytest.mark.spec("L7")
def test_names_of_files_that_stay_closed_are_added_and_one_is_opened_by_an_exclamation_mark() -> (
    None
):
    built_in = Settings().privacy.closed
    assert {"*.pem", "*.csv", "*.parquet"} <= set(built_in)
    one = Settings.from_dict({"Privacy": {"files": ["*.csv", "patients*"]}}).privacy
    assert one.closed == (*built_in, "patients*")
    opened = Settings.from_dict({"Privacy": {"files": ["!*.csv"]}}).privacy
    assert set(built_in) - set(opened.closed) == {"*.csv"}


@pytest.mark.parametrize("values", [{"output": "none"}, {"files": ["*.csv", 1]}, "none"])
def test_whatever_is_wrong_with_privacy_holds_recording(values: object) -> None:
    settings, said = Settings.read({"Privacy": values})
    assert settings.held
    assert "Nothing is recorded until you mend" in said[0]
    assert settings.privacy.outputs == "none"
    settings.judge({"Privacy": {"sent_outputs": "shapes"}}, ())
    assert not settings.held
    assert (settings.privacy.outputs, settings.privacy.sent_outputs) == ("all", "shapes")


def test_what_is_wrong_elsewhere_holds_nothing(tmp_path: Path) -> None:
    broken = tmp_path / "a.py"
    broken.write_text("# c.Privacy.outputs = 'none'\nc.Memory.mode = (\n")
    made, found = completed([broken], {}, {}, ["Memory", "Privacy"])
    assert len(found) == 1
    settings, said = Settings.read({**made, "Dream": {"hours": "x"}}, [broken], found)
    assert not settings.held
    assert len(said) == 2
    assert settings.privacy.outputs == "all"
