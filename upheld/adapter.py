"""The serve loop for designs in Python: standard library only, and free to be copied.

Subclass `Design`, then call `serve(YourDesign())`. The harness writes one JSON request a line to
standard input and reads one JSON answer a line; all else that the process prints goes to standard
error, its log.
"""

import json
import os
import sys
import threading
from typing import Any


class Failed(Exception):
    """A loud stop: fenced, poison, offset-lost, conflict or storage.

    Abort what is open, then raise it.
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class Design:
    """What a design implements.

    `open` and `run` are called once per start, `run` on a thread of its own.
    """

    hello: dict[str, Any]  # name, version, language, programs, modes, capabilities

    def boot(self) -> None:
        """Start whatever runtime is slow to start; called before `hello` is answered."""

    def open(self, start: dict[str, Any]) -> dict[str, Any]:
        """Take hold of the input and return the fields of `ready` (or a whole message with a
        `type`).
        """
        raise NotImplementedError

    def run(self, stopping: threading.Event) -> None:
        """Process until `stopping` is set, then finish, commit and release.

        Raise `Failed` to stop loudly.
        """
        raise NotImplementedError

    def release(self, failure: Failed) -> bool:  # noqa: ARG002 - a design that overrides it
        """Let go of everything after a loud stop; True where the runtime is as good as new, and
        another `open` may come.
        """
        return False

    def activate(self, after: dict[str, int]) -> dict[str, Any]:  # noqa: ARG002 - a design that overrides it
        """Begin to emit what lies at or above these positions, after `open` stood by; return the
        fields of `ready`.
        """
        return {"type": "error", "definite": True, "message": "it never stands by"}

    def deactivate(self) -> dict[str, Any]:
        """Say how far it has emitted, `run` having ended.

        The answer is `{"type": "deactivated", "emitted_through": {…}}`.
        """
        return {"type": "error", "definite": True, "message": "it hands over to nobody"}

    def query(self, table: str, key: str) -> dict[str, Any]:  # noqa: ARG002 - a design that overrides it
        """Answer a read of one key: `{"type": "value", "value": …}` or `{"type": "not_ready"}`."""
        return {"type": "error", "definite": True, "message": f"{table} cannot be queried"}

    def measure(self) -> dict[str, Any]:
        """Say how much state there is, all in all, in rows or in bytes.

        The answer is `{"type": "measured", "size": …, "unit": "rows" or "bytes"}`.
        """
        return {
            "type": "error",
            "definite": True,
            "message": "it cannot say how much state it holds",
        }

    def lag(self) -> dict[str, Any]:
        """Say how far the input goes on behind what is committed, all in all.

        The answer is `{"type": "lagging", "offsets": …}`.
        """
        return {"type": "error", "definite": True, "message": "it cannot say how far it is behind"}

    def workers(self) -> dict[str, Any]:
        """Say which processes share the work, after a start with `workers`.

        The answer is `{"type": "workers", "pids": […]}`.
        """
        return {"type": "error", "definite": True, "message": "it works in one process"}


def serve(design: Design) -> None:  # noqa: PLR0912, PLR0915 - one branch for each message of the protocol
    """Answer requests until standard input ends; exit 1 after a loud stop."""
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # a stray print, of ours or of a child, belongs in the log
    lock = threading.Lock()

    def say(**message: Any) -> None:
        with lock:
            print(json.dumps(message), file=out, flush=True)

    def give_up(failure: Failed) -> None:
        again = False
        try:
            again = design.release(failure)
        finally:
            say(type="failed", kind=failure.kind, message=str(failure), again=again)
            if not again:
                os._exit(1)

    def work(stopping: threading.Event) -> None:
        try:
            return design.run(stopping)
        except Failed as failure:
            return give_up(failure)
        except BaseException:  # noqa: BLE001 - the log keeps the traceback; the harness sees the exit
            sys.excepthook(*sys.exc_info())
        except:  # noqa: E722 - C code of a client can raise what is no exception, out of a failing callback
            print(sys.exc_info()[1], file=sys.stderr)
        os._exit(1)

    worker, stopping = threading.Thread(), threading.Event()
    for line in sys.stdin:
        request = json.loads(line)
        match request.pop("type"):
            case "hello":
                design.boot()
                say(type="hello", protocol=1, **design.hello)
            case "start" | "activate" as kind:
                try:
                    if kind == "start":
                        # The default of Kafka's processing.guarantee.
                        request.setdefault("mode", "at_least_once")
                    held = design.open(request) if kind == "start" else design.activate(**request)
                    answer = {"type": "ready"} | held
                except Failed as failure:
                    give_up(failure)
                    continue
                stopping = threading.Event()
                worker = threading.Thread(target=work, args=(stopping,), daemon=True)
                say(**answer)
                # Said first: a worker that dies at once takes the process with it.
                if answer["type"] == "ready":
                    worker.start()
            case "query" | "measure" | "lag" | "workers" as question:
                say(**getattr(design, question)(**request))
            case "deactivate":
                stopping.set()
                worker.join()
                say(**design.deactivate())
            case "stop":
                stopping.set()
                if worker.is_alive():
                    worker.join(request["deadline_ms"] / 1000)
                if worker.is_alive():
                    say(
                        type="error",
                        definite=False,
                        message=f"not closed after {request['deadline_ms']} ms",
                    )
                    continue
                say(type="stopped")
                if "reusable" not in design.hello.get("capabilities", []):
                    return
            case other:
                say(type="error", definite=True, message=f"{other} is not offered")
    os._exit(1)  # the harness has gone, and with it whoever would have stopped the worker
