"""Runs inside the engine's environment: have vLLM's own parser read command lines, without an engine.

Standard input is a JSON list of argument lists (what follows the server's module); standard output a JSON
list with null for each line that vLLM takes, and else the reason. What vLLM's configuration makes of a line
follows from its words, so equal lines are read once.
"""

import contextlib
import functools
import io
import json
import os
import sys

from vllm.engine.arg_utils import AsyncEngineArgs
from vllm.entrypoints.launchers.cli_args import make_arg_parser, validate_parsed_serve_args
from vllm.usage.usage_lib import UsageContext
from vllm.utils.argparse_utils import FlexibleArgumentParser


@functools.cache
def parser() -> FlexibleArgumentParser:
    return make_arg_parser(FlexibleArgumentParser())


@functools.cache
def verdict(words: tuple[str, ...]) -> str | None:
    errors, variables = io.StringIO(), dict(os.environ)
    try:
        with contextlib.redirect_stderr(errors):
            args = parser().parse_args(list(words))
        validate_parsed_serve_args(args)
        AsyncEngineArgs.from_cli_args(args).create_engine_config(usage_context=UsageContext.OPENAI_API_SERVER)
    except SystemExit:
        return errors.getvalue().strip().splitlines()[-1]
    except Exception as error:  # noqa: BLE001 - whatever vLLM raises is its verdict
        return f"{type(error).__name__}: {error}"
    finally:
        # vLLM keeps what it resolves of a data-parallel line in variables, and would find it there again.
        os.environ.clear()
        os.environ.update(variables)
    return None


if __name__ == "__main__":
    lines = json.load(sys.stdin)
    with contextlib.redirect_stdout(sys.stderr):
        verdicts = [verdict(tuple(words)) for words in lines]
    json.dump(verdicts, sys.stdout)
