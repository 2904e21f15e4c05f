"""The life of a server: it starts, reloads on SIGHUP, drains on SIGTERM, and stops on a second one.

Draining, it accepts no more connections, and ends when all requests that it has accepted are
answered.
"""

import asyncio
import gc
import logging
import os
import signal
import socket
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import uvicorn

from glassformer.errors import GlassformerError
from glassformer.serving.app import Application
from glassformer.serving.keys import Keys, known_hosts
from glassformer.serving.metrics import Metrics
from glassformer.serving.models import Models
from glassformer.serving.protocol import bounded
from glassformer.serving.settings import ServeConfig
from glassformer.serving.worker import Worker
from glassformer.terminal import print_line

log = logging.getLogger(__name__)
STEP = 5.0  # seconds that the worker may take to end its last step
CUT = 1.0  # second that requests may take to end once their connections are closed


class Server(uvicorn.Server):
    """uvicorn's server with these signals."""

    def __init__(self, application: Application) -> None:
        super().__init__(uvicorn_config(application))
        self.application = application
        self.reloading: set[asyncio.Task[None]] = set()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle signals on the event loop, while it runs."""
        loop = asyncio.get_running_loop()
        handlers = {
            signal.SIGTERM: self.stop,
            signal.SIGINT: self.stop,
            signal.SIGHUP: self.reload,
        }
        for number, handler in handlers.items():
            loop.add_signal_handler(number, handler)
        try:
            yield
        finally:
            for number in handlers:
                loop.remove_signal_handler(number)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and say where."""
        await super().startup(sockets)
        for listener in sockets or ():
            host, port = listener.getsockname()[:2]
            address = f"http://{bracketed(host)}:{port}"
            models = self.application.models
            training = [f"{name} (in training)" for name in models.training]
            names = ", ".join([*models.paths, *training])
            print_line(f"Serving {names} at {address}; see {address}/docs")

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Drain; after a second signal, requests end as if their clients had gone."""
        await super().shutdown(sockets)
        if not self.force_exit:
            return
        for connection in list(self.server_state.connections):
            connection.transport.abort()
        if self.server_state.tasks:
            await asyncio.wait(self.server_state.tasks, timeout=CUT)
        await self.lifespan.shutdown()  # or it would be cancelled, with a traceback

    def stop(self) -> None:
        """Drain; called again, stop."""
        self.force_exit = self.should_exit
        self.should_exit = self.application.gate.draining = True

    def reload(self) -> None:
        """Replace every model by what is in its folder now."""
        task = asyncio.ensure_future(self._reload())
        self.reloading.add(task)
        task.add_done_callback(self.reloading.discard)

    async def _reload(self) -> None:
        models = self.application.models
        for name in list(models.paths):  # while it waits, a run in training may join them
            try:
                await models.reload(name)
                print_line(f"reloaded {name}", stderr=True)
            except GlassformerError as error:
                print_line(f"glassformer: {name} stays as it was: {error}", stderr=True)


def uvicorn_config(application: Application) -> uvicorn.Config:
    return uvicorn.Config(
        application.asgi,
        http=bounded(application.models.config.limits),
        ws="none",
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        lifespan="on",
    )


def serve(
    paths: Sequence[Path],
    keys: Keys,
    config: ServeConfig,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    origins: Sequence[str] = (),
    hosts: Sequence[str] = (),
    device: str = "auto",
) -> None:
    """Serve runs until a signal comes.

    Args:
        origins: Those whose pages may send requests.
        hosts: Names of this server besides `host` and those of the machine itself.
    """
    # The texts of a few requests are tokenized sooner than other threads would begin to help.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    gc.freeze()  # libraries stay; searching them for garbage would hold up answers for 0.1 s
    worker = Worker()
    with bound(host, port) as listener:
        models = Models(paths, worker, config, Metrics(), device=device)
        server = Server(Application(models, keys, origins, known_hosts(host, hosts)))
        try:
            server.run(sockets=[listener])
        finally:
            worker.stop(STEP)


@contextmanager
def bound(host: str, port: int) -> Iterator[socket.socket]:
    """A socket of its own at this address, on which the server listens once it is ready."""
    with ExitStack() as stack:
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            family, kind, protocol, _, address = found[0]
            # Of a socket that does not name its protocol, asyncio delays small writes.
            listener = stack.enter_context(socket.socket(family, kind, protocol))
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
        except OSError as error:
            reason = error.strerror or str(error)
            raise GlassformerError(
                f"cannot listen at {host}, port {port} ({reason}); choose another with --host or "
                f"--port"
            ) from None
        yield listener


def bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
