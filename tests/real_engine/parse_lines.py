"""Runs inside the engine's environment: have vLLM's own parser read command lines, without an engine.

Standard input is a JSON list of [argument list, whole]; an argument list is what follows the server's module.
Standard output is a JSON list with null for each line that vLLM takes, and else the reason. A `whole` line is
also made into vLLM's configuration, as at a start, which takes some fifty milliseconds.
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


def verdict(words: list[str], whole: bool) -> str | None:
    errors, variables = io.StringIO(), dict(os.environ)
    try:
        with contextlib.redirect_stderr(errors):
            args = parser().parse_args(words)
        validate_parsed_serve_args(args)
        args.model = args.model_tag or args.model  # as `vllm serve` does
        engine = AsyncEngineArgs.from_cli_args(args)
        if whole:
            engine.create_engine_config(usage_context=UsageContext.OPENAI_API_SERVER)
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
        verdicts = [verdict(words, whole) for words, whole in lines]
    json.dump(verdicts, sys.stdout)
