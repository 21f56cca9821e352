"""Warm instances, which are booted ahead of their use.

A runtime takes seconds to boot. An instance is booted when it is asked for, and not at every turn.
A boot that is not needed takes the two cores from the design that is being judged, and makes it
late.
"""

import threading
from concurrent.futures import Future
from pathlib import Path
from typing import Final

from upheld.protocol.manifest import Manifest
from upheld.supervisor.environment import Scope
from upheld.supervisor.guarded import Spawn
from upheld.supervisor.instance import HELLO_S, Instance, Options
from upheld.threads import begun
from upheld.verdicts import AdapterBreach

KEPT: Final = 2  # as many as a scenario has at a time, if a second cluster takes over


class Pool:
    """The instances of one design: at most one fresh one waits, and two returned ones."""

    def __init__(
        self,
        manifest: Manifest,
        run: Scope,
        log_dir: Path,
        time_scale: float = 1.0,
        launch: Spawn | None = None,
    ) -> None:
        self.manifest = manifest
        self.run = run
        self.log_dir = log_dir
        self.time_scale = time_scale
        self.launch = launch
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
        """Wait until nothing boots, so that a measurement has the machine for itself."""
        for future in list(self._booting):
            future.exception(HELLO_S * self.time_scale + HELLO_S)

    def take(self) -> Instance:
        """Return an instance that has answered hello.

        It is a returned one, or else the prepared one, or else one that is booted now.
        """
        with self._lock:
            while self._returned:
                instance = self._returned.pop()
                if instance.exit_code is None and not instance.breach:
                    return instance
            spare = self._booting.pop(0) if self._booting else None
        future = spare or self._boot(keep=False)
        instance = future.result(HELLO_S * self.time_scale + HELLO_S)
        # It died while it waited: boot another one now.
        if instance.exit_code is not None and not instance.breach:
            instance = self._boot(keep=False).result(HELLO_S * self.time_scale + HELLO_S)
        return instance

    def boot(self, environment: dict[str, str]) -> Instance:
        """Return an instance with an environment of its own, which is not used again."""
        return self._greeted(environment)

    def give_back(self, instance: Instance) -> None:
        """Keep an instance that can be started again for the next `take`; kill any other."""
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
        """Begin to boot an instance on a thread of its own.

        A failure waits in the future until the instance is taken.
        """
        future = begun(self._greeted, "boot")
        with self._lock:
            if keep:
                self._booting.append(future)
        return future

    def _greeted(self, environment: dict[str, str] | None = None) -> Instance:
        """Spawn an instance, and return it once it has answered hello."""
        instance = self._spawn(environment)
        try:
            instance.greet()
        except AdapterBreach:
            instance.kill()
            raise
        return instance

    def _spawn(self, environment: dict[str, str] | None) -> Instance:
        """Spawn under the lock, so that `close` misses no instance."""
        with self._lock:
            if self._closed:
                raise AdapterBreach(f"{self.manifest.name}: the pool is closed.")
            options = Options(
                time_scale=self.time_scale, environment=environment or {}, launch=self.launch
            )
            instance = Instance(self.manifest, self.run, self.log_dir, options)
            self._all.append(instance)
            return instance
