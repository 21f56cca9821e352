"""A visit tells an application the same names as a run does."""

import tempfile
from pathlib import Path

from upheld.bridge import Bridge
from upheld.doctor.visit import names_of
from upheld.protocol.manifest import load
from upheld.protocol.subject import PLACEHOLDERS
from upheld.supervisor.deployed import places

GIVEN = ("bootstrap", "application_id", "instance", "state_dir", "durable_dir")
ORDERS = Path(__file__).parents[3] / "examples" / "orders"


def test_each_placeholder_is_filled_in(tmp_path: Path) -> None:
    """A run and a visit fill in the same ones."""
    temporary = Path(tempfile.gettempdir())
    names = names_of(load(str(ORDERS)), "doctor-1", "127.0.0.1:1", tmp_path, temporary)
    started = {
        "topics": {"orders": names["input.orders"], "costs": names["output.costs"]},
        "parameters": {},
        **{name: names[name] for name in GIVEN},
        "session_timeout_ms": int(names["session_timeout_ms"]),
        "transaction_timeout_ms": int(names["transaction_timeout_ms"]),
        "mode": names["mode"],
    }
    of_a_run = Bridge(ORDERS / "design.toml")._names(started)

    every = {*PLACEHOLDERS, "input.orders", "output.costs"}
    of_each_start = places(tmp_path).keys()
    assert names.keys() == every - of_each_start
    alike = of_a_run.keys() - of_each_start - {"python"}
    assert {name: names[name] for name in alike} == {name: of_a_run[name] for name in alike}
