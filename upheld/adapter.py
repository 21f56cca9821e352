"""The serve loop for designs in Python, free to be copied.

It needs the standard library only.

Subclass `Design`, then call `serve(YourDesign())`. The harness writes one JSON request a line to
standard input, and reads one JSON answer a line. All else that the process prints goes to standard
error, its log.
"""

import json
import os
import sys
import threading
from collections.abc import Callable
from typing import Any, TextIO

Message = dict[str, Any]  # the fields of a line of JSON
# The fields of a request that its answer needs, and their types.
_FIELDS: dict[str, dict[str, type]] = {
    "activate": {"after": dict},
    "query": {"table": str, "key": str},
    "stop": {"deadline_ms": int},
}


class Failed(Exception):
    """A loud stop: fenced, poison, offset-lost, conflict or storage.

    Abort what is open, then raise it.
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class Design:
    """The base class of a design.

    `open` and `run` are called once per start, `run` on a thread of its own.
    """

    hello: Message  # name, version, language, programs, modes, capabilities

    def boot(self) -> None:
        """Start a runtime that is slow to start; called before `hello` is answered."""

    def open(self, start: Message) -> Message:
        """Take hold of the input, and return the fields of `ready`.

        The answer may also be a whole message with a `type`.
        """
        raise NotImplementedError

    def run(self, stopping: threading.Event) -> None:
        """Process until `stopping` is set, then finish, commit and release.

        Raise `Failed` to stop loudly.
        """
        raise NotImplementedError

    def release(self, failure: Failed) -> bool:
        """Let go of everything after a loud stop; return whether another `open` may come.

        It may if the runtime is as good as new.
        """
        return False

    def activate(self, after: dict[str, int]) -> Message:
        """Begin to emit at or above these positions, and return the fields of `ready`.

        It is called after `open` stood by.
        """
        return error("it never stands by")

    def deactivate(self) -> Message:
        """Say how far the design has emitted, after `run` has ended.

        The answer is `{"type": "deactivated", "emitted_through": {…}}`.
        """
        return error("it hands over to nobody")

    def query(self, table: str, key: str) -> Message:
        """Answer a read of one key.

        The answer is `{"type": "value", "value": …}` or `{"type": "not_ready"}`.
        """
        return error(f"{table} cannot be queried")

    def measure(self) -> Message:
        """Say how much state the design holds in all, in rows or in bytes.

        The answer is `{"type": "measured", "size": …, "unit": "rows" or "bytes"}`.
        """
        return error("it cannot say how much state it holds")

    def lag(self) -> Message:
        """Say how many offsets of the input are not committed, of all partitions.

        The answer is `{"type": "lagging", "offsets": …}`.
        """
        return error("it cannot say how far it is behind")

    def workers(self) -> Message:
        """Say which processes share the work, after a start with `workers`.

        The answer is `{"type": "workers", "pids": […]}`.
        """
        return error("it works in one process")


class Server:
    """The server of a design: it answers the harness's requests, one line each."""

    def __init__(self, design: Design, out: TextIO) -> None:
        self.design = design
        self.worker = threading.Thread()
        self.stopping = threading.Event()
        self._out = out
        self._lock = threading.Lock()

    def say(self, message: Message) -> None:
        """Write one message; the worker's thread may do so too."""
        with self._lock:
            print(json.dumps(message), file=self._out, flush=True)

    def answer(self, request: Message) -> bool:
        """Answer one request; return whether another one may come."""
        match request.pop("type"):
            case "hello":
                self.design.boot()
                self.say({"type": "hello", "protocol": 1, **self.design.hello})
            case "start":
                # The default of Kafka's processing.guarantee.
                request.setdefault("mode", "at_least_once")
                self.begin(self.design.open, request)
            case "activate":
                self.begin(lambda told: self.design.activate(**told), request)
            case "query" | "measure" | "lag" | "workers" as question:
                self.say(getattr(self.design, question)(**request))
            case "deactivate":
                self.stopping.set()
                self.worker.join()
                self.say(self.design.deactivate())
            case "stop":
                return self.stop(request)
            case other:
                self.say(error(f"{other} is not offered"))
        return True

    def begin(self, hold: Callable[[Any], Message], request: Message) -> None:
        """Let the design take hold of its input, and start the worker if it is ready."""
        try:
            ready = {"type": "ready"} | hold(request)
        except Failed as failure:
            self.give_up(failure)
            return
        self.stopping = threading.Event()
        self.worker = threading.Thread(target=self.work, args=(self.stopping,), daemon=True)
        self.say(ready)
        # Said first: a worker that dies at once takes the process with it.
        if ready["type"] == "ready":
            self.worker.start()

    def work(self, stopping: threading.Event) -> None:
        """Run the design.

        The process ends with it, unless the design ends as it was told to.
        """
        try:
            return self.design.run(stopping)
        except Failed as failure:
            return self.give_up(failure)
        except BaseException:  # noqa: BLE001 - logged; the harness sees the exit
            sys.excepthook(*sys.exc_info())
        except:  # noqa: E722 - a callback from C can raise what is no exception
            print(sys.exc_info()[1], file=sys.stderr)
        os._exit(1)

    def give_up(self, failure: Failed) -> None:
        """Say the loud stop, and exit unless the design can be started again."""
        again = False
        try:
            again = self.design.release(failure)
        finally:
            self.say(
                {"type": "failed", "kind": failure.kind, "message": str(failure), "again": again}
            )
            if not again:
                os._exit(1)

    def stop(self, request: Message) -> bool:
        """Stop the worker within the deadline of the request.

        Returns:
            Whether another request may come.
        """
        self.stopping.set()
        if self.worker.is_alive():
            self.worker.join(request["deadline_ms"] / 1000)
        if self.worker.is_alive():
            said = f"not closed after {request['deadline_ms']} ms"
            self.say(error(said, definite=False))
            return True
        self.say({"type": "stopped"})
        return "reusable" in self.design.hello.get("capabilities", [])


def error(message: str, *, definite: bool = True) -> Message:
    """Return the message of a request that failed; a definite one had no effect."""
    return {"type": "error", "definite": definite, "message": message}


def _request(line: bytes) -> Message | None:
    """Read a request; return None if the line is none."""
    try:
        request = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(request, dict) or not isinstance(request.get("type"), str):
        return None
    fields = _FIELDS.get(request["type"], {})
    is_whole = all(isinstance(request.get(name), kind) for name, kind in fields.items())
    return request if is_whole else None


def serve(design: Design) -> None:
    """Answer requests until a stop, or until standard input ends.

    The process exits with 1 after a loud stop, and if the harness has gone.
    """
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # a stray print, of the design or of a child, belongs in the log
    server = Server(design, out)
    for line in sys.stdin.buffer:
        request = _request(line)
        if request is None:
            server.say(error(f"this line is no request: {line[:100]!r}"))
        elif not server.answer(request):
            return
    os._exit(1)  # the harness has gone, and nobody else would stop the worker
