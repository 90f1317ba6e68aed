"""What Hydra refuses, in our own words: which key or option, what was meant, and what to write instead.

Hydra's messages are made for the author of an application. The frequent ones are recognised and told anew;
any other one is shown as it is, in one paragraph.
"""

import re
from collections.abc import Callable, Iterator

from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from engines.nearest import did_you_mean
from orchestrator.known_keys import OPEN_MAPS, unknown_key

HINT = "`specload sweep --help` lists the groups, `specload sweep --cfg job` shows every key."
_NOISE = ("full_key:", "object_type=", "reference_type=", "Config search path", "provider=")
"""Lines of a Hydra message that say nothing to a user."""
_OPTIONS = "Available options"


def hydra_words(error: BaseException) -> str:
    """Return what an error of Hydra or OmegaConf says, as one paragraph."""
    chain = list(_chain(error))
    lines, options = _lines(chain)
    said = " ".join(lines)
    for pattern, told in _KNOWN:
        found = re.search(pattern, said)
        words = told(found, options, chain) if found else ""
        if words:
            return f"{words}. {HINT}"
    return f"{_as_it_is(lines, options)}{HINT}"


def _chain(error: BaseException) -> Iterator[BaseException]:
    while True:
        yield error
        if error.__cause__ is None:
            return
        error = error.__cause__


def _lines(chain: list[BaseException]) -> tuple[list[str], list[str]]:
    """Return the lines of all messages, each once, and apart from them the options that they list."""
    texts = dict.fromkeys(" ".join(line.split()) for each in chain for line in str(each).splitlines())
    lines: list[str] = []
    options: list[str] = []
    listed = False
    for line in texts:
        if not line or line.startswith(_NOISE):
            continue
        if line.startswith(_OPTIONS):
            listed = True
        elif listed:
            options.append(line)
        else:
            lines.append(line)
    return lines, options


def _as_it_is(lines: list[str], options: list[str]) -> str:
    said = "".join(f"{line.rstrip('.:;')}. " for line in lines)
    if "ListConfig" in said:
        said += "This key is a list: write it in brackets and quotes, as in 'key=[a,b]'. "
    return f"{said}{_OPTIONS}: {', '.join(options)}. " if options else said


_Words = Callable[[re.Match[str], list[str], list[BaseException]], str]


def _no_option(found: re.Match[str], options: list[str], chain: list[BaseException]) -> str:
    del chain
    group, name = found["group"], found["name"]
    return f"{group} has no option {name!r}{did_you_mean(name, options)}; options are {', '.join(options)}"


def _not_chosen_by_default(found: re.Match[str], options: list[str], chain: list[BaseException]) -> str:
    del options, chain
    return f"{found['group']} is added to the defaults: write +{found['group']}={found['name']}"


def _no_key(found: re.Match[str], options: list[str], chain: list[BaseException]) -> str:
    del options
    key = found["key"]
    in_map = [each for each in OPEN_MAPS if key.startswith(each)]
    if not in_map:
        return unknown_key(key)
    section = in_map[0].rstrip(".")
    name = key.removeprefix(in_map[0])
    added = found["word"] or f"{key}=VALUE"
    return (
        f"{section} has no {name} yet{did_you_mean(name, _present(chain))}; it is an open map, and a new "
        f"entry is written with a plus: +{added}"
    )


def _present(chain: list[BaseException]) -> list[str]:
    """Return the keys beside the one that OmegaConf did not find."""
    nodes = [each.parent_node for each in chain if isinstance(each, OmegaConfBaseException)]
    return [str(key) for node in nodes if isinstance(node, DictConfig) for key in node]


def _there_already(found: re.Match[str], options: list[str], chain: list[BaseException]) -> str:
    del options, chain
    return f"{found['key']} has a value already, so it takes no plus: write {found['word']}"


def _twice(found: re.Match[str], options: list[str], chain: list[BaseException]) -> str:
    del options, chain
    group, name = found["group"], found["name"]
    if group == "experiment":
        return "experiment is given twice, and a sweep has one"
    return f"{group} is chosen already, so it takes no plus: write {group}={name}"


def _nothing_to_delete(found: re.Match[str], options: list[str], chain: list[BaseException]) -> str:
    del options, chain
    return unknown_key(found["key"])


def _no_override(found: re.Match[str], options: list[str], chain: list[BaseException]) -> str:
    del options, chain
    return f"{found['word']!r} is no override: write KEY=VALUE, or GROUP=OPTION"


def _several(found: re.Match[str], options: list[str], chain: list[BaseException]) -> str:
    del options, chain
    key, values = found["key"], found["values"]
    return (
        f"{key}={values} has several values: add -m to have each of them swept, or write '{key}=[{values}]' "
        "where it is one value, a list"
    )


_KNOWN: tuple[tuple[str, _Words], ...] = (
    (r"Could not find '(?P<group>[\w/]+)/(?P<name>[^'/]*)'", _no_option),
    (r"No match in the defaults list.* use \+(?P<group>[\w/]+)=(?P<name>\S+)", _not_chosen_by_default),
    (r"Could not override '(?P<key>[^']+)'\.?(?: To append to your config use \+(?P<word>\S+))?", _no_key),
    (r"An item is already at '(?P<key>[^']+)'\.? Either remove \+ prefix: '(?P<word>[^']*)'", _there_already),
    (r"Multiple values for (?P<group>\w+)\..*'override \w+: (?P<name>[^']*)'", _twice),
    (r"Could not delete from config\.? '(?P<key>[^']+)' does not exist", _nothing_to_delete),
    (r"Error parsing override '(?P<word>[^'=]*)'\.? missing EQUAL", _no_override),
    (r"Ambiguous value for argument '(?P<key>[\w.@/]+)=(?P<values>[^']*)'", _several),
)
"""What a message of Hydra looks like -> our words for it; empty words where it is not that after all."""
