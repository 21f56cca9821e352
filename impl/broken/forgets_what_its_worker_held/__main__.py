"""Forgets its state when one of its workers dies.

The workers that it starts instead know nothing, and sums begin anew. The mistake is to start a
process again and not its state. It shows in the outputs after a death.
"""

from subprocess import PIPE, Popen
from typing import Any

from upheld.adapter import serve
from upheld.impl.plain import Plain


class ForgetsWhatItsWorkerHeld(Plain):
    hello = Plain.hello | {"name": "broken/forgets_what_its_worker_held"}
    hello |= {"capabilities": [*Plain.hello["capabilities"], "workers"]}

    def on_assign(self, *assigned: Any) -> None:
        super().on_assign(*assigned)
        self.hired = [Popen(["cat"], stdin=PIPE) for _ in range(2)]

    def process(self, messages: list[Any]) -> None:
        if any(worker.poll() for worker in self.hired):
            self.hired = [Popen(["cat"], stdin=PIPE) for _ in self.hired]
            vars(self.program)["rows"] = {}
        super().process(messages)

    def workers(self) -> dict[str, Any]:
        return {"type": "workers", "pids": [worker.pid for worker in self.hired]}


serve(ForgetsWhatItsWorkerHeld())
