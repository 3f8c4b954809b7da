"""The loop: a sample, a mutation, two readers, and what is wrong if they differ."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from time import perf_counter, process_time

from quipu.ledger.refusals import Refused
from quipu.p2p.refusals import FrameRefused
from tests.fuzz.mutate import Mutator, Sample
from tests.fuzz.target import Agreement, Target, Unsure
from tests.vectors.check import Bad

SECONDS_MAX = 1.0  # of CPU on one input: another process may well take the machine for longer
TURN_SECONDS = 0.02  # of one target before the next


@dataclass(frozen=True)
class Finding:
    target: str
    what: str
    sample: Sample

    def __str__(self) -> str:
        told = " ".join(part.hex() or "-" for part in self.sample)
        return f"{self.target}: {self.what}\n  replay: --target {self.target} --replay {told}"


def examine(target: Target, sample: Sample) -> Finding | None:
    """What is wrong with how this input is read, if anything."""
    started = process_time()
    try:
        taken, value = True, target.product(*sample)
    except (Refused, FrameRefused):
        taken, value = False, None
    except (Exception, RecursionError) as error:  # noqa: BLE001 - any other is a finding
        return Finding(target.name, f"raises {type(error).__name__}: {error}"[:200], sample)
    seconds = process_time() - started
    if seconds > SECONDS_MAX:
        return Finding(target.name, f"takes {seconds:.1f} s", sample)
    try:
        expected, other = True, target.oracle(*sample)
    except Bad as bad:
        expected, other = False, str(bad)
    except Unsure:
        return None
    if taken and not expected and target.agreement is not Agreement.WIDER:
        return Finding(target.name, f"takes what the oracle refuses: {other}", sample)
    if expected and not taken and target.agreement is not Agreement.NARROWER:
        return Finding(target.name, "refuses what the oracle takes", sample)
    if expected and value is not None and value != other:
        return Finding(target.name, f"reads {value}, the oracle {other}", sample)
    return None


class Fuzzer:
    """Same seed: the same inputs of each target in the same order, for as long as it runs."""

    def __init__(self, targets: Sequence[Target], seed: int) -> None:
        self.targets = targets
        self.executions: dict[str, int] = dict.fromkeys((t.name for t in targets), 0)
        self.seconds: dict[str, float] = dict.fromkeys((t.name for t in targets), 0.0)
        self._randoms = {t.name: Random(f"{seed} {t.name}") for t in targets}
        self._mutators = {name: Mutator(random) for name, random in self._randoms.items()}

    def run(self, seconds: float) -> Iterator[Finding]:
        """Findings as they come, until the time is over."""
        until = perf_counter() + seconds
        while perf_counter() < until:
            for target in self.targets:
                started = perf_counter()
                while perf_counter() - started < TURN_SECONDS * target.share:
                    finding = examine(target, self.next_sample(target))
                    self.executions[target.name] += 1
                    if finding is not None:
                        yield finding
                self.seconds[target.name] += perf_counter() - started

    def next_sample(self, target: Target) -> Sample:
        random = self._randoms[target.name]
        sample = self._mutators[target.name].mutated(random.choice(target.corpus))
        if target.repair is not None and random.random() < 0.7:
            return target.repair(random, sample)
        return sample
