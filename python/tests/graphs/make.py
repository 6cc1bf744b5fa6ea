"""Writes the stored graphs of this folder: by hand, operator by operator, in the form of an exported program.

They follow what `torch.export` answers for two small decoders (a Llama of transformers with its rotary embeddings
and norms spelled out, and a GPT-2 with biases and learned positions); torch itself is not needed. Where torch is
installed, tests/test_torch.py exports real modules as well.
"""

from __future__ import annotations

import json
import pathlib
from typing import Any, Dict, List, Optional, Sequence

BATCH, SEQUENCE = 3, 67


class Writer:
    """Collects operators."""

    def __init__(self) -> None:
        self.nodes: List[Dict[str, Any]] = []
        self.values: Dict[str, Any] = {"ids": {"sizes": [{"as_int": BATCH}, {"as_int": SEQUENCE}]}}
        self.specs: List[Dict[str, Any]] = [{"user_input": {"arg": {"as_tensor": {"name": "ids"}}}}]
        self.path = ""
        self.count = 0

    def parameter(self, path: str, *sizes: int) -> str:
        name = "p_" + path.replace(".", "_")
        if name not in self.values:
            self.values[name] = {"sizes": [{"as_int": size} for size in sizes]}
            self.specs.append({"parameter": {"arg": {"name": name}, "parameter_name": path}})
        return name

    def op(self, target: str, inputs: Sequence[Any], sizes: Sequence[int], path: Optional[str] = None) -> str:
        self.count += 1
        name = f"{target.split('.')[0]}_{self.count}"
        path = self.path if path is None else path
        arguments = []
        for given in inputs:
            if isinstance(given, str):
                arguments.append({"as_tensor": {"name": given}})
            elif isinstance(given, (list, tuple)) and given and isinstance(given[0], str):
                arguments.append({"as_tensors": [{"name": one} for one in given]})
            elif isinstance(given, (list, tuple)):
                arguments.append({"as_ints": list(given)})
            elif isinstance(given, bool):
                arguments.append({"as_bool": given})
            else:
                arguments.append({"as_float": given} if isinstance(given, float) else {"as_int": given})
        self.nodes.append({
            "target": f"torch.ops.aten.{target}",
            "inputs": [{"name": "", "arg": argument} for argument in arguments],
            "outputs": [{"as_tensor": {"name": name}}],
            "metadata": {"nn_module_stack": f"L__self__,,Module;{path},{path},Module" if path else ""},
        })
        self.values[name] = {"sizes": [{"as_int": size} for size in sizes]}
        return name

    def linear(self, x: str, path: str, width_in: int, width_out: int, bias: bool = False) -> str:
        weights = [self.parameter(f"{path}.weight", width_out, width_in)]
        if bias:
            weights.append(self.parameter(f"{path}.bias", width_out))
        return self.op("linear.default", [x, *weights], (BATCH, SEQUENCE, width_out), path)

    def stored(self) -> Dict[str, Any]:
        graph = {"nodes": self.nodes, "tensor_values": self.values}
        return {"graph_module": {"graph": graph, "signature": {"input_specs": self.specs}}, "schema_version": {"major": 8, "minor": 7}}


def rms_norm(w: Writer, x: str, path: str, hidden: int) -> str:
    """The norm of Llama as transformers writes it."""
    size, row = (BATCH, SEQUENCE, hidden), (BATCH, SEQUENCE, 1)
    wide = w.op("to.dtype", [x, 6], size, path)
    mean = w.op("mean.dim", [w.op("pow.Tensor_Scalar", [wide, 2], size, path), [-1], True], row, path)
    inverse = w.op("rsqrt.default", [w.op("add.Tensor", [mean, 1e-5], row, path)], row, path)
    normed = w.op("to.dtype", [w.op("mul.Tensor", [wide, inverse], size, path), 5], size, path)
    return w.op("mul.Tensor", [w.parameter(f"{path}.weight", hidden), normed], size, path)


def rotated(w: Writer, x: str, cos: str, sin: str, heads: int, head: int, path: str) -> str:
    size, half = (BATCH, heads, SEQUENCE, head), (BATCH, heads, SEQUENCE, head // 2)
    first, second = (w.op("slice.Tensor", [x, 3, a, b], half, path) for a, b in ((0, head // 2), (head // 2, head)))
    turned = w.op("cat.default", [[w.op("neg.default", [second], half, path), first], -1], size, path)
    return w.op("add.Tensor", [w.op("mul.Tensor", [x, cos], size, path), w.op("mul.Tensor", [turned, sin], size, path)], size, path)


def llama(layers: int = 2, hidden: int = 256, heads: int = 8, kv_heads: int = 2, mlp: int = 704, vocabulary: int = 1024) -> Dict[str, Any]:
    w = Writer()
    head = hidden // heads
    table = w.parameter("model.embed_tokens.weight", vocabulary, hidden)
    x = w.op("embedding.default", [table, "ids"], (BATCH, SEQUENCE, hidden), "model.embed_tokens")
    angles = w.op("arange.default", [SEQUENCE], (SEQUENCE, head), "model.rotary_emb")
    cos, sin = (w.op(f"{name}.default", [angles], (1, 1, SEQUENCE, head), "model.rotary_emb") for name in ("cos", "sin"))
    for index in range(layers):
        at = f"model.layers.{index}"
        inside = f"{at}.self_attn"
        normed = rms_norm(w, x, f"{at}.input_layernorm", hidden)
        parts = []
        for name, count in (("q_proj", heads), ("k_proj", kv_heads), ("v_proj", kv_heads)):
            made = w.linear(normed, f"{inside}.{name}", hidden, count * head)
            viewed = w.op("view.default", [made, [BATCH, SEQUENCE, -1, head]], (BATCH, SEQUENCE, count, head), inside)
            parts.append(w.op("transpose.int", [viewed, 1, 2], (BATCH, count, SEQUENCE, head), inside))
        q, k = rotated(w, parts[0], cos, sin, heads, head, inside), rotated(w, parts[1], cos, sin, kv_heads, head, inside)
        many = (BATCH, heads, SEQUENCE, head)
        k, v = (w.op("reshape.default", [w.op("expand.default", [w.op("unsqueeze.default", [y, 2], (BATCH, kv_heads, 1, SEQUENCE, head), inside), [0]], (BATCH, kv_heads, heads // kv_heads, SEQUENCE, head), inside), [0]], many, inside) for y in (k, parts[2]))
        context = w.op("scaled_dot_product_attention.default", [q, k, v], many, inside)
        context = w.op("transpose.int", [context, 1, 2], (BATCH, SEQUENCE, heads, head), inside)
        context = w.op("reshape.default", [context, [BATCH, SEQUENCE, -1]], (BATCH, SEQUENCE, hidden), inside)
        x = w.op("add.Tensor", [x, w.linear(context, f"{inside}.o_proj", hidden, hidden)], (BATCH, SEQUENCE, hidden), at)
        normed = rms_norm(w, x, f"{at}.post_attention_layernorm", hidden)
        gate = w.op("silu.default", [w.linear(normed, f"{at}.mlp.gate_proj", hidden, mlp)], (BATCH, SEQUENCE, mlp), f"{at}.mlp.act_fn")
        both = w.op("mul.Tensor", [gate, w.linear(normed, f"{at}.mlp.up_proj", hidden, mlp)], (BATCH, SEQUENCE, mlp), f"{at}.mlp")
        x = w.op("add.Tensor", [x, w.linear(both, f"{at}.mlp.down_proj", mlp, hidden)], (BATCH, SEQUENCE, hidden), at)
    w.linear(rms_norm(w, x, "model.norm", hidden), "lm_head", hidden, vocabulary)
    return w.stored()


def gpt2(layers: int = 3, hidden: int = 192, heads: int = 6, vocabulary: int = 1024, strange: bool = False) -> Dict[str, Any]:
    w = Writer()
    head, size = hidden // heads, (BATCH, SEQUENCE, hidden)
    x = w.op("embedding.default", [w.parameter("wte.weight", vocabulary, hidden), "ids"], size, "wte")
    places = w.op("arange.default", [SEQUENCE], (SEQUENCE,), "")
    x = w.op("add.Tensor", [x, w.op("embedding.default", [w.parameter("wpe.weight", 512, hidden), places], (SEQUENCE, hidden), "wpe")], size, "")

    def norm(y: str, path: str) -> str:
        return w.op("layer_norm.default", [y, [hidden], w.parameter(f"{path}.weight", hidden), w.parameter(f"{path}.bias", hidden), 1e-5], size, path)

    for index in range(layers):
        at = f"h.{index}"
        fused = w.linear(norm(x, f"{at}.ln_1"), f"{at}.attn.c_attn", hidden, 3 * hidden, bias=True)
        parts = []
        for place in range(3):
            part = w.op("slice.Tensor", [fused, 2, place * hidden, (place + 1) * hidden], size, f"{at}.attn")
            viewed = w.op("view.default", [part, [0]], (BATCH, SEQUENCE, heads, head), f"{at}.attn")
            parts.append(w.op("transpose.int", [viewed, 1, 2], (BATCH, heads, SEQUENCE, head), f"{at}.attn"))
        context = w.op("scaled_dot_product_attention.default", parts, (BATCH, heads, SEQUENCE, head), f"{at}.attn")
        context = w.op("reshape.default", [w.op("transpose.int", [context, 1, 2], (BATCH, SEQUENCE, heads, head), f"{at}.attn"), [0]], size, f"{at}.attn")
        x = w.op("add.Tensor", [w.linear(context, f"{at}.attn.c_proj", hidden, hidden, bias=True), x], size, at)
        y = w.linear(norm(x, f"{at}.ln_2"), f"{at}.mlp.c_fc", hidden, 4 * hidden, bias=True)
        y = w.op("gelu.default", [y], (BATCH, SEQUENCE, 4 * hidden), f"{at}.mlp.act")
        if strange:
            y = w.op("erfinv.default", [y], (BATCH, SEQUENCE, 4 * hidden), f"{at}.mlp.strange")
        x = w.op("add.Tensor", [x, w.linear(y, f"{at}.mlp.c_proj", 4 * hidden, hidden, bias=True)], size, at)
    table = w.parameter("wte.weight", vocabulary, hidden)
    w.op("linear.default", [norm(x, "ln_f"), table], (BATCH, SEQUENCE, vocabulary), "lm_head")
    return w.stored()


if __name__ == "__main__":
    here = pathlib.Path(__file__).resolve().parent
    for name, graph in (("llama", llama()), ("gpt2", gpt2()), ("strange", gpt2(layers=1, strange=True))):
        (here / f"{name}.json").write_text(json.dumps(graph, separators=(",", ":")) + "\n", encoding="utf-8")
