"""The serve loop for designs in Python, free to be copied.

It needs the standard library only.

Subclass `Design`, then call `serve(YourDesign())`. The harness writes one JSON request a line to
standard input, and reads one JSON answer a line. All else that the process prints goes to standard
error, its log. An engine that wants the main thread, for its signals or its event loop, is served
by `serve(YourDesign(), on_main_thread=True)`.
"""

import json
import os
import sys
import threading
import traceback
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from typing import Any, TextIO

Message = dict[str, Any]  # the fields of a line of JSON
# The fields of a request that its answer needs, and their types.
_FIELDS: dict[str, dict[str, type]] = {
    "activate": {"after": dict},
    "query": {"table": str, "key": str},
    "stop": {"deadline_ms": int},
}


class Failed(Exception):
    """A loud stop: fenced, poison, offset-lost, conflict, storage, denied or refused.

    Abort what is open, then raise it. `where` has the fields of `failed` that say what it concerns:
    topic, partition, offset, file, right (of denied) or output (of refused).
    """

    def __init__(self, kind: str, message: str, **where: Any) -> None:
        super().__init__(message)
        self.kind = kind
        self.where = where


class Design:
    """The base class of a design.

    `open` and `run` are called once per start. `run` is called on a thread of its own, or on the
    main thread with `boot`, `open` and `activate`. All other methods are called while it runs. An
    exception in any method but `boot` and `run` is answered with an error, and its traceback
    stands in the log.
    """

    hello: Message  # name, version, language, programs, modes, capabilities
    say: Callable[[Message], None]  # writes a message; `serve` sets it

    def notice(self, kind: str, **where: Any) -> None:
        """Say, unasked, what the design did by itself: `offset-reset` or `recovered`.

        `where` has the fields topic, partition, `from` and `to`.
        """
        self.say({"type": "notice", "kind": kind, **where})

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

    def __init__(self, design: Design, out: TextIO, *, on_main_thread: bool = False) -> None:
        self.design = design
        design.say = self.say
        self.stopping = threading.Event()
        self.idle = threading.Event()  # nothing takes hold of the input, and nothing runs
        self.idle.set()
        self.turns = SimpleQueue[Callable[[], None] | None]()  # for the main thread; None ends it
        self.on_main_thread = on_main_thread
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
                self._do(self.greet)
            case "start":
                # The default of Kafka's processing.guarantee.
                request.setdefault("mode", "at_least_once")
                self._hold(self.design.open, request)
            case "activate":
                self._hold(lambda told: self.design.activate(**told), request)
            case "query" | "measure" | "lag" | "workers" as question:
                self._say_answer(lambda: getattr(self.design, question)(**request))
            case "deactivate":
                self.stopping.set()
                self.idle.wait()
                self._say_answer(self.design.deactivate)
            case "stop":
                return self.stop(request)
            case other:
                self.say(error(f"{other} is not offered"))
        return True

    def greet(self) -> None:
        """Boot the design, and say who it is."""
        self.design.boot()
        self.say({"type": "hello", "protocol": 2, **self.design.hello})

    def _do(self, act: Callable[[], None]) -> None:
        """Do something at once, or let the main thread do it."""
        if self.on_main_thread:
            self.turns.put(act)
        else:
            act()

    def _hold(self, hold: Callable[[Any], Message], request: Message) -> None:
        """Let the design take hold of its input, and run it if it is ready."""
        self.stopping = threading.Event()  # a stop that comes during `hold` is meant for this run
        self.idle.clear()
        self._do(partial(self.begin, hold, request, self.stopping))

    def begin(
        self, hold: Callable[[Any], Message], request: Message, stopping: threading.Event
    ) -> None:
        """Take hold of the input, answer, and run the design if it is ready."""
        # Said first: a design that dies at once takes the process with it.
        if self._say_answer(lambda: {"type": "ready"} | hold(request)) != "ready":
            self.idle.set()
        elif self.on_main_thread:
            self.work(stopping)
        else:
            threading.Thread(target=self.work, args=(stopping,), daemon=True).start()

    def _say_answer(self, ask: Callable[[], Message]) -> str:
        """Say what the design answers, an exception of it too; return the type of the message."""
        try:
            message = ask()
            self.say(message)
        except Failed as failure:
            self.give_up(failure)
            return "failed"
        except Exception as broke:  # noqa: BLE001 - whatever it is, the harness is told
            traceback.print_exc()
            self.say(error(f"{type(broke).__name__}: {broke}"))
            return "error"
        return str(message.get("type"))

    def work(self, stopping: threading.Event) -> None:
        """Run the design.

        The process ends with it, unless the design ends as it was told to.
        """
        try:
            self.design.run(stopping)
        except Failed as failure:
            self.give_up(failure)
        except BaseException:  # noqa: BLE001 - logged; the harness sees the exit
            sys.excepthook(*sys.exc_info())
            os._exit(1)
        except:  # noqa: E722 - a callback from C can raise what is no exception
            print(sys.exc_info()[1], file=sys.stderr)
            os._exit(1)
        self.idle.set()

    def give_up(self, failure: Failed) -> None:
        """Say the loud stop, and exit unless the design can be started again."""
        again = False
        try:
            again = self.design.release(failure)
        finally:
            said = {"type": "failed", "kind": failure.kind, "message": str(failure)}
            self.say(said | failure.where | {"again": again})
            if not again:
                os._exit(1)

    def stop(self, request: Message) -> bool:
        """Stop the worker within the deadline of the request.

        Returns:
            Whether another request may come.
        """
        self.stopping.set()
        if not self.idle.wait(request["deadline_ms"] / 1000):
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


def serve(design: Design, *, on_main_thread: bool = False) -> None:
    """Answer requests until a stop, or until standard input ends.

    The process exits with 1 after a loud stop, and if the harness has gone.

    Args:
        design: The design.
        on_main_thread: Whether the design boots, opens and runs on the main thread, from which
            this is called. Requests are read on another thread then.
    """
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # a stray print, of the design or of a child, belongs in the log
    server = Server(design, out, on_main_thread=on_main_thread)
    if not on_main_thread:
        _answer_all(server)
        return
    threading.Thread(target=_answer_all, args=(server,), daemon=True).start()
    while turn := server.turns.get():
        turn()


def _answer_all(server: Server) -> None:
    """Answer requests until a stop; if the harness has gone, end the process."""
    for line in sys.stdin.buffer:
        request = _request(line)
        if request is None:
            server.say(error(f"this line is no request: {line[:100]!r}"))
        elif not server.answer(request):
            server.turns.put(None)
            return
    os._exit(1)  # the harness has gone, and nobody else would stop the worker
