"""Starts the dashboard's server and ends it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from records.errors import ConfigError
from records.workspace import open_workspace

APP = Path(__file__).with_name("app.py")
DEFAULT_PORT = 8501
_PORTS = 65536
_START_SECONDS = 60.0
_END_SECONDS = 5.0
_SETTINGS = {
    "server.headless": "true",
    "logger.level": "warning",
    "runner.magicEnabled": "false",
    "server.showEmailPrompt": "false",
    "server.fileWatcherType": "none",
    "browser.gatherUsageStats": "false",
    "client.toolbarMode": "minimal",
    "client.showErrorDetails": "none",
    "theme.light.primaryColor": "#0072b2",
    "theme.dark.primaryColor": "#56b4e9",
}


def browse(
    home: Path, *, port: int | None = None, host: str = "localhost", open_browser: bool = True
) -> int:
    """Serve the dashboard of a workspace until Ctrl-C; return the exit code.

    Args:
        home: the workspace folder; created and filled if it is not there.
        port: the port to listen on; None for 8501, or any free one if that is taken.
        host: the address to listen on; other machines can reach the dashboard only if it is
            not ``localhost``.
        open_browser: whether to open the page in the user's browser.

    Raises:
        WorkspaceError: the workspace cannot be used.
        ConfigError: the port or host cannot be listened on, or the server did not start.
    """
    open_workspace(home)
    chosen = free_port(host, port)
    address = f"http://[{host}]:{chosen}" if ":" in host else f"http://{host}:{chosen}"
    try:
        with serving(home, host, chosen) as server:
            wait_until_ready(server, address)
            print(f"The dashboard is at {address} (Ctrl-C ends it)", flush=True)
            if open_browser:
                webbrowser.open(address)
            return server.wait()
    except KeyboardInterrupt:
        return 0


def command(host: str, port: int) -> list[str]:
    """Return the command line of the server."""
    settings = {**_SETTINGS, "server.address": host, "server.port": str(port)}
    flags = [f"--{name}={value}" for name, value in settings.items()]
    return [sys.executable, "-m", "streamlit", "run", str(APP), *flags]


def free_port(host: str, port: int | None) -> int:
    """Return ``port`` if it can be listened on, or without one 8501 or another free port.

    Raises:
        ConfigError: the port is taken or not permitted, or the host is not one of this machine.
    """
    wanted = DEFAULT_PORT if port is None else port
    try:
        return _bound_port(host, wanted)
    except (OSError, OverflowError) as error:
        if port is None:
            return free_port(host, 0)
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(
            f"cannot listen on {host}, port {port}: {reason}. Choose another port with --port."
        ) from error


def _bound_port(host: str, port: int) -> int:
    if not 0 <= port < _PORTS:
        raise OverflowError(f"ports go from 0 to {_PORTS - 1}")
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    with socket.socket(family, kind, protocol) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        return int(listener.getsockname()[1])


@contextmanager
def serving(home: Path, host: str, port: int) -> Iterator[subprocess.Popen[bytes]]:
    """Run the server while the block runs; SIGTERM to this process ends it too."""
    search = [str(APP.parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {
        **os.environ,
        "FWP_HOME": str(home.resolve()),
        "MALLOC_ARENA_MAX": os.environ.get("MALLOC_ARENA_MAX", "2"),  # memory is given back sooner
        "PYTHONPATH": os.pathsep.join(search),
    }
    before = signal.signal(signal.SIGTERM, _exit)
    server = subprocess.Popen(command(host, port), env=environment, stdout=subprocess.DEVNULL)
    try:
        yield server
    finally:
        _end(server)
        signal.signal(signal.SIGTERM, before)


def _exit(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _end(server: subprocess.Popen[bytes]) -> None:
    if server.poll() is None:
        server.terminate()
    try:
        server.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


def wait_until_ready(server: subprocess.Popen[bytes], address: str) -> None:
    """Return once the server answers; raise ConfigError if it ended or stays silent."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    until = time.monotonic() + _START_SECONDS
    while server.poll() is None and time.monotonic() < until:
        try:
            with opener.open(f"{address}/_stcore/health", timeout=2):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    raise ConfigError(f"the dashboard did not start at {address}; its own message stands above")
