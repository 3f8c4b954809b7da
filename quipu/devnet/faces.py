"""What a devnet asks of its nodes: their figures and their health."""

import json
import urllib.error
import urllib.request
from contextlib import suppress
from typing import Any

from quipu.devnet import limits
from quipu.devnet.plan import NodePlan

_NO_PROXY = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def figure(node: NodePlan, name: str) -> float | None:
    """Of /metrics; None while the node does not answer."""
    for line in _get(f"{node.ops}/metrics").splitlines():
        if line.startswith(f"quipu_{name} "):
            return float(line.rpartition(" ")[2])
    return None


def is_ready(node: NodePlan) -> bool:
    """It takes entries; `/readyz` of another node on that port does not count."""
    with suppress(ValueError):
        facts: dict[str, Any] = json.loads(_get(f"{node.ops}/readyz") or "{}")
        return facts.get("status") == "ok"
    return False


def _get(url: str) -> str:
    try:
        with _NO_PROXY.open(url, timeout=limits.ANSWER_S_MAX) as answer:
            return str(answer.read().decode())
    except (OSError, urllib.error.URLError):
        return ""
