"""`upheld contract` shows what was understood of an application and its model."""

import json
from pathlib import Path

import pytest

from upheld.cli import main
from upheld.protocol.model_file import model_of

DESIGN = """
name = "orders"
version = "1"
modes = ["exactly_once"]
shape = "fold"
oracle = "orders.py:TOTALS"
group = "{application_id}"
[input.orders]
sample = "orders.jsonl"
key = "$.account"
unique = "$.id"
[output.totals]
ignore = ["$.at"]
[process.app]
command = ["true", "{bootstrap}", "{input.orders}", "{output.totals}"]
"""
MODEL = """
from upheld.models import Fold, Map, Output

def add(total, order):
    total += order.value["cents"]
    return total, [Output(order.key, {"account": order.key, "cents": total})]

TOTALS = Fold(add, initial=0)
LATEST = Fold(add, initial=0, key=lambda order: order.value["account"], may_skip=True)
NOTHING = Map(lambda order: [])
"""


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work where an application with a model is."""
    monkeypatch.chdir(tmp_path)
    Path("design.toml").write_text(DESIGN)
    Path("orders.py").write_text(MODEL)
    Path("orders.jsonl").write_text('{"id": "o-1", "account": "ada", "cents": 5}\n')


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Return what `contract` prints."""
    assert main(["contract", *arguments]) == 0
    return capsys.readouterr().out


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Return the sentence with which a command ends with exit 4."""
    assert main([*arguments]) == 4
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    return err.removeprefix("upheld: ").replace(f"{Path.cwd()}/", "").rstrip("\n")


def test_what_was_understood_of_a_design(capsys: pytest.CaptureFixture[str]) -> None:
    """Shape, roles, key and model stand there, with answers to records of the samples."""
    lines = said(capsys, ".", "--examples", "2").replace(f"{Path.cwd()}/", "").splitlines()

    assert lines[:5] == [
        "design     orders 1, exactly_once",
        "shape      fold",
        "reads      orders, json, key $.account, from orders.jsonl",
        "writes     totals, json, without $.at",
        "parameters visible_within_ms 2100",
    ]
    assert lines[5].startswith("oracle     orders.py:TOTALS, sha256 ")
    assert lines[6:9] == [
        "step       add",
        "state      one for the key of the record, at first 0",
        "outputs    show each state",
    ]
    assert [line for line in lines if line.startswith("  -> ")] == [
        '  -> ada  {"account": "ada", "cents": 5}',
        '  -> ada  {"account": "ada", "cents": 10}',
    ]
    assert lines[-1] == ("200 records of the samples were tried, each twice: 200 outputs of 1 keys")


def test_another_model_of_the_file(capsys: pytest.CaptureFixture[str]) -> None:
    """A model that is named by its file is tried with the samples beside it."""
    out = said(capsys, "orders.py:LATEST", "--examples", "1")

    assert "state      one for <lambda>, at first 0\noutputs    may skip states\n" in out
    assert '  -> ada  {"account": "ada", "cents": 5}\n' in out


def test_a_model_without_a_design(capsys: pytest.CaptureFixture[str]) -> None:
    """Without samples a model is loaded, and the last line says that it was not tried."""
    Path("design.toml").unlink()

    lines = said(capsys, "orders.py:NOTHING").splitlines()

    assert lines[0] == "shape      map"
    assert lines[-1] == (
        "There is no design.toml of an application beside it, so no record was tried."
    )


def test_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    """A script gets the same facts and examples."""
    found = json.loads(said(capsys, ".", "--json", "--examples", "1"))

    assert (found["shape"], found["step"]) == ("fold", "add")
    (example,) = found["examples"]
    assert example["outputs"] == [
        {"to": "totals", "key": "ada", "value": '{"account": "ada", "cents": 5}'}
    ]


def test_a_design_that_is_its_own_oracle(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a model there is nothing to answer, and the oracle is named."""
    Path("design.toml").write_text(DESIGN.replace('oracle = "orders.py:TOTALS"\n', ""))

    out = said(capsys, ".")

    assert out.endswith("oracle     itself: right is what it gives without a fault\n")


def _with_alerts() -> None:
    """Give the design a second output."""
    told = DESIGN.replace('"{output.totals}"', '"{output.totals}", "{output.alerts}"')
    Path("design.toml").write_text(
        told.replace("[process.app]", '[output.alerts]\nformat = "bytes"\n[process.app]')
    )


def test_each_output_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """A line names all of them, each with its format and what is not compared."""
    _with_alerts()
    file = Path("design.toml")
    file.write_text(file.read_text().replace('oracle = "orders.py:TOTALS"\n', ""))

    assert "writes     totals, json, without $.at; alerts, bytes\n" in said(capsys, ".")


def _with_refunds() -> None:
    """Give the design a second input."""
    told = DESIGN.replace('"{input.orders}"', '"{input.orders}", "{input.refunds}"')
    refunds = '[input.refunds]\nsample = "orders.jsonl"\nkey = "$.account"\n'
    Path("design.toml").write_text(told.replace("[output.totals]", f"{refunds}[output.totals]"))


def _says(told: str, before: str = "initial=0)") -> None:
    """Let the model name its inputs or outputs."""
    _write(MODEL.replace(before, f"initial=0, {told})", 1))


def _write(model: str) -> None:
    """Write another model; a process reads the model of a design once."""
    Path("orders.py").write_text(model)
    model_of.cache_clear()


def test_a_model_names_each_of_several_outputs(capsys: pytest.CaptureFixture[str]) -> None:
    """One sentence has the name that is lacking or not known, before a broker starts."""
    _with_alerts()
    lacking = "the model orders.py:TOTALS does not name [output.alerts]"

    assert "there are 2 outputs, and" in refused(capsys, "run", ".", "--broker", "embedded")
    _says('outputs=("totals",)')
    assert lacking in refused(capsys, "contract", ".")
    assert lacking in refused(capsys, "contract", "orders.py:TOTALS")
    _says('outputs=("totals", "alrts", "alerts")')
    assert refused(capsys, "contract", ".").endswith(
        "names the output alrts, and there is no [output.alrts]; there is totals, alerts. Did you "
        "mean alerts?"
    )
    _says('outputs=("totals", "alerts")')
    assert "gives an output that does not say `to` which of totals, alerts it goes, at the" in (
        refused(capsys, "contract", ".")
    )


def test_a_model_names_each_of_several_inputs(capsys: pytest.CaptureFixture[str]) -> None:
    """A model that names fewer inputs or others is refused."""
    _says('inputs=("orders", "refunds")')
    assert "names the input refunds, and there is no [input.refunds]" in (
        refused(capsys, "contract", ".")
    )
    _with_refunds()
    assert "writes     totals" in said(capsys, ".")
    _says('inputs=("orders",)')
    assert "does not name [input.refunds]" in refused(capsys, "contract", ".")
    _says('inputs=("orders", "orders")')
    assert "`inputs` of a Fold has a name twice" in refused(capsys, "contract", ".")
    _says('inputs="orders"')
    assert "`inputs` of a Fold is 'orders', and no list of names" in refused(
        capsys, "contract", "."
    )


def test_examples_of_each_input_and_output(capsys: pytest.CaptureFixture[str]) -> None:
    """Records of all inputs are shown, and of each answer to which output it goes."""
    _with_refunds()
    _says('inputs=("orders", "refunds")')

    lines = said(capsys, ".", "--examples", "1").splitlines()

    assert "inputs     orders, refunds: in any order that keeps that of each partition" in lines
    assert [line.split("-")[0] for line in lines if "@0  ada" in line] == ["orders", "refunds"]
    assert "  -> ada" in "\n".join(lines)
    _with_alerts()
    to = 'Output(order.key, b"!", to="alerts"), Output(order.key, 0, to="totals")'
    model = MODEL.replace("initial=0)", 'initial=0, outputs=("alerts", "totals"))', 1)
    _write(model.replace('Output(order.key, {"account": order.key, "cents": total})', to))
    lines = said(capsys, ".", "--examples", "1").splitlines()
    assert [line for line in lines if "->" in line] == [
        "  -> alerts  ada  !",
        "  -> totals  ada  0",
    ]
    (example,) = json.loads(said(capsys, ".", "--json", "--examples", "1"))["examples"]
    assert [each["to"] for each in example["outputs"]] == ["alerts", "totals"]


def test_a_model_in_another_folder(capsys: pytest.CaptureFixture[str]) -> None:
    """`--design` names the application that it is tried with."""
    Path("models").mkdir()
    Path("orders.py").rename("models/orders.py")

    out = said(capsys, "models/orders.py:TOTALS", "--design", ".", "--examples", "1")

    assert "oracle     models/orders.py:TOTALS, sha256 " in out
    assert '  -> ada  {"account": "ada", "cents": 5}\n' in out
    assert "--design goes with a model" in refused(capsys, "contract", ".", "--design", ".")


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        ("TOTALS = Fold", "TOTALS = Folds", "design.toml: `oracle` names orders.py, which cannot"),
        ('["cents"]', '["cent"]', "The model orders.py:TOTALS raises KeyError: 'cent', at the"),
        ("TOTALS", "SUMS", "design.toml: `oracle` is orders.py:TOTALS, and orders.py has no TOTAL"),
        ("TOTALS = Fold(add, initial=0)", "TOTALS = Map(add)", "design.toml: `shape` is fold, and"),
    ],
)
def test_a_model_is_refused_before_a_broker_starts(
    capsys: pytest.CaptureFixture[str], before: str, after: str, sentence: str
) -> None:
    """`contract` and `run` say in one sentence what is wrong with a model, and exit 4."""
    Path("orders.py").write_text(MODEL.replace(before, after))

    for command in (["contract", "."], ["run", ".", "--broker", "embedded"]):
        assert refused(capsys, *command).startswith(sentence)


@pytest.mark.parametrize(
    ("oracle", "sentence"),
    [
        ("orders.py", "design.toml: `oracle` is 'orders.py': an oracle is itself, or a model in"),
        ("itslf", "design.toml: `oracle` is 'itslf': an oracle is itself, or a model in a file, "),
        ("none.py:TOTALS", "design.toml: `oracle` names none.py, which cannot be read: No such"),
    ],
)
def test_an_oracle_that_is_none(
    capsys: pytest.CaptureFixture[str], oracle: str, sentence: str
) -> None:
    """A word that is no oracle and a file that is not there are refused."""
    Path("design.toml").write_text(DESIGN.replace("orders.py:TOTALS", oracle))

    assert refused(capsys, "contract", ".").startswith(sentence)


def test_a_design_with_an_adapter(capsys: pytest.CaptureFixture[str]) -> None:
    """A design with an adapter has no contract of its own."""
    assert "has an adapter, and is judged by the models of programs" in refused(
        capsys, "contract", "plain"
    )
