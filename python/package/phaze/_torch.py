"""From a decoder as `torch.export` tells it to a phaze-model.

A program is read in the form in which torch stores exported programs (`graph_module.graph.nodes` with `target`,
`inputs`, `outputs`; `tensor_values` with sizes; `signature.input_specs` with the names of parameters), so that a
graph that was stored can be read without torch. Sizes of the probe, batch and sequence, are primes that no weight
has; every other dimension is known by the weight that it comes from.
"""

from __future__ import annotations

import json
import re
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple, Union

from . import _phaze

#: Sizes of the probe: primes that no weight has.
PROBE_BATCH, PROBE_SEQUENCE = 3, 67

#: Operators that move or rename numbers and compute none.
_SHAPES = {
    "view", "reshape", "_unsafe_view", "transpose", "permute", "contiguous", "expand", "unsqueeze", "squeeze", "clone",
    "slice", "to", "_to_copy", "alias", "detach", "type_as", "flatten", "unflatten", "getitem", "repeat_interleave",
    "lift_fresh_copy", "select", "split", "chunk", "split_with_sizes", "unbind", "float", "dropout",
}

#: Of these, those that take a tensor apart.
_PARTS = ("chunk", "split", "split_with_sizes")

#: Operators that look whether what was exported is what is run, and compute nothing.
_LOOKS = ("_assert", "_guards", "sym_constrain_range")

#: Operators by which mixtures of experts choose.
_ROUTES = {"topk", "sort", "one_hot", "scatter", "index_add", "nonzero", "bincount"}

#: Vector work of one tensor, by torch's names and ours.
_ALONE = {"silu": "silu", "gelu": "gelu", "relu": "relu", "tanh": "tanh", "sigmoid": "sigmoid"}

Dim = Union[str, Dict[str, int]]


class Node(NamedTuple):
    """One operator of an exported graph."""

    op: str
    name: str
    tensors: Tuple[str, ...]
    numbers: Tuple[Any, ...]
    path: str


class Unmappable(ValueError):
    """What of a module cannot be said in a phaze-model."""


def exported(module: Any, example_inputs: Optional[Sequence[Any]] = None) -> Dict[str, Any]:
    """The graph of a module of torch in stored form; nothing is computed, no weight is made.

    Of example inputs, tensors of batch x sequence are replaced by the probe's sizes.
    """
    try:
        import torch  # type: ignore[import-not-found,unused-ignore]
    except ImportError as missing:
        raise ImportError(f"models of torch need torch, which is not installed here ({missing}): pip install torch") from missing
    if not isinstance(module, torch.nn.Module):
        raise ValueError(f"{module!r} is no module of torch; give a torch.nn.Module")

    def probe(device: str, value: Any = None) -> Any:
        if value is not None and not isinstance(value, torch.Tensor):
            return value
        if value is not None and value.dim() != 2:
            return torch.empty_like(value, device=device)
        kind = torch.long if value is None else value.dtype
        return torch.zeros((PROBE_BATCH, PROBE_SEQUENCE), dtype=kind, device=device)

    def program_on(device: str) -> Any:
        given = [None] if example_inputs is None else example_inputs
        inputs = tuple(probe(device, value) for value in given)
        return torch.export.export(module.to_empty(device=device).eval(), inputs, strict=False)

    # Which weights are one and the same is lost when a module moves to another device.
    first: Dict[int, str] = {}
    same = {name: first.setdefault(id(weight), name) for name, weight in module.named_parameters(remove_duplicate=False)}
    count = sum(weight.numel() for weight in module.parameters())
    module = module.to("meta")
    try:
        try:
            program = program_on("meta")
        except (RuntimeError, NotImplementedError):
            # Some modules ask their device for what the meta device has not: tensors without numbers that say
            # they are elsewhere do.
            from torch._subclasses.fake_tensor import FakeTensorMode  # type: ignore[import-not-found,unused-ignore]

            with FakeTensorMode(allow_non_fake_inputs=True):
                program = program_on("cpu")
    except Exception as reason:
        said = str(reason).strip().splitlines() or [type(reason).__name__]
        raise Unmappable(
            f"torch.export cannot tell the graph of {type(module).__name__}: {said[0]}; where a module chooses by its numbers, as "
            "mixtures of experts do, give the configuration to Model.from_hf, or write the layers (docs/model-file.md)"
        ) from reason
    nodes, values = [], {}
    for node in program.graph.nodes:
        value = node.meta.get("val")
        if hasattr(value, "shape"):
            values[node.name] = {"sizes": [{"as_int": int(size)} for size in value.shape]}
        if node.op != "call_function":
            continue
        stack = node.meta.get("nn_module_stack") or {}
        entries = (f"{key},{entry[0]},{entry[1]}" for key, entry in stack.items())
        arguments = [*node.args, *node.kwargs.values()]
        nodes.append({
            "target": f"torch.ops.{node.target}",
            "inputs": [{"name": "", "arg": _argument(argument)} for argument in arguments],
            "outputs": [{"as_tensor": {"name": node.name}}],
            "metadata": {"nn_module_stack": ";".join(entries)},
        })
    specs = [
        {"parameter": {"arg": {"name": spec.arg.name}, "parameter_name": same.get(spec.target, spec.target)}}
        for spec in program.graph_signature.input_specs
        if spec.kind.name == "PARAMETER"
    ]
    graph = {"nodes": nodes, "tensor_values": values}
    return {"graph_module": {"graph": graph, "signature": {"input_specs": specs}}, "parameters": count}


def hf_module(config: Any) -> Any:
    """The decoder that transformers makes of a configuration, on the meta device, as a module of ids alone."""
    import torch
    from transformers import AutoModelForCausalLM  # type: ignore[import-not-found,import-untyped,unused-ignore]

    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config, attn_implementation="sdpa")

    class Decoder(torch.nn.Module):  # type: ignore[misc,name-defined,unused-ignore]
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, ids: Any) -> Any:
            # A mask that is given is not made: making it asks for more than can be exported everywhere.
            batch, sequence = ids.shape
            mask = torch.zeros((batch, 1, sequence, sequence), device=ids.device)
            return self.model(input_ids=ids, attention_mask=mask, use_cache=False).logits

    return Decoder()


def _argument(value: Any) -> Dict[str, Any]:
    if hasattr(value, "meta") and hasattr(value, "name"):
        return {"as_tensor": {"name": value.name}}
    if isinstance(value, (list, tuple)) and value and all(hasattr(item, "meta") for item in value):
        return {"as_tensors": [{"name": item.name} for item in value]}
    if isinstance(value, bool):
        return {"as_bool": value}
    if isinstance(value, int):
        return {"as_int": value}
    if isinstance(value, float):
        return {"as_float": value}
    if isinstance(value, (list, tuple)):
        return {"as_ints": [int(item) for item in value if isinstance(item, int)]}
    return {"as_none": True}


class _Program:
    """An exported program, taken apart."""

    def __init__(self, stored: Dict[str, Any]) -> None:
        graph = stored["graph_module"]["graph"]
        self.sizes: Dict[str, Tuple[int, ...]] = {
            name: tuple(int(size["as_int"]) for size in value["sizes"] if "as_int" in size)
            for name, value in graph["tensor_values"].items()
        }
        self.parameters: Dict[str, str] = {}
        for spec in stored["graph_module"]["signature"]["input_specs"]:
            if "parameter" in spec:
                self.parameters[spec["parameter"]["arg"]["name"]] = spec["parameter"]["parameter_name"]
        self.nodes = [node for raw in graph["nodes"] for node in self._nodes(raw)]
        self.made_by = {node.name: node for node in self.nodes}
        self.users: Dict[str, List[Node]] = {}
        for node in self.nodes:
            for tensor in node.tensors:
                self.users.setdefault(tensor, []).append(node)

    def _nodes(self, raw: Dict[str, Any]) -> Iterable[Node]:
        parts = raw["target"].replace("torch.ops.", "").split(".")
        op = parts[1] if parts[0] == "aten" and len(parts) > 1 else parts[-1].strip("<>").split(" ")[-1]
        if op.startswith(_LOOKS):
            return
        tensors: List[str] = []
        numbers: List[Any] = []
        for given in raw["inputs"]:
            argument = given["arg"]
            if "as_tensor" in argument:
                tensors.append(argument["as_tensor"]["name"])
            elif "as_tensors" in argument:
                tensors.extend(item["name"] for item in argument["as_tensors"])
            elif not argument.get("as_none"):
                numbers.append(next(iter(argument.values())))
        stack = str(raw.get("metadata", {}).get("nn_module_stack", ""))
        last = stack.split(";")[-1].split(",") if stack else []
        path = last[1] if len(last) > 1 else ""
        for output in raw["outputs"]:
            names = [output["as_tensor"]] if "as_tensor" in output else output.get("as_tensors", [])
            for item in names:
                yield Node(op, item["name"], tuple(tensors), tuple(numbers), path)

    def size(self, name: str) -> Tuple[int, ...]:
        return self.sizes.get(name, ())

    def back(self, name: str, stop: str) -> Tuple[Optional[Node], List[Node]]:
        """The first operator `stop` behind a tensor, through everything that is not a projection."""
        passed: List[Node] = []
        waiting = [name]
        while waiting:
            node = self.made_by.get(waiting.pop(0))
            if node is None or node in passed:
                continue
            if node.op in (stop, "addmm", "mm"):
                return node, passed
            passed.append(node)
            waiting.extend(tensor for tensor in node.tensors if tensor not in self.parameters)
        return None, passed


class _Layer:
    """The tensors and steps of one kind of layer, as they are written."""

    def __init__(self) -> None:
        self.tensors: List[Dict[str, Any]] = []
        self.steps: List[Dict[str, Any]] = []
        self._names: Dict[str, int] = {}

    def unique(self, name: str) -> str:
        count = self._names.get(name, 0)
        self._names[name] = count + 1
        return name if count == 0 else f"{name}_{count + 1}"

    def tensor(self, name: str, dims: Sequence[Dim], form: str = "activation") -> int:
        self.tensors.append({"name": name, "dims": list(dims), "form": form})
        return len(self.tensors) - 1

    def step(self, name: str, action: Any, reads: List[int], dims: Sequence[Dim], form: str = "activation", **more: Any) -> int:
        name = self.unique(name)
        made = self.tensor(name, dims, form)
        self.steps.append({"name": name, "action": action, "reads": reads, "writes": [made], **more})
        return made

    def dims(self, tensor: int) -> List[Dim]:
        return list(self.tensors[tensor]["dims"])

    def vector(self, kind: str, reads: List[int], **more: Any) -> int:
        dims = self.dims(reads[0])
        action = {"vector": {"kind": kind, "rows": dims[:-1], "row": dims[-1:]}}
        return self.step(kind, action, reads, dims, **more)


_TOKENS: Tuple[Dim, Dim, Dim] = ("batch", "sequence", "hidden")


class _Mapper:
    """Maps a program, layer by layer."""

    def __init__(self, program: _Program) -> None:
        self.program = program
        self.unmapped: List[str] = []
        self.own: List[int] = []
        self.numbers: Dict[str, int] = {}
        #: The two halves of what some projections make.
        self.halves: Dict[str, Tuple[int, ...]] = {}
        table = next((node for node in program.nodes if node.op == "embedding"), None)
        if table is None:
            raise Unmappable("no embedding of tokens was found; give a decoder that reads ids")
        self.table = table
        self.numbers["vocabulary"], self.numbers["hidden"] = program.size(self._weight(table))
        self.prefix, self.n_layers = self._layers()

    def _weight(self, node: Node) -> str:
        found = next((name for name in node.tensors if name in self.program.parameters), None)
        if found is None:
            raise Unmappable(f"{node.op} at {node.path or 'the top'} has no weight of its own")
        return found

    def _layers(self) -> Tuple[str, int]:
        """The list of modules that repeats, and how many there are."""
        found: Dict[str, set[int]] = {}
        for node in self.program.nodes:
            match = re.match(r"^(?:(.*?)\.)?(\d+)(?:\.|$)", node.path)
            if match:
                found.setdefault(match.group(1) or "", set()).add(int(match.group(2)))
        if not found:
            raise Unmappable("no list of layers was found; a decoder repeats its layers in an nn.ModuleList")
        prefix = max(found, key=lambda name: len(found[name]))
        return prefix, len(found[prefix])

    def layer_of(self, node: Node) -> Optional[int]:
        start = f"{re.escape(self.prefix)}\\." if self.prefix else ""
        match = re.match(rf"^{start}(\d+)(?:\.|$)", node.path)
        return int(match.group(1)) if match else None

    def dim(self, size: int) -> Dim:
        """What a size of a weight is called."""
        for name in ("hidden", "mlp", "vocabulary"):
            if self.numbers.get(name) == size:
                return name
        if "mlp" not in self.numbers and size > self.numbers["hidden"]:
            self.numbers["mlp"] = size
            return "mlp"
        if size not in self.own:
            if len(self.own) == 8:
                raise Unmappable(f"more than 8 sizes of its own, the last of {size}")
            self.own.append(size)
        return {"own": self.own.index(size)}

    def note(self, sentence: str) -> None:
        if sentence not in self.unmapped:
            self.unmapped.append(sentence)

    def layer(self, index: int) -> Tuple[Dict[str, Any], str]:
        """One layer, and the name of the tensor that it hands on."""
        nodes = [node for node in self.program.nodes if self.layer_of(node) == index]
        inside = {node.name for node in nodes}
        size = (PROBE_BATCH, PROBE_SEQUENCE, self.numbers["hidden"])
        outer = [t for n in nodes for t in n.tensors if t not in inside and self.program.size(t) == size]
        given = next((tensor for tensor in outer if tensor not in self.program.parameters), None)
        leaves = [n.name for n in nodes if self.program.size(n.name) == size and self._leaves(n, index)]
        if given is None or not leaves:
            raise Unmappable(f"layer {index} has no input and output of batch x sequence x hidden")
        made = _Layer()
        known: Dict[str, int] = {given: made.tensor("input", _TOKENS)}
        self.convert(nodes, made, known)
        if leaves[-1] not in known:
            raise Unmappable(f"what layer {index} hands on was not mapped")
        graph = {"tensors": made.tensors, "steps": made.steps}
        return {"name": "transformer", "reach": "all", "input": known[given], "output": known[leaves[-1]], "graph": graph}, leaves[-1]

    def _leaves(self, node: Node, index: int) -> bool:
        users = self.program.users.get(node.name, [])
        return any(self.layer_of(user) != index for user in users)

    def convert(self, nodes: List[Node], made: _Layer, known: Dict[str, int]) -> None:
        attention = [node for node in nodes if node.op == "scaled_dot_product_attention"]
        inner = set()
        for node in attention:
            inner |= self.attention(node, made, known, plan_only=True)
        marks: Dict[str, Tuple[str, str]] = {}
        spelled = self.spelled(nodes)
        for node in nodes:
            if node.name in inner:
                continue
            if node.path in spelled:
                self.gelu(node, spelled[node.path], made, known)
                continue
            if node.op == "scaled_dot_product_attention":
                self.attention(node, made, known)
            else:
                self.plain(node, made, known, marks)

    def spelled(self, nodes: List[Node]) -> Dict[str, List[Node]]:
        """Modules that are a GELU spelled out by its approximation, with their operators."""
        found: Dict[str, List[Node]] = {}
        for node in nodes:
            found.setdefault(node.path, []).append(node)
        return {path: part for path, part in found.items() if path and {"pow", "tanh"} <= {n.op for n in part}}

    def gelu(self, node: Node, part: List[Node], made: _Layer, known: Dict[str, int]) -> None:
        if node is part[-1]:
            source = next(tensor for n in part for tensor in n.tensors if tensor in known)
            known[node.name] = made.vector("gelu", [known[source]])

    def attention(self, node: Node, made: _Layer, known: Dict[str, int], plan_only: bool = False) -> set[str]:
        """Projections, rotary and products of one attention; answers the operators that belong to it."""
        program = self.program
        sources = [program.back(tensor, "linear") for tensor in node.tensors[:3]]
        projections = [found for found, _ in sources if found is not None]
        if len(projections) != 3:
            raise Unmappable(f"queries, keys and values at {node.path} come from no linear projections")
        passed = [n for _, part in sources for n in part]
        inner = {n.name for n in [*projections, *passed]}
        if plan_only:
            return inner
        heads, head = program.size(node.tensors[0])[1], program.size(node.tensors[0])[-1]
        keys = projections[1]
        width = program.size(self._weight(keys))[0]
        # One projection of all three has the heads of queries, of keys, and as many of values.
        kv_heads = (width // head - heads) // 2 if keys is projections[0] else width // head
        group = heads // kv_heads
        for name, value in (("heads", heads), ("kv_heads", kv_heads), ("head", head)):
            if self.numbers.setdefault(name, value) != value:
                raise Unmappable(f"attention at {node.path} has {value} {name}, others have {self.numbers[name]}")
        ops = {n.op for n in passed}
        source = next((t for t in projections[0].tensors if t in known), None)
        if source is None:
            raise Unmappable(f"what attention at {node.path} reads was not mapped")
        weight = made.tensor(made.unique("qkv_weight"), ["hidden", "qkv_heads", "head"], "weight")
        qkv = made.step("qkv", "contract", [known[source], weight], ["batch", "sequence", "qkv_heads", "head"])
        if len([t for t in projections[0].tensors if t in program.parameters]) > 1:
            bias = made.tensor(made.unique("qkv_bias"), ["qkv_heads", "head"], "weight")
            action = {"vector": {"kind": "bias", "rows": ["batch", "sequence"], "row": ["qkv_heads", "head"]}}
            qkv = made.step("qkv_biased", action, [qkv, bias], made.dims(qkv))
        query: List[Dim] = ["batch", "sequence", "kv_heads", "group", "head"]
        key: List[Dim] = ["batch", "keys", "kv_heads", "head"]
        q, k, v = made.tensor("q", query), made.tensor("k", key), made.tensor("v", key)
        made.steps.append({"name": made.unique("heads"), "action": "split", "reads": [qkv], "writes": [q, k, v]})
        q = self.normed("q", sources[0][1], made, q, head)
        k = self.normed("k", sources[1][1], made, k, head)
        if ops & {"neg", "cat", "cos", "sin"}:
            self.numbers["rotary"] = head
            q = made.step("q_rotary", {"vector": {"kind": "rotary", "rows": query[:-1], "row": ["rotary"]}}, [q], query)
            k = made.step("k_rotary", {"vector": {"kind": "rotary", "rows": key[:-1], "row": ["rotary"]}}, [k], key)
        pairs: List[Dim] = ["batch", "kv_heads", "group", "sequence", "keys"]
        scores = made.step("scores", "contract", [q, k], pairs, core=True, module="core_attn")
        for kind in ("scale", "mask", "softmax"):
            work: Dict[str, Any] = {"kind": kind, "rows": pairs[:-1], "row": ["keys"]}
            scores = made.step(kind, {"vector": work}, [scores], pairs, core=True, module="core_attn")
        known[node.name] = made.step("context", "contract", [scores, v], query, module="core_attn")
        assert group * kv_heads == heads
        return inner

    def normed(self, name: str, passed: List[Node], made: _Layer, given: int, head: int) -> int:
        """Queries or keys behind their norm, where they have one over the elements of a head."""
        kinds = {"rms_norm": "rms_norm", "rsqrt": "rms_norm", "layer_norm": "layer_norm", "native_layer_norm": "layer_norm"}
        kind = next((kinds[node.op] for node in passed if node.op in kinds), None)
        if kind is None:
            return given
        weights = {tensor for node in passed for tensor in node.tensors if tensor in self.program.parameters}
        if any(self.program.size(weight) != (head,) for weight in weights) or len(weights) != (2 if kind == "layer_norm" else 1):
            self.note("norms of queries and keys that are not over the elements of a head are left out")
            return given
        parts = ("gain", "bias")[: len(weights)]
        gains = [made.tensor(made.unique(f"{name}_norm_{part}"), ["head"], "weight") for part in parts]
        dims = made.dims(given)
        action = {"vector": {"kind": kind, "rows": dims[:-1], "row": dims[-1:]}}
        return made.step(f"{name}_norm", action, [given, *gains], dims)

    def plain(self, node: Node, made: _Layer, known: Dict[str, int], marks: Dict[str, Tuple[str, str]]) -> None:
        """One operator outside attention's projections."""
        op = node.op.rstrip("_")
        mapped = [tensor for tensor in node.tensors if tensor in known]
        marked = [tensor for tensor in node.tensors if tensor in marks]
        weights = [tensor for tensor in node.tensors if tensor in self.program.parameters]
        if not mapped and not marked:
            # Tables of rotary embeddings, masks, positions: made from no activation.
            return
        if op in _SHAPES:
            if op == "getitem" and mapped and mapped[0] in self.halves:
                # The place of a part is its only number.
                known[node.name] = self.halves[mapped[0]][int(node.numbers[0])]
            elif op in _PARTS and mapped and mapped[0] in self.halves:
                self.halves[node.name] = self.halves[mapped[0]]
                known[node.name] = known[mapped[0]]
            elif mapped:
                known[node.name] = known[mapped[0]]
            else:
                marks[node.name] = marks[marked[0]]
        elif op in ("linear", "addmm", "mm", "matmul") and weights and mapped:
            known[node.name] = self.linear(node, made, known[mapped[0]], weights)
        elif op in ("layer_norm", "native_layer_norm") and mapped:
            gains = [made.tensor(made.unique(name), ["hidden"], "weight") for name in ("norm_gain", "norm_bias")]
            if len(weights) != 2:
                self.note("layer norms without gain or bias count as with both")
            known[node.name] = made.vector("layer_norm", [known[mapped[0]], *gains], module="layernorm")
        elif op == "rms_norm" and mapped:
            gain = [made.tensor(made.unique("norm_gain"), ["hidden"], "weight")] if weights else []
            known[node.name] = made.vector("rms_norm", [known[mapped[0]], *gain], module="layernorm")
        elif op == "pow" and mapped and node.numbers[:1] in ((2,), (2.0,)):
            marks[node.name] = ("square", mapped[0])
        elif op in ("mean", "rsqrt", "add") and marked and not mapped:
            marks[node.name] = (op, marks[marked[0]][1])
        elif op == "mul" and mapped and marked:
            marks[node.name] = ("normed", mapped[0])
        elif op == "mul" and weights and marked:
            gain_tensor = made.tensor(made.unique("norm_gain"), ["hidden"], "weight")
            source = known[marks[marked[0]][1]]
            known[node.name] = made.vector("rms_norm", [source, gain_tensor], module="layernorm")
        elif op in _ALONE and mapped:
            known[node.name] = made.vector(_ALONE[op], [known[mapped[0]]])
        elif op in ("add", "mul") and len(mapped) == 2 and made.dims(known[mapped[0]]) == made.dims(known[mapped[1]]):
            kind = "add" if op == "add" else "multiply"
            known[node.name] = made.vector(kind, [known[mapped[0]], known[mapped[1]]])
        elif op == "add" and mapped and weights:
            bias = made.tensor(made.unique("bias"), made.dims(known[mapped[0]])[-1:], "weight")
            known[node.name] = made.vector("bias", [known[mapped[0]], bias])
        elif op in _ROUTES:
            raise Unmappable(
                f"{op} at {node.path or 'the top'} chooses among tokens or experts, which an exported graph does not tell: "
                "give the configuration to Model.from_hf, or write the layer (docs/model-file.md)"
            )
        elif mapped and self.program.size(node.name) == self.program.size(mapped[0]):
            self.note(f"{op} at {node.path or 'the top'} is left out: phaze has no such vector work")
            known[node.name] = known[mapped[0]]
        else:
            raise Unmappable(f"{op} at {node.path or 'the top'} cannot be said in a phaze-model")

    def linear(self, node: Node, made: _Layer, source: int, weights: List[str]) -> int:
        size = self.program.size(weights[0])
        before = made.dims(source)
        context: List[Dim] = ["kv_heads", "group", "head"]
        kept, inner = (before[:-3], context) if before[-3:] == context else (before[:-1], before[-1:])
        width = size[0] if node.op == "linear" else size[-1]
        is_halved = self.is_halved(node, width)
        out = self.dim(width // 2 if is_halved else width)
        name = node.path.split(".")[-1] or "linear"
        form = "activation"
        weight_form = "weight"
        if out == "vocabulary":
            form = "wide"
            tied = self.program.parameters[weights[0]] == self.program.parameters[self._weight(self.table)]
            weight_form = "tied_weight" if tied else "weight"
            name = "logits"
        if is_halved:
            return self.gates(node, made, (source, kept, inner, out), len(weights) > 1)
        dims = [*inner, out] if weight_form == "weight" else [out, *inner]
        weight = made.tensor(made.unique(f"{name}_weight"), dims, weight_form)
        result = made.step(name, "contract", [source, weight], [*kept, out], form)
        if len(weights) > 1:
            bias = made.tensor(made.unique(f"{name}_bias"), [out], "weight")
            result = made.vector("bias", [result, bias])
        return result

    def is_halved(self, node: Node, width: int) -> bool:
        """Whether what a projection makes is taken apart into two halves."""
        for user in self.program.users.get(node.name, []):
            parts = self.program.users.get(user.name, [])
            if user.op in _PARTS and len(parts) == 2 and all(self.program.size(part.name)[-1:] == (width // 2,) for part in parts):
                return True
        return False

    def gates(self, node: Node, made: _Layer, what: Tuple[int, List[Dim], List[Dim], Dim], biased: bool) -> int:
        """A projection of a gate and what it lets through, side by side, and its two halves."""
        source, kept, inner, out = what
        name = node.path.split(".")[-1] or "gate_up"
        weight = made.tensor(made.unique(f"{name}_weight"), [*inner, "gates", out], "weight")
        both = made.step(name, "contract", [source, weight], [*kept, "gates", out])
        if biased:
            bias = made.tensor(made.unique(f"{name}_bias"), ["gates", out], "weight")
            work = {"kind": "bias", "rows": kept, "row": ["gates", out]}
            both = made.step(f"{name}_biased", {"vector": work}, [both, bias], made.dims(both))
        halves = tuple(made.tensor(made.unique(half), [*kept, out]) for half in ("gate", "up"))
        made.steps.append({"name": made.unique("branches"), "action": "split", "reads": [both], "writes": list(halves)})
        self.halves[node.name] = halves
        return both

    def embedding(self) -> Dict[str, Any]:
        made = _Layer()
        weight = made.tensor("token_table", ["vocabulary", "hidden"], "weight")
        tokens = made.step("tokens", "gather", [weight], _TOKENS)
        others = [n for n in self.program.nodes if n.op == "embedding" and n is not self.table]
        for node in others:
            rows, width = self.program.size(self._weight(node))
            if width != self.numbers["hidden"] or "positions" in self.numbers:
                self.note(f"a second table of {rows} x {width} at {node.path} is left out")
                continue
            self.numbers["positions"] = rows
            table = made.tensor("position_table", ["positions", "hidden"], "weight")
            work = {"kind": "bias", "rows": ["batch"], "row": ["sequence", "hidden"]}
            tokens = made.step("positions", {"vector": work}, [tokens, table], _TOKENS)
        graph = {"tensors": made.tensors, "steps": made.steps}
        return {"name": "embedding", "reach": "all", "input": None, "output": tokens, "graph": graph}

    def head(self, given: str) -> Dict[str, Any]:
        made = _Layer()
        known = {given: made.tensor("input", _TOKENS)}
        last = [node for node in self.program.nodes if self.layer_of(node) is None]
        start = self.program.nodes.index(self.program.made_by[given])
        self.convert([node for node in last if self.program.nodes.index(node) > start], made, known)
        logits = next((i for i, tensor in enumerate(made.tensors) if tensor["form"] == "wide"), None)
        if logits is None:
            raise Unmappable("no logits of the vocabulary were found behind the last layer")
        action = {"vector": {"kind": "cross_entropy", "rows": ["batch", "sequence"], "row": ["vocabulary"]}}
        made.step("loss", action, [logits], ["batch", "sequence"], "wide")
        graph = {"tensors": made.tensors, "steps": made.steps}
        return {"name": "head", "reach": "all", "input": known[given], "output": None, "graph": graph}


def model_of(stored: Dict[str, Any], *, name: str, sequence: int) -> Tuple[str, List[str]]:
    """The phaze-model of a stored program, and what of it is left out."""
    mapper = _Mapper(_Program(stored))
    kinds: List[Dict[str, Any]] = [mapper.embedding()]
    order = [0]
    given = ""
    for index in range(mapper.n_layers):
        layer, given = mapper.layer(index)
        alike = next((at for at, kind in enumerate(kinds) if kind["graph"] == layer["graph"]), None)
        if alike is None:
            layer["name"] = "transformer" if len(kinds) == 1 else f"transformer_{len(kinds)}"
            kinds.append(layer)
            alike = len(kinds) - 1
        order.append(alike)
    kinds.append(mapper.head(given))
    order.append(len(kinds) - 1)
    numbers = _numbers(mapper, name, sequence, kinds)
    found = {"format": "phaze-model", "version": 1, "numbers": numbers, "kinds": kinds, "sequence": order}
    return json.dumps(found), mapper.unmapped


def _numbers(mapper: _Mapper, name: str, sequence: int, kinds: List[Dict[str, Any]]) -> Dict[str, Any]:
    """The sizes of dimensions, and what reports tell: everything else as of a plain decoder."""
    numbers: Dict[str, Any] = json.loads(_phaze.export("llama2-7b", {}))["numbers"]
    known = mapper.numbers
    if "heads" not in known:
        raise Unmappable("no attention was found (scaled_dot_product_attention)")
    words = {step["action"]["vector"]["kind"] for kind in kinds for step in kind["graph"]["steps"] if isinstance(step["action"], dict)}
    forms = {tensor["form"] for kind in kinds for tensor in kind["graph"]["tensors"]}
    numbers.update(
        name=name,
        layers=mapper.n_layers,
        hidden=known["hidden"],
        embedding=known["hidden"],
        heads=known["heads"],
        kv_heads=known["kv_heads"],
        head=known["head"],
        rotary=known.get("rotary", 0),
        mlp=known.get("mlp", 4 * known["hidden"]),
        vocabulary=known["vocabulary"],
        vocabulary_multiple=None,
        max_sequence=min(sequence, known.get("positions", sequence)),
        positions=known.get("positions"),
        tied="tied_weight" in forms,
        norm="rms" if "rms_norm" in words else "layer",
        variants=[numbers["variants"][0]] * mapper.n_layers,
        own=mapper.own,
    )
    return numbers
