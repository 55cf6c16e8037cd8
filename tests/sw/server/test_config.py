"""The file of a server: what is wrong is said, and where."""

from __future__ import annotations

import re
import stat
from pathlib import Path

import pytest

from splitjoin.base.errors import InputError, SplitJoinError
from splitjoin.server import JoinService, check_config, read_config
from splitjoin.server.config import Limits
from splitjoin.server.token import token_in

from .clients import ROOT, config, offers


def test_what_a_file_says(tmp_path: Path) -> None:
    found = read_config(config(tmp_path, more="[limits]\nstatements = 2\n[input]\nlateness = 5"))
    assert (found.host, found.port, found.folder, found.limits.statements) == ("127.0.0.1", 0, tmp_path / "results", 2)
    assert [(one.name, one.time, one.sources) for one in found.streams] == [
        ("orders", "ts", ("main",)), ("offers", "ts", ("main",))]
    assert [(one.name, one.window, one.device) for one in found.queries] == [
        ("near", "RANGE 20", "cpu"), ("equal", ["RANGE 20", "ROWS 9"], "cpu")]
    assert (found.input, found.epochs) == ({"lateness": 5}, {"rows": 500, "delay": 0.2})
    assert found.token_file == tmp_path / "results/_token"
    assert (found.limits.statement_size, found.limits.put_size) == (10**9, 64 * 10**6)
    check_config(found)
    assert not found.folder.exists()


@pytest.mark.parametrize(("old", "new", "message"), [
    ("folder", "folders", "the file has the unknown entry 'folders' (did you mean 'folder'?)"),
    ('folder = "results"', "", "the file must have folder, queries, streams, but has no folder"),
    ('"127.0.0.1:0"', '"127.0.0.1"', "listen must be HOST:PORT, such as '127.0.0.1:8815', not '127.0.0.1'"),
    ('"127.0.0.1:0"', '"0.0.0.0:80"', "a server that other machines reach needs [tls], but the file with listen = "
                                      "'0.0.0.0:80' has none"),
    ("[streams.offers]", "[streams.more]\nschema = 'ts:int64'\ntime = 'ts'\n[streams.offers]",
     "a server joins two streams, [streams.NAME] each, but the file has 3"),
    ('["main"]', '["a", "a"]', "[streams.orders] sources must be a list of different names, not ['a', 'a']"),
    ("rows = 500", "row = 500", "[epochs] has the unknown entry 'row' (did you mean 'rows'?)"),
    ("rows = 500", "rows = 0", "rows of an epoch must be a whole number from 1"),
    ("[epochs]", "[limits]\nstatements = 0\n[epochs]", "[limits] statements must be a number above 0, not 0"),
    ("[epochs]", "[limits]\nstatement_memory = '1'\n[epochs]", "[limits] statement_memory must be like '500MB'"),
    ("[epochs]", "[limits]\nput_bytes = '2GB'\n[epochs]", "put_bytes must be like '500MB', from 64KB to 1GB, not "
                                                            "'2GB'"),
    ("[epochs]", "[limits\n[epochs]", "the file of a server must be TOML that can be read, but "),
    ("price:int32", "price:int33", "column 'price' has the unknown type 'int33'"),
    ("FROM orders", "FROM order", "order"),
    ('"RANGE 20"', '"RANGE"', "window"),
    ('top', 'top', ""),
])
def test_what_is_wrong_in_a_file(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = config(tmp_path)
    if not message:
        (tmp_path / "token").write_text("short")
        (tmp_path / "token").chmod(0o600)
        path, message = config(tmp_path, top='token_file = "token"'), "a token must be one line of at least 16 ASCII"
    else:
        path.write_text(path.read_text().replace(old, new, 1))
    for run in (lambda found: JoinService(found).stop(), check_config):
        with pytest.raises(SplitJoinError) as caught:
            run(read_config(path))
        assert message in str(caught.value)


def test_a_token_that_others_may_read(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("0123456789abcdef0123")
    (tmp_path / "token").chmod(0o644)
    with pytest.raises(InputError, match=r"a token must belong to the user of the server, who alone may read it, but "
                                         r".* has the mode 644 and the owner \d+; run chmod 600"):
        read_config(config(tmp_path, top='token_file = "token"'))


def test_a_token_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    token = token_in(tmp_path / "made")
    assert len(token) == 64
    assert stat.S_IMODE((tmp_path / "made").stat().st_mode) == 0o600
    assert token_in(tmp_path / "made") == token
    (tmp_path / "link").symlink_to(tmp_path / "none")
    with pytest.raises(InputError, match="token_file must be a file that can be read"):
        token_in(tmp_path / "link")
    with pytest.raises(InputError, match="the token of a server is made in token_file, but"):
        token_in(tmp_path / "no/token")


def test_queries_may_come_later_but_not_go(tmp_path: Path) -> None:
    whole = config(tmp_path).read_text()
    equal = whole[whole.index("[queries.equal]"):]
    path = tmp_path / "join.toml"
    path.write_text(whole.replace(equal, ""))
    with JoinService(read_config(path)) as service:
        assert list(service.schemas) == ["near"]
        service.finish("orders")
    path.write_text(whole)
    with JoinService(read_config(path)) as service:
        assert list(service.schemas) == ["near", "equal"]
        service.source("offers", "main").push(offers(0, 1))
    path.write_text(whole.replace(equal, ""))
    with pytest.raises(InputError, match="has epochs of the query 'equal', which is not in the file; put it back"):
        JoinService(read_config(path))


def test_the_files_of_the_page(tmp_path: Path) -> None:
    whole, guarded = re.findall(r"(?ms)^```toml\n(.*?)^```", (ROOT / "docs/server.md").read_text())
    path = tmp_path / "join.toml"
    path.write_text(whole)
    with JoinService(read_config(path)) as service:
        assert service.schemas["near"].names == ["ts", "ask"]
        assert service.position("orders", "shop") == {"delivered": 0, "committed": 0}
    here = Path(__file__).parent
    for name, text in (("token", "x" * 16), ("server.pem", (here / "certificate.pem").read_text()),
                       ("server.key", (here / "key.pem").read_text())):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o600)
    top, tables = guarded.split("[tls]")
    path.write_text(top + whole.replace('listen = "127.0.0.1:8815"', "") + "[tls]" + tables)
    assert (read_config(path).host, read_config(path).limits) == ("0.0.0.0", Limits())
