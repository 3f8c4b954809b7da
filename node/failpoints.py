"""The variable that arms failpoints; what they are stands with the store, that has most of them."""

from quipu.node.exits import BadSetting
from quipu.storage import failpoints
from quipu.storage.failpoints import ACTIONS, SITES, NoFailpoint, is_armed, passing

__all__ = ["SITES", "VARIABLE", "arm", "is_armed", "passing"]

VARIABLE = "QUIPU_FAILPOINTS"


def arm(text: str) -> None:
    """Raises `BadSetting`; empty turns all off."""
    try:
        failpoints.arm(text)
    except NoFailpoint as error:
        raise BadSetting(
            f"{VARIABLE}: {str(error)!r} is no failpoint",
            f"It is a variable for tests. Sites: {', '.join(SITES)}; "
            f"actions: {', '.join(ACTIONS)}.",
        ) from error
