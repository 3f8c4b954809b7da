"""The image: what is in it, what is not, and how it runs where it may do nothing."""

import io
import json
import re
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docker.conftest import Built
from tests.docker.engine import Engine

IMAGE = "quipu:latest"
COMPRESSED_MB_MAX = 100
CONFINED = ("--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges")
PRIVATE = re.compile(
    rb"-----BEGIN [A-Z ]*PRIVATE KEY-----\n[A-Za-z0-9+/=]{40}|quipu_[A-Za-z0-9_-]{43}"
)
FILE_BYTES_MAX = 64 << 20


def saved(engine: Engine, folder: Path) -> Iterator[tuple[str, bytes]]:
    """Every file of every layer of the image, also of what a later layer hides."""
    whole = folder / "image.tar"
    engine.docker("save", "--output", str(whole), IMAGE)
    with tarfile.open(whole) as image:
        for item in image:
            if not item.isfile() or item.size < 512:
                continue
            stream = image.extractfile(item)
            assert stream is not None
            with stream:
                data = stream.read()
            if data[257:262] != b"ustar":
                yield item.name, data
                continue
            with tarfile.open(fileobj=io.BytesIO(data)) as layer:
                for file in layer:
                    content = layer.extractfile(file) if file.isfile() else None
                    if content is not None:
                        yield file.name, content.read(FILE_BYTES_MAX)


def test_it_is_small(image: Built) -> None:
    found = re.search(r"^quipu:\S+ ([\d.]+) MB compressed$", image.said, re.MULTILINE)
    assert found is not None, image.said
    assert float(found[1]) < COMPRESSED_MB_MAX


def test_no_file_of_any_layer_holds_a_secret_or_the_authority_of_the_build(
    image: Built, running: Engine, tmp_path: Path
) -> None:
    names = set()
    for name, data in saved(running, tmp_path):
        assert image.canary.encode() not in data, name
        is_program = data[:4] == b"\x7fELF" or name.endswith((".py", ".pyc"))
        if not is_program:  # libraries of cryptography carry keys to test themselves with
            assert PRIVATE.search(data) is None, name
        names.add(name)
    assert not [n for n in names if n.startswith(("build/", "root/.cache/pip"))]
    assert "opt/quipu/bin/quipu" in names


TRUSTED = """
import hashlib, pathlib, re
package = pathlib.Path("/var/lib/dpkg/info/ca-certificates.md5sums").read_text()
listed = dict(reversed(line.split(None, 1)) for line in package.splitlines())
folder = pathlib.Path("/usr/share/ca-certificates")
debian = set()
for file in sorted(folder.rglob("*.crt")):
    name = str(file.relative_to("/"))
    assert hashlib.md5(file.read_bytes()).hexdigest() == listed[name], name
    debian.add("".join(file.read_text().split()))
assert len(debian) > 100, len(debian)
store = pathlib.Path("/etc/ssl/certs/ca-certificates.crt").read_text()
form = "-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----"
trusted = {"".join(found.split()) for found in re.findall(form, store, re.DOTALL)}
assert trusted == debian, len(trusted ^ debian)
assert not any(pathlib.Path("/usr/local/share/ca-certificates").glob("*"))
alone = {"".join(f.read_text().split()) for f in pathlib.Path("/etc/ssl/certs").glob("*.pem")}
assert alone == debian
print("as Debian's")
"""


@pytest.mark.usefixtures("image")
def test_it_trusts_whom_debian_trusts_and_nobody_else(running: Engine) -> None:
    said = running.docker("run", "--rm", "--entrypoint", "python3", IMAGE, "-c", TRUSTED)
    assert said == "as Debian's"


@pytest.mark.usefixtures("image")
def test_what_the_image_says_about_itself(running: Engine) -> None:
    [found] = json.loads(running.docker("image", "inspect", IMAGE))
    config = found["Config"]
    assert config["Entrypoint"] == ["quipu"]
    assert config["Cmd"] == ["run"]
    assert config["User"] == "65532:65532"
    assert config["Volumes"] == {"/data": {}}
    assert config["StopSignal"] == "SIGTERM"
    assert config["Healthcheck"]["Test"][:3] == ["CMD", "quipu", "check"]
    labels = {name.removeprefix("org.opencontainers.image.") for name in config["Labels"]}
    assert labels >= {"title", "description", "licenses", "version", "revision"}
    assert not [one for one in config["Env"] if re.search("TOKEN|SECRET|PASSWORD|PIP", one)]


CONFINEMENT = """
import os, pathlib
status = pathlib.Path("/proc/self/status").read_text()
for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
    assert int(status.split(name + ":")[1].split()[0], 16) == 0, name
assert "NoNewPrivs:\\t1" in status
for place in ("/etc", "/opt/quipu", "/", "/usr/bin"):
    try:
        (pathlib.Path(place) / "written").touch()
    except OSError:
        continue
    raise SystemExit(f"{place} can be written")
print(os.getuid(), os.getgid())
"""


@pytest.mark.usefixtures("image")
@pytest.mark.parametrize("user", ["65532:65532", "4711", "1000620000:0", "12345:54321"])
def test_any_uid_without_rights_and_with_a_root_that_cannot_be_written(
    user: str, running: Engine
) -> None:
    uid, _, gid = user.partition(":")
    confined = ("--rm", *CONFINED, "--tmpfs", "/tmp", "--user", user)
    said = running.docker("run", *confined, "--entrypoint", "python3", IMAGE, "-c", CONFINEMENT)
    assert said == f"{uid} {gid or 0}"
    told = running.docker("run", *confined, IMAGE, "init", "--json", "--name", "alone")
    assert json.loads(told)["data_dir"] == "/data"


@pytest.mark.usefixtures("image")
def test_a_public_address_without_tokens_is_refused_in_words(running: Engine) -> None:
    done = running.run(
        "docker", "run", "--rm", "--read-only", "--tmpfs", "/tmp", IMAGE, check=False
    )
    assert done.returncode == 2
    assert "--insecure" in done.stderr
