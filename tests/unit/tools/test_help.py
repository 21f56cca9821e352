"""Every script of ours says how it is called, and does nothing else then."""

import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SCRIPTS = sorted(
    path
    for folder in ("tools", "bench")
    for path in (ROOT / folder).glob("*.py")
    if 'if __name__ == "__main__"' in path.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: f"{path.parent.name}-{path.stem}")
@pytest.mark.parametrize(("argument", "code"), [("--help", 0), ("--there-is-no-such-option", 2)])
def test_a_script_is_asked_how_it_is_called(
    path: Path,
    argument: str,
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The usage comes for `--help` and for a wrong option, which is refused."""
    monkeypatch.setattr(sys, "argv", [str(path), argument])
    monkeypatch.setattr(sys, "path", [str(path.parent), *sys.path])

    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(path), run_name="__main__")

    said = capsys.readouterr()
    assert ended.value.code == code
    assert (said.out or said.err).startswith("usage: ")
