"""The OpenAI dialect: what a request asks for, and the JSON of its answers.

A stream's chunk is text between two byte strings made once a request, because hundreds of streams share one
core.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engines.emulator import EMULATOR_VERSION
from engines.emulator.tokenizer import EmulatedTokenizer


class BadRequestError(Exception):
    """A request that gets an error answer; `status` is its HTTP status."""

    def __init__(self, message: str, *, status: int = 400, parameter: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.parameter = parameter


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A checked generation request."""

    chat: bool
    prompt: list[int]
    max_tokens: int
    stream: bool
    usage: bool
    """Whether a trailing usage chunk was asked for."""
    continuous_usage: bool
    """Whether every chunk is to carry usage."""
    token_ids: bool
    """Whether token ids were asked for."""
    seed: int | None
    salt: str | None


def parse(body: bytes, *, chat: bool, model: str, max_context: int, tokenizer: EmulatedTokenizer) -> Ask:
    """Check the JSON `body` of a completion or chat request.

    Raises:
        BadRequestError: with the status and the words of the error answer.
    """
    fields = _object(body)
    if fields.get("model", model) != model:
        message = f"The model `{fields['model']}` does not exist; this emulated engine serves `{model}`."
        raise BadRequestError(message, status=404, parameter="model")
    for name in ("n", "best_of"):
        if fields.get(name, 1) not in (1, None):
            message = f"The emulator answers once a request; {name} has to be 1."
            raise BadRequestError(message, parameter=name)
    prompt = _messages(fields, tokenizer) if chat else _prompt(fields, tokenizer)
    room = max_context - len(prompt)
    limit = fields.get("max_completion_tokens") or fields.get("max_tokens")
    if limit is None:
        limit = room if chat else min(16, room)
    if type(limit) is not int or (limit < 1 and room >= 1):
        message = f"max_tokens must be at least 1, got {limit!r}."
        raise BadRequestError(message, parameter="max_tokens")
    if limit > room or room < 1:
        message = (
            f"This model's maximum context length is {max_context} tokens. However, you requested {limit} "
            f"output tokens and your prompt contains {len(prompt)} input tokens."
        )
        raise BadRequestError(message, parameter="input_tokens")
    options = fields.get("stream_options") or {}
    if not isinstance(options, Mapping):
        message = "stream_options must be an object."
        raise BadRequestError(message, parameter="stream_options")
    seed, salt = fields.get("seed"), fields.get("cache_salt")
    if seed is not None and type(seed) is not int:
        message = "seed must be an integer."
        raise BadRequestError(message, parameter="seed")
    if salt is not None and (not isinstance(salt, str) or not salt):
        message = "cache_salt must be a non-empty string."
        raise BadRequestError(message, parameter="cache_salt")
    return Ask(
        chat=chat,
        prompt=prompt,
        max_tokens=limit,
        stream=bool(fields.get("stream")),
        usage=bool(options.get("include_usage")),
        continuous_usage=bool(options.get("continuous_usage_stats")),
        token_ids=bool(fields.get("return_token_ids")),
        seed=seed,
        salt=salt,
    )


def tokenize(body: bytes, tokenizer: EmulatedTokenizer) -> list[int]:
    """Return the token ids that a /tokenize request asks for."""
    fields = _object(body)
    return _messages(fields, tokenizer) if "messages" in fields else _prompt(fields, tokenizer)


def error_body(message: str, *, status: int, parameter: str | None = None) -> dict[str, Any]:
    """Return the JSON of an error answer."""
    kind = "NotFoundError" if status == 404 else "BadRequestError" if status < 500 else "InternalServerError"
    return {"error": {"message": message, "type": kind, "param": parameter, "code": status}}


def usage(prompt: int, completion: int, cached: int | None = None) -> dict[str, Any]:
    """Return a usage object, with the cached prompt tokens where they are known."""
    counts: dict[str, Any] = {
        "prompt_tokens": prompt,
        "total_tokens": prompt + completion,
        "completion_tokens": completion,
    }
    if cached is not None:
        counts["prompt_tokens_details"] = {"cached_tokens": cached}
    return counts


def speculation(accepted: Sequence[int], drafted: int, k: int) -> dict[str, Any]:
    """Return a request's account of its drafts in vLLM's form.

    Args:
        accepted: Draft tokens accepted in each verification step.
        drafted: Draft tokens of all of them.
        k: Longest draft.
    """
    steps, total = len(accepted), sum(accepted)
    counts = Counter(accepted)
    return {
        "speculative_decoding": {
            "mean_acceptance_length": 1 + total / steps if steps else None,
            "draft_acceptance_rate": total / drafted if drafted else None,
            "acceptance_histogram": [counts[length] for length in range(k + 1)],
            "num_spec_steps": steps,
            "num_accepted_draft_tokens": total,
            "num_draft_tokens": drafted,
            "num_spec_tokens": k,
        }
    }


class Answer:
    """The JSON of one request's answer, whole or in chunks."""

    def __init__(
        self, ask: Ask, *, request_id: str, model: str, created: int, tokenizer: EmulatedTokenizer
    ) -> None:
        self._ask = ask
        self._tokenizer = tokenizer
        kind = "chat.completion" if ask.chat else "text_completion"
        if ask.chat and ask.stream:
            kind = "chat.completion.chunk"
        self._head = {
            "id": request_id,
            "object": kind,
            "created": created,
            "model": model,
            "system_fingerprint": EMULATOR_VERSION,
        }
        self._opening = f'data: {json.dumps(self._head, separators=(",", ":"))[:-1]},"choices":[{{"index":0,'
        self._prompt = len(ask.prompt)
        self._usage = f',"usage":{{"prompt_tokens":{self._prompt},"total_tokens":'

    def first(self) -> bytes:
        """Return what comes before the first token: the role in a chat, nothing otherwise."""
        if not self._ask.chat:
            return b""
        role = '"delta":{"role":"assistant","content":""},"finish_reason":null'
        return f"{self._opening}{role}}}]{self._running_usage(0)}}}\n\n".encode()

    def chunk(self, tokens: list[int], completion: int, *, finished: bool) -> bytes:
        """Return one step's event: all its tokens in one chunk. Token texts need no escaping in JSON."""
        text = "".join(map(self._tokenizer.text, tokens))
        part = f'"delta":{{"content":"{text}"}}' if self._ask.chat else f'"text":"{text}","logprobs":null'
        reason = '"length"' if finished else "null"
        ids = f',"token_ids":{tokens}' if self._ask.token_ids else ""
        return (
            f'{self._opening}{part},"finish_reason":{reason}{ids}}}]{self._running_usage(completion)}}}\n\n'
        ).encode()

    def last(self, completion: int, cached: int, drafts: Mapping[str, Any] | None = None) -> bytes:
        """Return what comes after the last token: the usage chunk if asked for, and the end mark.

        `drafts` is the request's account of its drafts; None without a drafter.
        """
        trailing = b""
        if self._ask.usage:
            body = {**self._head, "choices": [], "usage": usage(self._prompt, completion, cached)}
            if drafts is not None:
                body["metrics"] = drafts
            trailing = b"data: " + json.dumps(body, separators=(",", ":")).encode() + b"\n\n"
        return trailing + b"data: [DONE]\n\n"

    def whole(self, tokens: list[int], cached: int) -> dict[str, Any]:
        """Return the answer of a request that does not stream."""
        text = "".join(map(self._tokenizer.text, tokens))
        choice: dict[str, Any] = {"index": 0, "finish_reason": "length"}
        if self._ask.chat:
            choice["message"] = {"role": "assistant", "content": text}
        else:
            choice |= {"text": text, "logprobs": None}
        if self._ask.token_ids:
            choice["token_ids"] = tokens
        return {**self._head, "choices": [choice], "usage": usage(self._prompt, len(tokens), cached)}

    def _running_usage(self, completion: int) -> str:
        if not self._ask.continuous_usage:
            return ""
        # By hand: this is most of a chunk's cost otherwise. A test holds it to `usage`.
        total = self._prompt + completion
        return f'{self._usage}{total},"completion_tokens":{completion}}}'


def _object(body: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(body)
    except ValueError as error:
        message = f"The body is not JSON: {error}"
        raise BadRequestError(message) from error
    if not isinstance(fields, dict):
        message = "The body must be a JSON object."
        raise BadRequestError(message)
    return fields


def _prompt(fields: dict[str, Any], tokenizer: EmulatedTokenizer) -> list[int]:
    prompt = fields.get("prompt")
    if isinstance(prompt, str):
        prompt = tokenizer.encode(prompt)
    if (
        not isinstance(prompt, list)
        or not prompt
        or not all(type(token) is int and token >= 0 for token in prompt)
    ):
        message = "prompt must be a non-empty text or a list of token ids; send one prompt a request."
        raise BadRequestError(message, parameter="prompt")
    return prompt


def _messages(fields: dict[str, Any], tokenizer: EmulatedTokenizer) -> list[int]:
    messages = fields.get("messages")
    if not isinstance(messages, list) or not messages:
        message = "messages must be a non-empty list."
        raise BadRequestError(message, parameter="messages")
    rendered: list[tuple[str, str]] = []
    for entry in messages:
        if not isinstance(entry, dict) or not isinstance(entry.get("role"), str):
            message = "Every message needs a role."
            raise BadRequestError(message, parameter="messages")
        rendered.append((entry["role"], _text(entry.get("content"))))
    return tokenizer.render(rendered)


def _text(content: Any) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content if isinstance(part, dict))
    message = "content must be a text or a list of parts."
    raise BadRequestError(message, parameter="messages")
