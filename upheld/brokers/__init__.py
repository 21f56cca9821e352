"""Where a real Kafka comes from: embedded (a JVM of ours), a container, or somebody else's cluster.

The choice and its reason are part of every report: a green on another broker than the reader thinks
is no green.
"""

from pathlib import Path
from typing import Protocol

from upheld.errors import MachineProblem, UsageProblem
from upheld.supervisor.reaper import RunScope

CHOICES = ("auto", "container", "embedded", "external")


class Broker(Protocol):
    """A Kafka that answers, how to reach it, and why it is this one."""

    @property
    def kind(self) -> str:
        """`embedded`, `container` or `external`."""

    @property
    def why(self) -> str:
        """Why it is this kind, in a few words for the header of a report."""

    @property
    def bootstrap(self) -> str:
        """`host:port`, or several of them with commas."""

    @property
    def client(self) -> dict[str, str]:
        """Security properties by their librdkafka names; empty when the listener is plaintext."""

    @property
    def version(self) -> str:
        """What runs there, for the report."""

    @property
    def ours(self) -> bool:
        """Whether this run started it, with the settings of the design, and ends it."""

    @property
    def pids(self) -> list[int]:
        """The processes of its nodes on this machine, as far as they are children of ours."""

    def ended(self, within_s: float) -> bool:
        """Whether it ends by itself before so many seconds are over; nobody can say it of somebody
        else's.
        """

    def kill(self) -> None:
        """End it as a crash does, its data staying; only of one that is ours."""

    def revive(self) -> None:
        """Start it again on its data, and wait until it serves."""

    def close(self) -> None:
        """End it, if it is ours; a second call does nothing."""


def open_broker(  # noqa: PLR0913 - one keyword for each option of the command line
    choice: str,
    *,
    run: RunScope,
    log_dir: Path,
    bootstrap: str | None = None,
    client_properties: Path | None = None,
    image: str | None = None,
) -> Broker:
    """The broker that was asked for, answering; an explicit choice never falls back."""
    # Imported late: what is not chosen is not loaded (the container engine's client takes half a
    # second).
    if choice not in CHOICES:
        raise UsageProblem(f"There is no broker {choice!r}; choose one of {', '.join(CHOICES)}.")
    if choice in ("container", "embedded") and bootstrap:
        raise UsageProblem(f"--broker {choice} starts its own; leave out --bootstrap or --broker.")
    if client_properties is not None and not bootstrap:
        raise UsageProblem(
            "--client-properties says how to reach the cluster of --bootstrap; give that too."
        )
    if choice == "external" and not bootstrap:
        raise UsageProblem("--broker external needs --bootstrap HOST:PORT.")
    if image is not None and (choice in ("embedded", "external") or bootstrap):
        raise UsageProblem(
            "--image names the container's; give it with --broker container or with no --broker."
        )
    if bootstrap:
        from upheld.brokers.external import open_external  # noqa: PLC0415

        return open_external(run, bootstrap, client_properties)
    from upheld.brokers.embedded import open_embedded  # noqa: PLC0415

    if choice == "embedded":
        return open_embedded(run, log_dir, why="asked for")
    from upheld.brokers.container import kafka_image, open_container  # noqa: PLC0415
    from upheld.brokers.engine import NoContainerError  # noqa: PLC0415

    asked = choice == "container" or image is not None
    try:
        found = kafka_image(image)
    except NoContainerError as reason:
        if asked:
            raise MachineProblem(
                f"The broker is to be a container, and {reason}; start an engine, name an image "
                "that it has, "
                "or build one with `python -m upheld.brokers.image`."
            ) from None
        return open_embedded(run, log_dir, why=str(reason))
    why = "asked for" if asked else f"a container engine answers and has {found}"
    return open_container(run, log_dir, image=found, why=why)
