"""One request inside the emulated engine."""

from dataclasses import dataclass, field

from engines.emulator.blocks import chain, root
from engines.emulator.draws import mix
from engines.emulator.tokenizer import VOCABULARY


@dataclass(slots=True, kw_only=True, eq=False)
class Request:
    """A request's tokens and state. It belongs to one rank from its arrival to its end."""

    id: str
    prompt: list[int]
    max_tokens: int
    """Tokens it generates: the emulated model never ends by itself."""
    key: int
    """64-bit key of its draws (`draws.combine` of the engine's and the request's seed)."""
    arrived: float
    """Seconds on the engine's clock."""
    salt: str | None = None
    computed: int = 0
    """Tokens whose KV is written."""
    blocks: list[int] = field(default_factory=list)
    kept: int = 0
    """Leading blocks of it that were offered to the prefix cache."""
    cached: int | None = None
    """Prompt tokens found in the prefix cache at its first admission; None before it."""
    last_output: float | None = None
    """When its latest tokens came out; None before the first."""
    generated: int = 0
    accepted: list[int] = field(default_factory=list)
    """Drafts accepted in each of its verification steps."""
    drafted: int = 0
    """Draft tokens that they verified."""
    finished: bool = False
    _tokens: list[int] = field(default_factory=list)
    _hashes: list[bytes] = field(default_factory=list)
    _root: bytes = b""

    def __post_init__(self) -> None:
        self._tokens = list(self.prompt)
        self._root = root(self.salt)

    @property
    def length(self) -> int:
        """Prompt and generated tokens so far."""
        return len(self._tokens)

    @property
    def prefilling(self) -> bool:
        """Whether more than the newest token still has to be computed."""
        return self.computed < len(self._tokens) - 1 or self.generated == 0

    def hashes(self, blocks: int, block_size: int) -> list[bytes]:
        """Return the chained hashes of the first `blocks` full blocks."""
        while len(self._hashes) < blocks:
            index = len(self._hashes)
            previous = self._hashes[-1] if self._hashes else self._root
            self._hashes.append(chain(previous, self._tokens[index * block_size : (index + 1) * block_size]))
        return self._hashes[:blocks]

    def emit(self, count: int, now: float) -> list[int]:
        """Append `count` generated tokens at time `now` and return them."""
        new = [mix(self.key + self.generated + step) % VOCABULARY for step in range(count)]
        self._tokens += new
        self.generated += count
        self.last_output = now
        return new
