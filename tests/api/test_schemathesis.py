"""schemathesis on the OpenAPI: no 5xx, no undocumented status, nothing invalid taken."""

import subprocess
import sys
from pathlib import Path

import pytest

from quipu.api.settings import Settings
from quipu.api.tokens import new_token
from tests.api.administered import administration_in
from tests.api.test_commands import Threaded

EXAMPLES = "12"
CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,"
    "response_schema_conformance,negative_data_rejection"
)


def run(threaded: Threaded, folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    url = threaded.node.url
    program = str(Path(sys.executable).parent / "schemathesis")
    command = [program, "run", f"{url}/openapi.json", "--url", url, "--seed", "4"]
    # A stream does not end, and a batch says of each item what is wrong with it.
    command += ["--exclude-operation-id", "follow", "--generation-deterministic"]
    command += ["--phases", "examples,coverage,fuzzing", "--max-examples", EXAMPLES, *options]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )


@pytest.mark.parametrize("with_tokens", [False, True])
def test_schemathesis_finds_nothing(with_tokens: bool, tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    text = new_token(path, "app", ["admin"])
    settings = Settings(port=0, ops_port=0, tokens_file=path if with_tokens else None)
    administration, drained = administration_in(tmp_path)
    threaded = Threaded(settings, administration=administration)
    try:
        token = ("--header", f"Authorization: Bearer {text}") if with_tokens else ()
        each = run(
            threaded, tmp_path, *token, "--checks", CHECKS, "--exclude-operation-id", "submit_batch"
        )
        assert each.returncode == 0, each.stdout[-20_000:]
        plain = CHECKS.rpartition(",")[0]
        batch = run(
            threaded, tmp_path, *token, "--checks", plain, "--include-operation-id", "submit_batch"
        )
        assert batch.returncode == 0, batch.stdout[-20_000:]
        if with_tokens:
            nobody = run(threaded, tmp_path, "--checks", plain)
            assert nobody.returncode == 0, nobody.stdout[-20_000:]
            assert drained.count > 0
    finally:
        threaded.stop()
