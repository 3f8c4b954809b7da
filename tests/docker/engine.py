"""An engine of the tests' own: containerd and dockerd with data, sockets and pid file in folders of
ours.

Images are built by one that shares this machine's network, for pip and debootstrap; containers run
under one in a network namespace of its own, where every address is the tests' alone. Both
use one folder of images after the other. They are ended by their process ids alone.
"""

import hashlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.tree import ROOT

START_S = 180.0  # of a machine whose disk is busy with other tests
STOP_S = 60.0
COMMAND_S = 1_500.0  # debootstrap and pip on a busy machine
NEEDS = (
    "containerd",
    "dockerd",
    "docker",
    "docker-compose",
    "debootstrap",
    "ip",
    "nsenter",
    "setpriv",
)
QUICK = "/dev/shm"  # in memory: debootstrap syncs each of 7,000 files
ENDS_WITH_US = ("setpriv", "--pdeathsig", "TERM", "--")  # also where this run is killed
LOOPBACK_UP = 'ip link set lo up && exec "$@"'
CONTAINERD = """\
version = 2
root = "{images}/containerd/daemon"
state = "{folder}/exec/containerd/daemon"
disabled_plugins = ["io.containerd.grpc.v1.cri"]
[grpc]
address = "{folder}/containerd"
"""


def lacking() -> str:
    """What this machine has not, to run containers; empty: nothing."""
    if os.geteuid() != 0:
        return "an engine of the tests' own needs root"
    found = [name for name in NEEDS if shutil.which(name) is None]
    return f"missing: {', '.join(found)}" if found else ""


def images_folder() -> Path:
    """Kept between runs, one for each tree: what is unchanged is not built anew."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    place = cache / "quipu" / f"engine-{hashlib.sha256(str(ROOT).encode()).hexdigest()[:12]}"
    place.mkdir(parents=True, exist_ok=True)
    return place


class EngineEnded(Exception):
    """With the end of what it said."""


@dataclass(slots=True)
class Engine:
    process: subprocess.Popen[bytes]
    socket: Path
    is_apart: bool

    @property
    def environment(self) -> dict[str, str]:
        kept = {n: t for n, t in os.environ.items() if not n.startswith(("QUIPU_", "COMPOSE_"))}
        return kept | {"DOCKER_HOST": f"unix://{self.socket}", "TMPDIR": QUICK}

    def run(self, *command: str | Path, check: bool = True) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [str(part) for part in command],
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=COMMAND_S,
        )
        assert not check or done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done

    def docker(self, *arguments: str, check: bool = True) -> str:
        return self.run("docker", *arguments, check=check).stdout.strip()

    def inside(self, *command: str) -> subprocess.CompletedProcess[str]:
        """A command of this machine that sees the network of the engine: published ports."""
        assert self.is_apart
        entered = ("nsenter", "--net", "--target", str(self.process.pid), "--")
        return self.run(*entered, *command, check=False)


@contextmanager
def engine(images: Path, *, is_apart: bool) -> Iterator[Engine]:
    """A containerd that dockerd starts has seconds to open its files; ours has more."""
    folder = Path(tempfile.mkdtemp(prefix="quipu-engine-"))
    below = _containerd(images, folder, is_apart)
    try:
        made = _dockerd(images, folder, below.pid if is_apart else None)
        try:
            _wait_until_it_answers(made, folder / "dockerd.log")
            yield made
        finally:
            _end(made)
    finally:
        _end_process(below)
        left_over = folder / "exec" / "netns" / "default"  # dockerd leaves it mounted
        subprocess.run(["umount", left_over], check=False, capture_output=True)
        shutil.rmtree(folder, ignore_errors=True)


def _containerd(images: Path, folder: Path, is_apart: bool) -> subprocess.Popen[bytes]:
    settings = folder / "containerd.toml"
    settings.write_text(CONTAINERD.format(images=images, folder=folder))
    command = ["containerd", f"--config={settings}"]
    if is_apart:
        command = ["unshare", "--net", "--", "sh", "-c", LOOPBACK_UP, "sh", *command]
    process = _started(command, folder / "containerd.log")
    deadline = time.monotonic() + START_S
    while not (folder / "containerd").exists():
        said = (folder / "containerd.log").read_text(errors="replace")[-2_000:]
        if process.poll() is not None:
            raise EngineEnded(f"containerd has ended: {said}")
        if time.monotonic() > deadline:
            _end_process(process)
            raise EngineEnded(f"containerd does not listen: {said}")
        time.sleep(0.1)
    return process


def _dockerd(images: Path, folder: Path, beside: int | None) -> Engine:
    """In the network of that process, or in this machine's."""
    command = [
        "dockerd",
        f"--containerd={folder / 'containerd'}",
        f"--data-root={images}",
        f"--exec-root={folder / 'exec'}",
        f"--pidfile={folder / 'pid'}",
        f"--host=unix://{folder / 'socket'}",
    ]
    if beside is not None:
        command = ["nsenter", "--net", "--target", str(beside), "--", *command]
    else:  # nothing of this machine's network is changed
        command += ["--bridge=none", "--iptables=false", "--ip6tables=false", "--ip-forward=false"]
    return Engine(_started(command, folder / "dockerd.log"), folder / "socket", beside is not None)


def _started(command: list[str], log: Path) -> subprocess.Popen[bytes]:
    with log.open("wb") as out:
        return subprocess.Popen(
            [*ENDS_WITH_US, *command], stdout=out, stderr=out, start_new_session=True
        )


def _wait_until_it_answers(made: Engine, log: Path) -> None:
    deadline = time.monotonic() + START_S
    while made.run("docker", "version", check=False).returncode != 0:
        said = log.read_text(errors="replace")[-2_000:]
        if made.process.poll() is not None:
            raise EngineEnded(f"dockerd has ended: {said}")
        assert time.monotonic() < deadline, f"dockerd does not answer: {said}"
        time.sleep(0.1)


def _end(made: Engine) -> None:
    if made.process.poll() is None:
        running = made.run("docker", "ps", "--quiet", check=False).stdout.split()
        if running:
            made.run("docker", "kill", *running, check=False)
    _end_process(made.process)


def _end_process(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
