"""An application without an adapter: the tables of its `design.toml`.

They name its input, its output and its process. The harness starts the process, gives it its names
on the broker, and asks it nothing.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Final, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from upheld.commands import CREDENTIALS, filled
from upheld.errors import UsageProblem
from upheld.guesses import did_you_mean
from upheld.protocol import refusals
from upheld.protocol.inputs import Input, described
from upheld.protocol.json_path import JsonPath
from upheld.protocol.model_file import FORM, is_place
from upheld.protocol.refusals import short
from upheld.reading import is_file, read_text
from upheld.text import sentence

# The settings of a row that an application can be given, and the placeholders that carry them.
SETTINGS: Final = {
    "transaction timeout": "transaction_timeout_ms",
    "session timeout": "session_timeout_ms",
    "commit interval": "commit_interval_ms",
}
TIMEOUTS: Final = ("transaction timeout", "session timeout")
# Clients send a heartbeat every 3 s by default, and one of three may be lost.
SHORTEST_SESSION_MS: Final = 10_000
HEARTBEAT_SLACK_MS: Final = 1_000
# Variables of the caller without which few programs start.
INHERITED: Final = ("PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ")
CHOSEN_BY_ROWS: Final = ("partitions", "count", "aborted_transactions")  # of an input
NO_TOPIC: Final = 'each row has topics of its own; remove `topic`, or say names = "fixed"'
GROUP: Final = "group"  # the sign of readiness that an application gives by its group
TEMPLATED: Final = "templated"
MOST_INPUTS: Final = 4
MOST_OUTPUTS: Final = 8  # each is read again and again while a row runs
MOST_QUERIES: Final = 1  # each instance is asked again and again while a row runs
MOST_PROCESSES: Final = 8  # of an instance: there may be three instances on a few cores
FIXED: Final = "fixed"  # names on the broker that no row changes
ITSELF: Final = "itself"  # the oracle of an application without a model
PLAINTEXT: Final = "plaintext"
NAMESPACE: Final = "namespace"  # the fence that keeps its processes from other addresses
Secured = Literal["ssl", "sasl_plaintext", "sasl_ssl"]  # as clients name the protocol
ApplicationShape = Literal["map", "fold"]
# The shapes for which an application without an adapter stands, whichever of them is its own.
OF_APPLICATIONS: Final[tuple[ApplicationShape, ...]] = ("map", "fold")
# Folders and files of the harness that a container is given, and whether it may only read them.
MOUNTED: Final = {
    "state_dir": False,
    "durable_dir": False,
    "tmp_dir": False,
    "rendered": True,
    "dir": True,
    "ca_file": True,
}
Mounted = Literal["state_dir", "durable_dir", "tmp_dir", "rendered"]
KEY: Final = "key"  # the placeholder of a query for the key that is asked for
WHOLE: Final = "$"  # the place of a whole value
_PLACEHOLDER: Final = re.compile(r"\{([a-z_]+(?:\.[\w-]+)?)\}")

_ADDRESS: Final = re.compile(r"http://(127\.0\.0\.1|localhost):(\{port\}|\d{1,5})(/|$)")

# What the harness fills in, and what it is.
PLACEHOLDERS: Final = {
    "python": "the interpreter of the harness",
    "dir": "the folder of design.toml",
    "bootstrap": "the addresses of the broker",
    "application_id": "a part of every name that the application makes on the broker",
    "instance": "the name of the instance, which is the same after a restart",
    "process": "the name of the process, with a number if its table stands for several: app-2",
    "state_dir": "the disk of the instance",
    "tmp_dir": "a folder for temporary files, which ends with the run",
    "durable_dir": "storage that all instances share and that outlives them, as for checkpoints",
    "session_timeout_ms": "the session timeout of a member of its group",
    "transaction_timeout_ms": "the timeout of its transactions",
    "commit_interval_ms": "how often it commits",
    "mode": "at_least_once or exactly_once",
    "port": "a free port of 127.0.0.1",
    "rendered": "the folder with the files of `render`",
    "ca_file": "the certificate authority of the broker, as PEM",
    "username": "the user that the broker lets in",
    "password": "that user's password",
}


def _path(text: str) -> str:
    """Refuse a text that leads to no place in a value."""
    JsonPath.read(text)
    return text


def _sign(text: str) -> str:
    """Refuse a line of a log that no pattern describes, and an address with no port."""
    if text.startswith("http:"):
        _demand_known("signals.ready", text, ("port",))
        if not _ADDRESS.match(text):
            raise ValueError("an address is http://127.0.0.1:{port}/ or one with another path")
        return text
    try:
        re.compile(text.removeprefix("log:"))
    except re.error as error:
        raise ValueError(f"it is no regular expression: {error}") from None
    return text


def _address(text: str) -> str:
    """Refuse an address of a query with no port, or with no key."""
    _demand_known("http", text, ("port", KEY))
    if not _ADDRESS.match(text):
        raise ValueError("an address is http://127.0.0.1:{port}/ or one with another path")
    if f"{{{KEY}}}" not in text:
        raise ValueError("an address has {key} in it, where the key stands that is asked for")
    return text


def _place(text: str) -> str:
    """Refuse a text that is neither a path nor the whole value."""
    return text if text == WHOLE else _path(text)


Topic = Annotated[str, Field(min_length=1, max_length=249, pattern=r"^[A-Za-z0-9._-]+$")]


def _inside(name: str) -> str:
    """Refuse a file that is no file of its folder."""
    path = PurePosixPath(name)
    if path.is_absolute() or not path.name or ".." in path.parts or "\0" in name:
        raise ValueError("it names a file below {rendered}, such as app.yml")
    return name


def _target(text: str) -> str:
    """Refuse a place in a container that no folder can be mounted at."""
    path = PurePosixPath(text)
    if not path.is_absolute() or path == PurePosixPath("/") or ".." in path.parts or "\0" in text:
        raise ValueError("it is the absolute path of a folder in the container, such as /data")
    return text


Place = Annotated[str, AfterValidator(_place)]
HostAndPort = Annotated[str, Field(pattern=r"^[^\s:]+:\d{1,5}$")]
Variable = Annotated[str, Field(pattern=r"^[A-Za-z_]\w*$", max_length=200)]
Image = Annotated[str, Field(pattern=r"^[A-Za-z0-9][\w./:@-]*$", max_length=300)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z][\w-]*$", max_length=60)]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class OutputTable(_Table):
    """An output: how it is read, and what of it is not compared."""

    format: Literal["json", "bytes"] = Field(
        default="json", description="how a value is read: json, or bytes as they are"
    )
    ignore: tuple[Annotated[str, AfterValidator(_path)], ...] = Field(
        default=(), description="fields that are not compared, such as $.processed_at"
    )
    identity: Annotated[str, AfterValidator(_path)] | None = Field(
        default=None,
        description="a field that tells its records apart, such as $.order: their order is not "
        "compared then",
    )
    increasing: Annotated[str, AfterValidator(_path)] | None = Field(
        default=None,
        description="a field with a number that increases with each state of a key, such as "
        "$.count: a fold that skips states shows by it what came twice, and what too late",
    )
    visible_within_ms: int = Field(
        default=2_100,
        ge=2_100,
        description="an output is visible that long after its input, on a machine at rest",
    )
    topic: Topic | None = Field(
        default=None, description="its topic as it is deployed, where names are fixed"
    )


class ProcessTable(_Table):
    """A process of the application."""

    command: tuple[str, ...] = Field(
        default=(),
        description="the program and its arguments, run without a shell; with an `image` what "
        "its entrypoint is told, and the image's own if there are none",
    )
    image: Image | None = Field(
        default=None,
        description="the image of a container that it runs in, such as shop/orders:4.1; the "
        "container has the network of this machine",
    )
    mount: dict[Mounted, Annotated[str, AfterValidator(_target)]] = Field(
        default={},
        description="a folder of the harness -> where it is in the container, such as "
        'state_dir = "/data"; it is at the same place there if none is named',
    )
    count: int = Field(
        default=1,
        ge=1,
        le=MOST_PROCESSES,
        description="how many of it are in an instance; {process} tells them apart",
    )
    environment: dict[str, str] = Field(
        default={}, description="its variables, beside those that it inherits"
    )
    render: dict[Annotated[str, AfterValidator(_inside)], str] = Field(
        default={},
        description="name of a file in {rendered} -> its template, in which placeholders are "
        "filled in, such as {dir}/app.yml.tmpl",
    )
    _templates: dict[str, str] = PrivateAttr(default={})

    @model_validator(mode="after")
    def _are_templates_there(self, info: ValidationInfo) -> "ProcessTable":
        """Read the templates, so that what they are told is known."""
        folder: Path | None = (info.context or {}).get("folder")
        for name, template in self.render.items() if folder else ():
            assert folder
            path = folder / filled(template, {"dir": str(folder)})
            if not is_file(path):
                raise ValueError(f"the template of {name}, {template}, does not exist")
            self._templates[name] = read_text(path)
        return self


class SignalsTable(_Table):
    """How a process says that it is ready, and how it is told to stop."""

    ready: Annotated[str, AfterValidator(_sign)] = Field(
        default=GROUP,
        description="group: it has partitions of its group; log:REGEX: a line of its log matches; "
        "an address such as http://127.0.0.1:{port}/ready: it answers with a status of success; "
        "of several processes one has partitions, the log of each has such a line, and each that "
        "is told {port} answers",
        pattern=r"^(group|log:.+|http://.+)$",
    )
    stop: Literal["SIGTERM", "SIGINT"] = Field(
        default="SIGTERM", description="the signal that ends it"
    )
    start_s: float = Field(default=50, gt=0, le=55, description="the longest until it is ready")
    heartbeat_ms: int = Field(
        default=3_000,
        ge=1,
        le=60_000,
        description="how often its consumers send heartbeats, as they are configured; no session "
        "is shortened below three of them",
    )


class QueryTable(_Table):
    """How an application answers for keys of an output: its last visible value."""

    http: Annotated[str, AfterValidator(_address)] = Field(
        description="the address that is asked for a key, such as "
        "http://127.0.0.1:{port}/totals/{key}; a status from 200 to 299 has the value, 404 is that "
        "there is none, and 503 that it is not ready",
    )
    fields: dict[Place, Place] = Field(
        default={},
        description="place in an answer -> the place in the output that it has to be, such as "
        "$.balance -> $.total; if there are none, the whole answer has to be the output",
    )
    everywhere: bool = Field(
        default=False,
        description="whether each instance answers for every key, also when another one has died",
    )


def _oracle(name: str) -> str:
    """Refuse an oracle that there is not."""
    if name != ITSELF and not is_place(name):
        raise ValueError(
            f"an oracle is {ITSELF}, or a model in a file, as {FORM}{did_you_mean(name, [ITSELF])}"
        )
    return name


class Subject(_Table):
    """The tables of an application without an adapter."""

    shape: ApplicationShape = Field(
        description="map: an output hangs on one record; fold: on all records of its key so far"
    )
    names: Literal["templated", "fixed"] = Field(
        default="templated",
        description="templated: its names on the broker have {application_id} in them; fixed: they "
        "are those of its deployment, and each row has a broker of its own",
    )
    group: Annotated[str, Field(min_length=1)] | None = Field(
        default=None,
        description="its consumer group, with {application_id} in it unless names are fixed; it "
        'may be left out where progress = "none"',
    )
    input: dict[Name, Input] = Field(
        min_length=1,
        max_length=MOST_INPUTS,
        description="name -> what its records are made of; several have equal shares of a row's "
        "records, and no order among them",
    )
    output: dict[Name, OutputTable] = Field(
        min_length=1,
        max_length=MOST_OUTPUTS,
        description="name -> how its records are compared; the first one shows when a fault is due",
    )
    internal_topics: tuple[str, ...] = Field(
        default=(),
        description="topics that it makes for itself, such as {application_id}-totals-changelog",
    )
    process: dict[Name, ProcessTable] = Field(
        min_length=1,
        max_length=MOST_PROCESSES,
        description="name -> how it is started; an instance has all of them",
    )
    query: dict[Name, QueryTable] = Field(
        default={},
        max_length=MOST_QUERIES,
        description="name of an output -> how it is asked for the last value of a key",
    )
    signals: SignalsTable = Field(
        default=SignalsTable(), description="how a process is known to be ready, and is ended"
    )
    oracle: Annotated[str, AfterValidator(_oracle)] = Field(
        default=ITSELF,
        description="itself, or a model in a file beside this one, such as orders.py:ORDERS",
    )
    inherit: tuple[Variable, ...] = Field(
        default=(),
        description="variables of the caller that reach it, beside " + ", ".join(INHERITED),
    )
    secrets: tuple[Variable, ...] = Field(
        default=(),
        description="variables of the caller that reach it, and are masked in all that is written",
    )
    security: Literal["plaintext", "ssl", "sasl_plaintext", "sasl_ssl"] = Field(
        default=PLAINTEXT,
        description="how it reaches its broker; by SASL with PLAIN, SCRAM-SHA-256 or "
        "SCRAM-SHA-512; it is told {ca_file}, or {username} and {password}",
    )
    restart: Literal["never", "on-exit"] = Field(
        default="never", description="whether its supervisor starts it again when it ends"
    )
    peers: tuple[HostAndPort, ...] = Field(
        default=(), description="addresses HOST:PORT beside the broker that it is right to ask"
    )

    fence: Literal["watched", "namespace"] = Field(
        default="watched",
        description="watched: the doctor looks at its connections; namespace: as root on Linux its "
        "processes reach the broker and `peers` alone",
    )
    hosts: tuple[HostAndPort, ...] = Field(
        default=(),
        description="addresses HOST:PORT of the broker of its deployment, which lead to that of a "
        'row; with fence = "namespace"',
    )

    @model_validator(mode="after")
    def _names_are_filled_in(self) -> "Subject":
        """Refuse a placeholder that nothing is filled in for, and a group of all applications."""
        for role in self.input:
            if role in self.output:
                raise ValueError(f"an input and an output are both called {role}")
        self._demand_order()
        topics = (
            *(f"input.{role}" for role in self.input),
            *(f"output.{role}" for role in self.output),
        )
        for place, text in self.texts():
            _demand_known(place, text, (*PLACEHOLDERS, *topics))
        used = set(self.placeholders())
        self._demand_names(used)
        self._demand_processes()
        self._demand_starts()
        self._demand_credentials(used)
        self._demand_identities()
        self._demand_increases()
        self._demand_queries()
        self._demand_hosts()
        needed = [] if self.names == FIXED else [*topics]
        needed += [] if self.hosts else ["bootstrap"]
        for name in needed:
            if name not in used:
                raise ValueError(f"no process is told {{{name}}}; name it in `environment`")
        return self

    def _demand_names(self, used: set[str]) -> None:
        """Refuse names that are not of the kind that the file declares."""
        if self.names == FIXED:
            if "application_id" in used:
                raise ValueError(
                    "`names` are fixed, and {application_id} stands in a text; remove one of them"
                )
            self._demand_topics()
            return
        for name, table in self.output.items():
            if table.topic is not None:
                raise ValueError(f"[output.{name}]: {NO_TOPIC}")
        if self.group is not None and "{application_id}" not in self.group:
            raise ValueError(
                "`group` has no {application_id} in it; each row needs a group of its own, or a "
                'broker of its own, as by names = "fixed"'
            )
        for name in self.internal_topics:
            if "{application_id}" not in name:
                raise ValueError(
                    f"`internal_topics` has {short(name)}, with no {{application_id}} in it; each "
                    "row needs topics of its own"
                )

    def _demand_credentials(self, used: set[str]) -> None:
        """Refuse credentials that the broker does not ask for, and demand those that it does."""
        asked = ["ca_file"] if self.security.endswith("ssl") else []
        asked += ["username", "password"] if self.security.startswith("sasl") else []
        for name in CREDENTIALS:
            if name in used and name not in asked:
                raise ValueError(f"a text has {{{name}}}, and `security` is {self.security}")
            if name in asked and name not in used:
                raise ValueError(
                    f"`security` is {self.security}, and no process is told {{{name}}}"
                )

    def _demand_processes(self) -> None:
        """Refuse more processes than an instance may have, and two of one name."""
        number = sum(table.count for table in self.process.values())
        if number > MOST_PROCESSES:
            raise ValueError(f"an instance has {number} processes, and may have {MOST_PROCESSES}")
        names = Counter(name for name, table in self.process.items() if table.count == 1)
        for name, table in self.process.items():
            names.update(f"{name}-{each + 1}" for each in range(table.count) if table.count > 1)
        for name, times in names.items():
            if times > 1:
                raise ValueError(f"two processes are called {name}")

    def _demand_starts(self) -> None:
        """Refuse a process that nothing starts, and what a container does not have."""
        for name, table in self.process.items():
            if table.image and self.fence == NAMESPACE:
                raise ValueError(
                    f"[process.{name}] has an `image`, and no container is inside of a fence; "
                    "remove one of them"
                )
            if table.image is None and not table.command:
                raise ValueError(f"[process.{name}] needs a `command`, or an `image`")
            if table.image is None and table.mount:
                raise ValueError(f"[process.{name}] has a `mount`, and no `image` to mount it in")
            if table.image and "python" in set(_of_process(table)):
                raise ValueError(
                    f"[process.{name}] has {{python}}, the interpreter of the harness, which its "
                    "`image` does not have"
                )
            for target, times in Counter(table.mount.values()).items():
                if times > 1:
                    raise ValueError(f"[process.{name}] mounts two folders at {target}")

    def _demand_topics(self) -> None:
        """Refuse an output without a fixed topic of its own."""
        known: dict[str | None, str] = {}
        for name, described_input in self.input.items():
            if owner := known.get(described_input.topic):
                raise ValueError(f"[input.{name}] has the `topic` of {owner}")
            known[described_input.topic] = f"[input.{name}]"
        for name, table in self.output.items():
            if table.topic is None:
                raise ValueError(f"`names` are fixed, and [output.{name}] names no `topic`")
            if owner := known.get(table.topic):
                raise ValueError(f"[output.{name}] has the `topic` of {owner}")
            known[table.topic] = f"[output.{name}]"
        if self.internal_topics:
            raise ValueError(
                "`names` are fixed, so each row has a broker of its own, on which all topics are "
                "those of the application; remove `internal_topics`"
            )

    def _demand_identities(self) -> None:
        """Refuse an identity that no output can have, or that nothing is compared by."""
        for name, table in self.output.items():
            if table.identity is None:
                continue
            if table.format == "bytes":
                raise ValueError(f"[output.{name}]: the format bytes has no field for `identity`")
            if self.oracle != ITSELF:
                raise ValueError(
                    f"[output.{name}] has an `identity`, and the model {self.oracle} says the "
                    "order of its outputs"
                )

    def _demand_increases(self) -> None:
        """Refuse an increasing field that no output can have, or that nothing is compared by."""
        for name, table in self.output.items():
            if table.increasing is None:
                continue
            if table.format == "bytes":
                raise ValueError(f"[output.{name}]: the format bytes has no field for `increasing`")
            if table.identity is not None:
                raise ValueError(
                    f"[output.{name}] has an `identity`, so that the order of its outputs is not "
                    "compared, and an `increasing` field says what that is; say one of them"
                )
            if self.shape != "fold" or self.oracle != ITSELF:
                raise ValueError(
                    f"[output.{name}] has an `increasing` field, which says something of a fold "
                    'without a model alone: shape = "fold"'
                )

    def _demand_hosts(self) -> None:
        """Refuse names of its broker that lead nowhere."""
        if self.hosts and self.fence != NAMESPACE:
            raise ValueError(
                "`hosts` lead to the broker of a row inside of a fence alone; say "
                f'fence = "{NAMESPACE}"'
            )
        if self.hosts and self.security.endswith("ssl"):
            raise ValueError(
                f"`security` is {self.security}, and the certificate of a run is not for the names "
                "of `hosts`; tell it {bootstrap}"
            )

    def _demand_queries(self) -> None:
        """Refuse a query that nobody answers, or whose answers are compared with nothing."""
        for name, query in self.query.items():
            output = self.output.get(name)
            if output is None:
                guess = did_you_mean(name, self.output)
                raise ValueError(f"[query.{name}]: there is no [output.{name}] to ask for.{guess}")
            if output.identity is not None:
                raise ValueError(
                    f"[query.{name}]: its output has an `identity`, and so no last value of a key"
                )
            if output.format == "bytes" and query.fields:
                raise ValueError(f"[query.{name}]: the format bytes has no field for `fields`")
            told = [each for each in self.process.values() if "port" in _of_process(each)]
            number = sum(each.count for each in told)
            if "{port}" in query.http and number != 1:
                raise ValueError(
                    f"[query.{name}] asks one process at {{port}}, and {number} of an instance are "
                    "told {port}"
                )

    def _demand_order(self) -> None:
        """Refuse several inputs where their records would have to have an order.

        A model says which orders are right.
        """
        if len(self.input) == 1 or self.shape == "fold" or self.oracle != ITSELF:
            return
        for name, table in self.output.items():
            if table.identity is None:
                raise ValueError(
                    f"there are {len(self.input)} inputs, whose records have no mutual order; "
                    f"[output.{name}] needs an `identity`, a field that tells its records apart"
                )

    def topics(self, application_id: str) -> dict[str, str]:
        """Return the topics of its input and of its outputs, by their names in the file."""
        if self.names == FIXED:
            outputs = {name: str(table.topic) for name, table in self.output.items()}
            return {role: each.topic for role, each in self.input.items()} | outputs
        return {role: f"{application_id}-{role}" for role in (*self.input, *self.output)}

    def texts(self) -> Iterator[tuple[str, str]]:
        """Go through the texts that have placeholders, with their places."""
        if self.group is not None:
            yield "group", self.group
        yield from (("internal_topics", each) for each in self.internal_topics)
        for name, process in self.process.items():
            yield from ((f"process.{name}.command", each) for each in process.command)
            for variable, value in process.environment.items():
                yield f"process.{name}.environment.{variable}", value

    def placeholders(self) -> Iterator[str]:
        """Go through the placeholders that are used."""
        for text in (self.group or "", *self.internal_topics):
            yield from _PLACEHOLDER.findall(text)
        for process in self.process.values():
            yield from _of_process(process)

    @property
    def untold(self) -> tuple[str, ...]:
        """The timeouts that a process of it is not told, by their names in `SETTINGS`.

        A process that is not told the broker has no session and no transaction there.
        """
        told = [set(_of_process(process)) for process in self.process.values()]
        clients = [each for each in told if self.hosts or "bootstrap" in each]
        return tuple(
            name for name in TIMEOUTS if not all(SETTINGS[name] in each for each in clients)
        )

    @property
    def images(self) -> dict[str, str]:
        """The image of each process that runs in a container, by the name of the process."""
        return {name: each.image for name, each in self.process.items() if each.image}

    @property
    def shortest_session_ms(self) -> int:
        """The shortest session, in milliseconds, in which its heartbeats arrive."""
        return max(SHORTEST_SESSION_MS, 3 * self.signals.heartbeat_ms + HEARTBEAT_SLACK_MS)

    @property
    def role_in(self) -> str:
        """The name of the first input."""
        return next(iter(self.input))

    @property
    def visible_within_ms(self) -> int:
        """The longest time until an output is visible after its input, in milliseconds."""
        return max(table.visible_within_ms for table in self.output.values())


def _of_process(process: ProcessTable) -> Iterator[str]:
    """Go through the placeholders that a process is told, and the folders that it is given."""
    yield from process.mount
    texts = (*process.command, *process.environment.values(), *process._templates.values())
    for text in texts:
        yield from _PLACEHOLDER.findall(text)


def _demand_known(place: str, text: str, known: tuple[str, ...]) -> None:
    """Refuse a placeholder that nothing is filled in for."""
    for name in _PLACEHOLDER.findall(text):
        if name not in known:
            there = ", ".join(f"{{{each}}}" for each in known)
            guess = did_you_mean(name, known)
            raise ValueError(f"`{place}` has {{{name}}}; there are {there}.{guess}")


def read(file: Path, tables: Mapping[str, Any]) -> Subject:
    """Read the tables of an application without an adapter.

    Args:
        file: The design.toml, for a refusal.
        tables: The fields of `Subject` as TOML has them.

    Raises:
        UsageProblem: A table breaks a rule.
    """
    inputs = tables.get("input")
    read_tables = dict(tables)
    if isinstance(inputs, dict):
        is_fixed = tables.get("names", TEMPLATED) != TEMPLATED
        read_tables["input"] = {
            name: _input(file, name, each, is_fixed=is_fixed) for name, each in inputs.items()
        }
    try:
        return Subject.model_validate(read_tables, context={"folder": file.parent})
    except ValidationError as error:
        raise UsageProblem(f"{file}: {_first(error)}") from None


def _input(file: Path, name: str, table: object, *, is_fixed: bool) -> Input:
    """Return the description of an input, whose size the rows choose."""
    where = f"{file}: [input.{name}]"
    if not isinstance(table, dict):
        raise UsageProblem(f"{where} is no table.")
    for chosen in CHOSEN_BY_ROWS:
        if chosen in table:
            raise UsageProblem(f"{where}: `{chosen}` is chosen by each row; remove it.")
    if table.get("registry"):
        raise UsageProblem(f"{where}: `registry` waits for a later version; remove it.")
    topic = table.get("topic", "" if is_fixed else name)
    if topic == "":
        raise UsageProblem(f"{where}: `names` are fixed, and it names no `topic`.")
    if not is_fixed and "topic" in table:
        raise UsageProblem(f"{where}: {NO_TOPIC}.")
    return described({**table, "topic": topic}, where=where, folder=file.parent)


def _first(error: ValidationError) -> str:
    """Return a sentence on the first thing that is wrong."""
    wrong = refusals.first(error)
    field = wrong.field
    match wrong.kind:
        case "missing":
            return f"the field `{field}` is missing."
        case "extra_forbidden":
            *table, name = wrong.place
            known = list(_MODELS.get(table[0] if table else "", Subject).model_fields)
            guess = did_you_mean(name, known)
            return f"`{field}` is no field here; known are {', '.join(known)}.{guess}"
        case "too_long":
            return f"`{field}` has too many tables; there may be {_MOST[field]}."
    if not field:
        return sentence(wrong.said)
    return f"`{field}` is {short(wrong.given)}: {sentence(wrong.must)}"


_MOST: Final = {
    "input": MOST_INPUTS,
    "output": MOST_OUTPUTS,
    "process": MOST_PROCESSES,
    "query": MOST_QUERIES,
}
_MODELS: Final[dict[str, type[BaseModel]]] = {
    "output": OutputTable,
    "process": ProcessTable,
    "query": QueryTable,
    "signals": SignalsTable,
}
FIELDS: Final = tuple(Subject.model_fields)
