"""Cucumber's language service finds every sentence: an editor completes and jumps."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from upheld import steps
from upheld.lint import step_definitions
from upheld.spec import catalogue

FOLDER = os.environ.get("UPHELD_LANGUAGE_SERVICE", "")
SCRIPT = Path(__file__).parents[2] / "support" / "language_service.cjs"
NODE = shutil.which("node")
PARAMETER = re.compile(r"\{([^{}]+)\}")

pytestmark = [
    pytest.mark.skipif(not NODE, reason="there is no Node"),
    pytest.mark.skipif(
        not (Path(FOLDER) / "node_modules" / "@cucumber" / "language-service").is_dir(),
        reason="UPHELD_LANGUAGE_SERVICE names no folder with @cucumber/language-service",
    ),
]


@pytest.fixture(scope="module")
def lines() -> list[str]:
    """Return each line of each row once."""
    rows = (row for scenario in catalogue.load().scenarios for row in scenario.rows)
    return sorted({step.text for row in rows for step in row.steps})


@pytest.fixture(scope="module")
def found(lines: list[str]) -> Any:
    """Return what the language service finds in the steps."""
    files = {file.name: file.read_text() for file in Path(steps.__path__[0]).glob("*.py")}
    done = subprocess.run(
        [NODE or "", str(SCRIPT), FOLDER],
        input=json.dumps({"files": files, "lines": lines}),
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def templates() -> list[str]:
    """Return the template of each sentence."""
    return sorted({definition.parser.name for definition in step_definitions()})


def test_every_template_is_found(found: Any, templates: list[str]) -> None:
    """Each is found once, and nothing else is taken for one."""
    assert found["errors"] == []
    assert sorted(found["expressions"]) == templates


def test_every_parameter_type_is_found(found: Any, templates: list[str]) -> None:
    """No setting of an editor has to say what a parameter is."""
    used = {name for template in templates for name in PARAMETER.findall(template)}

    assert set(found["types"]) == used


def test_every_line_of_a_feature_is_one_sentence(found: Any, lines: list[str]) -> None:
    """An editor marks no line as undefined or ambiguous."""
    odd = {line: got for line, got in zip(lines, found["matches"], strict=True) if len(got) != 1}

    assert odd == {}
