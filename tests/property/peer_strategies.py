"""Values of the peer protocol, as hypothesis draws them."""

from hypothesis import strategies as st

from quipu.p2p import bodies, decen, gossip
from quipu.p2p.addresses import SignedEndpoint
from quipu.p2p.decen import is_pool_name
from tests.property.strategies import ids, maybe, prefixes, u64

u8 = st.one_of(st.sampled_from([0, 127, 128, 255]), st.integers(0, 255))
u16 = st.one_of(st.sampled_from([0, 255, 256, 65535]), st.integers(0, 65535))
visible = st.characters(exclude_categories=("Cc", "Cs"))
words = st.text(visible, max_size=60)
pools = st.one_of(st.text(visible, min_size=1, max_size=60), st.just("p" * 255)).filter(
    is_pool_name
)
names = st.text(visible.filter(lambda c: c != "="), min_size=1, max_size=20)
signatures = st.binary(min_size=64, max_size=64)

hosts = st.one_of(
    st.ip_addresses().filter(lambda ip: not ip.is_unspecified).map(str),
    st.from_regex(r"[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?(\.[a-z]{1,10}){0,3}", fullmatch=True).filter(
        lambda host: not host.split(".")[-1].isdigit()
    ),
)
ports = st.integers(1, 65535)

commands: st.SearchStrategy[decen.Command] = st.one_of(
    st.builds(
        decen.Hello,
        u16,
        words,
        u16,
        st.lists(pools, max_size=5, unique=True).map(tuple),
        u8,
        st.dictionaries(names, words, max_size=5).map(lambda pairs: tuple(pairs.items())),
    ),
    st.builds(decen.Alive, u16),
    st.builds(decen.Broadcast, u16, pools),
    st.builds(decen.Join, u16, pools, u8),
    st.builds(decen.Leave, u16, pools, u8),
    st.builds(decen.Ping, u16),
    st.builds(decen.DecenAck, u16),
)
endpoints = st.builds(SignedEndpoint, ids, ids, words, u16, u64, signatures)
short = st.text(visible, min_size=1, max_size=16)
bodies_of_all_kinds: st.SearchStrategy[bodies.Body] = st.one_of(
    st.builds(bodies.Discovered, endpoints, short),
    st.builds(bodies.Joined, endpoints, u64),
    st.builds(bodies.Lost, ids, u64, u64),
    st.builds(bodies.HealthQuery, ids),
    st.builds(bodies.HealthAnswer, prefixes, ids, u64, maybe(u64)),
    st.builds(bodies.Query, short, st.binary(max_size=40)),
    st.builds(bodies.Answer, prefixes, st.binary(max_size=40)),
    st.builds(bodies.Ack, prefixes, maybe(endpoints)),
    st.builds(bodies.Addresses, st.lists(endpoints, max_size=3)),
    st.builds(bodies.Unsupported, prefixes, u8, u8),
    st.builds(bodies.VersionMismatch, u8, u8, short),
)
messages = st.builds(
    gossip.Gossip,
    st.just(gossip.GOSSIP_VERSION),
    prefixes,
    u8,
    ids,
    maybe(ids),
    u8,
    u64,
    st.integers(0, 16),
    st.one_of(st.binary(max_size=40), st.sampled_from([bytes(255), bytes(256), bytes(65536)])),
    maybe(signatures),
)
# A message of a later version: flat, and it begins with version, id and kind.
foreign = st.builds(
    lambda version, identity, kind, rest: [version, identity, kind, *rest],
    st.integers(2, 255),
    prefixes,
    u8.filter(lambda kind: kind != gossip.Kind.LEAVING),
    st.lists(
        st.one_of(st.none(), u64, st.integers(-(2**63), -1), st.binary(max_size=40)), max_size=12
    ),
)
