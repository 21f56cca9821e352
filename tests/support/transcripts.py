"""The transcript: the calls that each row makes, with no broker and no design.

Each sentence of a row runs against a trial that records the calls made on it. Two sets of sentences
are the same specification if the transcripts of their rows are. The normal form sorts dicts and
sets, and sums the waits that follow each other. It leaves out a wait of no time, and an attribute
that is set to its own value. An option that is off is left out too, as is the text of a claim.
"""

import contextlib
import functools
import inspect
import pkgutil
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Self, cast
from unittest import mock

from kio.schema.errors import ErrorCode
from pytest_bdd.steps import StepFunctionContext

from upheld import nemesis
from upheld.generators.ledger import Send
from upheld.history.events import Release
from upheld.history.marks import Happening
from upheld.lint import matches, step_definitions
from upheld.nemesis.requests import Strike
from upheld.programs import PROGRAMS
from upheld.spec import catalogue
from upheld.spec.gherkin import Step
from upheld.steps import modules
from upheld.steps.scene import Scene
from upheld.trial.deployment import Declaration
from upheld.trial.instances import AS_USUAL, Launch
from upheld.trial.trial import Trial

CAPABILITIES = frozenset(
    (
        *("scale", "workers", "standby", "lag", "effects", "dead-letters", "measure", "query"),
        *("reusable", "sqlite", "redis", "cassandra"),
    )
)
PARAMETERS = {
    "commit_interval_ms": 100,
    "interval_ms": 1000,
    "persistence_interval_ms": 500,
    "delete_retention_ms": 1000,
}
# What the step modules import to act on a trial: each is replaced by a stub of that name.
ACTS = (
    *(module.name for module in pkgutil.iter_modules(nemesis.__path__)),
    *("pause_at", "arrive", "give_up", "out_of_reach", "WallClock", "written"),
)
RACES = {
    Happening.ROWS_GONE_SOON: 3,
    Happening.ROWS_MOVED: 3,
}
COMPONENTS = ("recorder", "workload", "probes", "instances", "waits")
WATCH = re.compile(r"trial\.watch\((?P<application>[^,]+),(?P<for_ms>\d+) ms\)")

Transcript = dict[str, list[str]]  # row id -> calls
Log = list[str]


def show(value: object) -> str:
    """Write an argument so that equal ones read the same whatever the hash seed."""
    match value:
        case functools.partial():
            arguments = [show(value.func), *map(show, value.args), *_named(value.keywords)]
            shown = f"partial({','.join(arguments)})"
        case dict():
            pairs = sorted(f"{key!r}: {show(each)}" for key, each in value.items())
            shown = f"{{{', '.join(pairs)}}}"
        case set() | frozenset():
            shown = f"{{{', '.join(sorted(map(show, value)))}}}"
        case Stub() | StubTables() | Send():
            shown = repr(value)
        case list() | tuple():
            shown = f"[{', '.join(map(show, value))}]"
        case Strike(fault, moment, request, error):
            refusal = () if error is ErrorCode.none else (error,)
            shown = ",".join(map(show, (fault, moment, request, *refusal)))
        case _:  # a function, decorated or not, and a class are shown by their names
            shown = getattr(value, "__name__", repr(value)).replace("<lambda>", "lambda")
    return shown


def _named(arguments: Mapping[str, object]) -> list[str]:
    return [f"{name}={show(arguments[name])}" for name in sorted(arguments)]


class Stub:
    """Stands for anything: each call on it, or on an attribute of it, is recorded."""

    _log: Log
    _name: str

    def __init__(self, log: Log, name: str, /, **fields: object) -> None:
        self.__dict__.update(fields, _log=log, _name=name)

    def __getattr__(self, attribute: str) -> "Stub":
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        return Stub(self._log, f"{self._name}.{attribute}")

    def __call__(self, *arguments: object, **named: object) -> "Stub":
        """Record the call."""
        shown = ",".join([*map(show, arguments), *_named(named)])
        self._log.append(f"{self._name}({shown})")
        return Stub(self._log, f"{self._name}()")

    def __getitem__(self, key: object) -> "Stub":
        return Stub(self._log, f"{self._name}[{key!r}]")

    def __add__(self, other: object) -> str:
        return f"{self._name}+{other}"

    __radd__ = __add__

    def __rmul__(self, other: object) -> str:
        return f"{other}*{self._name}"

    def __int__(self) -> int:
        return 1000

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[object]:
        return iter(())

    def __enter__(self) -> Self:
        self._log.append(f"enter {self._name}")
        return self

    def __exit__(self, *_: object) -> None:
        self._log.append(f"exit {self._name}")

    def __repr__(self) -> str:
        return self._name


class StubApplication(Stub):
    """An application of which each attribute that changes is recorded."""

    def __setattr__(self, name: str, value: object) -> None:
        if self.__dict__[name] != value:
            self._log.append(f"{self._name}.{name} = {show(value)}")
        self.__dict__[name] = value


class StubStores(Stub):
    """Outages of a store, which take the time that they say."""

    def disturb(
        self, trial: "StubTrial", application: StubApplication, how: str, length_ms: int
    ) -> None:
        """Record the outage, and let its time pass."""
        self._log.append(f"stores.disturb(trial,{application},{how!r},{length_ms})")
        trial.now_ms += length_ms


class StubReleases(Stub):
    """Releases, each of which starts."""

    def start(
        self, trial: "StubTrial", application: StubApplication, launch: Launch, name: str = "a"
    ) -> Stub:
        """Record the start of an instance, which runs from now on."""
        return trial.start(application, name, launch)

    def take_over(self, _: "StubTrial", application: StubApplication, release: Release) -> None:
        """Record the start of a release that has to start."""
        self._log.append(f"releases.take_over(trial,{application},{release!r})")
        application.running["a"] = Stub(self._log, "instance a")


class StubTrial(Stub):
    """A trial that declares stub applications; its time passes at once.

    It is each of its components, too, so that a call reads the same whoever does the work.
    """

    applications: dict[str, StubApplication]
    now_ms: int

    def __init__(self, log: Log, tags: frozenset[str]) -> None:
        manifest = Stub(
            log, "manifest", capabilities=CAPABILITIES, name="x", atomic="batch", application=None
        )
        super().__init__(
            log, "trial", applications={}, seed=7, now_ms=0, manifest=manifest, tags=tags
        )
        self.__dict__.update(dict.fromkeys(COMPONENTS, self))

    def declare(self, declaration: Declaration) -> StubApplication:
        """Declare an application; settings that say nothing are left out."""
        told = {name: value for name, value in vars(declaration).items() if value}
        program = told.pop("program")
        mode = told.pop("mode")
        partitions = told.pop("partitions")
        self._log.append(f"trial.declare({program},{mode},{partitions},{show(told)})")
        played = PROGRAMS[program]
        name = told.get("name") or program
        parameters = PARAMETERS | (told.get("parameters") or {})
        inputs = {played.reads: partitions}
        if played.beside:
            inputs[played.beside] = told.get("beside") or partitions
        topics = {role: role for role in played.topics}
        declared = StubApplication(
            self._log,
            f"app:{name}",
            name=name,
            program=played,
            mode=mode,
            partitions=partitions,
            inputs=inputs,
            reads=played.reads,
            event=Stub(self._log, "event", parameters=parameters, topics=topics),
            several=False,
            session_timeout_ms=0,
            group_protocol=None,
            workers=0,
            through_proxy=False,
            is_supervised=False,
            lag_due_ms=None,
            running={},
            store=Stub(self._log, "store") if "store" in parameters else None,
            input=SimpleNamespace(wave=None, fed_ms=0),
            tables=None,
            wall_clock=None,
            directory="dir",
        )
        self.applications[name] = declared
        return declared

    def feed(self, application: StubApplication, wave: object, *count: object) -> None:
        """Record the workload, which is from now on the application's."""
        if inspect.isfunction(wave):  # a closure, which shows nothing of itself
            wave = wave(wave=0)
        shown = ",".join(map(show, (application, wave, *count)))
        self._log.append(f"trial.feed({shown})")
        application.input.wave = wave

    @contextlib.contextmanager
    def feeding(self, application: StubApplication, apart_s: float = 0) -> Iterator[None]:
        """Record where arrivals begin and end."""
        self._log.append(f"feeding {application} every {apart_s}")
        yield
        self._log.append(f"fed {application}")

    def start(
        self, application: StubApplication, name: str = "a", launch: Launch = AS_USUAL
    ) -> Stub:
        """Record the start of an instance, which runs from now on."""
        self._called("start", application, name, vars(launch))
        application.running[name] = Stub(self._log, f"instance {name}")
        return application.running[name]

    def stop(self, application: StubApplication, name: str = "a", **options: object) -> None:
        """Record the end of an instance."""
        self._called("stop", application, name, options)
        del application.running[name]

    def kill(self, application: StubApplication, name: str = "a") -> None:
        """Record the death of an instance."""
        self._called("kill", application, name, {})
        del application.running[name]

    def _called(
        self, method: str, application: StubApplication, name: str, options: Mapping[str, object]
    ) -> None:
        chosen = {option: value for option, value in options.items() if value}
        shown = ",".join([show(application), name, *_named(chosen)])
        self._log.append(f"trial.{method}({shown})")

    def watch(self, application: StubApplication, until_ms: int) -> None:
        """Record how long outputs are looked for."""
        if until_ms > self.now_ms:
            self._log.append(f"trial.watch({application},{until_ms - self.now_ms} ms)")
            self.__dict__["now_ms"] = until_ms

    def look_at_effects(self, application: StubApplication) -> None:
        """Record a look at effects outside of Kafka; without any there is nothing to see."""
        if "effects" in application.event.parameters:
            self._log.append(f"trial.look_at_effects({application})")

    def claim(
        self, check: str, application: StubApplication, sentence: str, **arguments: object
    ) -> None:
        """Record what is claimed, in whatever words."""
        assert sentence
        shown = ",".join([repr(check), show(application), *_named(arguments)])
        self._log.append(f"trial.claim({shown})")

    def wait(self, seconds: float, reached: object) -> bool:
        """Record the wait; what is waited for has come."""
        assert callable(reached)
        self._log.append(f"trial.wait({seconds})")
        return True


class StubMoments(dict[str, object]):
    """Every moment to strike at, by its name."""

    def __init__(self, log: Log) -> None:
        super().__init__()
        self._log = log

    def __missing__(self, moment: str) -> object:
        return lambda _trial, _application: Stub(self._log, f"moment[{moment}]")


class StubTables:
    """A workload of tables that only says how it was made."""

    def __init__(self, *arguments: object, **named: object) -> None:
        self._made = f"Tables({','.join([*map(show, arguments), *_named(named)])})"

    def __getattr__(self, attribute: str) -> object:
        def method(*arguments: object) -> list[object]:
            return [attribute, *arguments]

        method.__name__ = attribute
        return method

    def __repr__(self) -> str:
        return self._made


def _replacements(log: Log) -> dict[str, object]:
    return {name: Stub(log, name) for name in ACTS} | {
        "strike_at": Stub(log, "meet"),  # its name in the stored transcript
        "MOMENTS": StubMoments(log),
        "stores": StubStores(log, "stores"),
        "releases": StubReleases(log, "releases"),
        "races": lambda _history, _application: Counter(RACES),
        "Tables": StubTables,
    }


def transcript() -> Transcript:
    """Return the calls of every row, in normal form."""
    definitions = step_definitions()
    log: Log = []
    calls: Transcript = {}
    with contextlib.ExitStack() as replaced:
        for module in modules():
            for name, stub in _replacements(log).items():
                if hasattr(module, name):
                    replaced.enter_context(mock.patch.object(module, name, stub))
        for scenario in catalogue.load().scenarios:
            for row in scenario.rows:
                log.clear()
                scene = Scene(cast(Trial, StubTrial(log, row.tags)))
                for step in row.steps:
                    _run(step, definitions, scene)
                calls[row.id] = normal(log)
    return calls


def _run(step: Step, definitions: Sequence[StepFunctionContext], scene: Scene) -> None:
    (definition,) = (each for each in definitions if matches(each, step))
    said = definition.parser.parse_arguments(step.text) or {}
    said |= {"scene": scene, "datatable": [list(cells) for cells in step.table]}
    wanted = inspect.signature(definition.step_func).parameters
    scene.sentence = step.text
    definition.step_func(**{name: said[name] for name in wanted})


def normal(calls: Log) -> list[str]:
    """Sum the watches of an application that follow each other: 5 s and 2 s are 7 s."""
    summed: list[str] = []
    for call in calls:
        this = WATCH.fullmatch(call)
        before = WATCH.fullmatch(summed[-1]) if summed else None
        if this and before and this["application"] == before["application"]:
            for_ms = int(this["for_ms"]) + int(before["for_ms"])
            summed[-1] = f"trial.watch({this['application']},{for_ms} ms)"
        else:
            summed.append(call)
    return summed


def differences(expected: Transcript, actual: Transcript) -> Iterator[str]:
    """Yield, for each row that is not the same, its first call that is another one."""
    for row in sorted(expected.keys() | actual.keys()):
        if row not in actual or row not in expected:
            yield f"{row} is {'gone' if row not in actual else 'new'}"
            continue
        was = [*expected[row], "the end"]
        now = [*actual[row], "the end"]
        if was != now:
            number = next(
                i for i, pair in enumerate(zip(was, now, strict=False)) if len(set(pair)) > 1
            )
            yield f"{row}, call {number + 1}: was {was[number]}, is {now[number]}"
