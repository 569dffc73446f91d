"""adjoin._dispatch_keys: PyTorch's names of keys, as adjoin._C.DispatchKey, and what an op's kernels know them by here."""

import enum

DispatchKey = enum.Enum(
    "DispatchKey",
    "Undefined CompositeExplicitAutogradNonFunctional CompositeExplicitAutograd "
    "CompositeImplicitAutogradNestedTensor CompositeImplicitAutograd AutogradNestedTensor AutogradOther Autograd "
    "Conjugate ZeroTensor Negative BackendSelect ADInplaceOrView PythonTLSSnapshot Python "
    "FuncTorchDynamicLayerFrontMode FuncTorchDynamicLayerBackMode FuncTorchBatchedDecomposition FuncTorchBatched "
    "FuncTorchVmapMode FuncTorchGradWrapper PythonDispatcher PreDispatch Functionalize AutocastCPU AutocastMPS "
    "AutocastXPU AutocastHPU AutocastIPU AutocastCUDA AutocastPrivateUse1 Dense StartOfDenseBackends CPU CUDA HIP "
    "XLA MPS IPU XPU HPU VE Lazy MTIA MAIA PrivateUse1 PrivateUse2 PrivateUse3 Meta EndOfDenseBackends Quantized "
    "StartOfQuantizedBackends QuantizedCPU QuantizedCUDA QuantizedHIP QuantizedXLA QuantizedMPS QuantizedIPU "
    "QuantizedXPU QuantizedHPU QuantizedVE QuantizedLazy QuantizedMTIA QuantizedMAIA QuantizedPrivateUse1 "
    "QuantizedPrivateUse2 QuantizedPrivateUse3 QuantizedMeta EndOfQuantizedBackends Sparse StartOfSparseBackends "
    "SparseCPU SparseCUDA SparseHIP SparseXLA SparseMPS SparseIPU SparseXPU SparseHPU SparseVE SparseLazy "
    "SparseMTIA SparseMAIA SparsePrivateUse1 SparsePrivateUse2 SparsePrivateUse3 SparseMeta EndOfSparseBackends "
    "SparseCsr StartOfSparseCsrBackends SparseCsrCPU SparseCsrCUDA SparseCsrHIP SparseCsrXLA SparseCsrMPS "
    "SparseCsrIPU SparseCsrXPU SparseCsrHPU SparseCsrVE SparseCsrLazy SparseCsrMTIA SparseCsrMAIA "
    "SparseCsrPrivateUse1 SparseCsrPrivateUse2 SparseCsrPrivateUse3 SparseCsrMeta EndOfSparseCsrBackends "
    "NestedTensor StartOfNestedTensorBackends NestedTensorCPU NestedTensorCUDA NestedTensorHIP NestedTensorXLA "
    "NestedTensorMPS NestedTensorIPU NestedTensorXPU NestedTensorHPU NestedTensorVE NestedTensorLazy "
    "NestedTensorMTIA NestedTensorMAIA NestedTensorPrivateUse1 NestedTensorPrivateUse2 NestedTensorPrivateUse3 "
    "NestedTensorMeta EndOfNestedTensorBackends AutogradFunctionality StartOfAutogradFunctionalityBackends "
    "AutogradCPU AutogradCUDA AutogradHIP AutogradXLA AutogradMPS AutogradIPU AutogradXPU AutogradHPU AutogradVE "
    "AutogradLazy AutogradMTIA AutogradMAIA AutogradPrivateUse1 AutogradPrivateUse2 AutogradPrivateUse3 "
    "AutogradMeta EndOfAutogradFunctionalityBackends ",
)


class DispatchKeySet:
    """A set of keys."""

    def __init__(self, *keys):
        self._keys = frozenset(k for key in keys for k in (key._keys if isinstance(key, DispatchKeySet) else [key]))

    def __or__(self, other):
        return DispatchKeySet(self, other)

    def __and__(self, other):
        return DispatchKeySet(*(self._keys & DispatchKeySet(other)._keys))

    def __sub__(self, other):
        return DispatchKeySet(*(self._keys - DispatchKeySet(other)._keys))

    def __eq__(self, other):
        return isinstance(other, DispatchKeySet) and self._keys == other._keys

    def __hash__(self):
        return hash(self._keys)

    def has(self, key):
        """Whether a key is in it."""
        return key in self._keys

    def add(self, key):
        """The set with a key."""
        return self | key

    def remove(self, key):
        """The set without a key."""
        return self - key

    def __repr__(self):
        return f"DispatchKeySet({', '.join(sorted(k.name for k in self._keys))})"
