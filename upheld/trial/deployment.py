"""Applications as a scenario declares them, and the topics made for them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from upheld.history import events
from upheld.programs import DEAD_LETTERS, PROGRAMS, Program, modelled
from upheld.protocol.manifest import Manifest
from upheld.protocol.messages import Mode
from upheld.stores import STORES, Store
from upheld.trial.recorder import Recorder
from upheld.trial.rig import Rig
from upheld.verdicts import NotOffered

TRANSACTION_TIMEOUT_MS = 3_000
MODELS = "models"  # the folder of a run with the texts of the models that judged it
PROMPT_MS = 2_000  # an output is visible that long after its commit interval


@dataclass(frozen=True)
class Declaration:
    """An application, as the sentences of a scenario describe it."""

    program: str
    mode: Mode
    partitions: int
    beside: int = 0  # partitions of a second input; 0: as many as the first has
    name: str = ""  # if there is none, the program's
    upstream: str = ""  # the name of the application whose output is the input
    timeout_ms: int = 0  # of transactions; 0: the usual one
    outlives_start: bool = False  # a transaction lasts twice as long as a start of the design
    parameters: Mapping[str, int | str] = field(default_factory=dict)  # beyond the program's own
    rolls: bool = False  # the table has a new segment every second
    has_dead_letters: bool = False  # a topic takes the records that cannot be read


@dataclass(frozen=True)
class Deployment:
    """One program in one mode, on topics of its own."""

    name: str
    program: Program
    event: events.Application
    partitions: int  # of the outputs
    inputs: Mapping[str, int]  # topic -> partitions
    directory: Path
    store: Store | None = None  # keeps the state, if the program's parameters name a kind of store
    rolls: bool = False  # the topic that was made for its table has a new segment every second


@dataclass(frozen=True)
class Deployments:
    """The broker and the folder that the applications of one attempt are deployed to."""

    recorder: Recorder
    rig: Rig
    manifest: Manifest
    application_id: str

    def declare(self, declaration: Declaration, upstream_topic: str = "") -> Deployment:
        """Record an application, open its store and create its topics.

        Args:
            declaration: The application, as the scenario describes it.
            upstream_topic: The input, if another application writes it. It exists already.

        Raises:
            NotOffered: The design keeps no state in the kind of store that is declared.
        """
        shipped = PROGRAMS[declaration.program]
        contract = modelled.contract_of(self.manifest, shipped)
        program = modelled.program(contract) if contract else shipped
        name = declaration.name or declaration.program
        identity = f"{self.application_id}-{name}"
        roles = [*program.topics, *([DEAD_LETTERS] if declaration.has_dead_letters else [])]
        topics = self.manifest.topics(identity, roles)
        new = dict(topics)
        if upstream_topic:
            topics[program.reads] = upstream_topic
            del new[program.reads]
        event = events.Application(
            name=name,
            application_id=identity,
            program=declaration.program,
            mode=declaration.mode,
            topics=topics,
            parameters={**program.parameters, **self._interval(), **declaration.parameters},
            transaction_timeout_ms=self._timeout_ms(declaration),
            contract=contract,
        )
        self.recorder.history.add(event)
        if contract:
            program = modelled.program_of(self.recorder.history, event)
            modelled.keep_copy(self.manifest, self.rig.histories.parent / MODELS)
        directory = self.rig.run.scratch / identity
        store = self._open_store(event, directory)
        inputs = {topics[role]: declaration.partitions for role in program.inputs}
        if declaration.beside:
            inputs[topics[program.beside]] = declaration.beside
        outputs = -(-declaration.partitions // program.narrows)
        table = {topics[program.writes]}
        self.rig.reading.create(
            {topic: inputs.get(topic, outputs) for topic in new.values()},
            stamped=table if program.holds_back else set(),
            compacted=table if program.merged else set(),
            rolling=table if declaration.rolls else set(),
        )
        return Deployment(
            name, program, event, outputs, inputs, directory, store, rolls=declaration.rolls
        )

    def _interval(self) -> dict[str, int]:
        """Return the commit interval that goes with the time in which outputs are visible."""
        subject = self.manifest.application
        if subject is None:
            return {}
        return {"commit_interval_ms": subject.visible_within_ms - PROMPT_MS}

    def _timeout_ms(self, declaration: Declaration) -> int:
        """Return the transaction timeout of an application.

        The usual one is short. A design whose truth is not in the offsets of its group may have to
        commit after a restart what it had prepared before, so the broker aborts that later.
        """
        if declaration.timeout_ms:
            return declaration.timeout_ms
        if not declaration.outlives_start and self.manifest.progress == "group":
            return TRANSACTION_TIMEOUT_MS
        return max(TRANSACTION_TIMEOUT_MS, round(2000 * self.rig.start_s(self.manifest)))

    def _open_store(self, event: events.Application, directory: Path) -> Store | None:
        """Open the store that the parameters name, if they name one."""
        kind = str(event.parameters.get("store", ""))
        if not kind:
            return None
        if kind not in self.manifest.capabilities:
            raise NotOffered(f"{self.manifest.name} keeps no state in {kind} (capability {kind})")
        given = self.rig.stores.get(kind, "")
        return STORES[kind](self.rig.run, directory, event.application_id, given)
