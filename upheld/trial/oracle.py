"""The oracle of an application without a model: the application itself.

It is run on its visible input with nothing to strike it. An input that was asked in this run before
is not asked again. The first input is asked twice, the second time behind a record in each
partition that is deleted before the application starts. Then what hangs on offsets differs too.
"""

from dataclasses import dataclass, replace

from upheld.history import events
from upheld.programs import PROGRAMS
from upheld.programs.itself import (
    Difference,
    Unique,
    below,
    by_key,
    difference,
    digest_of,
    is_in_one_partition,
    is_traced,
    oracles_of,
    unique_of,
)
from upheld.programs.shown import are_of_single_records, increasing, is_id, read, traced
from upheld.protocol.json_path import JsonPath
from upheld.protocol.manifest import Manifest
from upheld.trial.application import Application
from upheld.trial.recorder import Recorder
from upheld.trial.rig import Given, Question, Rig
from upheld.trial.unstruck import Fresh, Unstruck


@dataclass(frozen=True)
class Oracle:
    """Asks an application of one attempt what comes of its input without a fault."""

    recorder: Recorder
    rig: Rig
    manifest: Manifest

    def ask(self, application: Application) -> None:
        """Record what comes of the visible input so far.

        Nothing is asked if the application is judged by a program.
        """
        contract = application.event.contract
        if contract and not contract.model:
            self._answering()._ask(application, contract, self._visible(application))

    def ask_below_the_commit(self, application: Application) -> None:
        """Record what comes of the input below the offsets that were committed last.

        Nothing is asked if the outputs show themselves which input each is of. If they may lead,
        and only last values are known, a number has to say which of two is later.
        """
        contract = application.event.contract
        history = self.recorder.history
        if contract is None or contract.model:
            return
        looks = [e for e in history.of(events.Committed) if e.application == application.name]
        oracles = list(oracles_of(history, application.event))
        if not looks or not looks[-1].offsets or not any(oracles[0].answers()):
            return
        if all(oracle.is_traced for oracle in oracles):
            return
        may_lead = application.mode != "exactly_once"
        if may_lead and any(
            each.is_last_alone and not each.contract.increasing for each in oracles
        ):
            return
        inputs = below(looks[-1].offsets, self._visible(application))
        self._answering()._ask(application, contract, inputs)

    def _answering(self) -> "Oracle":
        """Return the oracle of the release that says what is right."""
        return replace(self, manifest=self.manifest.answering)

    def _ask(
        self, application: Application, contract: events.Contract, inputs: list[events.Record]
    ) -> None:
        if not inputs:
            return
        question = Question(
            self.manifest.name,
            contract.name,
            application.mode,
            tuple(application.commits.values()),
            digest_of(inputs, tuple(application.commits)),
        )
        if question not in self.rig.answers:
            self.rig.answers[question] = self._given(application, contract, inputs)
        for given in self.rig.answers[question]:
            self._record(application, question, given)

    def _record(self, application: Application, question: Question, given: Given) -> None:
        """Record what came of an input on one output."""
        known = {answer.outputs for answer in self.recorder.history.of(events.Answered)}
        if given.topic not in known:
            self.recorder.history.add_all(given.outputs)
        self.recorder.history.add(
            events.Answered(
                at_ms=self.recorder.now_ms,
                application=application.name,
                inputs=question.inputs,
                outputs=given.topic,
                output=given.output,
                topics=self._topics(application, given),
                unstable=given.unstable,
                is_ordered=given.is_ordered,
                is_by_last_value=given.is_by_last_value,
                types=given.types,
            )
        )

    def _visible(self, application: Application) -> list[events.Record]:
        topics = application.commits
        records = self.recorder.history.of(events.Record)
        return [record for record in records if record.topic in topics and record.visible]

    def _topics(self, application: Application, given: Given) -> tuple[str, ...]:
        writes = given.output or application.program.writes
        of_the_run = given.topic.removesuffix(writes)
        return given.topic, *(f"{of_the_run}{role}" for role in application.program.inputs)

    def _given(
        self, application: Application, contract: events.Contract, inputs: list[events.Record]
    ) -> tuple[Given, ...]:
        """Return what comes of an input on each output."""
        known = next(
            (given for q, given in self.rig.answers.items() if self._is_alike(q, application)), None
        )
        due = len(inputs) if known and known[0].has_one_each else 0
        first = self._run(application, inputs, Fresh("once", due=due))
        skips = [
            self._skips_states(own, application, inputs, given)
            for own, given in zip(contract.outputs, first, strict=True)
        ]
        if known:
            found = [
                Difference(
                    g.unstable, g.is_ordered, g.is_by_last_value or (g.is_ordered and skip), g.types
                )
                for g, skip in zip(known, skips, strict=True)
            ]
        else:
            due = len(first[0].outputs) if contract.shape == "map" else 0
            second = self._run(application, inputs, Fresh("twice", shifted=True, due=due))
            found = [
                difference(
                    own,
                    by_key(own, one.outputs),
                    by_key(own, other.outputs),
                    may_skip=skip,
                )
                for own, one, other, skip in zip(
                    contract.outputs, first, second, skips, strict=True
                )
            ]
        return tuple(
            self._compared(own, application, inputs, given, each)
            for own, given, each in zip(contract.outputs, first, found, strict=True)
        )

    def _compared(
        self,
        contract: events.Contract,
        application: Application,
        inputs: list[events.Record],
        first: Given,
        found: Difference,
    ) -> Given:
        """Return what came on one output, with what of it can be compared."""
        has_traces = is_traced(contract, unique_of(application.event), inputs, first.outputs)
        return first._replace(
            unstable=found.unstable,
            is_ordered=found.is_ordered,
            is_by_last_value=found.is_by_last_value
            and is_in_one_partition(contract, first.outputs),
            types=found.types,
            has_one_each=has_traces and len(first.outputs) == len(inputs),
        )

    def _skips_states(
        self,
        contract: events.Contract,
        application: Application,
        inputs: list[events.Record],
        given: Given,
    ) -> bool:
        """Return whether outputs may skip states.

        The program that an adapter runs says so. A fold without an adapter may, if its keys have
        more or fewer outputs than inputs, and so may what is declared as a map and looks like a
        fold. A design may declare that it skips none.
        """
        if self.manifest.emits == "every-state" and not contract.also_reads:
            return False
        program = None if self.manifest.application else PROGRAMS[contract.name]
        if program and program.conflates:
            return True
        unique = unique_of(application.event)
        if is_traced(contract, unique, inputs, given.outputs):
            return False
        if contract.shape == "fold":
            return True
        return program is None and not _is_map(contract, unique, inputs, given.outputs)

    def _is_alike(self, question: Question, application: Application) -> bool:
        asked = (question.design, question.contract, question.mode)
        return asked == (self.manifest.name, application.program.name, application.mode)

    def _run(
        self, application: Application, inputs: list[events.Record], fresh: Fresh
    ) -> tuple[Given, ...]:
        """Run the application on a copy of its input, where no other run has its names."""
        rig = self.rig.of_a_row(self.manifest)
        try:
            return Unstruck(self.recorder, rig, self.manifest).run(application, inputs, fresh)
        finally:
            if rig is not self.rig:
                rig.end_row()


def _is_map(
    contract: events.Contract,
    unique: Unique,
    inputs: list[events.Record],
    outputs: tuple[events.Record, ...],
) -> bool:
    """Return whether outputs without a fault may be those of single records.

    They are none if there is not one for each record, none has a record's id, and a number grows
    with each output of a key.
    """
    growing = increasing(outputs, contract.ignore)
    if not growing:
        return True
    paths = {topic: JsonPath.read(path) for topic, path in unique.items()}
    found = (paths[r.topic].found(read(r.value or b"")) for r in inputs if r.topic in paths)
    ids = frozenset(value for value in found if is_id(value))
    known = traced((record.value for record in outputs if record.value is not None), ids)
    return are_of_single_records(len(outputs), len(known), growing, len(inputs))
