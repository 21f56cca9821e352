"""The user's own cluster, which --bootstrap names.

If it is secured, --client-properties says how to reach it.
"""

import re
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from upheld.brokers.properties import read_client_properties
from upheld.errors import MachineProblem, UsageProblem
from upheld.supervisor.reaper import RunScope

ANSWER_DEADLINE_S: Final = 10.0
REASON_CHARS: Final = 200
_ADDRESS: Final = re.compile(r"^(\[[0-9a-fA-F:.]+\]|[\w.-]+):\d{1,5}$")


@dataclass(frozen=True)
class ExternalBroker:
    """A cluster that has answered; the harness changes and ends nothing of it."""

    bootstrap: str
    version: str
    client: dict[str, str] = field(repr=False)
    why: str = "--bootstrap is given"
    kind: Literal["external"] = "external"
    ours: Literal[False] = False

    @property
    def pids(self) -> list[int]:
        """Empty: the cluster is not the harness's."""
        return []

    def ended(self, within_s: float) -> bool:
        """Wait, and return False: the cluster's end is not known."""
        threading.Event().wait(within_s)
        return False

    def kill(self) -> None:
        """Fail: an external cluster is never ended."""
        raise AssertionError

    def revive(self) -> None:
        """Fail: an external cluster is never started."""
        raise AssertionError

    def close(self) -> None:
        """Leave the cluster as it is."""


def open_external(run: RunScope, bootstrap: str, client_properties: Path | None) -> ExternalBroker:
    """Return the cluster, once it has answered a metadata request.

    Raises:
        UsageProblem: The bootstrap is no address, or the properties are refused.
        MachineProblem: The cluster does not answer.
    """
    for address in bootstrap.split(","):
        if not _ADDRESS.match(address.strip()):
            raise UsageProblem(
                f"--bootstrap {bootstrap!r} is not HOST:PORT, or several of them with commas."
            )
    client = (
        {} if client_properties is None else read_client_properties(client_properties, run.scratch)
    )
    return ExternalBroker(bootstrap, _answer(bootstrap, client, client_properties), client)


def _answer(bootstrap: str, client: dict[str, str], source: Path | None) -> str:
    """Return the cluster's id and size, or raise a problem that says why it is silent."""
    complaints: list[KafkaError] = []
    settings: dict[str, Any] = client | {
        "bootstrap.servers": bootstrap,
        "log_level": 0,
        "error_cb": complaints.append,
        "reconnect.backoff.max.ms": 500,
    }
    try:
        admin = AdminClient(settings)
    except KafkaException as refusal:
        raise UsageProblem(_refused_setting(str(refusal.args[0].str()), client, source)) from None
    deadline = time.monotonic() + ANSWER_DEADLINE_S
    while time.monotonic() < deadline:
        try:
            answer = admin.list_topics(timeout=1.0)
        except KafkaException:
            admin.poll(0)
        else:
            return f"cluster {answer.cluster_id} of {len(answer.brokers)} nodes"
        if any(complaint.code() == KafkaError._AUTHENTICATION for complaint in complaints):
            raise UsageProblem(f"{bootstrap} refuses the credentials of {source or 'nobody'}.")
    reasons = [c.str() for c in complaints if c.code() != KafkaError._ALL_BROKERS_DOWN]
    reason = f" ({reasons[-1][:REASON_CHARS]})" if reasons else ""
    raise MachineProblem(
        f"The bootstrap {bootstrap} does not answer within {ANSWER_DEADLINE_S:.0f} s{reason}; is "
        "a broker listening there, and does its listener want --client-properties?"
    )


def _refused_setting(complaint: str, client: dict[str, str], source: Path | None) -> str:
    """Return the sentence for a setting that librdkafka refuses.

    It names the property, and never the value.
    """
    named = [name for name in sorted(client, key=len, reverse=True) if name in complaint]
    return (
        f"{source}: librdkafka refuses {named[0] if named else 'a property'}; its manual has the "
        "names."
    )
