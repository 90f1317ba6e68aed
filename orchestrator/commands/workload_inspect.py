"""`specload workload inspect`: what is in workload files, as tables and a picture."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from rich.console import RenderableType
from rich.text import Text

from jobs.errors import WorkloadError
from jobs.workload.formats import FORMATS
from jobs.workload.guess import guess_format
from jobs.workload.policies import DROP, FITS, SCALE
from jobs.workload.tokenizer import FolderTokenizer, Tokenizer
from orchestrator.commands.as_json import add_json, print_json
from orchestrator.commands.parser import Parser
from orchestrator.errors import ConfigError
from orchestrator.sweep_folder import ROOT
from orchestrator.tables import console
from orchestrator.workload_look import Look, Replayed, look, replay
from orchestrator.workload_tables import look_tables, replay_tables

SUMMARY = "Print what is in the files of a workload, and draw it. Their format is told by their content."
FOLDER = ROOT / "workloads"
"""Where pictures go."""
_SUFFIXES = (".png", ".svg", ".pdf")
_EMULATED = "emulated tokenizer: about 4 characters a token"


def run(arguments: Sequence[str]) -> int:
    """Print and draw what the files hold."""
    options = _parse(arguments)
    if options.fit is not None and options.max_context is None:
        message = f"--fit {options.fit} needs the context to fit into: add --max-context N"
        raise ConfigError(message)
    files = [Path(path).expanduser() for path in options.files]
    _check(files)
    chosen = options.format or (guess_format(files) if files else "builtin")
    output = _picture(options.picture, files, chosen)
    tokenizer = _tokenizer(options.tokenizer)
    found = look(files, chosen, tokenizer, options.block_size)
    if found.is_text and options.fit == SCALE:
        message = (
            "--fit scale shrinks the lengths of a trace, and this is text; choose drop or truncate_oldest"
        )
        raise ConfigError(message)
    name = files[0].name if len(files) == 1 else f"{len(files)} files" if files else "brought along"
    how = "" if options.format or not files else ", told by its content"
    counted = "counted by the trace"
    if found.is_text:
        counted = f"tokenizer of {options.tokenizer}" if options.tokenizer else _EMULATED
    left = None if options.max_context is None else _replay(files, chosen, tokenizer, options)
    # Late: matplotlib takes a moment to load, and a wrong file should be told at once.
    from orchestrator.workload_plot import draw_workload  # noqa: PLC0415 - see above

    notes = [f"lengths: {counted}; content: {found.content}"]
    output.parent.mkdir(parents=True, exist_ok=True)
    draw_workload(found.inspection, output, title=f"{name} ({chosen})", notes=notes)
    if options.json:
        facts = {"format": chosen, "lengths": counted, "picture": output, "content": found}
        print_json(facts if left is None else {**facts, "replayed": left})
        return 0
    out = console()
    out.print(Text(f"{name} (format {chosen}{how})", style="bold"))
    out.print(Text(f"lengths: {counted}"))
    out.print(look_tables(found))
    if left is not None:
        out.print(Text())
        out.print(_replayed(left, found, options))
    out.print(Text(f"picture: {output}"))
    return 0


def _replay(
    files: Sequence[Path], chosen: str, tokenizer: Tokenizer, options: argparse.Namespace
) -> Replayed | str:
    """Return what a sweep would replay, or why it is nothing."""
    fit, context = options.fit or DROP, options.max_context
    try:
        return replay(files, chosen, tokenizer, options.block_size, max_context=context, fit=fit)
    except WorkloadError as error:  # an answer to what was asked, not a fault of the question
        return f"a sweep in a context of {context:,} tokens replays nothing: {error}"


def _replayed(left: Replayed | str, found: Look, options: argparse.Namespace) -> RenderableType:
    if isinstance(left, str):
        return Text(left)
    fit = options.fit or DROP
    return replay_tables(left, max_context=options.max_context, fit=fit, is_text=found.is_text)


def _check(files: Sequence[Path]) -> None:
    for file in files:
        if not file.is_file():
            what = "is a folder: name its files" if file.is_dir() else "does not exist"
            message = f"workload file {file} {what}"
            raise ConfigError(message)


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = Parser(prog="specload workload inspect", description=SUMMARY)
    parser.add_argument("files", nargs="*", metavar="FILE", help="files of one workload; none for `builtin`")
    parser.add_argument("--format", help=f"one of {', '.join(FORMATS)}; told by the content where not given")
    parser.add_argument(
        "--tokenizer",
        "--model",
        type=Path,
        metavar="FOLDER",
        help="model folder whose tokenizer and chat template count the tokens of text",
    )
    parser.add_argument(
        "--block-size", type=_positive, default=16, help="tokens of a cache block, for text (default 16)"
    )
    parser.add_argument(
        "--max-context", type=_positive, metavar="N", help="say what a sweep replays in a context of N"
    )
    parser.add_argument("--fit", choices=FITS, help="what happens to what is longer (default drop)")
    parser.add_argument(
        "--picture",
        type=Path,
        metavar="FILE",
        help=f"where the picture goes ({', '.join(_SUFFIXES)}; default {FOLDER}/NAME.png)",
    )
    add_json(parser)
    return parser.parse_args(arguments)


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        message = f"{text!r} is no whole number of 1 or more"
        raise argparse.ArgumentTypeError(message)
    return int(text)


def _picture(asked: Path | None, files: Sequence[Path], chosen: str) -> Path:
    """Return where the picture goes: to where results are kept, where nothing else was said."""
    if asked is None:
        return FOLDER / f"{files[0].stem if len(files) == 1 else chosen}.png"
    if asked.suffix.lower() not in _SUFFIXES:
        message = f"--picture is {asked}; a picture ends with {', '.join(_SUFFIXES)}"
        raise ConfigError(message)
    if not asked.absolute().parent.is_dir():
        message = f"--picture is {asked}, but the folder {asked.parent} does not exist"
        raise ConfigError(message)
    return asked


def _tokenizer(folder: Path | None) -> Tokenizer:
    if folder is None:
        # Not at the top: a model's own tokenizer needs nothing of the emulator.
        from engines.emulator.tokenizer import EmulatedTokenizer  # noqa: PLC0415 - see above

        return EmulatedTokenizer()
    if not (folder / "tokenizer.json").is_file():
        what = "has no tokenizer.json" if folder.is_dir() else "is no folder"
        message = f"--tokenizer {folder} {what}; name a model folder with tokenizer.json"
        raise ConfigError(message)
    return FolderTokenizer(folder)
