import socket
from pathlib import Path

import pytest

from quipu.node.doctor import Finding, examine, holder_of
from quipu.node.settings import Address, ApiSettings, NodeSettings, OpsSettings, Settings
from tests.small_node import running, small_node


def found(folder: Path, port: int = 0) -> dict[str, Finding]:
    settings = Settings(
        node=NodeSettings(data_dir=folder),
        api=ApiSettings(listen=Address("127.0.0.1", port)),
        ops=OpsSettings(listen=Address("::1", 0)),
    )
    return {finding.check: finding for finding in examine(settings)}


def made(folder: Path) -> None:
    async def test() -> None:
        async with small_node(folder):
            pass

    running(test)


def test_a_directory_that_is_not_there_is_fine(tmp_path: Path) -> None:
    findings = found(tmp_path / "a/b")
    assert "a first start makes it" in findings["data directory"].what
    assert not (tmp_path / "a").exists()


def test_a_node_at_rest_and_at_work(tmp_path: Path) -> None:
    made(tmp_path)
    assert "not in use" in found(tmp_path)["data directory"].what
    assert found(tmp_path)["store"].is_fine

    async def test() -> None:
        async with small_node(tmp_path):
            assert "in use by process" in found(tmp_path)["data directory"].what
            assert holder_of(tmp_path) is not None

    running(test)
    assert holder_of(tmp_path) is None
    assert holder_of(tmp_path / "none") is None


def test_a_folder_of_something_else(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("")
    assert not found(tmp_path)["data directory"].is_fine


def test_keys_and_store_that_are_gone_or_damaged(tmp_path: Path) -> None:
    made(tmp_path)
    (tmp_path / "node.key").chmod(0o644)
    (tmp_path / "cluster.key").unlink()
    data = tmp_path / "store/data.mdb"
    data.write_bytes(b"x" * data.stat().st_size)
    findings = found(tmp_path)
    for name in ("node.key", "cluster.key", "store"):
        assert not findings[name].is_fine, name
        assert findings[name].next_step
    data.unlink()
    assert "missing" in found(tmp_path)["store"].what


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        finding = found(tmp_path, other.getsockname()[1])["API port"]
        assert (finding.is_fine, "--api-listen" in finding.next_step) == (False, True)
        made(tmp_path)

        async def test() -> None:
            async with small_node(tmp_path):
                assert found(tmp_path, other.getsockname()[1])["API port"].is_fine

        running(test)


def test_a_disk_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(**given: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.NamedTemporaryFile", denied)
    assert found(tmp_path)["sync"].what == "Permission denied"


def test_a_name_too_long_for_a_socket(tmp_path: Path) -> None:
    assert found(tmp_path)["admin socket"].is_fine
    finding = found(tmp_path / ("d" * 100))["admin socket"]
    assert (finding.is_fine, "admin.socket=" in finding.next_step) == (False, True)


def test_files_that_may_be_open() -> None:
    assert "allowed" in found(Path("x"))["open files"].what
