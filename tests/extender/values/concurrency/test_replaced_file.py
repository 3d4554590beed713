"""Files that are replaced as a whole."""

import os
from pathlib import Path

import pytest

from extender.values.concurrency.replaced_file import replaced_file


def test_link_that_another_user_has_put_in_place_of_the_new_file_is_not_followed(tmp_path: Path) -> None:
    target, path = tmp_path / "target", tmp_path / "state.json"
    target.write_text("precious")
    (tmp_path / f".state.json.{os.getpid()}.tmp").symlink_to(target)

    with replaced_file(path) as file:
        file.write(b"new")

    assert (target.read_text(), path.read_text(), path.is_symlink()) == ("precious", "new", False)
    assert sorted(os.listdir(tmp_path)) == ["state.json", "target"]


def test_link_that_comes_back_at_once_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "target"
    target.write_text("precious")
    (tmp_path / f".state.json.{os.getpid()}.tmp").symlink_to(target)
    monkeypatch.setattr(Path, "unlink", lambda *_, **__: None)  # as if it were there again

    with pytest.raises(FileExistsError), replaced_file(tmp_path / "state.json"):
        pass

    assert target.read_text() == "precious"
