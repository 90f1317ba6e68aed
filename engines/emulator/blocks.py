"""KV blocks of one rank: who holds them, which prefix each one keeps, which goes first.

Block identity is a chain: the hash of a full block covers its tokens, all before them, and the request's
salt. A block that nobody holds keeps its content until it is needed, least recently used first.
"""

import hashlib
from array import array
from collections import OrderedDict
from collections.abc import Sequence


def chain(previous: bytes, tokens: Sequence[int]) -> bytes:
    """Return the hash of the block that holds `tokens` after the prefix `previous`."""
    return hashlib.sha256(previous + array("q", tokens).tobytes()).digest()


def root(salt: str | None) -> bytes:
    """Return the start of the chains of one salt: requests share blocks only within it."""
    return hashlib.sha256(f"salt:{salt}".encode()).digest() if salt else b""


class BlockPool:
    """A fixed number of KV blocks with reference counts and a prefix cache."""

    def __init__(self, blocks: int, *, caching: bool = True) -> None:
        self.total = blocks
        self._caching = caching
        self._fresh = 0
        self._references = [0] * blocks
        self._content: list[bytes | None] = [None] * blocks
        self._cached: dict[bytes, int] = {}
        self._idle: OrderedDict[int, None] = OrderedDict()

    @property
    def free(self) -> int:
        """Blocks that nobody holds."""
        return self.total - self._fresh + len(self._idle)

    @property
    def held(self) -> int:
        """Blocks in use by requests."""
        return self.total - self.free

    def match(self, hashes: Sequence[bytes]) -> list[int]:
        """Return the cached blocks of the longest known prefix of `hashes`, without taking them."""
        found: list[int] = []
        for block_hash in hashes:
            block = self._cached.get(block_hash)
            if block is None:
                break
            found.append(block)
        return found

    def idle_among(self, blocks: Sequence[int]) -> int:
        """Return how many of `blocks` nobody holds: taking them uses up free ones."""
        return sum(not self._references[block] for block in blocks)

    def take(self, blocks: Sequence[int]) -> None:
        """Hold cached `blocks` for one more request."""
        for block in blocks:
            if not self._references[block]:
                del self._idle[block]
            self._references[block] += 1

    def allocate(self, count: int) -> list[int]:
        """Return `count` empty blocks; the caller has checked `free`."""
        assert count <= self.free
        blocks: list[int] = []
        for _ in range(count):
            if self._fresh < self.total:
                block = self._fresh
                self._fresh += 1
            else:
                block, _ = self._idle.popitem(last=False)
                self._forget(block)
            self._references[block] = 1
            blocks.append(block)
        return blocks

    def keep(self, block: int, block_hash: bytes) -> None:
        """Remember what the full `block` holds, so that later requests can share it."""
        if self._caching and self._content[block] is None and block_hash not in self._cached:
            self._cached[block_hash] = block
            self._content[block] = block_hash

    def release(self, blocks: Sequence[int]) -> None:
        """Let one request's `blocks` go; the end of a prefix is reused before its beginning."""
        for block in reversed(blocks):
            self._references[block] -= 1
            if not self._references[block]:
                self._idle[block] = None
                if self._content[block] is None:
                    self._idle.move_to_end(block, last=False)

    def reset(self) -> bool:
        """Forget all cached prefixes; False, and nothing done, while requests hold blocks."""
        if self.held:
            return False
        self._cached.clear()
        self._content = [None] * self.total
        return True

    def _forget(self, block: int) -> None:
        content = self._content[block]
        if content is not None:
            del self._cached[content]
            self._content[block] = None
