"""Networks prepared for synthesis: weights laid out once, or graphs by `torch.compile`.

On a CPU, PyTorch lays out the weights of a convolution or linear map for oneDNN in every call, and
runs linear maps in fp32 by MKL. Both cost up to half the time: FastSpeech 2's map 1024 -> 256 takes
1.5 ms for 570 frames on one AVX-512 thread of an EPYC, unprepared 3.3 ms.
"""

import copy
import importlib
from collections.abc import Callable, Collection
from functools import partial
from typing import Any, Generic, Literal, TypeVar, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils._pytree import tree_map_only

from modules.layers.basic import GeluLinear, MaskedConv1d, clear_padding, convolve
from modules.layers.postnet import MaskedBatchNorm, PostNet

Result = TypeVar("Result")

BACKEND = "inductor"
_SHORTEST = 32  # phones or frames of a bucket
_MAX_GRAPHS = 256  # of a method: numbers of items times lengths
Activation = Literal["none", "tanh", "gelu", "gelu_tanh"]
Network = TypeVar("Network", bound=nn.Module)
_ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {
    "none": lambda values: values,
    "tanh": torch.tanh,
    "gelu": F.gelu,
    "gelu_tanh": partial(F.gelu, approximate="tanh"),
}
# of a batch: from here on, writing their windows takes longer than laying out the weights
_MANY_FRAMES = 2000


def compile_options(*, is_dynamic: bool, has_cuda_graphs: bool) -> dict[str, Any]:
    """Returns arguments of `torch.compile`; what cannot be compiled as a whole is an error.

    A dynamic graph is for any size. With CUDA graphs, its kernels are recorded and launched as one.
    """
    mode = "reduce-overhead" if has_cuda_graphs else None
    return {"fullgraph": True, "dynamic": is_dynamic, "backend": BACKEND, "mode": mode}


def allow_graphs(n: int) -> None:
    """Raises the recompilation limit by `n` graphs, shared by all networks; more are an error."""
    config = importlib.import_module("torch._dynamo").config  # its import takes a second
    config.recompile_limit += n
    config.accumulated_recompile_limit += n


class CompiledMethod(Generic[Result]):
    """A method of a network as one graph, for synthesis.

    With buckets, items and lengths are padded to sizes of which there are few: 1, 2, 3, 4, 6, 8,
    12 ..., lengths from 32 on. The result is cut to what was asked for. With CUDA graphs, only one
    thread at a time may call it: all results are written to the same memory.

    Args:
        method: Takes tensors (B, L, ...), a mask (B, L), and tensors (B,) or (B, L, ...); its
            results are tensors (B, L, ...) or None.
        has_buckets: Whether to pad; otherwise the graph is for any size.
    """

    def __init__(
        self, method: Callable[..., Result], device: torch.device, *, has_buckets: bool
    ) -> None:
        self._has_buckets = has_buckets
        self._has_cuda_graphs = has_buckets and device.type == "cuda"
        allow_graphs(_MAX_GRAPHS)
        options = compile_options(is_dynamic=not has_buckets, has_cuda_graphs=self._has_cuda_graphs)
        self._graph: Callable[..., Result] = torch.compile(method, **options)

    def __call__(self, values: Tensor, mask: Tensor, *others: Tensor) -> Result:
        """Runs the method: values (B, L, ...), mask (B, L), others (B,) or (B, L, ...)."""
        if not self._has_buckets:
            return self._graph(values, mask, *others)
        B, L = mask.shape
        size, length = _bucket(B), max(_SHORTEST, _bucket(L))
        if self._has_cuda_graphs:
            torch.compiler.cudagraph_mark_step_begin()
        inputs = []
        for tensor in (values, mask, *others):
            # the last item is repeated, since an empty one would have no attention
            tensor = torch.cat((tensor, tensor[-1:].expand(size - B, *tensor.shape[1:])))
            if tensor.ndim > 1:
                tensor = F.pad(tensor, (*(0, 0) * (tensor.ndim - 2), 0, length - L))
            inputs.append(tensor)
        results = self._graph(*inputs)
        # copies: the next call overwrites what a CUDA graph has written
        return tree_map_only(Tensor, lambda result: result[:B, :L].clone(), results)


def _bucket(n: int) -> int:
    """Returns the smallest power of two, or one and a half of one, that is not less than n."""
    power = 1 << max(0, n - 1).bit_length()
    return power // 4 * 3 if n <= power // 4 * 3 else power


class PackedConv1d(nn.Module):
    """A `MaskedConv1d` or `Linear` that cannot be trained, moved or saved.

    On a CPU it is a product of two matrices, the windows of frames and the weights, (H_out, H_in,
    K) with K odd. Convolutions take weights in oneDNN's layout for a number of frames; with another
    number they are ten times as slow.
    """

    def __init__(
        self,
        weight: Tensor,
        bias: Tensor | None,
        dtype: torch.dtype,
        activation: Activation = "none",
        packs: bool = True,
    ) -> None:
        super().__init__()
        self._dtype, self._activation, self._kernel_size = dtype, activation, weight.shape[2]
        self._weight = weight.detach().to(dtype)
        self._bias = None if bias is None else bias.detach().to(dtype)
        self._packed: Tensor | None = None
        if packs and _can_pack(self._weight):
            rows = self._weight.mT.flatten(1)  # (H_out, K * H_in)
            # private, but what torch.compile calls: no public operator takes packed weights
            self._packed = torch.ops.mkldnn._reorder_linear_weight(rows)

    def forward(self, frames: Tensor, mask: Tensor | None = None) -> Tensor:
        """Convolves (B, T, H_in) of any float type -> (B, T, H_out) in its own type.

        Padding of the input is cleared by the mask; without one it must be 0. Padding of the result
        is not cleared.
        """
        B, T, _ = frames.shape
        K, margin = self._kernel_size, self._kernel_size // 2
        if mask is not None and K > 1:
            frames = clear_padding(frames, mask)
        frames = frames.to(self._dtype)
        if self._packed is None or (K > 1 and B * T > _MANY_FRAMES):
            activate = _ACTIVATIONS[self._activation]
            if K == 1:
                return activate(F.linear(frames, self._weight.squeeze(2), self._bias))
            return activate(convolve(frames, self._weight, self._bias, margin))
        if K > 1:
            frames = F.pad(frames, (0, 0, margin, margin)).unfold(1, K, 1).mT.flatten(2)
        # (B, T, K * H_in) -> (B, T, H_out)
        linear = torch.ops.mkldnn._linear_pointwise
        if self._activation == "gelu":  # oneDNN's own takes ten times as long with AVX2
            return F.gelu(linear(frames, self._packed, self._bias, "none", [], ""))
        name = self._activation.removesuffix("_tanh")
        return linear(frames, self._packed, self._bias, name, [], "tanh")


def _can_pack(weight: Tensor) -> bool:
    """Tells whether oneDNN takes weights (H_out, H_in, K), and is the fastest way.

    Without AVX-512 MKL is, for linear maps in fp32: 256 -> 1024 for 600 frames takes 3.9 ms on one
    AVX2 thread of an EPYC, packed 4.6 ms.
    """
    if weight.device.type != "cpu" or not torch.backends.mkldnn.is_available():
        return False
    if weight.dtype != torch.float32:
        return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    return weight.shape[2] > 1 or "AVX512" in torch.backends.cpu.get_cpu_capability()


class PackedPostNet(nn.Module):
    """A `PostNet` whose batch normalisation is part of the weights."""

    def __init__(self, postnet: PostNet, dtype: torch.dtype, *, packs: bool = True) -> None:
        super().__init__()
        self._centre = postnet.centre if postnet.centred else None
        self.convs = nn.ModuleList()
        for conv, norm in zip(postnet.convs, postnet.norms, strict=True):
            conv, norm = cast("MaskedConv1d", conv), cast("MaskedBatchNorm", norm)
            scale, offset = norm.scale_and_offset()
            bias = offset if conv.bias is None else torch.addcmul(offset, conv.bias, scale)
            weight = conv.weight * scale[:, None, None]
            activation: Activation = "none" if conv is postnet.convs[-1] else "tanh"
            self.convs.append(PackedConv1d(weight, bias, dtype, activation, packs=packs))

    def forward(self, mel: Tensor, mask: Tensor) -> Tensor:
        """Refines a mel, as `PostNet`: (B, T, M), mask (B, T) -> (B, T, M) of the mel's type."""
        residual = mel if self._centre is None else mel - self._centre
        for conv in self.convs:
            residual = conv(residual, mask)
        return mel + residual


def packed(
    network: Network,
    half: Collection[str] = (),
    methods: Collection[str] = (),
    compiled: Literal["off", "dynamic", "buckets"] = "off",
) -> Network:
    """Returns a network for synthesis, which computes the same and shares the other weights.

    The network, in eval mode on its device, stays as it is; later changes of its weights do not
    reach the result.

    Args:
        half: Names of the parts whose convolutions and linear maps compute in bfloat16; what is
            between them stays in the type of their input.
        methods: Names of those that can be compiled, see `CompiledMethod`.
        compiled: Whether they are, for any size or with buckets. Then no weights are laid out,
            since a compiler cannot trace those.
    """
    packs = compiled == "off"
    parts = {
        name: _cast(part, torch.bfloat16 if name in half else torch.float32, packs=packs)
        for name, part in network.named_children()
    }
    twin = _with_parts(network, parts)
    if compiled == "off":
        return twin
    device = next(network.parameters()).device
    for name in methods:
        method = CompiledMethod(getattr(twin, name), device, has_buckets=compiled == "buckets")
        setattr(twin, name, method)
    return twin


def _cast(module: nn.Module, dtype: torch.dtype, *, packs: bool) -> nn.Module:
    if isinstance(module, PostNet):
        return PackedPostNet(module, dtype, packs=packs)
    if isinstance(module, MaskedConv1d):
        return PackedConv1d(module.weight, module.bias, dtype, packs=packs)
    if isinstance(module, nn.Linear):
        activation: Activation = "none"
        if isinstance(module, GeluLinear):
            activation = "gelu" if module.exact else "gelu_tanh"
        return PackedConv1d(module.weight.unsqueeze(2), module.bias, dtype, activation, packs=packs)
    parts = {name: _cast(part, dtype, packs=packs) for name, part in module.named_children()}
    return _with_parts(module, parts)


def _with_parts(module: Network, parts: dict[str, nn.Module]) -> Network:
    """Returns a module with other parts that shares its own tensors."""
    twin = copy.copy(module)
    twin._modules = {**module._modules, **parts}
    return twin
