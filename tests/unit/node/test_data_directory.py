import dataclasses
import os
import stat
from pathlib import Path

import pytest

from quipu.ledger.epochs import decode_genesis
from quipu.ledger.signing import KeyPair
from quipu.node.data_directory import (
    DataDirectory,
    make_identity,
    open_directory,
    read_directory,
)
from quipu.node.exits import BadInvitation, BadSetting, CannotStart, DirectoryTaken, KeyExposed
from quipu.node.founding import Founding, Joining, OtherFounder, parse_founder, read_seeds
from quipu.node.invitation import Invitation, read_invitation
from quipu.node.key_list import key_rows
from quipu.node.secret_files import read_secret, write_new, write_secret
from quipu.node.settings import NodeSettings, Settings

RANDOM = bytes(range(80))


def founding(name: str = "n1", random: bytes = RANDOM) -> Founding:
    return Founding(name, "test", 1_790_000_000_000, random)


def found(path: Path, random: bytes = RANDOM) -> DataDirectory:
    directory = open_directory(path, founding(random=random))
    directory.close()
    return directory


def test_a_first_start_makes_a_cluster_of_one(tmp_path: Path) -> None:
    directory = found(tmp_path / "a/b")
    assert directory.is_unsigned
    genesis = decode_genesis(directory.genesis)
    assert [member.node_id for member in genesis.members] == [directory.key.node_id]
    assert (genesis.name, genesis.members[0].name) == ("test", "n1")
    for name in ("node.key", "cluster.key"):
        assert stat.S_IMODE((tmp_path / "a/b" / name).stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "a/b").stat().st_mode) == 0o700


def test_a_second_start_is_the_same_node(tmp_path: Path) -> None:
    first = found(tmp_path)
    second = found(tmp_path, random=bytes(80))
    assert (second.key.node_id, second.genesis) == (first.key.node_id, first.genesis)
    assert second.cluster_secret == first.cluster_secret
    assert second.is_unsigned
    second.store_made()
    assert not found(tmp_path).is_unsigned


def with_secrets(path: Path, *secrets: bytes) -> None:
    text = "".join(f"quipu-cluster-key-1 {secret.hex()}\n" for secret in secrets)
    (path / "cluster.key").write_text(text)


def test_a_cluster_key_file_holds_up_to_three_secrets(tmp_path: Path) -> None:
    made = found(tmp_path)
    new, newer = bytes([1]) * 32, bytes([2]) * 32
    with_secrets(tmp_path, new, made.cluster_secret, newer)
    directory = read_directory(tmp_path)
    assert directory.cluster_secrets == (new, made.cluster_secret, newer)
    assert directory.cluster_secret == new
    rows = key_rows(Settings(node=NodeSettings(data_dir=tmp_path)), directory)
    fingerprints = [row.fingerprint for row in rows if row.name == "cluster"]
    assert len(set(fingerprints)) == 3
    assert not any(secret.hex() in str(rows) for secret in directory.cluster_secrets)


@pytest.mark.parametrize("secrets", [[1, 2, 3, 4], [1, 1], []])
def test_what_no_cluster_key_file_holds(secrets: list[int], tmp_path: Path) -> None:
    found(tmp_path)
    with_secrets(tmp_path, *(bytes([number]) * 32 for number in secrets))
    with pytest.raises(KeyExposed):
        read_directory(tmp_path)


def test_a_node_has_one_key(tmp_path: Path) -> None:
    found(tmp_path)
    line = (tmp_path / "node.key").read_text()
    (tmp_path / "node.key").write_text(line + line)
    with pytest.raises(KeyExposed, match="holds 2 keys"):
        read_directory(tmp_path)


def test_a_first_start_that_was_cut_short_goes_on(tmp_path: Path) -> None:
    first = found(tmp_path)
    (tmp_path / "genesis").unlink()
    again = found(tmp_path, random=bytes(80))
    assert again.key.node_id == first.key.node_id
    (tmp_path / "genesis").unlink()
    (tmp_path / "cluster.key").unlink()
    assert found(tmp_path).key.node_id == first.key.node_id


def test_erasable_streams_are_declared_in_the_genesis(tmp_path: Path) -> None:
    def declared(path: Path, *streams: str) -> list[str]:
        given = dataclasses.replace(founding(), streams_erasable=streams)
        directory = open_directory(path, given)
        directory.close()
        return decode_genesis(directory.genesis).streams_erasable

    assert declared(tmp_path / "a", "people", "gdpr", "gdpr") == ["gdpr", "people"]
    assert declared(tmp_path / "a", "other") == ["gdpr", "people"]
    with pytest.raises(CannotStart) as caught:
        declared(tmp_path / "b", "NO")
    assert "a stream is 1 to 128" in caught.value.next_step


def test_it_is_locked_while_it_is_open(tmp_path: Path) -> None:
    directory = open_directory(tmp_path, founding())
    with pytest.raises(DirectoryTaken, match=f"process {os.getpid()}"):
        open_directory(tmp_path, founding())
    directory.close()
    directory.close()
    found(tmp_path)


def test_what_is_no_directory_of_a_node(tmp_path: Path) -> None:
    with pytest.raises(DirectoryTaken):
        open_directory(tmp_path / "none", None)
    with pytest.raises(DirectoryTaken):
        open_directory(tmp_path, None)
    (tmp_path / "node.lock").unlink()
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(DirectoryTaken, match=r"notes\.txt"):
        found(tmp_path)
    with pytest.raises(DirectoryTaken, match="not a directory"):
        found(tmp_path / "notes.txt")
    with pytest.raises(CannotStart):
        found(tmp_path / "notes.txt/below")


def test_lost_and_found_is_nobody_elses(tmp_path: Path) -> None:
    (tmp_path / "lost+found").mkdir()
    (tmp_path / ".hidden").write_text("")
    assert found(tmp_path).is_unsigned


@pytest.mark.parametrize("name", ["node.key", "cluster.key"])
def test_a_missing_key_is_not_made_anew(name: str, tmp_path: Path) -> None:
    found(tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(DirectoryTaken, match=name):
        found(tmp_path)


def test_a_store_without_its_genesis_is_refused(tmp_path: Path) -> None:
    found(tmp_path)
    (tmp_path / "genesis").unlink()
    (tmp_path / "store").mkdir()
    with pytest.raises(DirectoryTaken, match="genesis is missing"):
        found(tmp_path)


def test_a_genesis_that_is_none(tmp_path: Path) -> None:
    found(tmp_path / "one")
    (tmp_path / "one/genesis").write_bytes(b"no genesis")
    with pytest.raises(DirectoryTaken, match="not a genesis"):
        found(tmp_path / "one")


# --- several founders, and joining ------------------------------------------------------------
OTHER = KeyPair.from_seed(bytes(31) + b"\2").node_id
URI = f"quipu://10.0.0.2:8471/{OTHER.hex()}"


def test_a_cluster_of_several_names_them_all_and_where_they_are(tmp_path: Path) -> None:
    other = parse_founder(f"n2={URI}")
    given = dataclasses.replace(founding(), others=(other,), policy="all")
    directory = open_directory(tmp_path, given)
    directory.close()
    genesis = decode_genesis(directory.genesis)
    assert [m.name for m in genesis.members] == ["n1", "n2"]
    assert [m.node_id for m in genesis.members] == [directory.key.node_id, OTHER]
    assert genesis.policy == "all"
    assert read_seeds(tmp_path) == ((OTHER, other.endpoint),)


@pytest.mark.parametrize("text", ["n2", URI, "=" + URI, f"n2={URI[:-1]}", "n2=quipu://x/0"])
def test_a_founder_is_a_name_and_a_uri(text: str) -> None:
    with pytest.raises(BadSetting, match="founders"):
        parse_founder(text)


def test_a_founder_twice_is_no_cluster(tmp_path: Path) -> None:
    other = parse_founder(f"n2={URI}")
    with pytest.raises(CannotStart, match="stands twice"):
        open_directory(tmp_path, dataclasses.replace(founding(), others=(other, other)))


def invited(path: Path) -> Invitation:
    first = found(path / "first")
    seeds = ((first.key.node_id, OtherFounder(*parse_founder(f"n2={URI}")).endpoint),)
    Invitation(first.genesis, seeds, first.cluster_secret).write(path / "invitation")
    assert stat.S_IMODE((path / "invitation").stat().st_mode) == 0o600
    return read_invitation(path / "invitation")


def test_an_invitation_gives_a_place(tmp_path: Path) -> None:
    invitation = invited(tmp_path)
    joined = open_directory(tmp_path / "second", Joining(invitation, bytes(80)))
    joined.close()
    assert joined.genesis == invitation.genesis
    assert joined.cluster_secret == invitation.secret
    assert joined.is_unsigned
    assert read_seeds(tmp_path / "second") == invitation.seeds
    assert read_directory(tmp_path / "second").key.node_id == joined.key.node_id
    again = open_directory(tmp_path / "second", Joining(invitation, bytes(80)))
    again.close()


def test_a_node_belongs_to_one_cluster(tmp_path: Path) -> None:
    invitation = invited(tmp_path)
    found(tmp_path / "other", random=bytes(80))
    with pytest.raises(DirectoryTaken, match="the invitation of test"):
        open_directory(tmp_path / "other", Joining(invitation, bytes(80)))


def test_a_key_made_ahead_has_signed_nothing_and_one_from_elsewhere_may_have(
    tmp_path: Path,
) -> None:
    invitation = invited(tmp_path)
    key = make_identity(tmp_path / "ahead", bytes(range(32)))
    ahead = open_directory(tmp_path / "ahead", Joining(invitation, bytes(80)))
    ahead.close()
    assert ahead.key.node_id == key.node_id
    assert ahead.is_unsigned
    (tmp_path / "moved").mkdir()
    write_secret(tmp_path / "moved/node.key", "quipu-node-key-1", bytes(range(32)))
    moved = open_directory(tmp_path / "moved", Joining(invitation, bytes(80)))
    moved.close()
    assert not moved.is_unsigned


@pytest.mark.parametrize(
    "text",
    ["", "quipu-invitation-2 AAAA", "quipu-invitation-1 !", "quipu-invitation-1 AAAA", "\xff" * 9],
)
def test_what_is_no_invitation(text: str, tmp_path: Path) -> None:
    write_new(tmp_path / "invitation", text.encode("latin-1"))
    with pytest.raises(BadInvitation, match="is not an invitation"):
        read_invitation(tmp_path / "invitation")


def test_an_invitation_that_is_not_there_or_that_others_may_read(tmp_path: Path) -> None:
    with pytest.raises(BadInvitation, match="cannot read"):
        read_invitation(tmp_path / "none")
    invited(tmp_path)
    (tmp_path / "invitation").chmod(0o644)
    with pytest.raises(KeyExposed):
        read_invitation(tmp_path / "invitation")


def test_seeds_that_somebody_has_spoilt(tmp_path: Path) -> None:
    (tmp_path / "seeds").write_text("quipu://nowhere\n")
    with pytest.raises(BadSetting, match="seeds"):
        read_seeds(tmp_path)


def test_names_that_no_genesis_holds(tmp_path: Path) -> None:
    with pytest.raises(CannotStart, match="no genesis"):
        open_directory(tmp_path, founding("n" * 200))


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o777])
def test_a_key_that_others_may_read_is_refused(mode: int, tmp_path: Path) -> None:
    found(tmp_path)
    (tmp_path / "node.key").chmod(mode)
    with pytest.raises(KeyExposed) as caught:
        found(tmp_path)
    assert "chmod 600" in caught.value.next_step


def test_what_is_no_key_file(tmp_path: Path) -> None:
    path = tmp_path / "key"
    write_new(path, b"other-label 00\n")
    with pytest.raises(KeyExposed, match="not a label file"):
        read_secret(path, "label", 32)
    (tmp_path / "folder").mkdir(mode=0o700)
    with pytest.raises(KeyExposed, match="not a regular file"):
        read_secret(tmp_path / "folder", "label", 32)


def test_a_file_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "key"
    write_secret(path, "label", bytes(32))
    if path.stat().st_uid == 0:
        os.chown(path, 12_345, -1)
    monkeypatch.setattr(os, "geteuid", lambda: 54_321)
    with pytest.raises(KeyExposed, match="belongs to user"):
        read_secret(path, "label", 32)


def test_nothing_is_overwritten_and_nothing_left_beside(tmp_path: Path) -> None:
    path = tmp_path / "key"
    write_secret(path, "label", bytes(32))
    with pytest.raises(FileExistsError):
        write_secret(path, "label", bytes(range(32)))
    assert read_secret(path, "label", 32) == bytes(32)
    assert os.listdir(tmp_path) == ["key"]
