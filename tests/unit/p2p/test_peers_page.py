"""docs/peers.md says what the code does."""

from quipu.p2p import gossip
from quipu.p2p.refusals import Cause
from tests import tree
from tests.vectors.check_peers import NAMES

PAGE = tree.read("docs/peers.md")


def test_every_kind_stands_in_the_table() -> None:
    for kind in gossip.Kind:
        rule = gossip.RULES[kind]
        signed = "yes" if rule.is_signed else "no"
        row = f"| {int(kind)} | {kind.name} | {int(rule.action)} {rule.action.name} | {signed} | "
        assert row in PAGE


def test_every_command_stands_in_the_table() -> None:
    for number, name in enumerate(NAMES, 1):
        assert f"| {number} | {name} | " in PAGE


def test_every_cause_is_described() -> None:
    missing = [cause for cause in Cause if f"| `{cause}` | " not in PAGE]
    assert missing == []
