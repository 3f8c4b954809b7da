import pytest

from quipu.p2p.addresses import (
    BadUri,
    decode_endpoint,
    encode_endpoint,
    is_newer,
    parse_endpoint,
    parse_uri,
    sign_endpoint,
    uri_of,
)
from quipu.p2p.words import Endpoint
from tests.peer_samples import CLUSTER_ID
from tests.small_ledger import key_of

NODE_ID = key_of("n1").node_id
ID = NODE_ID.hex()


@pytest.mark.parametrize(
    ("uri", "endpoint"),
    [
        (f"quipu://10.0.0.1:8471/{ID}", Endpoint("10.0.0.1", 8471)),
        (f"quipu://[::1]:1/{ID}", Endpoint("::1", 1)),
        (f"quipu://n1.example.org:65535/{ID}", Endpoint("n1.example.org", 65535)),
    ],
)
def test_a_uri_is_read_and_written(uri: str, endpoint: Endpoint) -> None:
    assert parse_uri(uri) == (NODE_ID, endpoint)
    assert uri_of(NODE_ID, endpoint) == uri
    assert parse_uri(uri.replace(ID, ID.upper())) == (NODE_ID, endpoint)


@pytest.mark.parametrize(
    ("uri", "words"),
    [
        ("", "does not begin with quipu://"),
        (f"tcp://n1:1/{ID}", "does not begin with quipu://"),
        ("quipu://n1:8471", "has no node id"),
        ("quipu://n1:8471/", "has no node id"),
        ("quipu://n1:8471/abc", "64 hex digits, these are 3 characters"),
        (f"quipu://n1:8471/{ID}/", "64 hex digits, these are 65 characters"),
        (f"quipu://n1/{ID}", "has no port; write host:port, as 10.0.0.1:8471 or [::1]:8471"),
        (f"quipu://[::1]/{ID}", "has no port"),
        (f"quipu://::1:8471/{ID}", "an IPv6 address stands in brackets"),
        (f"quipu://[n1]:8471/{ID}", "only an IPv6 address stands in brackets"),
        (f"quipu://n1:0/{ID}", "a number from 1 to 65535"),
        (f"quipu://n1:65536/{ID}", "a number from 1 to 65535"),
        (f"quipu://n1:http/{ID}", "a number from 1 to 65535"),
        (f"quipu://0.0.0.0:1/{ID}", "no IP address or DNS name that can be dialled"),
        (f"quipu://me@n1:1/{ID}", "no IP address or DNS name that can be dialled"),
        (f"quipu://:1/{ID}", "no IP address or DNS name that can be dialled"),
    ],
)
def test_a_bad_uri_is_told_what_is_wrong(uri: str, words: str) -> None:
    with pytest.raises(BadUri) as caught:
        parse_uri(uri)
    assert words in str(caught.value)


def test_an_endpoint_alone() -> None:
    assert parse_endpoint("[2001:db8::1]:8471") == Endpoint("2001:db8::1", 8471)
    assert str(Endpoint("2001:db8::1", 8471)) == "[2001:db8::1]:8471"


def test_the_newest_stamp_wins() -> None:
    old, new = (
        sign_endpoint(key_of("n1"), CLUSTER_ID, Endpoint("n1", 1), stamp) for stamp in (5, 6)
    )
    assert is_newer(new, old)
    assert not is_newer(old, new)
    assert not is_newer(old, old)
    assert decode_endpoint(encode_endpoint(new)) == new
