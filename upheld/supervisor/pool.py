"""Warm instances: a runtime takes seconds to boot, so one is booted ahead of the moment that needs
it.

It is booted when it is asked for and not at every turn: a boot that nobody needs takes the two
cores from the design that is being judged, and makes it late.
"""

import subprocess
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path

from upheld.protocol.manifest import Manifest
from upheld.supervisor.instance import HELLO_S, Instance, Scope
from upheld.verdicts import AdapterBreach

KEPT = 2  # as many as one scenario has at a time, where a second cluster takes over


class Pool:
    """The instances of one design: at most one fresh one waits, and one that was given back."""

    def __init__(
        self,
        manifest: Manifest,
        run: Scope,
        log_dir: Path,
        time_scale: float = 1.0,
        launch: Callable[..., subprocess.Popen[bytes]] = subprocess.Popen,
    ) -> None:
        self.manifest, self.run, self.log_dir, self.time_scale, self.launch = (
            manifest,
            run,
            log_dir,
            time_scale,
            launch,
        )
        self._lock = threading.Lock()
        self._returned: list[Instance] = []
        self._booting: list[Future[Instance]] = []
        self._all: list[Instance] = []
        self._closed = False
        self._boot()

    def prepare(self) -> None:
        """Begin to boot a fresh instance, unless one is booting or waits."""
        if not self._booting:
            self._boot()

    def rest(self) -> None:
        """Wait until nothing boots, so that what is timed next has the machine for itself."""
        for future in list(self._booting):
            future.exception(HELLO_S * self.time_scale + HELLO_S)

    def take(self) -> Instance:
        """An instance that has answered hello: one that was given back, the one prepared, or one
        booted now.
        """
        with self._lock:
            while self._returned:
                instance = self._returned.pop()
                if instance.exit_code is None and not instance.breach:
                    return instance
            spare = self._booting.pop(0) if self._booting else None
        future = spare or self._boot(keep=False)
        instance = future.result(HELLO_S * self.time_scale + HELLO_S)
        # Died while it waited: boot one in view.
        if instance.exit_code is not None and not instance.breach:
            instance = self._boot(keep=False).result(HELLO_S * self.time_scale + HELLO_S)
        return instance

    def boot(self, environment: dict[str, str]) -> Instance:
        """An instance with an environment of its own, which nobody else is given."""
        future: Future[Instance] = Future()
        self._greet(future, environment)
        return future.result()

    def give_back(self, instance: Instance) -> None:
        """Keep a reusable instance that has let go of its start for the next `take`; end any
        other.
        """
        with self._lock:
            if len(self._returned) < KEPT and not self._closed and instance.takes_another_start():
                self._returned.append(instance)
                return
        instance.kill()

    def close(self) -> None:
        """Kill every instance that this pool ever handed out or holds."""
        with self._lock:
            self._closed = True
            everyone = list(self._all)
        for instance in everyone:
            instance.kill()

    def _boot(self, *, keep: bool = True) -> "Future[Instance]":
        """Begin to boot an instance on a thread of its own; a failure waits in the future for its
        taker.
        """
        future: Future[Instance] = Future()
        with self._lock:
            if keep:
                self._booting.append(future)
        threading.Thread(target=self._greet, args=(future,), name="boot", daemon=True).start()
        return future

    def _greet(self, future: "Future[Instance]", environment: dict[str, str] | None = None) -> None:
        try:
            instance = self._spawn(environment)
            try:
                instance.greet()
            except AdapterBreach:
                instance.kill()
                raise
        except BaseException as error:  # noqa: BLE001 - whatever it is belongs to the taker
            future.set_exception(error)
        else:
            future.set_result(instance)

    def _spawn(self, environment: dict[str, str] | None) -> Instance:
        """Spawn under the lock, so that `close` misses none that was on its way."""
        with self._lock:
            if self._closed:
                raise AdapterBreach(f"{self.manifest.name}: the pool is closed.")
            instance = Instance(
                self.manifest,
                self.run,
                self.log_dir,
                time_scale=self.time_scale,
                environment=environment,
                launch=self.launch,
            )
            self._all.append(instance)
            return instance
