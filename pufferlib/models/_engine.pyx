"""Inference engine: runs a policy in C, directly on the arrays of the trainer."""

from libc.errno cimport ENOMEM
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memcpy, memset

from pufferlib.native._arrays cimport ALIGNED_AND_CONTIGUOUS, ArrayHead, head_of
from pufferlib.native.puffer_pool cimport puffer_pool_run
from pufferlib.native.puffer_task cimport PUFFER_MAX_THREADS, PufferTask

import os

import numpy as np

from pufferlib.errors import APIUsageError, PufferError

cdef extern from "puffer_network.h":
    enum:
        PUFFER_MAX_LAYERS
        PUFFER_MAX_MEMORIES

    ctypedef enum PufferActivation:
        PUFFER_RELU, PUFFER_TANH, PUFFER_SILU, PUFFER_ELU, PUFFER_GELU

    ctypedef enum PufferEncoding:
        PUFFER_SCALED, PUFFER_LOGARITHMS, PUFFER_LABELS

    ctypedef enum PufferMemory:
        PUFFER_NO_MEMORY, PUFFER_LSTM, PUFFER_GRU, PUFFER_MINGRU

    ctypedef struct PufferMatrix:
        int inputs, outputs

    ctypedef struct PufferConvolution:
        PufferMatrix matrix
        const int32_t *offsets
        int runs, length, step, line_step, out_height, out_width

    ctypedef struct PufferInput:
        PufferEncoding encoding
        char type
        int32_t offset, count, values
        float scale
        int64_t low

    ctypedef struct PufferLayer:
        PufferMatrix matrix
        PufferActivation activation
        const float *scale
        const float *shift

    ctypedef struct PufferTrunk:
        PufferMatrix labels
        PufferLayer *layers
        int num_layers
        PufferMatrix *gates
        PufferMatrix recurrent, decoder

    ctypedef struct PufferNetwork:
        int row_bytes, num_inputs, num_convolutions, num_trunks, memory_layers, num_log_stds
        const PufferInput *inputs
        PufferInput image, mask
        PufferConvolution *convolutions
        PufferMatrix image_layer
        PufferTrunk *trunks
        PufferMemory memory
        const float *log_std

    ctypedef struct PufferKernels:
        pass

    const PufferKernels *puffer_kernels(const char *name)

cdef extern from "puffer_network_build.h":
    void *puffer_zeros(size_t count, size_t size)
    bint puffer_matrix_init(PufferMatrix *matrix, int inputs, int outputs)
    void puffer_matrix_pack(PufferMatrix *matrix, const float *weights, long stride, const int32_t *places) noexcept
    void puffer_matrix_set_bias(PufferMatrix *matrix, const float **biases, int count) noexcept
    bint puffer_layer_add_norm(PufferLayer *layer)
    void puffer_network_init(PufferNetwork *net) noexcept
    void puffer_network_free(PufferNetwork *net) noexcept

cdef extern from "puffer_network_task.h":
    ctypedef struct PufferNetworkTask:
        PufferTask task
        const uint8_t *observations
        float **memory
        float *params
        float *values

    int puffer_network_task_init(
        PufferNetworkTask *own, const PufferNetwork *net, const PufferKernels *kernels, int threads
    )
    void puffer_network_task_free(PufferNetworkTask *own) noexcept

MAX_LAYERS, MAX_MEMORIES = PUFFER_MAX_LAYERS, PUFFER_MAX_MEMORIES
KERNELS = tuple(name for name in ("avx512", "avx2", "any") if puffer_kernels(name.encode()) != NULL)

cdef object ndarray = np.ndarray
cdef dict ENCODINGS = {"scaled": PUFFER_SCALED, "logarithms": PUFFER_LOGARITHMS, "labels": PUFFER_LABELS}
cdef dict ACTIVATIONS = {
    "relu": PUFFER_RELU, "tanh": PUFFER_TANH, "silu": PUFFER_SILU, "elu": PUFFER_ELU, "gelu": PUFFER_GELU
}
cdef dict MEMORIES = {"lstm": PUFFER_LSTM, "gru": PUFFER_GRU, "mingru": PUFFER_MINGRU}


cdef class PackedMatrix:
    """A matrix of the network, and the parameters that provide its weights."""

    cdef PufferMatrix *matrix
    cdef object weight
    cdef tuple biases, strides
    cdef int32_t[::1] places

    def refresh(self):
        """Copy the current weights."""
        cdef int i
        cdef const float *source
        cdef const float *biases[2]
        cdef long stride = self.strides[0]
        if self.weight.stride() != self.strides:
            raise APIUsageError(
                f"Engine.refresh: weights must keep their memory layout, got strides {self.weight.stride()} after "
                f"{self.strides}; compile the policy again"
            )
        if self.matrix.inputs:
            source = <const float *><size_t>address(self.weight)
            puffer_matrix_pack(self.matrix, source, stride, &self.places[0])
        for i, bias in enumerate(self.biases):
            biases[i] = <const float *><size_t>address(bias)
        puffer_matrix_set_bias(self.matrix, biases, len(self.biases))


cdef class CopiedVector:
    """A vector of the network, and the parameter that provides its numbers."""

    cdef float *to
    cdef object source

    def refresh(self):
        """Copy the current numbers."""
        memcpy(self.to, <const float *><size_t>address(self.source), self.source.numel() * sizeof(float))


cdef class Engine:
    """A policy compiled to C by ``compile_policy``. Only one thread at a time may use it.

    Args:
        spec: Description of the network, a ``pufferlib.models.engine.NetworkSpec``.
        threads: Maximum number of threads that share the rows of one call, including the caller. The caller processes a
            small number of rows alone.
        kernels: One of ``KERNELS``, which lists the kernels that this CPU supports, fastest first. None selects the
            fastest.

    Attributes:
        num_params: Number of parameters of the action distribution in a row of outputs.

    Raises:
        APIUsageError: The CPU does not support these kernels, or the number of threads is out of range.
        PufferError: A thread could not be started.
    """

    cdef PufferNetwork net
    cdef PufferNetworkTask work
    cdef list copies
    cdef object dtype
    cdef tuple shape, names, sizes
    cdef readonly int num_params
    cdef bint is_busy

    def __cinit__(self):
        memset(&self.net, 0, sizeof(self.net))
        memset(&self.work, 0, sizeof(self.work))

    def __init__(self, spec, int threads=1, kernels=None):
        if not 1 <= threads <= PUFFER_MAX_THREADS:
            raise APIUsageError(f"Engine: threads must be from 1 to {PUFFER_MAX_THREADS}, got {threads}")
        if kernels is not None and kernels not in KERNELS:
            raise APIUsageError(f"Engine: kernels must be one of {', '.join(KERNELS)}, got {kernels!r}")
        self.free()
        self.copies = []
        self.shape, self.dtype, self.num_params = spec.observation_shape, spec.observation_dtype, spec.num_params
        memories = [trunk.memory for trunk in spec.trunks if trunk.memory is not None]
        self.names = tuple(name for memory in memories for name in memory.names)
        self.sizes = tuple(memory.size for memory in memories for _ in memory.names)
        self.net.row_bytes = self.dtype.itemsize * int(np.prod(self.shape))
        self.add_inputs(spec)
        self.add_convolutions(spec)
        for i, trunk in enumerate(spec.trunks):
            self.add_trunk(&self.net.trunks[i], trunk)
        self.net.num_trunks, self.net.num_log_stds = len(spec.trunks), spec.num_log_stds
        if spec.log_std is not None:
            self.net.log_std = <const float *>puffer_zeros(spec.log_std.numel(), sizeof(float))
            self.copy(self.net.log_std, spec.log_std)
        puffer_network_init(&self.net)
        name = None if kernels is None else kernels.encode()
        cdef const char *wanted = NULL
        if name is not None:
            wanted = name
        cdef const PufferKernels *chosen = puffer_kernels(wanted)
        error = puffer_network_task_init(&self.work, &self.net, chosen, threads)
        if error == ENOMEM:
            raise MemoryError
        self.check_helpers(error)
        self.refresh()

    def __dealloc__(self):
        self.free()

    cdef void free(self) noexcept:
        puffer_network_task_free(&self.work)
        puffer_network_free(&self.net)

    cdef int check_helpers(self, int error) except -1:
        if error:
            raise PufferError(
                f"Engine: threads={self.work.task.threads} need {self.work.task.threads - 1} helpers, and one could not "
                f"be started ({os.strerror(error)}); choose fewer, or raise the limits of this process on threads"
            )
        return 0

    cdef add_inputs(self, spec):
        cdef PufferInput *inputs = <PufferInput *>puffer_zeros(len(spec.inputs), sizeof(PufferInput))
        if inputs == NULL:
            raise MemoryError
        self.net.inputs, self.net.num_inputs = inputs, len(spec.inputs)
        for i, each in enumerate(spec.inputs):
            set_input(&inputs[i], each)
        if spec.image is not None:
            set_input(&self.net.image, spec.image)
        if spec.mask is not None:
            set_input(&self.net.mask, spec.mask)

    cdef add_convolutions(self, spec):
        cdef PufferConvolution *to
        cdef int32_t[::1] offsets
        for i, each in enumerate(spec.convolutions):
            to = &self.net.convolutions[i]
            self.add(&to.matrix, each.matrix)
            offsets = each.offsets
            to.offsets = <int32_t *>puffer_zeros(len(offsets), sizeof(int32_t))
            if to.offsets == NULL:
                raise MemoryError
            memcpy(<void *>to.offsets, &offsets[0], len(offsets) * sizeof(int32_t))
            to.runs, to.length, to.step, to.line_step = len(offsets), each.length, each.step, each.line_step
            to.out_height, to.out_width = each.out_height, each.out_width
        self.net.num_convolutions = len(spec.convolutions)
        if spec.image_layer is not None:
            self.add(&self.net.image_layer, spec.image_layer)

    cdef add_trunk(self, PufferTrunk *trunk, spec):
        for i, each in enumerate(spec.layers):
            self.add_layer(&trunk.layers[i], each)
        trunk.num_layers = len(spec.layers)
        self.add(&trunk.decoder, spec.decoder)
        if spec.labels is not None:
            self.add(&trunk.labels, spec.labels)
        if spec.memory is not None:
            self.net.memory = MEMORIES[spec.memory.kind]
            for i, each in enumerate((spec.memory.gates, *spec.memory.upper)):
                self.add(&trunk.gates[i], each)
            self.net.memory_layers = 1 + len(spec.memory.upper)
            if spec.memory.recurrent is not None:
                self.add(&trunk.recurrent, spec.memory.recurrent)

    cdef add_layer(self, PufferLayer *layer, spec):
        self.add(&layer.matrix, spec.matrix)
        layer.activation = ACTIVATIONS[spec.activation]
        if spec.norm is not None:
            if not puffer_layer_add_norm(layer):
                raise MemoryError
            self.copy(layer.scale, spec.norm.weight)
            self.copy(layer.shift, spec.norm.bias)

    cdef copy(self, const float *to, source):
        cdef CopiedVector copied = CopiedVector()
        if to == NULL:
            raise MemoryError
        copied.to, copied.source = <float *>to, source
        self.copies.append(copied)

    cdef add(self, PufferMatrix *matrix, spec):
        cdef PackedMatrix packed = PackedMatrix()
        packed.matrix, packed.weight, packed.biases = matrix, spec.weight, spec.biases
        packed.strides, packed.places = spec.weight.stride(), np.ascontiguousarray(spec.places)
        self.copies.append(packed)
        if not puffer_matrix_init(matrix, len(spec.places), len(spec.weight)):
            raise MemoryError

    def refresh(self):
        """Copy the current weights of the policy. Call this after each update.

        Raises:
            APIUsageError: The weights are no longer float32 on the CPU.
        """
        self.claim("refresh")
        try:
            for copied in self.copies:
                copied.refresh()
        finally:
            self.is_busy = False

    def forward(self, observations, state, params, values):
        """Run one step of the policy, like ``Policy.forward_eval``, and write the results into existing arrays.

        All arrays are C-contiguous NumPy arrays, or CPU tensors, which are slightly slower.

        Args:
            observations: Observations ``(rows, *shape)`` in the dtype of the space.
            state: Memory by name, float32 ``(rows, size)``, updated in place. None or empty for policies without
                memory.
            params: Output array for the distribution parameters, float32 ``(rows, num_params)``.
            values: Output array for the values, float32 ``(rows,)``.

        Raises:
            APIUsageError: An array has the wrong shape, dtype or layout.
        """
        cdef int i, error
        cdef list held = []  # keeps arrays that share memory with tensors alive
        self.claim("forward")
        try:
            read = as_array(observations)
            check(read, self.dtype, self.shape, -1, "observations")
            rows = head_of(read).shape[0]
            params, values = as_array(params), as_array(values)
            check(params, float32, (self.num_params,), rows, "params")
            check(values, float32, (), rows, "values")
            for i, name in enumerate(self.names):
                array = as_array(state[name])
                check(array, float32, (self.sizes[i],), rows, name)
                held.append(array)
                self.work.memory[i] = <float *>head_of(array).data
            self.work.task.num_items = rows
            self.work.observations = <const uint8_t *>head_of(read).data
            self.work.params, self.work.values = <float *>head_of(params).data, <float *>head_of(values).data
            with nogil:
                error = puffer_pool_run(&self.work.task)
            self.check_helpers(error)
        finally:
            self.is_busy = False

    cdef claim(self, where):
        """Mark the engine as busy. Calls share one set of buffers, so two of them must not run concurrently."""
        if self.is_busy:
            raise APIUsageError(f"Engine.{where}: another thread uses this engine; compile the policy once for each thread")
        self.is_busy = True


cdef object float32 = np.dtype(np.float32)


cdef set_input(PufferInput *to, spec):
    to.encoding, to.type, to.offset, to.count = ENCODINGS[spec.encoding], ord(spec.type), spec.offset, spec.size
    to.scale, to.low, to.values = spec.scale, spec.low, spec.values


cdef address(parameter):
    if not parameter.is_cpu or parameter.element_size() != 4:
        raise APIUsageError(
            f"Engine.refresh: weights must be float32 on the CPU, got {parameter.dtype} on {parameter.device}; "
            "use the policy itself"
        )
    return parameter.data_ptr()


cdef inline as_array(array):
    return array if type(array) is ndarray else array.numpy()


cdef inline int check(array, dtype, tuple shape, Py_ssize_t rows, name) except -1:
    """Raise APIUsageError unless the array is contiguous with shape ``(rows, *shape)``. -1 rows match any number."""
    cdef ArrayHead *head = head_of(array)
    cdef bint fits = head.flags & ALIGNED_AND_CONTIGUOUS == ALIGNED_AND_CONTIGUOUS and head.ndim == len(shape) + 1
    cdef int axis
    if fits:
        fits = rows < 0 or head.shape[0] == rows
        for axis in range(len(shape)):
            fits = fits and head.shape[axis + 1] == <Py_ssize_t>shape[axis]
    if fits and (array.dtype is dtype or array.dtype == dtype):
        return 0
    expected = ", ".join(map(str, ("rows" if rows < 0 else rows, *shape)))
    layout = "" if array.flags.c_contiguous else ", not contiguous"
    raise APIUsageError(
        f"Engine.forward: {name} must be contiguous {dtype} of shape ({expected}), "
        f"got {array.dtype} of shape {array.shape}{layout}"
    )
