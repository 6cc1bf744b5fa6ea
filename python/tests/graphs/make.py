"""Exports the stored graphs of this folder anew: small decoders of transformers, as torch tells them.

    pip install "torch==2.6.0" "transformers==4.57.6" && python make.py

Nothing is computed and no weight is made; `parameters` beside each graph is what torch counts.
"""

from __future__ import annotations

import json
import pathlib

from phaze._torch import exported, hf_module

SIZES = {"num_hidden_layers": 2, "hidden_size": 256, "num_attention_heads": 8, "intermediate_size": 704, "vocab_size": 1024}


def main() -> None:
    import transformers

    here = pathlib.Path(__file__).resolve().parent
    shared = {**SIZES, "num_key_value_heads": 2}
    configs = {
        "llama": transformers.LlamaConfig(**shared),
        "qwen3": transformers.Qwen3Config(**shared, head_dim=32),
        "phi3": transformers.Phi3Config(**shared, pad_token_id=0),
        "gpt_neox": transformers.GPTNeoXConfig(**SIZES),
        "gpt2": transformers.GPT2Config(n_layer=2, n_embd=256, n_head=8, vocab_size=1024),
    }
    for name, config in configs.items():
        module = hf_module(config)
        graph = exported(module)
        (here / f"{name}.json").write_text(json.dumps(graph, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
