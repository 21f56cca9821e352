"""The kinds of a real Kafka: embedded (a JVM of the run), container or external.

External is the user's own cluster. The choice and its reason are part of every report: a reader has
to know on which broker a row was upheld.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from upheld import extras
from upheld.errors import MachineProblem, UsageProblem
from upheld.supervisor.reaper import RunScope

CHOICES: Final = ("auto", "container", "embedded", "external")


class Broker(Protocol):
    """A Kafka that answers, its address, and why it was chosen."""

    @property
    def kind(self) -> str:
        """`embedded`, `container` or `external`."""

    @property
    def why(self) -> str:
        """The reason for this kind, in a few words for the header of a report."""

    @property
    def bootstrap(self) -> str:
        """`host:port`, or several of them with commas."""

    @property
    def client(self) -> dict[str, str]:
        """Security properties by librdkafka's names; empty if the listener is plaintext."""

    @property
    def version(self) -> str:
        """The version that runs there, for the report."""

    @property
    def ours(self) -> bool:
        """True if this run started it, with the design's settings, and ends it."""

    @property
    def pids(self) -> list[int]:
        """The processes of its nodes, as far as they are children of the harness."""

    def ended(self, within_s: float) -> bool:
        """Return whether it ends by itself within these seconds.

        For an external cluster that is not known.
        """

    def kill(self) -> None:
        """End it as a crash does, and keep its data; only for a broker of this run."""

    def revive(self) -> None:
        """Start it again on its data, and wait until it serves."""

    def close(self) -> None:
        """End it, if it is of this run; a second call does nothing."""


@dataclass(frozen=True)
class Asked:
    """The broker that the user asks for, by the options of the command line."""

    choice: str
    bootstrap: str | None = None
    client_properties: Path | None = None
    image: str | None = None


def open_broker(asked: Asked, *, run: RunScope, log_dir: Path) -> Broker:
    """Return the broker that was asked for, once it answers.

    An explicit choice never falls back on another kind.

    Raises:
        UsageProblem: The options contradict each other.
        MachineProblem: This machine cannot have that broker.
    """
    _demand_consistent(asked)
    # Each kind is imported if it is chosen. Imported above, they would hold jars.py before
    # `python -m upheld.brokers.jars` runs it, and Python warns of that.
    if asked.bootstrap:
        from upheld.brokers.external import open_external

        return open_external(run, asked.bootstrap, asked.client_properties)
    from upheld.brokers.embedded import open_embedded

    if asked.choice == "embedded":
        return open_embedded(run, log_dir, why="asked for")
    is_explicit = asked.choice == "container" or asked.image is not None
    if lack := extras.lack("container"):
        if is_explicit:
            raise MachineProblem(f"The broker is to be a container, and {lack}.")
        return open_embedded(run, log_dir, why=lack)
    from upheld.brokers.container import kafka_image, open_container
    from upheld.brokers.engine import NoContainerError

    try:
        found = kafka_image(asked.image)
    except NoContainerError as reason:
        if is_explicit:
            raise MachineProblem(
                f"The broker is to be a container, and {reason}; start an engine, name an image "
                "that it has, or build one with `python -m upheld.brokers.image`."
            ) from None
        return open_embedded(run, log_dir, why=str(reason))
    why = "asked for" if is_explicit else f"a container engine answers and has {found}"
    return open_container(run, log_dir, image=found, why=why)


def _demand_consistent(asked: Asked) -> None:
    """Raise UsageProblem if the options contradict each other."""
    choice = asked.choice
    bootstrap = asked.bootstrap
    if choice not in CHOICES:
        raise UsageProblem(f"There is no broker {choice!r}; choose one of {', '.join(CHOICES)}.")
    if choice in ("container", "embedded") and bootstrap:
        raise UsageProblem(f"--broker {choice} starts its own; leave out --bootstrap or --broker.")
    if asked.client_properties is not None and not bootstrap:
        raise UsageProblem(
            "--client-properties says how to reach the cluster of --bootstrap; give that too."
        )
    if choice == "external" and not bootstrap:
        raise UsageProblem("--broker external needs --bootstrap HOST:PORT.")
    if asked.image is not None and (choice in ("embedded", "external") or bootstrap):
        raise UsageProblem(
            "--image names the container's; give it with --broker container or with no --broker."
        )
