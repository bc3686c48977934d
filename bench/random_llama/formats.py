"""The two forms of the model on disk: a Hugging Face directory and a GGUF file."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path

import gguf
import numpy as np

from bench.random_llama.recipe import (
    BOS,
    CONTEXT_TOKENS,
    EOS,
    NORM_EPSILON,
    PAD,
    ROPE_BASE,
    SPECIALS,
    Floats,
    Shape,
    Vocabulary,
)

CHAT_TEMPLATE = """\
{%- macro text(content) -%}
{%- if content is string -%}{{- content -}}
{%- elif content -%}{%- for part in content -%}{{- part.text -}}{%- endfor -%}
{%- endif -%}
{%- endmacro -%}
{%- if tools -%}
{{- '<|im_start|>system\\nThese functions can be called. A call is one line of JSON: ' -}}
{{- '{"name": the name, "parameters": an object with the arguments}.\\n' -}}
{%- for tool in tools -%}{{- tool | tojson -}}{{- '\\n' -}}{%- endfor -%}
{{- '<|im_end|>\\n' -}}
{%- endif -%}
{%- for message in messages -%}
{%- set role = 'ipython' if message.role == 'tool' else message.role -%}
{{- '<|im_start|>' + role + '\\n' -}}
{%- if message.tool_calls -%}
{%- set call = message.tool_calls[0].function -%}
{{- '{"name": "' + call.name + '", "parameters": ' -}}{{- call.arguments | tojson -}}{{- '}' -}}
{%- else -%}
{{- text(message.content) -}}
{%- endif -%}
{{- '<|im_end|>\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}
"""
"""Turns between markers, tool calls as `{"name": ..., "parameters": ...}`: the form that both engines recognise."""


def write_safetensors(path: Path, tensors: Mapping[str, Floats]) -> None:
    """The safetensors format: length of the header (u64), header in JSON, values (bf16: upper half of a float)."""
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    offset = 0
    for name, values in tensors.items():
        end = offset + 2 * values.size
        header[name] = {"dtype": "BF16", "shape": list(values.shape), "data_offsets": [offset, end]}
        offset = end
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(head)) + head)
        for values in tensors.values():
            file.write((values.view(np.uint32) >> 16).astype("<u2").tobytes())


def write_hf(path: Path, shape: Shape, vocab: Vocabulary, tensors: Mapping[str, Floats]) -> None:
    """A directory as `LlamaForCausalLM.from_pretrained` reads it."""
    path.mkdir(parents=True)
    write_safetensors(path / "model.safetensors", tensors)
    ends = {"bos_token_id": BOS, "eos_token_id": EOS, "pad_token_id": PAD}
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": len(vocab.tokens),
        "hidden_size": shape.hidden,
        "intermediate_size": shape.inner,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head_width,
        "max_position_embeddings": CONTEXT_TOKENS,
        "rms_norm_eps": NORM_EPSILON,
        "rope_theta": ROPE_BASE,
        "hidden_act": "silu",
        "tie_word_embeddings": False,
        "attention_bias": False,
        "mlp_bias": False,
        "torch_dtype": "bfloat16",
        **ends,
    }
    specials = [
        {"id": index, "content": token, "special": True, "single_word": False}
        | {"lstrip": False, "rstrip": False, "normalized": False}
        for index, token in enumerate(SPECIALS)
    ]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    tokenizer = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": specials,
        "normalizer": None,
        "pre_tokenizer": byte_level,
        "post_processor": None,
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "vocab": {token: index for index, token in enumerate(vocab.tokens)},
            "merges": [" ".join(pair) for pair in vocab.merges],
        },
    }
    tokenizer_config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": SPECIALS[BOS],
        "eos_token": SPECIALS[EOS],
        "pad_token": SPECIALS[PAD],
        "model_max_length": CONTEXT_TOKENS,
        "clean_up_tokenization_spaces": False,
        "chat_template": CHAT_TEMPLATE,
    }
    files = {
        "config.json": config,
        "generation_config.json": ends,
        "tokenizer.json": tokenizer,
        "tokenizer_config.json": tokenizer_config,
    }
    for name, content in files.items():
        (path / name).write_text(json.dumps(content, indent=1, ensure_ascii=False), encoding="utf-8")


_GGUF_NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def _for_gguf(name: str, values: Floats, shape: Shape) -> tuple[str, Floats]:
    """Name and values of one tensor as llama.cpp wants them.

    Its Llama rotates neighbouring pairs of a head, Hugging Face's rotates the first half against the second: the rows
    of Q and K change places accordingly.
    """
    bare = name.removesuffix(".weight")
    prefix = ""
    if bare.startswith("model.layers."):
        _, _, index, bare = bare.split(".", 3)
        prefix = f"blk.{index}."
    if bare.endswith(("q_proj", "k_proj")):
        halves = values.reshape(-1, 2, shape.head_width // 2, shape.hidden)
        values = np.ascontiguousarray(halves.swapaxes(1, 2)).reshape(values.shape)
    return f"{prefix}{_GGUF_NAMES[bare]}.weight", values


def write_gguf(path: Path, name: str, shape: Shape, vocab: Vocabulary, tensors: Mapping[str, Floats]) -> None:
    """One GGUF file: matrices in f16, norms in f32."""
    out = gguf.GGUFWriter(str(path), "llama")
    out.add_name(name)
    out.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    out.add_context_length(CONTEXT_TOKENS)
    out.add_embedding_length(shape.hidden)
    out.add_block_count(shape.layers)
    out.add_feed_forward_length(shape.inner)
    out.add_head_count(shape.heads)
    out.add_head_count_kv(shape.kv_heads)
    out.add_layer_norm_rms_eps(NORM_EPSILON)
    out.add_rope_freq_base(ROPE_BASE)
    out.add_rope_dimension_count(shape.head_width)
    out.add_vocab_size(len(vocab.tokens))
    out.add_tokenizer_model("gpt2")
    out.add_tokenizer_pre("gpt-2")
    out.add_token_list(list(vocab.tokens))
    control, normal = gguf.TokenType.CONTROL, gguf.TokenType.NORMAL
    out.add_token_types([control if index < len(SPECIALS) else normal for index in range(len(vocab.tokens))])
    out.add_token_merges([" ".join(pair) for pair in vocab.merges])
    out.add_bos_token_id(BOS)
    out.add_eos_token_id(EOS)
    out.add_pad_token_id(PAD)
    out.add_add_bos_token(False)
    out.add_chat_template(CHAT_TEMPLATE)
    for hf_name, values in tensors.items():
        gguf_name, rows = _for_gguf(hf_name, values, shape)
        out.add_tensor(gguf_name, rows.astype(np.float16) if rows.ndim == 2 else rows)
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()
