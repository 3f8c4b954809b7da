"""An engine of the tests' own: dockerd with its data, socket and pid file in folders of ours.

Images are built by one that shares this machine's network, for pip and debootstrap; containers run
under one in a network namespace of its own, where every address is the tests' alone. Both
use one folder of images after the other. It is ended by its process id alone.
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

START_S = 60.0
STARTS = 3
STOP_S = 60.0
COMMAND_S = 1_500.0  # debootstrap and pip on a busy machine
NEEDS = ("dockerd", "docker", "docker-compose", "debootstrap", "ip", "nsenter", "setpriv")
QUICK = "/dev/shm"  # in memory: debootstrap syncs each of 7,000 files
ENDS_WITH_US = ("setpriv", "--pdeathsig", "TERM", "--")  # also where this run is killed
LOOPBACK_UP = 'ip link set lo up && exec "$@"'


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
    """dockerd gives its containerd a few seconds and ends itself after them: a machine that is busy
    with other tests may need another try."""
    for left in reversed(range(STARTS)):
        folder = Path(tempfile.mkdtemp(prefix="quipu-engine-"))
        made = _launched(images, folder, is_apart)
        try:
            try:
                _wait_until_it_answers(made, folder / "log")
            except EngineEnded:
                if not left:
                    raise
                continue
            yield made
            return
        finally:
            _end(made)
            left_over = folder / "exec" / "netns" / "default"  # dockerd leaves it mounted
            subprocess.run(["umount", left_over], check=False, capture_output=True)
            shutil.rmtree(folder, ignore_errors=True)


def _launched(images: Path, folder: Path, is_apart: bool) -> Engine:
    command = [
        "dockerd",
        f"--data-root={images}",
        f"--exec-root={folder / 'exec'}",
        f"--pidfile={folder / 'pid'}",
        f"--host=unix://{folder / 'socket'}",
    ]
    if is_apart:
        command = ["unshare", "--net", "--", "sh", "-c", LOOPBACK_UP, "sh", *command]
    else:  # nothing of this machine's network is changed
        command += ["--bridge=none", "--iptables=false", "--ip6tables=false", "--ip-forward=false"]
    command = [*ENDS_WITH_US, *command]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    return Engine(process, folder / "socket", is_apart)


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
        made.process.send_signal(signal.SIGTERM)
        try:
            made.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            made.process.kill()
            made.process.wait()
    _wait_for_containerd(made.socket.parent / "exec" / "containerd" / "containerd.pid")


def _wait_for_containerd(pid_file: Path) -> None:
    """It outlives its dockerd a little, and until then nobody else can open its files."""
    try:
        pid = int(pid_file.read_text())
    except (OSError, ValueError):
        return  # it has put its things away
    deadline = time.monotonic() + STOP_S
    while _is_containerd(pid) and time.monotonic() < deadline:
        time.sleep(0.1)


def _is_containerd(pid: int) -> bool:
    try:
        return "containerd" in Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return False  # it has ended
