"""Token ids of sentences, with a prompt around them if there is one."""

from collections.abc import Sequence
from typing import cast

from transformers import PreTrainedTokenizerBase

from mtdlab.errors import MtdlabError
from mtdlab.settings.representation import MASK, SENTENCE, Representation

TokenIds = list[list[int]]


def token_ids(
    tokenizer: PreTrainedTokenizerBase, sentences: Sequence[str], max_length: int, prompt: str = ""
) -> TokenIds:
    """Token ids of each sentence, special tokens included, at most `max_length` of them.

    A sentence that is too long loses tokens at its end, never the prompt around it. Raises
    MtdlabError if the prompt alone is longer. A sentence without any token, as a decoder's
    tokenizer makes of an empty one, is an end token.
    """
    if not sentences:
        return []
    if not prompt:
        has_end = tokenizer.eos_token_id is not None
        end = int(tokenizer.eos_token_id if has_end else tokenizer.pad_token_id)
        return [ids or [end] for ids in _encode(tokenizer, sentences, max_length)]
    before, after = _fill_prompt(tokenizer, prompt).split(SENTENCE)
    tail = _tail_length(tokenizer, after)
    if (needed := len(_encode(tokenizer, [before + after])[0])) >= max_length:
        raise MtdlabError(
            f"prompt {prompt!r} has {needed} tokens, but at most {max_length} are allowed with the "
            "sentence; raise max_length or shorten the prompt"
        )
    whole = _encode(tokenizer, [before + sentence + after for sentence in sentences])
    return [
        ids if len(ids) <= max_length else [*ids[: max_length - tail], *ids[-tail:]]
        for ids in whole
    ]


def check_prompt(tokenizer: PreTrainedTokenizerBase, representation: Representation) -> None:
    """Raise MtdlabError if positions in a sentence's tokens do not follow from the prompt.

    The pooling `mask` reads a fixed number of tokens before the end, so that it needs no token ids:
    each word after {mask} must be one token. A prompt around segments is found in the same way:
    each word of it must be one token.
    """
    prompt = representation.prompt
    if prompt and representation.segment_length:
        before, after = _fill_prompt(tokenizer, prompt).split(SENTENCE)
        [ids] = _encode(tokenizer, [before])
        expected = representation.tokens_before, representation.tokens_after()
        if (len(ids) - 1, _tail_length(tokenizer, after)) != expected:
            raise MtdlabError(
                f"prompt {prompt!r} with segment_length: each word must be a single token of the "
                "encoder's vocabulary, and words are separated by spaces"
            )
    if representation.pooling != "mask":
        return
    if tokenizer.mask_token_id is None:
        raise MtdlabError("pooling mask: the encoder's tokenizer has no mask token; choose another")
    [ids] = _encode(tokenizer, [_fill_prompt(tokenizer, prompt)])
    after_mask = representation.tokens_after(MASK)
    if len(ids) <= after_mask or ids[-1 - after_mask] != tokenizer.mask_token_id:
        raise MtdlabError(
            f"prompt {prompt!r}: each word after {MASK} must be a single token of the "
            "encoder's vocabulary, and words are separated by spaces"
        )


def _fill_prompt(tokenizer: PreTrainedTokenizerBase, prompt: str) -> str:
    return prompt.replace(MASK, str(tokenizer.mask_token))


def _tail_length(tokenizer: PreTrainedTokenizerBase, after: str) -> int:
    """The number of tokens after the sentence: the prompt's end, and special tokens."""
    alone = _encode(tokenizer, [after])[0]
    starts = ([tokenizer.cls_token_id], [tokenizer.bos_token_id])
    return len(alone) - int(alone[:1] in starts)


def _encode(
    tokenizer: PreTrainedTokenizerBase, texts: Sequence[str], max_length: int | None = None
) -> TokenIds:
    encoded = tokenizer(
        list(texts),
        truncation=max_length is not None,
        max_length=max_length,
        return_token_type_ids=False,
        return_attention_mask=False,
        # what is too long is cut, here or by the caller
        verbose=False,
    )
    return cast("TokenIds", encoded["input_ids"])
