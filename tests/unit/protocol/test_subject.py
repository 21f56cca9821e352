"""An application without an adapter is described by the tables of its design.toml.

One sentence refuses what is wrong in them, before anything starts.
"""

import re
import sys
from pathlib import Path

import pytest

from upheld.errors import UsageProblem
from upheld.programs.modelled import contract_of, program
from upheld.protocol.limits import Limit
from upheld.protocol.manifest import BRIDGE, load

ROOT = Path(__file__).parents[3]
GOOD = """
name = "orders"
version = "1"
modes = ["exactly_once"]
shape = "map"
group = "{application_id}"

[input.orders]
sample = "orders.jsonl"
key = "$.account"

[output.costs]
ignore = ["$.at"]

[process.app]
command = ["{python}", "app.py"]

[process.app.environment]
KAFKA = "{bootstrap}"
GROUP = "{application_id}"
ORDERS = "{input.orders}"
COSTS = "{output.costs}"
"""


COMMAND = 'command = ["{python}", "app.py"]'
ASKED = "http://127.0.0.1:{port}/costs/{key}"
REFUNDS = """
[input.refunds]
sample = "orders.jsonl"
key = "$.account"

"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a good application."""
    (tmp_path / "design.toml").write_text(GOOD)
    (tmp_path / "orders.jsonl").write_text('{"account": "a"}\n')
    (tmp_path / "app.py").touch()
    return tmp_path


def refusal(folder: Path, old: str, new: str) -> str:
    """Return the sentence that refuses an application in which a text is another one."""
    assert old in GOOD
    file = folder / "design.toml"
    file.write_text(GOOD.replace(old, new, 1))
    with pytest.raises(UsageProblem) as problem:
        load(str(folder))
    said = str(problem.value)
    assert said.startswith(f"{file}: ")
    return said.removeprefix(f"{file}: ")


def test_a_bridge_answers_for_it(folder: Path) -> None:
    """It stands in the place of the programs of its shape, and has no command."""
    design = load(str(folder))

    assert design.command[:3] == (sys.executable, "-m", BRIDGE)
    assert design.command[3:] == (str(folder / "design.toml"), *design.programs)
    assert design.application
    assert design.application.role_in == "orders"
    assert design.application.input["orders"].sample == folder / "orders.jsonl"


def test_a_process_may_be_a_container(folder: Path) -> None:
    """Its command is for the entrypoint, so no such program has to be here."""
    image = 'image = "shop/orders:4"\ncommand = ["--serve"]\nmount = { state_dir = "/data" }'
    (folder / "design.toml").write_text(GOOD.replace(COMMAND, image))
    design = load(str(folder))

    assert design.images == {"app": "shop/orders:4"}
    assert design.local_state  # a folder that has a place in it is kept
    (folder / "design.toml").write_text(GOOD)
    assert load(str(folder)).images == {}


BY_LOG = '[signals]\nready = "log:started"\n\n[output.costs]'
GROUP = 'group = "{application_id}"\n'
ELSEWHERE = 'progress = "none"\n'


def test_progress_may_be_in_no_group(folder: Path) -> None:
    """Then nothing is known by a group: neither readiness nor who shares the input."""
    text = GOOD.replace(GROUP, ELSEWHERE, 1).replace("[output.costs]", BY_LOG)
    (folder / "design.toml").write_text(text)
    design = load(str(folder))

    assert design.application
    assert (design.application.group, design.progress) == (None, "none")
    assert design.cannot == (Limit.STATIC_MEMBERSHIP,)


@pytest.mark.parametrize(
    ("new", "signals", "said"),
    [
        ("", BY_LOG, 'the field `group` is missing. Only progress = "none" goes without one'),
        ('progress = "group-leads"\n', BY_LOG, "the field `group` is missing. "),
        (ELSEWHERE, "[output.costs]", "no `group` is named, by which it could be ready"),
        (
            f'{ELSEWHERE}capabilities = ["scale"]\n',
            BY_LOG,
            "`capabilities` names scale, and no `group` is named",
        ),
    ],
)
def test_a_group_is_missing(folder: Path, new: str, signals: str, said: str) -> None:
    """One sentence says what is known by a group alone."""
    (folder / "design.toml").write_text(
        GOOD.replace(GROUP, new, 1).replace("[output.costs]", signals)
    )

    with pytest.raises(UsageProblem, match=re.escape(said)):
        load(str(folder))


def test_a_sign_of_readiness_is_a_pattern(folder: Path) -> None:
    """A line of its log is looked for by it."""
    said = refusal(folder, "[output.costs]", '[signals]\nready = "log:("\n\n[output.costs]')

    assert "no regular expression" in said
    assert "`signals.ready`" in said


@pytest.mark.parametrize("peer", ["redis", "redis:port", "a redis:6379"])
def test_a_peer_is_a_host_and_a_port(folder: Path, peer: str) -> None:
    """The doctor compares it with the connections of the application."""
    said = refusal(folder, 'shape = "map"', f'shape = "map"\npeers = ["{peer}"]')

    assert "`peers.0`" in said


FIXED = """
name = "orders"
version = "1"
modes = ["exactly_once"]
shape = "map"
names = "fixed"
group = "pricing"

[input.orders]
topic = "shop.orders"
sample = "orders.jsonl"
key = "$.account"

[output.costs]
topic = "shop.costs"

[process.app]
command = ["{python}", "app.py", "{bootstrap}"]
"""


def test_names_as_deployed(folder: Path) -> None:
    """Each row has these topics, and nobody can tell topics of its own by its id."""
    (folder / "design.toml").write_text(FIXED)
    design = load(str(folder))

    assert design.has_fixed_names
    assert design.topics("trial-1", ["orders", "costs"]) == {
        "orders": "shop.orders",
        "costs": "shop.costs",
    }
    assert design.cannot == (Limit.TOPIC_NAMES,)


def test_several_outputs(folder: Path) -> None:
    """Each has a topic and a table of its own, and rows wait for the slowest."""
    alerts = '[output.alerts]\nformat = "bytes"\nvisible_within_ms = 3_000\n'
    told = 'ALERTS = "{output.alerts}"\n'
    text = GOOD.replace("[process.app]", f"{alerts}[process.app]")
    (folder / "design.toml").write_text(text + told)
    design = load(str(folder))

    assert design.application
    assert list(design.application.output) == ["costs", "alerts"]
    assert design.application.visible_within_ms == 3_000
    assert design.topics("trial-1", ["orders", "costs", "alerts"]) == {
        "orders": "trial-1-orders",
        "costs": "trial-1-costs",
        "alerts": "trial-1-alerts",
    }
    contract = contract_of(design)
    assert contract
    assert contract.roles == ("costs", "alerts")
    assert [(each.format, each.ignore) for each in contract.outputs] == [
        ("json", ("$.at",)),
        ("bytes", ()),
    ]
    program_topics = program(contract).topics
    assert program_topics == {"orders": "input", "costs": "output", "alerts": "output"}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('topic = "shop.orders"', "", "[input.orders]: `names` are fixed, and it names no `topic`"),
        ('topic = "shop.costs"', "", "`names` are fixed, and [output.costs] names no `topic`"),
        ("shop.costs", "shop.orders", "[output.costs] has the `topic` of [input.orders]"),
        (
            "[process.app]",
            '[output.alerts]\ntopic = "shop.costs"\n[process.app]',
            "[output.alerts] has the `topic` of [output.costs]",
        ),
        (
            "[process.app]",
            "[output.alerts]\n[process.app]",
            "`names` are fixed, and [output.alerts] names no `topic`",
        ),
        ("pricing", "{application_id}", "{application_id} stands in a text; remove one of them"),
        ('"fixed"', '"fix"', "`names` is 'fix'"),
        ("[input", 'internal_topics = ["changes"]\n[input', "remove `internal_topics`"),
    ],
)
def test_fixed_names_are_whole(folder: Path, old: str, new: str, said: str) -> None:
    """A name that is missing, or that a row would change, is refused."""
    (folder / "design.toml").write_text(FIXED.replace(old, new, 1))

    with pytest.raises(UsageProblem, match=re.escape(said)):
        load(str(folder))


def test_a_template_tells_as_an_environment_does(folder: Path) -> None:
    """A timeout in a file is told; other braces of the file are its own."""
    (folder / "app.yml.tmpl").write_text("session: {session_timeout_ms}\npattern: {level}\n")
    render = '[process.app]\nrender = { "app.yml" = "{dir}/app.yml.tmpl" }'
    (folder / "design.toml").write_text(GOOD.replace("[process.app]", render, 1))

    assert load(str(folder)).untold == ("transaction timeout",)


def test_what_it_is_not_told_limits_what_is_asked(folder: Path) -> None:
    """Without a placeholder it keeps no disk, and has timeouts of its own."""
    assert load(str(folder)).cannot == ()
    assert load(str(folder)).untold == ("transaction timeout", "session timeout")
    assert load(str(folder)).as_deployed().cannot == (Limit.TRANSACTION_TIMEOUT,)
    assert not load(str(folder)).local_state

    more = '[process.app.environment]\nDISK = "{state_dir}"\nT = "{transaction_timeout_ms}"'
    (folder / "design.toml").write_text(GOOD.replace("[process.app.environment]", more))

    assert load(str(folder)).untold == ("session timeout",)
    assert load(str(folder)).as_deployed().cannot == ()
    assert load(str(folder)).local_state


@pytest.mark.parametrize(("client", "untold"), [("x", ()), ("{bootstrap}", ("session timeout",))])
def test_each_process_that_is_told_the_broker_is_told_its_timeouts(
    folder: Path, client: str, untold: tuple[str, ...]
) -> None:
    """Another one has no session and no transaction there."""
    told = 'S = "{session_timeout_ms}"\nT = "{transaction_timeout_ms}"'
    side = f'[process.side]\ncommand = ["true", "{client}", "{{transaction_timeout_ms}}"]'
    text = GOOD.replace("[process.app]", f"{side}\n[process.app]")
    (folder / "design.toml").write_text(
        text.replace("[process.app.environment]", f"[process.app.environment]\n{told}")
    )

    assert load(str(folder)).untold == untold


@pytest.mark.parametrize(("heartbeat_ms", "session_ms"), [(3_000, 10_000), (10_000, 31_000)])
def test_a_session_has_three_heartbeats(folder: Path, heartbeat_ms: int, session_ms: int) -> None:
    """A session is not shortened below three heartbeats."""
    more = f"[signals]\nheartbeat_ms = {heartbeat_ms}\n[process.app]"
    (folder / "design.toml").write_text(GOOD.replace("[process.app]", more))

    subject = load(str(folder)).application

    assert subject
    assert subject.shortest_session_ms == session_ms


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('shape = "map"', "", "the field `shape` is missing."),
        ('shape = "map"', 'shape = "heap"', "`shape` is 'heap': "),
        ('group = "{application_id}"', 'group = "mine"', "`group` has no {application_id} in it"),
        ('"$.at"', '"at"', "`output.costs.ignore.0` is 'at': a path begins with $"),
        ("ignore = ", "ignores = ", "`output.costs.ignores` is no field here; known are format"),
        ("[input.orders]", "[input.costs]", "an input and an output are both called costs"),
        ("{bootstrap}", "{bootstraps}", "has {bootstraps}; there are .* Did you mean bootstrap?"),
        ("{input.orders}", "x", "no process is told {input.orders}; name it in `environment`."),
        (
            "[input.orders]",
            '[input.orders]\ntopic = "o"',
            "each row has topics of its own",
        ),
        ('ignore = ["$.at"]', 'topic = "c"', "[output.costs]: each row has topics of its own"),
        (
            "[process.app]",
            '[process.app]\nrender = { "a.yml" = "{dir}/none.tmpl" }',
            "the template of a.yml, {dir}/none.tmpl, does not exist",
        ),
        (
            "[process.app]",
            '[process.app]\nrender = { "../a.yml" = "app.py" }',
            "it names a file below {rendered}",
        ),
        (
            "[input.orders]",
            '[signals]\nready = "http://127.0.0.1/ready"\n[input.orders]',
            "an address is http://127.0.0.1:{port}/",
        ),
        (
            "[input.orders]",
            '[signals]\nready = "http://127.0.0.1:{ports}/"\n[input.orders]',
            "has {ports}; there are {port}",
        ),
        (
            'version = "1"',
            'version = "1"\ninternal_topics = ["changes"]',
            "`internal_topics` has 'changes', with no {application_id} in it",
        ),
        (
            'version = "1"',
            'version = "1"\ninternal_topics = ["{application}-changes"]',
            "`internal_topics` has {application}; there are",
        ),
        ('version = "1"', 'version = "1"\ninherit = ["A=B"]', "`inherit.0` is 'A=B'"),
        ('version = "1"', 'version = "1"\nsecrets = "A"', "`secrets` is 'A'"),
        ("orders.jsonl", "none.jsonl", "[input.orders]: `sample` is .*none.jsonl"),
        ("[input.orders]", "[input.orders]\ncount = 5", "`count` is chosen by each row; remove it"),
        ("[input.orders]", "[input.orders]\nregistry = true", "`registry` waits for a later"),
        (
            "[process.app]",
            "\n".join(f'[process.p{number}]\ncommand = ["true"]' for number in range(8))
            + "\n[process.app]",
            "`process` has too many tables; there may be 8.",
        ),
        ("[process.app]", "[process.app]\ncount = 9", "`process.app.count` is 9"),
        (
            "[output.costs]",
            f"{REFUNDS}[output.costs]",
            "there are 2 inputs, whose records have no mutual order; [output.costs] needs an",
        ),
        (
            "[output.costs]",
            "".join(f'[input.i{n}]\nsample = "orders.jsonl"\n' for n in range(4))
            + "[output.costs]",
            "`input` has too many tables; there may be 4.",
        ),
        (
            'ignore = ["$.at"]',
            'format = "bytes"\nidentity = "$.id"',
            "[output.costs]: the format bytes has no field for `identity`",
        ),
        ('ignore = ["$.at"]', 'identity = "id"', "`output.costs.identity` is 'id': a path begins"),
        (
            'ignore = ["$.at"]',
            'increasing = "$.n"',
            "says something of a fold without a model alone",
        ),
        (
            'ignore = ["$.at"]',
            'format = "bytes"\nincreasing = "$.n"',
            "[output.costs]: the format bytes has no field for `increasing`",
        ),
        (
            'ignore = ["$.at"]',
            'identity = "$.id"\nincreasing = "$.n"',
            "[output.costs] has an `identity`, so that the order of its outputs is not compared",
        ),
        ('shape = "map"', 'shape = "map"\nsecurity = "tls"', "`security` is 'tls': "),
        (
            'shape = "map"',
            'shape = "map"\nsecurity = "ssl"',
            "`security` is ssl, and no process is told {ca_file}",
        ),
        (
            'GROUP = "{application_id}"',
            'GROUP = "{application_id}"\nPASSWORD = "{password}"',
            "a text has {password}, and `security` is plaintext",
        ),
        (
            'shape = "map"',
            'shape = "map"\nhosts = ["kafka.shop:9092"]',
            '`hosts` lead to the broker of a row inside of a fence alone; say fence = "namespace".',
        ),
        (
            'shape = "map"',
            'shape = "map"\nfence = "namespace"\nhosts = ["kafka.shop"]',
            "`hosts.0` is 'kafka.shop'",
        ),
        (
            'KAFKA = "{bootstrap}"',
            'KAFKA = "kafka.shop:9092"',
            "no process is told {bootstrap}; name it in `environment`.",
        ),
        (
            "[process.app]",
            f'[query.cost]\nhttp = "{ASKED}"\n[process.app]',
            "[query.cost]: there is no [output.cost] to ask for. Did you mean costs?",
        ),
        (
            "[process.app]",
            f'[query.costs]\nhttp = "{ASKED}"\n[process.app]',
            "[query.costs] asks one process at {port}, and 0 of an instance are told {port}",
        ),
        (
            "[process.app]",
            f'[query.costs]\nhttp = "{ASKED}"\n[process.web]\ncommand = ["true", "{{port}}"]\n'
            "count = 2\n[process.app]",
            "[query.costs] asks one process at {port}, and 2 of an instance are told {port}",
        ),
        (
            "[process.app]",
            '[query.costs]\nhttp = "http://127.0.0.1:{port}/costs"\n[process.app]',
            "`query.costs.http` is 'http://127.0.0.1:{port}/costs': an address has {key} in it",
        ),
        (
            "[process.app]",
            '[query.costs]\nhttp = "http://shop:80/{key}"\n[process.app]',
            "`query.costs.http` is 'http://shop:80/{key}': an address is http://127.0.0.1:{port}/",
        ),
        (
            "[process.app]",
            '[query.costs]\nhttp = "http://127.0.0.1:80/{id}"\n[process.app]',
            "`http` has {id}; there are {port}, {key}.",
        ),
        (
            "[process.app]",
            f'[query.costs]\nhttp = "{ASKED}"\nfields = {{ "cost" = "$" }}\n[process.app]',
            "a path begins with $",
        ),
        (
            'ignore = ["$.at"]',
            f'identity = "$.id"\n[query.costs]\nhttp = "{ASKED}"',
            "[query.costs]: its output has an `identity`, and so no last value of a key",
        ),
        (
            'ignore = ["$.at"]',
            f'format = "bytes"\n[query.costs]\nhttp = "{ASKED}"\nfields = {{ "$" = "$.cost" }}',
            "[query.costs]: the format bytes has no field for `fields`",
        ),
        (
            "[process.app]",
            f'[query.costs]\nhttp = "{ASKED}"\n[query.more]\nhttp = "{ASKED}"\n[process.app]',
            "`query` has too many tables; there may be 1.",
        ),
        (
            "[process.app]",
            '[process.side]\ncommand = ["true"]\n[process.app]\ncount = 8',
            "an instance has 9 processes, and may have 8",
        ),
        (
            "[process.app]",
            '[process.app-2]\ncommand = ["true"]\n[process.app]\ncount = 2',
            "two processes are called app-2",
        ),
        (COMMAND, "", "[process.app] needs a `command`, or an `image`."),
        (COMMAND, "command = []", "[process.app] needs a `command`, or an `image`."),
        (COMMAND, 'image = "a b"', "`process.app.image` is 'a b': "),
        (
            COMMAND,
            f'{COMMAND}\nimage = "shop/orders:4"',
            "[process.app] has {python}, the interpreter of the harness, which its `image` does",
        ),
        (
            COMMAND,
            f'{COMMAND}\nmount = {{ state_dir = "/data" }}',
            "[process.app] has a `mount`, and no `image` to mount it in.",
        ),
        (
            COMMAND,
            'image = "shop/orders:4"\nmount = { state_dir = "data" }',
            "`process.app.mount.state_dir` is 'data': it is the absolute path of a folder",
        ),
        (
            COMMAND,
            'image = "shop/orders:4"\nmount = { disk = "/data" }',
            "`process.app.mount.disk` is 'disk': ",
        ),
        (
            COMMAND,
            'image = "shop/orders:4"\nmount = { state_dir = "/data", tmp_dir = "/data" }',
            "[process.app] mounts two folders at /data.",
        ),
        (
            'version = "1"',
            'version = "1"\nimage = "shop/orders:4"',
            "`image` is a field of [proc",
        ),
        (
            "[output.costs]",
            "\n".join(f"[output.o{number}]" for number in range(8)) + "\n[output.costs]",
            "`output` has too many tables; there may be 8.",
        ),
        (
            "[output.costs]",
            "[output.alerts]\n[output.costs]",
            "no process is told {output.alerts}; name it in `environment`.",
        ),
        (
            "[output.costs]",
            '[output.alerts]\ntopic = "a"\n[output.costs]',
            "[output.alerts]: each row has topics of its own",
        ),
        ("app.py", "none.py", "`process.app.command` runs none.py, which does not exist"),
        ('version = "1"', 'version = "1"\ncommand = ["true"]', "`command` is a field of a design"),
        (
            'version = "1"',
            'version = "1"\ncapabilities = ["query"]',
            "`capabilities` names query, which an application cannot offer without an adapter; it "
            "can offer scale. [query.X] says how it answers queries.",
        ),
        (
            'version = "1"',
            'version = "1"\napplication = 1',
            "`application` is not a field of a design",
        ),
    ],
)
def test_what_cannot_be_used_is_refused(folder: Path, old: str, new: str, said: str) -> None:
    """The sentence names the field, and what there is instead."""
    pattern = ".*".join(map(re.escape, said.split(".*")))

    assert re.search(pattern, refusal(folder, old, new))


def test_the_examples_can_be_judged() -> None:
    """Both order services are read, and differ in what they are told."""
    safe, naive = (load(str(ROOT / "examples" / name)) for name in ("orders", "orders/naive"))

    assert safe.application
    assert naive.application
    assert safe.application.group == naive.application.group
    assert naive.untold == ("transaction timeout",)
    fees, hasty = (load(str(ROOT / "examples" / each)) for each in ("untouched", "untouched/naive"))
    assert fees.has_fixed_names
    assert hasty.has_fixed_names
    assert fees.untold == hasty.untold == ("transaction timeout", "session timeout")
    assert safe.untold == ()


def test_the_examples_on_the_jvm_can_be_judged() -> None:
    """Both safe ones are told all timeouts, and say which topics they make."""
    streams, once = (load(str(ROOT / "examples" / each)) for each in ("streams", "streams/naive"))
    spring, hasty = (load(str(ROOT / "examples" / each)) for each in ("spring", "spring/naive"))

    for design in (streams, once):
        assert design.application
        assert design.application.internal_topics == ("{application_id}-totals-changelog",)
        assert design.local_state
        assert design.untold == ()
    assert streams.modes == once.modes == spring.modes == ("exactly_once",)
    assert hasty.modes == ("at_least_once",)
    assert spring.untold == ()
    assert hasty.untold == ("transaction timeout",)


def test_prepare_may_build_the_program_of_a_process(folder: Path) -> None:
    """A program that is named by a path is asked for when `prepare` has ended."""
    command = 'command = ["{python}", "app.py"]'
    built = GOOD.replace(command, 'command = ["{dir}/service"]')
    (folder / "design.toml").write_text('prepare = ["{python}", "-c", ""]\n' + built)
    assert load(str(folder)).prepare

    said = refusal(folder, command, 'command = ["{dir}/service"]')
    assert said == f"`process.app.command` starts with {folder}/service, which cannot be run here."


def test_an_application_that_answers_for_keys_offers_queries(folder: Path) -> None:
    """The contract of its output says how an answer is compared with it."""
    query = f'[query.costs]\nhttp = "{ASKED}"\nfields = {{ "$.cents" = "$.cost" }}\n\n[process.app]'
    text = GOOD.replace("[process.app]", query, 1) + 'PORT = "{port}"\n'
    (folder / "design.toml").write_text(text.replace("shape", 'capabilities = ["scale"]\nshape'))
    design = load(str(folder))
    contract = contract_of(design)

    assert design.capabilities == ("scale", "query")
    assert contract
    assert (contract.asked, contract.table) == ({"$.cents": "$.cost"}, "costs")


FENCE = 'fence = "namespace"\nhosts = ["kafka.shop:9092"]\n'


def test_inside_of_a_fence_no_process_is_told_its_broker(folder: Path) -> None:
    """Each of its processes may be a client then, and has timeouts of its own."""
    text = GOOD.replace("{bootstrap}", "kafka.shop:9092")
    (folder / "design.toml").write_text(FENCE + text)
    design = load(str(folder))

    assert design.application
    assert design.application.hosts == ("kafka.shop:9092",)
    assert design.untold == ("transaction timeout", "session timeout")


def test_no_container_is_inside_of_a_fence(folder: Path) -> None:
    """It has the network of the machine, and would reach everything."""
    text = GOOD.replace("{bootstrap}", "kafka.shop:9092").replace(
        COMMAND, 'image = "shop/orders:4"'
    )
    (folder / "design.toml").write_text(FENCE + text)

    with pytest.raises(UsageProblem, match="no container is inside of a fence; remove one"):
        load(str(folder))


def test_no_certificate_is_for_the_names_of_a_fence(folder: Path) -> None:
    """A client would refuse the broker of a row by its name."""
    text = GOOD.replace("{bootstrap}", "kafka.shop:9092") + 'CA = "{ca_file}"\n'
    (folder / "design.toml").write_text(f'{FENCE}security = "ssl"\n{text}')

    with pytest.raises(UsageProblem, match=r"not for the names of `hosts`; tell it \{bootstrap}"):
        load(str(folder))
