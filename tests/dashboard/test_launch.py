"""The server: its settings, ports that are taken, and a clean end."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dashboard.launch import browse, command, free_port
from records.errors import ConfigError, WorkspaceError

_BROWSE = (
    "import sys; from pathlib import Path; from dashboard.launch import browse\n"
    "sys.exit(browse(Path(sys.argv[1]), port=int(sys.argv[2]), open_browser=False))"
)


@pytest.fixture
def taken() -> Iterator[int]:
    listener = socket.create_server(("localhost", 0))
    yield listener.getsockname()[1]
    listener.close()


def test_the_server_is_local_and_sends_no_statistics() -> None:
    flags = command("localhost", 8765)
    assert "--server.address=localhost" in flags
    assert "--server.port=8765" in flags
    assert "--browser.gatherUsageStats=false" in flags
    assert "--server.showEmailPrompt=false" in flags


def test_a_taken_port_is_said(taken: int, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"port {taken}.*--port"):
        browse(tmp_path / "ws", port=taken, open_browser=False)


@pytest.mark.parametrize("port", [-1, 70000])
def test_an_impossible_port_is_said(port: int) -> None:
    with pytest.raises(ConfigError, match="--port"):
        free_port("localhost", port)


def test_without_a_port_any_free_one_will_do(monkeypatch: pytest.MonkeyPatch, taken: int) -> None:
    monkeypatch.setattr("dashboard.launch.DEFAULT_PORT", taken)
    assert free_port("localhost", None) not in {0, taken}


def test_an_unusable_workspace_is_said_before_anything_starts(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(WorkspaceError):
        browse(tmp_path / "file", port=None, open_browser=False)


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_it_prints_its_address_and_ends_cleanly(
    ending: signal.Signals, unchecked_home: Path
) -> None:
    port = free_port("localhost", None)
    process = subprocess.Popen(
        [sys.executable, "-c", _BROWSE, str(unchecked_home), str(port)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert f"http://localhost:{port}" in process.stdout.readline()
    process.send_signal(ending)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 0
    assert "Traceback" not in errors
    assert free_port("localhost", port) == port
