"""docs/tour.md: every block runs as it stands, in order, and says what the page says.

Two things differ from a reader's terminal: the ports, and that `make run` starts the command behind
that target, in a directory of the test.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from socket import socket
from typing import NamedTuple

import pytest

from tests import tree
from tests.process.command import environment

PAGE = "docs/tour.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```\n(?:\n```text\n(.*?)^```)?", re.MULTILINE | re.DOTALL)
READY = "the next start has the data"
END = "--- end of block"
# For a machine that has none: what the page asks of it.
CURL = f"""#!{sys.executable}
import sys
from urllib.request import Request, urlopen

silent, url, *options = sys.argv[1:]
given = dict(zip(options[::2], options[1::2]))
headers = dict(h.split(": ") for f, h in zip(options[::2], options[1::2]) if f == "-H")
print(urlopen(Request(url, given["-d"].encode(), headers)).read().decode(), end="")
"""
API_PORT, OPS_PORT = "8470", "8472"
RUN_S = 60.0


class Block(NamedTuple):
    language: str
    code: str
    expected: str


def blocks() -> list[Block]:
    return [Block(*found) for found in BLOCK.findall(tree.read(PAGE))]


def pattern(expected: str) -> re.Pattern[str]:
    """The page's text with any run of white space alike, and `…` for anything within a line."""
    lines = [line.split() for line in expected.strip().splitlines()]
    parts = [r"\s+".join(re.escape(word).replace("…", ".*?") for word in line) for line in lines]
    whole = r"\s*\n\s*".join("(?s:.*?)" if part == ".*?" else part for part in parts)
    return re.compile(whole + r"\s*\Z")


class Terminals:
    """The two of the page: the node in one, a shell in the other."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ports = {name: str(free_port()) for name in (API_PORT, OPS_PORT)}
        (folder / ".venv").symlink_to(sys.prefix)
        if shutil.which("curl", path=os.defpath) is None:
            write_program(folder / "curl", CURL)
        self.node: subprocess.Popen[str] | None = None
        url = "http://127.0.0.1:"
        self.environment = environment(
            QUIPU_URL=url + self.ports[API_PORT], QUIPU_OPS_URL=url + self.ports[OPS_PORT]
        )
        self.shell = subprocess.Popen(
            ["bash", "--norc"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env=self.environment | {"PATH": f"{os.defpath}:{folder}"},
            text=True,
        )

    def run(self, block: Block) -> str:
        """What it says, with the ports of the page."""
        code = self.with_ports(block.code, back=False)
        if block.code.strip() == "make run":
            said = self.make_run()
        elif block.language == "sh":
            said = self.type(code)
        else:
            said = self.python(code)
        return self.with_ports(said, back=True)

    def with_ports(self, text: str, back: bool) -> str:
        for shown, real in self.ports.items():
            text = text.replace(real, shown) if back else text.replace(shown, real)
        return text

    def make_run(self) -> str:
        self.stop_node()
        flags = []
        for name, port in zip(("api", "ops"), self.ports.values(), strict=True):
            flags += [f"--{name}-listen", f"127.0.0.1:{port}"]
        command = [sys.executable, "-m", "quipu.cli", "run", *flags]
        self.node = subprocess.Popen(
            command, stderr=subprocess.PIPE, cwd=self.folder, env=self.environment, text=True
        )
        assert self.node.stderr is not None
        said = ""
        while READY not in said:
            line = self.node.stderr.readline()
            assert line, said
            said += line
        return said

    def type(self, code: str) -> str:
        assert self.shell.stdin is not None
        assert self.shell.stdout is not None
        self.shell.stdin.write(f'{code}\nprintf "\\n{END} %s\\n" $?\n')
        self.shell.stdin.flush()
        said = ""
        for line in self.shell.stdout:
            if line.startswith(END):
                assert line == f"{END} 0\n", f"{code}\n{said}{line}"
                return said
            said += line
        raise AssertionError(f"the shell ended: {said}")

    def python(self, code: str) -> str:
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", code],
            capture_output=True,
            text=True,
            cwd=self.folder,
            env=self.environment,
            timeout=RUN_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def stop_node(self) -> None:
        if self.node is not None:
            self.node.send_signal(2)  # Ctrl-C
            self.node.communicate(timeout=RUN_S)
            assert self.node.returncode == 0
            self.node = None

    def close(self) -> None:
        if self.node is not None:
            self.node.kill()
            self.node.communicate()
        self.shell.kill()
        self.shell.communicate()


def write_program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def free_port() -> int:
    """The page names the port of its node beforehand, so this has to, too."""
    with socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.mark.timeout(120)
def test_every_block_does_what_the_page_says(tmp_path: Path) -> None:
    terminals = Terminals(tmp_path)
    try:
        for block in blocks():
            said = terminals.run(block)
            if block.expected:
                wanted = pattern(block.expected)
                assert wanted.match(said.strip()), f"{block.code}\nsaid:\n{said}\nnot:\n{wanted}"
        terminals.stop_node()
    finally:
        terminals.close()


def test_the_page_has_what_a_tour_needs() -> None:
    code = "\n".join(block.code for block in blocks())
    assert {block.language for block in blocks()} == {"sh", "python"}
    for step in (
        "make run",
        *("submit", "list", "get", "status", "follow", "proof", "verify"),
        *("--key", "forged", "--lines", "curl", "quipu.Client", "submit_batch"),
    ):
        assert step in code, step
    assert code.count("make run") == 2
    assert "run: install" in tree.read("Makefile")
    assert "\n\t@exec $(BIN)/quipu run $(RUN)\n" in tree.read("Makefile"), "what is started here"


def test_what_is_compared_is_strict() -> None:
    assert pattern("a  …:0 b\n").match("a 12:0   b")
    assert not pattern("a …:0\n").match("a 12:1")
    assert not pattern("a\n").match("a\nb")
    assert pattern("a\n…\nb\n").match("a\n1\n2\n b")
