"""A cluster of real nodes on this machine, to develop and test against.

Every node is a process of its own on loopback with its own directory, keys, ports and log. The
founding roster stands in the genesis. Nothing here is for production: one user holds all keys.
"""

from quipu.devnet.devnet import Devnet
from quipu.devnet.failures import DevnetFailed, DevnetTaken, NoDevnet, WrongNode
from quipu.devnet.plan import NodePlan, Plan

__all__ = ["Devnet", "DevnetFailed", "DevnetTaken", "NoDevnet", "NodePlan", "Plan", "WrongNode"]
