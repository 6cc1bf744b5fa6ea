"""A model of one's own: a configuration, a phaze-model file, or a module of torch."""

from __future__ import annotations

import json
import os
from typing import Any, Dict, Mapping, Optional, Sequence, Tuple, Union

from . import _phaze
from ._html import facts_html

Path = Union[str, "os.PathLike[str]"]


class Model:
    """What is trained, as a configuration of Hugging Face or a `phaze-model` (docs/model-file.md).

    >>> model = Model.builtin("llama3-8b")
    >>> model.name, model.parameters
    ('llama3-8b', 8030261248)
    """

    __slots__ = ("name", "text", "unmapped")

    #: What it is called.
    name: str
    #: Its text: JSON of a configuration or of a phaze-model.
    text: str
    #: What of a module could not be said in a phaze-model, in sentences; empty where all could.
    unmapped: Tuple[str, ...]

    def __init__(self, name: str, text: str, unmapped: Sequence[str] = ()) -> None:
        if not isinstance(name, str) or not isinstance(text, str):
            raise ValueError("a model is a name and its text, the JSON of a configuration or of a phaze-model")
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "text", text)
        object.__setattr__(self, "unmapped", tuple(unmapped))
        # What makes no sense is refused here, not when it is used.
        _phaze.export(f"{name}.json", {f"{name}.json": text})

    @classmethod
    def builtin(cls, name: str) -> Model:
        """A model that comes with phaze, layer by layer; `phaze.models()` lists them."""
        return cls(name, _phaze.export(name, {}))

    @classmethod
    def from_config(cls, config: Union[Mapping[str, Any], Path, Any], name: str = "config") -> Model:
        """A Hugging Face configuration: a dictionary, an object of transformers, or a path."""
        if isinstance(config, (str, os.PathLike)):
            with open(config, encoding="utf-8") as file:
                return cls(name, file.read())
        if not isinstance(config, Mapping):
            if not callable(getattr(config, "to_dict", None)):
                raise ValueError(f"{config!r} is no configuration; give a dictionary, an object of transformers, or a path")
            config = config.to_dict()
        return cls(name, json.dumps(dict(config), default=str))

    @classmethod
    def from_file(cls, path: Path) -> Model:
        """A phaze-model file or a config.json."""
        with open(path, encoding="utf-8") as file:
            return cls(os.path.splitext(os.path.basename(os.fspath(path)))[0], file.read())

    @classmethod
    def from_torch(
        cls, module: Any, example_inputs: Optional[Sequence[Any]] = None, *, name: str = "module", sequence: int = 2048
    ) -> Model:
        """A decoder as a module of torch, through `torch.export` on the meta device.

        No weight is made. Without example inputs it is called with ids of batch x sequence. What of the
        module could not be mapped is in `unmapped`; what cannot be left out is a `ValueError` that names it.
        """
        from ._torch import exported, model_of

        graph = exported(module, example_inputs)
        text, unmapped = model_of(graph, name=name, sequence=sequence)
        model = cls(name, text, unmapped)
        if model.parameters == graph["parameters"]:
            return model
        counts = f"the module has {graph['parameters']:,} parameters, what was mapped has {model.parameters:,}"
        return cls(name, text, [*unmapped, counts])

    @classmethod
    def from_hf(cls, config: Any, *, name: str = "hf") -> Model:
        """A model of transformers from its configuration: by its own numbers where phaze knows its
        family, else through `torch.export` of the module that transformers makes of it."""
        try:
            return cls.from_config(config, name=name)
        except ValueError as unknown:
            try:
                from ._torch import hf_module

                module = hf_module(config)
            except ImportError:
                # Without torch nothing is left to try.
                raise unknown from None
            longest = int(getattr(config, "max_position_embeddings", 2048))
            return cls.from_torch(module, name=name, sequence=longest)

    @property
    def parameters(self) -> int:
        """How many parameters it has, exactly."""
        return int(self._inspected()["parameters"])

    def _inspected(self) -> Dict[str, Any]:
        found: Dict[str, Any] = json.loads(_phaze.inspect("model.json", "{}", {"model.json": self.text}))
        return found

    def to_dict(self) -> Dict[str, Any]:
        """Its layers as a phaze-model holds them, in named dimensions."""
        found: Dict[str, Any] = json.loads(_phaze.export("model.json", {"model.json": self.text}))
        return found

    def save(self, path: Path) -> None:
        """Writes a phaze-model file."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(_phaze.export("model.json", {"model.json": self.text}))

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("Model cannot be changed")

    def __repr__(self) -> str:
        return f"Model({self.name!r}, {self.parameters:,} parameters)"

    def _repr_html_(self) -> str:
        return facts_html(self.name, {"parameters": self.parameters, **{f"not mapped {i + 1}": said for i, said in enumerate(self.unmapped)}}.items())
