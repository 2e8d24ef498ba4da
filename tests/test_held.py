"""A file that is swapped between the check and the use is refused, with descriptors and without."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ipymemory import held
from ipymemory.errors import PlaceError
from ipymemory.held import Held, resolved


@pytest.fixture(params=["descriptors", "second check"])
def folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    if request.param == "second check":
        monkeypatch.setattr(held, "by_descriptor", False)
    path = Path(os.path.realpath(tmp_path)) / "ours"
    path.mkdir()
    return path


def names(folder: Path) -> list[str]:
    return [each.name for each in folder.iterdir()]


def test_read_replace_remove(folder: Path) -> None:
    path = folder / "notes.md"
    with Held(path) as file:
        assert file.read() is None
        file.replace(b"one")
        assert file.read() == b"one"
        file.replace(b"two")
    assert path.read_bytes() == b"two"
    assert names(folder) == ["notes.md"], "no temporary file is left"
    if os.name != "nt":
        assert path.stat().st_mode & 0o777 == 0o600
    with Held(path) as file:
        file.remove()
        file.remove()
    assert not path.exists()


def test_too_large_is_not_read(folder: Path) -> None:
    (folder / "notes.md").write_bytes(b"x" * 2000)
    with Held(folder / "notes.md") as file:
        assert file.read(2000) == b"x" * 2000
        with pytest.raises(PlaceError, match="larger than"):
            file.read(1999)


@pytest.mark.spec("L6")
def test_a_link_in_the_files_place_is_not_read(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    (folder / "notes.md").symlink_to(tmp_path / "secret")
    with pytest.raises(PlaceError, match="is a link"), Held(folder / "notes.md") as file:
        file.read()
    assert (tmp_path / "secret").read_text() == "secret"


@pytest.mark.spec("L6")
def test_a_folder_that_became_a_link_is_refused(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "notes.md").write_text("theirs")
    folder.rename(tmp_path / "away")
    folder.symlink_to(other)
    with pytest.raises(PlaceError, match="is a link"), Held(folder / "notes.md") as file:
        file.replace(b"ours")
    assert (other / "notes.md").read_text() == "theirs"


@pytest.mark.spec("L6")
def test_a_folder_swapped_while_it_is_held(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (folder / "notes.md").write_text("ours")
    with Held(folder / "notes.md") as file:
        folder.rename(tmp_path / "away")
        folder.symlink_to(other)
        if held.by_descriptor:
            file.replace(b"new")
            assert (tmp_path / "away" / "notes.md").read_text() == "new"
        else:
            with pytest.raises(PlaceError):
                file.replace(b"new")
    assert names(other) == []


@pytest.mark.spec("L6")
def test_a_file_swapped_for_a_link_while_it_is_held(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "theirs").write_text("theirs")
    path = folder / "notes.md"
    path.write_text("ours")
    with Held(path) as file:
        assert file.read() == b"ours"
        path.unlink()
        path.symlink_to(tmp_path / "theirs")
        with pytest.raises(PlaceError):
            file.read()
        if held.by_descriptor:
            file.replace(b"new")
            assert not path.is_symlink()
        else:
            with pytest.raises(PlaceError):
                file.replace(b"new")
    assert (tmp_path / "theirs").read_text() == "theirs"


@pytest.mark.spec("L6")
def test_without_descriptors_the_opened_file_is_checked_again(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held, "by_descriptor", False)
    path = folder / "notes.md"
    path.write_text("ours")
    (tmp_path / "theirs").write_text("theirs")
    real = os.open

    def swapping(name: object, flags: int, mode: int = 0o777, **more: object) -> int:
        return real(tmp_path / "theirs", flags)

    with Held(path) as file:
        monkeypatch.setattr(os, "open", swapping)
        with pytest.raises(PlaceError, match="is a link"):
            file.read()


def test_a_pipe_is_no_file_and_is_not_waited_for(folder: Path) -> None:
    make = getattr(os, "mkfifo", os.mkdir)  # Windows has no named pipes in folders
    make(folder / "notes.md")
    with Held(folder / "notes.md") as file, pytest.raises(PlaceError):
        file.read()


def test_a_failed_write_leaves_the_old_file_and_nothing_else(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "notes.md").write_text("old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with Held(folder / "notes.md") as file, pytest.raises(PlaceError, match="No space left"):
        file.replace(b"new")
    assert (folder / "notes.md").read_text() == "old"
    assert names(folder) == ["notes.md"]


def test_a_missing_folder_says_so(tmp_path: Path) -> None:
    path = Path(os.path.realpath(tmp_path)) / "none" / "notes.md"
    with pytest.raises(PlaceError, match="is not there"), Held(path):
        pass


def test_resolved_follows_all_but_the_last_part(tmp_path: Path) -> None:
    real = Path(os.path.realpath(tmp_path))
    (real / "a").mkdir()
    (real / "b").symlink_to(real / "a")
    (real / "a" / "link.md").symlink_to(real / "elsewhere")
    assert resolved(real / "b" / "x.md") == real / "a" / "x.md"
    assert resolved(real / "b" / "link.md") == real / "a" / "link.md"
    assert resolved(real / "b" / ".." / "a" / "x.md") == real / "a" / "x.md"
    assert resolved(real / "b" / "..") == real
