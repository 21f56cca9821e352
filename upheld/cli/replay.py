"""`upheld judge`: judge recorded histories again, with no broker."""

import argparse
import json
import sys

from upheld import garbage
from upheld.errors import ExitCode, UsageProblem
from upheld.judging.rejudge import judge
from upheld.programs.modelled import offer_all
from upheld.text import visible_data

WORST_FIRST = (  # as in a run
    ExitCode.VIOLATED,
    ExitCode.HARNESS_FAILED,
    ExitCode.USAGE,
    ExitCode.INCONCLUSIVE,
    ExitCode.NOTHING_JUDGED,
    ExitCode.UPHELD,
)


def judge_history(arguments: argparse.Namespace) -> int:
    """Judge each history, and return the exit code of the worst.

    A history that cannot be judged is refused in one sentence, and the others are judged.
    """
    garbage.look_seldom()
    if arguments.picture and len(arguments.history) > 1:
        raise UsageProblem(f"--picture draws one history, and here are {len(arguments.history)}")
    for file in arguments.model:
        offer_all(file)
    judgements = []
    codes = set[int]()
    for path in arguments.history:
        garbage.forget_ended()
        try:
            judgements.append(judge(path, arguments.picture, arguments.model))
        except UsageProblem as problem:
            codes.add(problem.exit_code)
            print(f"upheld: {str(problem).removesuffix('.')}.", file=sys.stderr, flush=True)
            continue
        is_shown = judgements[-1].exit_code or not arguments.quiet
        if is_shown and not arguments.json:
            print(judgements[-1].text, flush=True)
    if arguments.json:
        print(json.dumps([visible_data(j.model_dump(mode="json")) for j in judgements], indent=2))
    codes |= {judgement.exit_code for judgement in judgements}
    return next(code for code in WORST_FIRST if code in codes)
