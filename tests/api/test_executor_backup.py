"""The executor in a backup: what comes back is one moment, and is gone on from exactly once."""

import asyncio
import shutil
import subprocess
import sys
from pathlib import Path
from typing import cast

import pytest

from quipu.ledger.effects import PutOwnState
from quipu.ledger.log.effects import PutBase
from quipu.ledger.order.journal import encode_record
from quipu.ledger.order.registry import Registry
from quipu.ledger.words import Journal as JournalNo
from quipu.node.data_directory import STORE_FOLDER
from quipu.node.exits import DirectoryTaken
from quipu.node.founding import GENESIS_FILE
from quipu.node.restoring import BackupUnsound, Places, restore
from quipu.storage.backup import copy_store
from quipu.storage.environment import StoreLocked
from quipu.storage.executors import keeping
from quipu.storage.executors.snapshots import DATABASE_FILE
from quipu.storage.executors.sqlite_executor import SqliteExecutor
from quipu.storage.lmdb_store import open_store
from quipu.storage.store import Owner
from tests.api.one_node import OneNode
from tests.api.talk import FREE, Talk, talking
from tests.api.test_clients import DONE, insert, registered, signed
from tests.contract.test_log_store_contract import base_at
from tests.small_ledger import key_of
from tests.small_node import WAIT_S, small_node

OWNER = Owner(bytes(range(32)), key_of("n1").node_id)
ITEMS = {"sql": "SELECT item FROM stock ORDER BY rowid"}


def copied(folder: Path, target: Path, executor: Path) -> None:
    """By a process that has not the store open."""
    genesis, store = str(folder / GENESIS_FILE), str(folder / STORE_FOLDER)
    command = [sys.executable, "-m", "quipu.storage", "backup", store, str(target)]
    options = ["--also", genesis, "--executor", str(executor)]
    done = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def places(folder: Path) -> Places:
    return Places(folder, folder / "executor")


async def done(api: Talk, message_id: int, item: str) -> None:
    reply = await api.post(DONE, signed(api, message_id, insert(item)))
    assert (reply.status, reply.json["state"], reply.json["code"]) == (201, "executed", "ok")


async def rows(api: Talk) -> list[str]:
    found = (await api.post("/v1/sql:query", ITEMS)).json["rows"]
    return [item for (item,) in found]


async def test_a_backup_brings_the_executor_and_goes_on_exactly_once(tmp_path: Path) -> None:
    """The copy of the executor is older than that of the store: the log has what lies between."""
    folder, monday, later = tmp_path / "n1", tmp_path / "monday", tmp_path / "later"
    async with registered(folder) as api:
        await done(api, 2, "one")
        await asyncio.to_thread(copied, folder, monday, folder / "executor")
        await done(api, 3, "two")
        await done(api, 4, "three")
        # As where all of this is done between the two copies of one backup.
        await asyncio.to_thread(copied, folder, later, tmp_path / "none")
        await done(api, 5, "lost")  # with the disk
    for file in (DATABASE_FILE, keeping.DESCRIPTION_FILE):
        shutil.copy(monday / file, later / file)
    with pytest.raises(DirectoryTaken):
        restore(later, places(folder), False, lambda progress: None)
    told = restore(later, places(folder), True, lambda progress: None)
    assert (Path(told["executor_set_aside"]).name, told["executed"] > 0) == (
        "aside-1.sqlite3",
        True,
    )
    async with small_node(folder) as node, talking(FREE, cast(OneNode, node.ledger)) as api:
        node.ledger.order.force_recovery()  # nobody needs what the lost disk has voted
        async with asyncio.timeout(2 * WAIT_S):
            while (  # noqa: ASYNC110 - nothing else tells of it
                await api.get("/v1/clients/1")
            ).json["next_message_id"] != "5":
                await asyncio.sleep(0.05)
        assert await rows(api) == ["one", "two", "three"]
        again = await api.post(DONE, signed(api, 4, insert("three")))
        assert (again.status, again.json["results"][0]["changes"]) == (200, 1)
        await done(api, 5, "four")
        assert await rows(api) == ["one", "two", "three", "four"]


@pytest.mark.parametrize("has_clients", [True, False])
def test_an_executor_behind_the_log_is_left_out(tmp_path: Path, has_clients: bool) -> None:
    """Where nobody was a client, it misses nothing."""
    registry = Registry({bytes(15): None} if has_clients else {})
    state = encode_record(0, [], [], clients=registry.record())
    store = open_store(tmp_path / "store", OWNER)
    store.commit([PutOwnState(JournalNo(7), False), PutBase(base_at(9), state)])
    store.close()
    SqliteExecutor(tmp_path / "executor", OWNER.cluster_id).close()
    target = tmp_path / "copy"
    done = copy_store(tmp_path / "store", target, executor=tmp_path / "executor")
    assert ("executor_left_out" in done, done["executed"]) == (
        has_clients,
        None if has_clients else 0,
    )
    assert (keeping.backed_up(target) is None) == has_clients


async def test_what_is_wrong_with_the_executor_of_a_backup_is_said(tmp_path: Path) -> None:
    folder, backup = tmp_path / "n1", tmp_path / "backup"
    async with registered(folder):
        await asyncio.to_thread(copied, folder, backup, folder / "executor")
        with pytest.raises(StoreLocked):
            keeping.set_aside(folder / "executor")
    file = backup / DATABASE_FILE
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    with pytest.raises(BackupUnsound, match="damaged"):
        restore(backup, places(folder), True, lambda progress: None)
    (backup / keeping.DESCRIPTION_FILE).unlink()
    with pytest.raises(BackupUnsound):
        restore(backup, places(folder), True, lambda progress: None)
    assert keeping.is_begun(folder / "executor")
    file.unlink()
    told = restore(backup, places(folder), True, lambda progress: None)
    assert (told["executed"], keeping.is_begun(folder / "executor")) == (None, False)
    assert keeping.set_aside(folder / "executor") is None


def test_databases_aside_do_not_replace_each_other(tmp_path: Path) -> None:
    for number in (1, 2):
        (tmp_path / DATABASE_FILE).write_bytes(b"%d" % number * 8_192)  # no database
        aside = keeping.set_aside(tmp_path)
        assert aside == tmp_path / f"aside-{number}.sqlite3"
        assert aside.read_bytes() == b"%d" % number * 8_192
