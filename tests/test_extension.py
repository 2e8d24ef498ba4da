"""Loading and unloading: what goes into a real shell comes out of it, and what loading says."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from kernels import eventually
from traitlets.config import Config
from traitlets.config.loader import DeferredConfigString

from ipymemory import extension, processes, sessions
from ipymemory.config import Settings
from ipymemory.config_watch import ConfigWatch
from ipymemory.places import Project, project_of
from ipymemory.transcript import Transcript, TranscriptWriter
from ipymemory.turns import Happening, Turn, new_id, utc_now

TOP = Path(__file__).parent.parent

Run = Callable[[str], str]


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a notebook, as a server would tell of it, and a home of its own."""
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "counts.ipynb").write_text("{}")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("IPYMEMORY_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("JPY_SESSION_NAME", str(folder / "counts.ipynb"))
    return folder


@pytest.fixture
def project(work: Path) -> Project:
    return project_of(work, work.parent / "home")


@pytest.fixture
def new_shell() -> Iterator[Callable[..., Any]]:
    made: list[Any] = []

    def new(**config: dict[str, Any]) -> Any:
        settings = Config({"HistoryManager": {"enabled": False}, **config})
        made.append(InteractiveShell(config=settings))
        return made[-1]

    yield new
    for each in made:
        extension.unload(each)
        each.restore_sys_module_state()


@pytest.fixture
def shell(new_shell: Callable[..., Any]) -> Any:
    return new_shell()


@pytest.fixture
def run(shell: Any, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a cell; return all that it printed."""

    def one(source: str) -> str:
        capsys.readouterr()
        shell.run_cell(source, store_history=True)
        said = capsys.readouterr()
        return said.out + said.err

    return one


def until(true: Callable[[], bool], seconds: float = 15.0) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.02)


def turns(project: Project) -> list[list[str]]:
    """Return the sources on record, a list for each session, oldest first."""
    found = []
    for _, folder in reversed(sessions.every(project)):
        transcript = Transcript(folder.transcript)
        transcript.follow()
        found.append([each.source for each in transcript.entries if isinstance(each, Turn)])
    return found


def inside(shell: Any) -> dict[str, Any]:
    """Return all that an extension could leave in a shell or in the process."""
    return {
        "magics": {kind: dict(table) for kind, table in shell.magics_manager.magics.items()},
        "registry": dict(shell.magics_manager.registry),
        "configurables": list(map(id, shell.configurables)),
        "transformers": list(shell.input_transformers_cleanup),
        "callbacks": {name: list(each) for name, each in shell.events.callbacks.items()},
        "names": set(shell.user_ns),
        "attribute": hasattr(shell, extension.ATTRIBUTE),
        "handlers": list(logging.getLogger("ipymemory").handlers),
        "propagate": logging.getLogger("ipymemory").propagate,
        "threads": {each.name for each in threading.enumerate() if each.name.startswith("ipym")},
        "streams": (sys.stdout, sys.stderr),
    }


@pytest.mark.spec("L1")
def test_unloading_leaves_nothing(shell: Any, run: Run) -> None:
    run("x = 1")
    # newer versions load their own magics when the first is looked for
    getattr(shell.magics_manager, "load_all_lazy_magics", lambda: None)()
    before = inside(shell)
    run("%load_ext ipymemory")
    assert inside(shell) != before
    run("x = 2\nprint(x)")
    run("%unload_ext ipymemory")
    until(lambda: not inside(shell)["threads"])
    after = inside(shell)
    before["names"] |= {each for each in after["names"] if each.startswith("_")}
    assert after == before


@pytest.mark.spec("L1")
def test_loading_twice_says_it_once_and_records_once(
    run: Run, shell: Any, project: Project
) -> None:
    assert run("%load_ext ipymemory").startswith("ipymemory: ")
    assert "already loaded" in run("%load_ext ipymemory")
    extension.load(shell)
    run("x = 1")
    assert turns(project) == [["x = 1"]]


@pytest.mark.spec("L1")
def test_reloading_goes_on_and_doubles_nothing(run: Run, shell: Any, project: Project) -> None:
    run("%load_ext ipymemory")
    run("x = 1")
    before = {name: len(each) for name, each in shell.events.callbacks.items()}
    said = run("%reload_ext ipymemory")
    assert "was here before" in said
    assert "No variable" not in said, "it is the same kernel"
    run("x = 2")
    assert {name: len(each) for name, each in shell.events.callbacks.items()} == before
    assert turns(project) == [["x = 1", "x = 2"]]

    def names() -> list[str]:
        found = [each.name for each in threading.enumerate()]
        return sorted(each for each in found if each.startswith("ipymemory-"))

    until(lambda: names() == ["ipymemory-outputs", "ipymemory-reader", "ipymemory-sender"])


@pytest.mark.spec("L1")
def test_a_magic_of_the_users_own_stays_when_ours_goes(run: Run, shell: Any) -> None:
    run("%load_ext ipymemory")
    run("from IPython.core.magic import register_line_magic\n"
        "@register_line_magic\ndef memory(line):\n    print('mine')")  # fmt: skip
    run("%unload_ext ipymemory")
    assert run("%memory") == "mine\n"


@pytest.mark.spec("L2")
def test_nothing_is_printed_into_a_cell_that_did_not_ask(run: Run) -> None:
    run("%load_ext ipymemory")
    assert run("x = 1") == ""
    assert run("print('x')") == "x\n"
    assert "ZeroDivisionError" in run("1/0")
    assert run("x") == "Out[4]: 1\n" or run("x").endswith("1\n")


def test_the_first_line_says_engine_project_and_memories(run: Run, project: Project) -> None:
    assert run("%load_ext ipymemory") == (
        "ipymemory: notes by the built-in extractive engine (no model, no network), "
        "project work, no memories yet.\n"
    )
    assert not project.home.exists(), "loading writes nothing"


@pytest.mark.spec("L5")
def test_the_line_after_a_restart_names_title_variables_and_the_cell_that_killed(
    project: Project, work: Path, run: Run
) -> None:
    dead = replace(processes.own(), pid=2**22 + 7)
    notebook = work / "counts.ipynb"
    found = notebook.stat()
    who = sessions.Identity(notebook, (found.st_dev, found.st_ino), "", terminal=False)
    now = sessions.datetime.now(sessions.UTC)
    folder = sessions.claim(project, who, now, dead).folder
    writer = TranscriptWriter(folder, folder.id)
    cell = {"type": "cell", "id": new_id(), "time": utc_now(), "kernel": 1}
    writer.append({**cell, "source": "import os\nos.abort()"})
    writer.close()
    folder.notes.write_text("# Session Title\n_What it is._\n\ncounting bicycles\n")
    assert run("%load_ext ipymemory") == (
        "ipymemory: notes by the built-in extractive engine (no model, no network), "
        "project work, no memories yet. This notebook was here before: counting bicycles. "
        "No variable of its last kernel is left; %memory resume brings them back. "
        "That kernel died while this cell was running: "
        "import os…\n"
    )
    run("x = 1")
    assert turns(project) == [["import os\nos.abort()", "x = 1"]]
    transcript = Transcript(folder.transcript)
    transcript.follow()
    kinds = [each.name for each in transcript.entries if isinstance(each, Happening)]
    assert kinds == ["restarted"]
    assert [each.kernel for each in transcript.entries if isinstance(each, Turn)] == [1, 2]


def test_the_hook_loads_without_a_word(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    extension.load_quietly(shell)
    said = capsys.readouterr()
    assert said.out + said.err == ""
    assert "ipymemory" in shell.extension_manager.loaded
    assert "memory" in shell.magics_manager.magics["line"]


@pytest.mark.spec("S4")
def test_config_shows_changes_and_refuses(shell: Any, run: Run) -> None:
    run("%load_ext ipymemory")
    run("x = 1")
    assert run("%config SessionNotes.wait_seconds = 3") == ""
    live = getattr(shell, extension.ATTRIBUTE).live
    assert live.settings.session_notes.wait_seconds == 3
    assert "SessionNotes.wait_seconds" in run("%config SessionNotes")
    run("%config SessionNotes.wait_seconds = -3")
    assert live.settings.session_notes.wait_seconds == 3


@pytest.mark.spec("S4")
def test_a_changed_setting_reaches_the_worker(shell: Any, run: Run, project: Project) -> None:
    run("%load_ext ipymemory")
    run("%config SessionNotes.wait_seconds = 3600")
    run("x = 1")
    time.sleep(0.3)
    _, folder = sessions.every(project)[0]
    assert not folder.notes.exists()
    run("%config SessionNotes.wait_seconds = 0")
    until(lambda: folder.notes.exists() and "x = 1" in folder.notes.read_text())


def test_a_wrong_setting_of_a_config_file_is_said_once_and_has_its_default(
    new_shell: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    shell = new_shell(Memory={"keep_days": 0}, SessionNotes={"minutes": 2})
    capsys.readouterr()
    shell.run_line_magic("load_ext", "ipymemory")
    said = capsys.readouterr().out.splitlines()
    assert said[1:] == [
        "Memory.keep_days must be a whole number from 1 up, not 0. It is 400 until you mend the "
        "config file or command line that sets it."
    ]
    settings = getattr(shell, extension.ATTRIBUTE).settings
    assert (settings.memory.keep_days, settings.session_notes.minutes) == (400, 2)


def test_a_home_that_cannot_be_is_told_in_status_and_not_in_the_cell(run: Run, work: Path) -> None:
    (work.parent / "home").write_text("a file where the home folder should be")
    assert run("%load_ext ipymemory").startswith("ipymemory: ")
    assert run("x = 1\nprint(x)") == "1\n"
    shown = run("%memory status")
    assert "- Recording off. " in shown
    assert str(work.parent / "home") in shown


@pytest.mark.spec("L2")
def test_our_warnings_stay_out_of_cells_whatever_logging_the_user_set_up(
    run: Run, work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (work.parent / "home").write_text("a file where the home folder should be")
    run("%load_ext ipymemory")
    root = logging.getLogger()
    before = root.handlers[:]
    root.handlers[:] = [logging.StreamHandler(sys.stdout)]
    try:
        assert run("x = 1") == ""
        assert "home" in run("%memory status")
    finally:
        root.handlers[:] = before


def test_the_project_is_a_folder_that_is_gone(
    run: Run, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JPY_SESSION_NAME")
    gone = work / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert run("%load_ext ipymemory").startswith("ipymemory: ")


def test_pause_and_resume(run: Run, project: Project) -> None:
    run("%load_ext ipymemory")
    run("x = 1")
    assert "Recording is paused" in run("%memory pause")
    run("x = 2")
    assert "- Recording paused" in run("%memory status")
    run("%memory resume-recording")
    run("x = 3")
    assert turns(project) == [["x = 1", "x = 3"]]


def test_what_ran_while_paused_does_not_come_back_as_history(run: Run, project: Project) -> None:
    run("before = 1")
    run("%load_ext ipymemory")
    run("%memory pause")
    run("hidden = 1")
    run("%memory resume-recording")
    run("x = 1")
    run("%memory pause")
    run("hidden = 2")
    run("%unload_ext ipymemory")
    run("between = 1")
    run("%load_ext ipymemory")
    run("x = 2")
    assert turns(project) == [["before = 1", "x = 1", "between = 1", "x = 2"]]


def test_after_a_purge_the_next_cell_begins_a_new_session(
    run: Run, shell: Any, project: Project
) -> None:
    run("%load_ext ipymemory")
    run("x = 1")
    (first,) = sessions.every(project)
    assert "Removed: 1 session" in run("%memory purge this session --yes")
    assert not first[1].path.exists()
    run("x = 2")
    assert turns(project) == [["x = 2"]]
    run("%memory pause")
    run("%memory purge this session --yes")
    run("x = 3")
    assert turns(project) == [], "a pause outlasts a purge"
    run("%memory resume-recording")
    run("x = 4")
    assert turns(project) == [["x = 4"]]


@pytest.mark.spec("L13")
def test_no_shell_of_ours_is_configured_from_the_notebooks_folder(
    run: Run, work: Path, shell: Any
) -> None:
    for name in ("ipython_config.py", "ipymemory_config.py"):
        (work / name).write_text("c.Memory.keep_days = 5\n")
    run("%load_ext ipymemory")
    run("x = 1")
    run("%memory status")
    assert getattr(shell, extension.ATTRIBUTE).settings.memory.keep_days == 400


@pytest.mark.spec("S4")
@pytest.mark.parametrize("how", ["check", "nudge"])
def test_a_changed_config_file_is_taken_over(tmp_path: Path, how: str) -> None:
    file = tmp_path / "ipython_config.py"
    file.write_text("c.SessionNotes.rounds = 5\n")
    config = {"SessionNotes": {"rounds": 5, "minutes": 1.0}}
    settings = Settings(Config(config))
    watch = ConfigWatch(
        [file], settings, config, {"SessionNotes": {"minutes": DeferredConfigString("1.0")}}
    )
    try:
        file.write_text("c.SessionNotes.rounds = 6\nc.SessionNotes.wait_seconds = -1\n")
        getattr(watch, how)()
        until(lambda: settings.session_notes.rounds == 6)
        assert settings.session_notes.minutes == 1, "what the command line said stays"
        until(lambda: bool(watch.refused))
        assert watch.refused == (
            "SessionNotes.wait_seconds must be a number from 0 to 3600, not -1. "
            f"It is 1.0 until you mend {file}.",
        )
        file.write_text("c.SessionNotes.rounds = 6\nc.SessionNotes.wait_seconds = -1\n# more\n")
        watch.check()
        assert len(watch.refused) == 1, "it is still wrong after another change"
        settings.session_notes.update_config(Config({"SessionNotes": {"rounds": 9}}))
        file.write_text("c.SessionNotes.rounds = 6\nc.SessionNotes.section_tokens = 500\n")
        watch.check()
        assert settings.session_notes.section_tokens == 500
        assert settings.session_notes.rounds == 9, "set by %config; the file says nothing new of it"
        file.write_text("c.SessionNotes.rounds = (\n")
        watch.check()
        assert "SyntaxError" in watch.refused[0]
        assert settings.session_notes.rounds == 9
        file.unlink()
        watch.check()
        assert settings.session_notes.rounds == 10, "the default again"
    finally:
        watch.close()


@pytest.mark.spec("S4")
def test_ipythons_own_files_are_watched(tmp_path: Path) -> None:
    """In a real terminal IPython with a profile of its own."""
    config = tmp_path / "ipython" / "profile_default" / "ipython_config.py"
    config.parent.mkdir(parents=True)
    config.write_text("c.Memory.keep_days = 7\n")
    code = (
        "get_ipython().run_line_magic('load_ext', 'ipymemory')\n"
        "settings = get_ipython()._ipymemory.settings\n"
        "print(settings.memory.keep_days)\n"
        f"open({str(config)!r}, 'w').write('c.Memory.keep_days = 70')\n"
        "get_ipython().run_line_magic('memory', 'mode')\n"
        "print(settings.memory.keep_days)\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "IPython", "--no-banner", "--colors=NoColor", "-c", code],
        env={**os.environ, "PYTHONPATH": str(TOP), "IPYTHONDIR": str(tmp_path / "ipython")},
        capture_output=True,
        text=True,
        check=True,
    )
    said = done.stdout.splitlines()
    assert [each for each in said if each.isdecimal()] == ["7", "70"], done.stdout + done.stderr


if hasattr(os, "fork"):  # a system without it has no such children

    def test_a_forked_child_closes_nothing_of_its_parents(run: Run, project: Project) -> None:
        run("%load_ext ipymemory")
        run("x = 1")
        said = run(
            "import os\n"
            "pid = os.fork()\n"
            "if pid == 0:\n"
            "    get_ipython()._ipymemory.live.at_exit()\n"
            "    os._exit(0)\n"
            "print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))"
        )
        assert said.endswith("0\n")
        run("x = 3")
        assert turns(project)[0][-1] == "x = 3"
        record, _ = sessions.every(project)[0]
        assert record.kernel == processes.own()


@pytest.mark.spec("L2")
@pytest.mark.parametrize(
    "wiped",
    [
        "for each in get_ipython().events.callbacks.values(): each.clear()",
        "get_ipython().events.callbacks = {n: [] for n in get_ipython().events.callbacks}",
        "get_ipython().events.callbacks['post_run_cell'].clear()",
    ],
)
def test_it_is_said_when_no_cell_is_seen_any_more_and_reloading_mends_it(
    run: Run, project: Project, wiped: str
) -> None:
    run("%load_ext ipymemory")
    run("x = 1")
    assert "- Recording on" in run("%memory")
    run(wiped)
    run("x = 2")
    said = run("%memory")
    assert "- Recording off. Something took the callbacks out of this shell" in said
    assert "Nothing is recorded." in run("%memory doctor")
    run("%reload_ext ipymemory")
    assert "- Recording on" in run("%memory")
    run("x = 3")
    assert turns(project)[-1][-1] == "x = 3"


@pytest.mark.spec("L12", "L5")
def test_a_notebook_that_was_here_before_shows_what_it_left_before_its_first_cell(
    run: Run,
    new_shell: Callable[..., Any],
    work: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run("%load_ext ipymemory")
    run("gauge = 812\ngauge")
    assert "gauge" in run("%memory notes --now")
    run("%unload_ext ipymemory")

    def first_page(notebook: str) -> str:
        monkeypatch.setenv("JPY_SESSION_NAME", str(work / notebook))
        shell = new_shell()
        shell.run_cell("%load_ext ipymemory")
        capsys.readouterr()
        shell.run_cell("%memory notes")
        said = capsys.readouterr().out
        extension.unload(shell)
        return said

    assert "gauge" in first_page("counts.ipynb")
    (work / "other.ipynb").write_text("{}")
    assert first_page("other.ipynb") == (
        "There are no notes yet: they begin with the first cell that runs.\n"
    )


def profile(folder: Path) -> Path:
    """Return IPython's config file below `folder`; its own folder exists."""
    file = folder / "ipython" / "profile_default" / "ipython_config.py"
    file.parent.mkdir(parents=True, exist_ok=True)
    return file


@pytest.mark.spec("L7")
@pytest.mark.kernel
@pytest.mark.parametrize("broken", ["c.Privacy.outputs = (\n", "c.Privacy.outputs = 'nothing'\n"])
def test_a_privacy_that_cannot_be_read_holds_recording_until_it_is_mended(
    new_kernel: Callable[..., Any], tmp_path: Path, broken: str
) -> None:
    config = profile(tmp_path)
    config.write_text(broken)
    kernel = new_kernel()
    said = kernel.run("%load_ext ipymemory").text
    assert f"{config}" in said
    assert "othing is recorded until you mend" in said
    kernel.run("held = 'first'\nprint(held * 2)")
    kernel.run("%memory status")
    kernel.run("%memory remember the held one")
    assert "othing is recorded until you mend" in kernel.run("%memory status").text
    assert kernel.lines() == []
    config.write_text("c.Privacy.outputs = 'shapes'\n")
    eventually(lambda: "Recording** on" in kernel.run("%memory status").markdown, "it goes on")
    kernel.run("open = 'second'\nprint(open * 2)")
    recorded = kernel.recorded("open = 'second'\nprint(open * 2)")
    assert "secondsecond" not in str(recorded["outputs"]), "by what the mended file says"
    assert "held" not in str(kernel.lines()), "what ran meanwhile is not entered afterwards"
    config.write_text("c.Privacy.outputs = (\n")
    kernel.run("%memory status")
    kernel.run("held = 'third'")
    kernel.run("%reload_ext ipymemory")
    kernel.run("held = 'fourth'")
    config.write_text("c.Privacy.outputs = 'all'\n")
    # No command: the cells themselves have the file looked at.
    eventually(
        lambda: kernel.run("print('fi' + 'fth')") and "fifth" in str(kernel.lines()), "recorded"
    )
    assert "held" not in str(kernel.lines())


@pytest.mark.spec("L7")
def test_what_config_said_of_privacy_outlasts_a_reload(run: Run, shell: Any) -> None:
    run("%load_ext ipymemory")
    run("%config Privacy.outputs = 'none'")
    run("%reload_ext ipymemory")
    assert getattr(shell, extension.ATTRIBUTE).settings.privacy.outputs == "none"


@pytest.mark.spec("L7")
def test_a_wrong_privacy_of_a_shell_without_files_holds_after_a_reload_too(
    new_shell: Callable[..., Any], work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shell = new_shell(Privacy={"outputs": "no-tabels"})
    for magic in ("load_ext", "reload_ext"):
        shell.run_line_magic(magic, "ipymemory")
        assert "Nothing is recorded until you mend" in capsys.readouterr().out
        shell.run_cell("x = 1", store_history=True)
        assert getattr(shell, extension.ATTRIBUTE).live.folder is None
    shell.run_line_magic("unload_ext", "ipymemory")
