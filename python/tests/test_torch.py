"""Models from exported graphs: stored ones, and real ones where torch is installed."""

from __future__ import annotations

import json
import pathlib
from typing import Any, Dict

import phaze
import pytest
from phaze._torch import Unmappable, model_of

GRAPHS = pathlib.Path(__file__).resolve().parent / "graphs"


def stored(name: str) -> Dict[str, Any]:
    found: Dict[str, Any] = json.loads((GRAPHS / f"{name}.json").read_text())
    return found


def parameters(graph: Dict[str, Any]) -> int:
    """All parameters of a stored program, each once."""
    module = graph["graph_module"]
    total = 0
    for spec in module["signature"]["input_specs"]:
        if "parameter" in spec:
            size = 1
            for one in module["graph"]["tensor_values"][spec["parameter"]["arg"]["name"]]["sizes"]:
                size *= one["as_int"]
            total += size
    return total


def test_a_llama_is_mapped_to_the_last_parameter() -> None:
    graph = stored("llama")
    text, unmapped = model_of(graph, name="small", sequence=2048)
    model = phaze.Model("small", text, unmapped)
    assert unmapped == []
    assert model.parameters == parameters(graph)
    facts = phaze.inspect(model)
    assert (facts.layers, facts.heads, facts.kv_heads, facts.hidden_size) == (2, 8, 2, 256)
    # The same shape as a configuration: the same work in every matmul.
    config = {
        "model_type": "llama", "num_hidden_layers": 2, "hidden_size": 256, "num_attention_heads": 8,
        "num_key_value_heads": 2, "intermediate_size": 704, "vocab_size": 1024, "max_position_embeddings": 2048,
        "tie_word_embeddings": False, "hidden_act": "silu",
    }
    known = phaze.inspect(config)
    assert facts.flops_training_per_sequence == known.flops_training_per_sequence
    assert phaze.place(model, design="h100-sxm", devices=2, global_batch=64).check()


def test_what_cannot_be_mapped_is_said() -> None:
    graph = stored("gpt2")
    text, unmapped = model_of(graph, name="gpt2", sequence=512)
    assert unmapped == ["a second table of 512 x 192 at wpe is left out"]
    model = phaze.Model("gpt2", text, unmapped)
    assert model.unmapped == tuple(unmapped)
    assert model.parameters == parameters(graph) - 512 * 192
    text, unmapped = model_of(stored("strange"), name="strange", sequence=512)
    assert "erfinv at h.0.mlp.strange is left out: phaze has no such vector work" in unmapped


def test_what_cannot_be_left_out_is_refused() -> None:
    graph = stored("gpt2")
    nodes = graph["graph_module"]["graph"]["nodes"]
    graph["graph_module"]["graph"]["nodes"] = [n for n in nodes if "scaled_dot" not in n["target"]]
    with pytest.raises(Unmappable):
        model_of(graph, name="none", sequence=512)
    with pytest.raises(Unmappable, match="no embedding"):
        model_of({"graph_module": {"graph": {"nodes": [], "tensor_values": {}}, "signature": {"input_specs": []}}}, name="x", sequence=1)


def test_stored_graphs_are_what_their_script_writes() -> None:
    import importlib.util

    spec = importlib.util.spec_from_file_location("make", GRAPHS / "make.py")
    assert spec is not None and spec.loader is not None
    make = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make)
    assert stored("llama") == make.llama() and stored("gpt2") == make.gpt2()


def test_a_real_module_is_exported_on_the_meta_device() -> None:
    torch = pytest.importorskip("torch")

    class Block(torch.nn.Module):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.norm, self.second = torch.nn.LayerNorm(256), torch.nn.LayerNorm(256)
            self.qkv, self.out = torch.nn.Linear(256, 768), torch.nn.Linear(256, 256)
            self.up, self.down = torch.nn.Linear(256, 1024), torch.nn.Linear(1024, 256)

        def forward(self, x: Any) -> Any:
            q, k, v = (y.unflatten(-1, (8, 32)).transpose(1, 2) for y in self.qkv(self.norm(x)).chunk(3, -1))
            y = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).flatten(2))
            return x + self.down(torch.nn.functional.gelu(self.up(self.second(x))))

    class Decoder(torch.nn.Module):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.table = torch.nn.Embedding(512, 256)
            self.layers = torch.nn.ModuleList(Block() for _ in range(2))
            self.norm, self.head = torch.nn.LayerNorm(256), torch.nn.Linear(256, 512, bias=False)

        def forward(self, ids: Any) -> Any:
            x = self.table(ids)
            for layer in self.layers:
                x = layer(x)
            return self.head(self.norm(x))

    with torch.device("meta"):
        module = Decoder()
    model = phaze.Model.from_torch(module, name="own")
    assert model.parameters == sum(p.numel() for p in module.parameters())
