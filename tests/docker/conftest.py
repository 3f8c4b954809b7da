"""One image and one engine for all tests here; without an engine they are left out, and fail where
the suite decides."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.docker.engine import Engine, engine, images_folder, lacking
from tests.tree import ROOT

DOCKER = ROOT / "docker"
FIRST_TEST_S_MAX = 1_800
SELF_SIGNED = (
    *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"),
    *("-subj", "/CN=canary of the tests", "-days", "2"),
)


class Built(NamedTuple):
    """The image, as it was built beside a private authority that no image may know."""

    images: Path
    said: str
    canary: str  # of its certificate, one line of base64


@pytest.hookimpl(tryfirst=True)  # xdist reads the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        names = item.fixturenames if isinstance(item, pytest.Function) else ()
        if Path(__file__).parent in item.path.parents and "image" in names:
            item.add_marker(pytest.mark.xdist_group("docker"))
            item.add_marker(pytest.mark.timeout(FIRST_TEST_S_MAX))  # the first one builds


def made_canary(folder: Path) -> Path:
    """A certificate of an authority that nobody knows."""
    files = ("-keyout", str(folder / "canary.key"), "-out", str(folder / "canary.crt"))
    subprocess.run(
        [*SELF_SIGNED, *files],
        check=True,
        capture_output=True,
    )
    return folder / "canary.crt"


@pytest.fixture(scope="session")
def image(tmp_path_factory: pytest.TempPathFactory) -> Built:
    lack = lacking()
    if lack:
        if os.environ.get("CI") == "true":
            pytest.fail(lack, pytrace=False)
        pytest.skip(lack)
    folder = tmp_path_factory.mktemp("image")
    canary = made_canary(folder)
    bundle = folder / "bundle.crt"
    own = os.environ.get("PIP_CERT")
    bundle.write_bytes((Path(own).read_bytes() if own else b"") + canary.read_bytes())
    images = images_folder()
    with engine(images, is_apart=False) as builder:
        base = builder.run(DOCKER / "base").stdout.strip()
        said = builder.run(DOCKER / "build", "--base", base, "--ca", bundle).stdout
        builder.docker("image", "prune", "--force")
    return Built(images, said, canary.read_text().splitlines()[2])


@pytest.fixture(scope="package")
def running(image: Built) -> Iterator[Engine]:
    with engine(image.images, is_apart=True) as found:
        found.docker("container", "prune", "--force")
        found.docker("volume", "prune", "--force")
        yield found
