"""A node that lies in all the ways of the table: each is counted, and the honest go on."""

import asyncio
import time
from collections.abc import Iterator
from functools import partial
from hashlib import sha256
from typing import Any

import pytest

from quipu.devnet.processes import until
from quipu.ledger.canonical import encode
from quipu.ledger.log.messages import AcceptedMessage, encode_log_message
from quipu.ledger.log.statements import sign_accepted
from quipu.ledger.log.words import Index, Place, Regime
from quipu.ledger.signing import KeyPair
from quipu.ledger.words import EpochNo, NodeNo
from quipu.node.founding import read_key
from tests.process.badnode import BadNode, refusals, rss_bytes
from tests.process.cluster import wait_until
from tests.process.misdeeds import MISDEEDS, VICTIM, Misdeed, Pen
from tests.process.shaken import Apps, Shaken, shaken

pytestmark = pytest.mark.xdist_group("badnode")  # the last of them look at what all have left

HONEST, STOLEN = (1, 2), 3
COUNTED_S = 20.0
FOUND_S = 5.0  # a lying serializer, by the quicker of the two at least
LIES = 3
RSS_GROWTH_BYTES_MAX = 96 << 20
NAMED_MIN = 25
STRANGERS = [one for one in MISDEEDS.values() if not one.is_of_thief]
THIEVES = [one for one in MISDEEDS.values() if one.is_of_thief]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shaken]:
    with shaken(tmp_path_factory.mktemp("badnode") / "net", 3, 1) as found:
        yield found


@pytest.fixture(scope="module")
def robbed(world: Shaken) -> tuple[Shaken, KeyPair]:
    """n3 does not run any more, and a thief has its key."""
    world.net.kill(STOLEN)
    return world, read_key(world.net.data_of(world.net.node(STOLEN)))


def misbehave(world: Shaken, misdeed: Misdeed, stolen: KeyPair | None, number: int) -> None:
    before = refusals(world.net, VICTIM)

    async def done() -> None:
        bad = BadNode(world.net, misdeed.name, stolen=stolen)
        try:
            await bad.up(*HONEST)
            await misdeed.deed(bad, Pen(bad, number))
            await asyncio.to_thread(wait_until, is_counted, str(misdeed), COUNTED_S)
        finally:
            await bad.stop()

    def counted() -> Any:
        return refusals(world.net, VICTIM) - before

    def is_counted() -> bool:
        return misdeed.counted is None or counted()[misdeed.counted] > 0

    asyncio.run(done())


def check_honest(world: Shaken) -> None:
    """Who is honest writes, and both read it; no turn of theirs failed."""
    apps = Apps(world.net, HONEST)
    try:
        wait_until(
            lambda: {one.node for one in tuple(apps.written) if one.state == "read"} == set(HONEST),
            "honest writes are Read",
        )
    finally:
        written = apps.end()
    wait_until(partial(_have, world, [one.id for one in written if one.state == "read"]), "by both")
    for number in HONEST:
        log = world.net.log_of(world.net.node(number)).read_text(errors="replace")
        assert "a turn failed" not in log, log[log.index("a turn failed") :][:3_000]


def _have(world: Shaken, ids: list[str]) -> bool:
    states = [world.ask(n, f"/v1/entries/{one}/status") for n in HONEST for one in ids]
    return all(found and found.get("state") in ("read", "ordered") for found in states)


@pytest.mark.parametrize("misdeed", STRANGERS, ids=[one.name for one in STRANGERS])
def test_of_a_stranger(world: Shaken, misdeed: Misdeed) -> None:
    misbehave(world, misdeed, None, STOLEN)
    assert all(world.ask(number, "/v1/evidence")["items"] == [] for number in HONEST)


def test_strangers_have_changed_nothing(world: Shaken) -> None:
    check_honest(world)
    world.await_equal(time.monotonic())
    assert all(rss_bytes(world.net, number) < RSS_GROWTH_BYTES_MAX * 4 for number in HONEST)


@pytest.mark.parametrize("misdeed", THIEVES, ids=[one.name for one in THIEVES])
def test_of_a_thief(robbed: tuple[Shaken, KeyPair], misdeed: Misdeed) -> None:
    world, key = robbed
    misbehave(world, misdeed, key, STOLEN)


def test_thieves_have_convicted_themselves_alone(robbed: tuple[Shaken, KeyPair]) -> None:
    """Two events for one slot are a proof, which all come to hold; the honest go on."""
    world, key = robbed
    wait_until(lambda: all(_culprits(world, n) == {key.node_id.hex()} for n in HONEST), "a proof")
    check_honest(world)
    tables = [world.ask(number, "/v1/dag/frontier") for number in HONEST]
    read = [{(r["author"], r["journal"]): r["read_seq"] for r in t["rows"]} for t in tables]
    own = {k: v for k, v in read[0].items() if k[0] != key.node_id.hex()}
    assert own == {k: v for k, v in read[1].items() if k[0] != key.node_id.hex()}


def test_a_serializer_that_votes_two_values_for_one_number_is_found(
    robbed: tuple[Shaken, KeyPair],
) -> None:
    """By the master, from the two votes; by all others, from the proof that it sends on."""
    world, key = robbed
    found_s = asyncio.run(_lies(world, key))
    print(f"a lying serializer was found after {[round(one, 2) for one in found_s]} s")
    assert min(found_s) < FOUND_S
    for number in HONEST:
        (one,) = _liars(world, number)
        assert one["node_id"] == key.node_id.hex()
    check_honest(world)


async def _lies(world: Shaken, key: KeyPair) -> list[float]:
    """Two ACCEPTED of one regime and index with two digests, to each; when each has the proof."""
    bad = BadNode(world.net, "votes-twice", stolen=key)
    try:
        await bad.up(*HONEST)
        begun_s = time.monotonic()
        found_s: dict[int, float] = {}

        def is_found() -> bool:
            for number in HONEST:
                if number not in found_s and _liars(world, number):
                    found_s[number] = time.monotonic() - begun_s
            return len(found_s) == len(HONEST)

        for _ in range(LIES):  # a new regime may begin between the question and the votes
            journal = await asyncio.to_thread(world.ask, VICTIM, "/v1/journal")
            cluster = await asyncio.to_thread(world.ask, VICTIM, "/v1/node")
            place = Place(Regime(int(journal["regime"])), Index(int(journal["chosen"])))
            for digest in (b"one", b"other"):
                said = sign_accepted(
                    key,
                    bytes.fromhex(cluster["cluster_id"]),
                    EpochNo(1),
                    NodeNo(STOLEN),
                    (place, sha256(digest).digest()),
                )
                vote = AcceptedMessage(place.regime, 0, 0, 0, encode(said), False)
                for number in HONEST:
                    bad.log(number, encode_log_message(vote))
            if await asyncio.to_thread(until, is_found, COUNTED_S):
                break
    finally:
        await bad.stop()
    return list(found_s.values())


def _liars(world: Shaken, number: int) -> list[dict[str, Any]]:
    items = world.ask(number, "/v1/evidence")["items"]
    return [item for item in items if item["role"] == "serializer"]


def _culprits(world: Shaken, number: int) -> set[str]:
    return {item["node_id"] for item in world.ask(number, "/v1/evidence")["items"]}


def test_enough_are_named() -> None:
    assert len(MISDEEDS) >= NAMED_MIN
    assert all(one.does and one.attacks for one in MISDEEDS.values())
