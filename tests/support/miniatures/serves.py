"""A miniature on the serve loop that is shipped: `python serves.py HABIT THREAD`."""

import ctypes
import sys
import threading
from typing import Any, ClassVar

from upheld.adapter import Design, Failed, serve


class Miniature(Design):
    """Prints where it must not, and has one habit."""

    hello: ClassVar[dict[str, Any]] = {
        "name": "miniature",
        "version": "1",
        "language": "python",
        "programs": ["relay"],
        "modes": ["at_least_once"],
        "capabilities": ["reusable"],
    }

    def open(self, start: dict[str, Any]) -> dict[str, Any]:
        """Refuse, fail or begin."""
        print("a stray line")
        if sys.argv[1] in {"resets", "resets_in_protocol_1"}:
            where = {"topic": "a-input", "partition": 1, "from": 2, "to": 5}
            self.notice("offset-reset", **where)
        if sys.argv[1] == "breaks_at_start":
            raise ZeroDivisionError("no input to hold")
        if sys.argv[1] in {"offset-lost", "storage"}:
            raise Failed(sys.argv[1], "it cannot begin")
        if start["standing_by"]:
            return {"type": "standing_by"}
        return {"type": "unsupported", "reason": "tired"} if sys.argv[1] == "refuses" else {}

    def activate(self, after: dict[str, int]) -> dict[str, Any]:
        """Begin work after these offsets."""
        self.after = after
        return {}

    def deactivate(self) -> dict[str, Any]:
        """Say that it stands where it began."""
        return {"type": "deactivated", "emitted_through": self.after}

    def measure(self) -> dict[str, Any]:
        """Break, as a call of an engine may."""
        raise KeyError("size")

    def release(self, failure: Failed) -> bool:
        """Stay, unless storage failed or the instance is fenced."""
        return failure.kind in {"poison", "offset-lost"}

    def run(self, stopping: threading.Event) -> None:
        """Work until told to stop, or longer, or not at all."""
        if sys.argv[1] == "says_its_thread":
            print(threading.current_thread() is threading.main_thread())
        if sys.argv[1] == "breaks":
            raise ZeroDivisionError("the engine broke")
        if sys.argv[1] in {"poison", "fenced"}:
            raise Failed(sys.argv[1], "it cannot go on")
        if sys.argv[1] == "refused":
            raise Failed("refused", "an output is too large", output="a-output")
        # As a client does whose callback failed: what it raises is no exception.
        if sys.argv[1] == "breaks_in_c":
            broke = [ctypes.py_object(each) for each in (str, "the engine broke")]
            for each in broke:
                ctypes.pythonapi.Py_IncRef(each)
            ctypes.pythonapi.PyErr_Restore(*broke, None)
        (threading.Event() if sys.argv[1] == "hears_no_stop" else stopping).wait()


if sys.argv[1] == "resets_in_protocol_1":
    Miniature.hello |= {"protocol": 1}
serve(Miniature(), on_main_thread=sys.argv[2] == "main")
