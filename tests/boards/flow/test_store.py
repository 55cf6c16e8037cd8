import pytest
from splitjoin.boards.flow.store import cached


def test_made_once_and_kept_by_content(tmp_path, monkeypatch):
    monkeypatch.setenv("SPLITJOIN_CACHE", str(tmp_path))
    made = []

    def make(folder):
        made.append(folder)
        (folder / "report").write_text("ok")

    folders = [cached("kind", key, make) for key in (("a", "b"), ("a", "b"), ("ab", ""))]
    assert folders[0] == folders[1] != folders[2]
    assert len(made) == 2
    assert (folders[0] / "report").read_text() == "ok"


def test_what_failed_is_not_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("SPLITJOIN_CACHE", str(tmp_path))

    def fail(folder):
        (folder / "half").write_text("")
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        cached("kind", ("a",), fail)
    folder = cached("kind", ("a",), lambda folder: None)
    assert list(folder.iterdir()) == []
