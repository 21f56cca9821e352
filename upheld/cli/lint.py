"""`upheld lint`: whether the features could pass without having judged anything."""

import argparse
import json

from upheld.errors import ExitCode
from upheld.lint import lint


def lint_features(arguments: argparse.Namespace) -> int:
    """Print each finding; return 1 if there is any."""
    findings = lint()
    if arguments.json:
        print(json.dumps(findings, indent=2))
    elif findings:
        print("\n".join(findings))
    elif not arguments.quiet:
        print("the specification is sound")
    return ExitCode.VIOLATED if findings else ExitCode.UPHELD
