"""The plugin of pytest that makes a test of each row that a decorated test names.

It is loaded in every pytest of an environment that has upheld. So it imports nothing more until a
test bears the mark of `Design.guarantees`.
"""

from collections.abc import Generator
from typing import TYPE_CHECKING, Final

import pytest

from upheld.testing.designs import FIXTURE, MARK

if TYPE_CHECKING:
    from upheld.report import RowResult
    from upheld.testing.judge import Finding
    from upheld.testing.session import Session


SESSION: Final[pytest.StashKey["Session"]] = pytest.StashKey()
FOUND: Final[pytest.StashKey["Finding"]] = pytest.StashKey()


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark, by which `-m upheld` chooses too."""
    config.addinivalue_line(
        "markers", f"{MARK}: judged by upheld, a test a row; `upheld.design` says how."
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make a test of each row that is asked for."""
    asked = [mark.args[0] for mark in metafunc.definition.iter_markers(MARK) if mark.args]
    if not asked:
        return
    from upheld.errors import Problem

    try:
        rows = _session(metafunc.config).rows(asked)
    except Problem as problem:
        raise _sentence(f"upheld: {problem}") from None
    metafunc.parametrize(FIXTURE, rows, ids=[row.name for row in rows], indirect=True)


@pytest.fixture
def upheld_row(request: pytest.FixtureRequest) -> "RowResult":
    """Return the result of the test's row, which is judged now or was in this session."""
    if not hasattr(request, "param"):
        raise _sentence(
            f"upheld: {request.node.name} has no row; decorate a function, or a class that is no "
            "unittest.TestCase, with `guarantees` of `upheld.design(…)`."
        )
    from upheld.errors import Problem
    from upheld.testing.verdicts import demand_judged

    try:
        found = _session(request.config).judged(request.param)
    except Problem as problem:
        raise _sentence(f"upheld: {problem}") from None
    demand_judged(found)
    request.node.stash[FOUND] = found
    return found.result


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    """End a test by the verdict on its row; its body runs if that is upheld."""
    if found := item.stash.get(FOUND, None):
        from upheld.testing.verdicts import demand_upheld

        demand_upheld(found)


@pytest.hookimpl(wrapper=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None, None, None]:
    """End brokers and designs, and write the reports, before anything is summed up."""
    try:
        yield
    finally:
        if opened := session.config.stash.get(SESSION, None):
            opened.close()


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Say where the reports are, if there are any."""
    if opened := config.stash.get(SESSION, None):
        for folder in opened.folders:
            terminalreporter.write_line(f"upheld: report in {folder}")


def _session(config: pytest.Config) -> "Session":
    """Return the designs and rows of this session of pytest."""
    if SESSION not in config.stash:
        from upheld.testing.session import Session

        config.stash[SESSION] = Session(config.invocation_params.dir)
    return config.stash[SESSION]


def _sentence(said: str) -> BaseException:
    """Return a failure that is shown as a sentence, without a traceback."""
    return pytest.fail.Exception(said, pytrace=False)
