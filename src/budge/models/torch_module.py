"""PyTorch modules: numbers in, one score a row or one a class out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from budge.errors import MissingDependencyError, ModelError
from budge.models.digests import sha256
from budge.models.reading import Ask
from budge.models.rows import Rows, numbers

__all__ = ["TorchEngine"]


@dataclass(frozen=True)
class TorchEngine:
    """A module, asked in evaluation mode and without gradients; its mode is put back afterwards."""

    module: Any
    classes: tuple[Any, ...] | None = None

    columns: None = None
    width: None = None

    @property
    def name(self) -> str:
        """The module's type."""
        return type(self.module).__name__

    @property
    def asks(self) -> tuple[Ask, ...]:
        """Scores, unless the caller declares classes; probabilities only if the module ends in a sigmoid or softmax (checked)."""
        return ("score", "probability")

    def answer(self, rows: Rows, ask: Ask) -> object:
        """What the module says, as an array on the CPU."""
        torch = _torch()
        weight = next((p for p in self.module.parameters() if p.is_floating_point()), None)
        matrix = numbers(rows, "float64" if weight is not None and weight.dtype == torch.float64 else "float32")
        if matrix is None:
            remedy = "encode it in a function around the module"
            raise ModelError("a module takes numbers, and a column holds something else", where=self.name, remedy=remedy)
        given = torch.from_numpy(matrix)
        if weight is not None:
            given = given.to(device=weight.device, dtype=weight.dtype)
        modes = [(part, part.training) for part in self.module.modules()]
        self.module.eval()
        try:
            with torch.inference_mode():
                answer = self.module(given)
        finally:
            for part, mode in modes:
                part.training = mode
        if not isinstance(answer, torch.Tensor):
            raise ModelError("the module answered no tensor", where=self.name, got=type(answer).__name__)
        array = answer.detach().cpu()
        array = (array.float() if array.dtype in (torch.float16, torch.bfloat16) else array).numpy()
        return array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array

    def digest(self) -> str:
        """Digest of the architecture as printed and of the weights."""
        torch = _torch()
        parts = [f"{type(self.module).__module__}.{type(self.module).__qualname__}".encode(), repr(self.module).encode()]
        for name, tensor in sorted(self.module.state_dict().items()):
            if isinstance(tensor, torch.Tensor):
                flat = tensor.detach().cpu().contiguous().flatten()
                parts += [f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode(), flat.view(torch.uint8).numpy().tobytes()]
        return sha256(*parts)

    def alias(self, name: str) -> str:
        """Names are kept as they are."""
        return name


def _torch() -> Any:
    try:
        import torch
    except ImportError as error:  # pragma: no cover - the module's own class comes from it
        raise MissingDependencyError("torch is not installed", remedy="pip install torch") from error
    return torch
