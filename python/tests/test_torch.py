"""Models from exported graphs: stored ones of torch 2.6 and transformers 4.57, and real ones where torch is installed."""

from __future__ import annotations

import json
import pathlib
import sys
from typing import Any, Dict

import phaze
import pytest
from phaze._torch import Unmappable, model_of

GRAPHS = pathlib.Path(__file__).resolve().parent / "graphs"

#: The stored graphs; nothing of them is left out.
STORED = ("llama", "gpt_neox", "qwen3", "gpt2", "phi3")


def stored(name: str) -> Dict[str, Any]:
    found: Dict[str, Any] = json.loads((GRAPHS / f"{name}.json").read_text())
    return found


def test_what_only_looks_is_passed_over() -> None:
    graph = stored("llama")
    expected = model_of(graph, name="llama", sequence=2048)
    nodes = graph["graph_module"]["graph"]["nodes"]
    first = next(node["outputs"][0]["as_tensor"]["name"] for node in nodes if "as_tensor" in node["outputs"][0])
    looks = {"target": "torch.ops.aten._assert_tensor_metadata.default", "outputs": [{"as_tensor": {"name": "looked"}}], "metadata": {}}
    nodes.append({**looks, "inputs": [{"name": "a", "arg": {"as_tensor": {"name": first}}}]})
    assert model_of(graph, name="llama", sequence=2048) == expected


@pytest.mark.parametrize("name", STORED)
def test_a_stored_graph_is_mapped_to_the_last_parameter(name: str) -> None:
    graph = stored(name)
    text, unmapped = model_of(graph, name=name, sequence=2048)
    model = phaze.Model(name, text, unmapped)
    assert model.unmapped == () and model.parameters == graph["parameters"]
    assert phaze.place(model, design="h100-sxm", devices=2, global_batch=64).check()


def test_a_mapped_graph_is_the_model_of_its_configuration() -> None:
    text, _ = model_of(stored("llama"), name="small", sequence=2048)
    facts = phaze.inspect(phaze.Model("small", text))
    assert (facts.layers, facts.heads, facts.kv_heads, facts.hidden_size, facts.mlp_size) == (2, 8, 2, 256, 704)
    config = {
        "model_type": "llama", "num_hidden_layers": 2, "hidden_size": 256, "num_attention_heads": 8,
        "num_key_value_heads": 2, "intermediate_size": 704, "vocab_size": 1024, "max_position_embeddings": 2048,
        "tie_word_embeddings": False, "hidden_act": "silu",
    }
    known = phaze.inspect(config)
    assert facts.flops_training_per_sequence == known.flops_training_per_sequence
    assert facts.parameters == known.parameters


def test_norms_of_queries_and_keys_are_those_of_the_configuration() -> None:
    text, _ = model_of(stored("qwen3"), name="small", sequence=2048)
    facts = phaze.inspect(phaze.Model("small", text))
    config = {
        "model_type": "qwen3", "num_hidden_layers": 2, "hidden_size": 256, "num_attention_heads": 8, "head_dim": 32,
        "num_key_value_heads": 2, "intermediate_size": 704, "vocab_size": 1024, "max_position_embeddings": 2048,
        "tie_word_embeddings": False, "hidden_act": "silu",
    }
    known = phaze.inspect(config)
    assert facts.parameters == known.parameters
    assert facts.flops_training_per_sequence == known.flops_training_per_sequence


def test_a_table_of_positions_ends_sequences() -> None:
    text, _ = model_of(stored("gpt2"), name="small", sequence=4096)
    assert json.loads(text)["numbers"]["positions"] == json.loads(text)["numbers"]["max_sequence"] == 1024


@pytest.mark.parametrize("name", ["mixtral-8x7b", "gemma3-27b", "t5-11b", "vit-large", "deepseek-v3"])
def test_experts_windows_and_encoders_come_by_their_configuration(name: str) -> None:
    config = json.loads((GRAPHS.parents[2] / f"inputs/models/{name}.json").read_text())
    assert phaze.Model.from_hf(config, name=name).parameters == phaze.inspect(name).parameters


def test_a_family_that_nobody_knows_is_refused_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ValueError, match="nobody"):
        phaze.Model.from_hf({"model_type": "nobody"})


def changed(name: str, old: str, new: str) -> Dict[str, Any]:
    found: Dict[str, Any] = json.loads((GRAPHS / f"{name}.json").read_text().replace(old, new))
    return found


def test_what_phaze_does_not_know_is_left_out_and_said() -> None:
    _, unmapped = model_of(changed("llama", "aten.silu.default", "aten.erfinv.default"), name="x", sequence=512)
    assert unmapped == [f"erfinv at model.model.layers.{i}.mlp.act_fn is left out: phaze has no such vector work" for i in (0, 1)]


def test_what_cannot_be_left_out_is_refused() -> None:
    with pytest.raises(Unmappable):
        model_of(changed("llama", "aten.scaled_dot_product_attention", "aten.other"), name="x", sequence=512)
    with pytest.raises(Unmappable, match="no embedding"):
        model_of(changed("llama", "aten.embedding", "aten.other"), name="x", sequence=512)
    with pytest.raises(Unmappable, match="chooses among tokens or experts"):
        model_of(changed("llama", "aten.silu.default", "aten.topk.default"), name="x", sequence=512)
    with pytest.raises(Unmappable, match="no list of layers"):
        model_of(changed("llama", "layers.", "layer"), name="x", sequence=512)


def test_real_modules_are_exported_without_weights() -> None:
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
    count = sum(parameter.numel() for parameter in module.parameters())
    assert phaze.Model.from_torch(module, name="own").parameters == count
    ids = torch.zeros((1, 8), dtype=torch.long)
    assert phaze.Model.from_torch(Decoder(), (ids,), name="own").parameters == count


def test_real_models_of_transformers_are_exported() -> None:
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("torch")
    from phaze._torch import hf_module

    config = transformers.LlamaConfig(num_hidden_layers=2, hidden_size=256, num_attention_heads=8, intermediate_size=704, vocab_size=1024)
    module = hf_module(config)
    model = phaze.Model.from_torch(module, name="llama")
    assert model.parameters == sum(parameter.numel() for parameter in module.parameters())
    assert phaze.Model.from_hf(config).parameters == model.parameters and model.unmapped == ()
    shared = dict(num_hidden_layers=2, hidden_size=256, num_attention_heads=8, intermediate_size=704, vocab_size=1024)
    # Its head is its table, also where it is exported elsewhere than on the meta device.
    tied = transformers.Starcoder2Config(**shared, num_key_value_heads=2)
    model = phaze.Model.from_torch(hf_module(tied), name="starcoder2")
    assert model.unmapped == () and model.parameters == sum(weight.numel() for weight in hf_module(tied).parameters())
    # Queries, keys and values of one projection, and a gate beside what it lets through.
    joined = transformers.Phi3Config(**shared, num_key_value_heads=2, pad_token_id=0)
    model = phaze.Model.from_torch(hf_module(joined), name="phi3")
    assert model.unmapped == () and phaze.inspect(model).mlp_size == 704
    assert phaze.place(model, design="h100-sxm", devices=2, global_batch=64).check()
    left_out = phaze.Model.from_torch(hf_module(transformers.Olmo2Config(**shared)), name="olmo2")
    assert any("the module has" in sentence for sentence in left_out.unmapped)
    with pytest.raises(ValueError, match="give the configuration to Model.from_hf"):
        phaze.Model.from_torch(hf_module(transformers.MixtralConfig(**shared, num_local_experts=4)), name="mixtral")
