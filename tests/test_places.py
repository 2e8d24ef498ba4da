"""Where a notebook's memory lies, for each way in which people lay out their work."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import threading
import unicodedata
from pathlib import Path

import pytest

from ipymemory import gitfiles, places
from ipymemory.errors import FormatError, PlaceError
from ipymemory.places import Project, SessionFolder

HOME = Path("/nowhere/.ipymemory")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Move the user's home folder, and with it git's settings."""
    home = tmp_path / "me"
    home.mkdir()
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(home))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    for name in ("GIT_DIR", "GIT_WORK_TREE", "IPYMEMORY_HOME"):
        monkeypatch.delenv(name, raising=False)
    return home


def git(*words: str, at: Path) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always")
    command = ["git", *who, "-c", "init.defaultBranch=main", *words]
    subprocess.run(command, cwd=at, check=True, capture_output=True)


def repository(path: Path) -> Path:
    """Make a repository with one commit."""
    path.mkdir(parents=True)
    git("init", at=path)
    (path / "a.txt").write_text("a")
    git("add", ".", at=path)
    git("commit", "-m", "a", at=path)
    return path


def project(path: Path, *, share_worktrees: bool = True) -> Project:
    return places.project_of(path, HOME, share_worktrees=share_worktrees)


def test_the_top_of_the_work_tree_is_the_project_from_its_root_and_from_below(
    tmp_path: Path,
) -> None:
    root = repository(tmp_path / "work")
    below = root / "a" / "b"
    below.mkdir(parents=True)
    (below / "n.ipynb").write_text("{}")
    ways = (
        root,
        root / "new.ipynb",
        below,
        below / "n.ipynb",
        below / "new.ipynb",
        root / "x" / "y",
    )
    assert {project(way).root for way in ways} == {root}
    assert len({project(way).folder for way in ways}) == 1


def test_without_git_it_is_the_notebooks_folder(tmp_path: Path) -> None:
    folder = tmp_path / "work" / "deep"
    folder.mkdir(parents=True)
    assert project(folder / "n.ipynb").root == folder
    assert project(folder).root == folder
    assert project(folder.parent / "n.ipynb").root == folder.parent
    assert project(folder / "to come").root == folder / "to come"


def test_an_empty_folder_called_git_and_a_rubbish_file_are_no_repository(tmp_path: Path) -> None:
    root = repository(tmp_path / "work")
    (root / "sub" / ".git").mkdir(parents=True)
    (root / "other").mkdir()
    (root / "other" / ".git").write_bytes(b"\xff\x00 no git file")
    assert project(root / "sub" / "n.ipynb").root == root
    assert project(root / "other" / "n.ipynb").root == root


@pytest.mark.parametrize("where", ["beside", "inside"])
def test_a_linked_work_tree_shares_the_main_ones_memory(tmp_path: Path, where: str) -> None:
    main = repository(tmp_path / "work")
    linked = tmp_path / "linked" if where == "beside" else main / ".worktrees" / "2573"
    git("worktree", "add", "-b", "b", str(linked), at=main)
    (linked / "deep").mkdir()
    assert project(linked / "deep" / "n.ipynb") == project(main / "n.ipynb")
    alone = project(linked / "deep" / "n.ipynb", share_worktrees=False)
    assert alone.root == linked
    assert alone.folder != project(main).folder


def test_linked_work_trees_of_a_bare_repository_share_one_project(tmp_path: Path) -> None:
    source = repository(tmp_path / "source")
    git("clone", "--bare", str(source), str(tmp_path / "bare.git"), at=tmp_path)
    for name in ("one", "two"):
        git("worktree", "add", "-b", name, str(tmp_path / name), at=tmp_path / "bare.git")
    assert project(tmp_path / "one" / "n.ipynb") == project(tmp_path / "two")
    assert project(tmp_path / "one").root == tmp_path / "bare.git"
    # A notebook within the bare repository itself is in no work tree.
    assert project(tmp_path / "bare.git" / "n.ipynb").root == tmp_path / "bare.git"


def test_a_hidden_bare_repository_belongs_to_the_folder_that_points_to_it(tmp_path: Path) -> None:
    source, top = repository(tmp_path / "source"), tmp_path / "work"
    top.mkdir()
    git("clone", "--bare", str(source), str(top / ".bare"), at=tmp_path)
    (top / ".git").write_text("gitdir: ./.bare\n")
    git("worktree", "add", "-b", "x", str(top / "x"), at=top)
    assert project(top / "x" / "n.ipynb").root == top
    assert project(top / "n.ipynb").root == top


def test_a_submodule_is_a_project_of_its_own_and_its_work_trees_share_it(tmp_path: Path) -> None:
    outer, inner = repository(tmp_path / "outer"), repository(tmp_path / "inner")
    git("submodule", "add", str(inner), "sub", at=outer)
    sub = outer / "sub"
    assert (sub / ".git").is_file()
    assert project(sub / "n.ipynb").root == sub
    assert project(sub / "n.ipynb").key != project(outer / "n.ipynb").key
    git("worktree", "add", "-b", "x", str(tmp_path / "linked"), at=sub)
    assert project(tmp_path / "linked" / "n.ipynb").root == sub


def test_a_symlinked_folder_is_the_folder_it_points_to(tmp_path: Path) -> None:
    root = repository(tmp_path / "work")
    (root / "deep").mkdir()
    (tmp_path / "link").symlink_to(root / "deep", target_is_directory=True)
    assert project(tmp_path / "link" / "n.ipynb") == project(root / "n.ipynb")
    (tmp_path / "n.ipynb").symlink_to(root / "n.ipynb")
    assert project(tmp_path / "n.ipynb") == project(root / "n.ipynb")


def test_slash_and_the_home_folder_are_no_project(elsewhere: Path) -> None:
    one, two = project(elsewhere / "one.ipynb"), project(elsewhere / "two.ipynb")
    assert one.root == elsewhere / "one.ipynb"
    assert one.folder != two.folder
    assert project(Path("/n.ipynb")).root == Path("/n.ipynb")
    assert project(Path("/")).key.startswith("root-")
    work = elsewhere / "work"
    work.mkdir()
    assert project(work / "n.ipynb").root == work


def test_a_home_folder_kept_in_git_is_no_project_either(elsewhere: Path, tmp_path: Path) -> None:
    git("init", at=elsewhere)
    (elsewhere / "a").write_text("a")
    git("add", "a", at=elsewhere)
    git("commit", "-m", "a", at=elsewhere)
    work = elsewhere / "work"
    work.mkdir()
    assert project(elsewhere / "n.ipynb").root == elsewhere / "n.ipynb"
    assert project(work / "n.ipynb").root == work
    git("worktree", "add", "-b", "x", str(tmp_path / "linked"), at=elsewhere)
    assert project(tmp_path / "linked" / "n.ipynb").root == tmp_path / "linked"


def test_gits_variables_are_not_heard_and_git_is_not_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, other = repository(tmp_path / "work"), repository(tmp_path / "other")
    fake = tmp_path / "bin"
    fake.mkdir()
    (fake / "git").write_text(f"#!/bin/sh\ntouch {tmp_path / 'started'}\n")
    (fake / "git").chmod(0o755)
    monkeypatch.setenv("PATH", str(fake), prepend=os.pathsep)
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    found = places.project_of(root / "n.ipynb", tmp_path / "memory")
    found.set_property("mode", "read")
    assert found.root == root
    assert not (tmp_path / "started").exists()


def test_a_git_file_that_was_sent_shows_no_other_projects_memory(tmp_path: Path) -> None:
    main, linked = repository(tmp_path / "work"), tmp_path / "linked"
    git("worktree", "add", "-b", "b", str(linked), at=main)
    sent = tmp_path / "sent"
    (sent / "fake").mkdir(parents=True)

    def names(text: str) -> Path:
        (sent / ".git").write_text(text)
        return project(sent / "n.ipynb").root

    assert names(f"gitdir: {main / '.git'}\n") == sent
    # As in a copy of the linked tree: the repository knows the original.
    assert names((linked / ".git").read_text()) == sent
    (sent / "fake" / "commondir").write_text(f"{main / '.git'}\n")
    assert names("gitdir: ./fake\n") == sent
    entry = sent / "repo" / "worktrees" / "x"
    entry.mkdir(parents=True)
    (entry / "commondir").write_text("../..")
    (sent / "repo" / "config").write_text(f"[core]\n\tworktree = {main}\n")
    assert names("gitdir: ./repo/worktrees/x\n") == sent


def test_a_work_tree_that_was_moved_by_hand_still_shares(tmp_path: Path) -> None:
    main, linked = repository(tmp_path / "work"), tmp_path / "linked"
    git("worktree", "add", "-b", "b", str(linked), at=main)
    linked.rename(tmp_path / "moved")
    assert project(tmp_path / "moved" / "n.ipynb").root == main


def test_keys_are_readable_and_differ_for_different_roots(tmp_path: Path) -> None:
    dashed, nested = tmp_path / "spec-rl", tmp_path / "spec" / "rl"
    dashed.mkdir()
    nested.mkdir(parents=True)
    assert project(dashed).key != project(nested).key
    digest = hashlib.sha256(str(dashed).encode()).hexdigest()[:10]
    assert project(dashed).key == f"spec-rl-{digest}"
    assert project(dashed).folder == HOME / "projects" / project(dashed).key
    odd = places.project_key(Path("/a/..b c:*?\n日本") / ("x" * 200))
    assert len(odd) <= 51
    assert places.project_key(Path("/a/b c:*?\n日本")).startswith("b-c-日本-")
    assert places.project_key(Path("/a/\udcff")).startswith("root-")


def test_a_key_is_the_same_however_the_letters_are_composed() -> None:
    root = "/a/Zusammenfügung"
    composed, apart = (Path(unicodedata.normalize(form, root)) for form in ("NFC", "NFD"))
    assert str(composed) != str(apart)
    assert places.project_key(composed) == places.project_key(apart)


def test_case_matters_where_the_file_system_knows_it(tmp_path: Path) -> None:
    (tmp_path / "Work").mkdir()
    if (tmp_path / "work").exists():
        assert project(tmp_path / "work") == project(tmp_path / "Work")
    else:
        (tmp_path / "work").mkdir()
        assert project(tmp_path / "work").key != project(tmp_path / "Work").key


def test_a_path_is_written_as_the_folder_lists_it() -> None:
    listed = ["Work", "other", unicodedata.normalize("NFD", "Über")]
    assert places.as_listed("wORK", listed) == "Work"
    assert places.as_listed("Work", ["WORK", "Work"]) == "Work"
    assert places.as_listed("über", listed) == listed[2]
    assert places.as_listed("new", listed) == "new"


def test_a_path_that_no_file_can_have_is_said(tmp_path: Path) -> None:
    with pytest.raises(PlaceError, match="no path that a file can have"):
        project(tmp_path / "a\0b.ipynb")


def test_a_folder_that_cannot_be_looked_into_is_a_project_all_the_same(tmp_path: Path) -> None:
    assert project(Path("/proc/1/root/x/n.ipynb")).root.name == "x"
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert project(tmp_path / "loop" / "n.ipynb").key


def test_resolving_makes_nothing(tmp_path: Path) -> None:
    home = tmp_path / "memory"
    found = places.project_of(tmp_path / "work" / "n.ipynb", home)
    session = SessionFolder(found.sessions / "0193")
    told = (found.record, found.memory, found.history, found.proposals, session.notes, session.log)
    assert all(path.is_relative_to(found.folder) for path in told)
    assert found.home == home
    assert found.properties() == {}
    assert not home.exists()


def test_the_home_folder_is_chosen_by_setting_then_variable_then_default(
    elsewhere: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert places.home() == elsewhere / ".ipymemory"
    monkeypatch.setenv("IPYMEMORY_HOME", str(tmp_path / "variable"))
    assert places.home() == tmp_path / "variable"
    assert places.home("~/set") == elsewhere / "set"
    assert places.config_folder(places.home()) == tmp_path / "variable" / "config"


def test_a_home_folder_that_moves_with_the_current_one_is_refused(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(
        PlaceError, match=r"The setting Memory.home is memo, which is another folder"
    ):
        places.home("memo")
    monkeypatch.setenv("IPYMEMORY_HOME", "./memo")
    with pytest.raises(PlaceError, match=r"IPYMEMORY_HOME is ./memo, which .* by its full path"):
        places.home()
    assert not list(elsewhere.rglob("memo"))


@pytest.mark.skipif(os.name == "nt", reason="there the home folder has another variable")
@pytest.mark.parametrize("told", ["", "here", "."])
def test_a_home_variable_that_says_nothing_is_passed_over(
    told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pwd

    own = Path(pwd.getpwuid(os.getuid()).pw_dir)
    monkeypatch.setenv("HOME", told)
    assert places.home() == own / ".ipymemory"
    assert places.home("~/set") == own / "set"


def test_a_home_folder_that_nobody_knows_is_said() -> None:
    with pytest.raises(PlaceError, match="Set IPYMEMORY_HOME to a folder by its full path"):
        places.home("~nobody-of-that-name/x")


def test_a_remote_that_a_project_gets_later_is_put_on_record(tmp_path: Path) -> None:
    root = tmp_path / "work"
    (root / ".git").mkdir(parents=True)
    (root / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    project = places.project_of(root, tmp_path / "home")
    project.set_property("mode", "read")
    seen = project.properties()
    assert seen["remote"] == ""
    (root / ".git" / "config").write_text('[remote "origin"]\n\turl = https://a.example/b.git\n')
    project.set_property("mode", "off")
    now = project.properties()
    assert now["remote"] == "https://a.example/b.git"
    assert (now["first_seen"], now["root"]) == (seen["first_seen"], seen["root"])
    clone = places.project_of(tmp_path / "elsewhere" / "work", tmp_path / "home")
    assert clone.key != project.key, "a clone or a moved folder has another root, so another key"


def test_project_json_tells_the_root_the_remote_and_when_it_was_first_seen(tmp_path: Path) -> None:
    root = repository(tmp_path / "work")
    git("remote", "add", "other", "https://example.org/other.git", at=root)
    git("remote", "add", "origin", "https://me:p@ss@example.org/a.git", at=root)
    git("worktree", "add", "-b", "b", str(tmp_path / "linked"), at=root)
    found = places.project_of(root, tmp_path / "memory")
    found.set_property("mode", "confirm")
    first = found.properties()
    assert first["root"] == str(root)
    assert first["remote"] == "https://example.org/a.git"
    assert (first["mode"], first["version"]) == ("confirm", 1)
    found.set_property("engine", "extractive")
    assert found.properties() == first | {"engine": "extractive"}
    assert json.loads(found.record.read_text())["first_seen"].endswith("Z")
    assert (found.record.stat().st_mode & 0o777, found.folder.stat().st_mode & 0o777) == (
        0o600,
        0o700,
    )


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ("", ""),
        ('[remote "origin"]\n\turl = git@example.org:a/b.git\n', "git@example.org:a/b.git"),
        ('[remote "origin"] url = "https://t0k@h/x"  ; mine\n', "https://h/x"),
        ('[Remote "up"]\n# url = no\nURL=/srv/a b.git # c\n[core]\nurl = no\n', "/srv/a b.git"),
        ('[remote "a"]\nurl = one\n[remote "origin"]\nurl = two\nurl = three\n', "two"),
        ('[remote "o\\"x"]\nurl=ssh://git@h:22/x\n', "ssh://h:22/x"),
        ("[broken\nurl = no\n\x00\xff", ""),
    ],
)
def test_the_remote_is_read_from_gits_own_file(tmp_path: Path, config: str, expected: str) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (tmp_path / ".git" / "config").write_bytes(config.encode("latin-1"))
    assert gitfiles.remote(tmp_path) == expected


def test_linked_and_bare_repositories_tell_their_remote(tmp_path: Path) -> None:
    source = repository(tmp_path / "source")
    git("clone", "--bare", str(source), str(tmp_path / "bare.git"), at=tmp_path)
    git("worktree", "add", "-b", "x", str(tmp_path / "linked"), at=tmp_path / "bare.git")
    assert gitfiles.remote(tmp_path / "bare.git") == str(source)
    assert gitfiles.remote(tmp_path / "linked") == str(source)
    assert gitfiles.remote(tmp_path / "missing") == ""


@pytest.mark.spec("L13")
def test_a_record_of_a_newer_version_is_only_read(tmp_path: Path) -> None:
    found = places.project_of(tmp_path, tmp_path / "memory")
    found.set_property("mode", "read")
    found.record.write_text(json.dumps({"version": 2, "mode": "auto"}))
    before = found.record.read_bytes()
    assert found.properties()["mode"] == "auto"
    with pytest.raises(FormatError, match="newer ipymemory and is only read"):
        found.set_property("mode", "off")
    assert found.record.read_bytes() == before


def test_a_broken_record_is_left_as_it_is(tmp_path: Path) -> None:
    found = places.project_of(tmp_path, tmp_path / "memory")
    found.set_property("mode", "read")
    found.record.write_text('{"mode": "re')
    with pytest.raises(FormatError, match="not valid JSON"):
        found.set_property("mode", "off")
    assert found.record.read_text() == '{"mode": "re'


def test_values_put_at_once_are_all_kept(tmp_path: Path) -> None:
    found = places.project_of(tmp_path, tmp_path / "memory")
    code = (
        "import sys; from pathlib import Path; from ipymemory import places\n"
        "p = places.project_of(Path(sys.argv[1]), Path(sys.argv[2]))\n"
        "[p.set_property(f'{sys.argv[3]}{n}', n) for n in range(5)]"
    )
    command = [sys.executable, "-c", code, str(tmp_path), str(tmp_path / "memory")]
    running = [subprocess.Popen([*command, name]) for name in "ab"]
    threads = [threading.Thread(target=found.set_property, args=(f"t{n}", n)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [each.wait() for each in running] == [0, 0]
    wanted = {f"{name}{n}" for name in "ab" for n in range(5)} | {"t0", "t1", "t2"}
    assert wanted <= set(found.properties())
