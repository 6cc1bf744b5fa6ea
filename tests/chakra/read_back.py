"""Reads Chakra traces with MLCommons' own reader and compares nodes and bytes with the plan that they are of."""

import json
import sys
from pathlib import Path

from chakra.schema.protobuf.et_def_pb2 import COMM_COLL_NODE, COMM_RECV_NODE, COMM_SEND_NODE, COMP_NODE
from chakra.schema.protobuf.et_def_pb2 import GlobalMetadata, Node
from chakra.src.third_party.utils.protolib import decodeMessage, openFileRd


def nodes_of(path):
    """The nodes of a trace; every dependency is a node before it."""
    trace = openFileRd(str(path))
    metadata = GlobalMetadata()
    decodeMessage(trace, metadata)
    assert metadata.version == "1.0", metadata
    nodes, seen = [], set()
    while True:
        node = Node()
        if not decodeMessage(trace, node):
            return nodes
        assert node.id not in seen and all(before in seen for before in node.data_deps), node
        seen.add(node.id)
        nodes.append(node)


def bytes_of(node):
    sizes = [attribute.int64_val for attribute in node.attr if attribute.name == "comm_size"]
    return sum(sizes)


def expected(plan, rank):
    """Nodes and bytes of a rank, counted from the plan alone."""
    answer, profile = plan["answer"], plan["profile"]
    stages, n_ranks = answer["stages"], len(answer["ranks"])
    degrees = plan["training"]["strategy"]
    batch = plan["training"]["global_batch"] // degrees["micro_batch"] // degrees["data_parallel"]
    counts = {COMP_NODE: 1, COMM_COLL_NODE: 0, COMM_SEND_NODE: 0, COMM_RECV_NODE: 0}
    moved = 0
    for at in range(rank, len(stages), n_ranks):
        stage = stages[at]
        for other in (at - 1, at + 1):
            if 0 <= other < len(stages):
                first = set(stages[min(at, other)]["layers"])
                crossing = [e for e in profile["edges"] if e["from"] in first and e["to"] not in first]
                size = sum(e.get("part") or e["size"] for e in crossing)
                counts[COMM_SEND_NODE] += batch
                counts[COMM_RECV_NODE] += batch
                moved += 2 * batch * size
        repeated = stage["repeated"]
        for layer in stage["layers"]:
            kind = profile["sequence"][layer]
            passes = ["forward", "backward"]
            if profile["kinds"][kind]["repeatable"] and repeated > 0:
                repeated -= 1
                passes.append("forward")
            for name in passes:
                counts[COMP_NODE] += batch
                for op in plan["layers"][kind][name]["operators"]:
                    exchange = op.get("exchange")
                    if exchange is None:
                        continue
                    times = batch * exchange["times"]
                    if exchange["kind"] == "send":
                        counts[COMM_SEND_NODE] += times
                        counts[COMM_RECV_NODE] += times
                        moved += 2 * times * exchange["bytes"]
                    else:
                        counts[COMM_COLL_NODE] += times
                        moved += times * exchange["bytes"]
    held = sum(stages[at]["parameters"] for at in range(rank, len(stages), n_ranks))
    own = [layer for at in range(rank, len(stages), n_ranks) for layer in stages[at]["layers"]]
    experts = sum(profile["kinds"][profile["sequence"][layer]].get("expert_parameters", 0) for layer in own)
    replicas = degrees["data_parallel"] * degrees["context_parallel"]
    owners = profile.get("expert_devices")
    of_experts = replicas * degrees["tensor_parallel"] // owners if owners else 1
    per = plan["job"]["per_parameter"]
    for parameters, n in ((held - experts, replicas), (experts, of_experts)):
        if n > 1 and parameters > 0 and degrees["zero"] < 2:
            counts[COMM_COLL_NODE] += 1
            moved += parameters * (per.get("exchanged") or per["gradient"])
        if n > 1 and parameters > 0 and degrees["zero"] == 1:
            counts[COMM_COLL_NODE] += 1
            moved += parameters * per["weight"]
    return counts, moved


def main():
    plan = json.loads(Path(sys.argv[1]).read_text())
    traces = sorted(Path(sys.argv[2]).glob("*.et"), key=lambda path: int(path.name.split(".")[1]))
    assert len(traces) == len(plan["answer"]["ranks"]), traces
    for rank, path in enumerate(traces):
        nodes = nodes_of(path)
        counts, moved = expected(plan, rank)
        found = {kind: sum(node.type == kind for node in nodes) for kind in counts}
        assert found == counts, (rank, found, counts)
        assert sum(map(bytes_of, nodes)) == moved, (rank, sum(map(bytes_of, nodes)), moved)
        print(f"rank {rank}: {len(nodes)} nodes, {moved} bytes, as the plan says")


if __name__ == "__main__":
    main()
